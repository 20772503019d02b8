"""What came of faults, counted; and the time that there is for them.

A fault is *survived* if all is as if it had not been, in the end; *told* if what is asked is
refused with what is wrong, and nothing else comes of it; *lost* otherwise, with what is wrong.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

_MOST = 20
_Thing = TypeVar("_Thing")


@dataclass
class Row:
    """Of one kind of fault, and one thing that is done meanwhile: how many were ``injected``, how
    many it ``survived``, how many were ``told``, and what was ``lost``; ``seen`` is what was there
    afterwards.
    """

    injected: int = 0
    survived: int = 0
    told: int = 0
    lost: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    def add(self, fault: str, wrong: str, told: bool = False) -> None:
        """Count a fault, and what is wrong after it, if anything is; or that it was ``told``."""
        self.injected += 1
        self.survived += not wrong and not told
        self.told += not wrong and told
        if wrong:
            self.lost.append(f"{fault}: {wrong}")

    @classmethod
    def sum(cls, rows: Sequence[Row]) -> Self:
        """All of some in one."""
        whole = cls()
        for row in rows:
            whole.injected += row.injected
            whole.survived += row.survived
            whole.told += row.told
            whole.lost += row.lost
            whole.seen += row.seen
        return whole

    def to_json(self) -> dict[str, Any]:
        """As a report takes it; of many losses the first ones are told."""
        counted: dict[str, Any] = {"injected": self.injected, "survived": self.survived}
        counted |= {"told": self.told, "lost": len(self.lost)}
        counted["seen"] = dict(sorted(self.seen.items()))
        return counted | ({"first": self.lost[:_MOST]} if self.lost else {})


class Until:
    """So many seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that are left; 0 if none is."""
        return max(self._end - time.monotonic(), 0.0)

    @property
    def over(self) -> bool:
        """Whether there is none left."""
        return self.left == 0

    def parts(self, things: Sequence[_Thing]) -> Iterator[tuple[_Thing, Until]]:
        """Each of some things with its part of what is left when its turn comes: what one does not
        take the others have.
        """
        for number, thing in enumerate(things):
            yield thing, Until(self.left / (len(things) - number))


def in_turns(works: Sequence[Iterator[object]], until: Until) -> None:
    """A step of each in its turn, until all are at their end or the time is over: one that is slow,
    or that takes long to begin, takes nothing from the others. Each has one step at least.
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
    """What a kind of fault is given: a ``folder`` for all kinds of a run, the ``share`` of its
    cases that are wanted, the ``seed`` that draws them, and the time that it has; ``only`` stores
    or operations with these words in their names, and hostile contents with those of ``case``.
    """

    folder: Path
    until: Until
    share: float = 1.0
    seed: int = 1
    only: str = ""
    case: str = ""

    def count(self, most: int) -> int:
        """The wanted share of so many, one at least."""
        return max(1, round(self.share * most))

    def cases(self, most: int, *rows: Row) -> Iterator[int]:
        """Numbers of the wanted share of so many cases, until the time is over and each of ``rows``
        has one.
        """
        for number in range(self.count(most)):
            if self.until.over and all(row.injected for row in rows):
                return
            yield number

    def in_turns(
        self, names: Iterable[str], work: Callable[[str, Row], Iterator[object]]
    ) -> dict[str, Row]:
        """Do the work of each name with ``only`` in it, in turns; the row of each."""
        rows = {name: Row() for name in names if self.only in name}
        in_turns([work(name, row) for name, row in rows.items()], self.until)
        return rows
