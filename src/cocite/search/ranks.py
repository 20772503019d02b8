"""PageRanks by node id, by which lists may be ordered.

They are computed from the graph of the index when they are first needed, or read from what ``cocite
rank -o`` wrote: an array by id (``.npy``), or a table of names.
"""

from __future__ import annotations

import os
import threading
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocite.errors import InputError
from cocite.index import StoredIndex
from cocite.resources import Resources
from cocite.search.source import GivenGraph, find_graph

RanksLike = str | os.PathLike[str] | NDArray[np.float64] | None
Ids = NDArray[np.uint32]
_ROWS = 1 << 14
Ranks = NDArray[np.float64]


class PageRanks:
    """PageRanks by node id. Safe to share between threads."""

    def __init__(self, stored: StoredIndex, resources: Resources, graph: GivenGraph) -> None:
        self._stored, self._resources, self._graph = stored, resources, graph
        self._cache: dict[str, Ranks] = {}
        self._lock = threading.Lock()

    def of(self, ids: Ids, ranks: RanksLike = None) -> Ranks:
        """Return float64[h], the ranks of some nodes.

        The ids of an index of selected pages differ from those of the graph.
        """
        found: Ranks = self.all(ranks)[self._stored.in_graph(ids)]
        return found

    def all(self, ranks: RanksLike = None) -> Ranks:
        """Return float64[nodes of the graph]: the given ranks, or computed ones."""
        if ranks is not None and not isinstance(ranks, str | os.PathLike):
            return _checked(ranks, self._stored.graph_nodes, "ranks")
        key = "" if ranks is None else str(Path(ranks).absolute())
        with self._lock:  # computed once, however many threads need them
            if key not in self._cache:
                self._cache[key] = (
                    self._computed() if ranks is None else _read(Path(ranks), self._stored)
                )
        return self._cache[key]

    def _computed(self) -> Ranks:
        from cocite.ranking import pagerank

        graph, means = find_graph(self._stored, self._graph), self._resources
        graph.check()
        return pagerank(graph, threads=means.threads, memory=means.total).values


def _checked(values: ArrayLike, nodes: int, name: str) -> Ranks:
    found = np.asarray(values)
    if found.shape != (nodes,) or found.dtype.kind != "f":
        raise InputError(
            f"{name}: found {found.dtype}{list(found.shape)}; it must be a number for each of "
            f"{nodes:,} nodes, as cocite rank -o writes them"
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError(f"{name}: a rank is a finite number, 0 or more")
    return found.astype(np.float64, copy=False)


def _read(path: Path, stored: StoredIndex) -> Ranks:
    """Read ranks by node of the graph from a file, which must cover the index."""
    from cocite.ranking import WeightsFile

    names, nodes = stored.names, stored.graph_nodes
    if path.suffix == ".npy":
        try:
            return _checked(np.load(path, mmap_mode="r", allow_pickle=False), nodes, str(path))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
    found, rows = np.full(nodes, np.nan), WeightsFile(path).items()
    while piece := list(islice(rows, _ROWS)):
        if stored.wanted is not None:  # the others of the graph are no nodes here
            piece = [row for row in piece if row[0] in names]
        ids = names.ids([name for name, _ in piece])
        found[stored.in_graph(ids)] = [weight for _, weight in piece]
    own = stored.in_graph(np.arange(stored.nodes, dtype=np.uint32))
    missing = np.flatnonzero(np.isnan(found[own]))
    if missing.size:
        raise InputError(
            f"{path} has no ranks for {missing.size:,} nodes, such as "
            f"{names.name(int(missing[0]))!r}. Write it from the graph of the "
            "index: cocite rank GRAPH -o FILE"
        )
    return found
