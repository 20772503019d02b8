"""``cocite index``: build the index that answers queries. ``cocite measures``: what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cocite.cli.options import (
    SectionedVerb,
    format_option,
    memory_option,
    overwrite_option,
    threads_option,
)
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.settings import build_options, given, measure_options
from cocite.cli.text import facts_text, prose_text, say, table_text
from cocite.measures import DECAY, Measure
from cocite.measures.documents import MeasuresDocument
from cocite.memory import format_size, format_time

if TYPE_CHECKING:
    from cocite.index.documents import BuildDocument

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
@memory_option
@threads_option
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
    show: Show,
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
    from cocite.index.build import IndexBuild
    from cocite.index.documents import BuildDocument
    from cocite.index.plan import BuildOptions
    from cocite.query.precision import expected_error, standard_errors

    options = BuildOptions.checked(measure, direction, layout, given(settings))
    stored = Graph.open(graph)
    with IndexBuild(
        stored,
        output,
        options,
        threads=threads,
        memory=memory,
        shard=shard,
        blocks=blocks,
        external=external,
        overwrite=overwrite,
        restart=restart,
        unweighted=unweighted,
        refine=refine,
    ) as work:
        asked = options.measure.ask_settings({})
        errors = standard_errors(options.parts, asked, options.samples)
        say(f"{output}: {work.estimate()}{expected_error(errors)}")
        stage = "sampling" if work.unit == "samples" else "computing"
        with Stages({stage: work.unit, "refining": "nodes"}) as stages:
            report = work.run(
                lambda done, total: stages(stage, done, total),
                lambda sweep, done, total: stages(f"refining {sweep + 1}", done, total),
            )
        found = BuildDocument.of(work, report, output)
    ready = f"ready for decay {asked[DECAY]}" if refine else ""
    show(Reply(found, lambda: _text(found, ready)))


def _text(found: BuildDocument, ready: str) -> str:
    chosen = "".join(f", {name} {value}" for name, value in found.settings.items())
    shown = {
        "index": found.index,
        "measure": f"{found.measure}, {found.links}{chosen}",
        "made": f"{found.made:,} of {found.units:,} {found.unit} in {format_time(found.seconds)}",
    }
    if found.sampled and found.live_steps is not None:
        shown["live steps"] = f"{found.live_steps:.2f} a node and sample"
    what = "node and sample" if found.sampled else "node"
    shown["on disk"] = f"{format_size(found.bytes)}, {found.bytes_each:.2f} bytes a {what}"
    return facts_text(shown | ({"refined": ready} if ready else {}))


@click.command()
@format_option
def measures(show: Show) -> None:
    """List the measures: what they say, how they are stored, what they take."""
    found = MeasuresDocument.of()
    show(Reply(found, lambda: _list(found)))


def _list(found: MeasuresDocument) -> str:
    """What each is, then what each takes, in the width of the terminal."""
    what = [(measure.name, measure.summary) for measure in found.measures]
    takes = [(measure.name, _takes(measure)) for measure in found.measures]
    return "\n\n".join(
        (
            table_text(["measure", "what it is"], what, prose=True),
            table_text(
                ["measure", "settings to build an index; to ask it; layouts"], takes, prose=True
            ),
            prose_text(
                "A weighted mean of several: blend:psimrank+cocitation, or with weights and "
                "settings of their own: "
                "'blend:0.6*psimrank(hubs=rare,direction=both)+0.4*cocitation(idf=true)'."
            ),
        )
    )


def _takes(measure: Measure) -> str:
    named = (
        [setting.name for setting in measure.build],
        [setting.name for setting in measure.ask],
        measure.layouts,
    )
    return "; ".join(" ".join(names) or "-" for names in named)
