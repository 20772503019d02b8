"""``cocite index``: build the index that answers queries. ``cocite measures``: what there is."""

from __future__ import annotations

import click

from cocite.cli.options import (
    SectionedVerb,
    format_option,
    means_options,
    overwrite_option,
)
from cocite.cli.output import print_csv, print_facts, print_json, print_prose, print_table, say
from cocite.cli.progress import Stages
from cocite.cli.settings import build_options, given, measure_options
from cocite.means import Means
from cocite.measures import MEASURES, Measure
from cocite.memory import format_size

__all__ = ["index", "measures"]


@click.command(cls=SectionedVerb)
@click.argument("graph", metavar="GRAPH")
@click.option("-o", "--output", required=True, metavar="DIR", help="The index to make.")
@measure_options
@build_options
@click.option(
    "--unweighted",
    is_flag=True,
    help="Leave the weights of links aside.  [default: go by them, if links have any]",
)
@click.option(
    "--shard",
    type=int,
    metavar="SAMPLES",
    help="Samples between two points at which a build can resume.  [default: 16, fewer on large "
    "graphs]",
)
@click.option(
    "--blocks",
    type=click.IntRange(1),
    metavar="COUNT",
    help="Cut the graph into blocks, one in memory at a time.  [default: as --memory needs]",
)
@click.option(
    "--external",
    is_flag=True,
    help="Keep the walks' tokens on disk, too: constant memory.  [default: if --memory is below "
    "26.5 bytes a node]",
)
@means_options
@overwrite_option
@click.option(
    "--refine",
    is_flag=True,
    help="Make refined answers ready (for simrank), which else every command that asks for them "
    "does for itself.",
)
@click.option("--restart", is_flag=True, help="Throw away an unfinished build with other settings.")
@format_option
def index(
    graph: str,
    output: str,
    measure: str,
    direction: str | None,
    layout: str | None,
    form: str,
    memory: int | None,
    threads: int | None,
    shard: int | None,
    blocks: int | None,
    external: bool,
    overwrite: bool,
    restart: bool,
    unweighted: bool,
    refine: bool,
    **settings: object,
) -> None:
    """Build an index of the stored GRAPH.

    Before it starts it says what it will take. A build that was interrupted goes on when the
    same command is given again. Equal seeds give equal samples, whatever the threads, memory,
    blocks and shards.
    """
    from cocite.graph import Graph
    from cocite.index.build import IndexBuild, format_time
    from cocite.index.plan import BuildOptions, links_in_words
    from cocite.query.precision import expected_error

    options = BuildOptions.checked(
        measure, direction, layout, given(settings), unweighted=unweighted, refine=refine
    )
    means = Means.checked(threads, memory, shard, blocks, external)
    stored = Graph.open(graph)
    with IndexBuild(stored, output, options, means, overwrite=overwrite, restart=restart) as work:
        asked = options.measure.ask_settings({})
        say(f"{output}: {work.estimate()}{expected_error(options.settings, asked)}")
        stage = "sampling" if work.unit == "samples" else "computing"
        with Stages({stage: work.unit, "refining": "nodes"}) as stages:
            report = work.run(
                lambda done, total: stages(stage, done, total),
                lambda sweep, done, total: stages(f"refining {sweep + 1}", done, total),
            )
        unit, units, weighted = work.unit, work.units, work.weighted
    facts: dict[str, object] = {"index": output, "measure": measure, "direction": options.direction}
    layouts = " ".join(dict.fromkeys(plan.layout for plan in options.parts))
    facts |= {"layout": layouts, "weighted": weighted, **options.settings}
    facts |= {f"{unit}_made": report.units, "seconds": report.seconds, "bytes": report.bytes}
    chosen = "".join(f", {name} {value}" for name, value in options.settings.items())
    shown = {
        "index": output,
        "measure": f"{measure}, {links_in_words(options.measure, options.direction)}" + chosen,
        "made": f"{report.units:,} of {units:,} {unit} in {format_time(report.seconds)}",
    }
    if unit == "samples":
        density = report.bytes / (stored.nodes * units)
        facts["bytes_per_node_and_sample"] = density
        if report.live_steps:
            each = report.live_steps / (stored.nodes * report.units)
            facts["live_steps_per_node"] = each
            shown["live steps"] = f"{each:.2f} a node and sample"
    else:
        density = report.bytes / stored.nodes
        facts["bytes_per_node"] = density
    what = "node and sample" if unit == "samples" else "node"
    shown["on disk"] = f"{format_size(report.bytes)}, {density:.2f} bytes a {what}"
    facts["refined"] = refine
    if refine:
        shown["refined"] = f"ready for decay {asked['decay']}"
    print_facts(facts, form, shown)


@click.command()
@format_option
def measures(form: str) -> None:
    """List the measures: what they say, how they are stored, what they take."""
    titles = ["measure", "layouts", "settings", "asking", "what it is"]
    rows = [
        (
            name,
            " ".join(measure.layouts),
            " ".join(setting.name for setting in measure.build) or "-",
            " ".join(setting.name for setting in measure.ask) or "-",
            measure.summary,
        )
        for name, measure in MEASURES.items()
    ]
    if form == "csv":
        print_csv(titles, rows)
    elif form == "json":
        print_json({"measures": [_described(name) for name in MEASURES]})
    else:
        print_table(["measure", "what it is"], [(row[0], row[4]) for row in rows], prose=True)
        print()
        takes = [(row[0], _takes(MEASURES[row[0]])) for row in rows]
        print_table(
            ["measure", "settings to build an index; to ask it; layouts"], takes, prose=True
        )
        print()
        print_prose(
            "A weighted mean of several: blend:psimrank+cocitation, or with weights and settings "
            "of their own: "
            "'blend:0.6*psimrank(hubs=rare,direction=both)+0.4*cocitation(idf=true)'."
        )


def _takes(measure: Measure) -> str:
    named = (
        [setting.name for setting in measure.build],
        [setting.name for setting in measure.ask],
        measure.layouts,
    )
    return "; ".join(" ".join(names) or "-" for names in named)


def _described(name: str) -> dict[str, object]:
    measure = MEASURES[name]
    return {
        "measure": name,
        "summary": measure.summary,
        "layouts": list(measure.layouts),
        "direction": measure.direction,
        "symmetric": measure.symmetric,
        "weighted": measure.weighted,
        "settings": {
            when: [
                {"name": s.name, "default": s.default, "allowed": s.allowed, "text": s.text}
                for s in settings
            ]
            for when, settings in (("build", measure.build), ("ask", measure.ask))
        },
    }
