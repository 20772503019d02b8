"""Cutting a graph into destination blocks.

A block is a range of nodes with their offsets (8 bytes a node) and in-links (4 a link). A node's
in-links are never cut. Cuts are the first node of every block but the first.
"""

from __future__ import annotations

from cocite.graph.graph import Graph
from cocite.store import forget

__all__ = ["cut_blocks", "cut_evenly"]

_OFFSET, _LINK = 8, 4


def cut_blocks(graph: Graph, block: int, beside: int = 0) -> tuple[int, ...]:
    """The first node of every block but the first, for blocks of at most ``block`` bytes, with
    ``beside`` bytes that a run keeps beside the rows for each node of the block.
    """
    cuts: list[int] = []
    first = 0
    while True:
        fitting = _first_beyond(graph, _bytes_before(graph, first, beside) + block, beside) - 1
        first = max(fitting, first + 1)  # a node alone may be larger than a block
        if first >= graph.nodes:
            return tuple(cuts)
        cuts.append(first)


def cut_evenly(graph: Graph, blocks: int) -> tuple[int, ...]:
    """Cuts into ``blocks`` blocks of about equal size; fewer if there are fewer nodes."""
    whole = _bytes_before(graph, graph.nodes)
    cuts = {_first_beyond(graph, whole * i // blocks) for i in range(1, blocks)}
    return tuple(sorted(cuts - {0, graph.nodes, graph.nodes + 1}))


def _bytes_before(graph: Graph, node: int, beside: int = 0) -> int:
    """What the rows of all smaller nodes take."""
    return (_OFFSET + beside) * node + _LINK * int(graph.in_offsets[node])


def _first_beyond(graph: Graph, size: int, beside: int = 0) -> int:
    """The first node with more than ``size`` bytes before it; nodes + 1 if none has."""
    low, high = 0, graph.nodes + 1
    while low < high:
        middle = (low + high) // 2
        if _bytes_before(graph, middle, beside) > size:
            high = middle
        else:
            low = middle + 1
    forget(graph.in_offsets)  # every probe brought its neighbourhood along
    return low
