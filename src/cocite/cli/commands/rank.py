"""``cocite rank``: the PageRank of every node; hubs and authorities.

``cocite rank --by authorities`` and ``--by hubs``: the scores of HITS.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cocite.cli.console import Stages
from cocite.cli.help import SectionedVerb
from cocite.cli.link_files import (
    bipartite_option,
    cache_option,
    graph_of,
    side_option,
    titles_option,
)
from cocite.cli.options import (
    cluster_option,
    format_option,
    memory_option,
    no_verify_option,
    partition_option,
    safe_csv,
    verifying,
)
from cocite.cli.output import Reply, Show, left_out, narrowed, or_of, say, table_text, with_titles
from cocite.cli.targets import kind_option, to_options
from cocite.io.writers import ARRAYS, TABLES, kinds_of

if TYPE_CHECKING:
    from cocite.io.writers import Target
    from cocite.ranking.figures import HitsDocument, RankDocument
    from cocite.ranking.hits import StoppingRule


def run_hits(
    path: str,
    by: str,
    output: Target | None,
    k: int,
    stop: StoppingRule,
    show: Show,
    *,
    unweighted: bool,
    memory: int | None,
    blocks: int | None,
    **others: Any,
) -> None:
    """Compute them, show the highest, and write both of every node if there is an output."""
    from cocite.graph import Graph
    from cocite.io.writers import write_numbers
    from cocite.ranking import hits, plan_hits
    from cocite.ranking.figures import HitsDocument
    from cocite.resources import Resources

    graph = Graph.open(path, verify=verifying())
    means = Resources.checked(memory=memory, blocks=blocks)
    say(str(plan_hits(graph, means)))
    with Stages({"scoring": "sweeps"}) as stages:
        found = hits(
            graph,
            stop=stop,
            weighted=not unweighted,
            memory=means.memory,
            blocks=blocks,
            progress=lambda done, change: stages("scoring", done, 0),
        )
    if output is not None:
        write_numbers(output, found.names, authority=found.authorities, hub=found.hubs)
    told = HitsDocument.of(graph, found, by, k)
    show(Reply(told, lambda: _hits_text(told)))
    say(f"{found.sweeps} sweeps, {found.reason}: L1 change of the authorities {found.change:.1e}")
    if not found.converged:
        say("not converged: allow more --sweeps, or a larger --tolerance")


def _hits_text(found: HitsDocument) -> str:
    rows = [(str(i), f"{a:.3e}", f"{h:.3e}", node) for i, (node, a, h) in enumerate(found.top, 1)]
    titles = ["place", "authority", "hub", "node"]
    other = "hub" if found.by == "authorities" else "authority"
    titles, shown, left = narrowed(titles, rows, ((other,),), found.titles)
    return table_text(*with_titles(titles, shown, found.titles)) + left_out(left)


# -- rank --------------------------------------------------------------------------------


_PAGERANK_ONLY = (
    "side",
    "cluster",
    "damping",
    "dangling",
    "removals",
    "toward",
    "personalize",
    "precision",
)
"""Options that HITS does not have."""


@click.command(cls=SectionedVerb)
@click.argument("graph", metavar="GRAPH|LINKS")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=f"Where to write all ranks: {or_of(TABLES)} (node, rank), or {or_of(ARRAYS)} (ranks in "
    "the order of the nodes' numbers). --by authorities or hubs: both scores.",
)
@kind_option(kinds_of((*TABLES, *ARRAYS)))
@to_options
@click.option(
    "--by",
    type=click.Choice(["pagerank", "authorities", "hubs"], case_sensitive=False),
    default="pagerank",
    show_default=True,
    help="What to rank by. authorities, hubs: the scores of HITS; good hubs link to good "
    "authorities.",
)
@click.option(
    "-k", type=click.IntRange(1), default=20, show_default=True, help="How many ranks to print."
)
@side_option(
    "Of a bipartite graph print the ranks of this side alone, such as item.  [default: both]"
)
@click.option(
    "--damping",
    type=float,
    default=0.85,
    show_default=True,
    help="The probability that a step follows a link; else it jumps.",
)
@click.option(
    "--dangling",
    type=click.Choice(["spread", "uniform", "remove"], case_sensitive=False),
    default="spread",
    show_default=True,
    help="Nodes without out-links. spread: it goes where jumps go. "
    "uniform: it goes to all nodes alike. remove: such nodes are removed first, --removals N times "
    "(2 unless told).",
)
@click.option(
    "--removals",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    hidden=True,
    help="How often nodes without out-links are removed, with --dangling remove.",
)
@click.option(
    "--toward",
    multiple=True,
    metavar="NODE[=WEIGHT]",
    help="Personalize: jumps go to this node, as often as its weight says, 1 if there is none. "
    "Repeatable.  [default: to any node]",
)
@click.option(
    "--personalization",
    "personalize",
    multiple=True,
    metavar="FILE",
    help="Personalize: jumps go to the nodes in FILE, which has a node and its weight a line, with "
    "a tab between them; or .csv, or Parquet. Repeatable.",
)
@click.option(
    "--tolerance",
    type=float,
    default=1e-8,
    show_default=True,
    help="Stop when the L1 residual, the sum over all nodes, is this small.",
)
@click.option(
    "--sweeps",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="How many sweeps to make at most.",
)
@click.option(
    "--until-top-stable",
    "top_order",
    type=click.IntRange(1),
    metavar="K",
    help="Stop when the order of the top K stands, too, for three sweeps.",
)
@click.option(
    "--precision",
    type=click.Choice(["double", "single"], case_sensitive=False),
    default="double",
    show_default=True,
    help="How to store ranks meanwhile. Sums are always double.",
)
@click.option("--unweighted", is_flag=True, help="Ignore the weights of links.")
@memory_option
@click.option(
    "--blocks",
    type=click.IntRange(1),
    metavar="COUNT",
    help="Keep everything on disk but one of so many blocks, even if it fits; the ranks are the "
    "same.  [default: as --memory needs]",
)
@cluster_option(
    "Of a GRAPH that is stored in blocks (cocite ingest --blocks), where the blocks live. The "
    "ranks are the same."
)
@click.option(
    "--overwrite",
    is_flag=True,
    help="Replace the output file or the table. A symbolic link is refused.",
)
@bipartite_option
@cache_option
@titles_option
@no_verify_option
@format_option
@click.pass_context
def rank(
    context: click.Context,
    /,
    graph: str,
    by: str,
    output: str | None,
    kind: str | None,
    to: str | None,
    append: bool,
    k: int,
    toward: tuple[str, ...],
    personalize: tuple[str, ...],
    tolerance: float,
    sweeps: int,
    top_order: int | None,
    overwrite: bool,
    show: Show,
    no_cache: bool,
    titles: tuple[str, ...],
    side: str | None,
    bipartite: bool,
    **options: Any,
) -> None:
    """Compute PageRank, the share of time a random surfer spends at each node.

    It prints the top K, and how the iteration ended. --output, or --to, also writes the ranks of
    all nodes.
    """
    if by != "pagerank":
        _check_options(context, by)
    from cocite.graph.partitions import is_blocked
    from cocite.io.writers import numbers_types, target_of
    from cocite.ranking import Residual, Sweeps, TopOrder
    from cocite.resources import give_back_at_once

    give_back_at_once()
    types = numbers_types(*(("rank",) if by == "pagerank" else ("authority", "hub")))
    how: dict[str, Any] = {"overwrite": overwrite, "append": append, "safe": safe_csv()}
    target = target_of(output, to, kind=kind, types=types, **how)
    more: dict[str, Any] = {"titles": titles, "bipartite": bipartite}
    if not is_blocked(graph):
        graph = graph_of(graph, no_cache=no_cache, memory=options["memory"], **more)
    stop: StoppingRule = Residual(tolerance) | Sweeps(sweeps)
    if top_order:
        stop = stop | TopOrder(top_order)
    if by != "pagerank":
        run_hits(graph, by, target, k, stop, show, **options)
    else:
        with ExitStack() as stack:
            options["stack"] = stack  # what ranks are shown of is there until they are
            _rank(graph, target, k, side, toward, personalize, stop, show, **options)


def _check_options(context: click.Context, by: str) -> None:
    """Refuse options that HITS does not have."""
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if given and parameter.name in _PAGERANK_ONLY:
            raise click.UsageError(f"{parameter.opts[-1]} does not go with --by {by}")


def _rank(
    graph: str,
    target: Target | None,
    k: int,
    side: str | None,
    toward: tuple[str, ...],
    personalize: tuple[str, ...],
    stop: StoppingRule,
    show: Show,
    *,
    unweighted: bool,
    memory: int | None,
    blocks: int | None,
    cluster: str | None,
    stack: ExitStack,
    **options: Any,
) -> None:
    from cocite.errors import UsageError
    from cocite.graph import Graph
    from cocite.graph.partitions import is_blocked
    from cocite.io.writers import write_numbers
    from cocite.ranking import pagerank, plan_ranks, toward_of
    from cocite.ranking.figures import RankDocument
    from cocite.resources import budget, format_size, own_memory

    limit = budget(memory)
    opened: Graph
    if is_blocked(graph):
        apart = partition_option(graph, cluster, memory, cut=blocks is not None)
        opened, _ = stack.enter_context(apart)
        say(f"its blocks live apart, on {cluster}")
    else:
        if cluster is not None:
            raise UsageError(
                f"{graph} is stored in one piece, which is ranked on one machine: leave --cluster "
                f"out, or cut it: cocite ingest {graph} -o DIR --blocks N"
            )
        opened = Graph.open(graph, verify=verifying())
        weighted = opened.in_weights is not None and not unweighted
        room = plan_ranks(opened, limit, weighted, blocks)
        writing = target.memory if target else 0
        later = f"; {format_size(writing + own_memory())} while the table is written"
        say(str(room) + later * (writing > room.memory))
    with Stages({"ranking": "sweeps"}) as stages:
        found = pagerank(
            opened,
            personalization=toward_of(opened, toward, personalize),
            stop=stop,
            weighted=not unweighted,
            memory=limit,
            blocks=blocks,
            progress=lambda done, residual: stages("ranking", done, 0),
            **options,
        )
    if target is not None:
        write_numbers(target, found.names, rank=found.values)
    told, ended = RankDocument.of(opened, found, k, side), found.convergence
    show(Reply(told, lambda: _ranks_text(told)))
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
        say("not converged: allow more --sweeps, or a larger --tolerance")


def _ranks_text(found: RankDocument) -> str:
    rows = [(str(i), f"{value:.3e}", node) for i, (node, value) in enumerate(found.top, 1)]
    return table_text(*with_titles(["place", "rank", "node"], rows, found.titles))
