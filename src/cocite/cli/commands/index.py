"""``cocite index``: build the index that answers queries. ``cocite measures``: what there is."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from cocite.cli.completion import measure_names
from cocite.cli.console import Stages
from cocite.cli.help import SectionedCommand
from cocite.cli.link_files import graph_of, graph_url
from cocite.cli.options import (
    FILE,
    THERE,
    cluster_option,
    format_option,
    no_verify_option,
    partition_option,
    resource_options,
    takes,
    verifying,
)
from cocite.cli.output import (
    Reply,
    Show,
    asks_text,
    facts_text,
    or_of,
    prose_text,
    say,
    settings_text,
    table_text,
    texts_in_words,
)
from cocite.cli.settings import MEETING, build_options, with_settings
from cocite.engine.carriers import TOKEN_BYTES
from cocite.measures import DECAY, Measure
from cocite.measures.evidence import FLOOR_WORDS, FLOORS
from cocite.measures.results import MeasuresDocument
from cocite.options.build import IndexOptions
from cocite.options.source import SourceOptions
from cocite.resources import Resources, format_size, format_time, give_back_at_once

if TYPE_CHECKING:
    from cocite.index.build import IndexBuild
    from cocite.index.reports import BuildReport
    from cocite.index.results import BuildDocument


_FLOORS = "; ".join(f"{layout}: {formula}" for layout, formula in FLOORS.items())


_NUMBERS = re.compile(r"([0-9]{1,10})(?:\.\.([0-9]{1,10}))?")


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """``100..199``, or one number, as a range."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(
        self, value: str | range, param: click.Parameter | None, ctx: click.Context | None
    ) -> range:
        """The range that a text says."""
        if isinstance(value, range):
            return value
        match = _NUMBERS.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is no run of numbers; write it like 100..199", param, ctx)
        return range(int(match[1]), int(match[2] or match[1]) + 1)


@click.command(
    cls=SectionedCommand, epilog=f"The least --memory, by layout: {_FLOORS}. {FLOOR_WORDS}"
)
@click.argument("graph", metavar="GRAPH|LINKS")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    help="The index to make: a directory, or a "
    "URL (s3://..., gs://..., file://...), where it comes when it is whole.",
)
@takes(
    IndexOptions,
    "options",
    types={
        "settings_file": FILE,
        "texts": THERE,
        "meeting_weight": MEETING,
        "numbers": Numbers("numbers"),
    },
)
@with_settings(build_options, into="options")
@resource_options
@cluster_option(
    "Draw the samples on a cluster. Its nodes see GRAPH and DIR by the same paths, or GRAPH is a "
    "URL, of which each keeps a copy, or in blocks (cocite ingest --partitions), which they share."
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
    """Build an index of the stored GRAPH, or of the graph that is kept of a file of LINKS.

    First it says how much disk, memory and time it will take. If it is interrupted, give the same
    command again, and it goes on. The same --seed gives the same index, whatever the threads, the
    memory, the blocks and the shards.
    """
    from cocite.graph import Graph
    from cocite.graph.partitions import is_blocked
    from cocite.index.build import IndexBuild
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.plan import query_settings
    from cocite.index.results import BuildDocument
    from cocite.index.settings import chosen_options
    from cocite.io.publish import Sending
    from cocite.io.remote import copied, is_url
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
        asked = query_settings(built.measure, built.parts, {}, built.meeting_weight, built.asks)
        errors = standard_errors(built.parts, asked, built.samples)
        # Nodes may be quite unlike this machine, so pilots here would say nothing of the time.
        told = f"on {spread.in_words()}" if spread else str(work.estimate())
        say(f"{output}: {told}{expected_error(errors)}")
        report = _run(work)
        if sending is not None:
            sending.send()
        found = BuildDocument.of(work, report, output)
        built = work.options
    for line in found.told.lines(stored, built):
        say(line)
    decay = built.measure.ask_settings({})[DECAY] if options.refine else None
    show(Reply(found, lambda: _text(found, f"ready for decay {decay}" if options.refine else "")))


def _run(work: IndexBuild) -> BuildReport:
    """Do the work of a build, and show how far it is."""
    stage = "sampling" if work.unit == "samples" else "computing"
    with Stages({stage: work.unit, "refining": "nodes"}) as stages:
        return work.run(
            lambda done, total: stages(stage, done, total),
            lambda sweep, done, total: stages(f"refining {sweep + 1}", done, total),
        )


def _text(found: BuildDocument, ready: str) -> str:
    chosen = settings_text(found.settings)
    first = found.numbers.start
    made = f"{found.made:,} of {found.units:,} {found.unit}"
    if found.unit == "parts":
        made = f"{found.nodes:,} nodes, {made},"
    shown = {
        "index": found.index,
        "measure": f"{found.measure}, {found.links}{chosen}",
        **({"texts": texts_in_words(found.texts, found.nodes)} if found.texts else {}),
        **({"numbers": f"{first} to {found.numbers.stop - 1}"} if first else {}),
        **({"keeps": found.kept.in_words(found.nodes)} if found.kept else {}),
        "made": f"{made} in {format_time(found.seconds)}",
    }
    if found.sampled and found.live_steps is not None:
        shown["walked"] = f"{found.live_steps:.2f} steps a node and sample, until walks meet"
    if found.traffic is not None:
        sent = found.traffic
        shown["sent"] = (
            f"{format_size(sent.whole)} between blocks; {sent.each:.2f} bytes a node and step"
        )
        if sent.tokens:
            shown["sent"] += f", of at most {TOKEN_BYTES} if every token were sent at every step"
    what = "node and sample" if found.sampled else "node"
    shown["on disk"] = f"{format_size(found.bytes)}, {found.bytes_each:.2f} bytes a {what}"
    if found.meeting_weight is not None:
        shown["meeting_weight"] = f"{found.meeting_weight}, unless a question says otherwise"
    if found.asks:
        shown["asks"] = asks_text(found.asks)
    return facts_text(shown | ({"refined": ready} if ready else {}))


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=measure_names)
@format_option
def measures(names: tuple[str, ...], show: Show) -> None:
    """List the measures: what they mean, their settings, and how they are stored.

    With a NAME tell what each setting of that measure does, what it may be, and its default.
    """
    found = MeasuresDocument.of(*names)
    show(Reply(found, lambda: "\n\n".join(map(_whole, found.measures)) if names else _list(found)))


def _whole(measure: Measure) -> str:
    """All that is to be known to use a measure."""
    texts = [
        facts_text(
            {
                "measure": measure.name,
                "what it is": measure.summary,
                "direction": f"{measure.direction}; it can be {or_of(measure.directions)}"
                if not measure.texts
                else "none: it looks at no links",
                "layouts": ", ".join(measure.layouts),
            }
        )
    ]
    for title, settings in (("building", measure.build), ("asking", measure.ask)):
        rows = [
            (
                f"--{setting.name.replace('_', '-')}",
                str(setting.default).lower()
                if type(setting.default) is bool
                else str(setting.default),
                f"{setting.text[0].upper()}{setting.text[1:]}. It is {setting.allowed}.",
            )
            for setting in settings
        ]
        if rows:
            texts.append(table_text([f"when {title}", "default", "what it does"], rows, prose=True))
    return "\n\n".join(texts)


def _list(found: MeasuresDocument) -> str:
    """What each is, then what each takes, in the width of the terminal."""
    what = [(measure.name, measure.summary) for measure in found.measures]
    takes = [(measure.name, _takes(measure)) for measure in found.measures]
    layouts = sorted({layout for measure in found.measures for layout in measure.layouts})
    floors = [(layout, FLOORS[layout]) for layout in layouts]
    return "\n\n".join(
        (
            table_text(["measure", "what it is"], what, prose=True),
            table_text(
                ["measure", "settings when building; settings when asking; layouts"],
                takes,
                prose=True,
            ),
            table_text(["layout", "memory to build it, at least"], floors, prose=True),
            prose_text(FLOOR_WORDS),
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
