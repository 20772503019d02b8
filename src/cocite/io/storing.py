"""Stream loaded links into the files of a stored graph.

    number the names -> sort by (destination, source) -> drop duplicates -> write

Duplicates are always dropped; self-loops are dropped unless requested; both are counted. A node
whose only link was dropped remains. The weights of duplicates are added in ascending order in
float64, and their sum is stored as float32, so the bytes do not depend on threads, memory or chunk
boundaries. With ``count_duplicates``, a link's weight is the number of its occurrences.

In addition to DuckDB's memory, this takes 4 bytes per node for the out-degrees, and a few chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError
from cocite.graph.blocks import link_writer
from cocite.graph.name_files import BY_NAME, VALUES, joined_names, write_text_names
from cocite.graph.sides import SIDES, Sides
from cocite.io.readers.contract import Progress, ReadOptions
from cocite.storage import Entry, write_array

if TYPE_CHECKING:
    from cocite.io.tables import Tables

_ROWS = 1 << 20

_LARGEST = float(np.finfo(np.float32).max)

_Weights = NDArray[np.float64] | None
_Pieces = Iterator[tuple[NDArray[np.uint64], _Weights]]
"""Ascending keys, destination * 2**32 + source, with weights if weighted."""


def store_links(
    directory: Path, tables: Tables, options: ReadOptions, progress: Progress
) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Write the loaded links into ``directory``; return the facts and the files."""
    progress("numbering the names", 0, 0)
    mark = tables.mark(options.sides[0]) if options.sides else ""
    count = tables.number()
    dense = tables.dense(count)
    kind = "dense" if dense else "integers" if tables.integers else "text"
    progress("sorting the links", 0, 0)
    read = tables.sort(dense, options.undirected)
    weighted = tables.weighted or options.count_duplicates
    pieces = counted(tables.links(), "writing the links", read, progress)
    edges, loops, weights, files = write_links(directory, pieces, count, options, weighted=weighted)
    progress("storing the names", 0, 0)
    files |= _write_names(directory, tables, kind, count)
    facts = graph_facts(count, edges, kind, options, read - edges - loops, loops) | weights
    if options.sides:
        left = tables.marked()
        facts[SIDES] = Sides(options.sides, mark, left, count - left).to_json()
    return facts, files


def graph_facts(
    nodes: int, edges: int, names: str, options: ReadOptions, duplicates: int, loops: int
) -> dict[str, Any]:
    """Return the manifest's facts about the links; ``duplicates`` and ``loops`` were dropped."""
    return {
        "nodes": nodes,
        "edges": edges,
        "names": names,
        "undirected": options.undirected,
        "self_loops_kept": options.keep_self_loops,
        "dropped": {"duplicates": duplicates, "self_loops": loops},
    }


def counted(pieces: _Pieces, stage: str, total: int, progress: Progress) -> _Pieces:
    """Yield ``pieces``, and report the number of links so far to ``progress``."""
    done = 0
    progress(stage, 0, total)
    for keys, weights in pieces:
        yield keys, weights
        done += keys.size
        progress(stage, done, total)


def write_links(
    directory: Path, pieces: _Pieces, nodes: int, options: ReadOptions, *, weighted: bool
) -> tuple[int, int, dict[str, Any], dict[str, Entry]]:
    """Write ascending keys as arrays; return (edges, dropped self-loops, weight facts, files).

    Duplicates of a dropped self-loop count as self-loops, so edges + duplicates + self-loops is the
    number of rows, or twice that for an undirected graph. With ``count_duplicates``, the two
    directions of an undirected self-loop count as one link.
    """
    loops = next_node = 0
    with link_writer(directory, np.zeros(nodes, np.uint32), weighted=weighted) as out:
        for keys, counts, added in _distinct(pieces):
            destination = (keys >> np.uint64(32)).astype(np.uint32)
            source = (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32)
            loop = source == destination
            sums = added
            if options.count_duplicates:
                sums = counts.astype(np.float64)
                sums[loop] /= 1 + options.undirected
            if not options.keep_self_loops:
                loops += int(counts[loop].sum())
                destination, source = destination[~loop], source[~loop]
                sums = None if sums is None else sums[~loop]
            if not source.size:
                continue
            last = int(destination[-1])
            for low in range(next_node, last + 1, _ROWS):
                reached = np.arange(low, min(low + _ROWS, last + 1), dtype=np.uint32)
                out.add_rows(np.searchsorted(destination, reached))
            next_node = last + 1
            out.add_links(source, None if sums is None else _stored(sums))
        for low in range(next_node, nodes, _ROWS):
            out.add_rows(np.zeros(min(_ROWS, nodes - low), np.uint64))
    return out.edges, loops, out.facts, out.files


def _distinct(pieces: _Pieces) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int64], _Weights]]:
    """Yield (distinct keys, their counts, sums of their weights)."""
    from cocite.kernels.links import sum_runs

    key, count = np.empty(0, np.uint64), 0
    total: _Weights = np.empty(0, np.float64)
    for piece, weights in pieces:
        keys = np.concatenate([key, piece])
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        counts = np.diff(starts, append=keys.size)
        counts[0] += count - key.size
        sums: _Weights = None
        if weights is not None and total is not None:
            sums = np.empty(starts.size)
            sum_runs(starts, np.concatenate([total, weights]), sums)
        yield keys[starts[:-1]], counts[:-1], None if sums is None else sums[:-1]
        key, count = keys[-1:], int(counts[-1])
        total = None if sums is None else sums[-1:]
    if key.size:
        yield key, np.array([count]), total


def _stored(sums: NDArray[np.float64]) -> NDArray[np.float32]:
    if sums.max() > _LARGEST:
        raise InputError(
            f"the weights of one link's duplicates add up to {sums.max():g}; the maximum is "
            f"{_LARGEST:g}. Scale all weights down"
        )
    return sums.astype(np.float32)


def _write_names(directory: Path, tables: Tables, kind: str, count: int) -> dict[str, Entry]:
    """Write the names as ``kind`` (dense, integers or text); return the files."""
    files: dict[str, Entry] = {}
    if kind == "integers":
        files[VALUES] = write_array(directory / VALUES, np.uint64, tables.integer_names())
    elif kind == "text":
        files |= write_text_names(
            directory, tables.sort_hashes, map(joined_names, tables.text_names())
        )
        if tables.has_urls():
            files[BY_NAME] = write_array(directory / BY_NAME, np.uint32, tables.ids_by_name())
    return files
