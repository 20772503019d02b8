"""Ingest to a graph in blocks: a stored graph is cut, or what is read is stored, then cut.

Cost: that of ``io/ingest.py``, and a pass over the links. What is stored on the way lies beside the
output, and goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.errors import NotAStore, OutputExists, StoreError, UsageError
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, WEIGHTS, Links, cut_evenly
from cocite.graph.graph import Graph
from cocite.graph.name_files import TITLE_FILES
from cocite.graph.names import NAME_FILES
from cocite.graph.partitions import (
    BLOCK,
    BLOCKED,
    HEAD,
    MOST_BLOCKS,
    BlockedGraph,
    folder_of,
    is_blocked,
)
from cocite.io.ingest import ingest
from cocite.io.readers.contract import Progress, no_progress
from cocite.storage import (
    ArrayWriter,
    Entry,
    Manifest,
    Staging,
    Store,
    copy_array,
    disk,
    evict,
    kind_of,
)
from cocite.storage.atomic import staged_folder

_PIECE = 1 << 20


def ingest_blocks(
    inputs: Any,
    output: str | os.PathLike[str],
    blocks: int,
    *,
    overwrite: bool = False,
    progress: Progress = no_progress,
    **options: Any,
) -> BlockedGraph:
    """Store links in ``blocks`` blocks in the folder ``output``: those of a stored graph, if that
    is all of ``inputs`` and there are no ``options``, or what :func:`cocite.ingest` reads.

    Raises what that does, and :func:`~cocite.io.partitions.split`.
    """
    path = check_output(output, overwrite)
    checked_blocks(blocks)

    def cut(graph: Graph) -> BlockedGraph:
        split(
            graph,
            path,
            blocks,
            overwrite=overwrite,
            progress=lambda done, total: progress("cutting", done, total),
        )
        return BlockedGraph.open(path)

    named = [inputs] if isinstance(inputs, str | os.PathLike) else list(inputs or ())
    stored = len(named) == 1 and kind_of(os.fspath(named[0])) == "graph"
    if stored and options.get("exclude") is None:
        chosen = sorted(name for name, value in options.items() if value)
        if chosen:
            raise UsageError(
                f"{named[0]} is a stored graph, which is cut as it is: leave {', '.join(chosen)} "
                "out"
            )
        return cut(Graph.open(named[0]))
    with staged_folder(Path(os.fspath(path) + ".whole")) as folder:
        return cut(ingest(inputs, folder / path.name, progress=progress, **options))


# -- cutting a stored graph ----------------------------------------------------------------


def split(
    graph: Graph,
    output: str | os.PathLike[str],
    blocks: int,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Store ``graph`` in ``blocks`` blocks of about equal size, fewer if it has fewer nodes, in the
    folder ``output``; returns that.

    ``progress`` gets links (done, total). Raises :class:`UsageError`, :class:`OutputExists` and
    :class:`~cocite.errors.Damaged`.
    """
    checked_blocks(blocks)
    path = check_output(output, overwrite)
    graph.check()
    links = Links(graph.in_offsets, graph.in_sources, graph.in_weights)
    cuts = [0, *cut_evenly(links, blocks), graph.nodes]
    try:
        with staged_folder(path) as beside:
            for block, (first, last) in enumerate(pairwise(cuts)):
                _write_block(beside / folder_of(block), graph, (block, first, last))
                progress(int(graph.in_offsets[last]), graph.edges)
            _write_head(beside / HEAD, graph, cuts)
            disk.sync_directory(beside)
            check_output(path, overwrite)  # somebody may have put something there meanwhile
            if os.path.lexists(path):
                disk.exchange(beside, path)
            else:
                disk.rename_new(beside, path)
            disk.sync_directory(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be made: {error.strerror}. Choose another output"
        ) from error
    return path


def checked_blocks(blocks: int) -> int:
    """A number of blocks; raises :class:`UsageError` for one that is not allowed."""
    if type(blocks) is not int or not 1 <= blocks <= MOST_BLOCKS:
        raise UsageError(f"blocks is {blocks!r}; it is a whole number from 1 to {MOST_BLOCKS:,}")
    return blocks


def check_output(output: str | os.PathLike[str], overwrite: bool) -> Path:
    """See that nothing is there, or nothing but a graph in blocks that may be replaced."""
    path = Path(output)
    if not path.name:
        raise UsageError(f"{str(output)!r} names no directory that could be made")
    if not os.path.lexists(path):
        return path
    if not overwrite:
        raise OutputExists(
            f"{path} exists. Choose another output, or pass --overwrite (overwrite=True) to "
            "replace it when the new one is complete"
        )
    if path.is_symlink() or not is_blocked(path):
        raise NotAStore(
            f"{path} exists and is no graph stored in blocks: it will not be overwritten. Choose "
            "another output"
        )
    strange = {
        entry.name
        for entry in path.iterdir()
        if kind_of(entry) != (BLOCKED if entry.name == HEAD else BLOCK)
        or Store.open(entry, BLOCKED if entry.name == HEAD else BLOCK).surplus()
    }
    if strange:
        raise OutputExists(
            f"{path} holds what is not the graph's own and would be lost "
            f"({', '.join(sorted(strange)[:3])}). Move it elsewhere, or choose another output"
        )
    return path


def _write_block(path: Path, graph: Graph, place: tuple[int, int, int]) -> None:
    block, first, last = place
    begin, end = (int(graph.in_offsets[node]) for node in (first, last))
    with Staging(path, BLOCK) as draft:
        arrays: list[tuple[str, NDArray[Any], int, int, DTypeLike]] = [
            (SOURCES, graph.in_sources, begin, end, np.uint32),
            (DEGREES, graph.out_degrees, first, last, np.uint32),
        ]
        if graph.in_weights is not None:
            arrays.append((WEIGHTS, graph.in_weights, begin, end, np.float32))
        files: dict[str, Entry] = {}
        with ArrayWriter(draft.path / OFFSETS, np.uint64) as writer:
            for low in range(first, last + 1, _PIECE):
                piece = graph.in_offsets[low : min(low + _PIECE, last + 1)]
                writer.write(piece - np.uint64(begin))
                evict(piece)
        files[OFFSETS] = writer.finished
        for name, array, low_end, high_end, kind in arrays:
            with ArrayWriter(draft.path / name, kind) as writer:
                for low in range(low_end, high_end, _PIECE):
                    piece = array[low : min(low + _PIECE, high_end)]
                    writer.write(piece)
                    evict(piece)
            files[name] = writer.finished
        facts = {
            "nodes": graph.nodes,
            "block": block,
            "first": first,
            "last": last,
            "edges": end - begin,
            "digest": graph.digest,
        }
        draft.publish(Manifest(BLOCK, facts, files))


def _write_head(path: Path, graph: Graph, cuts: list[int]) -> None:
    stored = graph.store.manifest
    with Staging(path, BLOCKED) as draft:
        kept = (OFFSETS, DEGREES, NAME_FILES, TITLE_FILES)
        files = {name: entry for name, entry in stored.files.items() if name.startswith(kept)}
        for name, entry in files.items():
            copy_array(graph.store.path / name, draft.path / name, entry)
        facts = stored.facts | {
            "digest": graph.digest,
            "weighted": graph.in_weights is not None,
            "cuts": cuts,
        }
        draft.publish(Manifest(BLOCKED, facts, files))
