"""In-links, out-links, or both merged, as rows of neighbors.

The neighbors of node v are ``neighbors[offsets[v] : offsets[v + 1]]``, ascending. In-links are
mapped from the stored graph. Out-links are computed by a counting sort: the out-degrees give the
row offsets, and one pass over the in-links appends each link to its row.

Out-links cost one pass over the links with a random write per link. They take 4 bytes per link (8
with weights), 8 per node, and up to 8 more per node temporarily. If memory is short, the result
goes to an unnamed scratch file, written in blocks of sources with one pass per block. A block holds
at least a 128th of the links, so about 128 passes suffice. The result is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, ResourceError
from cocite.graph.blocks import InBlocks, InLinks, Links, cut_blocks
from cocite.resources import available, format_least, short_of
from cocite.storage import AROUND, evict
from cocite.storage.spool import Scratch

_LEAST_BLOCK, _PIECE = 8 << 20, 8 << 20
"""Minimum bytes of rows to write at a time; bytes of rows to read at a time."""
_LEAST_PART, _CURSOR = 128, 8
"""Minimum block size, as a fraction 1/n of all links; additional bytes per node of a block."""
_OFFSETS = 1 << 17
"""Offsets to compute at a time."""
_NO_WEIGHTS = np.empty(0, np.float32)
Progress = Callable[[int, int], None]


def _silent(done: int, total: int) -> None:
    """No-op callback."""


def in_links(graph: InLinks, *, weighted: bool = False) -> Links:
    """Map the in-links of each node. ``weighted`` includes the weights of a weighted graph."""
    return Links(graph.in_offsets, graph.in_sources, graph.in_weights if weighted else None)


def links_of(
    graph: InLinks,
    direction: str,
    memory: int | None = None,
    progress: Progress = _silent,
    *,
    weighted: bool = False,
    keep: int | None = None,
) -> Links:
    """Return the neighbors of each node in a direction. For a partitioned graph, returns a
    placeholder (``graph/partitions.py``).

    Parameters
    ----------
    graph
        The stored graph.
    direction
        ``in``, ``out``, ``any``, or ``both`` (in-links with the out-links as their ``back``).
        ``any`` merges the neighbors of both directions; a neighbor linked both ways, or a
        self-loop, occurs twice, with the in-link first.
    memory
        Maximum bytes to use, by default half of the available memory. Links that need more go to a
        scratch file, in the graph's directory if that is writable. In-links take no memory.
    progress
        Called with (done, total), which count nodes with links already read, over all passes.
    weighted
        Include the weights of a weighted graph.
    keep
        Maximum bytes of ``memory`` that the result may occupy, by default all. A larger result
        goes to a scratch file.

    Raises
    ------
    Damaged
        The graph's out-degrees do not match its links.
    ResourceError, UsageError
    """
    if direction not in ("in", "out", "any", "both"):
        raise ValueError(direction)
    if isinstance(graph, InBlocks):
        return graph.links(direction, weighted)
    ins = in_links(graph, weighted=weighted)
    if direction == "in":
        return ins
    memory = available() // 2 if memory is None else memory
    graph.check()
    try:
        outs = transpose(ins, graph.out_degrees, memory, graph.path, progress, keep)
    except _Miscounted:
        what = "its out-degrees do not match its links"
        raise Damaged.graph(graph.path, what) from None
    if direction == "out":
        return outs
    if direction == "both":
        return replace(ins, back=outs)
    return _merged(graph, ins, outs, memory if keep is None else min(memory, keep))


def _merged(graph: InLinks, ins: Links, outs: Links, kept: int) -> Links:
    """Merge in-links and out-links. More than ``kept`` bytes go to a scratch file."""
    from cocite.kernels.links import merge

    on_disk = kept < 2 * ins.nbytes + outs.nbytes
    scratch = Scratch.near(graph.path) if on_disk else Scratch(None)
    offsets = scratch.zeros(ins.nodes + 1, np.uint64)
    for low in range(0, offsets.size, _OFFSETS):
        part = slice(low, low + _OFFSETS)
        np.add(ins.offsets[part], outs.offsets[part], out=offsets[part])
        if scratch.on_disk:
            evict(ins.offsets, outs.offsets, offsets)
    neighbors = scratch.zeros(2 * ins.edges, np.uint32)
    weights = None if ins.weights is None else scratch.zeros(2 * ins.edges, np.float32)
    merged = Links(offsets, neighbors, weights)
    for first, last in pairwise((0, *cut_blocks(merged, _PIECE), ins.nodes)):
        sound = merge(*(_rows(links, first, last) for links in (ins, outs, merged)))
        if not sound:
            raise Damaged.graph(graph.path, "some links point outside the graph")
        if scratch.on_disk:
            for links in (ins, outs, merged):
                links.evict()
    return merged


def _rows(links: Links, first: int, last: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return offsets, neighbors and weights of the rows [first, last) for a kernel."""
    weights = _NO_WEIGHTS if links.weights is None else links.weights
    return links.offsets[first : last + 1], links.neighbors, weights


def least_transpose(whole: int = 0) -> int:
    """Return the minimum memory of :func:`transpose` for ``whole`` bytes of links."""
    return _PIECE + max(_LEAST_BLOCK, whole // _LEAST_PART)


class _Miscounted(Exception):
    """The given degrees do not match the links."""


def transpose(
    links: Links,
    degrees: NDArray[np.uint32],
    memory: int,
    folder: Path,
    progress: Progress = _silent,
    keep: int | None = None,
) -> Links:
    """Return the transposed links. ``degrees`` uint32[nodes] is how often each node is a neighbor.

    A result that exceeds ``memory`` bytes, or ``keep``, goes to a scratch file in ``folder``.
    Mapped ``links`` are released after reading if memory cannot hold them and the result.
    ``progress`` is called as in :func:`links_of`.
    """
    nodes = links.nodes
    whole = links.nbytes + _CURSOR * nodes
    least = least_transpose(whole)
    if memory < min(whole, least):
        raise ResourceError(
            f"transposing {links.edges:,} links takes at least {format_least(least)} of memory; "
            f"{short_of(memory)}"
        )
    kept = memory if keep is None else min(memory, keep)
    scratch = Scratch(None) if kept >= whole else Scratch.near(folder)
    offsets = scratch.zeros(nodes + 1, np.uint64)
    for low in range(0, nodes, _OFFSETS):
        part = offsets[low + 1 : low + 1 + _OFFSETS]
        np.cumsum(degrees[low : low + _OFFSETS], out=part)
        part += offsets[low]
        if scratch.on_disk:
            evict(offsets, degrees)
    if int(offsets[-1]) != links.edges:
        raise _Miscounted
    neighbors = scratch.zeros(links.edges, np.uint32)
    weights = None if links.weights is None else scratch.zeros(links.edges, links.weights.dtype)
    turned = Links(offsets, neighbors, weights)
    cuts: tuple[int, ...] = ()
    give_back = scratch.on_disk or memory < whole + links.nbytes
    piece = _PIECE
    if scratch.on_disk:
        # Reading and writing rows also loads file pages next to them, at either end.
        piece = min(_PIECE, memory // 8)
        around = 2 * AROUND * (1 + (weights is not None))
        cuts = cut_blocks(turned, max(memory - piece - around, least - _PIECE), _CURSOR)
    for number, (first, last) in enumerate(pairwise((0, *cuts, nodes))):
        for read in _fill(links, turned, (first, last), piece, give_back):
            progress(number * nodes + read, (len(cuts) + 1) * nodes)
    return turned


def _fill(
    links: Links, turned: Links, rows: tuple[int, int], piece: int, give_back: bool
) -> Iterator[int]:
    """Fill ``rows`` of ``turned`` in one pass over ``links``; yield the nodes read so far."""
    from cocite.kernels.links import turn

    first, last = rows
    begins, neighbors, weights = _rows(turned, first, last)
    cursors = begins[:-1].copy()
    for low, high in pairwise((0, *cut_blocks(links, piece), links.nodes)):
        read, place = _rows(links, low, high), (np.uint64(low), np.uint64(first))
        turn(*read, *place, cursors, neighbors, weights)
        if give_back:
            links.evict()
        yield high
    if not np.array_equal(cursors, begins[1:]):
        raise _Miscounted
    if give_back:
        turned.evict()
