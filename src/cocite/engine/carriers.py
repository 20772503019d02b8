"""The walk over blocks that each live somewhere: one step of the conductor a step of the walk.

    step s    every block: takes in what step s - 1 sent to it (arrive, meet), moves what lives on
              (leave), and has a parcel for every block: tokens, and records of who met
    then      the parcels of step s - 1 are dropped, and step s + 1 is asked for

A block is a :class:`BlockWalker`, in a process of its own or not, with its own rows alone; what it
does is ``engine/walk_blocks.py``, as in the walk on disk (``engine/walk_blocks.py``). Parcels go
from block to block, and the conductor (:class:`BlocksWalk`) sees how many tokens live and how many
bytes were sent. Samples are those of the other forms, to the byte: what a block hears of is the
same, and in the same order.

Cost: that of the external walk, without its files; what is sent is told (:class:`Traffic`). Memory
of a block: ``BlockPart``'s, its rows, and of each sample 24 bytes a token and 12 a record.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.3: hosts own nodes, and "the
tokens are transferred on the network to their new owner", who finds those that have met.

Rows on their way between blocks in memory: what spools are on disk (``storage/spool.py``).

A block deals what it sends into *letters*, one set of buckets a sample and kind; what goes to one
block in one step, of all samples, is packed in one *parcel*: all rows behind each other, and a
table that says whose they are. Who gets parcels reads them from a *mailbox*, as a spool is read.

    parcel    rows uint32[k, 3]     table int64[p, 4]: sample, kind, tag, how many rows

Rows of one letter and tag stay in the order in which they were sent.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import WorkerPool
from cocite.engine.walk import Move
from cocite.engine.walk_blocks import BlockPart
from cocite.graph.blocks import Links

TOKENS, INNER, OUTER = 0, 1, 2
"""Kinds of rows: tokens; records whose node lies in the block of the parent; other records."""


class Message(NamedTuple):
    """``rows`` uint32[k, 3], and ``table`` int64[p, 4]: sample, kind, tag, how many rows each."""

    rows: NDArray[np.uint32]
    table: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """What it takes on its way."""
        return self.rows.nbytes + self.table.nbytes


class Letters:
    """Rows dealt into ``buckets``, kept in memory: what batches are appended to."""

    def __init__(self, buckets: int) -> None:
        self._batches: list[list[tuple[int, NDArray[np.uint32]]]] = [[] for _ in range(buckets)]

    def append(self, rows: NDArray[np.uint32], starts: NDArray[np.uint32], tag: int) -> None:
        """Add a batch: bucket b's rows are ``rows[starts[b] : starts[b + 1]]``."""
        for bucket in np.flatnonzero(starts[1:] > starts[:-1]).tolist():
            part = rows[int(starts[bucket]) : int(starts[bucket + 1])]
            self._batches[bucket].append((tag, part.copy()))

    def taken(self, bucket: int) -> list[tuple[int, NDArray[np.uint32]]]:
        """What a bucket holds, (tag, rows), which it then holds no more."""
        found, self._batches[bucket] = self._batches[bucket], []
        return found


def pack(
    letters: Iterable[tuple[int, int, list[tuple[int, NDArray[np.uint32]]]]],
) -> Message:
    """One parcel of (sample, kind, what a bucket held)."""
    rows: list[NDArray[np.uint32]] = []
    table: list[list[int]] = []
    for sample, kind, batches in letters:
        for tag, part in batches:
            rows.append(part)
            if table and table[-1][:3] == [sample, kind, tag]:
                table[-1][3] += len(part)
            else:
                table.append([sample, kind, tag, len(part)])
    whole = np.concatenate(rows) if rows else np.empty((0, 3), np.uint32)
    return Message(whole, np.array(table, np.int64).reshape(-1, 4))


class _Run:
    """Rows read from first to last."""

    def __init__(self, rows: NDArray[np.uint32]) -> None:
        self._rows, self.left = rows, int(rows.shape[0])

    def fill(self, out: NDArray[np.uint32]) -> int:
        """Copy the next rows, as many as ``out`` takes or are left; returns how many."""
        begin, count = len(self._rows) - self.left, min(len(out), self.left)
        out[:count] = self._rows[begin : begin + count]
        self.left -= count
        return count


class Mailbox:
    """Rows that were sent to one bucket, read as a spool is."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, NDArray[np.uint32]]] = []

    def put(self, tag: int, rows: NDArray[np.uint32]) -> None:
        """Add rows that lie where nobody writes."""
        self._rows.append((tag, rows))

    def readers(self, bucket: int) -> list[_Run]:
        """One run for each that was put: each ascends by itself."""
        return [_Run(rows) for _, rows in self._rows]

    def pieces(
        self, bucket: int, buffer: NDArray[np.uint32]
    ) -> Iterator[tuple[int, NDArray[np.uint32]]]:
        """(tag, rows), copied into ``buffer``."""
        for tag, rows in self._rows:
            run = _Run(rows)
            while count := run.fill(buffer):
                yield tag, buffer[:count]


def unpacked(parcels: Iterable[Message]) -> Iterator[tuple[int, int, int, NDArray[np.uint32]]]:
    """(sample, kind, tag, rows) of all parcels."""
    for parcel in parcels:
        begin = 0
        for sample, kind, tag, count in parcel.table.tolist():
            yield sample, kind, tag, parcel.rows[begin : begin + count]
            begin += count


# -- blocks walk -------------------------------------------------------------------------


_UNRESERVED = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Of a map that may be larger than memory: Linux's, which Python has not named in all releases."""
TOKEN_BYTES = 12
"""A token on its way: where it goes, its head, its members. A node has one at most at any step, so
that this is the bound on what is sent a node and step, but for one record a node and sample.
"""


def placed_links(
    offsets: NDArray[np.uint64],
    neighbors: NDArray[np.uint32],
    weights: NDArray[np.float32] | None,
    first: int,
    nodes: int,
) -> Links:
    """Rows of the nodes from ``first`` on, at their places among ``nodes``: kernels find a row by
    its node. Of the offsets of all nodes, only the pages of these exist; never ``forget`` them.
    """
    size = 8 * (nodes + 1)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNRESERVED
    placed = np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint64)
    placed[first : first + offsets.size] = offsets
    return Links(placed, neighbors, weights)


@dataclass(frozen=True)
class Traffic:
    """Bytes that blocks sent each other: ``tokens`` and ``records`` by walks, ``trees`` by laying
    them out; ``values`` by scans, ``groups`` by laying min-hashes out; in ``steps`` of all samples,
    over ``nodes``.
    """

    nodes: int
    steps: int = 0
    tokens: int = 0
    records: int = 0
    trees: int = 0
    values: int = 0
    groups: int = 0

    def plus(
        self,
        steps: int = 0,
        tokens: int = 0,
        records: int = 0,
        trees: int = 0,
        values: int = 0,
        groups: int = 0,
    ) -> Traffic:
        """With so much more."""
        return Traffic(
            self.nodes,
            self.steps + steps,
            self.tokens + tokens,
            self.records + records,
            self.trees + trees,
            self.values + values,
            self.groups + groups,
        )

    def plus_all(self, other: Traffic | None) -> Traffic:
        """Both together."""
        if other is None:
            return self
        return self.plus(*(getattr(other, each.name) for each in fields(other)[1:]))

    @property
    def each(self) -> float:
        """Bytes of tokens, records and values a node and step of a sample."""
        sent = self.tokens + self.records + self.values
        return sent / max(1, self.nodes * self.steps)

    @property
    def whole(self) -> int:
        """All bytes."""
        return self.tokens + self.records + self.trees + self.values + self.groups

    def facts(self) -> dict[str, int | float]:
        """As a document tells it; ``most`` is the papers' bound, all tokens sent at every step."""
        found: dict[str, int | float] = {"bytes_per_node_and_step": self.each}
        if self.values or self.groups:
            found |= {"bytes_of_values": self.values, "bytes_of_groups": self.groups}
        if self.tokens or self.records or len(found) == 1:
            found |= {
                "bytes_of_tokens": self.tokens,
                "bytes_of_records": self.records,
                "bytes_of_trees": self.trees,
                "most_of_tokens_per_node_and_step": TOKEN_BYTES,
            }
        return found


class _BlockState:
    """A sample in a block: tokens that came, letters with tokens and records, records kept."""

    def __init__(self, blocks: int) -> None:
        self.arrived = Mailbox()
        self.going, self.records = Letters(blocks), Letters(2 * blocks)
        self.inner, self.outer = Mailbox(), Mailbox()
        self.move: Move | None = None


class BlockWalker:
    """Block number ``block`` of a walk."""

    def __init__(self, part: BlockPart, block: int) -> None:
        self._part, self._block, self._blocks = part, block, part.cuts.size - 1
        self._states: dict[int, _BlockState] = {}
        self._own = pack(())

    def begin(self, samples: range) -> None:
        """Take up samples anew; what there was of others is gone."""
        self._states = {sample: _BlockState(self._blocks) for sample in samples}
        self._own = pack(())
        self._part.begin()

    def step(self, step: int, *parcels: Message | None) -> tuple[object, ...]:
        """One step of all samples, from what the step before it sent here: int64[samples] tokens
        that made it, int64[2] bytes of tokens and of records for other blocks; then a parcel for
        each block, None for this one.
        """
        self._receive(parcels)
        live = np.zeros(len(self._states), np.int64)
        for i, (sample, state) in enumerate(self._states.items()):
            self._part.set_out(state, sample, step)
            live[i] = self._part.turn(state, self._block, step)
            state.arrived = Mailbox()  # what came is not needed any more
        self._part.send_records(step)
        sent = np.zeros(2, np.int64)
        out: list[Message | None] = []
        for other in range(self._blocks):
            parcel = self._packed(other)
            if other == self._block:
                self._own = parcel
                out.append(None)
                continue
            tokens = int(parcel.table[parcel.table[:, 1] == TOKENS, 3].sum()) * TOKEN_BYTES
            sent += tokens, parcel.nbytes - tokens
            out.append(parcel)
        return (live, sent), *out

    def end(self, *parcels: Message | None) -> None:
        """Keep what the last step sent: records alone."""
        self._receive(parcels)

    def _receive(self, parcels: Sequence[Message | None]) -> None:
        own, self._own = self._own, pack(())
        for sample, kind, tag, rows in unpacked([own, *filter(None, parcels)]):
            state = self._states[sample]
            if kind == TOKENS:
                state.arrived.put(tag, rows)
            else:  # copied: what was sent is to be dropped
                (state.inner if kind == INNER else state.outer).put(tag, rows.copy())

    def _packed(self, other: int) -> Message:
        letters = []
        for sample, state in self._states.items():
            letters.append((sample, TOKENS, state.going.taken(other)))
            letters.append((sample, INNER, state.records.taken(2 * other)))
            letters.append((sample, OUTER, state.records.taken(2 * other + 1)))
        return pack(letters)


class BlocksWalk:
    """Conducts the walks of a ``crew`` of :class:`BlockWalker`."""

    def __init__(self, crew: WorkerPool, nodes: int, length: int) -> None:
        self.crew, self._length = crew, length
        self.traffic = Traffic(nodes)

    def walk(self, samples: range) -> dict[int, tuple[int, ...]]:
        """Walk these samples; returns of each how many tokens made each step."""
        crew, blocks = self.crew, range(self.crew.size)
        begun = [crew.call(block, "begin", samples)[0] for block in blocks]
        crew.take(begun)
        sent: list[list[object]] = [[None] * crew.size for _ in blocks]
        live: dict[int, list[int]] = {sample: [] for sample in samples}
        for step in range(1, self._length + 2):
            answers = [
                crew.call(
                    block, "step", step, *(mine[block] for mine in sent), answers=1 + crew.size
                )
                for block in blocks
            ]
            told = crew.take([answer[0] for answer in answers])
            sent = [answer[1:] for answer in answers]  # those of the step before are dropped
            counts = np.sum([count for count, _ in told], axis=0)
            tokens, records = np.sum([size for _, size in told], axis=0).tolist()
            moved = 0
            for sample, count in zip(samples, counts.tolist(), strict=True):
                if count and step <= self._length:
                    live[sample].append(count)
                    moved += 1
            self.traffic = self.traffic.plus(moved, tokens, records)
            if not counts.any():
                break
        crew.take([crew.call(b, "end", *(mine[b] for mine in sent))[0] for b in blocks])
        return {sample: tuple(steps) for sample, steps in live.items()}
