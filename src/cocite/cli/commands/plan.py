"""``cocite plan``: what an index will take and give, before it is built."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cocite.cli.console import Stages
from cocite.cli.help import SectionedVerb
from cocite.cli.link_files import bipartite_option, cache_option, graph_of
from cocite.cli.options import (
    format_option,
    keep_options,
    names_in,
    resource_options,
    texts_options,
)
from cocite.cli.output import Reply, Show, facts_text, settings_text, table_text
from cocite.cli.settings import all_options, chosen_settings, measure_options
from cocite.errors import UsageError
from cocite.resources import format_size, format_time
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.search.plan.plan import Figures, Plan


_PAPER = "of Fogaras and Rácz, Scaling link-based similarity search (2005)"
"""Whose theorems tell how exact samples are."""


@click.command(cls=SectionedVerb)
@click.argument("graph", metavar="GRAPH|INDEX|LINKS")
@measure_options
@click.option(
    "--delta",
    type=float,
    help="Take samples enough to tell scores apart, which differ by so much, such as 0.05.",
)
@click.option(
    "--disk", metavar="SIZE", help="Take as many samples as fit into so much disk, such as 5GB."
)
@click.option(
    "--time",
    metavar="TIME",
    help="Take as many samples as can be made in that time: 90s, 10min or 2h.",
)
@click.option(
    "--failure",
    type=float,
    default=0.01,
    show_default=True,
    help="The probability that a promise is not kept.",
)
@click.option(
    "--guarantee",
    "promise",
    metavar="[error|order|recall|precision]",
    help="What --delta promises. error: a score is off by no more than it. order: two nodes whose "
    "scores differ by it stand in the right order. recall: nodes whose scores are that far above "
    "a threshold are listed. precision: nodes whose scores are that far below it are not.  "
    "[default: all of them]",
)
@click.option(
    "--listed",
    type=int,
    metavar="COUNT",
    help="How many nodes a list is to find: its precision depends on them.  [default: 10]",
)
@all_options
@texts_options
@keep_options
@click.option(
    "--unweighted",
    is_flag=True,
    help="Ignore the weights of links.  [default: use them, if there are any]",
)
@resource_options
@click.option(
    "--scratch",
    metavar="DIR",
    help="The directory for scratch files.  [default: the system's directory for temporary files]",
)
@click.option(
    "-k",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many hits related-all writes a node; of an INDEX only.",
)
@bipartite_option
@cache_option
@format_option
@click.pass_context
def plan(
    context: click.Context,
    /,
    graph: str,
    measure: str,
    direction: str | None,
    layout: str | None,
    delta: float | None,
    disk: str | None,
    time: str | None,
    failure: float,
    promise: str | None,
    listed: int | None,
    unweighted: bool,
    memory: int | None,
    threads: int | None,
    scratch: str | None,
    keep: Path | None,
    keep_prefix: tuple[str, ...],
    texts: Path | None,
    texts_share: float | None,
    k: int,
    bipartite: bool,
    no_cache: bool,
    show: Show,
    **settings: object,
) -> None:
    """Tell what an index of the stored GRAPH, or of a file of LINKS, takes and how exact it is.

    It makes a few samples and removes them, and estimates size, memory and time of the whole index
    from them. Choose the number of samples by one of --samples, --delta, --disk and --time. A
    second column shows twice as many samples.

    For an INDEX it estimates the time, memory and output size of related-all.
    """
    from cocite.search.plan.plan import plan_index

    if kind_of(graph) == "index":
        _check_inputs(context, graph)
        _plan_batch(graph, k, threads, memory, scratch, chosen_settings(settings), show)
        return
    if context.get_parameter_source("k") is not ParameterSource.DEFAULT:
        raise UsageError(f"-k is of related-all; {graph} is no index: leave it out")
    more: dict[str, Any] = {"memory": memory, "threads": threads, "bipartite": bipartite}
    graph = graph_of(graph, no_cache=no_cache, **more)
    found = plan_index(
        graph,
        measure=measure,
        direction=direction,
        layout=layout,
        threads=threads,
        memory=memory,
        unweighted=unweighted,
        keep=None if keep is None else names_in(keep),
        keep_prefix=keep_prefix or None,
        texts=texts,
        texts_share=texts_share,
        delta=delta,
        disk=disk,
        time=time,
        failure=failure,
        promise=promise,
        listed=listed,
        scratch=scratch,
        **chosen_settings(settings),
    )
    show(Reply(found, lambda: _text(found)))


_OF_AN_INDEX = ("graph", "k", "threads", "memory", "scratch", "show")


def _check_inputs(context: click.Context, index: str) -> None:
    """Raise :class:`UsageError` for an option of an index that is yet to be built."""
    from cocite.measures import MEASURES

    asked = {setting.name for measure in MEASURES.values() for setting in measure.ask}
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is ParameterSource.DEFAULT or name in _OF_AN_INDEX:
            continue
        if name.removeprefix("setting_") not in asked:
            raise UsageError(
                f"{parameter.opts[0]} is of an index that is yet to be built, and {index} is one: "
                "leave it out, or give the graph"
            )


def _plan_batch(
    path: str,
    k: int,
    threads: int | None,
    memory: int | None,
    scratch: str | None,
    settings: dict[str, Any],
    show: Show,
) -> None:
    from cocite.search import open_index
    from cocite.search.plan.related_all import plan_related_all

    index = open_index(path, threads=threads, memory=memory)
    with Stages({"relating": "nodes"}) as stages:
        found = plan_related_all(index, k, scratch=scratch, progress=stages, **settings)
    s = "s" * (found.threads > 1)
    shown = {
        "index": f"{path}, {found.nodes:,} nodes",
        "related-all": f"{format_time(found.seconds)} on {found.threads} thread{s}, up to {k} hits "
        "a node",
        "memory": f"{format_size(found.memory)}, beside the index's {format_size(found.index)}",
        "output": f"{found.hits:,} rows, {format_size(found.bytes)} as Parquet",
        "disk": f"{format_size(found.disk)} while it is made",
        "measured": f"on {found.sampled:,} nodes",
    }
    show(Reply(found, lambda: facts_text(shown)))


def _text(plan: Plan) -> str:
    """The plan in a sentence, then its figures beside those of twice the samples."""
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
    """What a row says -> its figure."""
    from cocite.search.plan.plan import PROMISES

    rows = {
        "on disk": format_size(figures.bytes),
        "to build it": format_time(figures.seconds),
    }
    for score, error in figures.stderr.items():
        rows[f"standard error of a score of {score:g}, at most"] = f"{error:.4f}"
    for name, delta in figures.delta.items():
        promise = PROMISES[name]
        sure = f"{100 * (1 - failure):.4g} %"
        rows[f"{promise.text}: {sure} (Theorem {promise.theorem})"] = f"{delta:.4f}"
    return rows
