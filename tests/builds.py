"""Helpers of tests of builds: the bytes of an index, damage, and interruptions."""

from collections.abc import Callable
from pathlib import Path


def files(path: Path) -> dict[str, bytes]:
    """The content of each file in a folder."""
    return {file.name: file.read_bytes() for file in path.iterdir()}


def flip(file: Path, at: int) -> None:
    """Flip one bit of the byte at an offset."""
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def stop_at(
    count: int, error: type[BaseException] = KeyboardInterrupt
) -> Callable[[int, int], None]:
    """A progress callback that interrupts a build at ``count`` units or more."""

    def stop(done: int, total: int) -> None:
        if done >= count:
            raise error

    return stop
