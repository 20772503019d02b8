"""Work for nodes: what is sent there is found by its name."""

import os
from pathlib import Path

import ray

from cocite.errors import UnknownNode, UsageError
from tests.clock import wait_for


def square(number: int) -> int:
    return number * number


class Met:
    """Each item waits until another one is under way, so that not one process does all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int) -> int:
        (self.folder / f"{number} begun").touch()
        wait_for(lambda: len(list(self.folder.iterdir())) > 1)
        return os.getpid()


def wrong(number: int) -> int:
    if number == 3:
        error = UnknownNode("zebar", ["Zebra"])
        error.add_note("look again")
        raise error
    if number == 4:
        raise ZeroDivisionError("by nothing")
    return number


class Noted:
    """An item leaves a note of its node in a folder when it begins, and another one at its end,
    which comes when there is a file of its number there, or one called ``all``.
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
    """Lives on a node."""

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
        """Until there is something."""
        wait_for(place.exists, 600)
        return "done"
