"""The core in memory: its links by row, in the order in which a row's sum is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.ranking.lumping import Lumped
from cocite.ranking.vectors import Vector, scale

__all__ = ["Resident"]

_ZERO = np.uint64(0)


class Resident:
    """Sweeps over the links of one graph in memory; ``blocked.Blocked`` does the same on disk.

    ``core`` is (rows, links, weights), as ``kernels/rank.py`` has them; ``loops`` the weight of the
    link that each row of the core has to itself.
    """

    blocks = 1
    sent = None

    def __init__(self, lumped: Lumped) -> None:
        from cocite.kernels import rank

        self._lumped = lumped
        edges, weighted = lumped.graph.edges, lumped.weighted
        links = lumped.links_of(0, lumped.nodes)
        self.loops: NDArray[Any] = np.empty(lumped.core, np.float32 if weighted else np.uint8)
        core = _room(lumped.core, edges, weighted)
        lost = rank.compact(links, lumped.number, core, self.loops)
        tails = _room(lumped.nodes - lumped.core, edges - int(core[0][-1]), weighted)
        lost += rank.compact_tails(links, lumped.degrees, lumped.number, tails)
        lumped.check_sources(int(lost))
        self.core, self._tails = (
            (rows, nodes, weights if weighted else None) for rows, nodes, weights in (core, tails)
        )
        self._so_far = np.zeros(lumped.core)

    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """Gauss-Seidel over all rows, ``z`` in place; what is added to ``sums``: ``rank.sweep``."""
        from cocite.kernels import rank

        rank.sweep(self.core, (_ZERO, _ZERO, _ZERO), self._so_far, z, facts, damping, sums)

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply all of ``z`` by ``factor``."""
        scale(z, factor)

    def bring(self, z: NDArray[Any]) -> None:
        """Have ``z`` here as the last sweep left it, which it is."""

    def replaced(self, z: NDArray[Any]) -> None:
        """Hear that ``z`` is another one, which the next sweep begins with anyway."""

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """(nodes, what their in-neighbours contribute by ``z``): of all, or of dangling ones."""
        from cocite.kernels import rank

        lumped = self._lumped
        sums = np.empty(lumped.nodes)
        rank.gather_tails(self._tails, lumped.degrees, z, sums)
        if all_rows:
            rank.gather_rows(self.core, lumped.number, self.loops, z, sums)
        yield slice(0, lumped.nodes), sums


def _room(rows: int, links: int, weighted: bool) -> tuple[NDArray[Any], ...]:
    """For so many links, at most: what is not written takes no memory."""
    begins = np.empty(rows + 1, np.uint64)
    begins[0] = 0
    return begins, np.empty(links, np.uint32), np.empty(links * weighted, np.float32)
