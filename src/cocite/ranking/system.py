"""The linear system behind PageRank, (I - damping P') y = p, on one graph, in any memory.

The iteration runs on the core, the nodes with out-links (``lumping.py``), in Gauss-Seidel sweeps
(``kernels/rank.py``). With enough memory its links are there (``resident.py``); with less,
everything is on disk but one block (``blocked.py``), vectors too. The order of the arithmetic is
the same in both, so the ranks are, to the bit.

Source: Haveliwala, *Efficient computation of PageRank*, 3.2 (blocks); the core: Lee, Golub,
Zenios 2003.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import NotConverged
from cocite.graph import Graph
from cocite.graph.in_blocks import BlockedGraph
from cocite.ranking.blocked import Blocked
from cocite.ranking.extrapolation import Extrapolation
from cocite.ranking.lumping import Lumped
from cocite.ranking.resident import Resident
from cocite.ranking.room import RankRoom
from cocite.ranking.stopping import State, StoppingRule
from cocite.ranking.vectors import Vector, order_of, pieces, scale, total

if TYPE_CHECKING:
    from cocite.ranking.apart import Apart

__all__ = ["Sweep", "System"]


class Sweep(NamedTuple):
    """One sweep made: its number, a bound on the L1 residual, and all of y when asked, which is to
    be before the next sweep.
    """

    number: int
    residual: float
    solution: Callable[[], Vector]


class System:
    """One graph, minus the nodes removed, and one damping. ``solve`` as often as needed.

    Vectors of a node each are float64[nodes]; those that it returns lie in memory or in scratch
    files, as ``room`` has it.
    """

    def __init__(
        self,
        graph: Graph,
        damping: float,
        *,
        room: RankRoom,
        removals: int = 0,
        precision: str = "double",
        weighted: bool = False,
    ) -> None:
        self._damping = damping
        self._dtype = np.float32 if precision == "single" else np.float64
        self.lumped: Lumped
        self.links: Apart | Blocked | Resident
        if isinstance(graph, BlockedGraph):
            from cocite.ranking.apart import Apart, LumpedApart

            self.lumped = lumped = LumpedApart(graph, removals, weighted, room)
            self.links = Apart(lumped)
        else:
            self.lumped = Lumped(graph, removals, weighted, room)
            self.links = Blocked(self.lumped) if room.blocks else Resident(self.lumped)
        self._facts: Vector = np.empty((0, 0))

    def vector(self) -> Vector:
        """float64[nodes], zeros."""
        return self.lumped.vector()

    # -- solving --------------------------------------------------------------------------

    def sweeps(self, where: Vector, guess: Vector | None, alone: bool = False) -> Iterator[Sweep]:
        """Every sweep of the iteration for teleport ``where`` (sum 1), without end; with what is
        ahead of them after every eighth, unless they are to go ``alone``.

        Only a sweep of number 0, the solution, where there is nothing to iterate. Raises
        :class:`NotConverged` where a sweep ends in what is no number.
        """
        self._describe(where)
        core = self.lumped.core
        z = self.lumped.contributions(self._dtype)
        self._contribute(where if guess is None else guess, 1.0, z)
        mass, owed = self._weigh(z)
        _check_numbers(0, mass)
        if owed == 0:  # nobody starts in the core, and dangling nodes lead nowhere
            scale(z, 0.0)
            yield Sweep(0, 0.0, lambda: self._whole(z, where))
            return
        if mass > 0:
            scale(z, owed / mass)  # ranks sum to 1, y to more
        # Within the rounding of its sums a balance would only add noise: residuals would end at
        # some 1e-14 (7e-15 on web-NotreDame) instead of falling to nothing.
        rounding = 8 * np.finfo(np.float64).eps * math.sqrt(core)
        # What single precision loses where values are stored is in no change: it counts as another.
        margin = 1 if self._dtype is np.float64 else 2
        ahead = Extrapolation(self.lumped)
        for number in count(1):
            sums = np.zeros(4)
            self.links.sweep(z, self._facts, self._damping, sums)
            change, reach = sums[:2].tolist()
            mass = float(sums[2] + sums[3])
            _check_numbers(number, change, reach, mass)
            balance = owed / mass
            if abs(balance - 1) > rounding:
                self.links.scale(z, balance)
            else:
                balance = 1.0
            size = reach * balance + (1 - owed)  # the sum of y, dangling nodes included
            # What later rows changed leaves ``change`` at most in those before them; a balance of
            # the mass moves what the teleport brings. Then the residuals of all nodes have sum 0.
            residual = margin * (balance * change + abs(1 - balance) * owed) / size
            yield Sweep(number, residual, lambda: self._whole(z, where))
            if not alone and ahead.wants(number):
                self.links.bring(z)
                if ahead.look(number, residual, z, self._facts):
                    self.links.replaced(z)

    def solve(
        self,
        where: Vector,
        rule: StoppingRule,
        guess: Vector | None,
        progress: Callable[[int, float], None],
    ) -> tuple[Vector, int, str]:
        """The solution for teleport ``where`` (sum 1), sweeps made, reason for stopping."""
        rule.begin()
        sweeps = self.sweeps(where, guess)
        while True:
            sweep = next(sweeps)
            reason: str | None = "nothing to iterate"
            if sweep.number > 0:
                order = order_of(sweep.solution(), rule.wants_order) if rule.wants_order else None
                progress(sweep.number, sweep.residual)
                reason = rule.reached(State(sweep.number, sweep.residual, order))
            if reason is not None:
                return sweep.solution(), sweep.number, reason

    def _describe(self, where: Vector) -> None:
        """The facts of the core's rows for the teleport ``where``."""
        from cocite.kernels import rank

        lumped = self.lumped
        leaving = lumped.leaving()
        if self._facts.shape[0] != lumped.core or self._facts.size == 0:
            self._facts = lumped.scratch.zeros((lumped.core, rank.FACTS), np.float64)
        arrays, loops = (lumped.number, lumped.strengths, leaving, where), self.links.loops
        for part in lumped.pieces(*arrays, beside=(loops, self._facts)):
            number, strengths, lost, base = (array[part] for array in arrays)
            rank.describe(number, strengths, lost, loops, base, self._damping, self._facts)

    def _contribute(self, values: Vector, factor: float, z: NDArray[Any]) -> None:
        from cocite.kernels import rank

        lumped = self.lumped
        arrays = lumped.number, lumped.strengths, values
        for part in lumped.pieces(*arrays, beside=(z,)):
            rank.contribute(*(array[part] for array in arrays), factor, z)

    def _weigh(self, z: NDArray[Any]) -> tuple[float, float]:
        from cocite.kernels import rank

        sums = np.zeros((2, 2))
        for part in pieces(0, self.lumped.core, z, self._facts):
            rank.weigh(z[part], self._facts[part], np.uint64(part.start), sums)
        mass, owed = sums.sum(axis=0).tolist()
        return mass, owed

    def _whole(self, z: NDArray[Any], where: Vector) -> Vector:
        """All of y from the core's z: dangling nodes are computed here, once."""
        from cocite.kernels import rank

        lumped, y = self.lumped, self.vector()
        arrays = lumped.number, lumped.strengths, lumped.degrees
        for part, sums in self._gathered(z, (*arrays, where, y), all_rows=False):
            y[part] = where[part]
            rank.expand(*(array[part] for array in arrays), z, sums, self._damping, y[part])
        return y

    # -- a vector looked at -----------------------------------------------------------------

    def dangling_sum(self, values: Vector) -> float:
        """The sum over dangling nodes."""
        return total(values, self.lumped.degrees)

    def step(self, x: Vector, where: Vector, share: Vector) -> Vector:
        """G x for x with sum 1, a step of power iteration: one pass over all links."""
        from cocite.kernels import rank

        degrees, following = self.lumped.degrees, self.vector()
        for part, sums, elsewhere in self._passed_on(x, where, share, following):
            following[part] = elsewhere
            rank.advance(degrees[part], sums, following[part])
        return following

    def residual(self, x: Vector, where: Vector, share: Vector) -> float:
        """||G x - x||_1 for x with sum 1: one pass over all links."""
        from cocite.kernels import rank

        found = np.zeros(1)
        for part, sums, elsewhere in self._passed_on(x, where, share, x):
            rank.residual(self.lumped.degrees[part], sums, elsewhere - x[part], found)
        return float(found[0])

    def _passed_on(
        self, x: Vector, where: Vector, share: Vector, beside: Vector
    ) -> Iterator[tuple[slice, Vector, Vector]]:
        """What G x is the sum of, piece by piece: by links, and from elsewhere. The caller looks at
        degrees and what is ``beside``.
        """
        d, spread = self._damping, self.dangling_sum(x)
        z = self.lumped.contributions(np.float64)
        self._contribute(x, d, z)
        arrays = self.lumped.degrees, where, share, beside
        for part, sums in self._gathered(z, arrays, all_rows=True):
            yield part, sums, (1 - d) * where[part] + d * spread * share[part]

    def _gathered(
        self, z: NDArray[Any], arrays: tuple[NDArray[Any], ...], all_rows: bool
    ) -> Iterator[tuple[slice, Vector]]:
        """What nodes get by links, for pieces of all nodes, of which the caller looks at these
        ``arrays``, and at z.
        """
        on_disk = (*arrays, z) if self.lumped.room.blocks else ()
        for nodes, sums in self.links.gathered(z, all_rows):
            for part in pieces(nodes.start, nodes.stop, *on_disk[:-1], beside=on_disk[-1:]):
                yield part, sums[part.start - nodes.start : part.stop - nodes.start]


def _check_numbers(sweep: int, *sums: float) -> None:
    if not all(map(math.isfinite, sums)):
        raise NotConverged(
            f"the ranks are no finite numbers after sweep {sweep}: their sums are "
            f"{', '.join(map(str, sums))}. Take double precision, or a start of smaller values"
        )
