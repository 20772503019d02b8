"""Stopping rules of iterations.

An iteration stops when the residual is small enough, when the order of the top nodes no longer
changes (Haveliwala, *Efficient computation of PageRank*, section 5), or after a maximum number of
sweeps, as not converged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.options.rank import RankOptions

_STABLE = 3
"""Sweeps without a change after which the order of the top nodes counts as stable."""


class SweepState(NamedTuple):
    """Completed sweeps, a bound on the L1 residual, and the ids of the top nodes in order."""

    sweeps: int
    residual: float
    order: NDArray[np.int64] | None


@dataclass(frozen=True)
class Convergence:
    """How an iteration ended.

    ``residual`` is ||G x - x||_1 of the returned vector, recomputed at the end. ``error_bound`` is
    residual / (1 - damping), a bound on ||x - x*||_1. ``reason`` is the condition that was met.
    """

    sweeps: int
    residual: float
    error_bound: float
    reason: str
    converged: bool


class StoppingRule:
    """Stops when the L1 residual is at most ``tolerance``, after ``max_sweeps`` sweeps, or, with
    ``top``, when the order of that many top nodes has not changed for three sweeps.

    ``tolerance`` is absolute, not per node. After ``max_sweeps``, the result counts as not
    converged.
    """

    def __init__(self, tolerance: float, max_sweeps: int, top: int | None = None) -> None:
        self.tolerance, self.max_sweeps, self.top = tolerance, max_sweeps, top or 0
        self.begin()

    def begin(self) -> None:
        """Reset before the first sweep."""
        self.accurate = True
        """False once ``max_sweeps`` ends the iteration."""
        self._last: NDArray[np.int64] | None = None
        self._same = 0

    def reached(self, state: SweepState) -> str | None:
        """Return the reason to stop, or None to continue."""
        same = self.top > 0 and self._in_same_order(state.order)
        if state.residual <= self.tolerance:
            return f"residual <= {self.tolerance:g}"
        if state.sweeps >= self.max_sweeps:
            self.accurate = False
            return f"{self.max_sweeps} sweeps"
        if same:
            return f"top {self.top} in the same order for {_STABLE} sweeps"
        return None

    def _in_same_order(self, order: NDArray[np.int64] | None) -> bool:
        """Return whether the order is stable. Must be called after every sweep."""
        assert order is not None
        same = self._last is not None and np.array_equal(order[: self.top], self._last)
        self._same = self._same + 1 if same else 0
        self._last = order[: self.top]
        return self._same >= _STABLE


def stopping_rule(options: RankOptions) -> StoppingRule:
    """Return the stopping rule that ``options`` describe."""
    return StoppingRule(options.tolerance, options.max_sweeps, options.until_top_stable)
