"""Joining rows of ranges of nodes, which follow each other, into those of all nodes.

A row is a function of the graph and the settings, in ids of the graph, so rows are copied as they
are. Cost: a pass over them. Memory: pieces of files, and 12 bytes a node and family.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from cocite.index.layouts.batch_maker import ArrayFiles
from cocite.index.layouts.part import StoredPart
from cocite.storage import evict

_COPIED = "rows.offsets", "rows.ids", "rows.codes", "norms", "weights", "scales"
_READ = 2 << 20
"""Entries that are read and written at a time."""


def join_rows(files: ArrayFiles, parts: Sequence[StoredPart], nodes: int) -> int:
    """Write the rows of all ``nodes`` of the graph out of the parts of ranges; returns the number
    of families. Raises :class:`Damaged` for what no build has written.
    """
    for part in parts:
        part.store.require(*(part.prefix + name for name in _COPIED))
    common = {name: parts[0].array(name) for name in ("weights", "scales")}
    counts, norms = [np.zeros(1, np.uint64)], []
    with ExitStack() as stack:
        to_ids = stack.enter_context(files.writer("rows.ids", np.uint32))
        to_codes = stack.enter_context(files.writer("rows.codes", np.uint8))
        for family in range(common["weights"].size):
            for part in parts:
                for name, array in common.items():
                    if not np.array_equal(part.array(name), array):
                        raise part.damaged_file(name)
                rows = slice(family * part.nodes, (family + 1) * part.nodes)
                ids, codes = part.array("rows.ids"), part.array("rows.codes")
                begins = part.array("rows.offsets")[rows.start : rows.stop + 1]
                if (begins[1:] < begins[:-1]).any() or begins[-1] > ids.size:
                    raise part.damaged_file("rows.offsets")
                counts.append(np.diff(begins))
                norms.append(part.array("norms")[rows])
                for low in range(int(begins[0]), int(begins[-1]), _READ):
                    piece = slice(low, min(low + _READ, int(begins[-1])))
                    if int(ids[piece].max()) >= nodes:
                        raise part.damaged_file("rows.ids")
                    to_ids.write(ids[piece])
                    to_codes.write(codes[piece])
                    evict(ids, codes)
    files.write("rows.offsets", np.uint64, np.cumsum(np.concatenate(counts), dtype=np.uint64))
    files.write("norms", np.uint32, np.concatenate(norms))
    for name in ("scales", "weights"):
        files.write(name, np.float64, common[name])
    return common["weights"].size
