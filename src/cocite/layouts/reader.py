"""What a layout must be able to do: score a pair, and score everything against one node.

An index is a sum of *parts*, each a measure in one direction with a weight; a reader answers for
one part. The two questions must agree to the bit: ``related`` is ``similarity`` with every node,
sorted. So scores are whole grains (``kernels/totals.py``), and both add up in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.codes import ONE
from cocite.layouts.reasons import Graphs, Reasons
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings

__all__ = [
    "Estimate",
    "Ids",
    "Listed",
    "PairsTold",
    "Reader",
    "SampledReader",
    "Span",
    "SummingReader",
    "weights_of",
]

Ids = NDArray[np.uint32]
Values = tuple[NDArray[np.float64], NDArray[np.float64]]


class Estimate(NamedTuple):
    """A score in grains and the variance of its estimate: 0 if exact, nan if not known."""

    grains: float
    variance: float


class Span(NamedTuple):
    """What values can be: the least of a sample, the least that it can stand for, the most."""

    least: float
    beyond: float
    most: float

    def plus(self, other: Span, weight: float) -> Span:
        """That of the values plus ``weight`` times some others."""
        return Span(*(a + weight * b for a, b in zip(self, other, strict=True)))

    @property
    def width(self) -> float:
        """R."""
        return self.most - self.least


class Listed(NamedTuple):
    """Hits as they are told: uint32[h], float64[h, 4] (score, standard error, ends of the
    interval), and how many of the first stand in their order for certain.
    """

    ids: Ids
    rows: NDArray[np.float64]
    certain: int


class PairsTold(NamedTuple):
    """What a part says of many pairs of different nodes: ``estimates`` float64[pairs, 2], grains
    and variances; ``values(some)``, of a slice of them, as :meth:`SampledReader.values` has them.
    """

    estimates: NDArray[np.float64]
    values: Callable[[slice], Values]


class Reader(ABC):
    """Answers for one part of an index. Safe to share between threads."""

    signed = False
    """Whether scores may be below 0, so that those of several parts may add up to it."""

    def __init__(self, part: StoredPart) -> None:
        self.part = part

    @property
    def unit(self) -> bool:
        """Whether no score is above 1."""
        return self.part.measure.unit

    @abstractmethod
    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes, which may be the same one."""

    @property
    def pairs_from(self) -> int | None:
        """How many pairs :meth:`pairs` is quicker for than one after another; None if it answers
        for none.
        """
        return None

    def pairs(self, first: Ids, second: Ids, settings: PartSettings) -> PairsTold:
        """Many pairs of different nodes at once, as :meth:`pair` says of each, to the bit."""
        raise NotImplementedError

    @abstractmethod
    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the scores of all nodes but ``node``, times the part's weight, to the totals."""

    def at_once(
        self, node: int, k: int, floor: float, bets: tuple[float, float], settings: PartSettings
    ) -> Listed | None:
        """The best ``k`` of ``node``, of at least ``floor`` grains, with intervals by betting, if
        the part is all that answers and can tell it in one go: what all its methods together tell,
        to the bit. ``bets`` are the wealth that gives up a mean, and what sums may be off by.
        """
        return None

    def variances(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        """float64[h]: what ``gather`` left out of the variances of the best hits.

        For readers that learn a variance from more than they need for a score. By default nothing.
        """
        return np.zeros(others.size)

    @abstractmethod
    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The pages that make up the score of two different nodes; their shares add up to it.

        ``graphs`` is asked for those that samples were drawn from where the part itself does not
        hold enough.
        """

    def certified(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        """float64[h, 2]: how far the true scores may be below and above what is computed.

        For what is certain; the uncertainty of samples is another matter. By default nothing.
        """
        return np.zeros((others.size, 2))


class SampledReader(Reader):
    """A part whose scores are means over samples."""

    def known(self, first: int, second: int) -> int:
        """How many samples, the newest ones, know both nodes."""
        return int(self.part.freshness.knowing(first, np.array([second]))[0])

    @abstractmethod
    def values(
        self, node: int, others: Ids, settings: PartSettings
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """float64[samples, h] twice: the value of each sample for ``node`` and others, none of them
        itself, and the most that it may stand for, where a sample does not go to its end. What the
        samples say that do not know both nodes means nothing.
        """

    @abstractmethod
    def span(self, settings: PartSettings) -> Span:
        """What the values of two different nodes can be."""


class SummingReader(SampledReader):
    """A part whose samples are added up as fixed-point sums, for each node that has any."""

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Gather the sums, then settle them, each over the samples that know both nodes."""
        used = scratch.used[: self.gather_sums(node, settings, scratch)]
        freshness = self.part.freshness
        if freshness.since is None:
            self._settle(node, scratch, used, self.part.samples)
            return
        known = freshness.knowing(node, used)
        for samples in np.unique(known).tolist():
            self._settle(node, scratch, used[known == samples], samples)

    def _settle(self, node: int, scratch: QueryScratch, used: Ids, samples: int) -> None:
        """Turn the sums of ``used`` with ``node``, over so many samples, into totals."""
        from cocite.kernels import totals

        scratch.have = int(
            totals.settle(
                scratch.sums,
                used,
                used.size,
                float(samples),
                self.part.weight,
                scratch.totals,
                scratch.touched,
                scratch.have,
            )
        )

    @abstractmethod
    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Fill ``scratch.sums`` and ``scratch.used``; returns how many nodes have a sum."""

    def estimated(self, values: NDArray[np.uint64], samples: int) -> Estimate:
        """From uint64[2]: a sum of fixed-point values, and of their squares, over ``samples``."""
        from cocite.kernels import totals

        grains, variance = totals.estimate(values[0], values[1], float(samples))
        return Estimate(float(grains), float(variance))


@lru_cache(maxsize=64)
def weights_of(values: tuple[float, ...]) -> NDArray[np.uint64]:
    """uint64[16, 2]: what meetings after 0..15 steps are worth and its square, fixed-point.

    Their rounding is below 2**-49. None is 0: a sum of 0 tells a kernel that a node was not met.
    """
    table = np.array([[max(1, round(w * ONE)), round(w * w * ONE)] for w in values], np.uint64)
    table.flags.writeable = False
    return table
