"""Entry point; Ctrl-C during imports, before anything needs cleanup, exits without a traceback."""

from __future__ import annotations

import os
import signal
import sys


def _leave(number: int, frame: object) -> None:
    message = b'{"level": "error", "message": "interrupted", "code": 130}'
    os.write(2, (message if "--log-json" in sys.argv else b"interrupted") + b"\n")
    os._exit(130)


def run() -> None:
    """Run the command line, and exit with its code."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # ignored in background jobs
        signal.signal(signal.SIGINT, _leave)
    from cocite.cli.main import run as begin

    begin()


if __name__ == "__main__":
    run()
