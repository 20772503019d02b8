"""Scores from remote samples.

Here, a *shard* is a server with some samples of every part. A node's *row* lists the nodes that it
meets in any of these samples, with one *code* per sample:

    walks        uint8    the step at which the two nodes meet, 255 if they do not
    min-hashes   uint16   the mask of the rings in which the two nodes match

Codes determine sums, variances, intervals and the order of hits, so answers are bit-identical to
those of an index with exactly the same samples. There is one round of requests; late responses are
ignored. Each shard gathers one list, and computes the meeting times of all nodes found.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from operator import itemgetter
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
from cocite.index.layouts.trees.reader import MeetingReader, Times, TreeReader, WalkReader
from cocite.kernels import minhash
from cocite.measures import LENGTH, PartSettings

Codes = NDArray[Any]
Pair = tuple[int, int]


@dataclass(frozen=True)
class ShardRequest:
    """A request to a shard for nodes' rows and pairs' codes."""

    rows: tuple[int, ...] = ()
    pairs: tuple[Pair, ...] = ()
    ways: bool = False
    """Whether to return the pairs' walks or common min-hash values."""


class Row(NamedTuple):
    """A node's row: ``ids`` uint32[h], ascending, and ``codes`` [h, samples]. ``whole`` means that
    ``ids`` contains all nodes that the node meets.
    """

    ids: Ids
    codes: Codes
    whole: bool


class ShardResponse(NamedTuple):
    """A shard's response for one part: sample ``numbers`` int64[s], ascending; ``rows`` by node;
    ``walks`` uint32[s, length] by node; and ``common`` min-hash values uint32[s, length] by pair.
    """

    numbers: Ints
    rows: dict[int, Row]
    walks: dict[int, Ids]
    common: dict[Pair, Ids]


# -- on the shards --------------------------------------------------------------------------


def tell(reader: SummingReader, wanted: ShardRequest, settings: PartSettings) -> ShardResponse:
    """Return a shard's response for one part; its codes do not depend on ``settings``."""
    rows = {node: _row(reader, node, settings) for node in wanted.rows}
    pairs = sorted({pair for pair in wanted.pairs if pair[0] != pair[1]})
    for node, some in groupby(pairs, itemgetter(0)):
        if node not in rows:
            ids = np.array([other for _, other in some], np.uint32)
            rows[node] = Row(ids, _encode(reader, node, ids), False)
    walks, common = {}, {}
    if wanted.ways and isinstance(reader, WalkReader):
        walks = {node: reader.walks(node) for node in {*chain.from_iterable(pairs)}}
    elif wanted.ways and isinstance(reader, MinhashReader):
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


# -- on the coordinator ---------------------------------------------------------------------


class RemoteSamples:
    """All shards' responses for one part, ordered by sample number.

    Raises :class:`Damaged` if the responses do not match an index of ``nodes`` nodes.
    """

    def __init__(self, responses: Sequence[ShardResponse], nodes: int) -> None:
        self._reported = responses
        numbers = np.concatenate([each.numbers for each in responses])
        order = np.argsort(numbers, kind="stable")
        self.numbers: Ints = numbers[order]
        if np.any(self.numbers[1:] == self.numbers[:-1]):
            raise Damaged("two shards returned the same sample: restart the servers")
        place = np.empty(order.size, np.int64)
        place[order] = np.arange(order.size)
        ends = np.cumsum([0, *(each.numbers.size for each in responses)]).tolist()
        self._places = [place[a:b] for a, b in pairwise(ends)]
        for each in responses:
            for row in each.rows.values():
                if row.codes.shape != (row.ids.size, each.numbers.size) or (
                    row.ids.size and int(row.ids[-1]) >= nodes
                ):
                    raise Damaged("a shard answered for another index: restart it")

    def rows(self, node: int) -> Iterator[tuple[Ints, Row]]:
        """Yield each shard's sample positions and row of ``node``."""
        for places, each in zip(self._places, self._reported, strict=True):
            yield places, each.rows[node]

    def encoded(self, node: int, others: Ids, nothing: int, kind: type[np.generic]) -> Codes:
        """Return [samples, h]: the codes of ``node`` with ``others``, or else ``nothing``."""
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
        """Return the node's walks, uint32[samples, length]."""
        return self._merged([each.walks[node] for each in self._reported], length)

    def common(self, pair: Pair, length: int) -> Ids:
        """Return the pair's common min-hash values, uint32[samples, length]."""
        return self._merged([each.common[pair] for each in self._reported], length)


class _DecodedRows(SummingReader):
    """Reader of a part from shard responses."""

    response: RemoteSamples

    def at_once(
        self, nodes: Ids, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> list[ListedHits] | None:
        """Return None: no kernel supports remote samples."""
        return None

    @abstractmethod
    def worths(self, settings: PartSettings) -> NDArray[np.uint64]:
        """Return uint64[codes, 2]: each code's value and squared value, in fixed point."""

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up the rows of all shards."""
        table, count = self.worths(settings), 0
        for _, row in self.response.rows(node):
            assert row.whole, "a node that was not requested"
            arrays = scratch.sums, scratch.used
            count = int(minhash.add(row.ids, row.codes, table, *arrays, count))
        return count


class _Meetings(_DecodedRows, MeetingReader):
    """Reader whose codes are meeting times."""

    def worths(self, settings: PartSettings) -> NDArray[np.uint64]:
        """Return the values by meeting time; values for times of 16 or more are 0."""
        found = np.zeros((256, 2), np.uint64)
        worth = weights_of(self.weight(settings).values)
        found[: len(worth)] = worth
        found.flags.writeable = False
        return found

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 if the walks do not meet."""
        found: Times = self.response.encoded(node, others, int(NEVER), np.uint8)
        return found


class RemoteWalks(_Meetings, WalkReader):
    """The ``paths`` and ``compact`` layouts, with walks if they were requested."""

    def walks(self, node: int) -> Ids:
        """Return the node's walk in every sample."""
        return self.response.walks(node, self.part.settings[LENGTH])


class RemoteTrees(_Meetings, TreeReader):
    """The ``trees`` and ``packed`` layouts; walks are repeated on the graph if it is available."""


class RemoteMinhash(_DecodedRows, MinhashReader):
    """The ``minhash`` layout, with masks as codes."""

    def worths(self, settings: PartSettings) -> NDArray[np.uint64]:
        """Return the values by mask."""
        return self.table(settings)

    def masks_with(self, node: int, others: Ids) -> Masks:
        """Return uint16[samples, h]: the masks of ``node`` with ``others`` (without ``node``)."""
        found: Masks = self.response.encoded(node, others, 0, np.uint16)
        return found

    def common(self, first: int, second: int) -> Ids:
        """Return the common min-hash values of two different nodes, by sample and ring."""
        return self.response.common((first, second), self.length)


SPREAD: dict[str, type[_DecodedRows]] = {
    "compact": RemoteWalks,
    "minhash": RemoteMinhash,
    "packed": RemoteTrees,
    "paths": RemoteWalks,
    "trees": RemoteTrees,
}
"""Readers of the layouts whose samples can be distributed over a cluster."""


def refuse_layout(layout: str) -> None:
    """Raise :class:`UsageError` for a layout whose samples cannot be distributed."""
    if layout not in SPREAD:
        raise UsageError(
            f"an answer in the {layout} layout has a value for each node, too many to send through "
            "a cluster. Build the index without --bits (bits=...), or serve it on one machine"
        )


def remote_reader(part: StoredPart, response: RemoteSamples) -> Reader:
    """Return a reader of a part from shard responses."""
    fresh = part.freshness
    if not np.array_equal(fresh.held, response.numbers):
        fresh = replace(fresh, there=(response.numbers,))
    reader = SPREAD[part.layout](replace(part, freshness=fresh, only=None))
    reader.response = response
    return reader
