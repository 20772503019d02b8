"""The walk in destination blocks, with tokens in files or in messages.

    arrive    merge the tokens sent in the previous step, by head; tokens at the same node meet
    leave     move live tokens along the block's links, and send them to the blocks of their nodes
    records   send each meeting and each root to the block of its parent

Tokens and records are rows of three words (``kernels/walk_blocks.py``) in spools: files, if one
process handles all blocks in turn (:class:`ExternalWalker`), or memory, if blocks exchange messages
(``engine/carriers.py``). A block reads rows in ascending order of head, so both give the same
bytes. Merging costs O(log blocks) per token. Memory is 13 bytes per node in the largest block, and
64 for each of ``rows`` buffered rows. Source: Fogaras, Racz, *Scaling link-based similarity
search*, sections 2.1.3 (sorting, merging, and hosts that own nodes) and 2.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.constants import MAX_LENGTH, NOWHERE
from cocite.engine.walk import Move, Mover, count_up
from cocite.engine.walk_batch import FEW
from cocite.kernels import walk_blocks
from cocite.storage.spool import Spool

BLOCK_NODE = 13
"""Bytes per node in the largest block."""
ROW_ROOM = 64
"""Bytes per buffered row: five buffers of rows, and the targets of tokens."""

_HOME_WORDS = 1 << 14
_LEAST_NODES = 8


class Run(Protocol):
    """Rows in ascending order of head, read once; ``left`` counts unread rows."""

    left: int

    def fill(self, out: NDArray[np.uint32]) -> int:
        """Read the next rows into ``out``, as many as fit, and return their number."""


class RowSpool(Protocol):
    """Rows in a bucket per block, written in tagged batches."""

    def append(self, rows: NDArray[np.uint32], starts: NDArray[np.uint32], tag: int) -> None:
        """Append ``rows[starts[b] : starts[b + 1]]`` to each bucket b; callers reuse ``rows``."""

    def readers(self, bucket: int) -> Sequence[Run]:
        """Return a bucket's runs."""

    def pieces(
        self, bucket: int, buffer: NDArray[np.uint32]
    ) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """Yield a bucket's (tag, rows), with the rows read into ``buffer``."""


S = TypeVar("S", bound=RowSpool)


class MovingSample(Generic[S]):
    """A sample in progress; ``tokens`` counts the tokens moved in the current step.

    ``arrived`` and ``going`` are token spools with a bucket per block; ``records`` has two per
    block. ``points``, if recorded, are rows (head, node, 0) in a bucket per block of heads.
    """

    def __init__(self, spool: Callable[[int], S], blocks: int, points: bool = False) -> None:
        self.arrived, self.going, self.records = spool(blocks), spool(blocks), spool(2 * blocks)
        self.points = spool(blocks) if points else None
        self.move: Move | None = None
        self.live: list[int] = []
        self.tokens = 0


class Rooms:
    """Scratch memory for the walk, reused by the tree layout.

    ``flat`` uint32[2 * nodes], ``at`` uint32[nodes] and ``label`` uint8[nodes] fit the largest
    block; ``incoming``, ``merged``, ``records``, ``going`` and ``dealt`` are uint32[rows, 3].
    """

    def __init__(self, largest: int, blocks: int, rows: int) -> None:
        nodes = max(_LEAST_NODES, largest)
        self.flat = np.empty(2 * nodes, np.uint32)
        self.at = np.empty(nodes, np.uint32)
        self.label = np.empty(nodes, np.uint8)
        self.incoming = np.empty((max(rows, blocks), 3), np.uint32)
        self.merged, self.records, self.going, self.dealt = (
            np.empty((rows, 3), np.uint32) for _ in range(4)
        )
        self.moved = np.empty(rows, np.uint32)


class Dealer:
    """Sorts rows into buckets by ranges of their first word, and appends them to spools."""

    def __init__(self, cuts: NDArray[np.uint32], dealt: NDArray[np.uint32]) -> None:
        """Set the ranges. ``cuts`` uint32[buckets + 1] must ascend from 0; ``dealt`` is a buffer
        for one batch.
        """
        self._cuts, self._dealt = cuts, dealt
        self._home = np.empty(_HOME_WORDS, np.uint32)
        walk_blocks.make_home(cuts, self._home)
        self._starts = np.empty(cuts.size, np.uint32), np.empty(2 * cuts.size - 1, np.uint32)

    def rows(
        self, out: RowSpool, rows: NDArray[np.uint32], tag: int = 0, *, records: bool = False
    ) -> None:
        """Append rows to the buckets of their first words. With ``records``, a row whose parent is
        in block b goes to bucket 2b or 2b + 1.
        """
        dealt, starts = self._dealt[: rows.shape[0]], self._starts[records]
        walk_blocks.deal(rows, self._cuts, self._home, records, starts, dealt)
        out.append(dealt, starts, tag)


class BlockPart:
    """The walk, one block at a time; the links of ``mover`` need to cover only the blocks used."""

    def __init__(self, mover: Mover, length: int, rows: int, largest: int | None = None) -> None:
        """Allocate buffers for ``rows`` rows and blocks of up to ``largest`` nodes (None: any)."""
        self._mover, self._length = mover, length
        self.cuts = cuts = mover.cuts
        nodes = int(np.diff(cuts).max()) if largest is None else largest
        self.rooms = Rooms(nodes, cuts.size - 1, rows)
        self.dealer = Dealer(cuts, self.rooms.dealt)
        self._standing = self.rooms.flat.reshape(-1, 2)
        self._waiting: dict[MovingSample[Any], list[tuple[int, int]]] = {}  # buffer ranges
        self._used = 0

    def begin(self) -> None:
        """Clear all positions before the first step."""
        self._standing.fill(NOWHERE)

    def set_out(self, state: MovingSample[Any], sample: int, step: int) -> None:
        """Prepare the mover for a step of a sample, once for all blocks."""
        if step <= self._length:
            state.move = self._mover.kernel(sample, step)

    def turn(self, state: MovingSample[Any], block: int, step: int) -> int:
        """Make one step of a sample in one block; return the number of tokens moved."""
        count = self._arrive(state, block, step)
        if count:
            self._leave(state, block, count, step)
        return count

    # -- arrivals -------------------------------------------------------------------------

    def _arrive(self, state: MovingSample[Any], block: int, step: int) -> int:
        """Merge the tokens that arrived in a block; return the number of live tokens."""
        first, last = self.cuts[block], self.cuts[block + 1]
        if step == 1:
            size = int(last) - int(first)
            count_up(self.rooms.at[:size], int(first))
            self._standing[:size, 0], self._standing[:size, 1] = self.rooms.at[:size], 1
            return size
        live, runs = 0, state.arrived.readers(block)
        if len(runs) > 1:
            return self._merge(state, runs, first, step)
        for run in runs:
            while count := run.fill(self.rooms.merged):
                live = self._meet(state, count, first, live, step)
        return live

    def _merge(
        self, state: MovingSample[Any], runs: Sequence[Run], first: np.uint32, step: int
    ) -> int:
        each = self.rooms.incoming.shape[0] // len(runs)
        begins = np.arange(len(runs), dtype=np.int64) * each
        cursor, ends, more = begins.copy(), begins.copy(), np.ones(len(runs), np.bool_)
        tree = np.empty(2 << (len(runs) - 1).bit_length(), np.uint64)
        live, count = 0, 1
        while count:
            for run in np.flatnonzero((cursor == ends) & more).tolist():
                begin = run * each
                filled = runs[run].fill(self.rooms.incoming[begin : begin + each])
                cursor[run], ends[run], more[run] = begin, begin + filled, runs[run].left > 0
            count = walk_blocks.merge(
                self.rooms.incoming, cursor, ends, more, tree, self.rooms.merged
            )
            live = self._meet(state, count, first, live, step)
        return live

    def _meet(
        self, state: MovingSample[Any], count: int, first: np.uint32, live: int, step: int
    ) -> int:
        self._make_room(count, step)
        live, met = walk_blocks.meet(
            self.rooms.merged[:count],
            first,
            self._standing,
            self.rooms.at,
            live,
            self.rooms.records[self._used :],
        )
        self._keep(state, met)
        return int(live)

    # -- departures -----------------------------------------------------------------------

    def _leave(self, state: MovingSample[Any], block: int, count: int, step: int) -> None:
        """Move a block's tokens and send them; after the last step, end them."""
        rooms, first, last = self.rooms, self.cuts[block], self.cuts[block + 1]
        for low in range(0, count, rooms.moved.size):
            at = rooms.at[low : min(low + rooms.moved.size, count)]
            moved = rooms.moved[: at.size]
            if state.points is not None and step > 1:
                points = rooms.going[: at.size]
                points[:, 0], points[:, 1], points[:, 2] = self._standing[at - first, 0], at, 0
                self.dealer.rows(state.points, points)
            if step > self._length:
                moved.fill(NOWHERE)
            else:
                assert state.move is not None
                state.move(at, moved, first, last)
            self._make_room(at.size, step)
            gone, ended = walk_blocks.leave(
                at, moved, first, self._standing, rooms.going, rooms.records[self._used :]
            )
            self._keep(state, int(ended))
            # In the first step, the runs of consecutive blocks are one ascending run.
            self.dealer.rows(state.going, rooms.going[:gone], 0 if step == 1 else block)

    # -- records ----------------------------------------------------------------------------

    def _make_room(self, count: int, step: int) -> None:
        if self._used + count > self.rooms.records.shape[0]:
            self.send_records(step)

    def _keep(self, state: MovingSample[Any], count: int) -> None:
        if count:
            self._waiting.setdefault(state, []).append((self._used, self._used + count))
            self._used += count

    def send_records(self, step: int) -> None:
        """Send all waiting records, tagged with ``step`` - 1, sample by sample."""
        for state, pieces in self._waiting.items():
            count = 0
            for begin, end in pieces:
                self.rooms.going[count : count + end - begin] = self.rooms.records[begin:end]
                count += end - begin
            self.dealer.rows(state.records, self.rooms.going[:count], step - 1, records=True)
        self._waiting.clear()
        self._used = 0


# -- tokens in files ---------------------------------------------------------------------


_BATCH = 256
"""Approximate bytes of a batch in a spool, excluding bucket offsets."""


@dataclass(frozen=True)
class Meetings:
    """A sample's fingerprint graph, as records (node, parent, offset) tagged with the step.

    Bucket 2b of ``records`` contains records with node and parent in block b, and b's roots (node,
    NOWHERE, members); bucket 2b + 1, records with the parent in block b and the node in a later
    block. ``live`` counts the tokens moved at each step; ``points`` are as in
    :class:`MovingSample`.
    """

    records: Spool
    live: tuple[int, ...]
    points: Spool | None


class ExternalWalker:
    """Computes up to ``together`` samples at a time, with one block in memory and tokens in scratch
    files.

    A token is written and read once per step. The files take 12 bytes per token, for two steps, and
    12 per record. Hubs whose in-links exceed memory need no extra memory: the uniform step reads
    one in-link, the argmin step skips their in-links, and the clock step reads file pages that the
    system can reclaim.
    """

    def __init__(
        self,
        mover: Mover,
        length: int,
        directory: Path,
        rows: int,
        together: int = 1,
        points: bool = False,
    ) -> None:
        """Prepare the walk with at most ``rows`` rows in memory; if ``points``, record points."""
        self._mover, self._links, self.cuts = mover, mover.links, mover.cuts
        self._length = length
        self._part = BlockPart(mover, length, rows)
        self.rooms, self.dealer = self._part.rooms, self._part.dealer
        self.together = together
        self._free = [
            MovingSample(lambda buckets: Spool(directory, buckets), self.cuts.size - 1, points)
            for _ in range(together)
        ]
        self._states: dict[int, MovingSample[Spool]] = {}

    def __call__(self, sample: int) -> Meetings:
        """Return a sample from the last ``walk``, valid until the next ``walk``."""
        state = self._states[sample]
        return Meetings(state.records, tuple(state.live), state.points)

    def walk(self, samples: range) -> None:
        """Walk up to ``together`` samples; earlier samples become invalid."""
        self._states = dict(zip(samples, self._free, strict=False))
        for state in self._states.values():
            for spool in (state.records, state.points):
                if spool is not None:
                    spool.clear()
            state.live, state.tokens = [], self._links.nodes
        self._part.begin()
        for step in range(1, self._length + 2):
            living = {sample: state for sample, state in self._states.items() if state.tokens}
            tokens = sum(state.tokens for state in living.values())
            for sample, state in living.items():
                self._part.set_out(state, sample, step)
                state.going.clear()
                state.tokens = 0
            for block in range(self.cuts.size - 1 if living else 0):
                if step <= self._length and tokens * FEW > self._links.nodes:
                    self._links.fetch(int(self.cuts[block]), int(self.cuts[block + 1]))
                for state in living.values():
                    state.tokens += self._part.turn(state, block, step)
                self._mover.evict()
            self._part.send_records(step)
            for state in living.values():
                state.arrived, state.going = state.going, state.arrived
                if state.tokens and step <= self._length:
                    state.live.append(state.tokens)


def tables(nodes: int, blocks: int, rows: int, together: int) -> int:
    """Return an upper bound on the bytes of the spool tables for ``together`` samples."""
    batches = MAX_LENGTH + 1 + together * nodes // rows
    return together * (batches * (8 * blocks + _BATCH) + 16 * blocks * blocks)
