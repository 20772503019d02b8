"""PageRank of a graph in blocks that each live somewhere: messages of values at block borders.

    a sweep      every block: what its rows get from sources above them, by the values of the last
                 sweep, all blocks at a time; then block after block, ascending: what they get from
                 sources below, by the values of this sweep, and the new values of its rows
    a message    the values at the border of two blocks (``engine/border.py``)

It is the Gauss-Seidel sweep of ``kernels/rank.py``: a row's sum takes the sources above it in
ascending order, then those below it, and each block numbers the nodes that it reads so that this is
the order of its links. So sums, and ranks, are those of one machine, to the bit, whatever the
blocks; the price is that what rows get from below is added up by one block at a time.

Links are with the blocks alone. What is of all nodes, degrees, teleport, the solution, is with the
conductor (``ranking/solver.py``), in memory or in scratch files.

Cost of a block: a pass over its links a sweep. Memory: 8 bytes a link and 60 a node, and 12 for
each node of another block that it reads, or that reads it.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2 (blocks); 001, 2.3.2 (distributed).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import Alone, WorkerPool
from cocite.engine.border import Border, BorderWorker, connect
from cocite.errors import WorkerLost
from cocite.graph.partitions import BlockedGraph, GraphBlock
from cocite.ranking.blocks import CoreLinks, Rows, compacted
from cocite.ranking.core import NO_WEIGHTS, Flags, Lumped
from cocite.ranking.vectors import RankRoom, Vector, scale

T = TypeVar("T")
_ZERO = np.uint64(0)


class RankBlock(BorderWorker):
    """The links of one block, and the values that it reads.

    ``border`` is that of its core, when its links are arranged.
    """

    def __init__(
        self, folder: str, digest: str, block: int, weighted: bool, cuts: NDArray[np.uint32]
    ) -> None:
        """Open and check the block."""
        store = GraphBlock(folder, block, digest)
        self._offsets, self._sources = store.offsets, store.sources
        weights = store.weights if weighted else None
        self._weights: NDArray[np.float32] = NO_WEIGHTS if weights is None else weights
        self._whole = Border.of(store.sources, store.first, cuts)

    # -- what links are counted for -----------------------------------------------------

    def nodes(self) -> NDArray[np.uint32]:
        """The nodes whose values it reads, ascending, its own among them."""
        return self._whole.reads

    def count(self, taken: NDArray[np.uint8], values: NDArray[Any], weights: bool) -> NDArray[Any]:
        """What ``rank.add_links`` makes of the ``values`` of the nodes that it reads, by its rows
        that are ``taken``, with or without the weights.
        """
        from cocite.kernels import rank

        found, taken = values.copy(), taken.copy()
        places = self._whole.places(self._sources)
        links = self._offsets, places, self._weights if weights else None
        rank.add_links(links, _ZERO, self._offsets[-1], taken, _ZERO, found)
        return found

    # -- the core, arranged ----------------------------------------------------------------

    def arrange(self, degrees: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
        """Write the links of its core in the order of their sums, by the ``degrees`` of the nodes
        that it reads: the weights of the rows' links to themselves, and how many links come from
        nodes outside of the core.
        """
        from cocite.kernels import rank

        inside, own = (degrees != 0) & (degrees != rank.GONE), self._whole.own
        self.border = self._whole.restricted(inside)
        number = np.where(inside, np.cumsum(inside, dtype=np.uint32) - 1, rank.NO_NODE)
        number = number.astype(np.uint32)
        self._degrees = degrees[own].copy()
        # All nodes that are read, as if those of other blocks had no links and were not dangling.
        offsets = np.zeros(degrees.size + 1, np.uint64)
        offsets[own.start : own.stop + 1] = self._offsets
        offsets[own.stop + 1 :] = self._offsets[-1]
        tails = np.full(degrees.size, rank.GONE, np.uint32)
        tails[own] = self._degrees
        links = offsets, self._whole.places(self._sources), self._weights
        core, self._tails, loops, lost = compacted(links, tails, number, self.border.reads.size)
        self._loops = loops[self.border.own].copy()
        self._upper, self._lower = self._parted(core)
        return self._loops, lost

    def _parted(self, core: Rows) -> tuple[Rows, Rows]:
        """The rows' links from above, and those from below, each in order."""
        begins, links, weights = core
        rows = self.border.own
        begins = begins[rows.start : rows.stop + 1]
        size = int(begins[-1])
        row = np.repeat(np.arange(begins.size - 1), np.diff(begins).astype(np.int64))
        above = links[:size] > row + rows.start
        found: list[Rows] = []
        for taken in (above, ~above):
            ends = np.zeros(begins.size, np.uint64)
            np.cumsum(np.bincount(row[taken], minlength=begins.size - 1), out=ends[1:])
            kept = None if weights is None else weights[:size][taken]
            found.append((ends, links[:size][taken], kept))
        return found[0], found[1]

    def core(self) -> NDArray[np.uint32]:
        """The nodes of the core that it reads."""
        return self.border.reads

    # -- sweeps -----------------------------------------------------------------------------

    def begin(self, z: NDArray[Any], facts: Vector | None) -> None:
        """Take the values of :meth:`core`, and the facts of its rows if there are to be sweeps."""
        self._z, self._facts = z.copy(), None if facts is None else facts.copy()

    def settle(self, factor: float, *messages: NDArray[Any] | None) -> None:
        """End a sweep: take other blocks' values; then multiply all by the ``factor``."""
        self.border.receive(messages, self._z)
        if factor != 1.0:
            np.multiply(self._z, np.float64(factor), out=self._z, casting="same_kind")

    def above(self) -> None:
        """Begin a sweep: what rows get from above, by the values of the last one."""
        self._so_far = self._gathered(self._upper, np.zeros(self._loops.size))

    def sweep(
        self, first: int, damping: float, sums: Vector, *messages: NDArray[Any] | None
    ) -> tuple[object, ...]:
        """The rest of a sweep, when blocks below are done: its sums float64[4], and its values for
        each block. ``first`` is the number of its first row in the whole core.
        """
        from cocite.kernels import rank

        self.border.receive(messages, self._z)
        at = _ZERO, np.uint64(self.border.own.start), np.uint64(first)
        found = sums.copy()
        rank.sweep(self._lower, at, self._so_far, self._z, self._facts, damping, found)
        return found, *self.border.messages(self._z[self.border.own])

    def _gathered(self, links: Rows, sums: Vector) -> Vector:
        from cocite.kernels import rank

        rank.collect(links, _ZERO, links[0][-1], self._z, sums)
        return sums

    # -- results -----------------------------------------------------------------------------

    def own(self) -> NDArray[Any]:
        """The values of its rows."""
        return self._z[self.border.own].copy()

    def gather(self, all_rows: bool) -> Vector:
        """float64[its nodes]: what they get by links, all of them or the dangling ones."""
        from cocite.kernels import rank

        sums = np.empty(self._degrees.size)
        rank.gather_tails(self._tails, self._degrees, self._z, sums)
        if all_rows:
            self.above()
            got = self._gathered(self._lower, self._so_far)
            got += self._loops.astype(np.float64) * self.own().astype(np.float64)
            sums[(self._degrees != 0) & (self._degrees != rank.GONE)] = got
        return sums


# -- conductor ---------------------------------------------------------------------------


_LOSSES = 8
"""How often workers may be lost during one piece of work."""
_NODE, _LINK = 60 + 24, 8 + 12
"""Bytes that a block takes for each of its nodes and links, with borders, at most."""


def _retried(crew: WorkerPool, work: Callable[[], T], restore: Callable[[], Any]) -> T:
    """Return the result of ``work``; if a worker is lost meanwhile, repeat it once ``restore`` has
    made all as it was before.
    """
    losses = 0
    while True:
        try:
            if losses:
                restore()
            return work()
        except WorkerLost:
            losses += 1
            if losses > _LOSSES:
                raise
            crew.again()


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
        cuts = np.array(graph.cuts, np.uint32)
        arguments = [(folder, graph.digest, block, heavy, cuts) for block in range(graph.blocks)]
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
    ) -> tuple[NDArray[np.uint32], NDArray[Any]]:
        crew = self.crew

        def work() -> tuple[NDArray[np.uint32], NDArray[Any]]:
            nodes = crew.take(crew.call(block, "nodes"))[0]
            counted = crew.call(block, "count", flags, found[nodes], weights)
            return nodes, crew.take(counted)[0]

        return _retried(crew, work, lambda: None)


class PartitionedLinks(CoreLinks):
    """The links of a graph in blocks, which are with their workers."""

    def __init__(self, lumped: PartitionedCore) -> None:
        self._lumped, self._crew = lumped, lumped.crew
        self.blocks = self._crew.size
        self.values = 0
        """Values that are sent a sweep."""
        self.sent: int = 0
        self._z: NDArray[Any] | None = None
        self._log: list[float] = []
        self.loops: NDArray[Any] = np.empty(0, np.uint8)
        self._first = [0, *self._rows_before()]
        _retried(self._crew, self._arrange, lambda: None)

    def _rows_before(self) -> list[int]:
        """Rows of the core before the end of each block."""
        from cocite.kernels import rank

        counts = []
        for first, last in pairwise(self._lumped.cuts):
            counts.append(int(np.count_nonzero(self._lumped.number[first:last] != rank.NO_NODE)))
            self._lumped.rest(self._lumped.number)
        return list(accumulate(counts))

    # -- the state of the workers ----------------------------------------------------------------

    def _arrange(self) -> None:
        crew, degrees, lost, loops = self._crew, self._lumped.degrees, 0, []
        for block in range(self.blocks):
            border = crew.take(crew.call(block, "nodes"))[0]
            asked = crew.call(block, "arrange", degrees[border])
            self._lumped.rest(degrees)
            mine, strange = crew.take(asked)[0]
            loops.append(mine)
            lost += strange
        self._lumped.check_sources(lost)
        self.loops = np.concatenate(loops)
        self.values = connect(crew)
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

    # -- what the system calls ------------------------------------------------------------------

    def sweep(self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector) -> None:
        """Gauss-Seidel over all rows. Values stay with the blocks: ``z`` has them when something
        is ``gathered``. What is added to ``sums``: ``rank.sweep``.
        """
        if self._z is not z:
            self._z, self._facts, self._damping, self._log = z, facts, damping, []
            _retried(self._crew, lambda: self._begin(z, facts), self._restore)
        sums += _retried(self._crew, lambda: self._swept(np.zeros(4)), self._restore)
        self._log.append(1.0)

    def _swept(self, sums: Vector) -> Vector:
        crew = self._crew
        before, now = self._sent, [[None] * self.blocks for _ in range(self.blocks)]
        for block in range(self.blocks):
            messages = [
                before[other][block] if other > block else None for other in range(self.blocks)
            ]
            crew.call(block, "settle", self._factor, *messages)
            crew.call(block, "above")
        carried: Any = sums
        for block in range(self.blocks):
            messages = [
                now[other][block] if other < block else None for other in range(self.blocks)
            ]
            carried, *sent = crew.call(
                block,
                "sweep",
                self._first[block],
                self._damping,
                carried,
                *messages,
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

    def fetch(self, z: NDArray[Any]) -> None:
        """Bring the values of the last sweep here: workers lost later begin with them."""
        _retried(self._crew, lambda: self._settle(z), self._restore)
        self._log = []

    def replaced(self, z: NDArray[Any]) -> None:
        """The next sweep sends ``z`` to the blocks."""
        self._z = None

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """(nodes of a block, what their in-neighbors contribute by ``z``): of all, or of dangling
        ones.
        """
        sweeping = self._z is z
        if sweeping:
            self.fetch(z)
        else:
            self._z = None
            _retried(self._crew, lambda: self._begin(z, None), self._arrange)

        def restore() -> None:
            self._restore()
            if not sweeping:
                self._begin(z, None)

        def gather(block: int) -> Vector:
            found: Vector = self._crew.take(self._crew.call(block, "gather", all_rows))[0]
            return found

        for block, (first, last) in enumerate(pairwise(self._lumped.cuts)):
            yield slice(first, last), _retried(self._crew, partial(gather, block), restore)

    def _settle(self, z: NDArray[Any]) -> None:
        """Bring the values of all blocks here, and to each other."""
        for block in range(self.blocks):
            messages = [self._sent[o][block] if o > block else None for o in range(self.blocks)]
            self._crew.call(block, "settle", self._factor, *messages)
        parts = self._crew.take([self._crew.call(b, "own")[0] for b in range(self.blocks)])
        for block, part in enumerate(parts):
            z[self._first[block] : self._first[block + 1]] = part
        self._nothing()
