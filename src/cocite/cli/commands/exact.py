"""``cocite rank``: each node's PageRank or, with ``--score``, hub and authority scores (HITS).
``cocite all-pairs``: the similarity of all pairs of nodes.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from cocite.cli import flags
from cocite.cli.console import Stages, say
from cocite.cli.help import SectionedCommand
from cocite.cli.inputs import graph_of
from cocite.cli.output import Reply, Show, facts_text, names_text, or_of
from cocite.errors import ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.partitions import is_blocked
from cocite.io.writers import ARRAYS, TABLES, kinds_of, numbers_types, write_numbers
from cocite.options import DIRECTIONS
from cocite.options.all_pairs import AllPairsOptions
from cocite.options.common import OutputOptions, SourceOptions
from cocite.options.rank import RankOptions
from cocite.resources import (
    Resources,
    format_least,
    format_size,
    format_total,
    give_back_at_once,
    short_of,
)

if TYPE_CHECKING:
    from cocite.allpairs.run import ExactDocument
    from cocite.io.writers import Target
    from cocite.ranking.figures import HitsDocument, RankDocument


_UNCONVERGED = "not converged: increase --max-sweeps or --tolerance"


class _RankRequest(NamedTuple):
    options: RankOptions
    target: Target | None
    limits: flags.ResourceLimits
    cluster: str | None


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|LINKS")
@flags.outputs(
    f"Where to write all ranks: {or_of(TABLES)} (node, rank), or {or_of(ARRAYS)} (ranks in the "
    "order of node ids). With --score authorities or hubs: both scores. With --trust: also trust "
    "and spam_mass.",
    kinds_of((*TABLES, *ARRAYS)),
)
@flags.takes(RankOptions, "options")
@flags.resources
@flags.cluster(
    "The cluster that holds the blocks of a partitioned GRAPH (cocite ingest --partitions). The "
    "ranks are the same as on one machine."
)
@flags.takes(SourceOptions, "source")
@flags.no_verify
@flags.format
def rank(
    graph: str,
    options: RankOptions,
    limits: flags.ResourceLimits,
    cluster: str | None,
    output: OutputOptions,
    source: SourceOptions,
    show: Show,
) -> None:
    """Compute PageRank, the share of time that a random surfer spends at each node.

    Print the top K nodes and how the iteration ended. --output and --to write all ranks.
    """
    from cocite.ranking.pagerank import rank_columns

    links = options.score == "pagerank"
    if not links:
        changed = options.changed().keys()
        own = (
            *("side", "damping", "dangling", "removals"),
            *("precision", "toward", "personalization", "start"),
            *("trust", "good_fraction"),
        )
        given = [flags.flag_of(name, RankOptions) for name in own if name in changed]
        for flag in (*given, *(["--cluster"] if cluster else [])):
            raise click.UsageError(f"{flag} does not apply to --score {options.score}")
    give_back_at_once()
    columns = rank_columns(options.trust is not None) if links else ("authority", "hub")
    target = flags.target_for(output, numbers_types(*columns))
    if not is_blocked(graph):
        graph = graph_of(graph, source, **limits)
    asked = _RankRequest(options, target, limits, cluster)
    with ExitStack() as stack:  # keeps the graph open until ranks are shown
        (_rank if links else _hits)(graph, asked, show, stack)


def _hits(path: str, asked: _RankRequest, show: Show, stack: ExitStack) -> None:
    from cocite.ranking import hits, plan_hits
    from cocite.ranking.figures import HitsDocument

    graph, options = Graph.open(path, verify=flags.verifying()), asked.options
    means = Resources.checked(**asked.limits, blocks=options.blocks)
    _check_writing(asked, means.memory)
    say(str(plan_hits(graph, means)))
    with Stages({"scoring": "sweeps"}) as stages:
        found = hits(
            graph,
            threads=means.threads,
            memory=means.total,
            progress=lambda done, change: stages("scoring", done, 0),
            options=replace(options, score="pagerank", k=20),
        )
    if asked.target is not None:
        write_numbers(asked.target, found.names, authority=found.authorities, hub=found.hubs)
    result = HitsDocument.of(graph, found, options.score, options.k)
    show(Reply(result, lambda: _hits_text(result)))
    say(f"{found.sweeps} sweeps, {found.reason}: L1 change of the authorities {found.change:.1e}")
    if not found.converged:
        say(_UNCONVERGED)


def _hits_text(found: HitsDocument) -> str:
    rows = [(str(i), f"{a:.3e}", f"{h:.3e}", node) for i, (node, a, h) in enumerate(found.top, 1)]
    other = "hub" if found.by == "authorities" else "authority"
    return names_text(["place", "authority", "hub", "node"], rows, found.titles, ((other,),))


def _rank(path: str, asked: _RankRequest, show: Show, stack: ExitStack) -> None:
    from cocite.ranking import pagerank, toward_of
    from cocite.ranking.figures import RankDocument

    means, options = Resources.checked(**asked.limits), asked.options
    graph = _opened(path, asked, stack, means.memory)
    with Stages({"ranking": "sweeps"}) as stages:
        found = pagerank(
            graph,
            personalization=toward_of(graph, options.toward, options.personalization),
            threads=means.threads,
            memory=means.total,
            progress=lambda done, residual: stages("ranking", done, 0),
            options=options,
        )
    if asked.target is not None:
        write_numbers(asked.target, found.names, **found._numbers())
    result, ended = RankDocument.of(graph, found, options.k, options.side), found.convergence
    show(Reply(result, lambda: _ranks_text(result)))
    if found.weighted:
        say("links are weighted")
    if found.started is not None:
        say(f"started from the ranks of {found.started:,} of {found.values.size:,} nodes")
    if found.sent is not None:
        each = format_size(found.sent // max(1, ended.sweeps))
        say(f"blocks exchanged {format_size(found.sent)} of values, {each} per sweep")
    removed = f", {found.removed:,} dangling nodes removed" if found.removed else ""
    say(
        f"{ended.sweeps} sweeps, {ended.reason}: L1 residual {ended.residual:.1e}, "
        f"L1 error at most {ended.error_bound:.1e}{removed}"
    )
    if not ended.converged:
        say(_UNCONVERGED)


def _check_writing(asked: _RankRequest, limit: int) -> int:
    """Return the memory for writing; raises :class:`ResourceError` if it exceeds the limit."""
    writing = asked.target.memory if asked.target else 0
    if writing > limit:
        raise ResourceError(
            f"writing a table needs {format_least(writing)} of memory; {short_of(limit)}, or "
            "write an array (.npy)"
        )
    return writing


def _opened(path: str, asked: _RankRequest, stack: ExitStack, limit: int) -> Graph:
    """Open the graph, on a cluster if partitioned, and print the expected cost."""
    from cocite.ranking import plan_ranks

    blocks = asked.options.blocks
    if is_blocked(path):
        memory, cut = asked.limits["memory"], blocks is not None
        graph, _ = stack.enter_context(flags.open_partitions(path, asked.cluster, memory, cut=cut))
        say(f"the blocks of the graph are distributed over {asked.cluster}")
        return graph
    if asked.cluster is not None:
        raise UsageError(
            f"{path} is not partitioned, so it is ranked on one machine. Omit --cluster, or "
            f"partition the graph: cocite ingest {path} -o DIR --partitions N"
        )
    opened = Graph.open(path, verify=flags.verifying())
    weighted = opened.in_weights is not None and asked.options.weighted
    plan = plan_ranks(opened, limit, weighted, blocks, asked.options.trust is not None)
    writing = _check_writing(asked, limit)
    later = f"; {format_total(writing)} while the table is written"
    say(str(plan) + later * (writing > plan.memory))
    return opened


def _ranks_text(found: RankDocument) -> str:
    rows = []
    for i, (node, value, *trusted) in enumerate(found.top, 1):
        shown = [f"{trust:.3e}" for trust in trusted[:1]] + [f"{mass:.3f}" for mass in trusted[1:]]
        rows.append((str(i), f"{value:.3e}", *shown, node))
    titles = [title.replace("_", " ") for title in found.columns[1:]]
    return names_text(["place", *titles, "node"], rows, found.titles)


@click.command(cls=SectionedCommand)
@click.argument("graph", metavar="GRAPH|LINKS")
@flags.outputs(
    f"Where to write: {or_of(TABLES)} (node, other, score), or {or_of(ARRAYS)} (the whole matrix, "
    "in the order of node ids).",
    kinds_of((*TABLES, *ARRAYS)),
)
@flags.takes(AllPairsOptions, "options")
@flags.resources
@flags.takes(SourceOptions, "source", only=("bipartite", "no_cache"))
@flags.no_verify
@flags.format
def all_pairs(
    graph: str,
    output: OutputOptions,
    options: AllPairsOptions,
    limits: flags.ResourceLimits,
    source: SourceOptions,
    show: Show,
) -> None:
    """Compute the SimRank of all pairs of nodes, to a stated accuracy.

    It first prints the memory that the run needs. A table has each pair of different nodes once;
    for a bipartite graph, only pairs within one side. Nothing is written if the run diverges, or if
    scores may be off by 1 or more because --rank is too low.
    """
    from cocite.allpairs import AllPairs
    from cocite.allpairs.run import ExactDocument
    from cocite.allpairs.scores import PAIR_TYPES

    target = flags.target_for(output, PAIR_TYPES)
    if target is None:
        raise click.UsageError("an output is required: pass --output or --to")
    path = graph_of(graph, source, **limits)
    stored = Graph.open(path, verify=flags.verifying())
    run = AllPairs(stored, options, **limits)
    say(f"{graph}: {run.estimate()}")
    with Stages({"sweeping": "sweeps", "writing": "nodes"}) as stages:
        found = run.run(lambda done, error: stages("sweeping", done, 0, f"error {error:.0e}"))
        found.write_target(
            target,
            least=options.min_score,
            top=options.top,
            progress=lambda nodes: stages("writing", nodes, len(found.within)),
        )
    document = ExactDocument.of(graph, target.label, options.measure, options.direction, found)
    show(Reply(document, lambda: _pairs_text(document, options.order == "rcm")))
    ended = document.ended
    if ended.converged:
        return
    if ended.pruning_error > ended.iteration_error:
        say("not converged: use a smaller --prune or a larger --epsilon")
    else:
        say(
            "not converged: increase --max-sweeps or --epsilon, or use another "
            "--method (gauss-seidel and plain always converge)"
        )


def _pairs_text(found: ExactDocument, ordered: bool) -> str:
    ended, (stored, meanwhile) = found.ended, found.bandwidth
    links = "" if found.direction == "in" else f", {DIRECTIONS[found.direction]}"
    rows = f"{found.rows_computed:,} for {found.nodes:,} nodes, bandwidth {stored:,}"
    return facts_text(
        {
            "output": found.output,
            "method": f"{found.measure}{links}, {found.method}, {found.products} products, "
            f"{found.precision} precision",
            "rows": rows + (f", ordered {meanwhile:,}" if ordered else ""),
            "ended": f"{ended.sweeps} sweeps, {ended.reason}",
            "error": f"at most {ended.error_bound:.1e}: {ended.iteration_error:.1e} from iteration"
            f", {ended.rounding_error:.1e} from rounding, {ended.pruning_error:.1e} from pruning",
        }
    )
