"""The index as its users see it: asking for a pair, and for the nodes related to one.

Asking for pairs: one, or many at once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS
from cocite.errors import UsageError
from cocite.measures import AskValue, WholeSettings
from cocite.resources import checked_threads
from cocite.search.filters import DEFAULT_ORDER, Order, RanksLike
from cocite.search.hits import Hit, HitLists, Hits, Score, scores_of
from cocite.search.intervals import DEFAULT_BOUND, certain_prefix, checked_confidence
from cocite.search.scorer import DEFAULT_TOGETHER, Filter, checked_together, floor_of
from cocite.search.stages import DEFAULT_CONFIDENCE, DEFAULT_K, check_number, from_the_others
from cocite.search.unseen import Drafting

if TYPE_CHECKING:
    from cocite.search.batch.run import BatchReport
    from cocite.search.pairs import Progress, Similarities
    from cocite.search.refine.candidates import Level
    from cocite.search.related_graph import RelatedGraph


Ids = NDArray[np.uint32]


class Comparing(Drafting):
    """An index that is asked how similar nodes are."""

    @from_the_others
    def similarity(
        self,
        a: object,
        b: object,
        *,
        refine: bool = False,
        target_error: float | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        **settings: AskValue,
    ) -> Score:
        """How similar two nodes are.

        Parameters
        ----------
        a, b
            Names of nodes.
        refine, target_error
            As in :meth:`related`. Where ``related(a)`` computes the score of ``b`` (SimRank,
            XJaccard) this is the same; where it takes more samples, it stops as soon as the list is
            settled, and a pair when its own error is reached.
        confidence
            The probability with which the interval holds the true score, in (0, 1).
        bound
            Where the interval comes from: ``betting``, ``bernstein`` or ``theorem5``
            (``search/intervals.py``).
        settings
            What the measure takes when asking, such as ``decay=0.6`` (``cocite measures``). For
            measures of walks ``by`` says what a meeting after t steps is worth, from 0 to 1: a
            function of t, numbers for t = 1, 2, ..., an expression such as ``"t <= 3"``, or
            ``"hitting"`` (``measures/meeting_weight.py``). For ``simrank`` and ``psimrank``
            ``evidence="geometric"`` or ``"exponential"`` takes scores times what the neighbors
            that pages share tell (``measures/evidence.py``); it reads the graph.

        Returns
        -------
        Score
            ``score``, its ``stderr``, and its interval from ``low`` to ``high``.

        Raises
        ------
        UnknownNode
            If no node has the name.
        UsageError
            For a setting that the measure does not have, or a value that is not allowed.
        """
        asked = self._queried(settings)
        checked_confidence(confidence, bound)
        first, second = self._pair_of(a, b)
        level = self._level(asked, refine, target_error, confidence, bound)
        return self._score(first, second, asked, level, confidence, bound)

    def similarities(
        self,
        a: Any,
        b: Any = None,
        *,
        ids: bool = False,
        threads: int | None = None,
        progress: Progress = lambda stage, done, total: None,
        refine: bool = False,
        target_error: float | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        **settings: AskValue,
    ) -> Similarities:
        """How similar the nodes of many pairs are: :meth:`similarity` of each, to the bit.

        Of an index of trees (``trees``, ``packed``, ``paths``) some million pairs are asked
        together, sample by sample; else one after another, on several threads.

        Parameters
        ----------
        a, b
            Names of nodes, two columns of equal length: lists, arrays, or columns of pandas, polars
            or Arrow. Or ``a`` alone: a table of two columns, an array (pairs, 2), or rows of two.
        ids
            What is given are the numbers of nodes, from 0 on, and not their names.
        threads
            How many blocks of pairs at a time; by default as many as the index was opened with.
        progress
            Called with (``"scoring"``, done, total), in pairs.
        refine, target_error, confidence, bound, settings
            As for :meth:`similarity`.

        Returns
        -------
        Similarities
            Arrays ``score``, ``stderr``, ``low`` and ``high``, a :class:`Score` for each pair, and
            a table of a, b and these: ``to_pandas()``, ``to_polars()``, ``to_arrow()``,
            ``write("pairs.parquet")``.

        Raises
        ------
        UnknownNode, UsageError
            For names that no node has, before any work is done, and as :meth:`similarity`.
        """
        from cocite.search.pairs import Similarities, columns_of_pairs, ids_of

        columns = columns_of_pairs(a, b)
        first, second = (
            ids_of(self.nodes, column, title, ids)
            for column, title in zip(columns, "ab", strict=True)
        )
        sides = self.nodes.sides
        if sides is not None:
            for place in np.flatnonzero((first < sides.left) != (second < sides.left))[:1].tolist():
                pair = int(first[place]), int(second[place])
                sides.check_alike(pair, self.nodes.names(np.array(pair)))
        count = self.means.threads if threads is None else checked_threads(threads)
        level = refine, target_error
        found = self._scores(first, second, level, confidence, bound, count, progress, settings)
        return Similarities(*columns, *found)

    @from_the_others
    def _scores(
        self,
        first: Ids,
        second: Ids,
        refined: tuple[bool, float | None],
        confidence: float,
        bound: str,
        threads: int,
        progress: Progress,
        settings: dict[str, AskValue],
    ) -> NDArray[np.float64]:
        """float64[4, pairs]: scores, errors, and the ends of intervals of pairs, by their ids."""
        from cocite.search.pairs import blocks_of, scores_of_pairs, together

        asked = self._queried(settings)
        checked_confidence(confidence, bound)
        level = self._level(asked, *refined, confidence, bound)
        by_samples = not (level and self.refiner)
        blocks = blocks_of(self, asked, first.size, threads) if by_samples else 0

        def one(a: int, b: int) -> Score:
            return self._score(a, b, asked, level, confidence, bound)

        block = partial(together, self, asked, confidence, bound) if blocks else None
        return scores_of_pairs(first, second, one, block, blocks, threads, progress)

    def _score(
        self,
        first: int,
        second: int,
        asked: WholeSettings,
        level: Level | None,
        confidence: float,
        bound: str,
    ) -> Score:
        """What is said of one pair."""
        if level and self.refiner and first != second:
            return Score(*next(self.refiner.pair(first, second, asked, level).rows()))
        scores, errors = self._estimate(first, second, asked)
        others = np.array([second], np.uint32)
        ((low, high),) = self._intervals((first,), others, scores, asked, [confidence], bound)
        return Score(scores[0], errors[0], low[0], high[0])

    def _level(
        self,
        asked: WholeSettings,
        refine: bool,
        target: float | None,
        confidence: float,
        bound: str,
        above: float | None = None,
    ) -> Level | None:
        """How far to refine; None for not at all."""
        if not refine and target is None:
            return None
        from cocite.search.evidence import refuse_evidence
        from cocite.search.refine.candidates import Level

        if self._stored.drafted:
            raise UsageError(
                "refined answers are of pages that are in the graph: leave refine out for a draft"
            )

        refuse_evidence(self._stored.parts, asked)
        level = Level.checked(target, confidence, above)
        if bound != DEFAULT_BOUND and self.refiner:
            raise UsageError(
                f"refined answers have intervals of their own, not by {bound}: leave the bound out"
            )
        return level


# -- index -------------------------------------------------------------------------------


class Index(Comparing):
    """Answers questions on one graph by one measure. Safe to share between threads."""

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in self.settings.items())
        return (
            f"Index({str(self._stored.store.path)!r}, measure={self.measure!r}, "
            f"direction={self.direction!r}, nodes={len(self.nodes)}{settings})"
        )

    def first(self, samples: int) -> Index:
        """The same index with its first samples only, as if it had been built with so many.

        Raises :class:`~cocite.errors.UsageError` if it has fewer, or none.
        """
        return Index(self.stored.first(samples), self.means, self._graph)

    def one_question(self) -> Index:
        """What a single question is asked of, all of it: itself, but where samples are elsewhere
        and others may answer the next (``search/remote/``).
        """
        return self

    @from_the_others
    def related(
        self,
        node: object,
        k: int = DEFAULT_K,
        *,
        together: str = DEFAULT_TOGETHER,
        offset: int = 0,
        min_score: float = 0.0,
        min_confidence: float | None = None,
        prefix: str | None = None,
        exclude_prefix: str | None = None,
        among: Iterable[object] | None = None,
        other_sites: bool = False,
        order: str = DEFAULT_ORDER,
        candidates: int | None = None,
        ranks: RanksLike = None,
        refine: bool = False,
        target_error: float | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        **settings: AskValue,
    ) -> Hits:
        """The nodes most related to ``node``, itself left out; or to several together.

        Parameters
        ----------
        node
            The name of a node, or a list of names: these are asked together, and none is a hit.
        k
            How many hits at most, 1 or more.
        together
            How several nodes are asked together: ``mean`` gives a hit the mean of what it scores
            with each of them, ``least`` the least of it.
        offset
            How many hits to skip first. Pages of one list fit together; but not with ``refine`` by
            samples, which refines the first ``k + offset`` for each page anew.
        min_score
            Leave out hits with a lower score. Nodes whose score is 0 are never hits.
        min_confidence
            List only hits above ``min_score``, with this probability, such as 0.95. A few meetings
            prove a score above 0.
        prefix, exclude_prefix
            Only nodes whose name begins like this, or none of them.
        among
            Only these nodes, by name.
        other_sites
            No pages of the node's own site, the host in its URL.
        order
            What comes first: ``score``, ``score*pagerank`` (the product), or ``pagerank``.
        candidates
            How many of the best by score an order by PageRank is made of, by default
            max(100, 4 * (k + offset)).
        ranks
            The PageRanks: a file that ``cocite rank -o`` wrote, or float64[nodes] by id. By default
            they are computed from the graph when they are first needed, which takes seconds for
            some million links (:meth:`pageranks` tells them).
        refine
            Give better scores than the samples alone (``search/refine/candidates.py``). With
            simrank, scores are computed, and their intervals always hold. With other measures that
            have samples, the best hits get more of them, and their intervals hold all at once.
        target_error
            How far off a refined score may be, by default 0.001. If that would cost too much, or if
            more samples would not change the list, it stops before; the ``error_bound`` of a score
            says how far off it may be. Turns on ``refine``.
        confidence
            The probability with which each interval holds the true score, in (0, 1).
        bound
            Where the interval comes from: ``betting``, ``bernstein`` or ``theorem5``
            (``search/intervals.py``). Refined answers take the first only.
        settings
            What the measure takes when asking, such as ``decay=0.6`` or ``by="t <= 3"``, as for
            :meth:`similarity`.

        Returns
        -------
        Hits
            A list of :class:`Hit`, and a table: ``to_pandas()``, ``to_polars()``, ``to_arrow()``,
            and what a notebook shows. By score descending, then by node id ascending; or in the
            ``order`` asked for.

        Raises
        ------
        UnknownNode
            If no node has the name.
        UsageError
            For a value that is not allowed.
        """
        check_number("k", k, 1)
        check_number("offset", offset, 0)
        if not isinstance(min_score, int | float) or not 0 <= min_score < float("inf"):
            raise UsageError(f"min_score is {min_score!r}; it is a number, 0 or more")
        checked_confidence(confidence, bound)
        if min_confidence is not None:
            checked_confidence(min_confidence, bound, "min_confidence")
        checked_together(together)
        listed = Order.checked(order, candidates, ranks, int(k), int(offset))
        most = listed.candidates
        asked, nodes = self._queried(settings), self._ids_of(node)
        chosen = Filter.checked(
            self.nodes,
            nodes,
            prefix=prefix,
            exclude_prefix=exclude_prefix,
            among=among,
            other_sites=other_sites,
        )
        level = self._level(asked, refine, target_error, confidence, bound, min_confidence)
        if level and self.refiner:
            if len(nodes) > 1:
                raise UsageError(
                    "refined answers are of one node; ask for each of several, or leave refine out"
                )
            found = self.refiner.top(nodes[0], most, min_score, chosen, asked, level)
            found = found.taken(self._places(listed, found.ids, found.scores, ranks))
            ids, (scores, errors, low, high) = found.ids, found.columns()
            ends = [(low, high)]
            if min_confidence is not None:
                ends.append(((found.low if found.least is None else found.least).tolist(), high))
            return self._hits(listed, ids, scores, errors, ends, min_score, None, ranks)
        levels = [confidence] if min_confidence is None else [confidence, min_confidence]
        plain = chosen.empty and min_confidence is None and (order, offset) == (DEFAULT_ORDER, 0)
        if plain and bound == "betting":
            told = self._at_once(nodes[0], most, min_score, confidence, asked)
            if told is not None:
                scores, errors, low, high = told.rows.T.tolist()
                ends, count = [(low, high)], told.certain
                return self._hits(listed, told.ids, scores, errors, ends, min_score, count, ranks)
        if len(nodes) > 1:
            ids, grains = self.best_together(nodes, together, most, min_score, chosen, asked)
            places = self._places(listed, ids, grains, ranks)
            ids, scores = ids[places], (grains[places] / GRAINS).tolist()
            errors, ends = self.held_together(nodes, together, ids, scores, asked, levels, bound)
        else:
            ids, best = self.top(nodes[0], most, min_score, chosen, asked)
            places = self._places(listed, ids, best[:, 0], ranks)
            ids, (scores, errors) = ids[places], scores_of(best[places])
            ends = self._intervals(nodes, ids, scores, asked, levels, bound)
        by_samples = None
        if self._sampled and not (len(nodes) > 1 and together == "least"):
            by_samples = partial(self._certain_by_samples, nodes, ids, asked, confidence, bound)
        return self._hits(listed, ids, scores, errors, ends, min_score, by_samples, ranks)

    def _hits(
        self,
        listed: Order,
        ids: NDArray[np.uint32],
        scores: list[float],
        errors: list[float],
        ends: list[tuple[list[float], list[float]]],
        min_score: float,
        leading: int | Callable[[], int] | None,
        ranks: RanksLike,
    ) -> Hits:
        """The hits that are shown, with the first ends; without those that by the others may not be
        better. ``leading`` is or finds how many steps from each hit to the next are certain; by
        the ends if None, as it is for other orders.
        """
        (low, high), *others = ends
        k, shown = listed.k, ids[: listed.k]
        hits = list(map(Hit, self.nodes.names(shown), scores, errors, low, high))
        hits = self._titled(hits, shown)

        def certain() -> int:
            if listed.by == "pagerank":
                return k
            lows, highs = np.array(low), np.array(high)
            if listed.by != DEFAULT_ORDER:
                rank = self._ranked(ids, ranks)
                count = certain_prefix(lows * rank, highs * rank)
            elif leading is None:
                count = certain_prefix(lows, highs)
            else:
                count = leading if isinstance(leading, int) else leading()
            # The last hit of all has no next one.
            whole = 0 < ids.size <= k and count == ids.size - 1
            return count + (whole and round(low[-1] * GRAINS) >= floor_of(min_score))

        if not others:
            return Hits(hits, lambda: min(certain(), len(hits)))
        ((least, _),) = others
        clear = [place for place in range(len(hits)) if least[place] > min_score]
        return Hits((hits[i] for i in clear), lambda: sum(i < certain() for i in clear))

    def _titled(self, hits: list[Hit], ids: NDArray[np.uint32]) -> list[Hit]:
        """The hits with the titles of their pages, if the graph has any."""
        if self.titles is None:
            return hits
        return [hit.titled(title) for hit, title in zip(hits, self.titles.of(ids), strict=True)]

    @from_the_others
    def _certain_by_samples(
        self,
        nodes: tuple[int, ...],
        ids: NDArray[np.uint32],
        asked: WholeSettings,
        confidence: float,
        bound: str,
    ) -> int:
        """How many of the first hits are certain to score more than the next."""
        return self._leading(nodes, ids, asked, confidence, bound) if ids.size else 0

    def related_many(
        self,
        nodes: Iterable[object],
        k: int = DEFAULT_K,
        *,
        threads: int | None = None,
        **options: Any,
    ) -> HitLists:
        """:meth:`related` for each of ``nodes``, on all cores: its very answers, in their order.

        Parameters
        ----------
        nodes
            Names; for an item that is a list of names these are asked together.
        k, options
            As for :meth:`related`.
        threads
            How many questions at a time; by default as many as the index was opened with.

        Returns
        -------
        HitLists
            A list of :class:`Hits` for each of the nodes, and a table.

        Raises
        ------
        UnknownNode
            Before any work is done.
        UsageError
        """
        from cocite.search.several import related_many

        def ask(index: Index, node: object) -> Hits:
            return index.related(node, k, **options)

        return related_many(self, nodes, ask, threads)

    def related_graph(self, node: object, k: int = DEFAULT_K, **options: Any) -> RelatedGraph:
        """The neighbourhood of ``node`` as a graph: itself, its hits, and links from each of these
        to those of its own ``k`` hits that are there.

        Arguments are those of :meth:`related`, and so is what it raises. The graph has
        ``write("near.gexf")`` (``.graphml``, ``.dot``), ``to_networkx()`` and ``to_text("dot")``.
        """
        from cocite.search.related_graph import RelatedGraph

        return RelatedGraph.of(self, node, k, **options)

    def related_all(
        self, output: str | os.PathLike[str] | None = None, k: int = DEFAULT_K, **options: Any
    ) -> BatchReport:
        """Write ``related`` of every node to a file, or ``to`` a table of a database: see
        ``search/batch/run.py``.
        """
        from cocite.search.batch.run import related_all

        return related_all(self.now, output, k, **options)
