"""Answers to questions as documents: the question as it was understood, and what came of it.

Each is made by ``of``, which asks the index. Measure, direction and settings are those that the
answer went by, those of the index and those of the question in one.

Of an index that has lost samples (``index/stored.py``) an answer has two facts more: ``samples``,
how many answered, and ``lost``. A refined answer has ``target_error``, and ``error_bound``, how far
off a score may be: it is larger where the target would have cost too much.

Reasons are in ``search/why_documents.py``.

Cost: that of the questions; of ``related`` also that of its order (:attr:`Hits.certain_ranks`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cocite.measures import AskValue, Value
from cocite.results import Document, ResultRows
from cocite.search.filters import DEFAULT_ORDER, RanksLike
from cocite.search.hits import Hit, Score
from cocite.search.index import Index
from cocite.search.intervals import DEFAULT_BOUND
from cocite.search.scorer import DEFAULT_TOGETHER
from cocite.search.stages import DEFAULT_CONFIDENCE, DEFAULT_K

if TYPE_CHECKING:
    from cocite.search.batch.run import BatchReport
    from cocite.search.pairs import Similarities


INSIDE = ("offset", "surely", "loss", "titles")
"""Fields that help to read an answer and are no part of it."""


@dataclass(frozen=True)
class RelatedDocument(Document):
    """The nodes related to ``nodes``, to one or to several asked ``together`` (None of one), and
    how many of the first are certain (:attr:`Hits.certain_ranks`). Where the ``order`` goes by
    PageRank, ``pageranks`` are those of the hits; None where it goes by scores.

    ``titles`` are those of the nodes, "" for none; None if the graph has none at all.

    ``offset`` is how many hits were skipped; ``surely`` whether intervals hold for certain, and not
    with the probability ``confidence``.
    """

    nodes: tuple[str, ...]
    together: str | None
    measure: str
    direction: str
    settings: dict[str, Value]
    confidence: float
    bound: str
    refined: bool
    certain_ranks: int
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
        k: int = DEFAULT_K,
        *,
        together: str = DEFAULT_TOGETHER,
        offset: int = 0,
        refine: bool = False,
        target_error: float | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        order: str = DEFAULT_ORDER,
        candidates: int | None = None,
        ranks: RanksLike = None,
        filters: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> Self:
        """Ask :meth:`Index.related`, which says what each argument means and what it raises.

        ``filters`` are its arguments that say which nodes may be hits, such as ``min_score``.
        """
        index, refined = index.one_question(), refine or target_error is not None
        level: dict[str, Any] = {"confidence": confidence, "bound": bound}
        chosen: dict[str, Any] = {"target_error": target_error, **(filters or {})}
        names = tuple(dict.fromkeys(node)) if isinstance(node, list | tuple) else (node,)
        level |= {"together": together, "order": order, "ranks": ranks}
        chosen["candidates"] = candidates
        asked = names[0] if len(names) == 1 else names
        hits = index.related(asked, k, offset=offset, refine=refined, **chosen, **level, **settings)
        return cls(
            tuple(map(str, names)),
            together if len(names) > 1 else None,
            *query_of(index, settings),
            confidence,
            bound,
            refined,
            hits.certain_ranks,
            hits,
            order,
            index.pageranks([hit.node for hit in hits], ranks) if order != DEFAULT_ORDER else None,
            offset,
            _surely(index, refined),
            loss_of(index) | reached(refined, target_error, hits),
            index.titles_of(names),
        )

    def facts(self) -> dict[str, Any]:
        """Everything but what helps to read it; ``node``, or ``nodes`` and how they were asked; of
        an order by PageRank this beside the scores.
        """
        inside = *INSIDE, "nodes", "together", "order", "pageranks"
        facts = without(super().facts(), inside)
        hits = [hit._asdict() for hit in self.hits]
        if self.titles is not None:
            hits = [each | {"title": hit.title} for each, hit in zip(hits, self.hits, strict=True)]
        if self.pageranks is not None:
            facts["order"] = self.order
            ranked = zip(hits, self.pageranks, strict=True)
            hits = [each | {"pagerank": rank} for each, rank in ranked]
        facts["hits"] = hits
        asked: dict[str, Any] = {"node": self.nodes[0]}
        if self.titles is not None:
            asked["title"] = self.titles[0] or None
        if self.together is not None:
            asked = {"nodes": list(self.nodes), "together": self.together}
            if self.titles is not None:
                asked["titles"] = [title or None for title in self.titles]
        return asked | facts | self.loss

    def rows(self) -> ResultRows:
        """A row a hit, with its rank; and its PageRank, if it goes by that."""
        titles: tuple[str, ...] = ("rank", *Hit._fields)
        rows: list[tuple[Any, ...]] = [
            (i, *hit) for i, hit in enumerate(self.hits, self.offset + 1)
        ]
        if self.pageranks is not None:
            titles = *titles, "pagerank"
            rows = [(*row, rank) for row, rank in zip(rows, self.pageranks, strict=True)]
        if self.titles is not None:
            titles = *titles, "title"
            rows = [(*row, hit.title) for row, hit in zip(rows, self.hits, strict=True)]
        return ResultRows(titles, rows)


@dataclass(frozen=True)
class SimilarityDocument(Document):
    """How similar ``a`` and ``b`` are; ``surely`` as in :class:`RelatedDocument`."""

    a: str
    b: str
    measure: str
    direction: str
    settings: dict[str, Value]
    confidence: float
    bound: str
    refined: bool
    found: Score
    surely: bool
    loss: dict[str, Any]
    titles: Sequence[str] | None

    @classmethod
    def of(
        cls,
        index: Index,
        a: str,
        b: str,
        *,
        refine: bool = False,
        target_error: float | None = None,
        confidence: float = DEFAULT_CONFIDENCE,
        bound: str = DEFAULT_BOUND,
        **settings: Any,
    ) -> Self:
        """Ask :meth:`Index.similarity`, which says what each argument means and what it raises."""
        index, refined = index.one_question(), refine or target_error is not None
        found = index.similarity(
            a,
            b,
            refine=refined,
            target_error=target_error,
            confidence=confidence,
            bound=bound,
            **settings,
        )
        asked = query_of(index, settings)
        surely = _surely(index, refined)
        loss = loss_of(index) | reached(refined, target_error, [found])
        titles, level = index.titles_of([a, b]), (confidence, bound, refined)
        return cls(str(a), str(b), *asked, *level, found, surely, loss, titles)

    def facts(self) -> dict[str, Any]:
        """The score's own facts stand beside the others."""
        facts = without(super().facts(), ("found", *INSIDE))
        return facts | self.found._asdict() | self.loss | titles_of_pair(self.titles)

    def rows(self) -> ResultRows:
        """One row, of the pair and its score."""
        titled = titles_of_pair(self.titles)
        titles = ("a", "b", *Score._fields, *titled)
        return ResultRows(titles, [(self.a, self.b, *self.found, *titled.values())])


@dataclass(frozen=True)
class PairsDocument(Document):
    """How similar the nodes of many ``pairs`` are, in their order, each with its score. If they
    were written, ``output`` says where, and ``pairs`` is how many.
    """

    measure: str
    direction: str
    settings: dict[str, Value]
    confidence: float
    bound: str
    refined: bool
    pairs: Similarities
    titles: tuple[Sequence[str], Sequence[str]] | None
    output: str | None
    seconds: float
    loss: dict[str, Any]

    def facts(self) -> dict[str, Any]:
        """A pair is an object with its score."""
        facts = without(super().facts(), ("output", "seconds", *INSIDE))
        if self.output is not None:
            written = {"output": self.output, "pairs": len(self.pairs), "seconds": self.seconds}
            return facts | written | self.loss
        titles, rows = self.rows()
        return facts | {"pairs": [dict(zip(titles, row, strict=True)) for row in rows]} | self.loss

    def rows(self) -> ResultRows:
        """A row a pair; what was written is a fact a row."""
        if self.output is not None:
            return super().rows()
        columns: dict[str, Any] = {"a": self.pairs.a, "b": self.pairs.b}
        columns |= {title: getattr(self.pairs, title).tolist() for title in Score._fields}
        if self.titles is not None:
            for title, texts in zip(("a_title", "b_title"), self.titles, strict=True):
                columns[title] = [text or None for text in texts]
        return ResultRows(list(columns), zip(*columns.values(), strict=True))


@dataclass(frozen=True)
class BatchDocument(Document):
    """A batch that is done: the ``nodes`` that it asked for itself, if an earlier run had asked for
    others, all ``rows`` of ``output``, a file or a table, how many nodes are ``without_hits``, and
    the ``bytes`` of the output, None if they are not known.
    """

    output: str
    nodes: int
    rows_written: int
    without_hits: int
    seconds: float
    bytes: int | None
    loss: dict[str, Any]

    @classmethod
    def of(cls, index: Index, output: str, report: BatchReport, seconds: float) -> Self:
        """What ``report`` says."""
        took = (report.nodes, report.rows, report.without)
        return cls(output, *took, seconds, report.bytes, loss_of(index))

    def facts(self) -> dict[str, Any]:
        """With ``rows`` called so."""
        facts = without(super().facts(), INSIDE) | self.loss
        return {("rows" if name == "rows_written" else name): facts[name] for name in facts}


def titles_of_pair(titles: Sequence[str] | None) -> dict[str, str | None]:
    """What is said of the titles of two pages, if the graph has any."""
    if titles is None:
        return {}
    return {"a_title": titles[0] or None, "b_title": titles[1] or None}


def query_of(index: Index, settings: dict[str, AskValue]) -> tuple[str, str, dict[str, Value]]:
    """Measure, direction and settings that an answer goes by."""
    asked = index.stored.ask_settings(settings).to_json()
    return index.measure, index.direction, index.settings | asked


def loss_of(index: Index) -> dict[str, Any]:
    """What an index says beside its answer: of samples that it is without, of how many pages it
    leaves aside, as they have more links than tell something.
    """
    found: dict[str, Any] = {"samples": index.samples, "lost": index.lost} if index.lost else {}
    found |= index.left_out
    passed_over = index.stored.passed_over
    return found | ({"passed_over": passed_over} if passed_over else {})


def reached(
    refined: bool, target_error: float | None, found: Iterable[Score | Hit]
) -> dict[str, float]:
    """What a refined answer says of its error: the one aimed at, and how far off a score may be."""
    if not refined:
        return {}
    from cocite.search.refine.candidates import DEFAULT_TARGET  # other questions do not wait for it

    target = DEFAULT_TARGET if target_error is None else target_error
    bound = max((each.error_bound for each in found), default=0.0)
    return {"target_error": target, "error_bound": round(bound, 12)}


def _surely(index: Index, refined: bool) -> bool:
    """Whether intervals hold for certain."""
    if refined:
        return index.refiner is None or index.refiner.certain
    return not index.sampled


def without(facts: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The other facts."""
    return {name: value for name, value in facts.items() if name not in names}
