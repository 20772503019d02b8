"""Split a stored graph into a partitioned graph, in one pass over its links."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from cocite.errors import NotAStore, OutputExists, StoreError, UsageError
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, WEIGHTS, Links, cut_evenly
from cocite.graph.graph import Graph
from cocite.graph.name_files import NAME_FILES, TITLE_FILES
from cocite.graph.partitions import BLOCK, BLOCKED, HEAD, folder_of, is_blocked
from cocite.storage import ArrayWriter, Entry, Manifest, Store, disk, evict, kind_of
from cocite.storage.atomic import staged_folder
from cocite.storage.staging import Staging, copy_array

_PIECE = 1 << 20


def split(
    graph: Graph,
    output: str | os.PathLike[str],
    blocks: int,
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Path:
    """Split ``graph`` into ``blocks`` blocks of about equal size, or fewer if the graph is small;
    return the path of ``output``. ``progress`` is called with (done, total), in links. Raises
    :class:`UsageError` and :class:`StoreError`.
    """
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
            check_output(path, overwrite)  # another process may have created it
            if os.path.lexists(path):
                disk.exchange(beside, path)
            else:
                disk.rename_new(beside, path)
            disk.sync_directory(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be created: {error.strerror}. Choose another output"
        ) from error
    return path


def check_output(output: str | os.PathLike[str], overwrite: bool) -> Path:
    """Check that ``output`` is free, or a partitioned graph to replace; return its path."""
    path = Path(output)
    if not path.name:
        raise UsageError(f"{str(output)!r} is not a valid name for a directory")
    if not os.path.lexists(path):
        return path
    if not overwrite:
        raise OutputExists.already(path)
    if path.is_symlink() or not is_blocked(path):
        raise NotAStore.in_the_way(path, "graph stored in blocks")
    strange = {
        entry.name
        for entry in path.iterdir()
        if kind_of(entry) != (BLOCKED if entry.name == HEAD else BLOCK)
        or Store.open(entry, BLOCKED if entry.name == HEAD else BLOCK).surplus()
    }
    if strange:
        raise OutputExists(
            f"{path} contains files that do not belong to the graph and would be lost "
            f"({', '.join(sorted(strange)[:3])}). Move them, or choose another output"
        )
    return path


def _write_block(path: Path, graph: Graph, place: tuple[int, int, int]) -> None:
    block, first, last = place
    begin, end = (int(graph.in_offsets[node]) for node in (first, last))
    with Staging(path, BLOCK) as draft:
        files = {
            OFFSETS: _copy(draft.path / OFFSETS, graph.in_offsets, first, last + 1, less=begin),
            SOURCES: _copy(draft.path / SOURCES, graph.in_sources, begin, end),
            DEGREES: _copy(draft.path / DEGREES, graph.out_degrees, first, last),
        }
        if graph.in_weights is not None:
            files[WEIGHTS] = _copy(draft.path / WEIGHTS, graph.in_weights, begin, end)
        facts = {
            "nodes": graph.nodes,
            "block": block,
            "first": first,
            "last": last,
            "edges": end - begin,
            "digest": graph.digest,
        }
        draft.publish(Manifest(BLOCK, facts, files))


def _copy(path: Path, array: NDArray[Any], low: int, high: int, less: int = 0) -> Entry:
    """Write ``array[low:high] - less``, chunk by chunk."""
    with ArrayWriter(path, array.dtype) as writer:
        for begin in range(low, high, _PIECE):
            piece = array[begin : min(begin + _PIECE, high)]
            writer.write(piece - array.dtype.type(less) if less else piece)
            evict(piece)
    return writer.finished


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
