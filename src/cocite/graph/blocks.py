"""Cutting links into blocks of rows; for in-links, by destination.

A block is a range of nodes with their offsets (8 bytes a node) and links (4 a link, 8 with
weights). A node's links are never cut. Cuts are the first node of every block but the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cocite.store import forget

if TYPE_CHECKING:
    from cocite.graph.rows import Links

__all__ = ["cut_blocks", "cut_evenly"]

_OFFSET = 8


def cut_blocks(
    links: Links, block: int, beside: int = 0, link: int | None = None
) -> tuple[int, ...]:
    """The first node of every block but the first, for blocks of at most ``block`` bytes, with
    ``beside`` bytes that a run keeps beside the rows for each node of the block. A link takes
    ``link`` bytes, by default those of its neighbour and weight. Of links by both ends a block
    holds the rows of its nodes by either.
    """
    rows = _Rows(links, _OFFSET + beside, link or links.link_bytes)
    cuts: list[int] = []
    first = 0
    while True:
        fitting = rows.first_beyond(rows.before(first) + block) - 1
        first = max(fitting, first + 1)  # a node alone may be larger than a block
        if first >= links.nodes:
            return tuple(cuts)
        cuts.append(first)


def cut_evenly(links: Links, blocks: int) -> tuple[int, ...]:
    """Cuts into ``blocks`` blocks of about equal size; fewer if there are fewer nodes."""
    rows = _Rows(links, _OFFSET, links.link_bytes)
    whole = rows.before(links.nodes)
    cuts = {rows.first_beyond(whole * i // blocks) for i in range(1, blocks)}
    return tuple(sorted(cuts - {0, links.nodes, links.nodes + 1}))


@dataclass(frozen=True)
class _Rows:
    """What rows take: ``node`` bytes a node, ``link`` bytes a link."""

    links: Links
    node: int
    link: int

    def before(self, node: int) -> int:
        """What the rows of all smaller nodes take."""
        back, found = self.links.back, self.node * node
        if back is not None:
            found += _OFFSET * node + self.link * int(back.offsets[node])
        return found + self.link * int(self.links.offsets[node])

    def first_beyond(self, size: int) -> int:
        """The first node with more than ``size`` bytes before it; nodes + 1 if none has."""
        low, high = 0, self.links.nodes + 1
        while low < high:
            middle = (low + high) // 2
            if self.before(middle) > size:
                high = middle
            else:
                low = middle + 1
        for rows in (self.links, self.links.back or self.links):
            forget(rows.offsets)  # every probe brought its neighbourhood along
        return low
