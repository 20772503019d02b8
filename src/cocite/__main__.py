"""``python -m cocite``, and the console script: exits with 130 on an interruption, from the first
moment on. While the command line is imported, nothing needs an orderly shutdown.
"""

from __future__ import annotations

import os
import signal
import sys


def _leave(number: int, frame: object) -> None:
    said = b'{"level": "error", "message": "interrupted", "code": 130}'
    os.write(2, (said if "--log-json" in sys.argv else b"interrupted") + b"\n")
    os._exit(130)


def run() -> None:
    """Run the command line; ends the process with its exit code."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as of a job in the background
        signal.signal(signal.SIGINT, _leave)
    from cocite.cli.main import run as begin

    begin()


if __name__ == "__main__":
    run()
