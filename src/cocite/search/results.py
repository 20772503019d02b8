"""Answers as documents: a query with its effective settings, and the result.

``of`` queries the index. If an index has lost samples (``index/stored.py``), ``samples`` counts
those that answered, and ``missing_samples`` describes the others. A refined answer has
``target_error`` and ``error_bound``; the bound exceeds the target if reaching the target costs too
much.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from cocite.measures import AskValue, Value
from cocite.options import NO_LINKS
from cocite.options.query import (
    DEFAULT_AGGREGATE,
    DEFAULT_ORDER,
    DEFAULT_REASONS,
    QueryOptions,
    ScoreOptions,
)
from cocite.results import Document, ResultRows
from cocite.search.explainer import PageWhy, Reason, Why, WhyTogether
from cocite.search.hits import Hit, Score
from cocite.search.index import Index

if TYPE_CHECKING:
    from cocite.search.batch.run import BatchReport
    from cocite.search.pairs import Similarities


INSIDE = ("offset", "surely", "loss", "titles")
"""Fields for display only."""


@dataclass(frozen=True)
class RelatedDocument(Document):
    """The nodes related to ``nodes``, combined by ``aggregate`` (None for a single node).

    ``certain_ranks``, ``complete`` and ``total`` are those of :class:`~cocite.search.hits.Hits`.
    ``pageranks`` has one value per hit; None unless the ``order`` uses PageRank. ``titles`` has one
    title per query node, "" for none; None if the graph has no titles. ``offset`` hits were
    skipped. If ``surely`` is true, intervals always hold, not just with probability ``confidence``.
    """

    nodes: tuple[str, ...]
    aggregate: str | None
    measure: str
    direction: str
    settings: dict[str, Value]
    confidence: float
    interval: str
    refined: bool
    certain_ranks: int
    complete: bool
    total: int | None
    hits: Sequence[Hit]
    order: str
    pageranks: Sequence[float] | None
    offset: int
    surely: bool
    loss: dict[str, Any]
    titles: Sequence[str] | None

    @classmethod
    def of(
        cls,
        index: Index,
        node: str | Sequence[str],
        k: int | None = None,
        *,
        options: QueryOptions | None = None,
        **given: Any,
    ) -> Self:
        """Call :meth:`Index.related`, with its arguments and errors."""
        options = QueryOptions.of(options, given)
        names = tuple(dict.fromkeys(node)) if isinstance(node, list | tuple) else (node,)
        asked = names[0] if len(names) == 1 else names
        index = index.for_related(asked)
        hits = index.related(asked, options.k if k is None else k, options=options)
        ranked = options.order != DEFAULT_ORDER
        return cls(
            tuple(map(str, names)),
            options.aggregate if len(names) > 1 else None,
            *query_of(index, options.settings),
            options.confidence,
            options.interval,
            options.refined,
            hits.certain_ranks,
            hits.complete,
            hits.total,
            hits,
            options.order,
            index.pageranks([hit.node for hit in hits], options.ranks) if ranked else None,
            options.offset,
            _surely(index, options.refined),
            loss_of(index) | reached(options.refined, options.target_error, hits),
            index.titles_of(names),
        )

    def _columns(self, *more: str) -> dict[str, Sequence[Any]]:
        """Return the hits by column, with the columns of ``more`` that the answer has."""
        extra: dict[str, Any] = {"pagerank": self.pageranks}
        if self.titles is not None:
            extra["title"] = [hit.title for hit in self.hits]
        first = self.offset + 1
        found: dict[str, Sequence[Any]] = {"rank": range(first, first + len(self.hits))}
        found |= {name: [getattr(hit, name) for hit in self.hits] for name in Hit._fields}
        return found | {name: extra[name] for name in more if extra.get(name) is not None}

    def facts(self) -> dict[str, Any]:
        """Return the fields as JSON: ``node``, or ``nodes`` with ``aggregate``; hits with ranks."""
        inside = *INSIDE, "nodes", "aggregate", "order", "pageranks"
        facts = without(super().facts(), inside if self.total is not None else (*inside, "total"))
        if self.pageranks is not None:
            facts["order"] = self.order
        facts["hits"] = _objects(self._columns("title", "pagerank"))
        titles = [title or None for title in self.titles or ()]
        asked: dict[str, Any] = {"node": self.nodes[0]} | ({"title": titles[0]} if titles else {})
        if self.aggregate is not None:
            asked = {"nodes": list(self.nodes), "aggregate": self.aggregate}
            asked |= {"titles": titles} if titles else {}
        return asked | facts | self.loss

    def rows(self) -> ResultRows:
        """Return a row per hit, with a PageRank if the order uses PageRank."""
        return _table(self._columns("pagerank", "title"))


@dataclass(frozen=True)
class SimilarityDocument(Document):
    """The similarity of ``a`` and ``b``; ``surely`` as in :class:`RelatedDocument`."""

    a: str
    b: str
    measure: str
    direction: str
    settings: dict[str, Value]
    confidence: float
    interval: str
    refined: bool
    found: Score
    surely: bool
    loss: dict[str, Any]
    titles: Sequence[str] | None

    @classmethod
    def of(
        cls, index: Index, a: str, b: str, *, options: ScoreOptions | None = None, **given: Any
    ) -> Self:
        """Call :meth:`Index.similarity`, with its arguments and errors."""
        options = ScoreOptions.of(options, given)
        index, refined = index.for_similarity(a, b), options.refined
        found = index.similarity(a, b, options=options)
        asked = query_of(index, options.settings)
        surely = _surely(index, refined)
        loss = loss_of(index) | reached(refined, options.target_error, [found])
        level = options.confidence, options.interval, refined
        return cls(str(a), str(b), *asked, *level, found, surely, loss, index.titles_of([a, b]))

    def facts(self) -> dict[str, Any]:
        """Return the fields, with the score's fields at the top level."""
        facts = without(super().facts(), ("found", *INSIDE))
        return facts | self.found._asdict() | self.loss | titles_of_pair(self.titles)

    def rows(self) -> ResultRows:
        """Return one row: the pair and its score."""
        row = {"a": self.a, "b": self.b} | self.found._asdict() | titles_of_pair(self.titles)
        return ResultRows(list(row), [list(row.values())])


@dataclass(frozen=True)
class PairsDocument(Document):
    """The similarities of many ``pairs``; ``output`` is the path if written to a file."""

    measure: str
    direction: str
    settings: dict[str, Value]
    confidence: float
    interval: str
    refined: bool
    pairs: Similarities
    titles: tuple[Sequence[str], Sequence[str]] | None
    output: str | None
    seconds: float
    loss: dict[str, Any]

    def facts(self) -> dict[str, Any]:
        """Return an object per pair; if the pairs were written to a file, their number."""
        facts = without(super().facts(), ("output", "seconds", *INSIDE))
        if self.output is not None:
            written = {"output": self.output, "pairs": len(self.pairs), "seconds": self.seconds}
            return facts | written | self.loss
        return facts | {"pairs": _objects(self._columns())} | self.loss

    def rows(self) -> ResultRows:
        """Return a row per pair; if the pairs were written to a file, a row per fact."""
        return super().rows() if self.output is not None else _table(self._columns())

    def _columns(self) -> dict[str, Any]:
        columns: dict[str, Any] = {"a": self.pairs.a, "b": self.pairs.b}
        columns |= {title: getattr(self.pairs, title).tolist() for title in Score._fields}
        if self.titles is not None:
            for title, texts in zip(("a_title", "b_title"), self.titles, strict=True):
                columns[title] = [text or None for text in texts]
        return columns


@dataclass(frozen=True)
class BatchDocument(Document):
    """A completed batch.

    ``nodes`` counts the nodes that this run queried, not those of an interrupted run that it
    resumed. ``rows_written`` counts all rows in ``output``, a file or a table; ``bytes`` is the
    output size, None if unknown.
    """

    output: str
    nodes: int
    rows_written: int
    nodes_without_results: int
    seconds: float
    bytes: int | None
    loss: dict[str, Any]

    @classmethod
    def of(cls, index: Index, output: str, report: BatchReport, seconds: float) -> Self:
        """Create the document from a ``report``."""
        took = (report.nodes, report.rows, report.without)
        return cls(output, *took, seconds, report.bytes, loss_of(index))

    def facts(self) -> dict[str, Any]:
        """Return the fields, with the number of ``rows``."""
        facts = without(super().facts(), INSIDE) | self.loss
        return {("rows" if name == "rows_written" else name): facts[name] for name in facts}


@dataclass(frozen=True)
class WhyDocument(Document):
    """Why ``b`` is related to one or more nodes; ``pages`` has each node's contribution."""

    b: str
    aggregate: str | None
    measure: str
    direction: str
    settings: dict[str, Value]
    score: float
    pages: Sequence[PageWhy]
    loss: dict[str, Any]
    titles: Mapping[str, str] | None

    @classmethod
    def of(
        cls,
        index: Index,
        nodes: str | Sequence[str],
        b: str,
        k: int = DEFAULT_REASONS,
        *,
        aggregate: str = DEFAULT_AGGREGATE,
        **settings: Any,
    ) -> Self:
        """Call :meth:`Index.why`, or :meth:`Index.why_together` for several nodes."""
        names = [nodes] if isinstance(nodes, str) else list(dict.fromkeys(nodes))
        index = index.for_why(names, b)
        if len(names) == 1:
            why, how = index.why(names[0], b, k, **settings), None
            found = WhyTogether(why.score, [PageWhy(names[0], why.score, why.score, why)])
        else:
            how = aggregate
            found = index.why_together(names, b, k, aggregate=aggregate, **settings)
        reasons = [reason for page in found.pages for reason in page.why.reasons]
        titles = _titles_in(index, (b, *(page.node for page in found.pages)), reasons)
        return cls(str(b), how, *query_of(index, settings), *found, loss_of(index), titles)

    def facts(self) -> dict[str, Any]:
        """Return each node's contribution and reasons; for a single node, only the reasons."""
        asked = {"measure": self.measure, "direction": self.direction, "settings": self.settings}
        if self.aggregate is None:
            (page,) = self.pages
            known, pair = self.titles, (page.node, self.b)
            titles = None if known is None else [known.get(name, "") for name in pair]
            facts = {"a": str(page.node), "b": self.b, **asked, **self._facts_of(page.why)}
            return facts | self.loss | titles_of_pair(titles)
        pages = [
            {"node": page.node, **_title_of(page.node, self.titles)}
            | {"score": page.score, "contribution": page.contribution}
            | {**self._facts_of(page.why), "score": page.score}
            for page in self.pages
        ]
        about = {"b": self.b, "aggregate": self.aggregate, **asked}
        return about | {"score": self.score, "pages": pages} | self.loss

    def _facts_of(self, why: Why) -> dict[str, Any]:
        return why._asdict() | {"reasons": _reasons(why.reasons, self.titles)}

    def rows(self) -> ResultRows:
        """Return a row per reason, with paths as JSON; then unranked rows for the other shares."""
        titles = ("rank", *Reason._fields, *(["title"] if self.titles is not None else []))
        each = [(page.node, _why_rows(page.why, self.titles)) for page in self.pages]
        if self.aggregate is None:
            return ResultRows(titles, each[0][1])
        return ResultRows(("asked", *titles), [(node, *row) for node, rows in each for row in rows])


def titles_of_pair(titles: Sequence[str] | None) -> dict[str, str | None]:
    """Return two titles as fields; {} if the graph has no titles."""
    if titles is None:
        return {}
    return {"a_title": titles[0] or None, "b_title": titles[1] or None}


def query_of(index: Index, settings: Mapping[str, AskValue]) -> tuple[str, str, dict[str, Value]]:
    """Return an answer's measure, direction and settings."""
    asked = index.stored.ask_settings(settings).to_json()
    return index.measure, index.direction, index.settings | asked


def loss_of(index: Index) -> dict[str, Any]:
    """Return fields on missing samples, and the number of pages excluded for too many links."""
    found: dict[str, Any] = {}
    if index.missing_samples:
        found = {"samples": index.samples, "missing_samples": index.missing_samples}
    answered = index.answered
    if answered is not None and answered.shards < answered.of:
        shards = {"answered": answered.shards, "of": answered.of}
        found |= {"samples": answered.samples, "shards": shards}
    excluded = index.stored.excluded
    return found | ({"excluded": excluded} if excluded else {})


def reached(
    refined: bool, target_error: float | None, found: Iterable[Score | Hit]
) -> dict[str, float]:
    """Return a refined answer's error fields: the target, and the largest error bound."""
    if not refined:
        return {}
    from cocite.search.refine.candidates import DEFAULT_TARGET  # needed only here

    target = DEFAULT_TARGET if target_error is None else target_error
    bound = max((each.error_bound for each in found), default=0.0)
    return {"target_error": target, "error_bound": round(bound, 12)}


def _surely(index: Index, refined: bool) -> bool:
    if refined:
        return index.refiner is None or index.refiner.certain
    return not index.scorer.sampled


def without(facts: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return the facts except ``names``."""
    return {name: value for name, value in facts.items() if name not in names}


def _table(columns: Mapping[str, Sequence[Any]]) -> ResultRows:
    return ResultRows(list(columns), zip(*columns.values(), strict=True))


def _objects(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return a dictionary per row."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# -- reasons -----------------------------------------------------------------------------


_Titles = Mapping[str, str] | None
"""Nonempty titles by page; None if the graph has no titles."""


def _titles_in(index: Index, asked: Sequence[str], reasons: Sequence[Reason]) -> _Titles:
    if index.titles is None:
        return None
    names = dict.fromkeys([*map(str, asked), *(r.node for r in reasons if r.links != NO_LINKS)])
    # Some pages may have been removed from the graph.
    ids = {name: node for name in names if (node := index.nodes.find(name)) is not None}
    found = index.titles.of(np.fromiter(ids.values(), np.int64, len(ids)))
    return {name: title for name, title in zip(ids, found, strict=True) if title}


def _title_of(node: str, titles: _Titles) -> dict[str, str | None]:
    return {} if titles is None else {"title": titles.get(node)}


def _reasons(reasons: Sequence[Reason], titles: _Titles) -> list[dict[str, Any]]:
    words = None if titles is None else dict[str, str]()
    return [
        reason._asdict() | _title_of(reason.node, words if reason.links == NO_LINKS else titles)
        for reason in reasons
    ]


def _why_rows(why: Why, titles: _Titles) -> list[list[Any]]:
    rows = [
        [rank]
        + [
            json.dumps(value, ensure_ascii=False) if name.startswith("path") else value
            for name, value in reason.items()
        ]
        for rank, reason in enumerate(_reasons(why.reasons, titles), 1)
    ]
    rest = [None] * (len(Reason._fields) - 2 + (titles is not None))
    rows += [[None, None, why.remaining, *rest]] * (why.others > 0)
    rows += [[None, None, why.unattributed, *rest]] * (why.unattributed > 0)
    return rows
