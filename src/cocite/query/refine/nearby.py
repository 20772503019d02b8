"""Refined SimRank from a graph alone: the diagonal only where a question leads.

Nothing is made ready for the whole graph (``engine/diagonal.py`` does that for an index). What is
known of the diagonal beforehand follows from how many in-neighbours a node has, as different ones
score between 0 and c:

    1 - c / d - c**2 (1 - 1 / d)  <=  D(w)  <=  1 - c / d;      1 if d = 0

Where the run from the node leads, heaviest nodes first, it is narrowed: S(w, w) = 1, so

    D(w) = 1 - sum over l >= 1 of c**l sum over v of x[l](v)**2 D(v),     x[l] = (Q')**l of w

with the upper ends of D(v), and what may be missing, gives the lower end of D(w), and the reverse;
twice over, so that ends narrowed in the first round narrow others. Three runs back, with
the lower ends, the upper ends and a guess between, give each score's interval and the score.
All of it is deterministic, and an interval holds for certain; it is
mostly wider than from an index.

Cost: a question some 50 ms on graphs of a hundred thousand links and 100 ms on three million, most
of it for what is narrowed; memory of 200 bytes a node.
Source: as ``row.py``; the narrowing is this project's.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.deadline import check
from cocite.engine.diagonal import mixture
from cocite.engine.run_space import make_space
from cocite.errors import ResourceError
from cocite.graph.rows import Links
from cocite.layouts.scratch import borrowed
from cocite.measures import WholeSettings
from cocite.memory import format_size, short_of
from cocite.query.filters import Filter
from cocite.query.refine.refiner import Level, Refined, Refiner, decay_of, most_of

if TYPE_CHECKING:
    from cocite.kernels.linear import RunSpace

__all__ = ["NearbyRefiner"]

_MOST_NARROWED, _ROUNDS = 300, 2
"""More nodes, more links each and a smaller width narrow intervals; the order is right before."""
_MOST_LINKS = 1_500_000
"""Of all that are narrowed, in a round."""
_WIDTH = 0.05
_MOVES, _PAST, _AGREED = 10, 4, 0.005
"""Rounds at most that better the guesses, how many are taken together, and when they are good."""
_MOST_READ = 4_000_000
"""Links of a run from the node, after which no longer one is tried."""
_ENTRIES, _ENTRY = 1 << 20, 12
"""Of a run from the node at first, and the bytes of each."""
_NODE = 200
"""Bytes a node of a question."""
_ROUNDING = 1e-11
Column = NDArray[np.float64]


class NearbyRefiner(Refiner):
    """Of SimRank, where there is no index."""

    certain = True

    def check(self, settings: WholeSettings) -> None:
        """Refuse what is not by decay alone."""
        most_of(self._stored, settings)

    def top(
        self,
        node: int,
        k: int,
        min_score: float,
        chosen: Filter,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """The best k, by what is found; equal scores by ascending node."""
        ends = self._rows(node, settings, level.target)
        with borrowed(self._stored.nodes) as scratch:
            touched = np.flatnonzero(ends[:, 1])
            scratch.have = touched.size
            scratch.touched[: touched.size] = touched
            scratch.totals[touched, 0] = ends[touched, 1] * GRAINS
            ids, _ = chosen.best(scratch, k, min_score)
        return self._refined(ids, ends, settings)

    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """The score of ``other`` in the row of ``node``, which is another node."""
        ends = self._rows(node, settings, level.target)
        return self._refined(np.array([other], np.uint32), ends, settings)

    def _rows(self, node: int, settings: WholeSettings, target: float) -> Column:
        """float64[nodes, 3]: the least that each score can be, a guess, the most."""
        found = np.zeros((self._stored.nodes, 3))
        for part in self._stored.parts:
            near = self._near[part.direction]
            decay = decay_of(part, settings)
            found += part.weight * near.row(node, decay, target)
        most = most_of(self._stored, settings)
        found[:, 1] = np.rint(np.minimum(found[:, 1], most) * GRAINS) / GRAINS
        return found

    @cached_property
    def _near(self) -> dict[str, _Near]:
        return {way: _Near(*self.ends(way), self._means.memory) for way in ("in", "out")}

    def _refined(self, ids: NDArray[np.uint32], ends: Column, settings: WholeSettings) -> Refined:
        low, score, high = ends[ids].T
        low = np.minimum(score, np.maximum(0.0, low - _ROUNDING))
        high = np.minimum(high + _ROUNDING, most_of(self._stored, settings))
        return Refined(ids, score, np.zeros(ids.size), low, np.maximum(score, high))


class _Near:
    """Rows of one direction."""

    def __init__(self, rows: Links, columns: Links, memory: int) -> None:
        """Raises :class:`ResourceError` if a question takes more than ``memory`` bytes."""
        from cocite.kernels.linear import Rows

        self._left = memory - _NODE * rows.nodes
        if self._left < 0:
            raise ResourceError(
                f"a refined answer without an index takes {format_size(_NODE * rows.nodes)} of "
                f"memory; {short_of(memory)}, or ask an index"
            )
        self._rows = Rows(rows.offsets, rows.neighbours)
        self._columns = Rows(columns.offsets, columns.neighbours)
        self._degrees = np.diff(rows.offsets).astype(np.float64)

    def row(self, node: int, decay: float, target: float) -> Column:
        """float64[nodes, 3]: the least that each score can be, a guess, the most."""
        from cocite.kernels import linear

        nodes = self._degrees.size
        space, level, bound = self._forward(node, decay, target)
        diagonals = self._before(decay)
        self._narrow(node, space, level, decay, diagonals)
        out, touched = np.zeros((nodes, 3)), np.empty(nodes + 1, np.uint32)
        for column in range(3):
            check()
            table = _table(diagonals[:, column], decay)
            here, size, more, _ = linear.backward(
                self._rows, self._columns, table, level, decay, target / 40, space
            )
            sums = np.zeros((nodes, 2))
            linear.deposit(space, here, size, GRAINS, node, sums, touched, 0)
            out[:, column] = sums[:, 0] / GRAINS
        out[:, 2] += bound + more + 1 / GRAINS
        out[:, 0] = np.maximum(0.0, out[:, 0] - 1 / GRAINS)
        return out

    def _forward(self, node: int, decay: float, target: float) -> tuple[RunSpace, int, float]:
        """A run from the node, with limits that hold anywhere: c."""
        from cocite.kernels import linear

        nodes, entries = self._degrees.size, _ENTRIES
        table = _table(np.zeros(nodes), decay)
        threshold = target * 1e-4
        while True:
            check()
            space = make_space(nodes, entries)
            level, bound, read = linear.forward(self._rows, table, node, decay, threshold, space)
            if level == linear.OVERFLOW:
                entries *= 4
                if _ENTRY * entries > self._left:
                    raise ResourceError(
                        f"the run from this node takes {format_size(_ENTRY * entries)} of memory "
                        f"beside the rest; {short_of(self._left)}, or a larger --target-error"
                    )
                continue
            enough = bound <= target or read > _MOST_READ
            if enough or linear.in_vain(self._rows, threshold, target):
                return space, level, bound
            threshold /= 8

    def _before(self, decay: float) -> Column:
        """float64[nodes, 3]: the lower ends, guesses and upper ends that hold for any graph."""
        alone = 1 / np.maximum(self._degrees, 1)
        high = np.where(self._degrees > 0, 1 - decay * alone, 1.0)
        low = np.where(self._degrees > 0, high - decay**2 * (1 - alone), 1.0)
        return np.stack([low, high - 0.02 * (high - low), high], axis=1)

    def _narrow(self, node: int, space: RunSpace, level: int, decay: float, ends: Column) -> None:
        """Narrow the ends where the run from the node went, heaviest first."""
        from cocite.kernels.diagonal import residuals

        weights = np.zeros(self._degrees.size)
        for step in range(1, level + 1):
            part = slice(space.starts[step], space.starts[step + 1])
            weights[space.nodes[part]] += decay**step * space.amounts[part]
        weights[node] = 1.0
        weights *= ends[:, 2] - ends[:, 0]
        heaviest = np.argsort(-weights, kind="stable")[:_MOST_NARROWED]
        chosen = heaviest[weights[heaviest] > 0].astype(np.uint32)
        tune = np.array([decay, 1e-4, _WIDTH, _MOST_LINKS / max(1, chosen.size)])
        for _ in range(_ROUNDS):
            found = np.empty((3, chosen.size, 3))
            for column in range(3):
                check()
                table = _table(ends[:, column], decay)
                residuals(self._rows, table, chosen, tune, space, found[column])
                found[column, :, 0] -= table[chosen, 0]
            least = 1 - found[2, :, 0] - found[2, :, 1]
            guess = 1 - found[1, :, 0] - found[1, :, 2]
            ends[chosen, 0] = np.maximum(ends[chosen, 0], least)
            ends[chosen, 2] = np.minimum(ends[chosen, 2], 1 - found[0, :, 0])
            ends[chosen, 1] = np.clip(guess, ends[chosen, 0], ends[chosen, 2])
        self._settle(chosen, tune, space, ends)

    def _settle(
        self, chosen: NDArray[np.uint32], tune: NDArray[np.float64], space: RunSpace, ends: Column
    ) -> None:
        """Better the guesses until they agree with each other, or no longer get better: where the
        decay is near 1, each depends much on the others (as ``engine/diagonal.py``).
        """
        from cocite.kernels.diagonal import residuals

        moves: list[tuple[Column, Column]] = []
        best, least = ends[chosen, 1], np.inf
        for _ in range(_MOVES):
            check()
            found = np.empty((chosen.size, 3))
            residuals(self._rows, _table(ends[:, 1], tune[0]), chosen, tune, space, found)
            off = 1 - found[:, 0] - found[:, 2]
            worst = float(np.abs(off).max(initial=0))
            if worst < least:
                best, least = ends[chosen, 1], worst
            if worst <= _AGREED:
                break
            moves = [*moves, (ends[chosen, 1], off)][-_PAST:]
            ends[chosen, 1] = np.clip(mixture(moves), ends[chosen, 0], ends[chosen, 2])
        ends[chosen, 1] = best


def _table(diagonal: Column, decay: float) -> Column:
    """As the kernels take it, with limits of c."""
    return np.stack([diagonal, np.full(diagonal.size, decay)], axis=1)
