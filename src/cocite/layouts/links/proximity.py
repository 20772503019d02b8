"""Asking for proximity: a push that ends when it has read enough, degrees divided out.

The push is a function of the node and the settings alone, so a pair and a list find the same scores
to the bit. It goes in slices, so that an interruption is heard.

Cost: see ``measures/proximity.py``. Intervals are those of the push before, which each thread
keeps: 12 bytes a node that it reached. Without such a one they take a push.
Source: Andersen, Chung, Lang 2006 (``measures/proximity.py``, ``kernels/proximity.py``).
"""

from __future__ import annotations

import math
import threading

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.layouts.links.format import DEGREES
from cocite.layouts.links.push import Pushed
from cocite.layouts.reader import Estimate
from cocite.layouts.scratch import QueryScratch, borrowed
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings
from cocite.measures.proximity import EFFORT, FARTHER, REACH

__all__ = ["ProximityReader"]


class _Latest(threading.local):
    """The latest push of a thread: of which node, with which settings, and what it found."""

    asked: tuple[object, ...] = ()
    used: NDArray[np.uint32]
    grains: NDArray[np.float64]
    bound: float


def _chosen(settings: PartSettings) -> tuple[object, ...]:
    """What a push depends on beside its node."""
    return settings[FARTHER], settings[EFFORT], settings[REACH]


_EXACT = 1e-13
"""What is left to hand on by all nodes when nothing more is to be learned: a tenth of a grain."""


class ProximityReader(Pushed):
    """The layout ``links`` for ``proximity``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._degrees: NDArray[np.float64] = part.array(DEGREES)
        self._latest = _Latest()

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes; a node is wholly near to itself."""
        if first == second:
            return Estimate(float(GRAINS), 0.0)
        return super().pair(first, second, settings)

    def certified(
        self, node: int, others: NDArray[np.uint32], settings: PartSettings
    ) -> NDArray[np.float64]:
        """What was not read may add so much: as the push says, and the score is at most 1."""
        slack = np.zeros((others.size, 2))
        if self._degrees[node] == 0:
            return slack
        with borrowed(self.part.nodes) as scratch:
            values = scratch.sums.view(np.float64)
            latest = self._latest
            if latest.asked == (node, *_chosen(settings)):
                used, bound = latest.used, latest.bound
                values[used, 0] = latest.grains
            else:
                count, bound = self._push(node, settings, values, scratch)
                used = scratch.used[:count]
            slack[:, 1] = np.minimum(
                bound * np.sqrt(self._degrees[others]), 1 - values[others, 0] / GRAINS
            )
            values[used] = 0.0
            scratch.wear += used.size
        slack[others == node] = 0.0
        return slack

    def _push(
        self, node: int, settings: PartSettings, values: NDArray[np.float64], scratch: QueryScratch
    ) -> tuple[int, float]:
        count, bound = super()._push(node, settings, values, scratch)
        latest = self._latest
        latest.asked = ()  # until it is whole
        latest.used = scratch.used[:count].copy()
        latest.grains, latest.bound = values[latest.used, 0], bound
        latest.asked = (node, *_chosen(settings))
        return count, bound

    def _pushed(
        self, node: int, settings: PartSettings, values: NDArray[np.float64], scratch: QueryScratch
    ) -> NDArray[np.float64]:
        """Push until enough was read, then on until enough was reached."""
        from cocite.kernels import push

        links, used = self._links, scratch.used
        state = self._begun(node, settings[FARTHER], _EXACT, settings[EFFORT], values, scratch)
        reach = np.int64(settings[REACH])
        self._check(
            push.spread(links.offsets, links.neighbours, self._weights, reach, values, used, state)
        )
        return state

    def _finished(
        self,
        values: NDArray[np.float64],
        scratch: QueryScratch,
        state: NDArray[np.float64],
        settings: PartSettings,
    ) -> tuple[int, float]:
        """Turn estimates into grains; returns (count, the bound of the error over sqrt(d))."""
        from cocite.kernels import proximity, push

        used, count = scratch.used, int(state[push.REACHED])
        if self._degrees[used[0]] == 0:  # linked with nothing
            values[used[:count]] = 0.0
            return count, 0.0
        damping = settings[FARTHER]
        bound = float(proximity.finish(damping, self._degrees, values, used, count))
        if not math.isfinite(bound):
            raise self.part.damaged_file(DEGREES)
        return count, bound
