"""What answers questions on one index, held together: scores, intervals, lists, reasons.

If a question finds a shard of samples to be damaged, the searcher gets a successor without it,
which answers this question and all later ones. Batches use a searcher as well, by node ids.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.layouts.part import DamagedShard
from cocite.measures import WholeSettings
from cocite.options.query import DEFAULT_INTERVAL, ScoreOptions
from cocite.resources import Resources
from cocite.search.hits import Score
from cocite.search.intervals import Intervals
from cocite.search.lister import Lister, PageRanks
from cocite.search.scorer import Ids, Nodes, Scorer

if TYPE_CHECKING:
    from cocite.search.explainer import Explainer
    from cocite.search.refine.candidates import Level, Refiner
    from cocite.search.source import GivenGraph
    from cocite.search.unseen import UnseenNodes


_log = logging.getLogger("cocite")
_Answer = TypeVar("_Answer")


class Searcher:
    """All that answers questions on one index. Safe to share between threads."""

    def __init__(
        self,
        stored: StoredIndex,
        means: Resources,
        given: GivenGraph = None,
        *,
        whole: Searcher | None = None,
        scorer: Scorer | None = None,
    ) -> None:
        """``means`` are for what reads the graph again; ``given`` says where that is.

        ``scorer`` is one made for a single question of the index of ``whole``.
        """
        self.stored, self.means, self.given = stored, means, given
        self.scorer = Scorer(stored, means, given) if scorer is None else scorer
        self.ranks: PageRanks = PageRanks(stored, means, given) if whole is None else whole.ranks
        self.intervals = Intervals(self.scorer)
        self.lister = Lister(self.scorer, self.intervals, self.ranks)
        self._whole = whole
        self._successor: Searcher | None = None
        self._lock = threading.Lock()
        if stored.lost and whole is None:
            _log.warning(stored.loss)

    def over(self, scorer: Scorer) -> Searcher:
        """Return the searcher by a scorer that was made for one question of this one."""
        return Searcher(scorer.stored, self.means, self.given, whole=self, scorer=scorer)

    @cached_property
    def nodes(self) -> Names:
        """The names of the nodes."""
        found = copy(self.stored.names)
        found.in_links = self._in_links
        return found

    def _in_links(self, ids: Ids) -> NDArray[np.int64]:
        from cocite.search.source import in_links_of

        return in_links_of(self.stored, self.given, ids)

    def ids_of(self, node: object) -> Nodes:
        """Return the ids of a name, or of a list of names, each once.

        Raises :class:`UnknownNode`, and :class:`UsageError` for an empty list.
        """
        if not isinstance(node, list | tuple) or self.nodes.is_one(node):
            return (self.nodes.id(node),)
        if not node:
            raise UsageError("no node is named; give one, or several to ask them together")
        return tuple(dict.fromkeys(self.nodes.ids(list(node)).tolist()))

    def pair_of(self, a: object, b: object) -> tuple[int, int]:
        """Return the ids of two names; raises :class:`UsageError` for nodes of different sides."""
        pair = self.nodes.id(a), self.nodes.id(b)
        if self.nodes.sides is not None:
            self.nodes.sides.check_alike(pair, (a, b))
        return pair

    @property
    def sampled(self) -> bool:
        """Whether scores are estimates from samples, those of a part at least."""
        return bool(self.scorer.sampled)

    @property
    def refiner(self) -> Refiner | None:
        """What gives refined answers; None if scores are exact anyway.

        Raises :class:`UsageError` if there is no such thing for the measure.
        """
        if self._whole is not None and all(part.plan.linearized for part in self.stored.parts):
            return self._whole.refiner  # needs no samples, so it is the same for all questions
        with self._lock:  # one for all threads, as it may hold a diagonal that takes seconds
            return self._refiner

    @cached_property
    def _refiner(self) -> Refiner | None:
        from cocite.search.refine.linear import refiner_for

        return refiner_for(self.scorer, self.given, self.means)

    @cached_property
    def explainer(self) -> Explainer:
        """The reasons of scores."""
        from cocite.search.explainer import Explainer

        return Explainer(self.scorer, self.means, self.given)

    @cached_property
    def unseen(self) -> UnseenNodes:
        """Indexes with one node more."""
        from cocite.search.unseen import UnseenNodes

        return UnseenNodes(self.stored, self.means, self.given)

    # -- damage --------------------------------------------------------------------------

    @property
    def now(self) -> Searcher:
        """The searcher that answers now: without what questions have found to be damaged."""
        return self if self._successor is None else self._successor.now

    def leave_out(self, found: DamagedShard) -> None:
        """Answer without a shard from now on; raises :class:`~cocite.errors.Damaged` if there is no
        other.
        """
        with self._lock:
            if self._successor is None:
                less = self.stored.without(found.file, str(found))
                self._successor = Searcher(less, self.means, self.given)

    def attempt(self, question: Callable[[Searcher], _Answer]) -> _Answer:
        """Ask the searcher that answers now, again without each shard that turns out damaged."""
        while True:
            searcher = self.now
            try:
                return question(searcher)
            except DamagedShard as found:
                searcher.leave_out(found)

    # -- pairs ---------------------------------------------------------------------------

    def score(
        self,
        pair: tuple[int, int],
        settings: WholeSettings,
        level: Level | None,
        options: ScoreOptions,
    ) -> Score:
        """Return the score of a pair; refined, if there is a ``level`` and a refiner."""
        if level and self.refiner and pair[0] != pair[1]:
            _, scores, errors, low, high, _ = self.refiner.pair(*pair, settings, level)
            return Score(*np.concatenate((scores, errors, low.round(12), high.round(12))).tolist())
        return self.intervals.of_pair(pair, settings, options.confidence, options.interval)

    def level(
        self, settings: WholeSettings, options: ScoreOptions, above: float | None = None
    ) -> Level | None:
        """Return how far to refine; None for not at all."""
        if not options.refined:
            return None
        from cocite.search.refine.candidates import Level

        how = options.target_error, options.confidence
        level = Level.of_query(self.stored, settings, *how, above)
        if options.interval != DEFAULT_INTERVAL and self.refiner:
            raise UsageError(
                f"refined answers have intervals of their own, not by {options.interval}: leave "
                "--interval (interval=...) out"
            )
        return level


class Searching(Protocol):
    """An index or a searcher: what batches are given."""

    @property
    def now(self) -> Searcher:
        """What answers now."""
