"""Group (key, value) rows by key, out of core.

    deal      append (key, value) to the file of the key's range
    group     yield, for each range, the number of values per key, then all values by key

The values of a key keep their order. A range that exceeds memory is read several times, once for
each subset of keys that fits. If the values of one key exceed memory, they are streamed. Memory is
64 bytes for each of ``rows`` rows.
Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.2.3 (external sorting).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.engine.walk_blocks import Dealer
from cocite.storage.spool import Spool

_EIGHT = 8
"""Ranges begin at multiples of eight keys, so that 4-bit labels fill whole words."""

Nodes = NDArray[np.uint32]


class RowGroups:
    """Groups rows by key (0 to ``keys`` - 1), with at most ``rows`` rows in memory."""

    def __init__(self, keys: int, rows: int) -> None:
        self.rows = max(rows // _EIGHT, 1) * _EIGHT
        self._cuts = np.array([*range(0, keys, self.rows), keys], np.uint32)
        self._buffer, dealt = (np.zeros((self.rows, 3), np.uint32) for _ in range(2))
        self._dealer = Dealer(self._cuts, dealt)

    def spool(self, directory: Path) -> Spool:
        """Create an empty spool for rows in ``directory``."""
        return Spool(directory, self._cuts.size - 1)

    def add(self, spool: Spool, keys: Nodes, values: NDArray[Any], tag: int = 0) -> None:
        """Add a value for each of ``keys``, at most ``rows`` at a time."""
        rows = self._buffer[: keys.size]
        rows[:, 0], rows[:, 1] = keys, values
        self._dealer.rows(spool, rows, tag)

    def ranges(self, spool: Spool) -> Iterator[tuple[int, int, Iterator[tuple[int, Nodes]]]]:
        """Yield (first key, end, tagged rows) per range; consume the rows before the next range."""
        for number, (low, high) in enumerate(pairwise(self._cuts.tolist())):
            yield low, high, spool.pieces(number, self._buffer)

    def groups(self, spool: Spool) -> Iterator[tuple[int, NDArray[np.int64], Iterator[Nodes]]]:
        """Yield (first key, number of values per key, chunks of values) per range. Consume the
        chunks before the next range.
        """
        for number, (low, high, pieces) in enumerate(self.ranges(spool)):
            counts = np.zeros(high - low, np.int64)
            for _, rows in pieces:
                counts += np.bincount(rows[:, 0] - np.uint32(low), minlength=counts.size)
            yield low, counts, self._values(spool, number, counts)

    def _values(self, spool: Spool, number: int, counts: NDArray[np.int64]) -> Iterator[Nodes]:
        ends = np.cumsum(counts)
        first, before = 0, 0
        while before < int(ends[-1]):
            last = int(np.searchsorted(ends, before + self.rows, side="right"))
            if last > first:
                yield self._sorted(spool, number, first, last, int(ends[last - 1]) - before)
            else:
                last = first + 1
                for rows in self._between(spool, number, first, last):
                    yield rows[:, 1].copy()
            first, before = last, int(ends[last - 1])

    def _sorted(self, spool: Spool, number: int, first: int, last: int, size: int) -> Nodes:
        """Return the values, sorted by key, of the range's keys ``first`` to ``last``."""
        keys, values = np.empty(size, np.uint32), np.empty(size, np.uint32)
        at = 0
        for rows in self._between(spool, number, first, last):
            part = slice(at, at + len(rows))
            keys[part], values[part] = rows[:, 0], rows[:, 1]
            at += len(rows)
        return values[np.argsort(keys, kind="stable")]

    def _between(self, spool: Spool, number: int, first: int, last: int) -> Iterator[Nodes]:
        low = int(self._cuts[number])
        whole = first == 0 and low + last == int(self._cuts[number + 1])
        for _, rows in spool.pieces(number, self._buffer):
            keys = rows[:, 0]
            yield rows if whole else rows[(keys >= low + first) & (keys < low + last)]
