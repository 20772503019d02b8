"""``cocite rank``: the PageRank of every node; hubs and authorities.

``cocite rank --score authorities`` and ``--score hubs``: the scores of HITS.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cocite.cli.console import Stages
from cocite.cli.help import SectionedCommand
from cocite.cli.link_files import graph_of
from cocite.cli.options import (
    Command,
    cluster_option,
    flag_of,
    format_option,
    memory_option,
    no_verify_option,
    partition_option,
    takes,
    target_for,
    verifying,
)
from cocite.cli.output import Reply, Show, left_out, narrowed, or_of, say, table_text, with_titles
from cocite.io.writers import ARRAYS, TABLES, kinds_of
from cocite.options.common import OutputOptions
from cocite.options.rank import RankOptions
from cocite.options.source import SourceOptions

if TYPE_CHECKING:
    from cocite.graph import Graph
    from cocite.io.writers import Target
    from cocite.ranking.figures import HitsDocument, RankDocument


class _Toward(NamedTuple):
    """Where jumps go: to nodes, each with ``=WEIGHT`` or without, and to those of files."""

    nodes: tuple[str, ...]
    files: tuple[str, ...]


class _How(NamedTuple):
    """Where ranks go, how much memory they take, and by which cluster, if any."""

    target: Target | None
    show: Show
    memory: int | None
    cluster: str | None
    toward: _Toward


_PAGERANK_ONLY = ("side", "damping", "dangling", "removals", "precision")
"""Options that HITS does not have."""


def _personalized(command: Command) -> Command:
    """Give a command ``--toward`` and ``--personalization``; it gets both as ``toward``."""

    @wraps(command)
    def call(*args: Any, toward: tuple[str, ...], files: tuple[str, ...], **others: Any) -> Any:
        return command(*args, toward=_Toward(toward, files), **others)

    files = click.option(
        "--personalization",
        "files",
        multiple=True,
        metavar="FILE",
        help="Personalize: jumps go to the nodes in FILE, which has a node and its weight a line, "
        "with a tab between them; or .csv, or Parquet. Repeatable.",
    )
    nodes = click.option(
        "--toward",
        multiple=True,
        metavar="NODE[=WEIGHT]",
        help="Personalize: jumps go to this node, as often as its weight says, 1 if there is none. "
        "Repeatable.  [default: to any node]",
    )
    return nodes(files(call))


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|LINKS")
@takes(
    OutputOptions,
    "output",
    output={
        "text": f"Where to write all ranks: {or_of(TABLES)} (node, rank), or {or_of(ARRAYS)} "
        "(ranks in the order of the nodes' numbers). --score authorities or hubs: both scores."
    },
    output_format={"choices": kinds_of((*TABLES, *ARRAYS))},
)
@takes(RankOptions, "options")
@_personalized
@memory_option
@cluster_option(
    "Of a GRAPH that is stored in blocks (cocite ingest --partitions), where the blocks live. The "
    "ranks are the same."
)
@takes(SourceOptions, "source")
@no_verify_option
@format_option
def rank(
    graph: str,
    options: RankOptions,
    toward: _Toward,
    memory: int | None,
    cluster: str | None,
    output: OutputOptions,
    source: SourceOptions,
    show: Show,
) -> None:
    """Compute PageRank, the share of time a random surfer spends at each node.

    It prints the top K, and how the iteration ended. --output, or --to, also writes the ranks of
    all nodes.
    """
    from cocite.graph import Graph
    from cocite.graph.partitions import is_blocked
    from cocite.io.writers import numbers_types
    from cocite.resources import give_back_at_once

    by_links = options.score == "pagerank"
    if not by_links:
        _check_hits(options, toward, cluster)
    give_back_at_once()
    types = numbers_types(*(("rank",) if by_links else ("authority", "hub")))
    target = target_for(output, types)
    if not is_blocked(graph):
        graph = graph_of(graph, source, memory=memory)
    how = _How(target, show, memory, cluster, toward)
    if by_links:
        with ExitStack() as stack:  # what ranks are shown of is there until they are
            _rank(graph, options, how, stack)
    else:
        _hits(Graph.open(graph, verify=verifying()), options, how)


def _check_hits(options: RankOptions, toward: _Toward, cluster: str | None) -> None:
    """Refuse options that HITS does not have."""
    changed = options.changed()
    given = [flag_of(name, RankOptions) for name in _PAGERANK_ONLY if name in changed]
    given += ["--toward"] if toward.nodes else []
    given += ["--personalization"] if toward.files else []
    given += ["--cluster"] if cluster is not None else []
    for flag in given:
        raise click.UsageError(f"{flag} does not go with --score {options.score}")


def _hits(graph: Graph, options: RankOptions, how: _How) -> None:
    """Compute hubs and authorities, show the highest, and write both of every node if asked."""
    from cocite.io.writers import write_numbers
    from cocite.ranking import hits, plan_hits
    from cocite.ranking.figures import HitsDocument
    from cocite.resources import Resources

    say(str(plan_hits(graph, Resources.checked(memory=how.memory, blocks=options.blocks))))
    with Stages({"scoring": "sweeps"}) as stages:
        found = hits(
            graph,
            memory=how.memory,
            progress=lambda done, change: stages("scoring", done, 0),
            options=replace(options, score="pagerank", k=20),
        )
    if how.target is not None:
        write_numbers(how.target, found.names, authority=found.authorities, hub=found.hubs)
    result = HitsDocument.of(graph, found, options.score, options.k)
    how.show(Reply(result, lambda: _hits_text(result)))
    say(f"{found.sweeps} sweeps, {found.reason}: L1 change of the authorities {found.change:.1e}")
    if not found.converged:
        say("not converged: allow more --max-sweeps, or a larger --tolerance")


def _hits_text(found: HitsDocument) -> str:
    rows = [(str(i), f"{a:.3e}", f"{h:.3e}", node) for i, (node, a, h) in enumerate(found.top, 1)]
    titles = ["place", "authority", "hub", "node"]
    other = "hub" if found.by == "authorities" else "authority"
    titles, shown, left = narrowed(titles, rows, ((other,),), found.titles)
    return table_text(*with_titles(titles, shown, found.titles)) + left_out(left)


def _rank(path: str, options: RankOptions, how: _How, stack: ExitStack) -> None:
    """Compute ranks, show the highest, and write all of them if asked."""
    from cocite.io.writers import write_numbers
    from cocite.ranking import pagerank, toward_of
    from cocite.ranking.figures import RankDocument
    from cocite.resources import budget, format_size

    limit = budget(how.memory)
    graph = _opened(path, options, how, stack, limit)
    with Stages({"ranking": "sweeps"}) as stages:
        found = pagerank(
            graph,
            personalization=toward_of(graph, *how.toward),
            memory=limit,
            progress=lambda done, residual: stages("ranking", done, 0),
            options=options,
        )
    if how.target is not None:
        write_numbers(how.target, found.names, rank=found.values)
    result, ended = RankDocument.of(graph, found, options.k, options.side), found.convergence
    how.show(Reply(result, lambda: _ranks_text(result)))
    if found.weighted:
        say("links count by their weights")
    if found.sent is not None:
        each = format_size(found.sent // max(1, ended.sweeps))
        say(f"blocks sent each other {format_size(found.sent)} of values, {each} a sweep")
    removed = f", {found.removed:,} dangling nodes removed" if found.removed else ""
    say(
        f"{ended.sweeps} sweeps, {ended.reason}: L1 residual {ended.residual:.1e}, "
        f"L1 error at most {ended.error_bound:.1e}{removed}"
    )
    if not ended.converged:
        say("not converged: allow more --max-sweeps, or a larger --tolerance")


def _opened(path: str, options: RankOptions, how: _How, stack: ExitStack, limit: int) -> Graph:
    """Open the graph, on a cluster if it is stored in blocks, and say what ranks will take."""
    from cocite.errors import UsageError
    from cocite.graph import Graph
    from cocite.graph.partitions import is_blocked
    from cocite.ranking import plan_ranks
    from cocite.resources import format_size, own_memory

    if is_blocked(path):
        cut = options.blocks is not None
        graph, _ = stack.enter_context(partition_option(path, how.cluster, how.memory, cut=cut))
        say(f"its blocks live apart, on {how.cluster}")
        return graph
    if how.cluster is not None:
        raise UsageError(
            f"{path} is stored in one piece, which is ranked on one machine: leave --cluster "
            f"out, or cut it: cocite ingest {path} -o DIR --partitions N"
        )
    opened = Graph.open(path, verify=verifying())
    weighted = opened.in_weights is not None and options.weighted
    room = plan_ranks(opened, limit, weighted, options.blocks)
    writing = how.target.memory if how.target else 0
    later = f"; {format_size(writing + own_memory())} while the table is written"
    say(str(room) + later * (writing > room.memory))
    return opened


def _ranks_text(found: RankDocument) -> str:
    rows = [(str(i), f"{value:.3e}", node) for i, (node, value) in enumerate(found.top, 1)]
    return table_text(*with_titles(["place", "rank", "node"], rows, found.titles))
