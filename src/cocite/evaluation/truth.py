"""Labels and texts by which results are evaluated, and example lists for a few random queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.evaluation.judge import Content, Judge, read_texts
from cocite.evaluation.labels import SAME, Labels, read_labels
from cocite.evaluation.points import DataPlan, JudgePlan
from cocite.evaluation.rankers import Ranker
from cocite.graph.name_files import Titles
from cocite.graph.names import Names

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Truth:
    """Labels and texts of nodes, and the ``queries`` uint32[q], ascending."""

    labels: Labels | None
    depth: int
    content: Content | None
    queries: NDArray[np.uint32]
    candidates: NDArray[np.uint32] | None
    """The possible hits, or None for all nodes."""

    @property
    def sources(self) -> list[str]:
        """Describe how the labels were read."""
        return [] if self.labels is None else [self.labels.read]

    def judge(self, plan: JudgePlan, queries: NDArray[np.uint32] | None = None) -> Judge:
        """Return a judge for ``queries``, by default ``self.queries``."""
        return Judge(
            self.queries if queries is None else queries,
            familial=self.labels.collapsed(self.depth) if self.labels else None,
            relevance=self.labels.collapsed() if self.labels else None,
            content=self.content,
            cutoffs=plan.cutoffs,
            depth=plan.content,
            top=plan.top,
            gamma_least=plan.gamma_least,
        )


def read_truth(
    names: Names,
    plan: DataPlan,
    judge: JudgePlan,
    folder: Path = Path(),
    seed: int = 0,
    progress: Progress = lambda stage, done, total: None,
    memory: int | None = None,
) -> Truth:
    """Read labels and texts, each within ``memory`` bytes, and choose the queries: all labeled
    nodes, or without labels all nodes with a text, or a random sample of these.

    Raises :class:`~cocite.errors.UsageError` if there are neither labels nor texts, unless the plan
    is ``unlabeled``; :class:`~cocite.errors.InputError`; and
    :class:`~cocite.errors.ResourceError`.
    """
    if not plan.labels and not plan.texts:
        if not plan.unlabeled:
            raise UsageError("an evaluation needs labels or texts: pass at least one of them")
        within = names.sides.named(None) if names.sides is not None else range(len(names))
        everyone = np.arange(within.start, within.stop, dtype=np.uint32)
        return Truth(None, 0, None, sample_pages(everyone, judge.queries, seed), None)
    if len(plan.label_columns) != 2:
        raise UsageError("there must be two label columns: the name and the label")
    labels = content = None
    if plan.labels:
        progress("reading labels", 0, 0)
        labels = read_labels(
            folder / plan.labels,
            names,
            plan.label_columns,
            plan.separator,
            delimiter=plan.delimiter,
            header=plan.header,
            bad_rows=plan.bad_rows,
            memory=memory,
        )
    texts: dict[int, str] = {}
    if plan.texts:
        stage = partial(progress, "reading texts")
        texts = read_texts(folder / plan.texts, names, stage, memory)
        progress("weighting words", 0, 0)
        content = Content(texts, len(names))
    known = np.array(sorted(texts), np.uint32) if labels is None else labels.labeled
    if names.sides is not None and known.size:
        left, right = known[known < names.sides.left], known[known >= names.sides.left]
        if left.size and right.size:
            one, other = names.names(np.array([left[0], right[0]]))
            raise UsageError(
                f"{plan.labels or plan.texts} has nodes of both sides, such as {one!r} and "
                f"{other!r}, but only nodes of the same side are compared: remove the nodes of "
                "one side"
            )
    return Truth(
        labels=labels,
        depth=(plan.depth or labels.usual_depth) if labels else 0,
        content=content,
        queries=sample_pages(known, judge.queries, seed),
        candidates=known if known.size < len(names) else None,
    )


def sample_pages(nodes: NDArray[np.uint32], count: int, seed: int) -> NDArray[np.uint32]:
    """Return ``count`` random nodes, ascending; all if ``count`` is 0 or there are no more."""
    if not 0 < count < nodes.size:
        return nodes
    return np.sort(np.random.default_rng(seed).choice(nodes, count, replace=False))


_PAGES, _HITS, _LABELS = 3, 10, 3


@dataclass(frozen=True)
class ExampleHit:
    """A hit; ``alike`` says whether the hit shares a label with the page, None without labels."""

    name: str
    score: float
    alike: bool | None
    title: str = ""


@dataclass(frozen=True)
class ExamplePage:
    """An example query with some of its labels, and its hits by method, best first."""

    name: str
    labels: tuple[str, ...]
    title: str = ""
    hits: dict[str, list[ExampleHit]] = field(default_factory=dict)


class Examples:
    """The first hits of each method for a few queries."""

    def __init__(self, names: Names, truth: Truth, seed: int, titles: Titles | None = None) -> None:
        self._names, self._titles = names, titles
        self._nodes = [int(node) for node in sample_pages(truth.queries, _PAGES, seed)]
        self._classes = truth.labels.collapsed() if truth.labels else None
        ids = np.array(self._nodes, np.uint32)
        labels = [truth.labels.of(node)[:_LABELS] if truth.labels else () for node in self._nodes]
        self.pages = [*map(ExamplePage, names.names(ids), labels, self._titles_of(ids))]

    def _titles_of(self, ids: NDArray[np.uint32]) -> list[str]:
        return [""] * ids.size if self._titles is None else self._titles.of(ids)

    def ask(self, method: str, ranker: Ranker) -> None:
        """Add the first hits of a method."""
        for page, node in zip(self.pages, self._nodes, strict=True):
            ids, scores = ranker.related(node, _HITS)
            alike: list[bool | None] = [None] * ids.size
            if self._classes is not None:
                alike = [bool(each == SAME) for each in self._classes.relation(node, ids)]
            titles = self._titles_of(ids)
            found = zip(self._names.names(ids), scores.tolist(), alike, titles, strict=True)
            page.hits[method] = [ExampleHit(*each) for each in found]
