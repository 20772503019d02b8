"""``cocite rank --by authorities`` and ``--by hubs``: the scores of HITS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cocite.cli.options import verifying
from cocite.cli.outputs import Reply, Show
from cocite.cli.progress import Stages
from cocite.cli.text import say, table_text
from cocite.cli.wide import left_out, narrowed, with_titles

if TYPE_CHECKING:
    from cocite.graph.writers import Target
    from cocite.ranking.documents import HitsDocument
    from cocite.ranking.stopping import StoppingRule

__all__ = ["run_hits"]


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
    from cocite.graph.writers import write_numbers
    from cocite.means import Means
    from cocite.ranking import hits, plan_hits
    from cocite.ranking.documents import HitsDocument

    graph = Graph.open(path, verify=verifying())
    means = Means.checked(memory=memory, blocks=blocks)
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
    show(Reply(told, lambda: _text(told)))
    say(f"{found.sweeps} sweeps, {found.reason}: L1 change of the authorities {found.change:.1e}")
    if not found.converged:
        say("not converged: allow more --sweeps, or a larger --tolerance")


def _text(found: HitsDocument) -> str:
    rows = [(str(i), f"{a:.3e}", f"{h:.3e}", node) for i, (node, a, h) in enumerate(found.top, 1)]
    titles = ["place", "authority", "hub", "node"]
    other = "hub" if found.by == "authorities" else "authority"
    titles, shown, left = narrowed(titles, rows, ((other,),), found.titles)
    return table_text(*with_titles(titles, shown, found.titles)) + left_out(left)
