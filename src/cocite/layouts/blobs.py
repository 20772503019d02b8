"""The contract of builders of samples: blobs, one a sample, made on threads in any order.

A blob is a function of the graph, the part's plan and the sample's number, and of nothing else, so
that threads, blocks, machines and interruptions never change a byte.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.graph.rows import Links
from cocite.layouts.format import SampledFormat
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.plan import PartPlan
from cocite.means import Means
from cocite.measures import PartSettings

__all__ = ["Blob", "Carrier", "Maker", "SampledBuilder"]


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


class SampledBuilder(SampledFormat):
    """How samples are made."""

    @abstractmethod
    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """How a build fits its memory; raises :class:`ResourceError` if it cannot."""

    @abstractmethod
    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """One maker a thread, for the samples of ``numbers``, though they make any; scratch files,
        if there are any, lie in ``folder``.
        """

    def carrier(self, ids: NDArray[np.uint32], nodes: int, settings: PartSettings) -> Carrier:
        """What carries samples over to a graph of ``nodes`` nodes, if the layout ``carries``.

        ``ids`` uint32[old nodes] is where each node has gone, 2**32 - 1 if it is gone. Each blob is
        memory of its own.
        """
        raise NotImplementedError
