"""Makers of several samples at the price of one: walked or scanned together, laid out singly.

A sample is a function of its number, so which ones are made together does not matter. A build that
goes on behind a shard makes the next ones together from there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from cocite.layouts.blobs import Blob, Maker
from cocite.runner import Pace, in_order

__all__ = ["TogetherMaker"]


class TogetherMaker(ABC):
    """Makes blobs on threads of its own, so one is enough."""

    def __init__(self, numbers: range, together: int) -> None:
        """``numbers`` are the samples that are wanted; up to ``together`` are made at once."""
        self._numbers, self._together = numbers, together
        self._made = range(0)
        self._next = -1
        self._pace = Pace()
        self._blobs: Iterator[Blob] = iter(())

    @abstractmethod
    def _make(self, samples: range) -> None:
        """Make what these samples are laid out from; of others nothing need be left."""

    @abstractmethod
    def _layers(self) -> Sequence[Maker]:
        """What lays a sample out that is made: one a thread."""

    def __call__(self, sample: int) -> Blob:
        """The blob of sample number ``sample``; quickly, if they are asked for in order. One that
        is not wanted is made alone.
        """
        if sample not in self._made:
            self._stop()
            self._made = range(0)
            wanted = self._numbers.stop if sample in self._numbers else sample + 1
            made = range(sample, min(sample + self._together, wanted))
            self._make(made)
            self._made = made
        if sample != self._next:
            self._stop()
            self._blobs = in_order(self._layers(), range(sample, self._made.stop), self._pace)
        blob = next(self._blobs)
        self._next = sample + 1
        return blob

    def _stop(self) -> None:
        """Let threads that are ahead end, before what they read is written over."""
        close: Any = getattr(self._blobs, "close", None)
        if close is not None:
            close()
        self._blobs, self._next = iter(()), -1
