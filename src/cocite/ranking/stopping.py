"""Stopping rules of an iteration, and how it ended.

It stops when the residual is small enough; after a number of sweeps, as *not converged*; or when
the order of the top nodes no longer changes, which is enough for a search engine (Haveliwala,
*Efficient computation of PageRank*, 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.options.rank import RankOptions

_STABLE = 3
"""Sweeps without a change in the order of the top nodes that count as stable."""


class SweepState(NamedTuple):
    """Input of a rule: sweeps made, a bound on the L1 residual, and the order of the top nodes."""

    sweeps: int
    residual: float
    order: NDArray[np.int64] | None


@dataclass(frozen=True)
class Convergence:
    """How an iteration ended.

    ``residual`` is ||G x - x||_1 of the vector returned, computed anew; ``error_bound`` bounds
    ||x - x*||_1 and is residual / (1 - damping). ``reason`` names the rule that stopped it.
    """

    sweeps: int
    residual: float
    error_bound: float
    reason: str
    converged: bool


class StoppingRule:
    """Stop when the L1 residual is at most ``tolerance``: absolute, not multiplied by the number of
    nodes.

    Also stop after ``max_sweeps`` sweeps, as not converged; or, with ``top``, when the order of
    that many top nodes has not changed for three sweeps.
    """

    def __init__(self, tolerance: float, max_sweeps: int, top: int | None = None) -> None:
        self.tolerance, self.max_sweeps, self.top = tolerance, max_sweeps, top or 0
        self.begin()

    def begin(self) -> None:
        """Reset before the first sweep."""
        self.accurate = True
        """Whether the result has converged, where the rule stopped."""
        self._last: NDArray[np.int64] | None = None
        self._same = 0

    def reached(self, state: SweepState) -> str | None:
        """Return the reason to stop now, or None."""
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
        """Return whether the order has been stable for long enough; call it after every sweep."""
        assert order is not None
        same = self._last is not None and np.array_equal(order[: self.top], self._last)
        self._same = self._same + 1 if same else 0
        self._last = order[: self.top]
        return self._same >= _STABLE


def stopping_rule(options: RankOptions) -> StoppingRule:
    """Return the rule for these options."""
    return StoppingRule(options.tolerance, options.max_sweeps, options.until_top_stable)
