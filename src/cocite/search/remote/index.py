"""The index that asks shards of samples wherever they are, and the one that answers a question.

Names, titles, the graph, filters, and parts that have no samples stay here; of the samples only
what they tell comes in. A question asks all shards once (``search/remote/replicas.py``), and what
has not told anything by the deadline is left out: the answer is that of an index of the samples
that did, with intervals of their number, and says how many they were. If all of them did it is that
of the index itself, to the bit.

Cost: one round of calls, and of what is told a look into a table for each candidate and sample.

What a server of samples holds: a shard of an index, which it tells of when it is asked.

A shard is a stretch of the samples of every part, one of ``shards`` that are as even as can be. Of
a refreshed index it has every so many of them instead, so that each shard knows all nodes as well
as the whole does. Files are mapped, and only those pages are ever read that its samples lie in.

What a question finds to be damaged is left out, and the other samples of the shard go on telling.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, NoReturn, Protocol, Self

import numpy as np
from numpy.typing import NDArray

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
from cocite.index.layouts.reader import Reader, SummingReader, is_sampled, reader_of
from cocite.measures import SAMPLES
from cocite.resources import Resources
from cocite.search.evidence import Evidence
from cocite.search.hits import HitLists, Hits, Score
from cocite.search.index import Index
from cocite.search.refine.candidates import Refiner
from cocite.search.scorer import Answers
from cocite.search.source import GivenGraph
from cocite.search.stages import Why, WhyTogether


def spread_parts(stored: StoredIndex) -> list[int]:
    """Which parts of an index have samples that are elsewhere; raises :class:`UsageError`."""
    found = [i for i, part in enumerate(stored.parts) if is_sampled(part.layout)]
    for i in found:
        refuse_layout(stored.parts[i].layout)
    return found


def held_by(part: StoredPart, shard: int, shards: int) -> NDArray[np.int64]:
    """int64[s], ascending: the numbers of the samples of a part that a shard has."""
    held = part.freshness.held
    if len(part.freshness.generations) > 1:
        return held[shard::shards]
    return held[shard * held.size // shards : (shard + 1) * held.size // shards]


def marked(stored: StoredIndex) -> str:
    """What tells an index from another that takes its place."""
    return f"{stored.store.manifest.digest()} {sorted(stored.store.lost)}"


@dataclass(frozen=True)
class Holds:
    """What a server says of itself: which shard of which index it holds, how many samples of the
    part that has the fewest, what questions found to be damaged since, and its process.
    """

    shard: int
    mark: str
    samples: int
    lost: tuple[str, ...]
    process: int


class SampleHolder:
    """A shard, opened. Its methods are asked from elsewhere, one at a time."""

    def __init__(self, path: str, shard: int, shards: int) -> None:
        """Opens the index at ``path``; raises a :class:`~cocite.errors.StoreError`."""
        stored = StoredIndex.open(path)
        self._mark, self._shard = marked(stored), shard
        self._numbers = {i: held_by(stored.parts[i], shard, shards) for i in spread_parts(stored)}
        self._lost: tuple[str, ...] = ()
        self._open(stored)
        if stored.nodes:  # loads what every question needs, so that the first takes no longer
            self.tell(ShardRequest(rows=(0,), pairs=((0, stored.nodes - 1),), ways=True))

    def _open(self, stored: StoredIndex) -> None:
        self._stored, self._readers = stored, dict[int, Reader]()
        for i, numbers in self._numbers.items():
            part = stored.parts[i]
            left = np.intersect1d(numbers, part.freshness.held)
            if not left.size:
                raise Damaged(f"shard {self._shard} of {stored.store.path} has lost all samples")
            self._readers[i] = reader_of(part.of(left))
        self._queried = stored.ask_settings({})

    def holds(self) -> Holds:
        """What it holds: the answer to whether it is there."""
        counts = [reader.part.samples for reader in self._readers.values()]
        return Holds(self._shard, self._mark, min(counts), self._lost, os.getpid())

    def tell(self, wanted: ShardRequest) -> tuple[str, dict[int, ShardResponse]]:
        """What its samples tell, of each part, and of which index they are."""
        while True:
            try:
                return self._mark, {i: self._of(r, wanted) for i, r in self._readers.items()}
            except DamagedShard as found:
                self._lost = *self._lost, found.file
                self._open(self._stored.without(found.file, str(found)))

    def _of(self, reader: Reader, wanted: ShardRequest) -> ShardResponse:
        assert isinstance(reader, SummingReader)
        return tell(reader, wanted, reader.part.ask_settings(self._queried))


# -- spread ------------------------------------------------------------------------------


class ShardStatus(NamedTuple):
    """A server of a shard, as who asks it sees it.

    ``node`` is where it was placed; ``state`` is ``answers``, or ``left alone`` with the ``fault``.
    ``waiting`` are the questions that it has not answered yet, ``seconds`` the mean of how long an
    answer takes, ``opened`` how many times it was found not to answer, ``restarts`` how many times
    another process was there in its place.
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
    """Whoever carries questions to shards (``search/remote/replicas.py``)."""

    shards: int

    def ask(self, wanted: ShardRequest, shards: int) -> list[tuple[int, dict[int, ShardResponse]]]:
        """What so many shards told, of each part, by the deadline: of one at least."""

    def seen(self) -> list[ShardStatus]:
        """All servers."""

    def close(self) -> None:
        """Let the servers go."""


class Answered(NamedTuple):
    """Who answered a question: how many samples, of how many shards, of how many there are."""

    samples: int
    shards: int
    of: int


class SpreadIndex(Index):
    """An index whose samples are asked elsewhere. Safe to share between threads."""

    def __init__(
        self, stored: StoredIndex, means: Resources, graph: GivenGraph, company: ShardQuery
    ) -> None:
        """Raises :class:`UsageError` for an index that has no samples, or such as are not asked
        over a cluster.
        """
        super().__init__(stored, means, graph)
        self.spread = spread_parts(stored)
        if not self.spread:
            raise UsageError(
                f"{stored.measure.name} has no samples that could be spread over a cluster: its "
                "scores are computed. Serve it without --cluster"
            )
        self.company = company
        self._some: int | None = None
        self._last = threading.local()
        _ = stored.names, stored.titles, stored._cached_settings  # which all questions share

    def first(self, samples: int) -> SpreadIndex:
        """The same index asked for so many samples, those of whichever shards have least to do."""
        have = self.stored.samples or 0
        if type(samples) is not int or not 1 <= samples <= have:
            raise UsageError(f"samples is {samples!r}; the index has {have}: ask for 1 to {have}")
        found = copy(self)
        found._some = samples
        return found

    @property
    def samples(self) -> int | None:
        """How many samples a question is asked of."""
        return self.stored.samples if self._some is None else self._some

    @property
    def query_shards(self) -> int:
        """How many shards a question is asked of."""
        have = self.stored.samples or 1
        return -(-(self.samples or have) * self.company.shards // have)

    @property
    def shards(self) -> list[ShardStatus]:
        """All servers of shards, as they are seen now."""
        return self.company.seen()

    @property
    def answered(self) -> Answered | None:
        """Who answered the last question of this thread."""
        last: OneQuestion | None = self._last.__dict__.get("question")
        return None if last is None else last.answered

    def one_question(self) -> OneQuestion:
        """For a single question: all that it is asked about a node, such as the order of hits, is
        of the same samples.
        """
        found = self._last.question = OneQuestion(self)
        return found

    def close(self) -> None:
        """Let the servers of samples go."""
        self.company.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def similarity(self, a: object, b: object, **options: Any) -> Score:
        """As of any index."""
        return self.one_question().similarity(a, b, **options)

    def related(self, node: object, *args: Any, **options: Any) -> Hits:
        """As of any index; :attr:`answered` says who answered."""
        return self.one_question().related(node, *args, **options)

    def why(self, a: object, b: object, *args: Any, **options: Any) -> Why:
        """As of any index."""
        return self.one_question().why(a, b, *args, **options)

    def why_together(
        self, nodes: Sequence[object], b: object, *args: Any, **options: Any
    ) -> WhyTogether:
        """As of any index."""
        return self.one_question().why_together(nodes, b, *args, **options)

    def similarities(self, *args: Any, **options: Any) -> NoReturn:
        """Not asked over servers of samples, which are for single questions."""
        raise UsageError(
            "servers of samples are for single questions; many pairs are asked of whole files: "
            "open the index without them (cocite.open), or ask for one pair at a time"
        )

    def related_all(self, *args: Any, **options: Any) -> NoReturn:
        """Not asked over servers of samples, which are for single questions."""
        raise UsageError(
            "servers of samples are for single questions; related-all reads whole files: give it "
            "the index without them (cocite related-all --cluster spreads its nodes)"
        )


class OneQuestion(Index):
    """An index for one question, of one thread: it asks the shards, and then is the index of what
    they told.
    """

    def __init__(self, root: SpreadIndex) -> None:
        Answers.__init__(self, root.stored, root.means, root._graph)
        self._instead, self._root = None, root
        self._heard: ShardRequest | None = None
        self.answered: Answered | None = None
        self.__dict__["_kept_ranks"] = root.__dict__.setdefault("_kept_ranks", {})

    def _hear(self, wanted: ShardRequest) -> None:
        """Ask the shards, and be the index of those that tell something."""
        root, self._heard = self._root, wanted
        told = root.company.ask(wanted, root.query_shards)
        check()
        stored = copy(root.stored)
        heard = {i: RemoteSamples([each[i] for _, each in told], stored.nodes) for i in root.spread}
        readers = tuple(
            remote_reader(part, heard[i]) if i in heard else root.readers[i]
            for i, part in enumerate(stored.parts)
        )
        stored.parts = tuple(reader.part for reader in readers)
        fresh = [stored.parts[i].freshness for i in root.spread]
        if any(each.there for each in fresh):
            stored.freshness = replace(stored.freshness, there=tuple(each.held for each in fresh))
        samples = stored.samples or 0
        if SAMPLES in stored.settings and samples < (root.stored.samples or 0):
            stored.settings = stored.settings.changed(SAMPLES, samples)
        for name in ("readers", "_sampled", "_scatters", "_looked", "_refiner"):
            self.__dict__.pop(name, None)
        self._stored, self.__dict__["readers"] = stored, readers
        self.answered = Answered(samples, len(told), root.company.shards)

    @property
    def left_out(self) -> dict[str, Any]:
        """What an answer says of shards that told nothing."""
        found = self.answered
        if found is None or found.shards == found.of:
            return {}
        return {"samples": found.samples, "shards": {"answered": found.shards, "of": found.of}}

    @property
    def _evidence(self) -> Evidence:
        return self._root._evidence

    @property
    def refiner(self) -> Refiner | None:
        """What gives refined answers: where that needs no samples, the same for all questions."""
        if all(part.plan.linearized for part in self._stored.parts):
            return self._root.refiner
        return super().refiner

    def one_question(self) -> OneQuestion:
        """Itself."""
        return self

    def related_many(self, nodes: Iterable[object], *args: Any, **options: Any) -> HitLists:
        """As of any index: each node is a question."""
        return self._root.related_many(nodes, *args, **options)

    def similarity(self, a: object, b: object, **options: Any) -> Score:
        """As of any index."""
        self._hear(ShardRequest(pairs=(self._pair_of(a, b),)))
        return super().similarity(a, b, **options)

    def similarities(self, *args: Any, **options: Any) -> NoReturn:
        """Not asked over servers of samples."""
        self._root.similarities(*args, **options)

    def related(self, node: object, *args: Any, **options: Any) -> Hits:
        """As of any index."""
        self._hear(ShardRequest(rows=self._ids_of(node)))
        return super().related(node, *args, **options)

    def why(self, a: object, b: object, *args: Any, **options: Any) -> Why:
        """As of any index."""
        self._hear(ShardRequest(pairs=(self._pair_of(a, b),), ways=True))
        return super().why(a, b, *args, **options)

    def why_together(
        self, nodes: Sequence[object], b: object, *args: Any, **options: Any
    ) -> WhyTogether:
        """As of any index."""
        other = self.nodes.id(b)
        pairs = tuple((node, other) for node in self._ids_of(list(nodes)) if node != other)
        self._hear(ShardRequest(pairs=pairs, ways=True))
        return super().why_together(nodes, b, *args, **options)
