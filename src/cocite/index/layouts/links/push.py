"""Personalized PageRank by forward push.

The push depends only on the query node and the settings, so pairs and lists have bit-identical
scores. The push runs in slices, so that interruptions and deadlines take effect. It reads the links
near the node, at about 3 ns per link (``kernels/push.py``). ppr-symmetric stops after reading
enough links, and divides by degrees. Intervals need the same push again, so each thread caches its
last push (12 bytes for each reached node). Source: Andersen, Chung, Lang 2006
(``measures/ppr.py``).
"""

from __future__ import annotations

import math
import threading
from abc import abstractmethod

import numpy as np

from cocite.constants import GRAINS, Floats, Ids
from cocite.deadline import check
from cocite.index.layouts.links.common import DEGREES, LinksReader
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import (
    Estimate,
    Graphs,
    Paths,
    QueryScratch,
    Reasons,
    apportioned,
    borrowed,
)
from cocite.kernels import push
from cocite.measures import PartSettings
from cocite.measures.ppr import DAMPING, FARTHER, MAX_EDGES, MIN_RESULTS, TOLERANCE

_SLICE = 20_000_000
"""Links to read between interruption checks, in about 60 ms."""
Reached = tuple[int, float]
"""(Number of nodes with scores, error bound) of a push."""


class Pushed(LinksReader):
    """Base of the readers that push; ``_finished`` converts the result of ``_pushed`` to scores."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        weights = np.empty(0, np.float32) if self.rows.weights is None else self.rows.weights
        self._links = self.rows.offsets, self.rows.neighbors, weights

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of ``second`` in the push from ``first``."""
        with borrowed(self.part.nodes) as scratch:
            count, _ = self._push(first, settings, scratch)
            grains = float(scratch.scores[second, 0])
            _clear(scratch, scratch.used[:count])
        return Estimate(grains, 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the nodes that pushed to ``second``, weighted by how much each of them pushed.

        The residual at ``second`` has no known origin, so the score is divided in proportion.
        """
        begin, end = self.columns.offsets[second : second + 2].tolist()
        before = self.columns.neighbors[begin:end]
        if begin > end or (before.size and int(before.max()) >= self.part.nodes):
            raise self._damaged()
        before, times = np.unique(before, return_counts=True)  # "any": mutual links are two
        degrees = self.rows.offsets[before + np.int64(1)] - self.rows.offsets[before]
        with borrowed(self.part.nodes) as scratch:
            state = self._pushed(first, settings, scratch)
            worths = times * scratch.scores[before, 0] / degrees
            count, _ = self._finished(scratch, state, settings)
            score = float(scratch.scores[second, 0]) / GRAINS
            _clear(scratch, scratch.used[:count])

        def path(node: int) -> Paths:
            return [first] * (node == first), [second, node]

        return apportioned(score, before, worths, path)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Push from ``node``; add the scores of all other nodes to the totals."""
        count, _ = self._push(node, settings, scratch)
        scratch.scores[node, 0] = 0.0
        self.settle_exact(scratch, count)

    def _push(self, node: int, settings: PartSettings, scratch: QueryScratch) -> Reached:
        """Write scores to ``scratch.scores[:, 0]``, for the nodes ``scratch.used[:count]``."""
        return self._finished(scratch, self._pushed(node, settings, scratch), settings)

    @abstractmethod
    def _pushed(self, node: int, settings: PartSettings, scratch: QueryScratch) -> Floats:
        """Push from ``node`` as far as the settings require, with estimates and residuals in the
        columns of ``scratch.scores``. Returns the state of ``kernels/push.py``.
        """

    @abstractmethod
    def _finished(self, scratch: QueryScratch, state: Floats, settings: PartSettings) -> Reached:
        """Convert estimates to grains."""

    def _begun(
        self,
        node: int,
        damping: float,
        tolerance: float,
        max_edges: int | None,
        scratch: QueryScratch,
    ) -> Floats:
        """Push until the error is within the tolerance or about ``max_edges`` links are read."""
        state = np.zeros(push.STATE)
        found = scratch.scores, scratch.used, state
        push.start(np.int64(node), damping, tolerance, *found)
        result, read = push.MORE, 0
        while result == push.MORE and (max_edges is None or read < max_edges):
            check()
            most = _SLICE if max_edges is None else min(_SLICE, max_edges - read)
            result = push.push(*self._links, most, *found)
            read += most
        self._check(result)
        return state

    def _check(self, result: int) -> None:
        if result == push.DAMAGED:
            raise self._damaged()


def _clear(scratch: QueryScratch, used: Ids) -> None:
    """Reset the values that a push has written."""
    scratch.scores[used] = 0.0
    scratch.wear += used.size


class PushReader(Pushed):
    """The ``links`` layout for ``ppr``."""

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return the tolerance, which bounds each node's error, without pushing."""
        slack = np.zeros((others.size, 2))
        slack[:, 1] = settings[TOLERANCE]
        return slack

    def _pushed(self, node: int, settings: PartSettings, scratch: QueryScratch) -> Floats:
        return self._begun(node, settings[DAMPING], settings[TOLERANCE], None, scratch)

    def _finished(self, scratch: QueryScratch, state: Floats, settings: PartSettings) -> Reached:
        bound = float(push.finish(scratch.scores, scratch.used, state))
        return int(state[push.REACHED]), bound


class _Latest(threading.local):
    """A thread's last push: node and settings (``asked``), and the result."""

    asked: tuple[object, ...] = ()
    used: Ids
    grains: Floats
    bound: float


def _chosen(settings: PartSettings) -> tuple[object, ...]:
    """Return the settings that a push depends on."""
    return settings[FARTHER], settings[MAX_EDGES], settings[MIN_RESULTS]


_EXACT = 1e-13
"""Total residual, a tenth of a grain, below which more pushes change nothing."""


class ProximityReader(Pushed):
    """The ``links`` layout for ``ppr-symmetric``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._degrees: Floats = part.array(DEGREES)
        self._latest = _Latest()

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself."""
        if first == second:
            return Estimate(float(GRAINS), 0.0)
        return super().pair(first, second, settings)

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return how much unread links may add: the push's error bound, with scores at most 1."""
        slack = np.zeros((others.size, 2))
        if self._degrees[node] == 0:
            return slack
        with borrowed(self.part.nodes) as scratch:
            values, latest = scratch.scores, self._latest
            if latest.asked == (node, *_chosen(settings)):
                used, bound = latest.used, latest.bound
                values[used, 0] = latest.grains
            else:
                count, bound = self._push(node, settings, scratch)
                used = scratch.used[:count]
            slack[:, 1] = np.minimum(
                bound * np.sqrt(self._degrees[others]), 1 - values[others, 0] / GRAINS
            )
            _clear(scratch, used)
        slack[others == node] = 0.0
        return slack

    def _push(self, node: int, settings: PartSettings, scratch: QueryScratch) -> Reached:
        count, bound = super()._push(node, settings, scratch)
        latest = self._latest
        latest.asked = ()  # invalid until complete
        latest.used = scratch.used[:count].copy()
        latest.grains, latest.bound = scratch.scores[latest.used, 0], bound
        latest.asked = (node, *_chosen(settings))
        return count, bound

    def _pushed(self, node: int, settings: PartSettings, scratch: QueryScratch) -> Floats:
        """Push until enough links are read, then until enough nodes are reached."""
        reach = np.int64(settings[MIN_RESULTS])
        state = self._begun(node, settings[FARTHER], _EXACT, settings[MAX_EDGES], scratch)
        found = scratch.scores, scratch.used, state
        self._check(push.spread(*self._links, reach, *found))
        return state

    def _finished(self, scratch: QueryScratch, state: Floats, settings: PartSettings) -> Reached:
        """Convert estimates to grains; return (count, error bound over sqrt(d))."""
        values, used, count = scratch.scores, scratch.used, int(state[push.REACHED])
        if self._degrees[used[0]] == 0:  # no links
            values[used[:count]] = 0.0
            return count, 0.0
        damping = settings[FARTHER]
        bound = float(push.finish_symmetric(damping, self._degrees, values, used, count))
        if not math.isfinite(bound):
            raise self.part.damaged_file(DEGREES)
        return count, bound
