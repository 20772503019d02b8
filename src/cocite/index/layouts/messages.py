"""Parts with remote samples: responses of shards about a node, and the resulting scores.

Here, a *shard* has some samples of every part. The *row* of a node lists the nodes that it meets in
any of these samples, with a *code* per sample:

    walks        uint8    the step at which the two meet, 255 if they do not
    min-hashes   uint16   the mask of the rings in which they match

Sums, variances, intervals and the order of hits follow from codes, so answers are bit-identical to
those of an index with exactly the same samples. There is one round; late responses are ignored.
Cost per shard: ``gather``, and the meeting times of all nodes found.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NEVER, Ids, Ints
from cocite.errors import Damaged, UsageError
from cocite.index.layouts.minhash.reader import Masks, MatchReader, MinhashReader
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import (
    ListedHits,
    QueryScratch,
    Reader,
    SummingReader,
    borrowed,
    weights_of,
)
from cocite.index.layouts.trees.meetings import MeetingReader, Times, WalkReader
from cocite.index.layouts.trees.reader import CompactReader, PathReader, TreeReader
from cocite.measures import LENGTH, PartSettings

Codes = NDArray[Any]
Pair = tuple[int, int]


@dataclass(frozen=True)
class ShardRequest:
    """Request to a shard: rows of nodes, codes of pairs, and where pairs meet."""

    rows: tuple[int, ...] = ()
    pairs: tuple[Pair, ...] = ()
    ways: bool = False
    """Whether to return the walks, or common winners, of the pairs."""


class Row(NamedTuple):
    """``ids`` uint32[h], ascending, and ``codes`` [h, samples]. ``whole`` means that these are all
    nodes that the node meets.
    """

    ids: Ids
    codes: Codes
    whole: bool


class ShardResponse(NamedTuple):
    """Response of a shard for one part: its sample ``numbers`` int64[s], ascending; rows by node;
    walks by node, uint32[s, length]; and common winners by pair, of the same shape.
    """

    numbers: Ints
    rows: dict[int, Row]
    walks: dict[int, Ids]
    common: dict[Pair, Ids]


# -- where the samples are ------------------------------------------------------------------


def tell(reader: SummingReader, wanted: ShardRequest, settings: PartSettings) -> ShardResponse:
    """Return the response of a shard for one part. Codes do not depend on ``settings``, so those of
    any query will do.
    """
    rows = {node: _row(reader, node, settings) for node in wanted.rows}
    others: dict[int, list[int]] = {}
    for node, other in wanted.pairs:
        if node != other and node not in rows:
            others.setdefault(node, []).append(other)
    for node, some in others.items():
        ids = np.unique(np.array(some, np.uint32))
        rows[node] = Row(ids, _encode(reader, node, ids), False)
    walks, common = {}, {}
    if wanted.ways:
        pairs = [pair for pair in wanted.pairs if pair[0] != pair[1]]
        if isinstance(reader, WalkReader):
            walks = {node: reader.walks(node) for node in {n for pair in pairs for n in pair}}
        elif isinstance(reader, MinhashReader):
            common = {pair: reader.common(*pair) for pair in pairs}
    return ShardResponse(reader.part.freshness.held, rows, walks, common)


def _row(reader: SummingReader, node: int, settings: PartSettings) -> Row:
    with borrowed(reader.part.nodes) as scratch:
        count = reader.gather_sums(node, settings, scratch)
        ids = np.sort(scratch.used[:count])
        scratch.sums[ids] = 0
        scratch.wear += count
    return Row(ids, _encode(reader, node, ids), True)


def _encode(reader: Reader, node: int, ids: Ids) -> Codes:
    found: Codes
    if isinstance(reader, MeetingReader):
        found = reader.times_with(node, ids)
    else:
        assert isinstance(reader, MatchReader)
        found = reader.masks_with(node, ids)
    return np.ascontiguousarray(found.T)


# -- where they are added up ----------------------------------------------------------------


class RemoteSamples:
    """Responses of all shards for one part, ordered by sample number.

    Raises :class:`Damaged` for responses that do not match an index of this many ``nodes``.
    """

    def __init__(self, told: Sequence[ShardResponse], nodes: int) -> None:
        self._reported = told
        numbers = np.concatenate([each.numbers for each in told])
        order = np.argsort(numbers, kind="stable")
        self.numbers: Ints = numbers[order]
        if np.any(self.numbers[1:] == self.numbers[:-1]):
            raise Damaged("two shards returned the same sample: restart the servers")
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        ends = np.cumsum([0, *(each.numbers.size for each in told)]).tolist()
        self._places = [place[a:b] for a, b in pairwise(ends)]
        for each in told:
            for row in each.rows.values():
                if row.codes.shape != (row.ids.size, each.numbers.size) or (
                    row.ids.size and int(row.ids[-1]) >= nodes
                ):
                    raise Damaged("a shard answered for another index: restart it")

    def rows(self, node: int) -> Iterator[tuple[Ints, Row]]:
        """Yield, for each shard, the positions of its samples and its row of ``node``."""
        for places, each in zip(self._places, self._reported, strict=True):
            yield places, each.rows[node]

    def encoded_meetings(
        self, node: int, others: Ids, nothing: int, kind: type[np.generic]
    ) -> Codes:
        """Return [samples, h]: the codes of ``node`` with ``others``; ``nothing`` where they do not
        meet.
        """
        found = np.full((self.numbers.size, others.size), nothing, kind)
        for places, row in self.rows(node):
            at = np.searchsorted(row.ids, others)
            at[at == row.ids.size] = 0
            there = row.ids[at] == others if row.ids.size else np.zeros(others.size, bool)
            assert row.whole or there.all(), "a pair that was not requested"
            columns = np.flatnonzero(there)
            found[places[:, None], columns] = row.codes[at[columns]].T
        return found

    def _merged(self, each: Sequence[Ids], width: int) -> Ids:
        found = np.empty((self.numbers.size, width), np.uint32)
        for places, some in zip(self._places, each, strict=True):
            found[places] = some
        return found

    def walks(self, node: int, length: int) -> Ids:
        """Return the walks of ``node``, uint32[samples, length]."""
        return self._merged([each.walks[node] for each in self._reported], length)

    def common(self, pair: Pair, length: int) -> Ids:
        """Return the common winners of a pair, uint32[samples, length]."""
        return self._merged([each.common[pair] for each in self._reported], length)


class _DecodedRows(SummingReader):
    """Reader of a part from the responses of shards."""

    response: RemoteSamples

    def at_once(
        self, node: int, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> ListedHits | None:
        """Return None, as no kernel supports it."""
        return None

    @abstractmethod
    def worths(self, settings: PartSettings) -> NDArray[np.uint64]:
        """Return uint64[codes, 2]: the value of each code and its square, in fixed point."""

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up the rows of all shards."""
        from cocite.kernels import minhash

        table, count = self.worths(settings), 0
        for _, row in self.response.rows(node):
            assert row.whole, "a node that was not requested"
            arrays = scratch.sums, scratch.used
            count = int(minhash.add(row.ids, row.codes, table, *arrays, count))
        return count


class _Meetings(_DecodedRows, MeetingReader):
    """Reader whose codes are meeting times."""

    def worths(self, settings: PartSettings) -> NDArray[np.uint64]:
        """Return values by meeting time; 0 from 16 on."""
        found = np.zeros((256, 2), np.uint64)
        worth = weights_of(self.weight(settings).values)
        found[: len(worth)] = worth
        found.flags.writeable = False
        return found

    def times_with(self, node: int, others: Ids) -> Times:
        """Return the meeting times in all samples, uint8[samples, h]; 255 without a meeting."""
        found: Times = self.response.encoded_meetings(node, others, int(NEVER), np.uint8)
        return found


class _Walks(_Meetings, WalkReader):
    """Reader with walks, if they were requested."""

    def walks(self, node: int) -> Ids:
        """Return the walk of a node in every sample."""
        return self.response.walks(node, self.part.settings[LENGTH])


class RemoteTrees(_Meetings, TreeReader):
    """Layouts ``trees`` and ``packed``: walks are recomputed on the graph, if available."""


class RemotePaths(_Walks, PathReader):
    """The layout ``paths``."""


class RemoteCompact(_Walks, CompactReader):
    """The layout ``compact``."""


class RemoteMinhash(_DecodedRows, MinhashReader):
    """The layout ``minhash``, with masks as codes."""

    def worths(self, settings: PartSettings) -> NDArray[np.uint64]:
        """Return values by mask."""
        return self.table(settings)

    def masks_with(self, node: int, others: Ids) -> Masks:
        """Return uint16[samples, h]: the masks of a node with ``others``, which must not include
        it.
        """
        found: Masks = self.response.encoded_meetings(node, others, 0, np.uint16)
        return found

    def common(self, first: int, second: int) -> Ids:
        """Return the common winners of two different nodes, for all samples and rings."""
        return self.response.common((first, second), self.length)


SPREAD: dict[str, type[_DecodedRows]] = {
    "compact": RemoteCompact,
    "minhash": RemoteMinhash,
    "packed": RemoteTrees,
    "paths": RemotePaths,
    "trees": RemoteTrees,
}
"""Layouts whose samples can be remote."""


def refuse_layout(layout: str) -> None:
    """Raise :class:`UsageError` for a layout whose samples affect every pair of nodes."""
    if layout not in SPREAD:
        raise UsageError(
            f"an answer in the layout {layout} covers all nodes, which is too long to send "
            "through a cluster. Build the index without --bits, or serve it on one machine"
        )


def remote_reader(part: StoredPart, response: RemoteSamples) -> Reader:
    """Return a reader of a part for the responses of shards."""
    fresh = part.freshness
    if not np.array_equal(fresh.held, response.numbers):
        fresh = replace(fresh, there=(response.numbers,))
    reader = SPREAD[part.layout](replace(part, freshness=fresh, only=None))
    reader.response = response
    return reader
