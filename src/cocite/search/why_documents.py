"""Reasons as documents: why two nodes are similar, and why a node is related to several.

Beside measure, direction and settings, as ``results.py`` has them, these are the fields of
:class:`~cocite.search.stages.Why`; with titles where the graph has any.

Cost: that of :meth:`Index.why`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cocite.graph.links import NO_LINKS
from cocite.measures import Value
from cocite.results import Document, ResultRows
from cocite.search.index import Index
from cocite.search.results import INSIDE, loss_of, query_of, titles_of_pair, without
from cocite.search.scorer import DEFAULT_TOGETHER
from cocite.search.stages import DEFAULT_REASONS, PageWhy, Reason, Why


@dataclass(frozen=True)
class WhyDocument(Document):
    """Why ``a`` and ``b`` are similar: the fields of :class:`~cocite.search.stages.Why`."""

    a: str
    b: str
    measure: str
    direction: str
    settings: dict[str, Value]
    score: float
    reasons: Sequence[Reason]
    others: int
    rest: float
    unplaced: float
    loss: dict[str, Any]
    titles: Mapping[str, str] | None

    @classmethod
    def of(cls, index: Index, a: str, b: str, k: int = DEFAULT_REASONS, **settings: Any) -> Self:
        """Ask :meth:`Index.why`, which says what each argument means and what it raises."""
        index = index.one_question()
        why = index.why(a, b, k, **settings)
        titles = _titles_in(index, (a, b), why.reasons)
        asked = query_of(index, settings)
        return cls(str(a), str(b), *asked, **why._asdict(), loss=loss_of(index), titles=titles)

    def facts(self) -> dict[str, Any]:
        """Everything but what helps to read it."""
        facts = without(super().facts(), INSIDE) | self.loss
        if self.titles is not None:
            pair = [self.titles.get(name, "") for name in (self.a, self.b)]
            facts |= titles_of_pair(pair) | {"reasons": _reasons(self.reasons, self.titles)}
        return facts

    def rows(self) -> ResultRows:
        """A row a reason, its paths as JSON; then, without ranks, what is not shown of the score
        and what is not known of it, if there is any.
        """
        return ResultRows(_why_titles(self.titles), _why_rows(self, self.titles))


@dataclass(frozen=True)
class WhyTogetherDocument(Document):
    """Why ``b`` is related to several nodes asked ``together``: for each, in ``pages``, what it
    adds, and why.
    """

    b: str
    together: str
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
        nodes: Sequence[str],
        b: str,
        k: int = DEFAULT_REASONS,
        *,
        together: str = DEFAULT_TOGETHER,
        **settings: Any,
    ) -> Self:
        """Ask :meth:`Index.why_together`, which says what each argument means and raises."""
        index = index.one_question()
        found = index.why_together(nodes, b, k, together=together, **settings)
        reasons = [reason for page in found.pages for reason in page.why.reasons]
        titles = _titles_in(index, (b, *(page.node for page in found.pages)), reasons)
        asked = query_of(index, settings)
        return cls(str(b), together, *asked, *found, loss=loss_of(index), titles=titles)

    def facts(self) -> dict[str, Any]:
        """The reasons of a page stand beside what it adds."""
        pages = [
            {"node": page.node, **_title_of(page.node, self.titles)}
            | {"score": page.score, "share": page.share}
            | {
                name: _reasons(value, self.titles) if name == "reasons" else value
                for name, value in page.why._asdict().items()
                if name != "score"
            }
            for page in self.pages
        ]
        return without(super().facts(), INSIDE) | {"pages": pages} | self.loss

    def rows(self) -> ResultRows:
        """Those of each node, behind its name."""
        titles = self.titles
        rows = [(page.node, *row) for page in self.pages for row in _why_rows(page.why, titles)]
        return ResultRows(("asked", *_why_titles(titles)), rows)

    def of_page(self, page: PageWhy) -> WhyDocument:
        """What one of the nodes has to do with ``b``."""
        how = self.measure, self.direction, self.settings
        return WhyDocument(
            page.node, self.b, *how, **page.why._asdict(), loss=self.loss, titles=self.titles
        )


_WHY_TITLES = ("rank", *Reason._fields)


_Titles = Mapping[str, str] | None
"""Titles of pages by their names, of those that have one; None if the graph has none at all."""


def _titles_in(index: Index, asked: Sequence[str], reasons: Sequence[Reason]) -> _Titles:
    """The titles of pages that are asked for, and of reasons that are pages."""
    if index.titles is None:
        return None
    names = [*map(str, asked), *(r.node for r in reasons if r.links != NO_LINKS)]
    ids = {name: index.nodes.find(name) for name in dict.fromkeys(names)}  # some may be gone
    there = {name: node for name, node in ids.items() if node is not None}
    found = index.titles.of(np.fromiter(there.values(), np.int64, len(there)))
    return {name: title for name, title in zip(there, found, strict=True) if title}


def _title_of(node: str, titles: _Titles) -> dict[str, str | None]:
    return {} if titles is None else {"title": titles.get(node)}


def _reasons(reasons: Sequence[Reason], titles: _Titles) -> list[dict[str, Any]]:
    """Reasons as JSON has them; a word has no title."""
    pages = None if titles is None else {**titles}
    return [
        reason._asdict()
        | _title_of(reason.node, {} if pages and reason.links == NO_LINKS else pages)
        for reason in reasons
    ]


def _why_titles(titles: _Titles) -> tuple[str, ...]:
    return _WHY_TITLES if titles is None else (*_WHY_TITLES, "title")


def _why_rows(why: Why | WhyDocument, titles: _Titles) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [
        (
            *(rank, *reason[:5]),
            *(json.dumps(path, ensure_ascii=False) for path in reason[5:]),
            *(each["title"] for each in [told] if titles is not None),
        )
        for rank, (reason, told) in enumerate(
            zip(why.reasons, _reasons(why.reasons, titles), strict=True), 1
        )
    ]
    for share, there in ((why.rest, why.others > 0), (why.unplaced, why.unplaced > 0)):
        if there:
            rows.append((None, None, share, *(None for _ in _why_titles(titles)[3:])))
    return rows
