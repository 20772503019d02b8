"""PageRank on a partitioned graph, whose blocks exchange values at their borders.

    sweep        all blocks at once add what their rows receive from sources above, with the values
                 of the previous sweep; then one block after another, ascending, adds what its rows
                 receive from sources below, with the values of this sweep
    message      the values at the border of two blocks (``engine/partitions.py``)

A row's sum adds the sources above the row in ascending order, then those below, so ranks are
bit-identical to those on one machine. The workers hold the links; the coordinating process
(``ranking/solver.py``) holds degrees, teleport and solution. A block takes 8 bytes per link, 60 per
node, and 12 for each node of another block that it reads or that reads it. Source: Haveliwala,
*Efficient computation of PageRank*, section 3.2; Fogaras, Racz, *Scaling link-based similarity
search*, section 2.3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import Alone, Team, WorkerPool
from cocite.engine.partitions import Border, BorderWorker, connect
from cocite.errors import WorkerLost
from cocite.graph.partitions import BlockedGraph, GraphBlock
from cocite.kernels import rank
from cocite.ranking.blocks import CoreLinks, MemoryBlock
from cocite.ranking.core import NO_WEIGHTS, Flags, Lumped
from cocite.ranking.vectors import RankRoom, Vector, scale

T = TypeVar("T")
_ZERO = np.uint64(0)


class RankBlock(BorderWorker):
    """The links of one block and the values that they read.

    ``border`` is the border of the block's core rows, set by :meth:`arrange`.
    """

    def __init__(
        self, folder: str, digest: str, block: int, weighted: bool, cuts: NDArray[np.uint32]
    ) -> None:
        """Open and validate the block."""
        store = GraphBlock(folder, block, digest)
        self._offsets, weights = store.offsets, store.weights if weighted else None
        self._weights: NDArray[np.float32] = NO_WEIGHTS if weights is None else weights
        self._whole = Border.of(store.sources, store.first, cuts)
        self._places = partial(self._whole.places, store.sources)

    # -- counting links, arranging them -----------------------------------------------------

    def nodes(self) -> NDArray[np.uint32]:
        """Return the nodes whose values the block reads, ascending, including its own."""
        return self._whole.reads

    def count(self, taken: NDArray[np.uint8], values: NDArray[Any], weights: bool) -> NDArray[Any]:
        """Return ``values``, one for each of :meth:`nodes`, plus the number of the node's links to
        ``taken`` rows, or the sum of the links' ``weights`` (``rank.add_links``).
        """
        found, taken = values.copy(), taken.copy()
        links = self._offsets, self._places(), self._weights if weights else None
        rank.add_links(links, _ZERO, self._offsets[-1], taken, _ZERO, found)
        return found

    def arrange(self, degrees: NDArray[np.uint32]) -> tuple[NDArray[Any], int]:
        """Arrange the links of core rows in the order of their sums, given the ``degrees`` of
        :meth:`nodes`. Return the weights of the rows' self-loops, and the number of links from
        nodes outside the core.
        """
        inside, own = (degrees != 0) & (degrees != rank.GONE), self._whole.own
        self.border = self._whole.restricted(inside)
        number = np.where(inside, np.cumsum(inside, dtype=np.uint32) - 1, rank.NO_NODE)
        # Treat nodes of other blocks as nodes that have no in-links, but are not dangling.
        offsets = np.zeros(degrees.size + 1, np.uint64)
        offsets[own.start : own.stop + 1] = self._offsets
        offsets[own.stop + 1 :] = self._offsets[-1]
        tails = np.full(degrees.size, rank.GONE, np.uint32)
        tails[own] = degrees[own]
        links, core = (offsets, self._places(), self._weights), self.border.reads.size
        own_rows = self.border.own
        self._links = MemoryBlock(links, tails, number.astype(np.uint32), core, own_rows)
        return self._links.loops.copy(), self._links.lost

    def core(self) -> NDArray[np.uint32]:
        """Return the core nodes whose values the block reads."""
        return self.border.reads

    # -- sweeps -----------------------------------------------------------------------------

    def begin(self, z: NDArray[Any], facts: Vector | None) -> None:
        """Set the values of :meth:`core` and, if sweeps follow, the facts of the block's rows."""
        self._z, self._facts = z.copy(), None if facts is None else facts.copy()

    def settle(self, factor: float, *messages: NDArray[Any] | None) -> None:
        """End a sweep: receive the other blocks' values, then multiply all by ``factor``."""
        self.border.receive(messages, self._z)
        if factor != 1.0:
            np.multiply(self._z, np.float64(factor), out=self._z, casting="same_kind")

    def above(self) -> None:
        """Begin a sweep: add what rows receive from above, using the previous sweep's values."""
        self._so_far = np.zeros(self._links.loops.size)
        self._links.collect_above(self._z, self._so_far)

    def sweep(
        self, first: int, cut: int, damping: float, sums: Vector, *messages: NDArray[Any] | None
    ) -> tuple[object, ...]:
        """Complete a sweep, after all lower blocks; return the sums float64[2, 4] and the values
        for each block. ``first`` is the number of the block's first row in the whole core, and
        ``cut`` is the first node of the second half.
        """
        z, own, found = self._z, self.border.own, sums.copy()
        middle = int(np.searchsorted(self.border.reads, cut))
        old = z[:middle].copy()
        self.border.receive(messages, z)
        self._sweep(slice(own.start, min(own.stop, middle)), first, damping, found[0])
        new = z[:middle].copy()
        z[:middle] = old
        self._sweep(slice(max(own.start, middle), own.stop), first, damping, found[1])
        z[:middle] = new
        return found, *self.border.messages(z[own])

    def _sweep(self, places: slice, first: int, damping: float, sums: Vector) -> None:
        if places.start < places.stop:
            assert self._facts is not None
            own = self.border.own.start
            rows = slice(places.start - own, places.stop - own)
            begins, ends, *columns = self._links.below
            assert begins is not None
            core = begins[rows], ends[rows], *columns
            at = _ZERO, np.uint64(places.start), np.uint64(first + rows.start)
            rank.sweep(core, at, self._so_far[rows], self._z, self._facts[rows], damping, sums)

    def own(self) -> NDArray[Any]:
        """Return the values of the block's rows."""
        return self._z[self.border.own].copy()

    def gather(self, all_rows: bool) -> Vector:
        """Return what the block's nodes, or only dangling ones, receive along links."""
        return self._links.gather(self._whole.own, self._z, all_rows)


# -- coordinating process ----------------------------------------------------------------


_LOSSES = 8
"""Maximum number of lost workers per operation."""
_NODE, _LINK = 60 + 24, 8 + 12
"""Maximum bytes per node and per link of a block, including borders."""


def _retried(crew: WorkerPool, work: Callable[[], T], restore: Callable[[], Any]) -> T:
    """Return the result of ``work``. After losing a worker, call ``restore`` and repeat."""
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
    """A :class:`Lumped` whose links are counted by the workers that hold them."""

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
        """Count links block by block, so that weights are added in the order of targets."""
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
    """The links of a partitioned graph, held by workers."""

    _lumped: PartitionedCore

    def __init__(self, lumped: PartitionedCore) -> None:
        self._lumped, self._crew = lumped, lumped.crew
        self.blocks = self._crew.size
        self.values = 0
        """Number of values sent per sweep."""
        self.sent: int = 0
        self._z: NDArray[Any] | None = None
        self._log: list[float] = []
        self.loops: NDArray[Any] = np.empty(0, np.uint8)
        self._first = [0, *self._rows_before()]
        _retried(self._crew, self._arrange, lambda: None)

    def _rows_before(self) -> list[int]:
        """Return the number of core rows before the end of each block."""
        counts = []
        for first, last in pairwise(self._lumped.cuts):
            counts.append(int(np.count_nonzero(self._lumped.number[first:last] != rank.NO_NODE)))
            self._lumped.rest(self._lumped.number)
        return list(accumulate(counts))

    # -- worker state ----------------------------------------------------------------------------

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
        """Clear the values that were sent but not yet received."""
        self._sent: list[list[Any]] = [[None] * self.blocks for _ in range(self.blocks)]
        self._factor = 1.0

    def _settle(self, block: int) -> None:
        """Deliver the values that blocks above sent to a block in the previous sweep."""
        sent = [self._sent[o][block] if o > block else None for o in range(self.blocks)]
        self._crew.call(block, "settle", self._factor, *sent)

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
        """Restore the blocks from the last fetched values and repeat the sweeps since then."""
        self._arrange()
        if self._z is not None:
            self._begin(self._z, self._facts)
            for factor in self._log:
                self._swept()
                self._factor = factor

    # -- interface for the solver ---------------------------------------------------------------

    def sweep(
        self, z: NDArray[Any], facts: Vector, damping: float, sums: Vector, cut: int, team: Team
    ) -> None:
        """Run a Gauss-Seidel sweep over all rows. The blocks hold the values until they are
        fetched.
        """
        self._cut = self._lumped.cut_node if cut else 0
        if self._z is not z:
            self._z, self._facts, self._damping, self._log = z, facts, damping, []
            _retried(self._crew, lambda: self._begin(z, facts), self._restore)
        sums += _retried(self._crew, self._swept, self._restore)
        self._log.append(1.0)

    def _swept(self) -> Vector:
        crew, carried = self._crew, np.zeros((2, 4))
        now: list[list[Any]] = []
        for block in range(self.blocks):
            self._settle(block)
            crew.call(block, "above")
        for block in range(self.blocks):
            messages = [sent[block] for sent in now] + [None] * (self.blocks - block)
            asked = self._first[block], self._cut, self._damping, carried, *messages
            carried, *sent = crew.call(block, "sweep", *asked, answers=1 + self.blocks)
            now.append(sent)
        found: Vector = crew.take([carried])[0]
        assert self._z is not None
        self._sent, self._factor = now, 1.0
        self.sent += self.values * self._z.itemsize
        return found

    def scale(self, z: NDArray[Any], factor: float) -> None:
        """Multiply the values by ``factor``, in ``z`` or in the blocks."""
        if self._z is z:
            self._factor = self._log[-1] = factor
        else:
            scale(z, factor)

    def fetch(self, z: NDArray[Any]) -> None:
        """Copy the values of the previous sweep to ``z``. Lost workers restart from them."""
        _retried(self._crew, lambda: self._bring(z), self._restore)
        self._log = []

    def replaced(self, z: NDArray[Any]) -> None:
        """Have the next sweep begin by sending ``z`` to the blocks."""
        self._z = None

    def gathered(self, z: NDArray[Any], all_rows: bool) -> Iterator[tuple[slice, Vector]]:
        """Yield (nodes of a block, what they receive from ``z`` along links). Unless ``all_rows``,
        only dangling nodes are computed.
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

    def _bring(self, z: NDArray[Any]) -> None:
        """Copy the values of all blocks to ``z``."""
        for block in range(self.blocks):
            self._settle(block)
        parts = self._crew.take([self._crew.call(b, "own")[0] for b in range(self.blocks)])
        for block, part in enumerate(parts):
            z[self._first[block] : self._first[block + 1]] = part
        self._nothing()
