"""Commands that have a terminal."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path


def on_a_terminal(
    command: list[str],
    env: Mapping[str, str],
    *,
    columns: int | None = None,
    folder: Path | None = None,
    whole: bool = False,
) -> tuple[int, str]:
    """Return how a command ended, and what it wrote to a terminal as its standard error.

    A ``whole`` terminal is its standard input and output, too.
    """
    ours, theirs = pty.openpty()
    if columns is not None:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=theirs if whole else None,
        stdout=theirs if whole else subprocess.DEVNULL,
        stderr=theirs,
    ) as child:
        os.close(theirs)
        seen = b""
        while select.select([ours], [], [], 120)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not piece:
                break
            seen += piece
    os.close(ours)
    return child.returncode, seen.decode()
