"""The index that asks shards of samples wherever they are, and the one that answers a question.

Names, titles, the graph, filters, and parts that have no samples stay here; of the samples only
what they tell comes in. A question asks all shards once (``company.py``), and what has not told
anything by the deadline is left out: the answer is that of an index of the samples that did, with
intervals of their number, and says how many they were. If all of them did it is that of the index
itself, to the bit.

Cost: one round of calls, and of what is told a look into a table for each candidate and sample.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn, Protocol, Self

from cocite.deadline import check
from cocite.errors import UsageError
from cocite.index import StoredIndex
from cocite.layouts.heard import Heard, Told, Wanted, heard_reader
from cocite.means import Means
from cocite.measures import SAMPLES
from cocite.query.answers import Answers
from cocite.query.evidence import Evidence
from cocite.query.hits import HitLists, Hits
from cocite.query.index import Index
from cocite.query.refine.refiner import Refiner
from cocite.query.scores import Hit, Score
from cocite.query.shards.holder import spread_parts
from cocite.query.source import Given
from cocite.query.why import Why, WhyTogether

__all__ = ["Answered", "Asked", "OneQuestion", "ShardSeen", "SpreadIndex"]


class ShardSeen(NamedTuple):
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


class Asked(Protocol):
    """Whoever carries questions to shards (``company.py``)."""

    shards: int

    def ask(self, wanted: Wanted, shards: int) -> list[tuple[int, dict[int, Told]]]:
        """What so many shards told, of each part, by the deadline: of one at least."""

    def seen(self) -> list[ShardSeen]:
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

    def __init__(self, stored: StoredIndex, means: Means, graph: Given, company: Asked) -> None:
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
        _ = stored.names, stored.titles, stored._kept_settings  # which all questions share

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
    def asked_shards(self) -> int:
        """How many shards a question is asked of."""
        have = self.stored.samples or 1
        return -(-(self.samples or have) * self.company.shards // have)

    @property
    def shards(self) -> list[ShardSeen]:
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

    def certain(self, node: object, hits: Sequence[Hit], **options: Any) -> int:
        """As of any index, by the samples of this thread's last question, if that was of the same
        node.
        """
        last: OneQuestion | None = self._last.__dict__.get("question")
        if last is None or not last.knows(self._ids_of(node)):
            last = self.one_question()
        return last.certain(node, hits, **options)

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
        self._heard: Wanted | None = None
        self.answered: Answered | None = None
        self.__dict__["_kept_ranks"] = root.__dict__.setdefault("_kept_ranks", {})

    def knows(self, nodes: tuple[int, ...]) -> bool:
        """Whether it was asked for all that these nodes meet."""
        return self._heard is not None and set(nodes) <= set(self._heard.rows)

    def _hear(self, wanted: Wanted) -> None:
        """Ask the shards, and be the index of those that tell something."""
        root, self._heard = self._root, wanted
        told = root.company.ask(wanted, root.asked_shards)
        check()
        stored = copy(root.stored)
        heard = {i: Heard([each[i] for _, each in told], stored.nodes) for i in root.spread}
        readers = tuple(
            heard_reader(part, heard[i]) if i in heard else root.readers[i]
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
        if all(part.plan.linearised for part in self._stored.parts):
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
        self._hear(Wanted(pairs=(self._pair_of(a, b),)))
        return super().similarity(a, b, **options)

    def similarities(self, *args: Any, **options: Any) -> NoReturn:
        """Not asked over servers of samples."""
        self._root.similarities(*args, **options)

    def related(self, node: object, *args: Any, **options: Any) -> Hits:
        """As of any index."""
        self._hear(Wanted(rows=self._ids_of(node)))
        return super().related(node, *args, **options)

    def certain(self, node: object, hits: Sequence[Hit], **options: Any) -> int:
        """As of any index, by the samples that made the hits."""
        nodes = self._ids_of(node)
        if not self.knows(nodes):
            self._hear(Wanted(rows=nodes))
        return super().certain(node, hits, **options)

    def why(self, a: object, b: object, *args: Any, **options: Any) -> Why:
        """As of any index."""
        self._hear(Wanted(pairs=(self._pair_of(a, b),), ways=True))
        return super().why(a, b, *args, **options)

    def why_together(
        self, nodes: Sequence[object], b: object, *args: Any, **options: Any
    ) -> WhyTogether:
        """As of any index."""
        other = self.nodes.id(b)
        pairs = tuple((node, other) for node in self._ids_of(list(nodes)) if node != other)
        self._hear(Wanted(pairs=pairs, ways=True))
        return super().why_together(nodes, b, *args, **options)
