"""Scores to a file: all of them as an array, or the pairs that matter as a table.

``.npy`` is the full matrix by id, written row after row; ``.parquet``, ``.csv`` and ``.tsv`` have a
row a pair: each pair once if its score is large enough, or the best of every node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from cocite.allpairs.scores import Pairs, Scores
from cocite.graph.export import Columns, write_columns
from cocite.store import disk

__all__ = ["write_scores"]

Done = Callable[[int], None]


def write_scores(
    scores: Scores,
    path: Path,
    *,
    least: float,
    top: int | None = None,
    progress: Done = lambda nodes: None,
) -> None:
    """Write to ``path``, whose ending decides the form (see :mod:`cocite.graph.export`).

    ``least`` is the least score of a pair and ``top`` the number of pairs a node instead; neither
    is for ``.npy``. ``progress`` is called with the number of nodes done.
    """
    if path.suffix == ".npy":
        _write_matrix(scores, path, progress)
        return
    pairs = scores.best(top) if top else scores.pairs(least)
    kind = "FLOAT" if scores.dtype == np.float32 else "DOUBLE"
    types = {"node": "VARCHAR", "other": "VARCHAR", "score": kind}
    write_columns(path, _named(scores, pairs, progress), types)


def _named(scores: Scores, pairs: Iterator[Pairs], progress: Done) -> Iterator[Columns]:
    names = np.array(scores.names.names(np.arange(scores.nodes)), dtype=object)
    for batch in pairs:
        yield {"node": names[batch.nodes], "other": names[batch.others], "score": batch.scores}
        if batch.nodes.size:
            progress(int(batch.nodes[-1]) + 1)


def _write_matrix(scores: Scores, path: Path, progress: Done) -> None:
    """float32 or float64[nodes, nodes]; it appears under its name when it is whole."""
    beside = path.with_name(path.name + ".new")
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {
        "descr": np.lib.format.dtype_to_descr(scores.dtype),
        "fortran_order": False,
        "shape": (scores.nodes, scores.nodes),
    }
    try:
        with beside.open("wb+") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for node in range(scores.nodes):
                file.write(scores.row(node).tobytes())
                progress(node + 1)
            disk.sync_file(file)
        disk.rename(beside, path)
        disk.sync_directory(path.parent)
    finally:
        beside.unlink(missing_ok=True)
