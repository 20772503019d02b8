"""Work for nodes: what is sent there is found by its name."""

from __future__ import annotations

import os
import time
from pathlib import Path

import ray

from cocite.errors import UnknownNode, UsageError


def square(number: int) -> int:
    return number * number


def process(_: int) -> int:
    time.sleep(0.2)
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
    """An item leaves a note of its node in a folder when it begins, and another one at its end."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self.folder, self.seconds = folder, seconds

    def __call__(self, number: int) -> int:
        node = ray.get_runtime_context().get_node_id()
        (self.folder / f"{number} {node} begun").touch()
        time.sleep(self.seconds)
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

    def slow(self, seconds: float) -> str:
        time.sleep(seconds)
        return "done"
