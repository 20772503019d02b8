"""Progress on standard error: a bar with rate and time left, or now and then a line.

The library calls back and never prints; here the calls become something to look at. A terminal
gets bars; a log file gets a line at most every ten seconds.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

from cocite.cli.output import say

__all__ = ["Stages"]

_LOG_SECONDS = 10.0


class Stages:
    """``with Stages("bytes") as stages: ingest(..., progress=stages)``.

    Calls are ``stages(stage, done, total)``, total 0 where it is not known. ``unit`` is
    ``"bytes"`` or a word such as ``"samples"``.
    """

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._spoken = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bars = _bars(self._unit)
            self._bars.start()
        return self

    def __call__(self, stage: str, done: int, total: int) -> None:
        """One step of progress."""
        if self._bars is None:
            now = time.monotonic()
            if now - self._spoken >= _LOG_SECONDS:
                self._spoken = now
                say(f"{stage}: {done:,} of {total:,}" if total else stage)
            return
        if stage not in self._tasks:
            for task in self._tasks.values():
                self._bars.stop_task(task)
                known = self._bars.tasks[task].total
                self._bars.update(task, total=known or 1, completed=known or 1)
            if stage == "done":
                return
            self._tasks[stage] = self._bars.add_task(stage, total=total or None)
        self._bars.update(self._tasks[stage], completed=done, total=total or None)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()


def _bars(unit: str) -> Any:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        """Units a second."""

        def render(self, task: Any) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.1f} {unit}/s" if speed else "")

    counted: list[ProgressColumn] = (
        [DownloadColumn()] if unit == "bytes" else [MofNCompleteColumn(), Rate()]
    )
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        *counted,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
