"""A row of the document: what is printed, what came of it here, whether it holds, how to repeat it.

What a row says is made of measurements alone (``results/reproduction.json``), so that no number is
written twice; what is printed stands as the papers have it.
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
    """``key`` such as 001.figure5, the ``figure``, what is ``printed``, the measurements that it
    ``needs``, and ``tell``, which makes two cells of them: ours, and whether it holds. ``command``
    measures a row that has no needs.
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


def over_seeds(values: Sequence[float], digits: int = 3) -> str:
    """The mean over seeds, and the half width of its 95 % interval."""
    value, _, high = mean(values)
    return f"{value:,.{digits}f} ± {high - value:,.{digits}f}".replace("-", "−")


def between(values: Sequence[float], digits: int = 3) -> str:
    """The mean of differences over seeds, and its 95 % interval."""
    value, low, high = (f"{x:+.{digits}f}" for x in mean(values))
    return f"{value} [{low}, {high}]".replace("-", "−")


def apart(left: Sequence[float], right: Sequence[float]) -> list[float]:
    """Left less right, seed by seed."""
    return [a - b for a, b in zip(left, right, strict=True)]


def each(parts: Mapping[str, str]) -> str:
    """One line a graph."""
    return "<br>".join(f"{name}: {text}" for name, text in parts.items())


def decided(differences: Mapping[str, Sequence[float]]) -> str:
    """Where differences are above 0, as claimed, by their intervals over seeds."""
    intervals = {name: mean(values) for name, values in differences.items()}
    right = [name for name, found in intervals.items() if found.low > 0]
    wrong = [name for name, found in intervals.items() if found.high < 0]
    open_ = [name for name in intervals if name not in (*right, *wrong)]
    said = [("yes", right), ("no, the reverse,", wrong), ("undecided", open_)]
    told = "; ".join(f"{word} on {', '.join(names)}" for word, names in said if names)
    if right:
        return f"{'**in part**' if wrong + open_ else '**yes**'}: {told}"
    return f"{'**no**' if wrong else '**undecided**'}: {told}"


def grows(holds: Mapping[str, bool]) -> str:
    """On which graphs it holds."""
    right = [name for name, fine in holds.items() if fine]
    wrong = [name for name, fine in holds.items() if not fine]
    if not wrong:
        return "**yes**"
    if not right:
        return "**no**"
    return f"**in part**: yes on {', '.join(right)}; no on {', '.join(wrong)}"
