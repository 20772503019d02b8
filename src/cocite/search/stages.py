"""Why two nodes are similar: the score taken apart into the pages that it comes from.

    score = sum over reasons of share,    share = weight of the part * share in the part's score

Of walks the pages are those at which the two meet. The index holds when they do; where they went is
in it (layouts ``paths`` and ``compact``) or comes of making the two walks again (``trees``, which
needs the graph). For the other measures see ``index/layouts/reader.py``. All of it is exact: the
reasons add up to the estimate that the index gives, not to the score that it estimates.

Cost: a question for the pair, and paths for the reasons shown.

What an opened index says of itself, and what answers for it: the ground of ``search/index.py``.

Why: the pages that a score comes from, of a pair, or of several nodes asked together.

Cost: that of ``search/stages.py``, for each of the nodes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from cocite.constants import added
from cocite.errors import UsageError
from cocite.graph.links import EITHER
from cocite.graph.name_files import Titles
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.layouts.part import DamagedShard
from cocite.index.layouts.reader import Graphs, Reader
from cocite.index.stored import Lost
from cocite.measures import AskValue, Value, WholeSettings
from cocite.resources import Resources
from cocite.search.scorer import DEFAULT_TOGETHER, Several, checked_together
from cocite.search.source import GivenGraph, find_graphs, in_links_of

if TYPE_CHECKING:
    from cocite.search.refine.candidates import Refiner


DEFAULT_K = 20
DEFAULT_REASONS = 10
DEFAULT_CONFIDENCE = 0.95
DEFAULT_DEADLINE = 0.2
"""Seconds that samples have to answer that are elsewhere."""
_MAKING = threading.Lock()
_log = logging.getLogger("cocite")

_Question = TypeVar("_Question", bound=Callable[..., Any])


def check_number(name: str, value: object, least: int) -> None:
    """Raise :class:`UsageError` for what is no whole number of ``least`` or more."""
    if not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name} is {value!r}; it is a whole number, {least} or more")


class Opened(Several):
    """An index that is open: measure, settings, names of nodes. Safe to share between threads."""

    def __init__(self, stored: StoredIndex, means: Resources, graph: GivenGraph = None) -> None:
        """``means`` are for what reads the graph again; ``graph`` says where that is."""
        super().__init__(stored, means, graph)
        self._instead: Opened | None = None
        if stored.lost:
            _log.warning(stored.loss)

    @property
    def stored(self) -> StoredIndex:
        """The directory behind it."""
        return self.now._stored

    @property
    def measure(self) -> str:
        """The measure's name."""
        return self._stored.measure.name

    @property
    def direction(self) -> str:
        """Which links it looks at: ``in``, ``out`` or ``both``."""
        return self._stored.direction

    @property
    def settings(self) -> dict[str, Value]:
        """What it was built with, such as ``samples``, ``length`` and ``seed``."""
        return self._stored.settings.to_json()

    @property
    def samples(self) -> int | None:
        """How many independent samples every estimate is the mean of, those that answer; None if
        scores are exact.
        """
        return self.stored.samples

    @property
    def lost(self) -> tuple[Lost, ...]:
        """The files of samples that are missing or damaged (``index/stored.py``): the others
        answer.

        The logger ``cocite`` warns when an index is opened that has some, and when a question finds
        one.
        """
        return self.stored.lost

    @property
    def given(self) -> GivenGraph:
        """The graph or the graphs that it was opened with."""
        return self._graph

    @property
    def left_out(self) -> dict[str, Any]:
        """What an answer says of samples that are elsewhere and did not answer."""
        return {}

    def close(self) -> None:
        """Let go of what it holds elsewhere, if anything."""

    @property
    def now(self) -> Self:
        """The index that answers now: without what questions have found to be damaged."""
        return self if self._instead is None else cast(Self, self._instead.now)

    def leave_out(self, found: DamagedShard) -> None:
        """Answer without a shard from now on; raises :class:`~cocite.errors.Damaged` if there is no
        other.
        """
        with _MAKING:
            if self._instead is None:
                less = self._stored.without(found.file, str(found))
                self._instead = type(self)(less, self.means, self._graph)

    @property
    def sampled(self) -> bool:
        """Whether scores are estimates from samples, those of a part at least."""
        return bool(self._sampled)

    @cached_property
    def nodes(self) -> Names:
        """The names of the nodes: ``len``, ``in``, iteration, ``complete``, ``suggest``."""
        found = copy(self._stored.names)
        found.in_links = partial(in_links_of, self._stored, self._graph)
        return found

    @property
    def titles(self) -> Titles | None:
        """The titles of the nodes; None if the graph had none."""
        return self._stored.titles

    def titles_of(self, names: Sequence[str]) -> list[str] | None:
        """The titles of nodes by their names, "" for none; None if the graph had none at all."""
        titles = self.titles
        return None if titles is None else titles.of(self.nodes.ids(list(names)))

    def _ids_of(self, node: object) -> tuple[int, ...]:
        """The ids of a name, or of a list of names, each once."""
        if not isinstance(node, list | tuple) or self.nodes.is_one(node):
            return (self.nodes.id(node),)
        if not node:
            raise UsageError("no node is named; give one, or several to ask them together")
        return tuple(dict.fromkeys(self.nodes.ids(list(node)).tolist()))

    def _pair_of(self, a: object, b: object) -> tuple[int, int]:
        """The ids of two names; raises :class:`UsageError` if they are of different sides."""
        pair = self.nodes.id(a), self.nodes.id(b)
        if self.nodes.sides is not None:
            self.nodes.sides.check_alike(pair, (a, b))
        return pair

    @property
    def refiner(self) -> Refiner | None:
        """What gives refined answers; None if scores are exact anyway.

        Raises :class:`UsageError` if there is no such thing for the measure.
        """
        with _MAKING:  # one for all threads, as it may hold a diagonal that takes seconds to make
            if "_refiner" not in self.__dict__:
                from cocite.search.refine.local import refiner_for

                self._refiner = refiner_for(
                    self._stored, self._graph, self.means, self.readers, self.top
                )
        return self._refiner


def from_the_others(question: _Question) -> _Question:
    """A method that is asked again without each shard that it finds to be damaged."""

    @wraps(question)
    def asked(self: Opened, *args: Any, **options: Any) -> Any:
        while True:
            index = self.now
            try:
                return question(index, *args, **options)
            except DamagedShard as found:
                index.leave_out(found)

    return cast(_Question, asked)


# -- reasoned ----------------------------------------------------------------------------


class Reasoned(Opened):
    """An index that says why."""

    @from_the_others
    def why(
        self,
        a: object,
        b: object,
        k: int = DEFAULT_REASONS,
        *,
        graph: GivenGraph = None,
        **settings: AskValue,
    ) -> Why:
        """Why two nodes are similar: the pages that their score comes from.

        Parameters
        ----------
        a, b
            Names of nodes.
        k
            How many reasons at most, 1 or more; the others are summed up.
        graph
            The graph that the index was built from, opened or as a path, if it is not where it was
            then: the layout ``trees`` holds when walks meet and not where. Of an index that was
            refreshed, one or more of those that its samples were drawn from.
        settings
            What the measure takes when asking, such as ``decay=0.6`` (``cocite measures``).

        Returns
        -------
        Why
            The ``score``, as :meth:`similarity` has it; its ``reasons``, by share descending, then
            by node id ascending; how many ``others`` there are, and the ``rest``, which is theirs;
            and what is ``unplaced``, as its samples' graph is not given.

        Raises
        ------
        UnknownNode
            If no node has the name.
        UsageError
            For a value that is not allowed, or a graph that is not the index's.
        NotAStore
            If the graph is needed and not found.
        Damaged
            If graph and index do not fit together after all.
        """
        check_number("k", k, 1)
        asked, pair = self._queried(settings), self._pair_of(a, b)
        return self._explained(pair, k, asked, graph)

    @from_the_others
    def why_together(
        self,
        nodes: Sequence[object],
        b: object,
        k: int = DEFAULT_REASONS,
        *,
        together: str = DEFAULT_TOGETHER,
        graph: GivenGraph = None,
        **settings: AskValue,
    ) -> WhyTogether:
        """Why a node is related to several that are asked together: what each of them adds, and
        the pages that this comes from.

        Parameters
        ----------
        nodes
            Names of nodes, asked together; each counts once.
        b
            The name of another node.
        k
            How many reasons at most, for each of ``nodes``.
        together
            ``mean`` or ``least``, as in :meth:`related`.
        graph, settings
            As in :meth:`why`.

        Returns
        -------
        WhyTogether
            The ``score``, as :meth:`related` has it, and ``pages``: for each of ``nodes``, in their
            order, its own score, its share of the score, and why. The shares of ``mean`` are equal
            parts of the scores; of ``least`` all is the share of the one that scores least.

        Raises
        ------
        UnknownNode, UsageError, NotAStore, Damaged
            As :meth:`why`; :class:`UsageError` also if ``b`` is one of ``nodes``.
        """
        check_number("k", k, 1)
        checked_together(together)
        asked, ids, other = self._queried(settings), self._ids_of(list(nodes)), self.nodes.id(b)
        if other in ids:
            raise UsageError(f"{b!r} is asked itself, so it is no hit; name another node last")
        if self.nodes.sides is not None:
            self.nodes.sides.check_alike((*ids, other), (*nodes, b))
        score, scores, shares = self.shares(ids, other, together, asked)
        pages = [
            PageWhy(self.nodes.name(a), own, share, self._explained((a, other), k, asked, graph))
            for a, own, share in zip(ids, scores, shares, strict=True)
        ]
        return WhyTogether(score, pages)

    def _explained(
        self, pair: tuple[int, int], k: int, asked: WholeSettings, graph: GivenGraph
    ) -> Why:

        (score,), _ = self._estimate(*pair, asked)
        return explained(
            self._stored,
            self.reading(asked),
            pair,
            score,
            int(k),
            asked,
            find_graphs(self._stored, self.means, self._graph if graph is None else graph),
        )


# -- why ---------------------------------------------------------------------------------


class Reason(NamedTuple):
    """A page that makes two nodes a and b similar, and how.

    ``share`` is what it adds to their score. ``links`` says which links were looked at, ``in`` or
    ``out``, or links either way: ``any``, or ``both`` for a node and itself, and for lists of what
    is near by either. Of these a page has one reason, with the paths of the last part of a blend
    that has it. Each node of a path is a neighbor, by these, of the one before it. The paths are
    names, from a and from b to the page, both ends included, each of ``steps`` steps. For walks
    they are the ones that carry most of the share, of the ``samples`` in which the walks meet
    there.

    A path that is not known is empty, and ``steps`` is None then: for ``pagesim``, which holds what
    reaches whom and not how, for ``shared-nearest``, where the page is near to both, and for
    ``ppr``, where the page is the one before b, and ``path_b`` goes back to it, and for
    ``companion``, where the page is a hub that links to b. For ``text`` no links were looked at,
    so they are ``none``, and ``node`` is a word that both texts have.
    """

    node: str
    share: float
    links: str
    samples: int | None
    steps: int | None
    path_a: tuple[str, ...]
    path_b: tuple[str, ...]


class Why(NamedTuple):
    """A score taken apart: the shares of ``reasons``; ``rest``, which is that of ``others`` further
    ones; and ``unplaced``, which comes of pages that are not known, add up to ``score``.

    Unplaced is what samples say whose graph is not at hand, in an index that was refreshed, and of
    ``xjaccard`` what comes of pages that are gone since, or that the index does not keep.
    """

    score: float
    reasons: list[Reason]
    others: int
    rest: float
    unplaced: float = 0.0


class PageWhy(NamedTuple):
    """What one of several nodes that were asked together adds: its own ``score``, its ``share`` of
    theirs, and ``why`` it has this score.
    """

    node: str
    score: float
    share: float
    why: Why


class WhyTogether(NamedTuple):
    """A score with several nodes taken apart; the shares of ``pages`` add up to ``score``."""

    score: float
    pages: list[PageWhy]


def explained(
    stored: StoredIndex,
    readers: Sequence[Reader],
    pair: tuple[int, int],
    score: float,
    k: int,
    settings: WholeSettings,
    graphs: Graphs,
) -> Why:
    """The best ``k`` reasons of a pair, by share descending, then by id ascending, then ``in``
    before ``out``; in a bipartite graph the pair itself comes last. ``graphs`` is asked by layouts
    that need them.
    """
    first, second = pair
    if first == second:
        return _itself(stored, first, score)
    found = [
        reader.reasons(first, second, reader.part.ask_settings(settings), graphs)
        for reader in readers
    ]
    for each in found:
        known = stored.nodes + len(each.gone)
        if (
            bool((each.nodes >= known).any())
            or not np.isfinite([*each.shares, each.unplaced]).all()
        ):
            raise stored.damaged()
    if score <= 0:  # parts below the last digit of a score are not reasons of it
        return Why(score, [], 0, 0.0)
    shares = np.concatenate(
        [reader.part.weight * f.shares for reader, f in zip(readers, found, strict=True)]
    )
    nodes = np.concatenate([f.nodes for f in found])
    parts = np.repeat(np.arange(len(found)), [f.nodes.size for f in found])
    looked = [reader.part.measure.looks_at(reader.part.direction) for reader in readers]
    either = [f.samples is None and way in EITHER for f, way in zip(found, looked, strict=True)]
    rows = _once(nodes, parts, shares, np.array(either))
    begins = np.cumsum([0, *(f.nodes.size for f in found)])
    told = shares.round(12)  # those that are told as equal are in the order of equal ones
    # On one side of a bipartite graph no link leads from one to the other, so that the two are near
    # by what links both: pages that say just that come last.
    own = np.isin(nodes, pair) & (stored.names.sides is not None)
    order = rows[np.lexsort((parts[rows], nodes[rows], -told[rows], own[rows]))]
    reasons = []
    for at in order[:k].tolist():
        part = int(parts[at])
        row, there = at - int(begins[part]), found[part]
        one, other = there.path(row)
        reasons.append(
            Reason(
                there.named([int(nodes[at])], stored.names)[0],
                float(told[at]),
                looked[part],
                None if there.samples is None else int(there.samples[row]),
                len(one) - 1 if len(one) == len(other) > 0 else None,
                there.named(one, stored.names),
                there.named(other, stored.names),
            )
        )
    others = order[k:]
    unplaced = added(r.part.weight * f.unplaced for r, f in zip(readers, found, strict=True))
    rest = round(float(shares[others].sum()), 12)
    return Why(score, reasons, others.size, rest, round(unplaced, 12))


def _once(
    nodes: NDArray[np.uint32],
    parts: NDArray[np.int64],
    shares: NDArray[np.float64],
    either: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The rows of reasons that are told: of parts that take links either way and hold no walks each
    page once, by the last of them, which is given the shares of all.
    """
    there = np.flatnonzero(either[parts])
    _, first, same = np.unique(nodes[there][::-1], return_index=True, return_inverse=True)
    last = there[::-1][first]
    shares[last] = np.bincount(same, shares[there][::-1], last.size)
    return np.sort(np.concatenate([np.flatnonzero(~either[parts]), last]))


def _itself(stored: StoredIndex, node: int, score: float) -> Why:
    """A node and itself are similar because of nothing else."""
    if score <= 0:
        return Why(score, [], 0, 0.0)
    name, made = stored.names.name(node), None
    if stored.samples is not None:
        made = int(stored.freshness.knowing(node, np.array([node]))[0])
    links = stored.measure.looks_at(stored.direction)
    reason = Reason(name, score, links, made, 0, (name,), (name,))
    return Why(score, [reason], 0, 0.0)
