"""Counts of faults and their outcomes; and the time budget for them.

A fault is *survived* if the final state is as without it; *reported* if the operation is refused
with a correct error and has no other effect; *lost* otherwise, with a description of the damage.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

_MOST = 20
_Item = TypeVar("_Item")


@dataclass
class Row:
    """Counts for one kind of fault and one target: faults ``injected``, ``survived`` and
    ``reported``, and descriptions of what was ``lost``; ``seen`` counts the final states.
    """

    injected: int = 0
    survived: int = 0
    reported: int = 0
    lost: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, fault: str, wrong: str, reported: bool = False) -> None:
        """Count a fault, with what is wrong after it, if anything; or as ``reported``."""
        self.injected += 1
        self.survived += not wrong and not reported
        self.reported += not wrong and reported
        if wrong:
            self.lost.append(f"{fault}: {wrong}")

    @classmethod
    def sum(cls, rows: Sequence[Row]) -> Self:
        """The sum of rows."""
        whole = cls()
        for row in rows:
            whole.injected += row.injected
            whole.survived += row.survived
            whole.reported += row.reported
            whole.lost += row.lost
            whole.seen += row.seen
        return whole

    def to_json(self) -> dict[str, Any]:
        """The counts for a report, with the first losses."""
        counted: dict[str, Any] = {"injected": self.injected, "survived": self.survived}
        counted |= {"reported": self.reported, "lost": len(self.lost)}
        counted["seen"] = dict(sorted(self.seen.items()))
        return counted | ({"first": self.lost[:_MOST]} if self.lost else {})


class Until:
    """A time budget in seconds, which starts now."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(self._end - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether no time is left."""
        return self.left == 0

    def parts(self, items: Sequence[_Item]) -> Iterator[tuple[_Item, Until]]:
        """Each item with an equal part of the time left when its turn comes: time that one does
        not use goes to the others.
        """
        for number, item in enumerate(items):
            yield item, Until(self.left / (len(items) - number))


def in_turns(works: Sequence[Iterator[object]], until: Until) -> None:
    """Run one step of each work in turn, until all end or the time is over: a slow work takes no
    steps from the others. Each runs at least one step.
    """
    left = [work for work in works if next(work, _END) is not _END]
    while left:
        for work in list(left):
            if until.over:
                return
            if next(work, _END) is _END:
                left.remove(work)


_END = object()


@dataclass(frozen=True)
class Given:
    """The parameters of a kind of fault: a ``folder`` for all kinds of a run, the ``share`` of its
    cases to run, the ``seed`` that draws them, and its time; ``only`` selects stores or operations
    by text in their names, and ``case`` hostile contents.
    """

    folder: Path
    until: Until
    share: float = 1.0
    seed: int = 1
    only: str = ""
    case: str = ""

    def count(self, total: int) -> int:
        """The share of a total, at least 1."""
        return max(1, round(self.share * total))

    def cases(self, total: int, *rows: Row) -> Iterator[int]:
        """Numbers of the share of a total of cases, until the time is over and each of ``rows`` has
        a case.
        """
        for number in range(self.count(total)):
            if self.until.over and all(row.injected for row in rows):
                return
            yield number

    def in_turns(
        self, names: Iterable[str], work: Callable[[str, Row], Iterator[object]]
    ) -> dict[str, Row]:
        """Run the work of each name that contains ``only``, in turns; return their rows."""
        rows = {name: Row() for name in names if self.only in name}
        in_turns([work(name, row) for name, row in rows.items()], self.until)
        return rows
