"""The walk in constant memory: tokens in files, one destination block of the graph at a time.

What ``engine/walk.py`` keeps for every node is here kept for the nodes of one block. At every step
each block takes in the tokens that the last step sent to it, in ascending order of head; tokens
that come to one node meet, which the block that owns the node sees by itself; those that live on
are moved with the block's own slice of the graph, by the same kernels, and sent to the blocks where
they stand then. A meeting is one record of the fingerprint graph, kept for the block of the parent.

Tokens and records are rows in two kinds of scratch files (``store/spool.py``). A token is
written and read once a step; the files take 12 bytes for each token of two steps and for each
record. The samples are the same as in memory, since draws are keyed and meetings are in the same
order.

Several samples walk together: while a block is in memory it serves the tokens of all of them, one
sample after another, so that a step of all reads the links once.

Cost of a sample: O(live steps * log(blocks)). Memory: 13 bytes for each node of the largest block,
its slice of the graph, 64 bytes for each of ``rows`` rows that are under way, and of each sample
that walks the tables of its spools (``tables``). A node with more
in-links than fit needs no more: the uniform step reads one of them, and the argmin step does not
scan the in-links of such a hub (``kernels/walk.py``). The clock step reads all of them, once a
step, as pages of the file that the system can take back.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.3 (sorting and merging in place
of arrays; tokens), 2.2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.codes import NOWHERE
from cocite.engine.step import MAX_LENGTH, Step
from cocite.engine.together import FEW
from cocite.engine.walk import Move, Mover
from cocite.engine.weights import StepWeights
from cocite.graph.rows import Links
from cocite.store import Spool, SpoolReader, forget

__all__ = ["BLOCK_NODE", "ROW_ROOM", "Dealer", "ExternalWalker", "Meetings", "tables"]

BLOCK_NODE = 13
"""Bytes for each node of the largest block."""
ROW_ROOM = 64
"""Bytes for each row under way: five buffers of rows, and where tokens move to."""

_HOME_WORDS = 1 << 14
_LEAST_NODES = 8
_BATCH = 256
"""Bytes that a spool keeps of a batch beside where its buckets begin, about."""


class _Rooms:
    """Scratch memory that the walk and the layout of its trees use in turn.

    ``flat`` uint32[2 * nodes], ``at`` uint32[nodes] and ``label`` uint8[nodes] for the largest
    block; ``incoming``, ``merged``, ``records``, ``going`` and ``dealt`` are uint32[rows, 3].
    """

    def __init__(self, cuts: NDArray[np.uint32], rows: int) -> None:
        nodes, blocks = max(_LEAST_NODES, int(np.diff(cuts).max())), cuts.size - 1
        self.flat = np.empty(2 * nodes, np.uint32)
        self.at = np.empty(nodes, np.uint32)
        self.label = np.empty(nodes, np.uint8)
        self.incoming = np.empty((max(rows, blocks), 3), np.uint32)
        self.merged, self.records, self.going, self.dealt = (
            np.empty((rows, 3), np.uint32) for _ in range(4)
        )
        self.moved = np.empty(rows, np.uint32)


class Dealer:
    """Sorts rows into buckets that are ranges of numbers, and writes them to spools."""

    def __init__(self, cuts: NDArray[np.uint32], dealt: NDArray[np.uint32]) -> None:
        """``cuts`` uint32[buckets + 1] ascends from 0; ``dealt`` has room for a batch."""
        from cocite.kernels import external

        self._cuts, self._dealt = cuts, dealt
        self._home = np.empty(_HOME_WORDS, np.uint32)
        external.make_home(cuts, self._home)
        self._starts = np.empty(cuts.size, np.uint32)
        self._record_starts = np.empty(2 * cuts.size - 1, np.uint32)

    def rows(self, spool: Spool, rows: NDArray[np.uint32], tag: int = 0) -> None:
        """Write rows to the buckets of their first words."""
        from cocite.kernels import external

        out = self._dealt[: rows.shape[0]]
        external.deal(rows, self._cuts, self._home, self._starts, out)
        spool.append(out, self._starts, tag)

    def records(self, spool: Spool, rows: NDArray[np.uint32], tag: int) -> None:
        """Write records: 2b and 2b + 1 are the buckets of those with their parent in block b."""
        from cocite.kernels import external

        out = self._dealt[: rows.shape[0]]
        external.deal_records(rows, self._cuts, self._home, self._record_starts, out)
        spool.append(out, self._record_starts, tag)


@dataclass(frozen=True)
class Meetings:
    """One sample's fingerprint graph, in records (node, parent, offset) tagged with the step.

    Bucket 2b of ``records`` has those whose node and parent lie in block b, and b's roots (node,
    NOWHERE, members); bucket 2b + 1 those whose node lies in a block behind. ``live`` counts the
    tokens that made each step.
    """

    records: Spool
    live: tuple[int, ...]


class _State:
    """A sample on its way: its tokens of this step and the next one, its records, how many moved at
    each step, how many have arrived at this one so far, and what moves them.
    """

    def __init__(self, directory: Path, blocks: int) -> None:
        self.arrived, self.going = Spool(directory, blocks), Spool(directory, blocks)
        self.records = Spool(directory, 2 * blocks)
        self.live: list[int] = []
        self.tokens = 0
        self.move: Move | None = None

    def begin(self, nodes: int) -> None:
        """Take up a sample anew."""
        self.records.clear()
        self.live, self.tokens = [], nodes


class ExternalWalker:
    """Makes samples of one graph with tokens in scratch files in ``directory``, up to ``together``
    at a time.
    """

    def __init__(
        self,
        links: Links,
        step: Step,
        length: int,
        seed: int,
        blocks: Sequence[int],
        directory: Path,
        rows: int,
        turn: int = 0,
        *,
        together: int = 1,
        weights: StepWeights | None = None,
        in_share: float = 1.0,
    ) -> None:
        """``blocks`` holds the first node of every block but the first; ``rows`` is how many rows
        are in memory at once; ``turn``, ``weights`` and ``in_share`` are as for ``Walker``.
        """
        self._links, self._weights, self._length = links, weights, length
        self._mover = Mover(links, step, seed, blocks, turn, weights, in_share)
        self.cuts = np.array([0, *blocks, links.nodes], np.uint32)
        count = self.cuts.size - 1
        self.rooms = _Rooms(self.cuts, rows)
        self.dealer = Dealer(self.cuts, self.rooms.dealt)
        self._standing = self.rooms.flat.reshape(-1, 2)
        self.together = together
        self._free = [_State(directory, count) for _ in range(together)]
        self._states: dict[int, _State] = {}
        self._waiting: dict[_State, list[tuple[int, int]]] = {}  # where in the buffer
        self._used = 0

    def __call__(self, sample: int) -> Meetings:
        """One of the samples that were walked last; its records are valid until others are."""
        state = self._states[sample]
        return Meetings(state.records, tuple(state.live))

    def walk(self, samples: range) -> None:
        """Walk these samples, up to ``together``; what was walked before is gone."""
        self._states = dict(zip(samples, self._free, strict=False))
        for state in self._states.values():
            state.begin(self._links.nodes)
        self._standing.fill(NOWHERE)
        for step in range(1, self._length + 2):
            living = {sample: state for sample, state in self._states.items() if state.tokens}
            tokens = sum(state.tokens for state in living.values())
            for sample, state in living.items():
                state.move = self._mover.kernel(sample, step)
                state.going.clear()
                state.tokens = 0
            for block in range(self.cuts.size - 1 if living else 0):
                if step <= self._length and tokens * FEW > self._links.nodes:
                    self._links.fetch(int(self.cuts[block]), int(self.cuts[block + 1]))
                for state in living.values():
                    self._pass(state, block, step)
                self._links.forget()
                if self._weights is not None:
                    forget(self._weights.values)
            self._write_records(step - 1)
            for state in living.values():
                state.arrived, state.going = state.going, state.arrived
                if state.tokens and step <= self._length:
                    state.live.append(state.tokens)

    def _pass(self, state: _State, block: int, step: int) -> None:
        """The tokens of one sample in one block."""
        count = self._arrive(state, block, step)
        if count:
            self._leave(state, block, count, step)
        state.tokens += count

    # -- arrivals: what the block's nodes hold after the last step ------------------------

    def _arrive(self, state: _State, block: int, step: int) -> int:
        """Let the tokens of a block arrive; returns how many live."""
        from cocite.kernels import external

        first, last = self.cuts[block], self.cuts[block + 1]
        if step == 1:
            size = int(last) - int(first)
            external.begin(first, self.rooms.at[:size], self._standing[:size])
            return size
        live = 0
        runs = state.arrived.readers(block)
        if len(runs) == 1:
            while count := runs[0].fill(self.rooms.merged):
                live = self._meet(state, count, first, live, step)
        elif runs:
            live = self._merge(state, runs, first, step)
        return live

    def _merge(
        self, state: _State, runs: Sequence[SpoolReader], first: np.uint32, step: int
    ) -> int:
        """Read all runs side by side, in ascending order of head."""
        from cocite.kernels import external

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
            count = external.merge(self.rooms.incoming, cursor, ends, more, tree, self.rooms.merged)
            live = self._meet(state, count, first, live, step)
        return live

    def _meet(self, state: _State, count: int, first: np.uint32, live: int, step: int) -> int:
        from cocite.kernels import external

        self._make_room(count, step)
        live, met = external.meet(
            self.rooms.merged[:count],
            first,
            self._standing,
            self.rooms.at,
            live,
            self.rooms.records[self._used :],
        )
        self._keep(state, met)
        return int(live)

    # -- departures: the step itself ------------------------------------------------------

    def _leave(self, state: _State, block: int, count: int, step: int) -> None:
        """Move the tokens of a block and send them; behind the last step all have ended."""
        from cocite.kernels import external

        rooms, first, last = self.rooms, self.cuts[block], self.cuts[block + 1]
        for low in range(0, count, rooms.moved.size):
            at = rooms.at[low : min(low + rooms.moved.size, count)]
            moved = rooms.moved[: at.size]
            if step > self._length:
                moved.fill(NOWHERE)
            else:
                assert state.move is not None
                state.move(at, moved, first, last)
            self._make_room(at.size, step)
            gone, ended = external.leave(
                at, moved, first, self._standing, rooms.going, rooms.records[self._used :]
            )
            self._keep(state, int(ended))
            # After the first step the runs of the blocks follow each other in order of head.
            self.dealer.rows(state.going, rooms.going[:gone], 0 if step == 1 else block)

    # -- records ----------------------------------------------------------------------------

    def _make_room(self, count: int, step: int) -> None:
        if self._used + count > self.rooms.records.shape[0]:
            self._write_records(step - 1)

    def _keep(self, state: _State, count: int) -> None:
        """Records of a sample stand behind those that wait."""
        if count:
            self._waiting.setdefault(state, []).append((self._used, self._used + count))
            self._used += count

    def _write_records(self, step: int) -> None:
        """Write what waits, sample by sample: the meetings after so many steps, and roots."""
        for state, pieces in self._waiting.items():
            count = 0
            for begin, end in pieces:
                self.rooms.going[count : count + end - begin] = self.rooms.records[begin:end]
                count += end - begin
            self.dealer.records(state.records, self.rooms.going[:count], step)
        self._waiting.clear()
        self._used = 0


def tables(nodes: int, blocks: int, rows: int, together: int) -> int:
    """Bytes that the spools of so many samples take in memory, about, at most: records of all are
    written as often as ``rows`` of them wait, and behind every step.
    """
    batches = MAX_LENGTH + 1 + together * nodes // rows
    return together * (batches * (8 * blocks + _BATCH) + 16 * blocks * blocks)
