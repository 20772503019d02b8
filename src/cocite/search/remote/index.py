"""Sample shards on other machines: the server of a shard, and the scorer of responses.

Names, titles, the graph, filters, and unsampled parts stay on this machine; only the samples'
responses are transferred. A query goes to all shards once (``search/remote/replicas.py``). A
:class:`~cocite.search.scorer.Scorer` answers from the samples that responded, with one lookup per
candidate per sample. If all shards respond, the answer is bit-identical to the whole index's.

A shard is one of ``shards`` ranges of each part's samples. In a refreshed index, a shard has every
n-th sample instead, so that each node is in about the same number of samples of every shard.
"""

from __future__ import annotations

import os
import threading
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from cocite.constants import Ints
from cocite.deadline import check
from cocite.errors import Damaged, UsageError
from cocite.index import StoredIndex
from cocite.index.layouts.messages import (
    RemoteSamples,
    ShardRequest,
    ShardResponse,
    refuse_layout,
    remote_reader,
    tell,
)
from cocite.index.layouts.part import DamagedShard, StoredPart
from cocite.index.layouts.reader import SummingReader, is_sampled, reader_of
from cocite.measures import SAMPLES
from cocite.search.scorer import Scorer


def spread_parts(stored: StoredIndex) -> list[int]:
    """Return the sampled parts; raises :class:`UsageError` if one cannot be distributed."""
    found = [i for i, part in enumerate(stored.parts) if is_sampled(part.layout)]
    for i in found:
        refuse_layout(stored.parts[i].layout)
    return found


def held_by(part: StoredPart, shard: int, shards: int) -> Ints:
    """Return int64[s], ascending: the numbers of a part's samples in a shard."""
    held = part.freshness.held
    if len(part.freshness.snapshots) > 1:
        return held[shard::shards]
    return held[shard * held.size // shards : (shard + 1) * held.size // shards]


def marked(stored: StoredIndex) -> str:
    """Return an identifier that changes if another index replaces this one."""
    return f"{stored.store.manifest.digest()} {sorted(stored.store.lost)}"


@dataclass(frozen=True)
class Holds:
    """A server's state: ``mark`` identifies the index, ``samples`` is the minimum over the parts,
    ``lost`` lists files that queries found damaged, and ``process`` is the process id.
    """

    shard: int
    mark: str
    samples: int
    lost: tuple[str, ...]
    process: int


class SampleHolder:
    """The server of a shard. Clients call one method at a time."""

    def __init__(self, path: str, shard: int, shards: int) -> None:
        """Open the index at ``path``; raises :class:`~cocite.errors.StoreError`."""
        stored = StoredIndex.open(path)
        self._mark, self._shard = marked(stored), shard
        self._numbers = {i: held_by(stored.parts[i], shard, shards) for i in spread_parts(stored)}
        self._lost: tuple[str, ...] = ()
        self._open(stored)
        if stored.nodes:  # load what all queries need, so that the first one is not slow
            self.tell(ShardRequest(rows=(0,), pairs=((0, stored.nodes - 1),), ways=True))

    def _open(self, stored: StoredIndex) -> None:
        self._stored, self._readers = stored, dict[int, SummingReader]()
        for i, numbers in self._numbers.items():
            part = stored.parts[i]
            left = np.intersect1d(numbers, part.freshness.held)
            if not left.size:
                raise Damaged(f"shard {self._shard} of {stored.store.path} has lost all samples")
            reader = reader_of(part.of(left))
            assert isinstance(reader, SummingReader)
            self._readers[i] = reader
        self._queried = stored.ask_settings({})

    def holds(self) -> Holds:
        """Return the server's state; also serves as a health check."""
        counts = [reader.part.samples for reader in self._readers.values()]
        return Holds(self._shard, self._mark, min(counts), self._lost, os.getpid())

    def tell(self, request: ShardRequest) -> tuple[str, dict[int, ShardResponse]]:
        """Return the index identifier, and the response of each part's samples."""
        while True:
            try:
                return self._mark, {
                    i: tell(reader, request, reader.part.ask_settings(self._queried))
                    for i, reader in self._readers.items()
                }
            except DamagedShard as found:
                self._lost = *self._lost, found.file
                self._open(self._stored.without(found.file, str(found)))


class ShardStatus(NamedTuple):
    """A server's state, as clients observe it.

    ``node`` is the location; ``state`` is ``answers``, or ``left alone`` because of ``fault``.
    ``waiting`` counts pending queries, ``opened`` counts failures, and ``restarts`` counts replaced
    processes; ``seconds`` is the mean response time.
    """

    shard: int
    replica: int
    node: str
    samples: int
    state: str
    fault: str
    waiting: int
    seconds: float
    opened: int
    restarts: int


class ShardQuery(Protocol):
    """The interface for shard queries (``search/remote/replicas.py``)."""

    shards: int

    def ask(self, request: ShardRequest, shards: int) -> list[tuple[int, dict[int, ShardResponse]]]:
        """Query ``shards`` shards; return (shard, responses by part), at least one."""

    def status(self) -> list[ShardStatus]:
        """Return each server's state."""

    def close(self) -> None:
        """Stop the servers."""


class Answered(NamedTuple):
    """How many samples and shards answered a query, and the total number of shards."""

    samples: int
    shards: int
    of: int


class RemoteShards:
    """An index's sample shards. Thread-safe."""

    def __init__(self, stored: StoredIndex, replicas: ShardQuery) -> None:
        """Query samples through ``replicas``. Raises :class:`UsageError` if the index has no
        samples, or has samples that cannot be distributed.
        """
        self._stored, self.replicas = stored, replicas
        self.parts = spread_parts(stored)
        if not self.parts:
            raise UsageError(
                f"{stored.measure.name} has no samples to distribute over a cluster: its "
                "scores are computed without samples. Serve the index without --cluster"
            )
        self._some: int | None = None
        self._last = threading.local()
        _ = stored.names, stored.titles, stored._cached_settings  # all queries share these

    def with_samples(self, samples: int) -> RemoteShards:
        """Return shards whose queries use this many samples, on the least busy servers."""
        self._stored.with_samples(samples)  # raises an error if there are fewer
        found = copy(self)
        found._some = samples
        return found

    @property
    def samples(self) -> int | None:
        """Return the number of samples that a query uses."""
        return self._stored.samples if self._some is None else self._some

    @property
    def query_shards(self) -> int:
        """Return the number of shards that a query uses."""
        have = self._stored.samples or 1
        return -(-(self.samples or have) * self.replicas.shards // have)

    @property
    def answered(self) -> Answered | None:
        """Return how many samples and shards answered this thread's last query."""
        return self._last.__dict__.get("answered")

    def refuse(self, what: str, instead: str) -> NoReturn:
        """Raise :class:`UsageError` for a query with many nodes."""
        raise UsageError(
            f"sample servers answer single queries only; for {what}, open the index without a "
            f"cluster, {instead}"
        )

    def ask(self, whole: Scorer, request: ShardRequest) -> tuple[Scorer, Answered]:
        """Query the shards; return a scorer over the responses and the unsampled parts of
        ``whole``, and how many samples and shards answered.
        """
        replicas = self.replicas
        responses = replicas.ask(request, self.query_shards)
        check()
        stored = copy(self._stored)
        samples_of = {
            i: RemoteSamples([each[i] for _, each in responses], stored.nodes) for i in self.parts
        }
        local = whole.readers
        readers = tuple(
            remote_reader(part, samples_of[i]) if i in samples_of else local[i]
            for i, part in enumerate(stored.parts)
        )
        stored.parts = tuple(reader.part for reader in readers)
        fresh = [stored.parts[i].freshness for i in self.parts]
        if any(each.there for each in fresh):
            stored.freshness = replace(stored.freshness, there=tuple(each.held for each in fresh))
        samples = stored.samples or 0
        if SAMPLES in stored.settings and samples < (self._stored.samples or 0):
            stored.settings = stored.settings.changed(SAMPLES, samples)
        answered = Answered(samples, len(responses), replicas.shards)
        self._last.answered = answered
        return whole.over(stored, readers), answered
