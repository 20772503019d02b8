r"""How things are said on standard error: lines for people, none but what is wrong (``--quiet``),
or a JSON object a line for programs (``--log-json``).

    {"time": "2026-01-31T12:00:00.123+00:00", "level": "info", "message": "read links.tsv: ..."}
    {"time": ..., "level": "info", "message": "reading", "done": 4096, "total": 9000, "unit": ...}
    {"time": ..., "level": "error", "message": "links.tsv does not exist", "code": 1}

Levels are ``info``, ``warning`` and ``error``, which has the exit code. Progress has ``done``,
``total`` (null where it is not known) and ``unit`` (empty where nothing is counted), and ``remark``
if there is one: a line at the beginning of a stage, one a second, and the last one. Python programs
get warnings and notes by ``logging``, from the logger ``cocite``.

What a terminal would read as more than text, written out: names come from others.

Control characters, among them those that begin a sequence of ANSI (ESC, and CSI in one byte), and
what turns the direction of writing round, so that a name looks like another one. ``\x1b`` and
``\u202e`` stand in their place: what is shown is what is there, and no more happens. In JSON such
an escape is the sign itself, so programs read what they did.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

_READ = "\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069\ufeff"
"""Beyond ASCII's own controls: DEL, C1; separators of lines; overrides of direction, isolates."""
_SIGNS = re.compile(f"[\x00-\x08\x0b-\x1f{_READ}]")
_IN_JSON = re.compile(f"[{_READ}]")


def shown(text: str) -> str:
    """``text`` for people, who see line ends and tabs as such and all else that is read written
    out.
    """
    if text.isascii() and text.isprintable():
        return text
    return _SIGNS.sub(_escape, text)


def as_json(text: str) -> str:
    """A document of JSON that says the same in signs that no terminal reads."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


# -- voice -------------------------------------------------------------------------------


QUIET = ("-q", "--quiet")
LOG_JSON = "--log-json"
_PYTHON = re.compile(r" \([a-z_]+=(?:\.\.\.|'[^']*'|[\w.]*)\)")
"""The keyword of an option, as in ``--output-format (kind=)``."""


@dataclass
class Console:
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


VOICE = Console()
"""That of this process."""
