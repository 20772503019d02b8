"""Progress on standard error: bars with rate and time left, or now and then a line.

The library calls back and never prints; here the calls become something to look at. A terminal
gets bars; a log file gets a line after ten seconds, and then one a minute: how long it has taken,
how much is done, and how long it will take if it goes on like that.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

from cocite.cli.messages import VOICE
from cocite.cli.output import say
from cocite.deadline import clock
from cocite.resources import format_size, format_time

_FIRST_LINE, _LOG_SECONDS, _JSON_SECONDS = 10.0, 60.0, 1.0


class Stages:
    """``with Stages({"reading": "bytes"}) as stages: ingest(..., progress=stages)``.

    Calls are ``stages(stage, done, total)``, total 0 where it is not known; a fourth argument is a
    remark that stands behind the stage. ``units`` says, for the
    first word of a stage, what is counted; a stage that is not in it just runs.
    """

    def __init__(self, units: dict[str, str]) -> None:
        self._units = units
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._reported, self._spoken = "", 0.0
        self._began = time.monotonic()
        self._next_line = self._began + _FIRST_LINE
        self._stage: tuple[str, int, float] = ("", 0, 0.0)

    def __enter__(self) -> Self:
        if VOICE.live:
            self._bars = _bars()
            self._bars.start()
        return self

    def __call__(self, stage: str, done: int, total: int, remark: str = "") -> None:
        """One step of progress."""
        unit = self._units.get(stage.split(" ", 1)[0], "")
        if VOICE.as_json:
            self._report(stage, done, total, unit, remark)
            return
        if self._bars is None:
            self._speak(stage, done, total, unit, remark)
            return
        if stage not in self._tasks:
            self._finish_others()
            self._tasks[stage] = self._bars.add_task(
                stage, total=total or None, completed=done, unit=unit
            )
        shown = f"{stage}, {remark}" if remark else stage
        task = self._tasks[stage]
        self._bars.update(task, completed=done, total=total or None, description=shown)

    def _report(self, stage: str, done: int, total: int, unit: str, remark: str) -> None:
        """For programs: a line where a stage begins, one a second, and where it ends."""
        now, begins = time.monotonic(), stage != self._reported
        if begins or now - self._spoken >= _JSON_SECONDS or (total and done >= total):
            self._spoken, self._reported = now, stage
            more = {"remark": remark} if remark else {}
            VOICE.say(stage, done=int(done), total=int(total) or None, unit=unit, **more)

    def _speak(self, stage: str, done: int, total: int, unit: str, remark: str) -> None:
        now = time.monotonic()
        if self._stage[0] != stage:
            self._stage = stage, done, clock()
        if now >= self._next_line:
            self._next_line = now + _LOG_SECONDS
            amount = f": {_amount(done, total, unit)}" if unit else ""
            left = self._left(done, total)
            parts = [f"{stage} ({format_time(now - self._began)}){amount}", remark, left]
            say(", ".join(part for part in parts if part))

    def _left(self, done: int, total: int) -> str:
        """How long the stage will take yet, in words."""
        _, before, began = self._stage
        if not total or done <= before:
            return ""
        return f"about {format_time((clock() - began) * (total - done) / (done - before))} left"

    def _finish_others(self) -> None:
        """What was running is complete once the next stage begins."""
        for task in self._bars.tasks:
            if not task.finished:
                whole = task.total or 1
                self._bars.update(task.id, total=whole, completed=whole)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            if kind is None:
                self._finish_others()
            self._bars.stop()


def _amount(done: float, total: float | None, unit: str) -> str:
    """``1.2 MB of 5 MB`` or ``12 of 100 samples``; the total left out if it is not known."""
    if unit == "bytes":
        return format_size(done) + (f" of {format_size(total)}" if total else "")
    return f"{done:,.0f}" + (f" of {total:,.0f}" if total else "") + f" {unit}"


def _bars() -> Any:
    """One line a stage at any width: where there is no room, rate, bar and clock give way."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column
    from rich.text import Text

    class Amount(ProgressColumn):
        """How much of how much."""

        def render(self, task: Any) -> Text:
            unit = task.fields["unit"]
            return Text(_amount(task.completed, task.total, unit) if unit else "")

    class Rate(ProgressColumn):
        """How fast."""

        def render(self, task: Any) -> Text:
            unit, speed = task.fields["unit"], task.finished_speed or task.speed
            return Text(f"{_amount(speed, None, unit)}/s" if unit and speed else "")

    class Left(TimeRemainingColumn):
        """How long it will take."""

        def render(self, task: Any) -> Text:
            text = super().render(task)
            return text if task.finished else text + Text(" left", style=text.style)

    console = Console(stderr=True)

    def column() -> Column:
        return Column(no_wrap=True, overflow="ellipsis")

    columns: list[ProgressColumn] = [
        TextColumn("{task.description}", markup=False, table_column=column())
    ]
    if console.width >= 76:
        columns.append(BarColumn(bar_width=12, table_column=column()))
    columns.append(Amount(table_column=column()))
    if console.width >= 100:
        columns.append(Rate(table_column=column()))
    if console.width >= 60:
        columns.append(TimeElapsedColumn(table_column=column()))
    columns.append(Left(table_column=column()))
    return Progress(*columns, console=console)
