"""Lists of a few pages, as methods give them: what figures are the means of, to be looked at.

The pages are drawn by the seed out of those that are asked; each method's first hits are kept, with
whether they share a label with the page.

Cost: a question a page and method.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cocite.evaluation.data import Truth, drawn
from cocite.evaluation.labels import SAME, Labels
from cocite.evaluation.rankings import Ranker
from cocite.graph.names import Names
from cocite.graph.titles import Titles

__all__ = ["ExampleHit", "ExamplePage", "Examples"]

_PAGES, _HITS, _LABELS = 3, 10, 3


@dataclass(frozen=True)
class ExampleHit:
    """A hit; ``alike`` says whether it shares a label with the page, None without labels; ``title``
    is "" where there is none.
    """

    name: str
    score: float
    alike: bool | None
    title: str = ""


@dataclass(frozen=True)
class ExamplePage:
    """A page that was asked for, some of its labels, and its hits by method, best first."""

    name: str
    labels: tuple[str, ...]
    title: str = ""
    hits: dict[str, list[ExampleHit]] = field(default_factory=dict)


class Examples:
    """Lists of a few of the pages that a truth asks for."""

    def __init__(self, names: Names, truth: Truth, seed: int, titles: Titles | None = None) -> None:
        self._names, self._titles = names, titles
        self._nodes = [int(node) for node in drawn(truth.queries, _PAGES, seed)]
        self._classes = truth.labels.collapsed() if truth.labels else None
        ids = np.array(self._nodes, np.uint32)
        found = zip(names.names(ids), self._titles_of(ids), self._nodes, strict=True)
        self.pages = [
            ExamplePage(name, _labels_of(truth.labels, node), title) for name, title, node in found
        ]

    def _titles_of(self, ids: NDArray[np.uint32]) -> list[str]:
        return [""] * ids.size if self._titles is None else self._titles.of(ids)

    def ask(self, method: str, ranker: Ranker) -> None:
        """Keep the first hits of a method."""
        for page, node in zip(self.pages, self._nodes, strict=True):
            ids, scores = ranker.related(node, _HITS)
            alike: list[bool | None] = [None] * ids.size
            if self._classes is not None:
                alike = [bool(each == SAME) for each in self._classes.relation(node, ids)]
            titles = self._titles_of(ids)
            found = zip(self._names.names(ids), scores.tolist(), alike, titles, strict=True)
            page.hits[method] = [ExampleHit(*each) for each in found]


def _labels_of(labels: Labels | None, node: int) -> tuple[str, ...]:
    """The first labels of a node, as text."""
    if labels is None:
        return ()
    own = labels.labels[labels.nodes == node].tolist()
    return tuple(".".join(labels.paths[label]) for label in own[:_LABELS])
