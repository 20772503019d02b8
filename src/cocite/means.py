"""The means of a run: how many threads, how much memory, and how its work is cut.

One value, made where a run begins (the command line, a public function) by one reading of the
machine, and handed down whole. What is below never looks at the machine again: it takes what it
was given, however much others take meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cocite.errors import UsageError
from cocite.memory import budget, checked_threads

__all__ = ["Means"]


@dataclass(frozen=True)
class Means:
    """``threads`` at most, and ``memory`` bytes for the data.

    How work is cut, where one says so: ``shard`` samples between two points at which a build can
    resume, ``blocks`` of the graph of which one is in memory, everything but a block in files if
    ``external``.
    """

    threads: int
    memory: int
    shard: int | None = None
    blocks: int | None = None
    external: bool = False

    @classmethod
    def checked(
        cls,
        threads: int | None = None,
        memory: str | int | None = None,
        shard: int | None = None,
        blocks: int | None = None,
        external: bool = False,
    ) -> Means:
        """As given; else all cores, and half of the memory that is available.

        Raises :class:`UsageError` for a value that is not allowed.
        """
        _check("shard", shard, "number of samples")
        _check("blocks", blocks, "whole number")
        return cls(checked_threads(threads), budget(memory), shard, blocks, external)

    @property
    def cut(self) -> bool:
        """Whether anything is said of how work is cut: only builds of samples can heed it."""
        return self.shard is not None or self.blocks is not None or self.external

    def up_to(self, threads: int) -> Means:
        """The same with so many threads at most."""
        return replace(self, threads=min(self.threads, threads))


def _check(name: str, value: int | None, what: str) -> None:
    if value is not None and (type(value) is not int or value < 1):
        raise UsageError(f"{name} is {value!r}; it is a {what}, 1 or more")
