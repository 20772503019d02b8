"""Ingest to a graph in blocks: a stored graph is cut, or what is read is stored, then cut.

Cost: that of ``ingest.py``, and a pass over the links. What is stored on the way lies beside the
output, and goes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from cocite.errors import UsageError
from cocite.graph.graph import Graph
from cocite.graph.in_blocks import BlockedGraph, check_output, checked_blocks, split
from cocite.graph.ingest import ingest
from cocite.graph.readers.options import Progress, no_progress
from cocite.store import kind_of
from cocite.store.beside import folder_beside

__all__ = ["ingest_blocks"]


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

    Raises what that does, and :func:`~cocite.graph.in_blocks.split`.
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
    with folder_beside(Path(os.fspath(path) + ".whole")) as folder:
        return cut(ingest(inputs, folder / path.name, progress=progress, **options))
