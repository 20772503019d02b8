"""A row of the document: what is printed, what came of it here, whether it holds, how to repeat it.

What a row says is made of measurements alone (``results/reproduction.json``), so that no number is
written twice; what is printed stands as the papers have it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = [
    "Measured",
    "Paper",
    "Row",
    "between",
    "decided",
    "each",
    "grows",
    "picture",
    "unavailable",
]

Measured = Mapping[str, Any]
Told = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """``key`` such as 001.figure5, the ``figure``, what is ``printed``, the measurements that it
    ``needs``, and ``tell``, which makes two cells of them: ours, and whether it holds. ``command``
    is another one than this package's.
    """

    key: str
    figure: str
    printed: str
    needs: tuple[str, ...]
    tell: Callable[[Measured], Told]
    command: str = ""


@dataclass(frozen=True)
class Paper:
    """One of the five."""

    number: str
    title: str
    about: str
    rows: Sequence[Row]


def picture(key: str, figure: str, printed: str, where: str) -> Row:
    """A figure that explains something, and has nothing to be measured."""
    return Row(key, figure, printed, (), lambda _: (where, "nothing to reproduce"))


def unavailable(key: str, figure: str, printed: str, why: str) -> Row:
    """A figure that cannot be had."""
    return Row(key, figure, printed, (), lambda _: (why, "**not reproduced**"))


def between(interval: Sequence[float], digits: int = 3, sign: bool = False) -> str:
    """A figure and its 95 % interval."""
    value, low, high = (f"{x:{'+' if sign else ''}.{digits}f}" for x in interval)
    return f"{value} [{low}, {high}]".replace("-", "−")


def each(parts: Mapping[str, str]) -> str:
    """One line a graph."""
    return "<br>".join(f"{name}: {text}" for name, text in parts.items())


def decided(intervals: Mapping[str, Sequence[float]], rises: bool = True) -> str:
    """Where differences are above 0, or below it, as claimed, by their intervals."""
    sign = 1 if rises else -1
    right = [n for n, (_, low, high) in intervals.items() if min(sign * low, sign * high) > 0]
    wrong = [n for n, (_, low, high) in intervals.items() if max(sign * low, sign * high) < 0]
    open_ = [name for name in intervals if name not in (*right, *wrong)]
    said = [("yes", right), ("no, the reverse,", wrong), ("undecided", open_)]
    told = "; ".join(f"{word} on {', '.join(names)}" for word, names in said if names)
    whole = "**yes**" if not wrong + open_ else "**in part**" if right else "**no**"
    return f"{whole}: {told}"


def grows(holds: Mapping[str, bool]) -> str:
    """On which graphs it holds."""
    right = [name for name, fine in holds.items() if fine]
    wrong = [name for name, fine in holds.items() if not fine]
    if not wrong:
        return "**yes**"
    if not right:
        return "**no**"
    return f"**in part**: yes on {', '.join(right)}; no on {', '.join(wrong)}"
