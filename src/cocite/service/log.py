"""What a server says of itself, a line each on standard error: of requests, reloads, faults.

Lines for people, or one JSON object a line (``--log-json``). Names and addresses come from outside:
whatever in them could end a line, colour a terminal or turn the reading direction is written as an
escape, so that no line can be forged.

Lines are collected and written a few times a second by a thread of their own: a request does not
wait for a disk.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from datetime import UTC, datetime
from typing import Any

__all__ = ["Log", "one_line"]

_EVERY = 0.2


def one_line(text: str) -> str:
    """``text`` with everything escaped that is not to be printed as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


class Log:
    """The log of a process. ``requests`` says whether every request has a line."""

    def __init__(self, *, as_json: bool, quiet: bool, requests: bool) -> None:
        self.as_json, self.quiet, self.requests = as_json, quiet, requests and not quiet
        self._lines: list[str] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        threading.Thread(target=self._run, name="log", daemon=True).start()
        atexit.register(self.flush)

    def say(self, message: str, level: str = "info", **more: Any) -> None:
        """A line; ``more`` are its facts."""
        if self.quiet and level == "info":
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self.as_json:
            facts = {"time": now, "level": level, "message": message, **more}
            line = json.dumps(facts)
        else:
            told = " ".join(f"{name}={value}" for name, value in more.items())
            line = one_line(" ".join(filter(None, (now, level, message, told))))
        with self._lock:
            self._lines.append(line)
        self._wake.set()

    def flush(self) -> None:
        """Write what was said."""
        with self._lock:
            lines, self._lines = self._lines, []
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            data = memoryview(text.encode("utf-8", "backslashreplace"))
            try:
                while data:
                    data = data[os.write(sys.stderr.fileno(), data) :]
            except (OSError, ValueError):
                return  # nobody reads it any more

    def _run(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            threading.Event().wait(_EVERY)
            self.flush()
