"""Cutting links into blocks of rows; for in-links, by destination.

A block is a range of nodes with their offsets (8 bytes a node) and links (4 a link, 8 with
weights). A node's links are never cut. Cuts are the first node of every block but the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cocite.store import forget

if TYPE_CHECKING:
    from cocite.graph.links import Links

__all__ = ["cut_blocks", "cut_evenly"]

_OFFSET = 8


def cut_blocks(links: Links, block: int, beside: int = 0) -> tuple[int, ...]:
    """The first node of every block but the first, for blocks of at most ``block`` bytes, with
    ``beside`` bytes that a run keeps beside the rows for each node of the block.
    """
    cuts: list[int] = []
    first = 0
    while True:
        fitting = _first_beyond(links, _bytes_before(links, first, beside) + block, beside) - 1
        first = max(fitting, first + 1)  # a node alone may be larger than a block
        if first >= links.nodes:
            return tuple(cuts)
        cuts.append(first)


def cut_evenly(links: Links, blocks: int) -> tuple[int, ...]:
    """Cuts into ``blocks`` blocks of about equal size; fewer if there are fewer nodes."""
    whole = _bytes_before(links, links.nodes)
    cuts = {_first_beyond(links, whole * i // blocks) for i in range(1, blocks)}
    return tuple(sorted(cuts - {0, links.nodes, links.nodes + 1}))


def _bytes_before(links: Links, node: int, beside: int = 0) -> int:
    """What the rows of all smaller nodes take."""
    return (_OFFSET + beside) * node + links.link_bytes * int(links.offsets[node])


def _first_beyond(links: Links, size: int, beside: int = 0) -> int:
    """The first node with more than ``size`` bytes before it; nodes + 1 if none has."""
    low, high = 0, links.nodes + 1
    while low < high:
        middle = (low + high) // 2
        if _bytes_before(links, middle, beside) > size:
            high = middle
        else:
            low = middle + 1
    forget(links.offsets)  # every probe brought its neighbourhood along
    return low
