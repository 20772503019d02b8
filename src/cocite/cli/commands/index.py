"""``cocite index``: build the index that answers queries. ``cocite plan``: estimate its cost.
``cocite refresh``: update an index after changes to its graph. ``cocite merge``: join indexes.
``cocite measures``: list measures.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from cocite.cli import flags
from cocite.cli.commands.completion import measure_names
from cocite.cli.console import Stages, say
from cocite.cli.help import SETTING, SectionedCommand
from cocite.cli.inputs import graph_of, graph_url
from cocite.cli.output import (
    Reply,
    Show,
    defaults_text,
    facts_text,
    prose_text,
    settings_text,
    staleness_in_words,
    table_text,
    texts_in_words,
)
from cocite.deadline import clock
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.partitions import is_blocked
from cocite.io.remote import Sending, copied, is_url
from cocite.measures import DECAY, Measure
from cocite.measures.evidence import FLOOR_WORDS, FLOORS
from cocite.measures.results import MeasuresDocument
from cocite.options.build import IndexOptions, PlanOptions, RefreshOptions
from cocite.options.common import SourceOptions
from cocite.resources import Resources, format_size, format_time, give_back_at_once
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.index.results import BuildDocument, MergeDocument, RefreshDocument
    from cocite.search.plan import Figures, Plan


_FLOORS = "; ".join(f"{layout}: {formula}" for layout, formula in FLOORS.items())


@click.command(cls=SectionedCommand, epilog=f"Minimum --memory by layout: {_FLOORS}. {FLOOR_WORDS}")
@click.argument("graph", metavar="GRAPH|LINKS")
@flags.store("index")
@flags.takes(IndexOptions, "options", settings=flags.BUILDING)
@flags.resources
@flags.cluster(
    "Draw the samples on a cluster. Its nodes must have GRAPH and DIR at the same paths. GRAPH "
    "may also be partitioned (cocite ingest --partitions), or a URL, which each node copies."
)
@flags.takes(SourceOptions, "source", only=("titles", "bipartite"))
@flags.no_verify
@flags.format
def index(
    graph: str,
    output: str,
    options: IndexOptions,
    limits: flags.ResourceLimits,
    cluster: str | None,
    source: SourceOptions,
    show: Show,
) -> None:
    """Build an index of a stored GRAPH, or of the cached graph of LINKS.

    It first prints the disk space, memory and time that the build needs. To resume an interrupted
    build, repeat the command. The same --seed gives the same index, regardless of threads, memory,
    blocks and shards.
    """
    from cocite.index.build import IndexBuild
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.plan import query_settings
    from cocite.index.results import BuildDocument
    from cocite.index.settings import chosen_options
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
            stored, memory = stack.enter_context(
                flags.open_partitions(graph, cluster, limits["memory"], cut=cut)
            )
            means = Resources.checked(limits["threads"], memory, options.shard)
        else:
            size = options.shard, options.blocks, options.external
            means = Resources.checked(limits["threads"], limits["memory"], *size)
            url = graph_url(graph)
            if url is None:
                graph = graph_of(graph, source, **limits, lasting=True)
            found_at = graph if url is None else copied(url, "graph")
            stored = Graph.open(found_at, verify=flags.verifying())
            spread = stack.enter_context(spread_on(cluster, url, staged))
            means = of_nodes(spread, means, **limits)
        how: dict[str, Any] = {"overwrite": options.overwrite, "restart": options.restart}
        how |= {"spread": spread}
        how |= {"overwrite": True, "elsewhere": True} if sending else {}
        place = sending.path if sending else output
        work = stack.enter_context(IndexBuild(stored, place, built, means, **how))
        asked = query_settings(
            built.measure, built.parts, {}, built.meeting_weight, built.query_defaults
        )
        errors = standard_errors(built.parts, asked, built.samples)
        # Cluster nodes may differ from this machine, so a pilot run here would not predict the
        # time.
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
    show(Reply(found, lambda: _build_text(found, decay)))


def run_build(work: Any) -> Any:
    """Run a build or a refresh with progress, and return its report."""
    stage = "sampling" if work.unit == "samples" else "computing"
    with Stages({stage: work.unit, "refining": "nodes"}) as stages:
        return work.run(
            lambda done, total: stages(stage, done, total),
            lambda sweep, done, total: stages(f"refining {sweep + 1}", done, total),
        )


def _build_text(found: BuildDocument, decay: float | None) -> str:
    from cocite.engine.carriers import TOKEN_BYTES
    from cocite.index.plan import links_in_words

    options, cost = found.options, found.cost
    measure, first = options.measure, options.first
    links = links_in_words(measure, options.direction)
    made = f"{cost.finished:,} of {found.units:,} {found.unit}"
    if found.unit == "parts":
        made = f"{found.nodes:,} nodes, {made},"
    facts = {
        "index": found.index,
        "measure": f"{measure.name}, {links}{settings_text(options.settings.to_json())}",
        "texts": texts_in_words(found.texts, found.nodes),
        "numbers": f"{first} to {options.numbers.stop - 1}" if first else "",
        "keeps": found.kept.in_words(found.nodes) if found.kept else "",
        "made": f"{made} in {format_time(cost.seconds)}",
    }
    if found.sampled and found.live_steps is not None:
        facts["walked"] = f"{found.live_steps:.2f} steps per node per sample, until walks meet"
    if (sent := cost.traffic) is not None:
        facts["sent"] = f"{format_size(sent.whole)} between blocks; "
        facts["sent"] += f"{sent.each:.2f} bytes per node per step"
        if sent.tokens:
            facts["sent"] += f", of at most {TOKEN_BYTES} if every token were sent at every step"
    what = "node per sample" if found.sampled else "node"
    facts["on disk"] = f"{format_size(cost.bytes)}, {found.bytes_each:.2f} bytes per {what}"
    return facts_text(
        facts
        | defaults_text(options)
        | {"refined": "" if decay is None else f"ready for decay {decay}"}
    )


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, shell_complete=measure_names)
@flags.format
def measures(names: tuple[str, ...], show: Show) -> None:
    """List the measures: what they mean, their settings, and how they are stored.

    With a NAME, describe each setting of that measure, with its allowed values and default.
    """
    found = MeasuresDocument.of(*names)
    show(Reply(found, lambda: "\n\n".join(map(_whole, found.measures)) if names else _list(found)))


def _whole(measure: Measure) -> str:
    links = f"{measure.direction} by default; choose from {', '.join(measure.directions)}"
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
                flags.flag_of(each.name),
                str(each.default).lower() if each.type is bool else str(each.default),
                f"{each.text[0].upper()}{each.text[1:]}. Allowed: {each.allowed}.",
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
        ("measure", "build settings; query settings; layouts", zip(names, settings, strict=True)),
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


_PAPER = "of Fogaras and Rácz, Scaling link-based similarity search (2005)"


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|INDEX|LINKS")
@flags.takes(PlanOptions, "options", settings=flags.EVERY)
@flags.resources
@flags.takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@flags.format
def plan(
    graph: str,
    options: PlanOptions,
    limits: flags.ResourceLimits,
    source: SourceOptions,
    show: Show,
) -> None:
    """Estimate the cost and accuracy of an index of a stored GRAPH or of LINKS.

    It draws a few samples, deletes them, and extrapolates the size, memory and time of the whole
    index. Set the number of samples with --samples, --delta, --disk or --time. A second column
    shows them for twice as many samples.

    For an INDEX, it estimates the time, memory and output size of related-all.
    """
    from cocite.search.plan import plan_index

    if kind_of(graph) == "index":
        _refuse_building(graph)
        _plan_batch(graph, options, limits, show)
        return
    if flags.is_set("k"):
        raise UsageError(f"-k requires an index, but {graph} is not an index: omit -k")
    graph = graph_of(graph, source, **limits)
    settings = dict(options.settings)
    chosen = replace(options, samples=settings.pop("samples", None), settings=settings)
    found = plan_index(graph, **limits, options=chosen)
    show(Reply(found, lambda: _plan_text(found)))


_OF_AN_INDEX = ("graph", "k", "threads", "memory", "scratch", "show")


def _refuse_building(index: str) -> None:
    """Raise :class:`UsageError` for options that only apply when building an index."""
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        own = name in _OF_AN_INDEX or name.removeprefix(SETTING) in flags.ASKED
        if not own and flags.is_set(name):
            raise UsageError(
                f"{parameter.opts[0]} applies only when building an index, but {index} is "
                f"already an index. Omit {parameter.opts[0]}, or pass a graph instead"
            )


def _plan_batch(path: str, options: PlanOptions, limits: flags.ResourceLimits, show: Show) -> None:
    from cocite.search import open_index
    from cocite.search.batch.run import plan_related_all

    k, scratch = options.k, options.scratch
    index = open_index(path, **limits)
    with Stages({"relating": "nodes"}) as stages:
        found = plan_related_all(index, k, scratch=scratch, progress=stages, **options.settings)
    s = "s" * (found.threads > 1)
    shown = {
        "index": f"{path}, {found.nodes:,} nodes",
        "related-all": f"{format_time(found.seconds)} on {found.threads} thread{s}, up to {k} hits "
        "per node",
        "memory": format_size(found.memory),
        "output": f"{found.hits:,} rows, {format_size(found.bytes)} as Parquet",
        "disk": f"{format_size(found.disk)} for temporary files",
        "measured": f"on {found.sampled:,} nodes",
    }
    show(Reply(found, lambda: facts_text(shown)))


def _plan_text(plan: Plan) -> str:
    from cocite.index.plan import links_in_words
    from cocite.measures import find_measure

    settings = settings_text(plan.settings | plan.asked)
    links = links_in_words(find_measure(plan.measure), plan.direction)
    shown = {
        "graph": plan.graph,
        "measure": f"{plan.measure}, {links}, layout {plan.layout}{settings}",
        "memory": plan.room,
    }
    if plan.needs:
        counts = (f"{name} {count:,}" for name, count in plan.needs.items())
        shown["samples"] = "needed for " + ", ".join(counts) + " (Theorems 5 to 7)"
    if plan.planned.delta:
        shown["theorems"] = _PAPER
    columns = [_column(plan.planned, plan.failure)]
    if plan.doubled is not None:
        columns.append(_column(plan.doubled, plan.failure))
    titles = [_title(plan.planned), *([] if plan.doubled is None else [_title(plan.doubled)])]
    figures = [(*(column[text] for column in columns), text) for text in columns[0]]
    return facts_text(shown) + "\n\n" + table_text([*titles, "what"], figures, prose=True)


def _title(figures: Figures) -> str:
    return "index" if figures.samples is None else f"{figures.samples:,} samples"


def _column(figures: Figures, failure: float) -> dict[str, str]:
    from cocite.search.plan import PROMISES

    rows = {"on disk": format_size(figures.bytes), "to build it": format_time(figures.seconds)}
    for score, error in figures.stderr.items():
        rows[f"standard error of a score of {score:g}, at most"] = f"{error:.4f}"
    for name, delta in figures.delta.items():
        promise = PROMISES[name]
        sure = f"{100 * (1 - failure):.4g}%"
        rows[f"{promise.text}: {sure} (Theorem {promise.theorem})"] = f"{delta:.4f}"
    return rows


@click.command()
@click.argument("indexes", metavar="INDEX INDEX...", nargs=-1, required=True)
@flags.store("index")
@click.option(
    "--shard",
    type=click.IntRange(1),
    metavar="SAMPLES",
    help="Number of samples per file.  [default: as for cocite index]",
)
@flags.overwrite("index")
@flags.no_verify
@flags.format
def merge(
    indexes: tuple[str, ...], output: str, shard: int | None, overwrite: bool, show: Show
) -> None:
    """Join indexes of one graph that contain different samples or different nodes.

    Build them on any machines, with "cocite index --sample-range" or, for fusion, ppr-pmi and snn,
    "cocite index --only-range". The result is byte-identical to a single build. Ranges must be
    consecutive, without gaps or overlaps; graph, measure and settings must be the same. Merging
    ranges of nodes reads names from the graph.

    An index that has lost some samples answers from the others. To repair it, build an index of the
    lost samples (cocite verify lists them), and merge the two; with --overwrite, the output may be
    one of them. An interrupted merge leaves nothing behind.
    """
    from cocite.index.merge import open_merge
    from cocite.index.results import MergeDocument

    begin = clock()
    sending = Sending(output, "index", overwrite) if is_url(output) else None
    how: dict[str, Any] = {"overwrite": overwrite, "verify": flags.verifying()}
    how |= {"overwrite": True, "elsewhere": True} if sending else {}
    means = Resources.checked(None, None, shard)
    with open_merge(indexes, sending.path if sending else output, means, **how) as work:
        say(f"{output}: {work.contents}, from {len(indexes)} indexes")
        with Stages({"merging": work.unit}) as stages:
            work.run(lambda done, total: stages("merging", done, total))
        if sending is not None:
            sending.send()
        found = MergeDocument.of(work, clock() - begin, output)
    show(Reply(found, lambda: _merge_text(found)))


def _merge_text(found: MergeDocument) -> str:
    contents = {"nodes": f"{found.nodes:,}"}
    if found.samples is not None and found.first is not None:
        end = found.first + found.samples - 1
        contents = {"samples": f"{found.samples:,}, numbers {found.first} to {end}"}
    return facts_text(
        {
            "index": found.index,
            "merged": ", ".join(found.merged),
            **contents,
            "took": format_time(found.seconds),
            "on disk": format_size(found.bytes),
        }
    )


@click.command(cls=SectionedCommand)
@click.argument("index", metavar="INDEX")
@click.argument("graph", metavar="GRAPH")
@flags.takes(RefreshOptions, "options")
@flags.resources
@flags.cluster(
    "Draw the samples on a cluster. Its nodes must have GRAPH and INDEX at the same paths. GRAPH "
    "may also be a URL, which each node copies."
)
@flags.no_verify
@flags.format
def refresh(
    index: str,
    graph: str,
    options: RefreshOptions,
    limits: flags.ResourceLimits,
    cluster: str | None,
    show: Show,
) -> None:
    """Update INDEX after links or nodes of GRAPH have changed, by drawing some samples again.

    New samples replace the oldest ones; removed nodes are dropped from the other samples. Measure
    and settings do not change. A measure without samples is recomputed. The index answers queries
    during the refresh. To resume an interrupted refresh, repeat the command. An index that is up to
    date does not change. A GRAPH with hardly any nodes of the index is refused.
    """
    from cocite.index.cluster import of_nodes, spread_on
    from cocite.index.refresh import RefreshBuild, graph_with_links
    from cocite.index.results import RefreshDocument

    give_back_at_once()
    url = graph_url(graph)
    stored = Graph.open(graph if url is None else copied(url, "graph"), verify=flags.verifying())
    means = Resources.checked(**limits)
    stored = graph_with_links(index, stored, means, options)
    with ExitStack() as stack:
        spread = stack.enter_context(spread_on(cluster, url, options.staging_url))
        each = of_nodes(spread, means, **limits)
        work = stack.enter_context(
            RefreshBuild(index, stored, each, options, spread=spread, verify=flags.verifying())
        )
        if work.already:
            say(work.already)
        # No pilot runs: they take as long as drawing the few samples of a typical refresh.
        if work.drawn:
            old, new = work.retained, len(work.drawn)
            say(f"{index}: {old:,} samples are kept, {new:,} are drawn from {graph}")
        found = RefreshDocument.of(work, run_build(work), index)
    show(Reply(found, lambda: _refresh_text(found)))


def _refresh_text(found: RefreshDocument) -> str:
    if found.already:
        came = {"redrawn": "nothing: the index is up to date with this graph"}
    elif found.local:
        anew, left = staleness_in_words(found.local)
        came = {"recomputed": anew, "all others": left}
    elif not found.drawn:
        came = {"recomputed": f"everything, from {found.graph}"}
    else:
        drawn = f"{found.drawn:,} samples from {found.graph}"
        came = {"kept": f"{found.kept:,} samples", "redrawn": drawn}
    size = format_size(found.bytes)
    return facts_text(
        {"index": found.index, **came, "took": format_time(found.seconds), "on disk": size}
    )
