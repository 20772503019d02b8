"""Refined answers: what samples rank roughly, settled. What all kinds of them have in common.

* SimRank is computed by its linearised form (``certain.py``; ``nearby.py`` without an index):
  no samples, and an interval that holds for certain. It is SimRank itself, with walks of any
  length, and not cut at the index's.
* Other measures of walks, and blends with them, take the index's best as candidates, and more
  samples for them (``samples.py``): exactly the samples that a larger index would hold.
* XJaccard takes the index's best and compares their neighbourhoods (``rings.py``).

All read the stored graph again (``query/source.py``). Where no part of an index is sampled, its
scores are as exact as they get, and nothing is left to refine.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cocite.adding import added
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.links import links_of, opposite
from cocite.graph.rows import Links
from cocite.index import StoredIndex
from cocite.layouts.drawn.part import UnbuiltPart
from cocite.layouts.stored import StoredPart
from cocite.means import Means
from cocite.measures import BY, DECAY, WholeSettings
from cocite.query.filters import Filter
from cocite.query.source import Given, find_graph

__all__ = ["DEFAULT_TARGET", "Level", "Refined", "Refiner", "decay_of", "most_of"]

DEFAULT_TARGET = 0.001


@dataclass(frozen=True)
class Level:
    """How far an answer is refined: the error aimed at, and for samples the confidence; and with
    which hits are to be above a score, if they are.
    """

    target: float
    confidence: float
    above: float | None = None

    @classmethod
    def checked(cls, target: float | None, confidence: float, above: float | None = None) -> Level:
        """Raises :class:`UsageError`."""
        if target is None:
            target = DEFAULT_TARGET
        if not isinstance(target, int | float) or not 1e-6 <= target < 1:
            raise UsageError(
                f"target_error is {target!r}; it is a number from 1e-6 up to 1, such as 0.001"
            )
        return cls(float(target), confidence, above)


@dataclass(frozen=True)
class Refined:
    """Hits: ``ids`` uint32[h], ``scores``, standard ``errors``, ``low`` and ``high`` float64[h].

    ``least`` is ``low`` at the confidence :attr:`Level.above`; None where that is ``low`` itself.
    """

    ids: NDArray[np.uint32]
    scores: NDArray[np.float64]
    errors: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    least: NDArray[np.float64] | None = None

    def above(self, score: float) -> list[bool]:
        """Which hits score above ``score``, with the confidence asked for."""
        found: list[bool] = ((self.low if self.least is None else self.least) > score).tolist()
        return found

    def rows(self) -> Iterator[tuple[float, float, float, float]]:
        """(score, standard error, low, high) of each."""
        columns = self.scores, self.errors, self.low.round(12), self.high.round(12)
        yield from zip(*(column.tolist() for column in columns), strict=True)

    def taken(self, places: NDArray[np.intp]) -> Refined:
        """The hits at some places, in their order."""
        return Refined(
            self.ids[places],
            self.scores[places],
            self.errors[places],
            self.low[places],
            self.high[places],
            None if self.least is None else self.least[places],
        )


class Refiner(ABC):
    """Refined answers from one index. Safe to share between threads."""

    certain = False
    """Whether intervals hold for certain, and not with a probability."""

    def __init__(self, stored: StoredIndex, graph: Given, means: Means) -> None:
        self._stored, self._given, self._means = stored, graph, means
        self.report: Callable[[int, int, int], None] = lambda sweep, done, total: None
        """Told (sweep, nodes done, nodes in it) while the first question makes something ready."""
        self._lock = threading.Lock()

    @cached_property
    def graph(self) -> Graph:
        """The graph behind the index, checked."""
        found = find_graph(self._stored, self._given)
        found.check()
        return found

    def ends(self, direction: str) -> tuple[Links, Links]:
        """The graph's links of a direction and those of the other, all of which count the same."""
        return self._ends[direction], self._ends[opposite(direction)]

    @cached_property
    def _ends(self) -> dict[str, Links]:
        if isinstance(part := self._stored.parts[0], UnbuiltPart) and not part.weighted:
            return {way: part.links(way) for way in ("in", "out")}
        return {way: links_of(self.graph, way, self._means.memory) for way in ("in", "out")}

    def check(self, settings: WholeSettings) -> None:
        """Raise :class:`UsageError` for a question that it cannot answer; by default for none."""
        return

    @abstractmethod
    def top(
        self,
        node: int,
        k: int,
        min_score: float,
        chosen: Filter,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """The best k; equal scores by ascending node."""

    @abstractmethod
    def pair(self, node: int, other: int, settings: WholeSettings, level: Level) -> Refined:
        """The score of ``other`` in the row of ``node``, which is another node."""


def most_of(stored: StoredIndex, settings: WholeSettings) -> float:
    """The most that different nodes score where all parts are walks: their decays' mean."""
    return added(part.weight * decay_of(part, settings) for part in stored.parts)


def decay_of(part: StoredPart, settings: WholeSettings) -> float:
    """The decay of a part that is computed; raises :class:`UsageError` if it goes by anything else,
    for which there is no linearised form.
    """
    own = part.ask_settings(settings)
    if own[BY] != BY.default:
        raise UsageError(
            f"by is {own[BY]!r}, and refined answers of simrank are computed for a decay alone: "
            "give one, or leave out what refines (--refine, --target-error)"
        )
    return own[DECAY]
