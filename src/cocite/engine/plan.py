"""The plan of a scan within a memory budget.

    in memory      links + x + y <= budget            all cores, ranges of destinations
    links read     x + y + pieces of links <= budget  the stored links are read in sequence
    in blocks      any budget of some MB              x and y are read and written in sequence

In blocks, half of a thread's share holds the accumulators of its block, so the number of blocks,
and how often x is read, is proportional to the size of y over the budget. The rest buffers data
that is read in sequence:

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
"""Bytes of the widest row: a cache line."""
_DTYPES = (np.uint32, np.float64)
LEAST_SHARE = 4 << 20
"""Minimum memory of a thread; with smaller blocks, most time would go to boundaries."""
_LARGEST_PIECE = 64 << 20
_STRIP_LINK = 24
"""Memory for a link of a strip during arrangement: key, words, position in the graph."""
_LARGEST_STRIP = 1 << 22
"""Maximum links of a strip: longer ones do not sort faster, and block other threads."""
_MOST_ROWS = 2**31 - 1
"""Maximum rows of a block: targets are numbered in 31 bits."""


class Way(Enum):
    """Where links, x and y are during a scan."""

    MEMORY = "all in memory"
    STREAMED = "x and y in memory, links from disk"
    BLOCKS = "all on disk"


@dataclass(frozen=True)
class ScanPlan:
    """Plan of a scan in ``memory`` bytes. ``cuts`` is the first node of every range or block but
    the first; a row is ``lanes`` values of ``dtype``.

    In BLOCKS, a thread holds ``strip`` links and ``window`` rows of x at a time. One scan reads
    about ``reads`` bytes from disk; the arrangement, x and y take ``scratch`` bytes there.
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
            text += f" (of {self.wanted}: the memory given holds no more)"
        if self.way is Way.STREAMED:
            text += f", which holds x and y; the links, {format_size(self.reads)}, from disk"
        elif self.way is Way.MEMORY:
            text += ", which holds the links, x and y"
        else:
            text += f", {self.blocks} block" + "s" * (self.blocks > 1)
            text += (
                f" of destinations from disk: a scan reads {format_size(self.reads)}, and "
                f"{format_size(self.scratch)} of scratch are taken"
            )
        return text


def plan_scan(
    links: Links, means: Resources, *, lanes: int = 1, dtype: DTypeLike = np.float64
) -> ScanPlan:
    """Plan the fastest way that fits the memory; with ``blocks`` in the means, that many on disk.

    Parameters
    ----------
    links
        The links to scan: ``in_links`` of a graph, or its ``out_links``.
    means
        The memory is for the links, x, y and buffers.
    lanes
        Number of values of a node: 1, or as many as 64 bytes hold.
    dtype
        The type of the values: uint32 or float64.

    Raises
    ------
    UsageError
    ResourceError
        If not even one thread with small blocks fits.
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
    """Choose the plan; a row of x has ``row`` bytes, ``total`` with its accumulators."""
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
        # Half of the rest: reading a piece also loads some neighboring pages.
        cuts = cut_blocks(links, piece)
        if _largest(links, cuts) <= 2 * piece:
            need = vectors + 2 * threads * piece
            return ScanPlan(Way.STREAMED, need, threads, cuts, threads, reads=size)
    count = min(threads, memory // LEAST_SHARE)
    if count == 0:
        raise ResourceError(
            f"a scan needs {format_least(LEAST_SHARE)} of memory, however many blocks; "
            f"{short_of(memory)}"
        )
    share = memory // count
    return _in_blocks(links, row, total, share // 2 // total, share, (count, threads))


def _ranges(links: Links, size: int, threads: int) -> tuple[int, ...]:
    """Cut several ranges for every thread: some take longer, and a scan can be interrupted between
    them.
    """
    return cut_evenly(links, max(4 * threads if threads > 1 else 1, size // _LARGEST_PIECE))


def _largest(links: Links, cuts: tuple[int, ...]) -> int:
    """Return the bytes of the largest range, which a node with many in-links can exceed."""
    bounds = np.array([0, *cuts, links.nodes])
    before = links.offsets[bounds].astype(np.int64)
    return int((8 * np.diff(bounds) + 4 * np.diff(before)).max())


def _in_blocks(
    links: Links, row: int, total: int, rows: int, share: int, threads: tuple[int, int]
) -> ScanPlan:
    """Plan blocks of at most ``rows`` rows; ``threads`` (used, requested) get ``share`` bytes
    each.
    """
    count, wanted = threads
    blocks = -(-links.nodes // min(rows, _MOST_ROWS))
    if blocks > 1:
        blocks += -blocks % count  # they take about equally long
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
