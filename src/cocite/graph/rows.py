"""Links as rows of neighbours: by destination or by source, with weights or without.

The neighbours of node v are ``neighbours[offsets[v] : offsets[v + 1]]``, ascending.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cocite.store import fetch, forget, is_mapped

__all__ = ["DEGREES", "OFFSETS", "SOURCES", "WEIGHTS", "InBlocks", "InLinks", "Links", "rows_fault"]

OFFSETS, SOURCES, DEGREES = "in_offsets", "in_sources", "out_degrees"
WEIGHTS = "in_weights"
"""The files of a stored graph's links: what :class:`InLinks` reads."""

_PIECE = 1 << 17
"""Nodes or neighbours that are looked at, and in memory, at a time."""


def rows_fault(
    offsets: NDArray[np.uint64], neighbours: NDArray[np.uint32], bound: int, *, twice: bool = False
) -> str:
    """What is wrong with rows, in words; empty if offsets ascend from 0 to the end, and neighbours
    are below ``bound`` and ascend strictly within a row, or, ``twice``, may stand there twice.

    Reads both once, in pieces, and gives back those that are mapped.
    """
    if int(offsets[0]) != 0 or int(offsets[-1]) != neighbours.size:
        return "rows do not begin and end with the data"
    for low in range(0, offsets.size - 1, _PIECE):
        begins = offsets[low : low + _PIECE + 1]
        if not (begins[1:] >= begins[:-1]).all():
            return "the beginnings of rows do not ascend"
        forget(offsets)
    compare = np.greater_equal if twice else np.greater
    for low in range(0, neighbours.size, _PIECE):
        piece = neighbours[max(low - 1, 0) : low + _PIECE]
        if int(piece.max()) >= bound:
            return f"there are ids that are not below {bound:,}"
        ascends = np.ones(min(_PIECE, neighbours.size - low), np.bool_)
        compare(piece[1:], piece[:-1], out=ascends[ascends.size + 1 - piece.size :])
        first, last = np.searchsorted(offsets, np.array([low, low + ascends.size], np.uint64))
        ascends[offsets[first:last] - np.uint64(low)] = True  # a row begins there
        if not ascends.all():
            return "a row does not ascend, or has something twice"
        forget(neighbours, offsets)
    return ""


@dataclass(frozen=True)
class Links:
    """``offsets`` uint64[nodes + 1], ``neighbours`` uint32[edges], ascending within a node, and
    ``weights`` float32[edges] beside them, or None if all links count the same. ``back`` are the
    same links by their other end, for walks that go both ways, else None.
    """

    offsets: NDArray[np.uint64]
    neighbours: NDArray[np.uint32]
    weights: NDArray[np.float32] | None = None
    back: Links | None = None

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return self.offsets.size - 1

    @property
    def edges(self) -> int:
        """Number of links."""
        return self.neighbours.size

    @property
    def link_bytes(self) -> int:
        """What one link takes."""
        return 4 if self.weights is None else 8

    @property
    def nbytes(self) -> int:
        """What all of it takes."""
        own = self.offsets.nbytes + self.link_bytes * self.edges
        return own + (0 if self.back is None else self.back.nbytes)

    @property
    def in_files(self) -> bool:
        """Whether its links are mapped, and can be given back."""
        return is_mapped(self.neighbours)

    def sealed(self) -> Links:
        """The same, no longer to be written to, as stored links are: to Numba these are other
        types, and kernels would be compiled for both.
        """
        for array in (self.offsets, self.neighbours, self.weights):
            if array is not None:
                array.flags.writeable = False
        return self

    def fetch(self, first: int, last: int) -> None:
        """Have the rows of nodes [first, last) read, of what lies in files."""
        offsets = self.offsets[first : last + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        fetch(offsets, self.neighbours[part])
        if self.weights is not None:
            fetch(self.weights[part])

    def forget(self) -> None:
        """Give back the memory of what lies in files."""
        forget(self.offsets, self.neighbours)
        if self.weights is not None:
            forget(self.weights)
        if self.back is not None:
            self.back.forget()


class InLinks(Protocol):
    """What is read of a stored graph to have its links in any direction: see ``graph/graph.py``."""

    @property
    def path(self) -> Any:
        """Where the graph is."""

    @property
    def in_offsets(self) -> NDArray[np.uint64]:
        """uint64[nodes + 1]: where each node's in-neighbours begin."""

    @property
    def in_sources(self) -> NDArray[np.uint32]:
        """uint32[edges]: the in-neighbours, ascending within a node."""

    @property
    def in_weights(self) -> NDArray[np.float32] | None:
        """float32[edges]: the weights of the same links, if they have any."""

    @property
    def out_degrees(self) -> NDArray[np.uint32]:
        """uint32[nodes]: how many nodes each node links to."""

    def check(self) -> None:
        """See that there are nodes, and that links and weights are sound."""

    def check_links(self) -> None:
        """See that the links are sound."""


@runtime_checkable
class InBlocks(Protocol):
    """A graph whose links are not here: see ``graph/in_blocks.py``."""

    def links(self, direction: str, weighted: bool) -> Links:
        """What stands for them."""
