"""Memory plans for PageRank, and vectors processed piece by piece.

    in memory     at most 166 bytes per node, and the links twice (weighted: 181, and the weights
                  twice as well); 8 more if rows are swept in halves
    in blocks     any memory from 8 MB on; a fifth of a small memory, or nearly half of a large one,
                  holds a block: 8 bytes for each of its nodes and again for each core node

    bytes read per sweep  = (blocks * 8 + 68) per core node + 4 to 8 per link of the core
    bytes of scratch      = 8 per link (16 with weights) and 160 per node at most

All pieces have the same size. NumPy sums each piece and ``math.fsum`` adds these sums, so results
do not depend on where a vector is stored. Source: Haveliwala, *Efficient computation of PageRank*,
section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.links import links_of
from cocite.resources import format_least, format_size, format_total, short_of
from cocite.storage import evict, is_mapped

Vector = NDArray[np.float64]
PIECE = 1 << 14
"""Values in a piece."""
_KEPT = 1 << 15
"""Values to process before memory is released."""


def pieces(
    begin: int,
    end: int,
    *arrays: NDArray[Any],
    size: int | None = None,
    beside: Any = (),
    kept: int = _KEPT,
) -> Iterator[slice]:
    """Yield slices from ``begin`` to ``end``. After every ``kept`` values, release the processed
    memory of mapped ``arrays`` and all memory of mapped ``beside``.
    """
    arrays, beside = (tuple(filter(is_mapped, each)) for each in (arrays, beside))
    step, first = size or PIECE, begin
    for low in range(begin, end, step):
        last = min(low + step, end)
        yield slice(low, last)
        if (arrays or beside) and (last - first >= kept or last == end):
            evict(*(array[first:last] for array in arrays), *beside)
            first = last


def total(values: Vector, taken: NDArray[Any] | None = None) -> float:
    """Return the sum of the values (with ``taken``, only where it is 0); inf on overflow."""
    sums = []
    for part in pieces(0, values.size, values, *(() if taken is None else (taken,))):
        piece = values[part] if taken is None else values[part][taken[part] == 0]
        with np.errstate(over="ignore"):
            sums.append(float(piece.sum()))
    try:
        return math.fsum(sums)
    except OverflowError:
        return math.inf


def scale(values: NDArray[Any], factor: float) -> None:
    """Multiply values in place by ``factor``, in float64 even if they are float32."""
    for part in pieces(0, values.size, values) if factor != 1.0 else ():
        np.multiply(values[part], np.float64(factor), out=values[part], casting="same_kind")


def divide(values: Vector, divisor: float) -> None:
    """Divide values in place by ``divisor``."""
    for part in pieces(0, values.size, values):
        values[part] /= divisor


def order_of(values: Vector, k: int) -> NDArray[np.int64]:
    """Return the ids of the k largest values, largest first, ties by id."""
    ids, best = np.empty(0, np.int64), np.empty(0)
    for part in pieces(0, values.size, values, size=max(PIECE, 4 * k)):
        ids = np.concatenate([ids, np.arange(part.start, part.stop)])
        best = np.concatenate([best, values[part]])
        if best.size > k:
            fine = best >= np.partition(best, best.size - k)[best.size - k]
            ids, best = ids[fine], best[fine]
            # Of ties at the smallest value, keep the first ids.
            kept = np.sort(np.lexsort((ids, -best))[:k])
            ids, best = ids[kept], best[kept]
    return ids[np.lexsort((ids, -best))]


def stretches(
    offsets: NDArray[np.uint64], first: int, last: int, links: int, rows: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the links of rows [first, last) in stretches of at most ``links`` links and ``rows``
    rows, each as (first row, end row, first link, end link).

    A row that is cut is the last of one stretch and the first of the next.
    """
    row, begin = first, int(offsets[first])
    while row < last:
        limit = min(row + rows, last)
        end = min(begin + links, int(offsets[limit]))
        whole = row + int(np.searchsorted(offsets[row + 1 : limit + 1], np.uint64(end), "right"))
        cut = whole < last and int(offsets[whole]) < end
        yield row, whole + cut, begin, end
        row, begin = whole, end


# -- memory plan -------------------------------------------------------------------------


LEAST_IN_HALVES = 1 << 20
"""Minimum number of links to sweep in two halves; with fewer, threads would wait for each other."""
LEAST = 8 << 20
"""Minimum memory; smaller blocks would spend most time on boundaries."""
_STREAMS = 12 << 20
"""Memory for read-ahead: six files, 2 MB each."""
_TAKEN_STREAMS = 4 << 20
"""Part of _STREAMS that a single block uses, as measured (``python -m benchmarks.memory``)."""
_NODE, _WEIGHT_NODE = 166, 15
"""Maximum bytes per node with everything in memory, and additional bytes with weights."""
_TAKEN_NODE, _TAKEN_LINKING = 47, 84
"""Bytes in use at the same time per node, and additional bytes per node with out-links, as
measured (``python -m benchmarks.memory``).
"""
_SCRATCH_NODE, _WEIGHT_SCRATCH_NODE = 160, 20
_TRUST_NODE = 24
"""Additional bytes per node with trusted nodes: teleport, solution, and spam mass."""
_COPY_NODE = 8
"""Additional bytes per node for the copy of the second half."""
_STRIP_LINK, _WEIGHT_STRIP_LINK = 24, 36
"""Bytes per link while a strip is sorted: for keys and words, and with weights also positions."""
_LARGEST_STRIP = 1 << 22
_LARGEST_PIECE, _LARGEST_WINDOW = 16 << 20, 64 << 20
_BESIDE = 256 << 20
"""Largest useful memory in addition to a block."""


@dataclass(frozen=True)
class RankRoom:
    """Memory plan of a PageRank computation. ``blocks`` is 0 if everything is in memory.
    ``scratch`` is the maximum number of bytes on disk, ``taken`` the expected memory if it is
    known to be less. The rows are swept in 1 or 2 ``halves``; no block has rows of both.
    """

    memory: int
    blocks: int = 0
    scratch: int = 0
    taken: int | None = None
    halves: int = 1

    def __str__(self) -> str:
        taken = self.memory if self.taken is None else self.taken
        text = f"{format_total(taken)} of memory, which holds "
        if not self.blocks:
            return text + "the graph and the ranks"
        if self.blocks <= self.halves:
            text += "the data that is read at random; the rest"
        else:
            text += f"one of {self.blocks:,} blocks; the rest"
        return text + f" is on disk, with up to {format_size(self.scratch)} of scratch"

    @property
    def block(self) -> int:
        """Return the maximum bytes of a block."""
        return max((self.memory - _STREAMS) // 2, self.memory // 5, 1)

    @property
    def piece(self) -> int:
        """Return how many bytes of sequential data, such as links, to read at a time."""
        return max(1, min(self.memory // 16, _LARGEST_PIECE))

    @property
    def window(self) -> int:
        """Return how many bytes of z to push to a block at a time."""
        return max(1, min(self.memory // 8, _LARGEST_WINDOW))

    def strip(self, weighted: bool) -> int:
        """Return how many links to sort at a time."""
        each = _STRIP_LINK + weighted * _WEIGHT_STRIP_LINK
        return max(1, min(self.memory // 6 // each, _LARGEST_STRIP))


def plan_ranks(
    graph: Graph,
    memory: int,
    weighted: bool = False,
    blocks: int | None = None,
    trust: bool = False,
) -> RankRoom:
    """Plan PageRank in memory or in blocks. ``blocks`` requests a number of blocks; ``trust``
    adds ranks by trusted nodes.

    Raises :class:`UsageError` for a graph without nodes, and :class:`ResourceError` if the memory
    is too small for any number of blocks, or for the requested number.
    """
    nodes = graph.nodes
    if nodes == 0:
        raise UsageError(f"{graph.path} has no nodes, so there is nothing to rank")
    if blocks is not None and (type(blocks) is not int or blocks < 1):
        raise UsageError(f"blocks is {blocks!r}; it must be a whole number, 1 or more")
    links = links_of(graph, "in", weighted=weighted)
    halves = 1 + (graph.edges >= LEAST_IN_HALVES)
    more = weighted * _WEIGHT_NODE + trust * _TRUST_NODE + (halves - 1) * _COPY_NODE
    whole = (_NODE + more) * nodes + 2 * links.link_bytes * links.edges
    if blocks is None and whole <= memory:
        counted = (_TAKEN_NODE + more) * nodes + _TAKEN_LINKING * _linking(graph)
        counted += 2 * links.link_bytes * links.edges
        return RankRoom(whole, taken=min(whole, counted), halves=halves)
    if memory < LEAST:
        raise ResourceError(
            f"PageRank needs at least {format_least(min(LEAST, whole))} of memory, with any number "
            f"of blocks; {short_of(memory)}"
        )
    size = 8 * (nodes + _linking(graph))
    # The cut between the halves adds a block.
    count = min(max(blocks or -(-size // RankRoom(memory).block) + halves - 1, halves), nodes)
    block = -(-size // (count - halves + 1))
    if RankRoom(memory).block < block:
        blocks_need = f"{count} blocks need" if count > 1 else "1 block needs"
        raise ResourceError(
            f"{blocks_need} {format_least(_memory_of(block))} of memory; {short_of(memory)}, or "
            "request more blocks with --blocks (blocks=...)"
        )
    scratch = (_SCRATCH_NODE + weighted * _WEIGHT_SCRATCH_NODE + trust * _TRUST_NODE) * nodes
    scratch += (8 + 8 * weighted) * links.edges
    room = min(memory, _memory_of(block) + _BESIDE)
    # A single block needs no sorting and reads no other block's contributions.
    taken = min(room, block + _TAKEN_STREAMS) if count == 1 else None
    return RankRoom(room, count, scratch, taken, halves)


def _memory_of(block: int) -> int:
    """Return the memory needed for blocks of ``block`` bytes."""
    return max(LEAST, min(5 * block, 2 * block + _STREAMS))


def _linking(graph: Graph) -> int:
    """Return the number of nodes with out-links."""
    count = 0
    for part in pieces(0, graph.nodes, graph.out_degrees):
        count += int(np.count_nonzero(graph.out_degrees[part]))
    return count
