"""How exact so many samples are, before any is made.

For every graph, measure and pair, with N samples and but for a probability of ``failure``:

    error     |estimate - score| <= delta                    2 exp(-6/7 N delta**2)     Theorem 5
    order     two nodes whose scores differ by delta
              stand in their order                             exp(-0.3 N delta**2)     Theorem 6
    recall    a list of all who score above a threshold
              misses no more than this share of those who
              are delta above it, in expectation               exp(-6/7 N delta**2)     Theorem 7
    precision so does of such a list no more than this
              share stand delta below the threshold, in
              expectation                              r / (exp(6/7 N delta**2) - 1)    Theorem 7

with r how many nodes are delta below the threshold for one that is delta above it. At most that is
all others but those, divided by those; so precision, other than the rest, depends on how many the
list is to find, and grows with the graph: by its logarithm.

What stands on the right is at most ``failure``. These hold for values in [0, 1] that are drawn
independently, sample by sample, whatever depends on what within a sample; also for the mean of two
directions, which share the numbers of their samples and nothing else.

The standard error is that of one score s. A sample's value z lies in [0, R], R being the decay, or
the most that a meeting is worth (``measures/meeting.py``), so

    V = E z**2 - s**2 <= R * s - s**2,      stderr <= sqrt(V / N)

with equality if walks meet when that is worth R, or never. Four times the samples halve it.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cocite.errors import UsageError
from cocite.layouts.plan import PartPlan
from cocite.measures import BY, DECAY, SAMPLES, WholeSettings
from cocite.measures.meeting import worth_of
from cocite.measures.settings import MAX_SAMPLES

__all__ = [
    "PROMISES",
    "SCORES",
    "Promise",
    "checked_listed",
    "checked_samples",
    "checked_share",
    "expected_error",
    "promises",
    "samples_for",
    "standard_error",
    "standard_errors",
]

SCORES = (0.1, 0.3)
"""The scores whose standard errors plans tell."""


@dataclass(frozen=True)
class Promise:
    """A theorem: ``factor / (exp(rate * samples * delta**2) - less)`` bounds the failure; of
    precision the factor is r, which :func:`promises` knows.
    """

    theorem: int
    text: str
    rate: float
    factor: float
    less: float = 0

    def _exponent(self, failure: float) -> float:
        return math.log(self.factor / failure + self.less)

    def samples(self, delta: float, failure: float) -> int:
        """How many samples keep it, one at least; ``delta`` and ``failure`` in (0, 1)."""
        return max(1, math.ceil(self._exponent(failure) / (self.rate * delta * delta)))

    def delta(self, samples: int, failure: float) -> float:
        """The least delta that so many samples keep it for; 1 if none below."""
        return min(1.0, math.sqrt(self._exponent(failure) / (self.rate * samples)))


PROMISES = {
    "error": Promise(5, "a score is off by no more", 6 / 7, 2),
    "order": Promise(6, "two nodes so far apart keep their order", 0.3, 1),
    "recall": Promise(7, "nodes so far above a threshold are listed", 6 / 7, 1),
    "precision": Promise(7, "nodes listed are no further below a threshold", 6 / 7, 1, 1),
}
LISTED = 10
"""How many nodes a list is to find, unless one says."""


def checked_listed(listed: int | None, nodes: int) -> int:
    """How many nodes a list is to find, of a graph of so many; raises :class:`UsageError`."""
    if listed is None:
        return min(LISTED, max(1, nodes - 1))
    if type(listed) is not int or not 1 <= listed < nodes:
        raise UsageError(
            f"listed is {listed!r}; it is a whole number, 1 or more, and below the {nodes:,} nodes "
            "that there are"
        )
    return listed


def promises(nodes: int, listed: int) -> dict[str, Promise]:
    """All of them, for a graph of so many nodes and a list that is to find so many of them."""
    others = max(0, nodes - 1 - listed)
    return PROMISES | {"precision": replace(PROMISES["precision"], factor=others / listed)}


def checked_share(name: str, value: float) -> float:
    """``value`` if it lies between 0 and 1; raises :class:`UsageError`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise UsageError(f"{name} is {value!r}; it is a number between 0 and 1, both excluded")
    return float(value)


def samples_for(kept: Mapping[str, Promise], delta: float, failure: float) -> dict[str, int]:
    """How many samples each promise takes.

    Raises :class:`UsageError` for numbers that are not between 0 and 1.
    """
    checked_share("delta", delta)
    checked_share("failure", failure)
    return {name: promise.samples(delta, failure) for name, promise in kept.items()}


def checked_samples(needed: int, promise: Promise, delta: float, failure: float) -> int:
    """``needed`` if an index can have so many; raises :class:`UsageError` saying what it can."""
    if needed <= MAX_SAMPLES:
        return needed
    least = promise.delta(MAX_SAMPLES, failure)
    raise UsageError(
        f"delta is {delta:g}; with a failure of {failure:g} it takes {needed:,} samples, and an "
        f"index has {MAX_SAMPLES:,} at most, enough for {math.ceil(least * 1e4) / 1e4:g}. Choose a "
        "larger delta or failure, or one --promise (promise=) that takes fewer"
    )


def standard_error(score: float, most: float, samples: int) -> float:
    """The standard error of a score at most, where samples are ``most`` at most; 0 where no score
    of two nodes is so high.
    """
    return math.sqrt(max(0.0, most * score - score * score) / samples)


def standard_errors(
    parts: Iterable[PartPlan], asked: WholeSettings, samples: int | None
) -> dict[float, float]:
    """Those of :data:`SCORES`, by the largest value of the parts that sample; none if none does."""
    if samples is None:
        return {}
    most = max(_most(part, asked) for part in parts if SAMPLES in part.settings)
    return {score: standard_error(score, most, samples) for score in SCORES}


def _most(part: PartPlan, asked: WholeSettings) -> float:
    """The most that a sample of a part can be."""
    own = part.ask_settings(asked)
    return worth_of(own, part.settings).most if BY in own else own[DECAY]


def expected_error(errors: Mapping[float, float]) -> str:
    """The end of the line that says what an index takes: how exact it will be, if it samples."""
    if not errors:
        return ""
    error = errors[SCORES[0]]
    return f", a score of {SCORES[0]:g} with a standard error of {error:.2g} at most"
