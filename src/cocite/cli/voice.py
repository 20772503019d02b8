"""How things are said on standard error: lines for people, none but what is wrong (``--quiet``), or
a JSON object a line for programs (``--log-json``).

    {"time": "2026-01-31T12:00:00.123+00:00", "level": "info", "message": "read links.tsv: ..."}
    {"time": ..., "level": "info", "message": "reading", "done": 4096, "total": 9000, "unit": ...}
    {"time": ..., "level": "error", "message": "links.tsv does not exist", "code": 1}

Levels are ``info``, ``warning`` and ``error``, which has the exit code. Progress has ``done``,
``total`` (null where it is not known) and ``unit`` (empty where nothing is counted), and ``remark``
if there is one: a line at the beginning of a stage, one a second, and the last one. Python programs
get warnings and notes by ``logging``, from the logger ``cocite``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cocite.cli.shown import as_json, shown

__all__ = ["LOG_JSON", "QUIET", "VOICE", "Voice"]

QUIET = ("-q", "--quiet")
LOG_JSON = "--log-json"
_PYTHON = re.compile(r" \([a-z_]+=(?:\.\.\.|'[^']*'|[\w.]*)\)")
"""The keyword of an option, as in ``--kind (kind=)``."""


@dataclass
class Voice:
    """``quiet`` leaves out all but warnings and errors; ``as_json`` says everything as JSON."""

    quiet: bool = False
    as_json: bool = False

    def choose(self, arguments: Sequence[str]) -> None:
        """Go by a command line: what is wrong with it is said as it wants, too."""
        given = set(arguments[: arguments.index("--")] if "--" in arguments else arguments)
        self.quiet, self.as_json = not given.isdisjoint(QUIET), LOG_JSON in given

    @property
    def live(self) -> bool:
        """Whether there is a terminal to draw progress on."""
        return sys.stderr.isatty() and not self.quiet and not self.as_json

    def say(self, message: str, level: str = "info", **more: Any) -> None:
        """A line; ``more`` is for programs alone. What Python calls an option is left out."""
        message = _PYTHON.sub("", message)
        if self.quiet and level == "info":
            return
        if self.as_json:
            now = datetime.now(UTC).isoformat(timespec="milliseconds")
            line = {"time": now, "level": level, "message": message, **more}
            print(as_json(json.dumps(line, ensure_ascii=False)), file=sys.stderr, flush=True)
            return
        prefix = {"warning": "Warning: ", "error": "Error: "}.get(level, "")
        print(f"{prefix}{shown(message)}", file=sys.stderr, flush=True)

    def interrupted(self, notes: str = "") -> None:
        """Say that it was interrupted, and what is kept: neither an error nor left out."""
        if self.as_json:
            self.say(f"interrupted{notes}", "error", code=130)
        else:
            print(f"interrupted{notes}", file=sys.stderr, flush=True)


VOICE = Voice()
"""That of this process."""
