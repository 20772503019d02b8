"""What an opened index says of itself, and what answers for it: the ground of ``index.py``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

import numpy as np

from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.graph.titles import Titles
from cocite.index import StoredIndex
from cocite.index.lost import Lost
from cocite.layouts.stored import DamagedShard
from cocite.means import Means
from cocite.measures import Value
from cocite.query.source import Given
from cocite.query.together import Several

if TYPE_CHECKING:
    from cocite.query.refine.refiner import Refiner

__all__ = [
    "DEFAULT_CONFIDENCE",
    "DEFAULT_DEADLINE",
    "DEFAULT_K",
    "DEFAULT_REASONS",
    "Opened",
    "check_number",
    "from_the_others",
]

DEFAULT_K = 20
DEFAULT_REASONS = 10
DEFAULT_CONFIDENCE = 0.95
DEFAULT_DEADLINE = 0.2
"""Seconds that samples have to answer that are elsewhere."""
_MAKING = threading.Lock()
_log = logging.getLogger("cocite")

_Question = TypeVar("_Question", bound=Callable[..., Any])


def check_number(name: str, value: object, least: int) -> None:
    """Raise :class:`UsageError` for what is no whole number of ``least`` or more."""
    if not isinstance(value, int | np.integer) or value < least:
        raise UsageError(f"{name} is {value!r}; it is a whole number, {least} or more")


class Opened(Several):
    """An index that is open: measure, settings, names of nodes. Safe to share between threads."""

    def __init__(self, stored: StoredIndex, means: Means, graph: Given = None) -> None:
        """``means`` are for what reads the graph again; ``graph`` says where that is."""
        super().__init__(stored, means, graph)
        self._instead: Opened | None = None
        if stored.lost:
            _log.warning(stored.loss)

    @property
    def stored(self) -> StoredIndex:
        """The directory behind it."""
        return self.now._stored

    @property
    def measure(self) -> str:
        """The measure's name."""
        return self._stored.measure.name

    @property
    def direction(self) -> str:
        """Which links it looks at: ``in``, ``out`` or ``both``."""
        return self._stored.direction

    @property
    def settings(self) -> dict[str, Value]:
        """What it was built with, such as ``samples``, ``length`` and ``seed``."""
        return self._stored.settings.to_json()

    @property
    def samples(self) -> int | None:
        """How many independent samples every estimate is the mean of, those that answer; None if
        scores are exact.
        """
        return self.stored.samples

    @property
    def lost(self) -> tuple[Lost, ...]:
        """The files of samples that are missing or damaged (``index/lost.py``): the others answer.

        The logger ``cocite`` warns when an index is opened that has some, and when a question finds
        one.
        """
        return self.stored.lost

    @property
    def given(self) -> Given:
        """The graph or the graphs that it was opened with."""
        return self._graph

    @property
    def left_out(self) -> dict[str, Any]:
        """What an answer says of samples that are elsewhere and did not answer."""
        return {}

    def close(self) -> None:
        """Let go of what it holds elsewhere, if anything."""

    @property
    def now(self) -> Self:
        """The index that answers now: without what questions have found to be damaged."""
        return self if self._instead is None else cast(Self, self._instead.now)

    def leave_out(self, found: DamagedShard) -> None:
        """Answer without a shard from now on; raises :class:`~cocite.errors.Damaged` if there is no
        other.
        """
        with _MAKING:
            if self._instead is None:
                less = self._stored.without(found.file, str(found))
                self._instead = type(self)(less, self.means, self._graph)

    @property
    def sampled(self) -> bool:
        """Whether scores are estimates from samples, those of a part at least."""
        return bool(self._sampled)

    @cached_property
    def nodes(self) -> Names:
        """The names of the nodes: ``len``, ``in``, iteration, ``complete``, ``nearest``."""
        return self._stored.names

    @property
    def titles(self) -> Titles | None:
        """The titles of the nodes; None if the graph had none."""
        return self._stored.titles

    def titles_of(self, names: Sequence[str]) -> list[str] | None:
        """The titles of nodes by their names, "" for none; None if the graph had none at all."""
        titles = self.titles
        return None if titles is None else titles.of(self.nodes.ids(list(names)))

    def _ids_of(self, node: object) -> tuple[int, ...]:
        """The ids of a name, or of a list of names, each once."""
        if not isinstance(node, list | tuple) or self.nodes.is_one(node):
            return (self.nodes.id(node),)
        if not node:
            raise UsageError("no node is named; give one, or several to ask them together")
        return tuple(dict.fromkeys(self.nodes.ids(list(node)).tolist()))

    def _pair_of(self, a: object, b: object) -> tuple[int, int]:
        """The ids of two names; raises :class:`UsageError` if they are of different sides."""
        pair = self.nodes.id(a), self.nodes.id(b)
        if self.nodes.sides is not None:
            self.nodes.sides.check_alike(pair, (a, b))
        return pair

    @property
    def refiner(self) -> Refiner | None:
        """What gives refined answers; None if scores are exact anyway.

        Raises :class:`UsageError` if there is no such thing for the measure.
        """
        with _MAKING:  # one for all threads, as it may hold a diagonal that takes seconds to make
            if "_refiner" not in self.__dict__:
                from cocite.query.refine.choice import refiner_for

                self._refiner = refiner_for(
                    self._stored, self._graph, self.means, self.readers, self.top
                )
        return self._refiner


def from_the_others(question: _Question) -> _Question:
    """A method that is asked again without each shard that it finds to be damaged."""

    @wraps(question)
    def asked(self: Opened, *args: Any, **options: Any) -> Any:
        while True:
            index = self.now
            try:
                return question(index, *args, **options)
            except DamagedShard as found:
                index.leave_out(found)

    return cast(_Question, asked)
