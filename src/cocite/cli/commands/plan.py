"""``cocite plan``: estimate the cost and accuracy of an index before building it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from cocite.cli.console import Stages
from cocite.cli.help import SETTING, SectionedCommand
from cocite.cli.inputs import graph_of
from cocite.cli.options import ASKED, EVERY, format_option, is_set, resource_options, takes
from cocite.cli.output import Reply, Show, facts_text, settings_text, table_text
from cocite.errors import UsageError
from cocite.options.build import PlanOptions
from cocite.options.common import SourceOptions
from cocite.resources import format_size, format_time
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.search.plan import Figures, Plan


_PAPER = "of Fogaras and Rácz, Scaling link-based similarity search (2005)"


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|INDEX|LINKS")
@takes(PlanOptions, "options", settings=EVERY)
@resource_options
@takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@format_option
def plan(
    graph: str,
    options: PlanOptions,
    memory: int | None,
    threads: int | None,
    source: SourceOptions,
    show: Show,
) -> None:
    """Estimate the cost and accuracy of an index of a stored GRAPH or of LINKS.

    It draws a few samples, deletes them, and extrapolates the size, memory and time of the whole
    index. Set the number of samples with --samples, --delta, --disk or --time. A second column
    is for twice as many samples.

    For an INDEX, it estimates the time, memory and output size of related-all.
    """
    from cocite.search.plan import plan_index

    if kind_of(graph) == "index":
        _refuse_building(graph)
        _plan_batch(graph, options, threads, memory, show)
        return
    if is_set("k"):
        raise UsageError(f"-k is for related-all of an index, and {graph} is not an index: omit it")
    graph = graph_of(graph, source, memory=memory, threads=threads)
    settings = dict(options.settings)
    chosen = replace(options, samples=settings.pop("samples", None), settings=settings)
    found = plan_index(graph, threads=threads, memory=memory, options=chosen)
    show(Reply(found, lambda: _text(found)))


_OF_AN_INDEX = ("graph", "k", "threads", "memory", "scratch", "show")


def _refuse_building(index: str) -> None:
    """Raise :class:`UsageError` for options that only apply when building an index."""
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        own = name in _OF_AN_INDEX or name.removeprefix(SETTING) in ASKED
        if not own and is_set(name):
            raise UsageError(
                f"{parameter.opts[0]} is for building an index, and {index} is one already: omit "
                "it, or give the graph"
            )


def _plan_batch(
    path: str,
    options: PlanOptions,
    threads: int | None,
    memory: int | None,
    show: Show,
) -> None:
    from cocite.search import open_index
    from cocite.search.batch.run import plan_related_all

    k, scratch = options.k, options.scratch
    index = open_index(path, threads=threads, memory=memory)
    with Stages({"relating": "nodes"}) as stages:
        found = plan_related_all(index, k, scratch=scratch, progress=stages, **options.settings)
    s = "s" * (found.threads > 1)
    shown = {
        "index": f"{path}, {found.nodes:,} nodes",
        "related-all": f"{format_time(found.seconds)} on {found.threads} thread{s}, up to {k} hits "
        "per node",
        "memory": format_size(found.memory),
        "output": f"{found.hits:,} rows, {format_size(found.bytes)} as Parquet",
        "disk": f"{format_size(found.disk)} meanwhile",
        "measured": f"on {found.sampled:,} nodes",
    }
    show(Reply(found, lambda: facts_text(shown)))


def _text(plan: Plan) -> str:
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
