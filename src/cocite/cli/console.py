r"""Messages and progress on standard error.

Progress is shown as bars on a terminal. Elsewhere, a line is printed after ten seconds, then one
per minute.
``--log-json`` prints a JSON object per line:

    {"time": "2026-01-31T12:00:00.123+00:00", "level": "info", "message": "read links.tsv: ..."}
    {"time": ..., "level": "info", "message": "reading", "done": 4096, "total": 9000, "unit": ...}
    {"time": ..., "level": "error", "message": "links.tsv does not exist", "code": 1}

Names are untrusted, so characters that control a terminal or change the text direction are escaped,
such as ``\x1b`` and ``\u202e``.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from cocite.deadline import clock
from cocite.resources import format_size, format_time

_READ = "\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069\ufeff"
"""Characters to escape besides C0: DEL, C1, line separators, direction marks, and the BOM."""
_SIGNS = re.compile(f"[\x00-\x08\x0b-\x1f{_READ}]")
_IN_JSON = re.compile(f"[{_READ}]")
QUIET = ("-q", "--quiet")
LOG_JSON = "--log-json"
_KEYWORD = re.compile(r" \([a-z_]+=(?:\.\.\.|'[^']*'|[\w.]*)\)")
"""A Python parameter in a message, as in ``--output-format (kind=...)``."""


def printable(text: str) -> str:
    """Escape the control characters in ``text``, except tabs and line ends."""
    if text.isascii() and text.isprintable():
        return text

    def escape(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return _SIGNS.sub(escape, text)


def printable_json(text: str) -> str:
    """Return equivalent JSON, with terminal control characters escaped."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


@dataclass
class Console:
    """Output of messages: only warnings and errors if ``quiet``, and JSON if ``as_json``."""

    quiet: bool = False
    as_json: bool = False

    def choose(self, arguments: Sequence[str]) -> None:
        """Apply ``--quiet`` and ``--log-json`` early, so that errors in arguments obey them."""
        given = set(arguments[: arguments.index("--")] if "--" in arguments else arguments)
        self.quiet, self.as_json = not given.isdisjoint(QUIET), LOG_JSON in given

    @property
    def live(self) -> bool:
        """Return whether progress bars are shown."""
        return sys.stderr.isatty() and not self.quiet and not self.as_json

    def say(self, message: str, level: str = "info", **more: Any) -> None:
        """Print a message; ``more`` adds fields to its JSON."""
        if self.quiet and level == "info":
            return
        message = _KEYWORD.sub("", message)
        if self.as_json:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "level": level, "message": message, **more}
            text = printable_json(json.dumps(line, ensure_ascii=False))
        else:
            prefix = {"warning": "Warning: ", "error": "Error: "}.get(level, "")
            text = f"{prefix}{printable(message)}"
        print(text, file=sys.stderr, flush=True)

    def interrupted(self, notes: str = "") -> None:
        """Print that the command was interrupted, even if ``quiet``."""
        if self.as_json:
            self.say(f"interrupted{notes}", "error", code=130)
        else:
            print(f"interrupted{notes}", file=sys.stderr, flush=True)


CONSOLE = Console()


def say(message: str) -> None:
    """Print a note on standard error."""
    CONSOLE.say(message)


_FIRST_LINE, _LOG_SECONDS, _JSON_SECONDS = 10.0, 60.0, 1.0


class Stages:
    """Progress of a command, as bars, log lines or JSON: ``with Stages(units) as stages: ...``.

    Call ``stages(stage, done, total, remark="")``, with total 0 if unknown. ``units`` maps the
    first word of a stage to a unit; stages without a unit show no amount.
    """

    def __init__(self, units: dict[str, str]) -> None:
        self._units = units
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}
        self._began = time.monotonic()
        self._next_line = self._began + _FIRST_LINE
        self._stage: tuple[str, int, float] = ("", 0, 0.0)

    def __enter__(self) -> Self:
        if CONSOLE.live:
            self._bars = _bars()
            self._bars.start()
        elif CONSOLE.as_json:
            self._next_line = self._began
        return self

    def __call__(self, stage: str, done: int, total: int, remark: str = "") -> None:
        """Report progress."""
        unit = self._units.get(stage.split(" ", 1)[0], "")
        if self._bars is not None:
            if stage not in self._tasks:
                self._finish_others()
                self._tasks[stage] = self._bars.add_task(
                    stage, total=total or None, completed=done, unit=unit
                )
            text = f"{stage}, {remark}" if remark else stage
            self._bars.update(
                self._tasks[stage], completed=done, total=total or None, description=text
            )
            return
        now, begins = time.monotonic(), self._stage[0] != stage
        if begins:
            self._stage = stage, done, clock()
        if CONSOLE.as_json:  # a line when a stage begins, every second, and when it ends
            if begins or now >= self._next_line or (total and done >= total):
                self._next_line = now + _JSON_SECONDS
                more = {"remark": remark} if remark else {}
                CONSOLE.say(stage, done=int(done), total=int(total) or None, unit=unit, **more)
        elif now >= self._next_line:
            self._next_line = now + _LOG_SECONDS
            amount = f": {_amount(done, total, unit)}" if unit else ""
            parts = [f"{stage} ({format_time(now - self._began)}){amount}", remark]
            say(", ".join(part for part in (*parts, self._left(done, total)) if part))

    def _left(self, done: int, total: int) -> str:
        """Return the stage's remaining time in words, or "" if unknown."""
        _, before, began = self._stage
        if not total or done <= before:
            return ""
        return f"about {format_time((clock() - began) * (total - done) / (done - before))} left"

    def _finish_others(self) -> None:
        for task in self._bars.tasks:
            if not task.finished:
                whole = task.total or 1
                self._bars.update(task.id, total=whole, completed=whole)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self._bars is not None:
            if kind is None:
                self._finish_others()
            self._bars.stop()


def _amount(done: float, total: float | None, unit: str) -> str:
    """Format an amount: ``1.2 MB of 5 MB``, ``12 of 100 samples``."""
    if unit == "bytes":
        return format_size(done) + (f" of {format_size(total)}" if total else "")
    return f"{done:,.0f}" + (f" of {total:,.0f}" if total else "") + f" {unit}"


def _bars() -> Any:
    """Return progress bars with one line per stage at any terminal width."""
    from rich import progress
    from rich.console import Console as Screen
    from rich.table import Column
    from rich.text import Text

    class Amount(progress.ProgressColumn):
        """The amount done."""

        def render(self, task: Any) -> Text:
            unit = task.fields["unit"]
            return Text(_amount(task.completed, task.total, unit) if unit else "")

    class Rate(progress.ProgressColumn):
        """The rate."""

        def render(self, task: Any) -> Text:
            unit, speed = task.fields["unit"], task.finished_speed or task.speed
            return Text(f"{_amount(speed, None, unit)}/s" if unit and speed else "")

    class Left(progress.TimeRemainingColumn):
        """The remaining time."""

        def render(self, task: Any) -> Text:
            text = super().render(task)
            return text if task.finished else text + Text(" left", style=text.style)

    screen = Screen(stderr=True)

    def column() -> Column:
        return Column(no_wrap=True, overflow="ellipsis")

    columns: list[tuple[int, progress.ProgressColumn]] = [
        (0, progress.TextColumn("{task.description}", markup=False, table_column=column())),
        (76, progress.BarColumn(bar_width=12, table_column=column())),
        (0, Amount(table_column=column())),
        (100, Rate(table_column=column())),
        (60, progress.TimeElapsedColumn(table_column=column())),
        (0, Left(table_column=column())),
    ]
    shown = (each for least, each in columns if screen.width >= least)
    return progress.Progress(*shown, console=screen)
