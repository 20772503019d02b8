"""The partial-sums iteration, as the baseline that the paper compares with.

    partial_u(b) = sum of s(a, b) over a in I(u)                   once for all v
    s(u, v)      = c / (|I(u)| |I(v)|) * sum of partial_u(b) over b in I(v)

on all pairs of all nodes, for the number of iterations that the accuracy asks for beforehand,
ceil(log_c epsilon) - 1. Its iterates are the plain iteration's; what is left out here on purpose
is all that ``core.py`` and ``products.py`` do: classes, symmetry, panels.

Cost: 2 n m additions a sweep. Memory: two n x n matrices of float64.
Source: Lizorkin et al. 2008, as Yu et al. 2011 describe it in 5.2 and 6.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs.stopping import ExactSweep
from cocite.allpairs.turned import LinkRows
from cocite.runner import Team

__all__ = ["PartialSums", "sweeps_for"]


def sweeps_for(epsilon: float, decay: float) -> int:
    """The least k with decay^(k + 1) <= epsilon."""
    return max(1, math.ceil(math.log(epsilon) / math.log(decay)) - 1)


class PartialSums:
    """Sweeps over the whole matrix; ``matrix`` float64[n, n] holds the scores."""

    def __init__(self, graph: LinkRows, decay: float, team: Team) -> None:
        self._offsets = graph.in_offsets.astype(np.int64)
        self._sources, self._decay, self._team = graph.in_sources, decay, team
        self.matrix: NDArray[np.float64] = np.eye(graph.nodes)
        self._next = np.empty_like(self.matrix)

    def __call__(self) -> ExactSweep:
        """One sweep."""
        from cocite.kernels import allpairs

        nodes, scores = self.matrix.shape[0], self.matrix

        def part(low: int, high: int) -> float:
            partial, links = np.empty(nodes), (self._offsets, self._sources)
            return float(
                allpairs.partial_sums(*links, scores, low, high, self._decay, partial, self._next)
            )

        change = max(self._team.split(part, nodes))
        self.matrix, self._next = self._next, self.matrix
        return ExactSweep(change)
