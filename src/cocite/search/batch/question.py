"""What a batch asks of every node, checked once; and its answers, in the order of the nodes.

What is said of a node is what ``Index.related`` says of it with the same options, to the bit: its
list comes from the same searcher (``search/searcher.py``), or, without filters and intervals, from
the same kernel, called once for many nodes. A filter of names is made once for all nodes. The
pages of a node's own site are looked up for one site after another, as pages of a site have ids
next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128_hexdigest

from cocite.options.query import DEFAULT_ORDER, FilterOptions, QueryOptions
from cocite.search.intervals import NO_BETS
from cocite.search.scorer import Filter, pages_of, site_of
from cocite.search.searcher import Query, Searcher, Searching

Ids = NDArray[np.uint32]


class BatchHits(NamedTuple):
    """The hits of a node: ids, uint32[hits], and float64[hits, 2], scores and standard errors; or
    float64[hits, 4], with the ends of their intervals.
    """

    ids: Ids
    numbers: NDArray[np.float64]


class Question:
    """One query for many nodes of ``index``; options as for ``run.Batch``.

    Raises :class:`~cocite.errors.UsageError`, :class:`~cocite.errors.UnknownNode`.
    """

    def __init__(
        self,
        index: Searching,
        k: int,
        options: QueryOptions | None = None,
        intervals: bool | None = None,
    ) -> None:
        options = QueryOptions.of(options, {})
        self.index = index = index.now
        asked = Query.checked(k, options).k
        self.k = max(1, min(asked, len(index.nodes) - 1))
        self._settings = index.stored.ask_settings(options.settings)
        self._filter = Filter.checked(index.nodes, (), replace(options, exclude_same_site=False))
        level = index.level(self._settings, options, options.min_confidence)
        # Only hits that are listed need intervals, as no rank is said to be certain.
        query = Query.checked(self.k, options, level)
        self._query = replace(query, looked=slice(0, self.k))
        if level and index.refiner:  # which says so now if there is none
            index.refiner.check(self._settings)
        self.intervals = level is not None or not index.sampled if intervals is None else intervals
        """Whether the ends of intervals are said."""
        self._levels = [options.confidence] * self.intervals
        if options.min_confidence is not None:
            self._levels.append(options.min_confidence)
        self.facts = self._facts(asked)
        self._latest: tuple[tuple[str, str], tuple[Ids, ...]] = ("", ""), ()

    def _facts(self, k: int) -> dict[str, object]:
        """Return what answers depend on besides the index."""
        options, level = self._query.options, self._query.level
        facts: dict[str, object] = {"k": k, "settings": self._settings.to_json()}
        facts |= {name: getattr(options, name) for name in FilterOptions.declared()}
        if options.only is not None:
            facts["only"] = xxh3_128_hexdigest(self._filter.only[-1].data)
        if level is not None:
            facts["target_error"] = level.target
        if self.intervals or level is not None:
            facts["intervals"] = options.confidence
        if self._levels:
            facts["interval"] = options.interval
        if options.order != DEFAULT_ORDER:
            # Computed now, and once: threads would each do so.
            ranks = np.ascontiguousarray(self.index.ranks.all(options.ranks))
            digest = xxh3_128_hexdigest(ranks.data)
            facts["order"] = [options.order, self._query.candidates, digest]
        return facts

    def of(self, index: Searcher) -> None:
        """Use another index from now on: the same one without some of its samples."""
        self.index = index

    @property
    def refined(self) -> bool:
        """Return whether answers are refined."""
        return self._query.level is not None

    def check_sites(self, nodes: Ids) -> None:
        """Check that every node has a site, if pages of the same site are excluded."""
        if self._query.options.exclude_same_site:
            for node in nodes.tolist():
                site_of(self.index.nodes.stored.name(node))

    def each(self, nodes: Ids) -> Iterator[BatchHits]:
        """Yield the hits of some nodes, one after another; one kernel makes plain lists."""
        query = self._query
        exact = not self.index.sampled and len(self._levels) < 2
        plain = (exact or not self._levels) and not self.refined and self._filter.empty
        plain = plain and query.options.order == DEFAULT_ORDER and self.index.nodes.sides is None
        plain = plain and not query.options.exclude_same_site
        while plain and nodes.size:
            found = self.index.scorer.single_pass_of_many(
                nodes, query.candidates, self._filter.floor, NO_BETS, self._settings
            )
            if found is None:
                break
            width = 4 if self.intervals else 2
            yield from (BatchHits(h.ids[: self.k], h.rows[: self.k, :width]) for h in found)
            nodes = nodes[len(found) :]
        yield from map(self.answer, nodes.tolist())

    def answer(self, node: int) -> BatchHits:
        """Return the hits of a node."""
        index, options = self.index, self._query.options
        chosen = self._filter.on_side_of(index.nodes, node)
        if options.exclude_same_site:
            chosen = replace(chosen, never=chosen.never + self._site(node))
        found = index.listed((node,), self._query, chosen, self._settings, self._levels)
        columns = [found.scores, found.errors, *(found.ends[0] if self.intervals else ())]
        ids, numbers = found.ids[: self.k], np.array(columns)[:, : self.k].T
        if options.min_confidence is None:
            return BatchHits(ids, numbers)
        sure = found.ends[-1][0][: self.k] > chosen.min_score
        return BatchHits(ids[sure], numbers[sure])

    def _site(self, node: int) -> tuple[Ids, ...]:
        """Return the ids of the pages of a node's own site."""
        names = self.index.nodes
        site = site_of(names.stored.name(node))
        latest = self._latest
        if latest[0] != site:
            self._latest = latest = site, tuple(pages_of(names, site))
        return latest[1]
