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
``ranking/partitions.py``.

What is of all nodes, degrees, teleport, the solution, is with the conductor
(``ranking/solver.py``), in memory or in scratch files; links are with the blocks alone.

Source: Haveliwala, *Efficient computation of PageRank*, 3.2 (blocks); 001, 2.3.2 (distributed).

What one block does in PageRank over blocks that live apart (``ranking/partitions.py``).

It reads values of its own nodes and of those of others that link into it, and numbers them by
ascending id: below it, its own, above it. By these numbers its links are arranged as all links are
in memory (``kernels/rank.py``: those from above, then those from below, each ascending), so that a
row's sum has the same terms in the same order.

Cost: a pass over the links of the block a sweep. Memory: 8 bytes a link and 60 a node, and 12 for
each node of another block that it reads, or that reads it.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import Alone, WorkerPool
from cocite.errors import WorkerLost
from cocite.graph.partitions import BlockedGraph, GraphBlock
from cocite.ranking.core import NO_WEIGHTS, Flags, Lumped
from cocite.ranking.vectors import RankRoom, Vector, scale

_Rows = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.float32] | None]
_ZERO = np.uint64(0)


class RankBlock:
    """The links of one block, and the values that it reads."""

    def __init__(self, folder: str, digest: str, block: int, weighted: bool) -> None:
        """Open and check the block."""
        held = GraphBlock(folder, block, digest)
        self._first, self._last = held.first, held.last
        self._offsets, self._sources = held.offsets, held.sources
        weights = held.weights if weighted else None
        self._weights: NDArray[np.float32] = NO_WEIGHTS if weights is None else weights
        self._weighted = weights is not None
        # All nodes that are read, ascending: those below, the block's own, those above.
        border = np.unique(self._sources)
        below = border[border < self._first]
        above = border[border >= self._last]
        own = np.arange(self._first, self._last, dtype=np.uint32)
        self._read = np.concatenate([below, own, above])
        self._here = slice(below.size, below.size + own.size)

    # -- what links are counted for -----------------------------------------------------

    def border(self) -> NDArray[np.uint32]:
        """The nodes whose values it reads, ascending, its own among them."""
        return self._read

    def count(self, taken: NDArray[np.uint8], values: NDArray[Any], weights: bool) -> NDArray[Any]:
        """What ``rank.count_links``, or ``add_weights``, makes of the ``values`` of the nodes that
        it reads, by its rows that are ``taken``.
        """
        from cocite.kernels import rank

        found, taken = values.copy(), taken.copy()
        counted = rank.add_weights if weights else rank.count_links
        links = self._offsets, self._places(), self._weights
        counted(links, _ZERO, self._offsets[-1], taken, _ZERO, found)
        return found

    def _places(self) -> NDArray[np.uint32]:
        """The sources of all links, by their places among the nodes that are read."""
        return _sealed(np.searchsorted(self._read, self._sources).astype(np.uint32))

    # -- the core, arranged ----------------------------------------------------------------

    def arrange(self, degrees: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
        """Write the links of its core in the order of their sums, by the ``degrees`` of the nodes
        that it reads: the weights of the rows' links to themselves, and how many links come from
        nodes outside of the core.
        """
        from cocite.kernels import rank

        inside = (degrees != 0) & (degrees != rank.GONE)
        number = np.where(inside, np.cumsum(inside, dtype=np.uint32) - 1, rank.NO_NODE)
        number = number.astype(np.uint32)
        self._core_read: NDArray[np.uint32] = self._read[inside]
        begin = int(np.count_nonzero(inside[: self._here.start]))
        rows = int(np.count_nonzero(inside[self._here]))
        self._rows = slice(begin, begin + rows)
        self._own = number[self._here].copy()
        self._degrees = _sealed(degrees[self._here].copy())
        # Offsets of all nodes that are read, as if those of other blocks had no links.
        offsets = np.zeros(self._read.size + 1, np.uint64)
        offsets[self._here.start : self._here.stop + 1] = self._offsets
        offsets[self._here.stop + 1 :] = self._offsets[-1]
        links, edges = (_sealed(offsets), self._places(), self._weights), int(self._offsets[-1])
        loops = np.zeros(self._core_read.size, np.float32 if self._weighted else np.uint8)
        core = self._room(self._core_read.size, edges)
        lost = int(rank.compact(links, number, core, loops))
        self._loops = loops[self._rows].copy()
        self._upper, self._lower = self._parted(core)
        tails = np.full(self._read.size, rank.GONE, np.uint32)
        tails[self._here] = self._degrees
        found = self._room(int(np.count_nonzero(self._degrees == 0)), edges)
        lost += int(rank.compact_tails(links, tails, number, found))
        self._tails = found[0], found[1], found[2] if self._weighted else None
        return self._loops, lost

    def _room(self, rows: int, links: int) -> tuple[NDArray[Any], ...]:
        begins = np.empty(rows + 1, np.uint64)
        begins[0] = 0
        return begins, np.empty(links, np.uint32), np.empty(links * self._weighted, np.float32)

    def _parted(self, core: tuple[NDArray[Any], ...]) -> tuple[_Rows, _Rows]:
        """The rows' links from above, and those from below, each in order."""
        begins, links, weights = core
        begins = begins[self._rows.start : self._rows.stop + 1]
        size = int(begins[-1])
        row = np.repeat(np.arange(begins.size - 1), np.diff(begins).astype(np.int64))
        above = links[:size] > row + self._rows.start
        found = []
        for taken in (above, ~above):
            ends = np.zeros(begins.size, np.uint64)
            np.cumsum(np.bincount(row[taken], minlength=begins.size - 1), out=ends[1:])
            kept = weights[:size][taken] if self._weighted else None
            found.append((ends, links[:size][taken], kept))
        return found[0], found[1]

    # -- whom it sends values to ------------------------------------------------------------

    def wants(self, cuts: NDArray[np.uint32]) -> tuple[object, ...]:
        """How many nodes of other blocks' cores it reads; which, of each block, of its own none."""
        ends = np.searchsorted(self._core_read, cuts)
        found = [self._core_read[a:b] for a, b in pairwise(ends.tolist())]
        self._slots = [slice(a, b) for a, b in pairwise(ends.tolist())]
        own = int(np.searchsorted(cuts, self._first, side="right")) - 1
        found[own] = found[own][:0]
        return sum(nodes.size for nodes in found), *found

    def serves(self, *wanted: NDArray[np.uint32]) -> None:
        """Hear which of its nodes each block reads."""
        own = self._core_read[self._rows]
        self._served = [np.searchsorted(own, nodes).astype(np.uint32) for nodes in wanted]

    # -- sweeps -----------------------------------------------------------------------------

    def core(self) -> NDArray[np.uint32]:
        """The nodes of the core that it reads."""
        return self._core_read

    def begin(self, z: NDArray[Any], facts: Vector | None) -> None:
        """Take the values of :meth:`core`, and the facts of its rows if there are to be sweeps."""
        self._z, self._facts = z.copy(), None if facts is None else facts.copy()

    def _hear(self, values: tuple[NDArray[Any] | None, ...]) -> None:
        for slot, its in zip(self._slots, values, strict=True):
            if its is not None:
                self._z[slot] = its

    def settle(self, factor: float, *values: NDArray[Any] | None) -> None:
        """End a sweep: hear of other blocks' values; then all are multiplied by the ``factor``."""
        self._hear(values)
        if factor != 1.0:
            np.multiply(self._z, np.float64(factor), out=self._z, casting="same_kind")

    def above(self) -> None:
        """Begin a sweep: what rows get from above, by the values of the last one."""
        self._so_far = self._gathered(self._upper, np.zeros(self._loops.size))

    def sweep(
        self, first: int, damping: float, sums: Vector, *values: NDArray[Any] | None
    ) -> tuple[object, ...]:
        """The rest of a sweep, when blocks below are done: its sums float64[4], and its values for
        each block. ``first`` is the number of its first row in the whole core.
        """
        from cocite.kernels import rank

        self._hear(values)
        at = _ZERO, np.uint64(self._rows.start), np.uint64(first)
        found = sums.copy()
        rank.sweep(self._lower, at, self._so_far, self._z, self._facts, damping, found)
        own = self._z[self._rows]
        sent = [own[rows] if rows.size else None for rows in self._served]
        return found, *sent

    def _gathered(self, links: _Rows, sums: Vector) -> Vector:
        from cocite.kernels import rank

        rank.collect(links, _ZERO, links[0][-1], self._z, sums)
        return sums

    # -- what came of it ---------------------------------------------------------------------

    def own(self) -> NDArray[Any]:
        """The values of its rows."""
        return self._z[self._rows].copy()

    def gather(self, all_rows: bool) -> Vector:
        """float64[its nodes]: what they get by links, all of them or the dangling ones."""
        from cocite.kernels import rank

        sums = np.empty(self._degrees.size)
        rank.gather_tails(self._tails, self._degrees, self._z, sums)
        if all_rows:
            got = self._gathered(
                self._lower, self._gathered(self._upper, np.zeros(self._loops.size))
            )
            got += self._loops.astype(np.float64) * self._z[self._rows].astype(np.float64)
            sums[(self._degrees != 0) & (self._degrees != rank.GONE)] = got
        return sums


def _sealed(array: NDArray[Any]) -> NDArray[Any]:
    """No longer to be written to, as stored arrays are: to Numba these are other types."""
    array.flags.writeable = False
    return array


# -- apart -------------------------------------------------------------------------------


_LOSSES = 8
"""How often in a row somebody may be lost."""
_NODE, _LINK = 60 + 24, 8 + 12
"""Bytes that a block takes for each of its nodes and links, with borders, at most."""


class PartitionedCore(Lumped):
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
        self.crew: WorkerPool = (graph.crew or Alone)(RankBlock, arguments, most)
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
            except WorkerLost:
                self.crew.again()


class PartitionedLinks:
    """Sweeps over the links of a graph in blocks; ``resident.Resident`` does so in memory."""

    def __init__(self, lumped: PartitionedCore) -> None:
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
            except WorkerLost:
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
        """(nodes of a block, what their in-neighbors contribute by ``z``): of all, or of dangling
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
