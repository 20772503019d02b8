"""``cocite index``: build the index that answers queries. ``cocite measures``: list measures."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.commands.completion import measure_names
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import graph_of, graph_url
from cocite.cli.options import (
    BUILDING,
    cluster_option,
    flag_of,
    format_option,
    no_verify_option,
    partition_option,
    resource_options,
    store_option,
    takes,
    verifying,
)
from cocite.cli.output import (
    Reply,
    Show,
    defaults_text,
    facts_text,
    or_of,
    prose_text,
    settings_text,
    table_text,
    texts_in_words,
)
from cocite.engine.carriers import TOKEN_BYTES
from cocite.measures import DECAY, Measure
from cocite.measures.evidence import FLOOR_WORDS, FLOORS
from cocite.measures.results import MeasuresDocument
from cocite.options.build import IndexOptions
from cocite.options.common import SourceOptions
from cocite.resources import Resources, format_size, format_time, give_back_at_once

if TYPE_CHECKING:
    from cocite.index.results import BuildDocument


_FLOORS = "; ".join(f"{layout}: {formula}" for layout, formula in FLOORS.items())


@click.command(cls=SectionedCommand, epilog=f"Minimum --memory by layout: {_FLOORS}. {FLOOR_WORDS}")
@click.argument("graph", metavar="GRAPH|LINKS")
@store_option("index")
@takes(IndexOptions, "options", settings=BUILDING)
@resource_options
@cluster_option(
    "Draw the samples on a cluster, whose nodes must have GRAPH and DIR at the same paths. GRAPH "
    "may also be a URL, which each node copies, or partitioned (cocite ingest --partitions)."
)
@takes(SourceOptions, "source", only=("titles", "bipartite"))
@no_verify_option
@format_option
def index(
    graph: str,
    output: str,
    options: IndexOptions,
    memory: int | None,
    threads: int | None,
    cluster: str | None,
    source: SourceOptions,
    show: Show,
) -> None:
    """Build an index of a stored GRAPH, or of the cached graph of LINKS.

    It first prints the disk space, memory and time that the build needs. To resume an interrupted
    build, repeat the command. The same --seed gives the same index, regardless of threads, memory,
    blocks and shards.
    """
    from cocite.graph import Graph
    from cocite.graph.partitions import is_blocked
    from cocite.index.build import IndexBuild
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.plan import query_settings
    from cocite.index.results import BuildDocument
    from cocite.index.settings import chosen_options
    from cocite.io.remote import Sending, copied, is_url
    from cocite.search.plan import expected_error, standard_errors

    built = chosen_options(options.settings_file, options)
    give_back_at_once()
    sending = Sending(output, "index", options.overwrite) if is_url(output) else None
    beside = sending is not None and cluster is not None and not is_blocked(graph)
    staged = options.staging_url or (f"{output}.building" if beside else None)
    with ExitStack() as stack:
        stored: Graph
        spread = None
        if is_blocked(graph):
            cut = options.external or options.blocks is not None or staged is not None
            stored, memory = stack.enter_context(partition_option(graph, cluster, memory, cut=cut))
            means = Resources.checked(threads, memory, options.shard)
        else:
            size = options.shard, options.blocks, options.external
            means = Resources.checked(threads, memory, *size)
            url = graph_url(graph)
            if url is None:
                graph = graph_of(graph, source, memory=memory, threads=threads, lasting=True)
            found_at = graph if url is None else copied(url, "graph")
            stored = Graph.open(found_at, verify=verifying())
            spread = stack.enter_context(spread_on(cluster, url, staged))
            means = of_nodes(spread, means, threads, memory)
        how: dict[str, Any] = {"overwrite": options.overwrite, "restart": options.restart}
        how |= {"spread": spread}
        how |= {"overwrite": True, "elsewhere": True} if sending else {}
        place = sending.path if sending else output
        work = stack.enter_context(IndexBuild(stored, place, built, means, **how))
        asked = query_settings(
            built.measure, built.parts, {}, built.meeting_weight, built.query_defaults
        )
        errors = standard_errors(built.parts, asked, built.samples)
        # Cluster nodes may differ from this machine, so pilots here would not predict the time.
        summary = f"on {spread.in_words()}" if spread else str(work.estimate())
        say(f"{output}: {summary}{expected_error(errors)}")
        report = run_build(work)
        if sending is not None:
            sending.send()
        found = BuildDocument.of(work, report, output)
        built = work.options
    for line in found.report.lines(stored, built):
        say(line)
    decay = built.measure.ask_settings({})[DECAY] if options.refine else None
    show(Reply(found, lambda: _text(found, f"ready for decay {decay}" if options.refine else "")))


def run_build(work: Any) -> Any:
    """Run a build or a refresh with progress, and return its report."""
    stage = "sampling" if work.unit == "samples" else "computing"
    with Stages({stage: work.unit, "refining": "nodes"}) as stages:
        return work.run(
            lambda done, total: stages(stage, done, total),
            lambda sweep, done, total: stages(f"refining {sweep + 1}", done, total),
        )


def _text(found: BuildDocument, ready: str) -> str:
    first = found.numbers.start
    made = f"{found.made:,} of {found.units:,} {found.unit}"
    if found.unit == "parts":
        made = f"{found.nodes:,} nodes, {made},"
    facts = {
        "index": found.index,
        "measure": f"{found.measure}, {found.links}{settings_text(found.settings)}",
        "texts": texts_in_words(found.texts, found.nodes),
        "numbers": f"{first} to {found.numbers.stop - 1}" if first else "",
        "keeps": found.kept.in_words(found.nodes) if found.kept else "",
        "made": f"{made} in {format_time(found.seconds)}",
    }
    if found.sampled and found.live_steps is not None:
        facts["walked"] = f"{found.live_steps:.2f} steps per node and sample, until walks meet"
    if (sent := found.traffic) is not None:
        facts["sent"] = f"{format_size(sent.whole)} between blocks; "
        facts["sent"] += f"{sent.each:.2f} bytes per node and step"
        if sent.tokens:
            facts["sent"] += f", of at most {TOKEN_BYTES} if every token were sent at every step"
    what = "node and sample" if found.sampled else "node"
    facts["on disk"] = f"{format_size(found.bytes)}, {found.bytes_each:.2f} bytes per {what}"
    return facts_text(facts | defaults_text(found) | {"refined": ready})


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=measure_names)
@format_option
def measures(names: tuple[str, ...], show: Show) -> None:
    """List the measures: what they mean, their settings, and how they are stored.

    With a NAME, describe each setting of that measure, with its allowed values and default.
    """
    found = MeasuresDocument.of(*names)
    show(Reply(found, lambda: "\n\n".join(map(_whole, found.measures)) if names else _list(found)))


def _whole(measure: Measure) -> str:
    links = f"{measure.direction}; it can be {or_of(measure.directions)}"
    texts = [
        facts_text(
            {
                "measure": measure.name,
                "what it is": measure.summary,
                "direction": "none: it uses no links" if measure.texts else links,
                "layouts": ", ".join(measure.layouts),
            }
        )
    ]
    for title, settings in (("building", measure.build), ("querying", measure.ask)):
        rows = [
            (
                flag_of(each.name),
                str(each.default).lower() if each.type is bool else str(each.default),
                f"{each.text[0].upper()}{each.text[1:]}. It is {each.allowed}.",
            )
            for each in settings
        ]
        if rows:
            texts.append(table_text([f"when {title}", "default", "what it does"], rows, prose=True))
    return "\n\n".join(texts)


def _list(found: MeasuresDocument) -> str:
    layouts = sorted({layout for measure in found.measures for layout in measure.layouts})
    lists = [
        ([each.name for each in m.build], [each.name for each in m.ask], m.layouts)
        for m in found.measures
    ]
    settings = ["; ".join(" ".join(names) or "-" for names in each) for each in lists]
    names = [measure.name for measure in found.measures]
    tables = (
        ("measure", "what it is", zip(names, (m.summary for m in found.measures), strict=True)),
        (
            "measure",
            "build settings; query settings; layouts",
            zip(names, settings, strict=True),
        ),
        ("layout", "minimum memory to build it", ((name, FLOORS[name]) for name in layouts)),
    )
    return "\n\n".join(
        (
            *(table_text([of, what], list(rows), prose=True) for of, what, rows in tables),
            prose_text(FLOOR_WORDS),
            prose_text(
                "A weighted mean of several measures: blend:psimrank+cocitation, or with weights "
                "and settings for each: "
                "'blend:0.6*psimrank(hubs=rare,direction=both)+0.4*cocitation(idf=true)'."
            ),
        )
    )
