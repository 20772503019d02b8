"""Asking lists of features: two of them merged, or one followed to all who share any of it.

    s(u, v) = sum over shared features, ascending, of min**2 / max, in float64, then in whole grains

and, if it is normalised, divided before that by the root of the product of what both score with
themselves.

Both questions add up the same numbers in the same order, so they agree to the bit. The scores are
exact for the features stored; ``certified`` says how far those may be from the definition's.

Cost: a pair reads two lists; relatives read, of every feature of the node, all who hold it.
Source: Lin, King, Lyu, *PageSim*, 4.2 (Definition 6) and 5.2.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.layouts.features.format import OWN
from cocite.layouts.reader import Estimate, Reader
from cocite.layouts.reasons import Graphs, Paths, Reasons, apportioned
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings
from cocite.measures.pagesim import NORMALISED

__all__ = ["FeatureReader"]

_ROUNDING = 2.0**-22
"""A term is off by three roundings to float32 at most, and then some for sums of float64."""


class FeatureReader(Reader):
    """The layout ``features``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._sound_sizes()

    @cached_property
    def _holders(self) -> tuple[NDArray[Any], ...]:
        return self._lists("holders")

    @cached_property
    def _features(self) -> tuple[NDArray[Any], ...]:
        return self._lists("features")

    def _lists(self, kind: str) -> tuple[NDArray[Any], ...]:
        return tuple(self.part.array(f"{kind}.{name}") for name in ("offsets", "nodes", "values"))

    def _sound_sizes(self) -> None:
        nodes = self.part.nodes
        for kind in ("holders", "features"):
            offsets, members, values = self._lists(kind)
            if offsets.shape != (nodes + 1,) or members.shape != values.shape:
                raise self.part.damaged_file(f"{kind}.offsets")
        for name in ("cut", *([OWN] if self._normalised else ())):
            if self.part.array(name).shape != (nodes,):
                raise self.part.damaged_file(name)

    @property
    def unit(self) -> bool:
        """Whether no score is above 1: normalised ones."""
        return self._normalised

    @property
    def _normalised(self) -> bool:
        return self.part.settings[NORMALISED]

    @cached_property
    def _own(self) -> NDArray[np.float64] | None:
        """What every node scores with itself, to normalise by."""
        return self.part.array(OWN) if self._normalised else None

    def _scale(self, first: int, second: int) -> float:
        """What the score of two nodes is divided by."""
        if self._own is None:
            return 1.0
        one, other = float(self._own[first]), float(self._own[second])
        if not (0 < one < np.inf and 0 < other < np.inf):
            raise self.part.damaged_file(OWN)
        return float(np.sqrt(one * other))

    def features(self, node: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """Whose scores ``node`` holds, ids ascending, and how much of each."""
        offsets, members, values = self._features
        begin, end = int(offsets[node]), int(offsets[node + 1])
        if not begin <= end <= members.size:
            raise self.part.damaged_file("features.offsets")
        return members[begin:end], values[begin:end]

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes; a node and itself score the sum of its features, or 1."""
        from cocite.kernels import features

        if first == second:
            score = features.total(self.features(first)[1])
        else:
            score = features.pair(*self.features(first), *self.features(second))
        return Estimate(float(np.rint(score / self._scale(first, second) * GRAINS)), 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The features that both hold. How one came is held only where it is the node's own."""
        (mine, values), (theirs, others) = self.features(first), self.features(second)
        common, here, there = np.intersect1d(mine, theirs, return_indices=True)
        pairs = np.sort(np.column_stack((values[here], others[there])).astype(np.float64), axis=1)
        with np.errstate(invalid="ignore"):  # both 0: values too small for float32
            terms = pairs[:, 0] ** 2 / pairs[:, 1]
        score = self.pair(first, second, settings).grains / GRAINS

        def path(node: int) -> Paths:
            return [first] * (node == first), [second] * (node == second)

        return apportioned(score, common, terms, path)

    def certified(
        self, node: int, others: NDArray[np.uint32], settings: PartSettings
    ) -> NDArray[np.float64]:
        """What the threshold cut, by the bounds of ``measures/pagesim.py``, nothing of it for the
        node itself below, as it never scores too high with itself; and the rounding of features.

        What a node scores with itself is too low by what it lost, if at all. So a normalised score
        is between the least and the most of the other, divided by what it may be at most and is.
        """
        cut = self.part.array("cut").astype(np.float64)
        lost = cut[node] + cut[others]
        slack = np.column_stack((lost, 2 * lost))
        slack[others == node] = 0.0, cut[node]
        scores = np.array([self.pair(node, v, settings).grains for v in others.tolist()]) / GRAINS
        if self._own is None:
            return np.asarray(slack + _ROUNDING * scores[:, None] + 1 / GRAINS)
        for i, (other, found) in enumerate(zip(others.tolist(), scores.tolist(), strict=True)):
            scale, rounding = self._scale(node, other), 2 * _ROUNDING * found + 1 / GRAINS
            most = np.sqrt((self._own[node] + cut[node]) * (self._own[other] + cut[other]))
            low = max(0.0, (found * scale - slack[i, 0]) / most - rounding)
            high = min(1.0, found + slack[i, 1] / scale + rounding)
            slack[i] = (0.0, 0.0) if other == node else (found - low, high - found)
        return slack

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Follow each feature, ascending, to all who hold it."""
        from cocite.kernels import features

        sums = scratch.sums.view(np.float64).reshape(-1)
        count = int(features.gather(*self.features(node), *self._holders, sums, scratch.used))
        if count == features.DAMAGED:
            raise self.part.damaged_file("holders.nodes")
        if self._own is not None:
            self._scale(node, node)  # is a number to divide by
            features.normalise(sums, self._own, scratch.used, np.int64(count), np.uint32(node))
        scratch.have = int(
            features.settle(
                sums,
                scratch.used,
                count,
                np.uint32(node),
                self.part.weight,
                scratch.totals,
                scratch.touched,
                scratch.have,
            )
        )
