"""The system of PageRank on weighted links: a node's rank is shared in proportion to the weights.

    share of u's rank to v = w(u, v) / W[u],    W[u] = sum of w over u's out-links

``system.py`` is the same for all w = 1, and all that it does is done here, with the sums of weights
(*strengths*) where it has counts of links. A node is dangling if it has no out-links at all:
weights are positive. Of a node's links to nodes that were removed neither weight nor count is left.

Memory, beside what ``system.py`` takes: 8 bytes a link, as the weights are there twice as well, and
15 a node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.ranking.system import System, Vector
from cocite.store import forget

__all__ = ["WeightedSystem"]


class WeightedSystem(System):
    """A :class:`System` of a graph whose links have weights."""

    weighted = True

    @property
    def _in_weights(self) -> NDArray[np.float32]:
        assert self._graph.in_weights is not None
        return self._graph.in_weights

    def _number_core(self) -> None:
        from cocite.kernels import weighted_rank

        super()._number_core()
        graph = self._graph
        self.strengths = self.kept(self._weights_to(~self.gone()))
        self.weights = self.scratch.zeros(graph.edges, np.float32)
        self.loops = np.empty(self.core, np.float32)
        state = np.zeros(2, np.uint64)
        for _, offsets, first in self._blocks():
            weighted_rank.compact_weights(
                offsets,
                graph.in_sources,
                self._in_weights,
                self.number,
                first,
                state,
                self.weights,
                self.loops,
            )

    def _weights_to(self, taken: NDArray[np.bool_]) -> Vector:
        """The weights of each node's links to the nodes that are ``taken``."""
        from cocite.kernels import weighted_rank

        found = np.zeros(self._graph.nodes)
        for nodes, offsets, _ in self._blocks():
            weighted_rank.add_weights(
                offsets,
                self._graph.in_sources,
                self._in_weights,
                taken[nodes].view(np.uint8),
                found,
            )
        return found

    def _leaving(self) -> Vector:
        return self._weights_to(self.degrees == 0)

    def _sweep(self, low: int, high: int, z: NDArray[Any], sums: Vector) -> None:
        from cocite.kernels import weighted_rank

        weighted_rank.sweep_weighted(
            self.rows[low : high + 1],
            self.links,
            self.weights,
            z,
            self.facts[low:high],
            np.uint64(low),
            self._damping,
            sums,
        )

    def _expand(
        self, nodes: slice, offsets: NDArray[np.uint64], z: NDArray[Any], y: Vector
    ) -> None:
        from cocite.kernels import weighted_rank

        degrees = self.degrees[nodes]
        weighted_rank.restore(self.number[nodes], z, self.strengths[nodes], degrees, y)
        weighted_rank.collect_weighted(
            offsets,
            self._graph.in_sources,
            self._in_weights,
            self.number,
            z,
            degrees,
            self._damping,
            y,
        )

    def _add_residual(
        self, nodes: slice, offsets: NDArray[np.uint64], z: Vector, rest: Vector, sums: Vector
    ) -> None:
        from cocite.kernels import weighted_rank

        weighted_rank.residual_weighted(
            offsets,
            self._graph.in_sources,
            self._in_weights,
            self.number,
            z,
            self.degrees[nodes],
            rest,
            sums,
        )

    def rest(self) -> None:
        """Give back all that can be read again."""
        super().rest()
        if self.scratch.on_disk:
            forget(self._in_weights)
