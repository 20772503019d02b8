"""What tuning came to: all that was tried, what is best, and the file that says so."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocite.documents import Document, Rows
from cocite.evaluation import Interval
from cocite.evaluation.suite import Point, called
from cocite.index.settings_file import IndexSettings
from cocite.measures import Value
from cocite.store import check_file, disk, written_beside

__all__ = ["Tried", "Tuned", "decided"]


@dataclass(frozen=True)
class Tried:
    """A candidate: ``round`` is the last one that it came to, 1 to 3, ``figure`` what it has there
    on the pages that choose; ``behind`` how far it is behind the first in the last round, and
    ``judged`` its figure on the pages that had no say, both None if it was left out before.
    ``seconds`` its build took in that round, with so many ``samples``, and ``bytes`` are its size;
    ``question`` is seconds a question.
    """

    name: str
    measure: str
    direction: str
    settings: dict[str, Value]
    round: int
    figure: Interval
    behind: Interval | None
    judged: Interval | None
    samples: int | None
    seconds: float
    bytes: int
    question: float


_TITLES = (
    "name",
    "measure",
    "direction",
    "settings",
    "round",
    "figure",
    "low",
    "high",
    "judged",
    "judged_low",
    "judged_high",
    "samples",
    "build_seconds",
    "bytes",
    "question_seconds",
)


@dataclass(frozen=True)
class Tuned(Document):
    """What was tried on ``graph``, the best first, by ``by``; ``best`` is what was chosen and
    ``reason`` why; ``hidden`` how many links were hidden, None if ``labels`` decided. ``chosen_by``
    pages chose and ``judged_by`` others judge. ``settings`` are what an index takes:
    ``cocite.build(graph, output, settings=tuned.settings)``.
    """

    graph: str
    nodes: int
    links: int
    date: str
    by: str
    labels: str | None
    hidden: int | None
    chosen_by: int
    judged_by: int
    seed: int
    best: Tried
    reason: str
    settings: IndexSettings
    tried: Sequence[Tried]
    notes: Sequence[str] = field(default=())

    def facts(self) -> dict[str, Any]:
        """All of it, with the settings as a file has them."""
        return super().facts() | {"best": self.best.name}

    def rows(self) -> Rows:
        """A row a candidate."""
        rows = []
        for each in self.tried:
            judged = each.judged or (None, None, None)
            text = " ".join(f"{name}={value}" for name, value in each.settings.items())
            what = each.name, each.measure, each.direction, text, each.round
            cost = each.samples, each.seconds, each.bytes, each.question
            rows.append((*what, *each.figure, *judged, *cost))
        return Rows(_TITLES, rows)

    def text(self) -> str:
        """The file of settings, with what was found on top."""
        by = f"by the labels of {self.labels}" if self.labels else "without labels"
        remarks = [
            f"Chosen by cocite tune on {self.date}, {by}, for {self.graph}",
            f"({self.nodes:,} nodes, {self.links:,} links): {self.reason}.",
            f"{self.by} of {self.best.name} on {self.judged_by:,} pages that did not choose: "
            + _shown(self.best.judged or self.best.figure),
            "Others, by the pages that chose:",
        ]
        last = [each for each in self.tried if each.behind is not None]
        remarks += [f"  {_shown(each.figure)}  {each.name}" for each in last]
        return self.settings.text(remarks)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Write the file of settings; raises :class:`~cocite.errors.OutputExists`."""
        found = check_file(Path(path), overwrite)
        with written_beside(found) as file:
            disk.write(file, self.text().encode())
        return found


def _signed(found: Interval) -> str:
    return f"{found.value:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"


def _shown(found: Interval) -> str:
    return f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]"


def decided(
    first: Point,
    level: Sequence[Point],
    usual: Point | None,
    sizes: dict[Point, int],
    held: Mapping[Point, Interval],
) -> tuple[Point, str]:
    """What is chosen of those that are ``level`` with the ``first`` by the pages that choose, and
    why: ``usual`` is the default, ``sizes`` are those of indexes; ``held`` is how far each is ahead
    of the default by the pages that did not choose, where there are both. The default is left only
    for what is ahead of it by both.
    """
    if usual is not None and usual in level and len(level) > 1:
        ahead = "the best" if usual == first else f"not told apart from the best, {called(first)}"
        return usual, f"the default is {ahead}"
    least = min(level, key=lambda p: (sizes[p], p != first))
    if len(level) == 1:
        reason = "ahead of all others, by more than chance"
    elif least == first:
        reason = "the best, and the smallest of those that are not told apart from it"
    else:
        reason = f"the smallest of those not told apart from the best, {called(first)}"
    if usual is None or least == usual:
        return least, reason
    if least not in held:
        return usual, f"the default stays: no pages are left to judge {called(least)}"
    if not held[least].low > 0:
        return usual, (
            f"the default stays: by the pages that did not choose, {called(least)} is not told "
            f"apart from it ({_signed(held[least])} above it)"
        )
    return least, f"{reason}; {_signed(held[least])} above the default by other pages"
