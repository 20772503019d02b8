"""Refined answers for XJaccard: the index's best, compared by their neighbourhoods themselves.

    J_k(u, v) = |I_k(u) & I_k(v)| / |I_k(u) | I_k(v)|,      k = 1, ..., length

A search backwards from the node and one from each candidate count the coefficients exactly
(``kernels/reach.py``): no samples are left in a score. Candidates come in the order of the index;
where the links to be read are more than allowed, those left keep what the index says of them, with
its interval. Parts of an index that are not sampled add what they always do.

Convention: what is not among the index's best max(100, 4 k) is no candidate, and no hit. All
intervals that are not exact hold together.
Cost: the links of the neighbourhoods, some 2 ns each.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.3 (``measures/xjaccard.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.deadline import check
from cocite.index import StoredIndex
from cocite.layouts.reader import Reader
from cocite.layouts.rings.matches import MatchReader
from cocite.means import Means
from cocite.measures import WholeSettings
from cocite.measures.xjaccard import ring_weights
from cocite.query.confidence import Draws, around
from cocite.query.refine.candidates import CandidateRefiner, Top, shared_confidence
from cocite.query.refine.refiner import Level, Refined
from cocite.query.scores import scores_of
from cocite.query.source import Given

__all__ = ["NeighbourhoodRefiner"]

MOST_LINKS = 100_000_000
"""Links that a question may read: some 0.2 s of work."""
_ROUNDING = 1e-11


class NeighbourhoodRefiner(CandidateRefiner):
    """Of indexes with parts of XJaccard."""

    kind = MatchReader

    def __init__(
        self,
        stored: StoredIndex,
        graph: Given,
        means: Means,
        readers: Sequence[Reader],
        top: Top,
    ) -> None:
        """As for every refiner of candidates."""
        super().__init__(stored, graph, means, readers, top)
        self._matching = [reader for reader in readers if isinstance(reader, MatchReader)]

    def _settled(
        self,
        node: int,
        ids: NDArray[np.uint32],
        k: int | None,
        settings: WholeSettings,
        level: Level,
    ) -> Refined:
        """All candidates: exactly as far as the links allow."""
        grains = self._exact(node, ids, settings)
        variances, spread = np.zeros(ids.size), np.zeros((2, 2, ids.size))
        tests = self._stored.nodes * len(self._matching)
        levels = (level.confidence,) if level.above is None else (level.confidence, level.above)
        confidences = [shared_confidence(each, tests) for each in levels]
        for reader in self._matching:
            own, weight = reader.part.ask_settings(settings), reader.part.weight
            me, *others = self._stored.in_graph(np.append(np.uint32(node), ids)).tolist()
            found = self._coefficients(reader, me, others, most=MOST_LINKS // len(self._matching))
            scores = found @ np.array(ring_weights(own, reader.length))
            grains[:, 0] += weight * np.rint(np.nan_to_num(scores) * GRAINS)
            left = np.flatnonzero(np.isnan(scores))
            for row in left.tolist():
                check()
                estimate = reader.pair(node, int(ids[row]), own)
                grains[row, 0] += weight * estimate.grains
                variances[row] += weight**2 * estimate.variance
            if left.size:
                freshness = reader.part.freshness
                values = reader.values(node, ids[left], own)
                known = freshness.knowing(node, ids[left])
                draws = Draws(*values, reader.span(own), known, freshness.alike)
                for at, confidence in enumerate(confidences):
                    spread[at][:, left] += weight * np.array(around(draws, confidence)[1:])
        sums = np.column_stack((np.rint(grains[:, 0]), variances))
        scores, errors = map(np.array, scores_of(sums))
        low = scores - spread[:, 0] - grains[:, 1] - _ROUNDING
        low = np.clip(low, 0.0, np.maximum(scores, 0.0))
        high = scores + spread[0, 1] + grains[:, 2] + _ROUNDING
        return Refined(ids, scores, errors, low[0], high, low[len(levels) - 1])

    def _coefficients(
        self, reader: MatchReader, node: int, ids: list[int], most: int
    ) -> NDArray[np.float64]:
        """float64[h, length]: the coefficients with each candidate, by ids in the graph; nan where
        links ran out.
        """
        from cocite.kernels.reach import TOO_MANY, reach

        links, _ = self.ends(reader.part.direction)
        offsets, neighbours = links.offsets, links.neighbours
        mine, theirs = (np.zeros(links.nodes, np.uint8) for _ in range(2))
        scratch = np.empty(links.nodes, np.uint32)
        own, other = (np.zeros((reader.length, 2), np.int64) for _ in range(2))
        found = np.full((len(ids), reader.length), np.nan)
        nobody = np.empty(0, np.uint8)
        left = most - reach(
            offsets, neighbours, np.int64(node), nobody, mine, scratch, np.int64(most), own
        )
        if left > most:
            return found
        for row, candidate in enumerate(ids):
            check()
            read = reach(
                offsets,
                neighbours,
                np.int64(candidate),
                mine,
                theirs,
                scratch,
                np.int64(left),
                other,
            )
            if read == TOO_MANY:
                break
            left -= read
            common = other[:, 1]
            found[row] = common / (own[:, 0] + other[:, 0] - common)
        return found
