"""Rows of ``docs/reproduction.md``: the published result, ours, the verdict, and the command.

Our results and verdicts are computed from ``results/reproduction.json``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.arithmetic import mean

Measured = Mapping[str, Any]
Told = tuple[str, str]


@dataclass(frozen=True)
class Row:
    """One row.

    ``key`` is the row's name, such as 001.figure5. ``printed`` is the published result. ``tell``
    formats our result and the verdict from the measurements that the row ``needs``. ``command``
    repeats a row without ``needs``.
    """

    key: str
    figure: str
    printed: str
    needs: tuple[str, ...]
    tell: Callable[[Measured], Told]
    command: str = ""


@dataclass(frozen=True)
class Paper:
    """One of the five papers, with its rows."""

    number: str
    authors: str
    title: str
    about: str
    rows: Sequence[Row]


def picture(key: str, figure: str, printed: str, where: str) -> Row:
    """Return the row of a figure that illustrates something and has no result."""
    return Row(key, figure, printed, (), lambda _: (where, "nothing to reproduce"))


def unavailable(key: str, figure: str, printed: str, why: str) -> Row:
    """Return the row of a result that cannot be reproduced."""
    return Row(key, figure, printed, (), lambda _: (why, "**not reproduced**"))


def over_seeds(values: Sequence[float], digits: int = 3) -> str:
    """Return the mean over seeds and the half-width of its 95% interval, as text."""
    value, _, high = mean(values)
    return f"{value:,.{digits}f} ± {high - value:,.{digits}f}".replace("-", "−")


def between(values: Sequence[float], digits: int = 3) -> str:
    """Return the mean difference over seeds and its 95% interval, as text."""
    value, low, high = (f"{x:+.{digits}f}" for x in mean(values))
    return f"{value} [{low}, {high}]".replace("-", "−")


def apart(left: Sequence[float], right: Sequence[float]) -> list[float]:
    """Return the differences ``left - right`` per seed."""
    return [a - b for a, b in zip(left, right, strict=True)]


def each(parts: Mapping[str, str]) -> str:
    """Join one line per graph."""
    return "<br>".join(f"{name}: {text}" for name, text in parts.items())


def decided(differences: Mapping[str, Sequence[float]]) -> str:
    """Return on which graphs the differences are above 0, by their intervals over seeds."""
    intervals = {name: mean(values) for name, values in differences.items()}
    right = [name for name, found in intervals.items() if found.low > 0]
    wrong = [name for name, found in intervals.items() if found.high < 0]
    open_ = [name for name in intervals if name not in (*right, *wrong)]
    verdicts = [("yes", right), ("reversed", wrong), ("undecided", open_)]
    summary = "; ".join(f"{word} on {', '.join(names)}" for word, names in verdicts if names)
    if right:
        return f"{'**in part**' if wrong + open_ else '**yes**'}: {summary}"
    return f"{'**no**' if wrong else '**undecided**'}: {summary}"


def grows(holds: Mapping[str, bool]) -> str:
    """Return on which graphs a claim holds."""
    right = [name for name, fine in holds.items() if fine]
    wrong = [name for name, fine in holds.items() if not fine]
    if not wrong:
        return "**yes**"
    if not right:
        return "**no**"
    return f"**in part**: yes on {', '.join(right)}; no on {', '.join(wrong)}"
