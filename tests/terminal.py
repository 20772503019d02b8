"""Commands on a terminal."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path


def run_on_terminal(
    command: list[str],
    env: Mapping[str, str],
    *,
    columns: int | None = None,
    folder: Path | None = None,
    whole: bool = False,
) -> tuple[int, str]:
    """Return the exit code of a command, and what it wrote to a terminal as its standard error.

    A ``whole`` terminal is its standard input and output, too.
    """
    parent_fd, child_fd = pty.openpty()
    if columns is not None:
        fcntl.ioctl(child_fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(
        command,
        cwd=folder,
        env=env,
        stdin=child_fd if whole else None,
        stdout=child_fd if whole else subprocess.DEVNULL,
        stderr=child_fd,
    ) as child:
        os.close(child_fd)
        output = b""
        while select.select([parent_fd], [], [], 120)[0]:
            try:
                piece = os.read(parent_fd, 65536)
            except OSError:  # Linux: the other side is closed
                break
            if not piece:
                break
            output += piece
    os.close(parent_fd)
    return child.returncode, output.decode()
