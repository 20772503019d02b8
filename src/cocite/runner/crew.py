"""Those who hold the blocks of a graph, one each, and how to ask them.

A *crew* makes one object a block, wherever, and calls its methods. A call may have several answers,
each handed on by itself, without passing through who conducts the run: what is given out are
*handles*, which may be arguments of further calls, or taken (``take``). Calls to one object are
made one after another, in the order in which they were asked for.

``Alone`` is the crew of one process: objects are made here, calls are made at once, and a handle is
its value. Crews of other processes (``ray/``) do the same by messages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

__all__ = ["Alone", "Crew", "Hiring"]


class Crew(Protocol):
    """Objects, one a block, and calls of their methods. What is taken, or begun again, may raise
    :class:`~cocite.errors.LostWorker`.
    """

    @property
    def size(self) -> int:
        """How many there are."""

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Ask for a method of one of them: handles of its answers, as many as there are to be; a
        method with more than one returns a tuple of them.
        """

    def take(self, handles: Sequence[Any]) -> list[Any]:
        """The values of handles, when they are there."""

    def again(self) -> None:
        """Make those anew that were lost."""


Hiring = Callable[[Callable[..., Any], Sequence[tuple[Any, ...]], int], Crew]
"""Makes a crew: of what, with which arguments each, and how many bytes of memory each takes."""


class Alone:
    """The crew of one process."""

    def __init__(
        self, kind: Callable[..., Any], arguments: Sequence[tuple[Any, ...]], memory: int = 0
    ) -> None:
        """Make one of a ``kind`` for each of the ``arguments``; the ``memory`` is not looked at."""
        self._objects = [kind(*each) for each in arguments]

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._objects)

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Done at once."""
        found = getattr(self._objects[block], method)(*arguments)
        return [found] if answers == 1 else list(found)

    def take(self, handles: Sequence[Any]) -> list[Any]:
        """They are their values."""
        return list(handles)

    def again(self) -> None:
        """Nobody is lost here."""
