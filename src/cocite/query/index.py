"""The index as its users see it: asking for a pair, and for the nodes related to one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.errors import UsageError
from cocite.measures import AskValue
from cocite.query.comparing import Comparing
from cocite.query.confidence import DEFAULT_BOUND, checked_confidence, leading_apart
from cocite.query.filters import Filter
from cocite.query.hits import HitLists, Hits
from cocite.query.opened import DEFAULT_CONFIDENCE, DEFAULT_K, check_number, from_the_others
from cocite.query.ordered import DEFAULT_ORDER, Order, RanksLike
from cocite.query.scores import Hit, scores_of
from cocite.query.together import DEFAULT_TOGETHER, checked_together

if TYPE_CHECKING:
    from cocite.query.batch.run import BatchReport
    from cocite.query.related_graph import RelatedGraph

__all__ = ["Index"]


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
        and others may answer the next (``query/shards/``).
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
            Give better scores than the samples alone (``query/refine/refiner.py``). With simrank,
            scores are computed, and their intervals always hold. With other measures that have
            samples, the best hits get more of them, and their intervals hold all at once.
        target_error
            How far off a refined score may be, by default 0.001. If that would cost too much, or if
            more samples would not change the list, it stops before; the interval of a score says
            how far off it may be. Turns on ``refine``.
        confidence
            The probability with which each interval holds the true score, in (0, 1).
        bound
            Where the interval comes from: ``betting``, ``bernstein`` or ``theorem5``
            (``query/confidence.py``). Refined answers take the first only.
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
        asked, nodes = self._asked(settings), self._ids_of(node)
        chosen = Filter.checked(
            self.nodes,
            nodes,
            prefix=prefix,
            exclude_prefix=exclude_prefix,
            among=among,
            other_sites=other_sites,
        )
        level = self._level(asked, refine, target_error, confidence, bound, min_confidence)
        if len(nodes) > 1:
            if level:
                raise UsageError(
                    "refined answers are of one node; ask for each of several, or leave refine out"
                )
            ids, grains = self.best_together(nodes, together, most, min_score, chosen, asked)
            places = self._places(listed, ids, grains, ranks)
            ids, scores = ids[places], (grains[places] / GRAINS).tolist()
            levels = [confidence] if min_confidence is None else [confidence, min_confidence]
            errors, ends = self.held_together(nodes, together, ids, scores, asked, levels, bound)
            return self._hits(ids, scores, errors, ends, min_score)
        (me,) = nodes
        if level and self.refiner:
            better = self.refiner.top(me, most, min_score, chosen, asked, level)
            better = better.taken(self._places(listed, better.ids, better.scores, ranks))
            clear = better.above(min_score)
            rows = zip(self.nodes.names(better.ids), better.rows(), clear, strict=True)
            found = [(Hit(name, *values), clearly) for name, values, clearly in rows]
            named = self._titled([hit for hit, _ in found], better.ids)
            kept = zip(named, clear, strict=True)
            return Hits(h for h, clearly in kept if min_confidence is None or clearly)
        plain = chosen.empty and min_confidence is None and (order, offset) == (DEFAULT_ORDER, 0)
        if plain and bound == "betting":
            told = self._at_once(me, most, min_score, confidence, asked)
            if told is not None:
                self._looked.certain = told.ids, nodes, asked, confidence, told.certain
                scores, errors, low, high = told.rows.T.tolist()
                return self._hits(told.ids, scores, errors, [(low, high)], min_score)
        ids, best = self.top(me, most, min_score, chosen, asked)
        places = self._places(listed, ids, best[:, 0], ranks)
        ids, (scores, errors) = ids[places], scores_of(best[places])
        levels = [confidence] if min_confidence is None else [confidence, min_confidence]
        ends = self._intervals(nodes, ids, scores, asked, levels, bound)
        return self._hits(ids, scores, errors, ends, min_score)

    def _hits(
        self,
        ids: NDArray[np.uint32],
        scores: list[float],
        errors: list[float],
        ends: list[tuple[list[float], list[float]]],
        min_score: float,
    ) -> Hits:
        """Hits, with the first ends; without those that by the others may not be better."""
        (low, high), *others = ends
        names = self.nodes.names(ids)
        self._looked.listed = names, ids
        hits = list(map(Hit, names, scores, errors, low, high))
        hits = self._titled(hits, ids)
        for least, _ in others:
            hits = [hit for hit, low in zip(hits, least, strict=True) if low > min_score]
        return Hits(hits)

    def _titled(self, hits: list[Hit], ids: NDArray[np.uint32]) -> list[Hit]:
        """The hits with the titles of their pages, if the graph has any."""
        if self.titles is None:
            return hits
        return [hit.titled(title) for hit, title in zip(hits, self.titles.of(ids), strict=True)]

    @from_the_others
    def certain(
        self,
        node: object,
        hits: Sequence[Hit],
        *,
        together: str = DEFAULT_TOGETHER,
        order: str = DEFAULT_ORDER,
        ranks: RanksLike = None,
        refine: bool = False,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        **settings: AskValue,
    ) -> int:
        """How many of the first ``hits`` of ``node`` stand in their order for certain.

        Each hit is compared with the next over the samples that they share, up to the first of
        those comparisons that is open (``query/confidence.py``). Exact scores are certain, and
        those of a refined answer (``refine``), or the least of several, where their intervals lie
        above those of all hits behind them; so are products with PageRanks, which are taken as they
        are, among the hits that are given. By PageRank alone the order of candidates is certain.

        Raises
        ------
        UnknownNode, UsageError
        """
        asked, nodes = self._asked(settings), self._ids_of(node)
        checked_confidence(confidence, bound)
        checked_together(together)
        Order.checked(order, None, None if order == DEFAULT_ORDER else ranks, 1, 0)
        if order != DEFAULT_ORDER:
            return self._certain_by(order, hits, ranks)
        ids = self._listed([hit.node for hit in hits])
        apart = len(nodes) > 1 and together == "least"
        if refine or apart or not self._sampled:
            return leading_apart([(hit.low, hit.high) for hit in hits])
        last: Any = self._looked.__dict__.get("certain")
        at_once = last is not None and last[0] is ids and bound == "betting"
        if at_once and last[1:4] == (nodes, asked, confidence):
            count: int = last[4]
            return count
        return self._leading(nodes, ids, asked, confidence, bound)

    def _listed(self, names: list[Any]) -> NDArray[np.uint32]:
        """The ids of hits: mostly of those that the thread listed last."""
        last, ids = self._looked.__dict__.get("listed", ((), None))
        if len(last) >= len(names) and all(map(is_, last, names)):
            found: NDArray[np.uint32] = ids if len(names) == len(ids) else ids[: len(names)]
            return found
        return self.nodes.ids(names)

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
        from cocite.query.many import related_many

        def ask(index: Index, node: object) -> Hits:
            return index.related(node, k, **options)

        return related_many(self, nodes, ask, threads)

    def related_graph(self, node: object, k: int = DEFAULT_K, **options: Any) -> RelatedGraph:
        """The neighbourhood of ``node`` as a graph: itself, its hits, and links from each of these
        to those of its own ``k`` hits that are there.

        Arguments are those of :meth:`related`, and so is what it raises. The graph has
        ``write("near.gexf")`` (``.graphml``, ``.dot``), ``to_networkx()`` and ``to_text("dot")``.
        """
        from cocite.query.related_graph import RelatedGraph

        return RelatedGraph.of(self, node, k, **options)

    def related_all(
        self, output: str | os.PathLike[str] | None = None, k: int = DEFAULT_K, **options: Any
    ) -> BatchReport:
        """Write ``related`` of every node to a file, or ``to`` a table of a database: see
        ``query/batch/run.py``.
        """
        from cocite.query.batch.run import related_all

        return related_all(self.now, output, k, **options)
