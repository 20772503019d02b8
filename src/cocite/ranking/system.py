"""The linear system behind PageRank, (I - damping P') y = p, on one graph, in any memory.

The iteration runs on the core, the nodes with out-links (``kernels/rank.py``). Everything goes over
the graph in destination blocks. With enough memory there is one, and the core's links and facts
are arrays in memory; with less they are scratch files, read block after block in order, and what
stays in memory is

    z, the core's contributions (8 bytes a core node) + their numbers (4 a node) + the result (8)

The order of the arithmetic is the same in both, so the ranks are, to the bit.

Source: Haveliwala, *Efficient computation of PageRank*, 3.2 (blocks); the core: Lee, Golub,
Zenios 2003.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import cut_evenly
from cocite.graph.links import links_of
from cocite.memory import OWN_MEMORY, format_size
from cocite.ranking.stopping import State, StoppingRule
from cocite.store import Scratch, forget

__all__ = ["RankRoom", "Sweep", "System", "order_of", "plan_memory"]

Vector = NDArray[np.float64]
_LEAST_BLOCK = 16 << 20
_NODE, _ROW, _KEPT = 60, 40, 26
"""Bytes that stream by for each node and core row, the largest of all passes, and bytes of each
node that stay; the links stream by twice.
"""
_WEIGHT_NODE, _WEIGHT_KEPT = 8, 7
"""What weights add to them."""


@dataclass(frozen=True)
class RankRoom:
    """What a ranking takes: ``memory``; ``cuts``, the first node of every block but the first;
    ``scratch``, bytes on disk at most, 0 if everything is in memory.
    """

    memory: int
    cuts: tuple[int, ...] = ()
    scratch: int = 0

    def __str__(self) -> str:
        text = f"{format_size(self.memory + OWN_MEMORY)} of memory, which holds "
        if not self.scratch:
            return text + "the graph and the ranks"
        blocks = len(self.cuts) + 1
        return text + (
            f"the ranks but not the links: {blocks} block" + "s" * (blocks > 1) + " of the graph "
            f"one after another from disk, with up to {format_size(self.scratch)} of scratch there"
        )


class Sweep(NamedTuple):
    """One sweep made: its number, a bound on the L1 residual, and all of y when asked, which is to
    be before the next sweep.
    """

    number: int
    residual: float
    solution: Callable[[], Vector]


class System:
    """One graph, minus the nodes removed, and one damping. ``solve`` as often as needed.

    ``strengths`` is what a node's rank is divided by before it goes along a link: its out-degree.
    """

    weighted = False

    def __init__(
        self, graph: Graph, damping: float, removals: int, precision: str, memory: int
    ) -> None:
        if type(removals) is not int or removals < 0:
            raise UsageError(f"removals is {removals!r}; it is a whole number, 0 or more")
        self._graph, self._damping = graph, damping
        self._dtype = np.float32 if precision == "single" else np.float64
        room = plan_memory(graph, memory, self.weighted)
        self.cuts = room.cuts
        self.scratch = Scratch.beside(graph.path) if room.scratch else Scratch(None)
        self.degrees = self._remove(removals)
        self.strengths: NDArray[Any] = self.degrees
        self._number_core()

    # -- going over the graph ---------------------------------------------------------

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.uint64], np.uint64]]:
        """(nodes, their offsets, first node) of every block; gives it back when it is done."""
        graph = self._graph
        for low, high in pairwise((0, *self.cuts, graph.nodes)):
            yield slice(low, high), graph.in_offsets[low : high + 1], np.uint64(low)
            self.rest()

    def rest(self) -> None:
        """Give back all that can be read again."""
        if self.scratch.on_disk:
            graph = self._graph
            forget(graph.in_offsets, graph.in_sources, graph.out_degrees)
            forget(*(value for value in vars(self).values() if isinstance(value, np.ndarray)))

    def kept(self, values: Vector) -> Vector:
        """``values``, moved to where scratch lies."""
        if not self.scratch.on_disk:
            return values
        moved: Vector = self.scratch.zeros(values.size, np.float64)
        moved[:] = values
        forget(moved)
        return moved

    def gone(self) -> NDArray[np.bool_]:
        """Which nodes were removed."""
        from cocite.kernels import rank

        return np.asarray(self.degrees == rank.GONE)

    # -- setting up ---------------------------------------------------------------------

    def _remove(self, removals: int) -> NDArray[np.uint32]:
        """The out-degrees of what is left after ``removals`` removals; GONE for what is not."""
        from cocite.kernels import rank

        graph = self._graph
        if removals == 0:
            return graph.out_degrees
        degrees = self.scratch.zeros(graph.nodes, np.uint32)
        degrees[:] = graph.out_degrees
        self.degrees = degrees
        for _ in range(removals):
            gone = degrees == 0
            degrees -= self._links_to(gone)
            degrees[gone] = rank.GONE
            if not gone.any():
                break
        if (degrees == rank.GONE).all():
            raise UsageError(
                f"{removals} removals of dangling nodes leave nothing of {graph.path}; take fewer, "
                "or another way with dangling nodes"
            )
        return degrees

    def _links_to(self, gone: NDArray[np.bool_]) -> NDArray[np.uint32]:
        from cocite.kernels import rank

        lost = np.zeros(self._graph.nodes, np.uint32)
        for nodes, offsets, _ in self._blocks():
            rank.lose_links(offsets, self._graph.in_sources, gone[nodes].view(np.uint8), lost)
        return lost

    def _number_core(self) -> None:
        from cocite.kernels import rank

        graph, scratch = self._graph, self.scratch
        self.number = np.empty(graph.nodes, np.uint32)
        self.core = int(rank.number_core(self.degrees, self.number))
        self.rows = scratch.zeros(self.core + 1, np.uint64)
        self.links = scratch.zeros(graph.edges, np.uint32)
        self.loops = np.empty(self.core, np.uint8)
        state = np.zeros(2, np.uint64)
        for nodes, offsets, first in self._blocks():
            del nodes
            rank.compact(
                offsets,
                graph.in_sources,
                self.number,
                first,
                state,
                self.rows,
                self.links,
                self.loops,
            )
        per_block = -(-self.core // (len(self.cuts) + 1)) if self.core else 0
        self.core_cuts = [min(i * per_block, self.core) for i in range(len(self.cuts) + 2)]
        self.facts: NDArray[Any] = np.empty((0, rank.FACTS))

    def _describe(self, where: Vector) -> None:
        """The facts of the core's rows for the teleport ``where``."""
        from cocite.kernels import rank

        leaving = self._leaving()
        if self.facts.shape[0] != self.core:
            self.facts = self.scratch.zeros((self.core, rank.FACTS), np.float64)
        for nodes, _, _ in self._blocks():
            rank.describe(
                self.number[nodes],
                self.strengths[nodes],
                leaving[nodes],
                self.loops,
                where[nodes],
                self._damping,
                self.facts,
            )

    def _leaving(self) -> NDArray[Any]:
        """What of each node's strength goes to dangling nodes."""
        return self._links_to(self.degrees == 0)

    # -- solving --------------------------------------------------------------------------

    def sweeps(self, where: Vector, guess: Vector | None) -> Iterator[Sweep]:
        """Every sweep of the iteration for teleport ``where`` (sum 1), without end.

        Only a sweep of number 0, the solution, where there is nothing to iterate.
        """
        self._describe(where)
        z: NDArray[Any] = np.zeros(self.core, self._dtype)
        self._contribute(where if guess is None else guess, 1.0, z)
        mass, owed = self._weigh(z)
        if owed == 0:  # nobody starts in the core, and dangling nodes lead nowhere
            z[:] = 0
            yield Sweep(0, 0.0, lambda: self._whole(z, where))
            return
        if mass > 0:
            np.multiply(z, owed / mass, out=z)  # ranks sum to 1, y to more
        # Within the rounding of its sums a balance would only add noise: residuals would end at
        # some 1e-14 (7e-15 on web-NotreDame) instead of falling to nothing.
        rounding = 8 * np.finfo(np.float64).eps * math.sqrt(self.core)
        for number in count(1):
            sums = np.zeros(4)
            for low, high in pairwise(self.core_cuts):
                self._sweep(low, high, z, sums)
                self.rest()
            change, reach, mass = sums[0], sums[1], sums[2] + sums[3]
            balance = owed / mass
            if abs(balance - 1) > rounding:
                np.multiply(z, balance, out=z)
            else:
                balance = 1.0
            size = reach * balance + (1 - owed)  # the sum of y, dangling nodes included
            residual = 2 * self._damping * change * balance / size
            yield Sweep(number, residual, lambda: self._whole(z, where))

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

    def _sweep(self, low: int, high: int, z: NDArray[Any], sums: Vector) -> None:
        from cocite.kernels import rank

        rank.sweep(
            self.rows[low : high + 1],
            self.links,
            z,
            self.facts[low:high],
            np.uint64(low),
            self._damping,
            sums,
        )

    def _contribute(self, values: Vector, factor: float, z: NDArray[Any]) -> None:
        from cocite.kernels import rank

        for nodes, _, _ in self._blocks():
            rank.contribute(self.number[nodes], self.strengths[nodes], values[nodes], factor, z)
            forget(values) if self.scratch.on_disk else None

    def _weigh(self, z: NDArray[Any]) -> tuple[float, float]:
        from cocite.kernels import rank

        sums = np.zeros((2, 2))
        for low, high in pairwise(self.core_cuts):
            rank.weigh(z, self.facts[low:high], np.uint64(low), sums)
            self.rest()
        mass, owed = sums.sum(axis=0).tolist()
        return mass, owed

    def _whole(self, z: NDArray[Any], where: Vector) -> Vector:
        """All of y from the core's z: dangling nodes are computed here, once."""
        y = np.empty(self._graph.nodes)
        for nodes, offsets, _ in self._blocks():
            y[nodes] = where[nodes]
            self._expand(nodes, offsets, z, y[nodes])
            forget(where) if self.scratch.on_disk else None
        return y

    def _expand(
        self, nodes: slice, offsets: NDArray[np.uint64], z: NDArray[Any], y: Vector
    ) -> None:
        from cocite.kernels import rank

        rank.expand(
            offsets,
            self._graph.in_sources,
            self.number,
            z,
            self.degrees[nodes],
            np.uint64(nodes.start),
            self._damping,
            y,
        )

    def dangling_sum(self, values: Vector) -> float:
        """The sum over dangling nodes."""
        return float(values[self.degrees == 0].sum())

    def step(self, x: Vector, where: Vector, share: Vector) -> Vector:
        """G x for x with sum 1, a step of power iteration: one pass over all links."""
        from cocite.kernels import rank

        d, spread = self._damping, self.dangling_sum(x)
        z = np.zeros(self.core)
        self._contribute(x, d, z)
        following = np.empty(self._graph.nodes)
        for nodes, offsets, _ in self._blocks():
            following[nodes] = (1 - d) * where[nodes] + d * spread * share[nodes]
            rank.step(
                offsets,
                self._graph.in_sources,
                self.number,
                z,
                self.degrees[nodes],
                following[nodes],
            )
            forget(where, share) if self.scratch.on_disk else None
        return following

    def residual(self, x: Vector, where: Vector, share: Vector) -> float:
        """||G x - x||_1 for x with sum 1: one pass over all links."""
        d, spread = self._damping, self.dangling_sum(x)
        z = np.zeros(self.core)
        self._contribute(x, d, z)
        sums = np.zeros(1)
        for nodes, offsets, _ in self._blocks():
            rest = (1 - d) * where[nodes] + d * spread * share[nodes] - x[nodes]
            self._add_residual(nodes, offsets, z, rest, sums)
            forget(where, share) if self.scratch.on_disk else None
        return float(sums[0])

    def _add_residual(
        self, nodes: slice, offsets: NDArray[np.uint64], z: Vector, rest: Vector, sums: Vector
    ) -> None:
        from cocite.kernels import rank

        rank.residual(
            offsets, self._graph.in_sources, self.number, z, self.degrees[nodes], rest, sums
        )


def order_of(values: Vector, k: int) -> NDArray[np.int64]:
    """The ids of the k largest values, largest first, ties by id."""
    k = min(k, values.size)
    least = np.partition(values, values.size - k)[values.size - k]
    ids = np.flatnonzero(values >= least)
    return ids[np.lexsort((ids, -values[ids]))][:k]


def plan_memory(graph: Graph, memory: int, weighted: bool = False) -> RankRoom:
    """Whether all is in memory, and else the blocks.

    Raises :class:`ResourceError` if not even the vectors fit.
    """
    nodes = graph.nodes
    links = links_of(graph, "in", weighted=weighted)
    streamed = (_NODE + _ROW + weighted * _WEIGHT_NODE) * nodes + 2 * links.link_bytes * links.edges
    resident = (_KEPT + weighted * _WEIGHT_KEPT) * nodes
    if resident + streamed <= memory:
        return RankRoom(resident + streamed)
    room = memory - resident
    if room < min(_LEAST_BLOCK, streamed):
        needed = format_size(resident + min(_LEAST_BLOCK, streamed))
        raise ResourceError(
            f"the ranks of {nodes:,} nodes need {needed} of memory, however many blocks; "
            f"{format_size(memory)} may be used. Give more with --memory"
        )
    each = _ROW + 20 + weighted * _WEIGHT_NODE  # and two teleports, degrees
    scratch = each * nodes + links.link_bytes * links.edges
    return RankRoom(memory, cut_evenly(links, -(-streamed // room)), scratch)
