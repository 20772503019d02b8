"""Sampled layouts: an index as a stream of samples, each one blob of 32-bit words.

A layout says how a sample is made and how its words are arranged. Where everything lies follows
from the number of nodes, the settings, and one count a sample (its *members*), so a shard, which is
nothing but its samples' blobs one behind the other, needs no table of its own: shards of any size
hold the same bytes in the same order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.links import Links
from cocite.index.plan import PartPlan
from cocite.index.room import Means, Room
from cocite.measures import PartSettings

__all__ = ["LINE", "Blob", "Carrier", "Maker", "SampledLayout", "padded", "sampled_layout"]

LINE = 16
"""Words of a cache line: blobs begin on one."""


@dataclass(frozen=True)
class Blob:
    """One sample: its words in parts, in order; its members; live tokens a step; XXH3-64.

    ``parts`` can be gone over again and again, and may come from a file piece by piece.
    """

    parts: Iterable[NDArray[np.uint32]]
    members: int
    live: tuple[int, ...]
    digest: int

    @classmethod
    def of(
        cls, parts: tuple[NDArray[np.uint32], ...], members: int, live: tuple[int, ...] = ()
    ) -> Blob:
        """A blob of these parts, with its digest."""
        digest = xxhash.xxh3_64()
        for part in parts:
            digest.update(part.view(np.uint8).data)
        return cls(parts, members, live, digest.intdigest())

    @property
    def nbytes(self) -> int:
        """Its size on disk."""
        return sum(part.nbytes for part in self.parts)


Maker = Callable[[int], Blob]
"""Makes the blob of a sample from its number; owns scratch memory, so one for each thread."""


Carrier = Callable[[NDArray[np.uint32], NDArray[np.uint64]], Blob]
"""Makes the blob of a sample anew in other ids, from the words of its shard and its row of them.
Raises :class:`IndexError` if the sample points outside of itself.
"""


class SampledLayout(ABC):
    """How samples are made, and how they lie on disk."""

    has_external = False
    """Whether it can be made with everything but a block in files."""
    carries = False
    """Whether samples can be carried over to another graph (``index/refresh.py``)."""
    together: int = 1
    """Samples that a maker makes at the price of one."""

    @abstractmethod
    def place(
        self, nodes: int, members: Sequence[int], settings: PartSettings
    ) -> tuple[NDArray[np.uint64], int]:
        """uint64[samples, parts] for the kernels, where each array of each sample begins in a shard
        and what else they need; and how many words the shard has.
        """

    @abstractmethod
    def most_words(self, nodes: int, settings: PartSettings) -> int:
        """The words of a blob at most."""

    @abstractmethod
    def plan_room(self, links: Links, part: PartPlan, means: Means) -> Room:
        """How a build fits its memory; raises :class:`ResourceError` if it cannot."""

    @abstractmethod
    def makers(self, links: Links, part: PartPlan, room: Room, folder: Path) -> list[Maker]:
        """One maker a thread; scratch files, if there are any, lie in ``folder``."""

    def carrier(self, ids: NDArray[np.uint32], nodes: int, settings: PartSettings) -> Carrier:
        """What carries samples over to a graph of ``nodes`` nodes, if the layout ``carries``.

        ``ids`` uint32[old nodes] is where each node has gone, 2**32 - 1 if it is gone. Each blob is
        memory of its own.
        """
        raise NotImplementedError


_LAYOUTS = {
    "compact": ("cocite.index.compact", "CompactLayout"),
    "minhash": ("cocite.index.minhash", "MinhashLayout"),
    "paths": ("cocite.index.paths", "PathsLayout"),
    "sketch": ("cocite.index.sketch", "SketchLayout"),
    "trees": ("cocite.index.trees", "TreesLayout"),
}


def is_sampled(layout: str) -> bool:
    """Whether the layout is one of samples."""
    return layout in _LAYOUTS


def sampled_layout(layout: str) -> SampledLayout:
    """The layout of that name; raises :class:`Damaged`, as names come from manifests."""
    if layout not in _LAYOUTS:
        raise Damaged(f"an index names the layout {layout!r}, which this release does not know")
    module, name = _LAYOUTS[layout]
    found: SampledLayout = getattr(import_module(module), name)()
    return found


def padded(words: int) -> int:
    """Words rounded up to whole cache lines."""
    return -(-words // LINE) * LINE
