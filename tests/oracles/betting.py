"""Bets on the mean of bounded values, as ``kernels/totals.py`` describes them, in plain Python: one
value after another, and ends by 60 halvings.
"""

import math
from collections.abc import Callable, Sequence

Wealth = Callable[[Sequence[float], float], float]
AIM, CAP, START, STOP, SHARE = 3.0, 0.9, 3.4, 64.0, 0.6


def stakes(values: Sequence[float]) -> list[float]:
    """The stake on each value, before the cap."""
    count, total, spread = 4, 2.0, 1.0  # two zeros and two ones
    result = []
    for i, value in enumerate(values):
        result.append(math.sqrt(AIM / (spread / count * (len(values) - i))))
        count += 1
        total += value
        spread += (value - total / count) ** 2
    return result


def most_wealth(values: Sequence[float], mean: float) -> float:
    """The largest wealth so far of someone who bets that the mean is above ``mean``."""
    wealth = most = 1.0
    for value, stake in zip(values, stakes(values), strict=True):
        wealth *= 1 + min(stake, CAP / mean) * (value - mean)
        most = max(most, wealth)
    return most


def mixed_wealth(values: Sequence[float], mean: float) -> float:
    """The final wealth of equal stakes, averaged over a mixture of stakes."""
    stake, share, shares, wealth = START / math.sqrt(len(values)), 1.0, 0.0, 0.0
    while stake <= STOP:
        bet = min(stake, CAP / mean)
        wealth += share * math.prod(1 + bet * (value - mean) for value in values)
        shares += share
        stake, share = 2 * stake, SHARE * share
    return wealth / shares


def lower_end(values: Sequence[float], level: float, wealth: Wealth = most_wealth) -> float:
    """The largest mean, up to that of the values, whose wealth reaches ``level``; or 0."""
    low, high = 0.0, math.fsum(values) / len(values)
    for _ in range(60):
        middle = (low + high) / 2
        if middle > 0 and wealth(values, middle) >= level:
            low = middle
        else:
            high = middle
    return low


def interval(
    values: Sequence[float],
    most: Sequence[float],
    span: tuple[float, float, float],
    confidence: float,
    wealth: Wealth = most_wealth,
) -> tuple[float, float]:
    """Both ends, from values and the most that each may stand for; ``span`` is the least value,
    the least that one can stand for, and the most.
    """
    least, beyond, top = span
    level = 2 / (1 - confidence)
    low = lower_end([(v - least) / (top - least) for v in values], level, wealth)
    high = lower_end([(top - v) / (top - beyond) for v in most], level, wealth)
    return least + (top - least) * low, top - (top - beyond) * high
