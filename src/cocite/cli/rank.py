"""``cocite rank``: the PageRank of every node; a study of how it converges, how it changes with the
personalisation; hubs and authorities.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from cocite.cli.against import run_against
from cocite.cli.apart import blocks_apart
from cocite.cli.hits import run_hits
from cocite.cli.links import (
    bipartite_option,
    cache_option,
    graph_of,
    side_option,
    titles_option,
)
from cocite.cli.options import (
    SectionedVerb,
    cluster_option,
    format_option,
    memory_option,
    no_verify_option,
    safe_csv,
    verifying,
)
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.study import run_study, study_options
from cocite.cli.targets import kind_option, to_options
from cocite.cli.text import or_of, say, table_text
from cocite.cli.wide import with_titles
from cocite.graph.writers import ARRAYS, TABLES, kinds_of

if TYPE_CHECKING:
    from cocite.graph.writers import Target
    from cocite.ranking import StoppingRule
    from cocite.ranking.documents import RankDocument

__all__ = ["rank"]

_PAGERANK, _HITS, _STUDY, _AGAINST = "PageRank", "--by", "--study", "--against"
_HEEDED = {
    "k": (_PAGERANK, _HITS),
    "top_order": (_PAGERANK, _HITS),
    "precision": (_PAGERANK, _AGAINST),
    "study": (_STUDY,),
    "against": (_AGAINST,),
}
_WRITTEN = ("output", "kind", "to", "append")
_HEEDED |= dict.fromkeys(("side", "cluster"), (_PAGERANK,))
_HEEDED |= dict.fromkeys(("tolerance", "sweeps", *_WRITTEN), (_PAGERANK, _HITS, _AGAINST))
_HEEDED |= dict.fromkeys(
    ("damping", "dangling", "removals", "toward", "personalise"), (_PAGERANK, _STUDY, _AGAINST)
)
_HEEDED |= dict.fromkeys(("compared", "reference", "no_plots"), (_STUDY,))
_QUERIES = ("query_nodes", "query_words", "query_texts")
_HEEDED |= dict.fromkeys(("top", "bucket", *_QUERIES), (_STUDY, _AGAINST))
"""Options -> the ways of ranking that heed them; others are heeded by all."""
_COMPARING = ("top", "bucket", *_QUERIES, "unweighted")
_RANKING = ("damping", "dangling", "removals", "precision", "memory", "blocks")


@click.command(cls=SectionedVerb)
@click.argument("graph", metavar="GRAPH|LINKS")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=f"Where to write all ranks: {or_of(TABLES)} (node, rank), or {or_of(ARRAYS)} (ranks in "
    "the order of the nodes' numbers). --by authorities or hubs: both; --against: both ranks.",
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
    help="Personalise: jumps go to this node, as often as its weight says, 1 if there is none. "
    "Repeatable.  [default: to any node]",
)
@click.option(
    "--personalise",
    multiple=True,
    metavar="FILE",
    help="Personalise: jumps go to the nodes in FILE, which has a node and its weight a line, with "
    "a tab between them; or .csv, or Parquet. Repeatable.",
)
@click.option(
    "--against",
    metavar="FILE",
    help="Compare with the order by another personalisation, that in FILE.",
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
    "--top-order",
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
    help="Replace the output file, the table, or the study. A symbolic link is refused.",
)
@bipartite_option
@cache_option
@titles_option
@no_verify_option
@format_option
@study_options
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
    personalise: tuple[str, ...],
    against: str | None,
    tolerance: float,
    sweeps: int,
    top_order: int | None,
    overwrite: bool,
    show: Show,
    study: str | None,
    no_cache: bool,
    titles: tuple[str, ...],
    side: str | None,
    bipartite: bool,
    **options: Any,
) -> None:
    """Compute PageRank, the share of time a random surfer spends at each node.

    It prints the top K, and how the iteration ended. --output, or --to, also writes the ranks of
    all nodes. --study does something else: it writes how the residual and the order of the nodes
    converge, sweep by sweep. --against tells how the order changes with the personalisation.
    """
    _check_options(context.params, context)
    from cocite.graph.in_blocks import is_blocked
    from cocite.graph.writers import numbers_types, target_of
    from cocite.memory import give_back_at_once
    from cocite.ranking import Residual, Sweeps, TopOrder

    give_back_at_once()
    types = numbers_types(*_columns(by, against))
    how: dict[str, Any] = {"overwrite": overwrite, "append": append, "safe": safe_csv()}
    target = target_of(output, to, kind=kind, types=types, **how)
    more: dict[str, Any] = {"titles": titles, "bipartite": bipartite}
    if not is_blocked(graph):
        graph = graph_of(graph, no_cache=no_cache, memory=options["memory"], **more)
    if study is not None:
        show(run_study(graph, study, toward, personalise, overwrite, **options))
        return
    stop: StoppingRule = Residual(tolerance) | Sweeps(sweeps)
    if top_order:
        stop = stop | TopOrder(top_order)
    if by != "pagerank":
        run_hits(graph, by, target, k, stop, show, **options)
    elif against is not None:
        options = {name: options[name] for name in (*_RANKING, *_COMPARING)}
        run_against(graph, against, target, toward, personalise, stop, show, **options)
    else:
        options = {name: options[name] for name in (*_RANKING, "unweighted", "cluster")}
        with ExitStack() as stack:
            options["stack"] = stack  # what ranks are shown of is there until they are
            _rank(graph, target, k, side, toward, personalise, stop, show, **options)


def _columns(by: str, against: str | None) -> tuple[str, ...]:
    """What is written of every node."""
    if by != "pagerank":
        return "authority", "hub"
    return ("rank",) if against is None else ("rank", "against")


def _check_options(chosen: dict[str, Any], context: click.Context) -> None:
    """Refuse options that the way chosen does not heed."""
    way = _PAGERANK
    if chosen["by"] != "pagerank":
        way, said = _HITS, f"--by {chosen['by']}"
    elif chosen["study"] is not None:
        way = said = _STUDY
    elif chosen["against"] is not None:
        way = said = _AGAINST
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        heeded = _HEEDED.get(name, (way,))
        if given and way not in heeded:
            needed = {_STUDY: "--study DIR", _AGAINST: "--against FILE"}
            why = (
                f"needs {or_of([needed[other] for other in heeded])}"
                if way == _PAGERANK
                else f"does not go with {said}"
            )
            raise click.UsageError(f"{parameter.opts[-1]} {why}")


def _rank(
    graph: str,
    target: Target | None,
    k: int,
    side: str | None,
    toward: tuple[str, ...],
    personalise: tuple[str, ...],
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
    from cocite.graph.in_blocks import is_blocked
    from cocite.graph.writers import write_numbers
    from cocite.memory import budget, format_size, own_memory
    from cocite.ranking import pagerank, plan_ranks, toward_of
    from cocite.ranking.documents import RankDocument

    limit = budget(memory)
    opened: Graph
    if is_blocked(graph):
        apart = blocks_apart(graph, cluster, memory, cut=blocks is not None)
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
            personalization=toward_of(opened, toward, personalise),
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
    show(Reply(told, lambda: _text(told)))
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


def _text(found: RankDocument) -> str:
    rows = [(str(i), f"{value:.3e}", node) for i, (node, value) in enumerate(found.top, 1)]
    return table_text(*with_titles(["place", "rank", "node"], rows, found.titles))
