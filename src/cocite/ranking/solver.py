"""Solver for the linear system of PageRank, (I - damping P') y = p.

Gauss-Seidel sweeps over the core (``ranking/core.py``) run in order of id. Links are in memory, on
disk, or held by workers; the order of the arithmetic is always the same, so ranks are
bit-identical. After each sweep, a factor restores the total mass, the slowest component of the
error, and every eighth sweep is followed by an extrapolation. On web graphs in URL order, this
takes a quarter to a third of the passes of power iteration.

Large graphs are swept in two halves, which two threads may run in parallel. Each half uses the
other half's values from the previous sweep. If too much of the eighth sweep's change passes from
the first half to the second, later sweeps are not split. The decision depends only on the graph.
Source: Haveliwala, *Efficient computation of PageRank*, section 3.2; Lee, Golub, Zenios 2003 (the
core).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import Team
from cocite.errors import NotConverged
from cocite.graph import Graph
from cocite.graph.partitions import BlockedGraph
from cocite.kernels import rank
from cocite.ranking.blocks import Blocked, CoreLinks, Resident
from cocite.ranking.core import Lumped
from cocite.ranking.stopping import StoppingRule, SweepState
from cocite.ranking.vectors import PIECE, RankRoom, Vector, order_of, pieces, scale, total
from cocite.storage import evict

# Reduced rank extrapolation (``kernels/rank.py``). On web graphs, sweeps shrink the error slowly in
# a few directions and fast in all others. Of all combinations of the last iterates, the one with
# the smallest step is therefore much closer to the solution than the last iterate. This saves a
# third to half of the sweeps. Extrapolation cannot spoil the result: a sweep's error bound holds
# from any start, and combinations are never negative. Extrapolation ends once eight sweeps do not
# halve the residual, for example when steps consist of rounding errors. Sums run over pieces of one
# size, in order, and the system of five equations is solved here, so results are bit-identical
# wherever vectors are stored. Every eight sweeps, extrapolation costs five copies and two passes
# over six vectors, and it takes five core vectors of memory. The values of workers are fetched
# first.

_EVERY = 8
"""Sweeps between extrapolations."""
_GAIN = 0.5
"""Required reduction of the residual between extrapolations; plain sweeps reach 0.85 ** 8 = 0.27.
"""
_CROSSING = 0.02
"""Maximum fraction of the eighth sweep's change that may pass from the first half to the second;
above it, later sweeps are not split.
"""
_NOISE = 1e-13
"""Relative noise of the products. Smaller differences count as rounding."""


class Extrapolation:
    """Extrapolates the limit of an iteration from recent iterates."""

    def __init__(self, lumped: Lumped) -> None:
        self._lumped = lumped
        self._before: list[NDArray[Any]] = []
        self._last = math.inf
        self._over = False

    def wants(self, number: int) -> bool:
        """Return whether :meth:`look` needs the iterate after sweep ``number``."""
        return not self._over and (number - 1) % _EVERY >= _EVERY - 1 - rank.BEFORE

    @property
    def last(self) -> NDArray[Any]:
        """Return the last stored iterate."""
        return self._before[-1]

    def look(self, number: int, residual: float, z: NDArray[Any], facts: Vector) -> bool:
        """Store ``z``, or overwrite it with the extrapolation and return True."""
        place = (number - 1) % _EVERY - (_EVERY - 1 - rank.BEFORE)
        if place < rank.BEFORE:
            if len(self._before) == place:  # the first time
                self._before.append(self._lumped.scratch.zeros(z.size, z.dtype))
            for part in pieces(0, z.size, self._before[place], z, kept=PIECE):
                self._before[place][part] = z[part]
            return False
        shares = None
        if 0 < residual <= _GAIN * self._last:
            shares = _least(self._products(z, facts))
        if shares is None:
            self._over, self._before = True, []
            return False
        self._last = residual
        self._combine(z, np.array(shares))
        return True

    def _products(self, z: NDArray[Any], facts: Vector) -> Vector:
        size = rank.BEFORE
        whole, found = np.zeros((size, size)), np.zeros((size, size))
        for part in pieces(0, z.size, *self._before, z, facts, kept=PIECE):
            before = tuple(array[part] for array in self._before)
            rank.products(before, z[part], facts[part], found)
            whole += found
        return whole

    def _combine(self, z: NDArray[Any], shares: Vector) -> None:
        for part in pieces(0, z.size, *self._before, z, kept=PIECE):
            before = tuple(array[part] for array in self._before)
            rank.combine(before, z[part], shares)
        evict(*self._before)


def _least(products: Vector) -> list[float] | None:
    """Return the coefficients with sum 1 that minimize the combined step, or None if none exist.

    ``products`` is the matrix P of the steps' inner products. Cholesky's method solves
    P c = (1, ..., 1), and c is divided by its sum.
    """
    given = products.tolist()
    size = len(given)
    lengths = [math.sqrt(given[i][i]) for i in range(size)]
    if not all(0 < length < math.inf for length in lengths):
        return None
    root = [[0.0] * size for _ in range(size)]
    solved = [1 / length for length in lengths]
    for i in range(size):
        for j in range(i + 1):
            rest = given[i][j] / lengths[i] / lengths[j] + (_NOISE if i == j else 0.0)
            rest -= sum(root[i][k] * root[j][k] for k in range(j))
            if i > j:
                root[i][j] = rest / root[j][j]
            elif rest <= 0:
                return None
            else:
                root[i][i] = math.sqrt(rest)
    for i in range(size):
        solved[i] = (solved[i] - sum(root[i][k] * solved[k] for k in range(i))) / root[i][i]
    for i in reversed(range(size)):
        later = sum(root[k][i] * solved[k] for k in range(i + 1, size))
        solved[i] = (solved[i] - later) / root[i][i]
    shares = [value / length for value, length in zip(solved, lengths, strict=True)]
    whole = sum(shares)
    if not (whole > 0 and all(map(math.isfinite, shares))):
        return None
    shares = [share / whole for share in shares]
    return shares if all(map(math.isfinite, shares)) else None


# -- system ------------------------------------------------------------------------------


class Sweep(NamedTuple):
    """A sweep: its number, a bound on the residual, and a function that returns y and may be called
    until the next sweep.
    """

    number: int
    residual: float
    solution: Callable[[], Vector]


class System:
    """The linear system of a graph without its removed nodes; can be solved repeatedly.

    Vectors are float64[nodes], in memory or in scratch files as planned in ``room``.
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
        threads: int = 1,
    ) -> None:
        self._damping, self._threads = damping, 1 if room.blocks else min(threads, 2)
        self._dtype = np.float32 if precision == "single" else np.float64
        self.lumped: Lumped
        self.links: CoreLinks
        if isinstance(graph, BlockedGraph):
            from cocite.ranking.partitions import PartitionedCore, PartitionedLinks

            self.lumped = lumped = PartitionedCore(graph, removals, weighted, room)
            self.links = PartitionedLinks(lumped)
        else:
            self.lumped = Lumped(graph, removals, weighted, room)
            self.links = Blocked(self.lumped) if room.blocks else Resident(self.lumped)
        self._facts: Vector = np.empty((0, 0))

    def vector(self) -> Vector:
        """Return zeros, float64[nodes]."""
        return self.lumped.vector()

    # -- solving --------------------------------------------------------------------------

    def sweeps(self, where: Vector, guess: Vector | None, alone: bool = False) -> Iterator[Sweep]:
        """Yield sweeps for teleport ``where`` (sum 1) indefinitely.

        Extrapolates after every eighth sweep unless ``alone``. If no iteration is needed, yields
        only sweep 0, the solution. Raises :class:`NotConverged` if a sweep produces NaN or
        infinity.
        """
        with Team(self._threads) as team:
            yield from self._sweeps(where, guess, alone, team)

    def _sweeps(
        self, where: Vector, guess: Vector | None, alone: bool, team: Team
    ) -> Iterator[Sweep]:
        self._describe(where)
        core = self.lumped.core
        z = self.lumped.contributions(self._dtype)
        self._contribute(where if guess is None else guess, 1.0, z)
        mass, owed = self._weigh(z)
        _check_numbers(0, mass)
        if owed == 0:  # all jumps end at dangling nodes, which lead nowhere
            scale(z, 0.0)
            yield Sweep(0, 0.0, lambda: self._whole(z, where))
            return
        if mass > 0:
            scale(z, owed / mass)  # ranks sum to 1, y to more
        # Correcting a balance within rounding of 1 would only add noise: residuals would level off
        # near 1e-14 (7e-15 on web-NotreDame) instead of vanishing.
        rounding = 8 * np.finfo(np.float64).eps * math.sqrt(core)
        # The change does not include the loss from storing values in single precision, so count the
        # change twice.
        margin = 1 if self._dtype is np.float64 else 2
        ahead, cut = Extrapolation(self.lumped), 0 if alone else self.lumped.cut
        for number in count(1):
            halves = np.zeros((2, 4))
            self.links.sweep(z, self._facts, self._damping, halves, cut, team)
            sums = halves.sum(axis=0)
            change, reach = sums[:2].tolist()
            mass = float(sums[2] + sums[3])
            _check_numbers(number, change, reach, mass)
            balance = owed / mass
            if abs(balance - 1) <= rounding:
                balance = 1.0
            self.links.scale(z, balance)
            size = reach * balance + (1 - owed)  # the sum of y, including dangling nodes
            # Changes of later rows leave residuals of at most ``change`` in earlier rows. Balancing
            # the mass changes the part from teleportation; the residuals then sum to 0.
            residual = margin * (balance * change + abs(1 - balance) * owed) / size
            yield Sweep(number, residual, lambda: self._whole(z, where))
            if not alone and ahead.wants(number):
                self.links.fetch(z)
                if cut and number == _EVERY and self._crossing(ahead.last, z) > _CROSSING * change:
                    cut = 0
                if ahead.look(number, residual, z, self._facts):
                    self.links.replaced(z)

    def _crossing(self, before: NDArray[Any], z: NDArray[Any]) -> float:
        """Return how much of the first half's change since ``before`` reaches the second half."""
        cut, moved = self.lumped.cut, self.lumped.scratch.zeros(z.size, np.float64)
        for part in pieces(0, cut, before, z, moved):
            moved[part] = np.abs(z[part].astype(np.float64) - before[part])
        return self._damping * total(self.links.crossing(moved, cut))

    def solve(
        self,
        where: Vector,
        rule: StoppingRule,
        guess: Vector | None,
        progress: Callable[[int, float], None],
    ) -> tuple[Vector, int, str]:
        """Return (solution for the teleport ``where``, number of sweeps, reason to stop)."""
        rule.begin()
        sweeps = self.sweeps(where, guess)
        while True:
            sweep = next(sweeps)
            reason: str | None = "nothing to iterate"
            if sweep.number > 0:
                order = order_of(sweep.solution(), rule.top) if rule.top else None
                progress(sweep.number, sweep.residual)
                reason = rule.reached(SweepState(sweep.number, sweep.residual, order))
            if reason is not None:
                return sweep.solution(), sweep.number, reason

    def _describe(self, where: Vector) -> None:
        """Compute the facts of all core rows for the teleport ``where``."""
        lumped = self.lumped
        leaving = lumped.leaving()
        if self._facts.shape[0] != lumped.core or self._facts.size == 0:
            self._facts = lumped.scratch.zeros((lumped.core, rank.FACTS), np.float64)
        arrays, loops = (lumped.number, lumped.strengths, leaving, where), self.links.loops
        for part in lumped.pieces(*arrays, beside=(loops, self._facts)):
            number, strengths, lost, base = (array[part] for array in arrays)
            rank.describe(number, strengths, lost, loops, base, self._damping, self._facts)

    def _contribute(self, values: Vector, factor: float, z: NDArray[Any]) -> None:
        lumped = self.lumped
        arrays = lumped.number, lumped.strengths, values
        for part in lumped.pieces(*arrays, beside=(z,)):
            rank.contribute(*(array[part] for array in arrays), factor, z)

    def _weigh(self, z: NDArray[Any]) -> tuple[float, float]:
        sums = np.zeros((2, 2))
        for part in pieces(0, self.lumped.core, z, self._facts):
            rank.weigh(z[part], self._facts[part], np.uint64(part.start), sums)
        mass, owed = sums.sum(axis=0).tolist()
        return mass, owed

    def _whole(self, z: NDArray[Any], where: Vector) -> Vector:
        """Return y for all nodes from the core's z. Dangling nodes are computed only here."""
        lumped, y = self.lumped, self.vector()
        arrays = lumped.number, lumped.strengths, lumped.degrees
        for part, sums in self._gathered(z, (*arrays, where, y), all_rows=False):
            y[part] = where[part]
            rank.expand(*(array[part] for array in arrays), z, sums, self._damping, y[part])
        return y

    # -- the residual of a vector -----------------------------------------------------------------

    def dangling_sum(self, values: Vector) -> float:
        """Return the sum of the dangling nodes' values."""
        return total(values, self.lumped.degrees)

    def residual(self, x: Vector, where: Vector, share: Vector) -> float:
        """Return ||G x - x||_1 for x with sum 1. Costs one pass over all links."""
        found = np.zeros(1)
        for part, sums, elsewhere in self.passed_on(x, where, share):
            rank.residual(self.lumped.degrees[part], sums, elsewhere - x[part], found)
        return float(found[0])

    def passed_on(
        self, x: Vector, where: Vector, share: Vector
    ) -> Iterator[tuple[slice, Vector, Vector]]:
        """Yield (nodes, rank along links, rank by teleport), the terms of G x, for pieces of all
        nodes. Releases the memory of pieces of the degrees and x after the caller has read them.
        """
        d, spread = self._damping, self.dangling_sum(x)
        z = self.lumped.contributions(np.float64)
        self._contribute(x, d, z)
        arrays = self.lumped.degrees, where, share, x
        for part, sums in self._gathered(z, arrays, all_rows=True):
            yield part, sums, (1 - d) * where[part] + d * spread * share[part]

    def _gathered(
        self, z: NDArray[Any], arrays: tuple[NDArray[Any], ...], all_rows: bool
    ) -> Iterator[tuple[slice, Vector]]:
        """Yield (nodes, what they receive along links) for pieces of all nodes. Releases the memory
        of z, and of the pieces of ``arrays`` that the caller has read.
        """
        on_disk = (*arrays, z) if self.lumped.room.blocks else ()
        for nodes, sums in self.links.gathered(z, all_rows):
            for part in pieces(nodes.start, nodes.stop, *on_disk[:-1], beside=on_disk[-1:]):
                yield part, sums[part.start - nodes.start : part.stop - nodes.start]


def _check_numbers(sweep: int, *sums: float) -> None:
    if not all(map(math.isfinite, sums)):
        raise NotConverged(
            f"ranks are not finite after sweep {sweep}: their sums are "
            f"{', '.join(map(str, sums))}. Use double precision, or smaller values for start"
        )
