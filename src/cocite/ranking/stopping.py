"""When to stop, as a value; and what came of it, as a value.

Rules are joined with ``|``: the first that holds stops the iteration. ``Residual`` is accuracy;
``Sweeps`` is patience, and stopping for it means *not converged*, which the result says;
``TopOrder`` is what a search engine needs, an order that no longer changes (Haveliwala, 5).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError

__all__ = ["Convergence", "Residual", "State", "StoppingRule", "Sweeps", "TopOrder"]


class State(NamedTuple):
    """What a rule may look at: sweeps made, a bound on the L1 residual, and the top order."""

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


class StoppingRule(ABC):
    """A rule; ``a | b`` stops when either does."""

    wants_order = 0
    """How many of the top nodes' order the rule looks at."""

    def begin(self) -> None:
        """Forget an earlier run: called before the first sweep."""
        return

    @abstractmethod
    def reached(self, state: State) -> str | None:
        """The reason to stop now, or None."""

    @property
    def accurate(self) -> bool:
        """Whether stopping for this rule means that the result is converged."""
        return True

    def __or__(self, other: StoppingRule) -> StoppingRule:
        return _Either(self, other)


@dataclass(frozen=True)
class Residual(StoppingRule):
    """Stop when the L1 residual is at most ``tolerance``: absolute, never times the nodes."""

    tolerance: float = 1e-8

    def __post_init__(self) -> None:
        if not (isinstance(self.tolerance, int | float) and 0 < self.tolerance < 1):
            raise UsageError(f"tolerance is {self.tolerance!r}; it is a number between 0 and 1")

    def reached(self, state: State) -> str | None:
        """Whether the bound on the residual is small enough."""
        return f"residual <= {self.tolerance:g}" if state.residual <= self.tolerance else None


@dataclass(frozen=True)
class Sweeps(StoppingRule):
    """Stop after ``count`` sweeps, converged or not."""

    count: int

    def __post_init__(self) -> None:
        if type(self.count) is not int or self.count < 1:
            raise UsageError(f"sweeps is {self.count!r}; it is a whole number, 1 or more")

    def reached(self, state: State) -> str | None:
        """Whether that many sweeps were made."""
        return f"{self.count} sweeps" if state.sweeps >= self.count else None

    @property
    def accurate(self) -> bool:
        """Patience is not accuracy."""
        return False


class TopOrder(StoppingRule):
    """Stop when the order of the top ``k`` nodes has not changed for ``sweeps`` sweeps."""

    def __init__(self, k: int, sweeps: int = 3) -> None:
        if k < 1 or sweeps < 1:
            raise UsageError(f"top order of {k} for {sweeps} sweeps; both are 1 or more")
        self.k, self.sweeps = k, sweeps
        self.wants_order = k
        self.begin()

    def __repr__(self) -> str:
        return f"TopOrder(k={self.k}, sweeps={self.sweeps})"

    def begin(self) -> None:
        """Forget the order seen last."""
        self._last: NDArray[np.int64] | None = None
        self._same = 0

    def reached(self, state: State) -> str | None:
        """Whether the order stood still for long enough."""
        assert state.order is not None
        order = state.order[: self.k]
        same = self._last is not None and np.array_equal(order, self._last)
        self._same = self._same + 1 if same else 0
        self._last = order
        if self._same < self.sweeps:
            return None
        return f"top {self.k} in the same order for {self.sweeps} sweeps"


class _Either(StoppingRule):
    def __init__(self, first: StoppingRule, second: StoppingRule) -> None:
        self._rules = (first, second)
        self._accurate = True
        self.wants_order = max(first.wants_order, second.wants_order)

    def __repr__(self) -> str:
        return " | ".join(map(repr, self._rules))

    def begin(self) -> None:
        for rule in self._rules:
            rule.begin()

    def reached(self, state: State) -> str | None:
        # Every rule is asked at every sweep: some keep count.
        reasons = [(rule, rule.reached(state)) for rule in self._rules]
        for rule, reason in reasons:
            if reason is not None:
                self._accurate = rule.accurate
                return reason
        return None

    @property
    def accurate(self) -> bool:
        return self._accurate
