"""Work for nodes, which import it by name."""

import os
from pathlib import Path

import ray

from cocite.errors import UnknownNode, UsageError
from tests.clock import wait_for


def square(number: int) -> int:
    return number * number


class Meeting:
    """Each item waits until another has begun, so that no process does all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int) -> int:
        (self.folder / f"{number} begun").touch()
        wait_for(lambda: len(list(self.folder.iterdir())) > 1)
        return os.getpid()


def fails_at_3_and_4(number: int) -> int:
    if number == 3:
        error = UnknownNode("zebar", ["Zebra"])
        error.add_note("look again")
        raise error
    if number == 4:
        raise ZeroDivisionError("by nothing")
    return number


class Recorded:
    """An item records its node in a folder when it begins and when it ends; it ends once the folder
    has a file of its number, or one named ``all``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int) -> int:
        node = ray.get_runtime_context().get_node_id()
        (self.folder / f"{number} {node} begun").touch()
        wait_for(lambda: any((self.folder / name).exists() for name in (str(number), "all")), 600)
        (self.folder / f"{number} {node} done").touch()
        return number + 1000


class Counter:
    """A counter that lives on a node."""

    def __init__(self, start: int) -> None:
        if start < 0:
            raise UsageError("start is below 0")
        self.at = start

    def add(self, number: int) -> int:
        self.at += number
        return self.at

    def halves(self) -> tuple[int, int]:
        return self.at // 2, self.at - self.at // 2

    def wait(self, place: Path) -> str:
        """Wait until a path exists."""
        wait_for(place.exists, 600)
        return "done"
