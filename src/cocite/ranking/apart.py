"""PageRank of a graph in blocks that each live somewhere: messages of values at block borders.

    a sweep      every block: what its rows get from sources above them, by the values of the last
                 sweep, all blocks at a time; then block after block, ascending: what they get from
                 sources below, by the values of this sweep, and the new values of its rows
    a message    for each pair of blocks, and each node of the one that links into the other: its
                 value, once, however many links it has there

It is the Gauss-Seidel sweep of ``kernels/rank.py``: a row's sum takes the sources above it in
ascending order, then those below it, and each block numbers what it reads so that this is the order
of its links. So sums, and ranks, are those of one machine, to the bit, whatever the blocks; the
price is that what rows get from below is added up by one block at a time. What a block does is in
``apart_block.py``.

What is of all nodes, degrees, teleport, the solution, is with the conductor (``system.py``), in
memory or in scratch files; links are with the blocks alone.

Source: Haveliwala, *Efficient computation of PageRank*, 3.2 (blocks); 001, 2.3.2 (distributed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import LostWorker
from cocite.graph.in_blocks import BlockedGraph
from cocite.ranking.apart_block import RankBlock
from cocite.ranking.lumping import Flags, Lumped
from cocite.ranking.room import RankRoom
from cocite.ranking.vectors import Vector, scale
from cocite.runner.crew import Alone, Crew

__all__ = ["Apart", "LumpedApart"]

_LOSSES = 8
"""How often in a row somebody may be lost."""
_NODE, _LINK = 60 + 24, 8 + 12
"""Bytes that a block takes for each of its nodes and links, with borders, at most."""


class LumpedApart(Lumped):
    """As :class:`Lumped`; what is counted of links is counted where they are."""

    def __init__(self, graph: BlockedGraph, removals: int, weighted: bool, room: RankRoom) -> None:
        heavy = weighted and graph.weighted
        offsets = graph.in_offsets
        most = max(
            _NODE * (last - first) + _LINK * int(offsets[last] - offsets[first])
            for first, last in pairwise(graph.cuts)
        )
        folder = str(graph.path.absolute())
        arguments = [(folder, graph.digest, block, heavy) for block in range(graph.blocks)]
        self.crew: Crew = (graph.crew or Alone)(RankBlock, arguments, most)
        self.cuts = graph.cuts
        super().__init__(graph, removals, weighted, room)

    def _counts(
        self, taken: Callable[[NDArray[np.uint32]], Flags], weights: bool = False
    ) -> NDArray[Any]:
        """Block after block, as weights are added in order of destination."""
        found = self.scratch.zeros(self.nodes, np.float64 if weights else np.uint32)
        for block, (first, last) in enumerate(pairwise(self.cuts)):
            flags = taken(self.degrees[first:last]).view(np.uint8)
            if flags.any():
                border, counted = self._counted(block, flags, found, weights)
                found[border] = counted
            self.rest(found)
        return found

    def _counted(
        self, block: int, flags: NDArray[np.uint8], found: NDArray[Any], weights: bool
    ) -> list[NDArray[Any]]:
        while True:
            try:
                border = self.crew.take(self.crew.call(block, "border"))[0]
                asked = self.crew.call(block, "count", flags, found[border], weights)
                return [border, self.crew.take(asked)[0]]
            except LostWorker:
                self.crew.again()


class Apart:
    """Sweeps over the links of a graph in blocks; ``resident.Resident`` does so in memory."""

    def __init__(self, lumped: LumpedApart) -> None:
        self._lumped, self._crew = lumped, lumped.crew
        self.blocks = self._crew.size
        self._cuts = np.array(lumped.cuts, np.uint32)
        self.values = 0
        """Values that are sent a sweep."""
        self.sent = 0
        """Bytes of values that were sent."""
        self._z: NDArray[Any] | None = None
        self._log: list[float] = []
        self._losses = 0
        self.loops: NDArray[Any] = np.empty(0, np.uint8)
        self._first = [0, *self._rows_before()]
        self._again(self._arrange, lambda: None)

    def _rows_before(self) -> list[int]:
        """Rows of the core before the end of each block."""
        from cocite.kernels import rank

        counts = []
        for first, last in pairwise(self._lumped.cuts):
            counts.append(int(np.count_nonzero(self._lumped.number[first:last] != rank.NO_NODE)))
            self._lumped.rest(self._lumped.number)
        return list(accumulate(counts))

    # -- asking the blocks, again if one was lost ----------------------------------------------

    def _again(self, work: Callable[[], Any], restore: Callable[[], None]) -> Any:
        """What ``work`` finds; if somebody is lost meanwhile, it is done again once ``restore`` has
        made all as it was before.
        """
        lost = False
        while True:
            try:
                if lost:
                    restore()
                found = work()
                self._losses = 0
                return found
            except LostWorker:
                self._losses, lost = self._losses + 1, True
                if self._losses > _LOSSES:
                    raise
                self._crew.again()

    def _all(self, method: str, *arguments: Any, answers: int = 1) -> list[list[Any]]:
        return [
            self._crew.call(block, method, *arguments, answers=answers)
            for block in range(self.blocks)
        ]

    def _arrange(self) -> None:
        crew, degrees, lost, loops = self._crew, self._lumped.degrees, 0, []
        for block in range(self.blocks):
            border = crew.take(crew.call(block, "border"))[0]
            asked = crew.call(block, "arrange", degrees[border])
            self._lumped.rest(degrees)
            mine, strange = crew.take(asked)[0]
            loops.append(mine)
            lost += strange
        self._lumped.check_sources(lost)
        self.loops = np.concatenate(loops)
        wanted = self._all("wants", self._cuts, answers=1 + self.blocks)
        for block in range(self.blocks):
            crew.call(block, "serves", *(each[1 + block] for each in wanted))
        self.values = sum(crew.take([each[0] for each in wanted]))
        self._nothing()

    def _nothing(self) -> None:
        """No values are on their way."""
        self._sent: list[list[Any]] = [[None] * self.blocks for _ in range(self.blocks)]
        self._factor = 1.0

    def _begin(self, z: NDArray[Any], facts: Vector | None) -> None:
        number = self._lumped.number
        for block in range(self.blocks):
            nodes = self._crew.take(self._crew.call(block, "core"))[0]
            rows = slice(self._first[block], self._first[block + 1])
            its = None if facts is None else np.ascontiguousarray(facts[rows])
            begun = self._crew.call(block, "begin", z[number[nodes]], its)
            self._lumped.rest(number)
            self._crew.take(begun)
        self._nothing()

    def _restore(self) -> None:
        """Make the blocks what they were: from the values that are here, by the sweeps since."""
        self._arrange()
        if self._z is not None:
            self._begin(self._z, self._facts)
            for factor in self._log:
                self._swept(np.zeros(4))
                self._factor = factor

    # -- what the system asks ------------------------------------------------------------------

    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """Gauss-Seidel over all rows. Values stay with the blocks: ``z`` has them when something
        is ``gathered``. What is added to ``sums``: ``rank.sweep``.
        """
        if self._z is not z:
            self._z, self._facts, self._damping, self._log = z, facts, damping, []
            self._again(lambda: self._begin(z, facts), self._restore)
        sums += self._again(lambda: self._swept(np.zeros(4)), self._restore)
        self._log.append(1.0)

    def _swept(self, sums: Vector) -> Vector:
        crew = self._crew
        before, now = self._sent, [[None] * self.blocks for _ in range(self.blocks)]
        for block in range(self.blocks):
            heard = [
                before[other][block] if other > block else None for other in range(self.blocks)
            ]
            crew.call(block, "settle", self._factor, *heard)
            crew.call(block, "above")
        carried: Any = sums
        for block in range(self.blocks):
            heard = [now[other][block] if other < block else None for other in range(self.blocks)]
            carried, *sent = crew.call(
                block,
                "sweep",
                self._first[block],
                self._damping,
                carried,
                *heard,
                answers=1 + self.blocks,
            )
            now[block] = sent
        found: Vector = crew.take([carried])[0]
        assert self._z is not None
        self._sent, self._factor = now, 1.0
        self.sent += self.values * self._z.itemsize
        return found

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply all of ``z`` by ``factor``, wherever it is."""
        if self._z is z:
            self._factor = self._log[-1] = factor
        else:
            scale(z, factor)

    def bring(self, z: NDArray[Any]) -> None:
        """Have ``z`` here as the last sweep left it: what is lost later is made from that."""
        self._again(lambda: self._settle(z), self._restore)
        self._log = []

    def replaced(self, z: NDArray[Any]) -> None:
        """Hear that ``z`` is another one: the next sweep tells the blocks."""
        self._z = None

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """(nodes of a block, what their in-neighbours contribute by ``z``): of all, or of dangling
        ones.
        """
        sweeping = self._z is z
        if sweeping:
            self.bring(z)
        else:
            self._z = None
            self._again(lambda: self._begin(z, None), self._arrange)

        def restore() -> None:
            self._restore()
            if not sweeping:
                self._begin(z, None)

        def gather(block: int) -> Vector:
            found: Vector = self._crew.take(self._crew.call(block, "gather", all_rows))[0]
            return found

        for block, (first, last) in enumerate(pairwise(self._lumped.cuts)):
            yield slice(first, last), self._again(partial(gather, block), restore)

    def _settle(self, z: NDArray[Any]) -> None:
        """Bring the values of all blocks here, and to each other."""
        for block in range(self.blocks):
            heard = [self._sent[o][block] if o > block else None for o in range(self.blocks)]
            self._crew.call(block, "settle", self._factor, *heard)
        parts = self._crew.take([each[0] for each in self._all("own")])
        for block, part in enumerate(parts):
            z[self._first[block] : self._first[block + 1]] = part
        self._nothing()
