"""Leaving pages out: hubs, that are linked with all and tell nothing, or whatever is not to count.

The pages vanish, with all links to and from them; pages that were linked with these alone stay,
without links. While links are ingested DuckDB does it (``tables.py``). Here it is done to a graph
that is stored already: rows are read block by block and written without those links, ids are given
anew in the same order. What comes of it is, to the byte, the graph of the links without the pages.

Cost: a pass over the links and one over the names.
Memory: 9 bytes a node, 12 a name that stays, and a block of links.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph.blocks import cut_blocks
from cocite.graph.graph import Graph
from cocite.graph.left_out import LeftOut, nothing_left
from cocite.graph.readers.options import Progress
from cocite.graph.rows import DEGREES, OFFSETS, SOURCES, WEIGHTS, Links
from cocite.graph.sides import SIDES
from cocite.graph.some_names import write_some_names
from cocite.graph.titles.files import write_some_titles
from cocite.graph.weights import WeightFacts
from cocite.store import ArrayWriter, Draft, Entry, Manifest

__all__ = ["leave_out"]

_PIECE = 8 << 20
"""Bytes of links that are read at a time."""


def leave_out(
    graph: Graph,
    output: str,
    names: tuple[str, ...],
    *,
    overwrite: bool,
    progress: Progress,
) -> Path:
    """Store ``graph`` without the pages called ``names`` in the directory ``output``.

    Raises :class:`UsageError`, :class:`~cocite.errors.Damaged`,
    :class:`~cocite.errors.OutputExists` or :class:`~cocite.errors.Busy`.
    """
    graph.check()
    with Draft(output, "graph", overwrite=overwrite) as draft:
        progress("looking up the names", 0, 0)
        found = [graph.names.find(name) for name in names]
        unknown = [name for name, node in zip(names, found, strict=True) if node is None]
        keep = np.ones(graph.nodes, bool)
        keep[[node for node in found if node is not None]] = False
        ids = np.flatnonzero(keep).astype(np.uint32)
        if not ids.size:
            raise nothing_left(graph.nodes)
        facts: dict[str, Any] = dict(graph.store.facts)
        weights, edges, files = _write(draft.path, graph, keep, progress)
        progress("storing the names", 0, 0)
        kind, name_files = write_some_names(
            draft.path, graph.store, graph.names, ids, as_ingested=True
        )
        if graph.titles is not None:
            name_files |= write_some_titles(draft.path, graph.titles, ids)
            facts["titles"] = facts["titles"] | {"nodes": graph.titles.known(ids)}
        out = LeftOut(
            graph.nodes - ids.size,
            graph.edges - edges,
            len(unknown),
            unknown[0] if unknown else None,
        )
        before = facts.get("excluded", {})
        told = {key: value + before.get(key, 0) for key, value in out.to_json().items()}
        facts |= {"nodes": ids.size, "edges": edges, "names": kind, "excluded": told, **weights}
        if graph.names.sides is not None:
            facts[SIDES] = graph.names.sides.kept(ids).to_json()
        path = draft.publish(Manifest("graph", facts, files | name_files))
    out.tell()
    return path


def _write(
    directory: Path, graph: Graph, keep: NDArray[np.bool_], progress: Progress
) -> tuple[dict[str, Any], int, dict[str, Entry]]:
    """The arrays of the links that stay: facts of their weights, how many they are, entries."""
    from cocite.kernels.links import add_counts

    links = Links(graph.in_offsets, graph.in_sources, graph.in_weights)
    anew = np.cumsum(keep, dtype=np.uint32) - np.uint32(1)
    degrees = np.zeros(int(keep.sum()), np.uint32)
    weighing, edges = WeightFacts(), 0
    with ExitStack() as stack:
        offsets = stack.enter_context(ArrayWriter(directory / OFFSETS, np.uint64))
        sources = stack.enter_context(ArrayWriter(directory / SOURCES, np.uint32))
        weights = None
        if links.weights is not None:
            weights = stack.enter_context(ArrayWriter(directory / WEIGHTS, np.float32))
        offsets.write(np.zeros(1, np.uint64))
        for first, last in pairwise((0, *cut_blocks(links, _PIECE), links.nodes)):
            rows = links.offsets[first : last + 1].astype(np.int64)
            part = slice(int(rows[0]), int(rows[-1]))
            read = links.neighbours[part]
            stays = keep[read] & np.repeat(keep[first:last], np.diff(rows))
            sums = np.concatenate([[0], np.cumsum(stays)])[rows - rows[0]]
            ends = sums[1:][keep[first:last]]
            offsets.write(ends.astype(np.uint64) + np.uint64(edges))
            chosen = anew[read[stays]]
            sources.write(chosen)
            add_counts(chosen, degrees)
            edges += chosen.size
            if weights is not None and links.weights is not None:
                values = links.weights[part][stays]
                weights.write(values)
                weighing.add(values)
            links.forget()
            progress("writing the links", part.stop, links.edges)
    with ArrayWriter(directory / DEGREES, np.uint32) as out:
        out.write(degrees)
    files = {OFFSETS: offsets.finished, SOURCES: sources.finished, DEGREES: out.finished}
    if weights is None:
        return {}, edges, files
    return {"weights": weighing.to_json()}, edges, files | {WEIGHTS: weights.finished}
