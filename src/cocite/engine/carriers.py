"""The walk over partitions: one worker per block, messages between blocks, and a conductor.

    step s    every block receives the messages of step s - 1 (arrive, meet), moves its live tokens
              (leave), and sends a message to every block: tokens, and records of meetings

A :class:`BlockWalker` stores the rows of one block and may run in another process. The steps are
the same as in the walk on disk (``engine/walk_blocks.py``), so samples are byte-identical. The
conductor, :class:`BlocksWalk`, counts live tokens and bytes sent. A block needs memory for its
rows, for a ``BlockPart``, and, per sample, 24 bytes per token and 12 per record. Source: Fogaras,
Racz, *Scaling link-based similarity search*, section 2.1.3: tokens move to the hosts that own their
nodes.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.cluster.threads import WorkerPool
from cocite.engine.walk_blocks import BlockPart, MovingSample
from cocite.graph.blocks import Links

TOKENS, INNER, OUTER = 0, 1, 2
"""Kinds of rows: tokens; records whose node and parent are in one block; other records."""

Rows = NDArray[np.uint32]


class Message(NamedTuple):
    """The rows that one block sends to another in one step, for all samples.

    ``rows`` is uint32[k, 3]; ``table`` int64[p, 4] lists (sample, kind, tag, number of rows). Rows
    with the same sample, kind and tag are in order.
    """

    rows: Rows
    table: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """Return the message size in bytes."""
        return self.rows.nbytes + self.table.nbytes


class MemorySpool:
    """An in-memory :class:`~cocite.storage.Spool`: rows in buckets."""

    def __init__(self, buckets: int) -> None:
        self._batches: list[list[tuple[int, Rows]]] = [[] for _ in range(buckets)]

    def append(self, rows: Rows, starts: NDArray[np.uint32], tag: int) -> None:
        """Append a copy of ``rows[starts[b] : starts[b + 1]]`` to each bucket b."""
        for bucket in np.flatnonzero(starts[1:] > starts[:-1]).tolist():
            self.put(bucket, tag, rows[int(starts[bucket]) : int(starts[bucket + 1])].copy())

    def put(self, bucket: int, tag: int, rows: Rows) -> None:
        """Append rows to a bucket without copying; the caller must not modify them later."""
        self._batches[bucket].append((tag, rows))

    def take(self, bucket: int) -> list[tuple[int, Rows]]:
        """Empty a bucket and return its batches (tag, rows)."""
        found, self._batches[bucket] = self._batches[bucket], []
        return found

    def readers(self, bucket: int) -> list[_Run]:
        """Return an ascending run per batch."""
        return [_Run(rows) for _, rows in self._batches[bucket]]

    def pieces(self, bucket: int, buffer: Rows) -> Iterator[tuple[int, Rows]]:
        """Yield (tag, rows) of a bucket, with the rows copied to ``buffer``."""
        for tag, rows in self._batches[bucket]:
            run = _Run(rows)
            while count := run.fill(buffer):
                yield tag, buffer[:count]


class _Run:
    """A :class:`~cocite.engine.walk_blocks.Run` over rows in memory."""

    def __init__(self, rows: Rows) -> None:
        self._rows, self.left = rows, len(rows)

    def fill(self, out: Rows) -> int:
        begin, count = len(self._rows) - self.left, min(len(out), self.left)
        out[:count] = self._rows[begin : begin + count]
        self.left -= count
        return count


def pack(batches: Iterable[tuple[int, int, list[tuple[int, Rows]]]]) -> Message:
    """Pack (sample, kind, batches of a bucket) into one message."""
    rows: list[Rows] = []
    table: list[list[int]] = []
    for sample, kind, tagged in batches:
        for tag, part in tagged:
            rows.append(part)
            if table and table[-1][:3] == [sample, kind, tag]:
                table[-1][3] += len(part)
            else:
                table.append([sample, kind, tag, len(part)])
    whole = np.concatenate(rows) if rows else np.empty((0, 3), np.uint32)
    return Message(whole, np.array(table, np.int64).reshape(-1, 4))


def unpack(messages: Iterable[Message | None]) -> Iterator[tuple[int, int, int, Rows]]:
    """Yield (sample, kind, tag, rows) from all messages."""
    for message in messages:
        begin = 0
        for sample, kind, tag, count in () if message is None else message.table.tolist():
            assert message is not None
            yield sample, kind, tag, message.rows[begin : begin + count]
            begin += count


_UNRESERVED = getattr(mmap, "MAP_NORESERVE", 0x4000)
"""Linux's MAP_NORESERVE, for maps that may exceed memory; not all Python releases define it."""
TOKEN_BYTES = 12
"""Bytes of a token in a message: target, head, members. A node has at most one token per step, so
this bounds the bytes per node per step, apart from one record per node per sample.
"""


def placed_links(
    offsets: NDArray[np.uint64],
    neighbors: NDArray[np.uint32],
    weights: NDArray[np.float32] | None,
    first: int,
    nodes: int,
) -> Links:
    """Return links with ``nodes`` rows, so that kernels find rows by node id. Only rows from
    ``first`` on exist; the other offsets take no memory. Never ``evict`` the links.
    """
    size = 8 * (nodes + 1)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNRESERVED
    placed = np.frombuffer(mmap.mmap(-1, size, flags=flags), np.uint64)
    placed[first : first + offsets.size] = offsets
    return Links(placed, neighbors, weights)


@dataclass(frozen=True)
class Traffic:
    """Bytes exchanged between blocks: ``tokens`` and ``records`` by walks, ``values`` by scans,
    ``trees`` and ``groups`` by the tree and min-hash layouts. ``steps`` counts the steps of all
    samples.
    """

    nodes: int
    steps: int = 0
    tokens: int = 0
    records: int = 0
    trees: int = 0
    values: int = 0
    groups: int = 0

    def plus(self, **more: int) -> Traffic:
        """Return a copy with these amounts added."""
        return replace(self, **{name: getattr(self, name) + more[name] for name in more})

    def plus_all(self, other: Traffic | None) -> Traffic:
        """Return the sum."""
        if other is None:
            return self
        return self.plus(**{each.name: getattr(other, each.name) for each in fields(other)[1:]})

    @property
    def each(self) -> float:
        """Return the mean bytes of tokens, records and values per node per step per sample."""
        sent = self.tokens + self.records + self.values
        return sent / max(1, self.nodes * self.steps)

    @property
    def whole(self) -> int:
        """Return the total number of bytes."""
        return self.tokens + self.records + self.trees + self.values + self.groups

    def facts(self) -> dict[str, int | float]:
        """Return the amounts as JSON fields."""
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


class BlockWalker:
    """The walker of a block. ``records`` contains the records received, by sample, in buckets 2 *
    block and 2 * block + 1.
    """

    def __init__(self, part: BlockPart, block: int) -> None:
        self._part, self._block, self._blocks = part, block, part.cuts.size - 1
        self.begin(range(0))

    def begin(self, samples: range) -> None:
        """Start new samples and drop all others."""
        self._states = {sample: MovingSample(MemorySpool, self._blocks) for sample in samples}
        self.records = {sample: MemorySpool(2 * self._blocks) for sample in samples}
        self._own = pack(())
        self._part.begin()

    def step(self, step: int, *messages: Message | None) -> tuple[object, ...]:
        """Receive the previous step's messages, then advance all samples by one step.

        Returns a tuple. Its first item is a pair: int64[samples], the numbers of tokens moved, and
        int64[2], the bytes of tokens and of records for other blocks. The other items are one
        message per block, None for this block.
        """
        self._receive(messages)
        live = np.zeros(len(self._states), np.int64)
        for i, (sample, state) in enumerate(self._states.items()):
            self._part.set_out(state, sample, step)
            live[i] = self._part.turn(state, self._block, step)
            state.arrived = MemorySpool(self._blocks)  # already received
        self._part.send_records(step)
        sent = np.zeros(2, np.int64)
        out: list[Message | None] = [self._packed(other) for other in range(self._blocks)]
        for other, message in enumerate(out):
            if message is not None and other != self._block:
                tokens = int(message.table[message.table[:, 1] == TOKENS, 3].sum()) * TOKEN_BYTES
                sent += tokens, message.nbytes - tokens
        own, out[self._block] = out[self._block], None
        assert own is not None
        self._own = own
        return (live, sent), *out

    def end(self, *messages: Message | None) -> None:
        """Receive the last step's messages, which contain only records."""
        self._receive(messages)

    def _receive(self, messages: Sequence[Message | None]) -> None:
        own, self._own = self._own, pack(())
        for sample, kind, tag, rows in unpack([own, *messages]):
            if kind == TOKENS:
                self._states[sample].arrived.put(self._block, tag, rows)
            else:  # copy, so that the message can be freed
                bucket = 2 * self._block + (kind == OUTER)
                self.records[sample].put(bucket, tag, rows.copy())

    def _packed(self, other: int) -> Message:
        found = []
        for sample, state in self._states.items():
            found.append((sample, TOKENS, state.going.take(other)))
            found.append((sample, INNER, state.records.take(2 * other)))
            found.append((sample, OUTER, state.records.take(2 * other + 1)))
        return pack(found)


class BlocksWalk:
    """The conductor of a ``crew`` of :class:`BlockWalker` objects."""

    def __init__(self, crew: WorkerPool, nodes: int, length: int) -> None:
        self.crew, self._length = crew, length
        self.traffic = Traffic(nodes)

    def walk(self, samples: range) -> dict[int, tuple[int, ...]]:
        """Walk the samples; return, for each sample, the number of tokens moved at each step."""
        crew, blocks = self.crew, range(self.crew.size)
        begun = [crew.call(block, "begin", samples)[0] for block in blocks]
        crew.take(begun)
        sent: list[list[object]] = [[None] * crew.size for _ in blocks]
        live: dict[int, list[int]] = {sample: [] for sample in samples}
        for step in range(1, self._length + 2):
            answers = [
                crew.call(b, "step", step, *(mine[b] for mine in sent), answers=1 + crew.size)
                for b in blocks
            ]
            reports = crew.take([answer[0] for answer in answers])
            sent = [answer[1:] for answer in answers]  # drops the previous messages
            counts = np.sum([count for count, _ in reports], axis=0)
            tokens, records = np.sum([size for _, size in reports], axis=0).tolist()
            moved = 0
            for sample, count in zip(samples, counts.tolist(), strict=True):
                if count and step <= self._length:
                    live[sample].append(count)
                    moved += 1
            self.traffic = self.traffic.plus(steps=moved, tokens=tokens, records=records)
            if not counts.any():
                break
        crew.take([crew.call(b, "end", *(mine[b] for mine in sent))[0] for b in blocks])
        return {sample: tuple(steps) for sample, steps in live.items()}
