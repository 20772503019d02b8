"""Writing links: ascending keys, as a stream, to the arrays of in-links and of out-degrees.

A key is destination * 2**32 + source. Duplicates are dropped, and links from a node to itself
unless they are to be kept.

Cost: a pass over the keys; 4 bytes a node in memory, and one piece of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.graph.graph import DEGREES, OFFSETS, SOURCES
from cocite.store import ArrayWriter, Entry

__all__ = ["write_links"]

_ROWS = 1 << 20


def write_links(
    directory: Path, keys: Iterator[NDArray[np.uint64]], nodes: int, keep_self_loops: bool
) -> tuple[int, int, dict[str, Entry]]:
    """Stream ascending keys into the three arrays; returns edges, self-loops dropped, entries.

    A self-loop that is dropped is counted as often as it was read, so that rows = edges +
    duplicates + self-loops (twice the rows of an undirected graph).
    """
    from cocite.kernels.links import add_counts

    degrees = np.zeros(nodes, np.uint32)
    edges, loops = 0, 0
    next_node = 0
    previous = np.empty(0, np.uint64)
    with (
        ArrayWriter(directory / OFFSETS, np.uint64) as offsets,
        ArrayWriter(directory / SOURCES, np.uint32) as sources,
    ):
        for piece in keys:
            destination = (piece >> np.uint64(32)).astype(np.uint32)
            source = (piece & np.uint64(0xFFFFFFFF)).astype(np.uint32)
            keep = _changes(piece, previous)
            if not keep_self_loops:
                loop = source == destination
                loops += int(loop.sum())
                keep &= ~loop
            previous = piece[-1:]
            destination, source = destination[keep], source[keep]
            if source.size:
                last = int(destination[-1])
                for low in range(next_node, last + 1, _ROWS):
                    reached = np.arange(low, min(low + _ROWS, last + 1), dtype=np.uint32)
                    begins = np.searchsorted(destination, reached).astype(np.uint64)
                    offsets.write(begins + np.uint64(edges))
                next_node = last + 1
                sources.write(source)
                add_counts(source, degrees)
                edges += source.size
        for low in range(next_node, nodes + 1, _ROWS):
            offsets.write(np.full(min(_ROWS, nodes + 1 - low), edges, np.uint64))
    with ArrayWriter(directory / DEGREES, np.uint32) as out:
        out.write(degrees)
    files = {OFFSETS: offsets.finished, SOURCES: sources.finished, DEGREES: out.finished}
    return edges, loops, files


def _changes(piece: NDArray[np.uint64], previous: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it, which for the first is in ``previous``."""
    changes = np.ones(piece.size, bool)
    changes[1:] = piece[1:] != piece[:-1]
    if previous.size and piece.size:
        changes[0] = piece[0] != previous[0]
    return changes
