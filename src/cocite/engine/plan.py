"""Plan a scan within a memory budget.

    in memory      links + x + y <= budget            all cores, ranges of destinations
    links read     x + y + chunks of links <= budget  the stored links are read sequentially
    in blocks      any budget of some MB              x and y are read and written sequentially

In blocks, half of each thread's share is for the block's accumulators, and half buffers sequential
reads. The number of blocks is proportional to the size of y divided by the budget:

    bytes read per scan  = blocks * size of x + 4 to 8 per link
    bytes of scratch     = size of x + size of y + 8 per link
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
from numpy.typing import DTypeLike

from cocite.errors import ResourceError, UsageError
from cocite.graph.blocks import Links, cut_blocks, cut_evenly
from cocite.resources import Resources, format_least, format_size, format_total, short_of

ROW_BYTES = 64
"""Maximum bytes of a row: a cache line."""
_DTYPES = (np.uint32, np.float64)
LEAST_SHARE = 4 << 20
"""Minimum memory per thread; smaller blocks would mostly process boundaries."""
_LARGEST_PIECE = 64 << 20
_STRIP_LINK = 24
"""Bytes per link of a strip during arrangement: key, words, position in the graph."""
_LARGEST_STRIP = 1 << 22
"""Maximum links per strip; longer strips do not sort faster, and delay other threads."""
_MOST_ROWS = 2**31 - 1
"""Maximum rows per block; targets have 31 bits."""


class Way(Enum):
    """Where the links, x and y are during a scan."""

    MEMORY = "all in memory"
    STREAMED = "x and y in memory, links from disk"
    BLOCKS = "all on disk"


@dataclass(frozen=True)
class ScanPlan:
    """The plan of a scan in ``memory`` bytes.

    ``cuts`` are the first nodes of all ranges or blocks except the first; a row is ``lanes`` values
    of ``dtype``. In BLOCKS, a thread buffers ``strip`` links and ``window`` rows of x. Each scan
    reads about ``reads`` bytes from disk; arranged links, x and y take ``scratch`` bytes of disk
    space.
    """

    way: Way
    memory: int
    threads: int
    cuts: tuple[int, ...]
    wanted: int = 0
    strip: int = 0
    window: int = 0
    reads: int = 0
    scratch: int = 0
    lanes: int = 1
    dtype: str = "float64"

    @property
    def blocks(self) -> int:
        """Return the number of ranges or blocks."""
        return len(self.cuts) + 1

    def __str__(self) -> str:
        text = f"{format_total(self.memory)} of memory on {self.threads} thread"
        text += "s" * (self.threads > 1)
        if self.threads < self.wanted:
            text += f" (of {self.wanted}: the memory is too small for more)"
        if self.way is Way.STREAMED:
            text += f", for x and y; a scan reads the links, {format_size(self.reads)}, from disk"
        elif self.way is Way.MEMORY:
            text += ", for the links, x and y"
        else:
            text += f", {self.blocks} block" + "s" * (self.blocks > 1)
            text += (
                f" of destinations from disk: a scan reads {format_size(self.reads)} and needs "
                f"{format_size(self.scratch)} of scratch"
            )
        return text


def plan_scan(
    links: Links, means: Resources, *, lanes: int = 1, dtype: DTypeLike = np.float64
) -> ScanPlan:
    """Choose the fastest plan that fits the memory; ``means`` may set the number of blocks on disk.

    The memory is for the links, x, y and buffers. A node has ``lanes`` values (1, or as many as fit
    into 64 bytes) of type ``dtype`` (uint32 or float64). Raises ``UsageError`` for other values,
    and ``ResourceError`` if the memory is too small for one thread with small blocks.
    """
    kind = np.dtype(dtype)
    if kind.type not in _DTYPES:
        raise UsageError(f"dtype is {kind.name}; it must be uint32 or float64")
    most = ROW_BYTES // kind.itemsize
    if type(lanes) is not int or lanes not in (1, most):
        raise UsageError(f"lanes is {lanes!r}; it must be 1 or {most} for {kind.name}")
    row, total = lanes * kind.itemsize, lanes * (8 if kind.kind == "f" else kind.itemsize)
    return replace(_chosen(links, row, total, means), lanes=lanes, dtype=kind.name)


def _chosen(links: Links, row: int, total: int, means: Resources) -> ScanPlan:
    threads, memory, blocks = means.threads, means.memory, means.blocks
    vectors = 2 * row * links.nodes
    size = links.offsets.nbytes + links.neighbors.nbytes
    if blocks is not None:
        share = max(memory // threads, LEAST_SHARE)
        rows = max(1, -(-links.nodes // blocks))
        return _in_blocks(links, row, total, rows, share, (1, threads))
    if size + vectors <= memory:
        ranges = _ranges(links, size, threads)
        return ScanPlan(Way.MEMORY, size + vectors, threads, ranges, threads)
    piece = min((memory - vectors) // (2 * threads), _LARGEST_PIECE)
    if piece >= LEAST_SHARE:
        # Use half of the rest, because reading a chunk also loads adjacent pages.
        cuts = cut_blocks(links, piece)
        if _largest(links, cuts) <= 2 * piece:
            need = vectors + 2 * threads * piece
            return ScanPlan(Way.STREAMED, need, threads, cuts, threads, reads=size)
    count = min(threads, memory // LEAST_SHARE)
    if count == 0:
        raise ResourceError(
            f"a scan needs {format_least(LEAST_SHARE)} of memory, with any number of blocks; "
            f"{short_of(memory)}"
        )
    share = memory // count
    return _in_blocks(links, row, total, share // 2 // total, share, (count, threads))


def _ranges(links: Links, size: int, threads: int) -> tuple[int, ...]:
    """Cut several ranges per thread: some take longer, and scans stop only between ranges."""
    return cut_evenly(links, max(4 * threads if threads > 1 else 1, size // _LARGEST_PIECE))


def _largest(links: Links, cuts: tuple[int, ...]) -> int:
    """Return the bytes of the largest range; one node with many in-links may exceed a piece."""
    bounds = np.array([0, *cuts, links.nodes])
    before = links.offsets[bounds].astype(np.int64)
    return int((8 * np.diff(bounds) + 4 * np.diff(before)).max())


def _in_blocks(
    links: Links, row: int, total: int, rows: int, share: int, threads: tuple[int, int]
) -> ScanPlan:
    """Plan blocks of at most ``rows`` rows; ``threads`` (used, requested) have ``share`` bytes."""
    count, wanted = threads
    blocks = -(-links.nodes // min(rows, _MOST_ROWS))
    if blocks > 1:
        blocks += -blocks % count  # an equal number per thread
    rows = max(1, -(-links.nodes // blocks))
    cuts = tuple(range(rows, links.nodes, rows))
    vector, edges = row * links.nodes, links.edges
    return ScanPlan(
        Way.BLOCKS,
        count * max(share, 2 * total * rows),
        count,
        cuts,
        wanted,
        strip=min(share // (2 * _STRIP_LINK), _LARGEST_STRIP),
        window=share // 8 // row,
        reads=(len(cuts) + 1) * vector + 8 * edges,
        scratch=8 * edges + 2 * vector,
    )
