"""``cocite rank --against``: how the order differs that another personalisation brings about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cocite.cli.options import verifying
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.study import queries_of
from cocite.cli.text import say, table_text

if TYPE_CHECKING:
    from cocite.graph.writers import Target
    from cocite.ranking import Comparison, Difference
    from cocite.ranking.stopping import StoppingRule

__all__ = ["run_against"]


def run_against(
    path: str,
    against: str,
    output: Target | None,
    toward: tuple[str, ...],
    personalise: tuple[str, ...],
    stop: StoppingRule,
    show: Show,
    *,
    query_nodes: tuple[str, ...],
    query_words: tuple[str, ...],
    query_texts: str | None,
    unweighted: bool,
    **options: Any,
) -> None:
    """Rank twice, show how the orders differ, and write both ranks if there is an output."""
    from cocite.graph import Graph
    from cocite.graph.writers import write_numbers
    from cocite.ranking import WeightsFile, compare, toward_of
    from cocite.ranking.documents import ComparisonDocument

    graph = Graph.open(path, verify=verifying())
    with Stages({"first": "sweeps", "second": "sweeps"}) as stages:
        found = compare(
            graph,
            toward_of(graph, toward, personalise),
            WeightsFile(against),
            queries=queries_of(graph, query_nodes, query_words, query_texts),
            stop=stop,
            weighted=not unweighted,
            progress=stages,
            **options,
        )
    first, second = found.first, found.second
    if output is not None:
        write_numbers(output, first.names, rank=first.values, against=second.values)
    show(Reply(ComparisonDocument(path, found), lambda: _text(found)))
    for ranks, which in ((first, "first"), (second, f"by {against}")):
        ended = ranks.convergence
        say(f"{which}: {ended.sweeps} sweeps, L1 error at most {ended.error_bound:.1e}")
        if not ended.converged:
            say("not converged: allow more --sweeps, or a larger --tolerance")
    for difference in found.differences:
        say(_said(difference))


def _said(difference: Difference) -> str:
    from cocite.ranking.documents import among

    away = np.repeat(np.abs(difference.positions.middle), difference.positions.nodes)
    return (
        f"{among(difference)}: the first {difference.same_order:,} places are the same; of the "
        f"{away.size:,} nodes that are at either top, half are within {int(np.median(away)):,} "
        "places"
    )


def _text(found: Comparison) -> str:
    from cocite.ranking.documents import among, similar

    rows = [
        (f"{n:,}", f"{value:.3f}", among(difference))
        for difference in found.differences
        for n, value in similar(difference)
    ]
    return table_text(["top n", "alike", "among"], rows)
