"""The pages whose samples an index keeps, if not all: a file of their ids in the graph.

    wanted    <u4[n]    for each node of the index its id in the graph, ascending

Walks go over the whole graph; of each sample only what is said of these pages is stored, in ids of
their own, 0 to n - 1, in the same order. Whether and when two of them meet is what it was, so that
scores are those of an index of all pages, to the bit.

Source: Fogaras, Racz, *A scalable randomized method to compute link-based similarity rank on the
web graph*, 6 (an index "truncated to the ODP pages"); *Scaling link-based similarity search*, 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.storage import Entry, checksum, disk, map_array, staged_file

WANTED = "wanted"
"""The file of an index."""


@dataclass(frozen=True)
class PartRequest:
    """The file ``path``, which is as ``entry`` says."""

    path: Path
    entry: Entry

    @classmethod
    def of(cls, folder: Path, ids: NDArray[np.uint32]) -> PartRequest:
        """What the file of these ids in ``folder`` is; it is not written."""
        digest = xxhash.xxh3_128_hexdigest(np.ascontiguousarray(ids).view(np.uint8).data)
        return cls(folder / WANTED, Entry("<u4", (ids.size,), digest))

    @property
    def count(self) -> int:
        """How many pages."""
        return self.entry.shape[0]

    def write(self, ids: NDArray[np.uint32]) -> None:
        """Write the file, if it is not there."""
        try:
            if checksum(self.path, self.entry) == self.entry.xxh3_128:
                return
        except Damaged:
            pass
        with staged_file(self.path) as file:
            disk.write(file, np.ascontiguousarray(ids).view(np.uint8).data)

    def check(self) -> None:
        """Read the file in full; raises :class:`Damaged`."""
        if checksum(self.path, self.entry) != self.entry.xxh3_128:
            raise Damaged(f"{self.path} does not match its checksum. Begin the build again")

    def ids(self) -> NDArray[np.uint32]:
        """uint32[count]: the ids in the graph, mapped."""
        return map_array(self.path, self.entry)
