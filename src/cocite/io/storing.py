"""From loaded links to the files of a stored graph, as a stream.

    number the names -> leave pages out -> sort by (destination, source) -> drop duplicates -> write

Self-loops are dropped unless asked for, duplicates always; both are counted, and a node that is
named only by such a link is still a node. Weights of duplicates are added, the smallest first; or
the weight of a link is how often it was read, which takes a second pass over the sorted links.

Memory beyond DuckDB's: 4 bytes a node for the out-degrees, and a few pieces.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, write_weights
from cocite.graph.excluded import nothing_left
from cocite.graph.name_files import joined_names, write_text_names
from cocite.graph.names import BY_NAME, VALUES
from cocite.graph.sides import SIDES, Sides
from cocite.io.readers.contract import Progress, ReadOptions
from cocite.storage import ArrayWriter, Entry

if TYPE_CHECKING:
    from cocite.io.tables import Tables

_ROWS = 1 << 20

_Piece = TypeVar("_Piece", NDArray[Any], tuple[NDArray[Any], NDArray[Any]])


def store_links(
    directory: Path, tables: Tables, options: ReadOptions, progress: Progress
) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Write what is loaded into ``directory``; returns the facts that come of it, and the files."""
    progress("numbering the names", 0, 0)
    mark = tables.mark(options.sides[0]) if options.sides else ""
    count = tables.number()
    left_out = tables.cut()
    if left_out is not None and not count:
        raise nothing_left(left_out.nodes)
    dense = tables.dense(count)
    kind = "dense" if dense else "integers" if tables.integers else "text"
    progress("sorting the links", 0, 0)
    read = tables.sort(dense, options.undirected)
    keys = _counted(tables.link_keys(), "writing the links", read, progress)
    edges, loops, files = _write_links(directory, keys, count, options.keep_self_loops)
    weights = {}
    if tables.weighted or options.count_duplicates:
        found = tables.weighted_links() if tables.weighted else _ones(tables, options.undirected)
        pairs = _counted(found, "writing the weights", read, progress)
        weights["weights"], entry = write_weights(directory, pairs, options.keep_self_loops)
        files |= entry
    progress("storing the names", 0, 0)
    files |= _write_names(directory, tables, kind, count)
    facts = graph_facts(count, edges, kind, options, read - edges - loops, loops) | weights
    if options.sides:
        left = tables.marked()
        facts[SIDES] = Sides(options.sides, mark, left, count - left).to_json()
    if left_out is not None:
        left_out.tell()
        facts["excluded"] = left_out.to_json()
    return facts, files


def graph_facts(
    nodes: int, edges: int, names: str, options: ReadOptions, duplicates: int, loops: int
) -> dict[str, Any]:
    """What the manifest says of any graph's links, however they were sorted; ``duplicates`` and
    ``loops`` are those that were dropped.
    """
    return {
        "nodes": nodes,
        "edges": edges,
        "names": names,
        "undirected": options.undirected,
        "self_loops_kept": options.keep_self_loops,
        "dropped": {"duplicates": duplicates, "self_loops": loops},
    }


def _ones(
    tables: Tables, undirected: bool
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64]]]:
    """The keys in ascending order, each with 1; both ways of a self-loop are one link, so that each
    counts half.
    """
    for keys in tables.link_keys():
        loop = keys >> np.uint64(32) == keys & np.uint64(0xFFFFFFFF)
        yield keys, np.where(loop & undirected, 0.5, 1.0)


def _counted(
    pieces: Iterator[_Piece], stage: str, total: int, progress: Progress
) -> Iterator[_Piece]:
    """``pieces``, arrays or tuples of equally long ones, with their rows told to ``progress``."""
    done = 0
    progress(stage, 0, total)
    for piece in pieces:
        yield piece
        done += len(piece[0] if isinstance(piece, tuple) else piece)
        progress(stage, done, total)


def _write_links(
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


def _write_names(directory: Path, tables: Tables, kind: str, count: int) -> dict[str, Entry]:
    """Write the names of ``tables`` as ``kind``: dense, integers or text; returns the entries."""
    files: dict[str, Entry] = {}
    if kind == "integers":
        with ArrayWriter(directory / VALUES, np.uint64) as values:
            for piece in tables.integer_names():
                values.write(piece)
        files[VALUES] = values.finished
    elif kind == "text":
        files |= write_text_names(directory, tables, map(joined_names, tables.text_names()))
        if tables.has_urls():
            with ArrayWriter(directory / BY_NAME, np.uint32) as by_name:
                for ids in tables.ids_by_name():
                    by_name.write(ids)
            files[BY_NAME] = by_name.finished
    return files
