"""How an iteration ends, as a value: bounds on the error in the largest entry.

G, one step of the plain iteration, shrinks differences by c in the max norm, because rows of Q sum
to at most 1. Hence for any X with fixed point S*

    |X - S*| <= |G(X) - X| / (1 - c)                                            (residual)
    |S_k - S*| <= c^(k+1)      for k steps from the identity                     (steps)

A relaxed, partly updated step changes each entry from x to x + omega (g - x), where g is G's value
at that moment. With d the largest change of a sweep, the entry is off by |1 - omega| d / omega just
after its update, and what is updated later moves G by at most c d: so at the end of a sweep, in
whatever order or blocks it went,

    |G(X) - X| <= (|1 - omega| / omega + c) d                                    (change)

which with omega = 1 is the plain iteration's c d. One sweep shrinks the error by |1 - omega| +
omega c or better, so it converges for every graph if omega < 2 / (1 + c); beyond that it may not.

Rounding: a computed g is within r = depth * unit of the exact one (``core.py``), which leaves
r / (1 - c) in the end. Pruning (``prune.py``): an entry set to 0 where G has g is off by |g| at
that moment. With p the largest |g| that a sweep dropped, and e_k = c e_(k-1) + p_k,

    |S - S*| <= (|1 - omega| / omega + c) d / (1 - c) + p / (1 - c)             (change, pruned)
    |S_k - S*| <= c^(k+1) + e_k                                                 (steps, pruned)

The bounds add up, and only their sum decides whether the accuracy asked for is reached.

Source: the second is Lizorkin et al. 2008; the others follow as said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cocite.adding import added
from cocite.errors import NotConverged

__all__ = ["Bounds", "ExactConvergence", "ExactSweep", "Progress", "iterate"]

Progress = Callable[[int, float], None]
"""Called after every sweep with (sweeps, bound on the error that iterating longer can remove)."""

_DIVERGED, _STANDSTILL = 1e6, 20


@dataclass(frozen=True)
class ExactConvergence:
    """How an iteration ended; all errors bound the largest entry of |S - S*|.

    ``change`` is the largest change of an entry in the last sweep. ``iteration_error`` would go
    with more sweeps, ``rounding_error`` with double precision, ``pruning_error`` with a smaller
    threshold; ``error_bound`` is their sum. ``converged`` says whether the sum is within the
    accuracy asked for; ``reason`` says what ended it.
    """

    sweeps: int
    change: float
    iteration_error: float
    rounding_error: float
    pruning_error: float
    reason: str
    converged: bool

    @property
    def error_bound(self) -> float:
        """The bound on the whole error."""
        return self.iteration_error + self.rounding_error + self.pruning_error


@dataclass(frozen=True)
class ExactSweep:
    """What one sweep reports: its largest change, and the size of the largest value it pruned."""

    change: float
    dropped: float = 0.0


@dataclass(frozen=True)
class Bounds:
    """The bounds that hold for one method; ``steps``: whether it is the plain iteration."""

    decay: float
    omega: float
    steps: bool
    rounding: float = 0.0

    def left(self, sweeps: int, made: ExactSweep, pruned: float) -> tuple[float, float, str]:
        """(error of iterating, of pruning, what bounds them) after ``sweeps`` sweeps.

        ``made`` is the last one; ``pruned`` is e_k.
        """
        factor = abs(1 - self.omega) / self.omega + self.decay
        change = made.change if math.isfinite(made.change) else math.inf
        by_change = factor * change / (1 - self.decay), made.dropped / (1 - self.decay)
        by_steps = self.decay ** (sweeps + 1), pruned
        if self.steps and added(by_steps) <= added(by_change):
            return *by_steps, f"{self.decay:g}^{sweeps + 1}"
        return *by_change, "the last change"

    def rounding_error(self) -> float:
        """What rounding leaves."""
        return self.rounding / (1 - self.decay)

    @staticmethod
    def rounding_of(
        depth: float, dtype: np.dtype[np.floating], decay: float, omega: float
    ) -> float:
        """r of one update: of the sums, and of mixing old and new."""
        unit = float(np.finfo(dtype).eps) / 2
        return unit * (decay * (depth + 2) + (0 if omega == 1 else 4 / omega))


def iterate(
    sweep: Callable[[], ExactSweep], bounds: Bounds, epsilon: float, limit: int, progress: Progress
) -> ExactConvergence:
    """Sweep until the bound is at most ``epsilon``, or ``limit`` sweeps were made, or more do not
    help: pruning alone exceeds ``epsilon``, or the change has not fallen for 20 sweeps.

    Raises :class:`NotConverged` where the change grows beyond all bounds, or where it stopped
    falling and an over-relaxed result may be off by 1 or more: scores are between 0 and 1.
    """
    rounding, summed = bounds.rounding_error(), 0.0
    least, least_at = math.inf, 0
    for sweeps in range(1, limit + 1):
        made = sweep()
        summed = bounds.decay * summed + made.dropped
        if made.change < least:
            least, least_at = made.change, sweeps
        left, pruned, how = bounds.left(sweeps, made, summed)
        progress(sweeps, left)
        stuck, last = sweeps - least_at == _STANDSTILL, sweeps == limit
        growing = bounds.omega > 1 and left >= 1 and sweeps > least_at
        if not made.change < _DIVERGED or ((stuck or last) and growing):
            raise NotConverged(
                f"diverges with omega {bounds.omega:g}: after {sweeps} sweeps scores change by up "
                f"to {made.change:.2g} a sweep, and no longer by less. Take --omega 1 "
                f"(gauss-seidel), or one below {2 / (1 + bounds.decay):.3g}, which always converges"
            )
        converged = left + rounding + pruned <= epsilon
        if converged:
            reason = f"error <= {epsilon:g} by {how}"
        elif left + rounding <= epsilon < rounding + pruned:
            reason = f"what pruning leaves out may come to more than {epsilon:g}"
        elif stuck:
            reason = f"the change has not fallen for {_STANDSTILL} sweeps"
        elif last:
            reason = f"{limit} sweeps"
        else:
            continue
        break
    return ExactConvergence(sweeps, made.change, left, rounding, pruned, reason, converged)
