"""Merging the rows of consecutive node ranges.

A row contains graph ids and depends only on the graph and the settings, so rows are copied
unchanged, in one pass. Merging needs memory for chunks of files, and 12 bytes per node and family.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph.blocks import Links
from cocite.graph.links import transpose
from cocite.index.layouts.batch_maker import ArrayFiles
from cocite.index.layouts.part import StoredPart
from cocite.storage import evict

READ = 2 << 20
"""Number of entries to read and write at a time."""


def join_rows(
    files: ArrayFiles,
    parts: Sequence[StoredPart],
    nodes: int,
    names: tuple[str, str, str],
    sums: Sequence[str],
    same: Sequence[str] = (),
) -> int:
    """Write the rows of all graph nodes from the parts of ranges; return the number of families.

    ``names`` are the file names of offsets, ids and values; ``sums`` are arrays with a row for each
    node and family; ``same`` are arrays that must be equal in all parts. Raises :class:`Damaged`.
    """
    offsets, ids, values = names
    for part in parts:
        part.store.require(*(part.prefix + name for name in (*names, *sums, *same)))
    common = {name: parts[0].array(name) for name in same}
    families = (parts[0].array(offsets).size - 1) // parts[0].nodes
    counts = [np.zeros(1, np.uint64)]
    found: dict[str, list[NDArray[Any]]] = {name: [] for name in sums}
    with ExitStack() as stack:
        writers = [
            stack.enter_context(files.writer(name, parts[0].array(name).dtype))
            for name in (ids, values)
        ]
        for family in range(families):
            for part in parts:
                for name, array in common.items():
                    if not np.array_equal(part.array(name), array):
                        raise part.damaged_file(name)
                rows = slice(family * part.nodes, (family + 1) * part.nodes)
                arrays = part.array(ids), part.array(values)
                begins = part.array(offsets)[rows.start : rows.stop + 1]
                if (begins[1:] < begins[:-1]).any() or begins[-1] > arrays[0].size:
                    raise part.damaged_file(offsets)
                counts.append(np.diff(begins))
                for name in sums:
                    found[name].append(part.array(name)[rows])
                for low in range(int(begins[0]), int(begins[-1]), READ):
                    piece = slice(low, min(low + READ, int(begins[-1])))
                    if int(arrays[0][piece].max()) >= nodes:
                        raise part.damaged_file(ids)
                    for writer, array in zip(writers, arrays, strict=True):
                        writer.write(array[piece])
                    evict(*arrays)
    files.write(offsets, np.uint64, np.cumsum(np.concatenate(counts), dtype=np.uint64))
    for name, pieces in found.items():
        files.write(name, pieces[0].dtype, np.concatenate(pieces))
    for name, array in common.items():
        files.write(name, array.dtype, array)
    return families


def columns_of(rows: Links, nodes: int, memory: int, directory: Path) -> Links:
    """Return the transpose of mapped rows, for all ``nodes`` graph nodes. Evicts what it reads."""
    from cocite.kernels.links import add_counts

    begin, end = int(rows.offsets[0]), int(rows.offsets[-1])
    square = np.full(nodes + 1, end - begin, np.uint64)
    square[: rows.nodes + 1] = rows.offsets - rows.offsets[0]
    counts = np.zeros(nodes, np.uint32)
    for low in range(begin, end, READ):
        piece = rows.neighbors[low : min(low + READ, end)]
        add_counts(piece, counts)
        evict(piece)
    assert rows.weights is not None
    rows = Links(square, rows.neighbors[begin:end], rows.weights[begin:end])
    memory = max(memory - 24 * nodes - 5 * READ, 8 * nodes + 8 * READ)
    memory = min(memory, rows.nbytes + 8 * nodes)  # reading releases its memory
    return transpose(rows, counts, memory, directory)
