"""Find an index's graphs, at recorded or given paths, and compute PageRanks.

Most answers need only the index. Refined answers also read the newest graph. Reasons may recompute
where walks meet, from the samples' graphs; a refreshed index has several. A graph's digest must
match the index.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocite.constants import Floats, Ids, Ints
from cocite.errors import CociteError, InputError, NotAStore, StoreError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import count_in_links
from cocite.index import StoredIndex
from cocite.index.layouts.reader import Graphs
from cocite.resources import Resources

GraphLike = Graph | str | os.PathLike[str]
GivenGraph = GraphLike | Sequence[GraphLike] | None

_GIVE = "Pass its path with --graph (graph=...)"


def find_graph(stored: StoredIndex, given: GivenGraph = None) -> Graph:
    """Return the graph of the newest samples: ``given``, or the one at the recorded path, which is
    relative to the index.

    Raises :class:`NotAStore` if the graph is missing, and :class:`UsageError` if it is another
    graph.
    """
    graphs = _source_of(stored, given)
    if graphs and stored.graph.get("digest") not in graphs:
        raise UsageError(
            f"{next(iter(graphs.values())).path} is the graph of older samples in "
            f"{stored.store.path}; the newest samples were drawn from another graph. {_GIVE}"
        )
    return _fitting(stored, graphs.get(str(stored.graph.get("digest"))) or _remembered(stored))


def checked_graph(stored: StoredIndex, given: GivenGraph) -> Graph:
    """Return the validated result of :func:`find_graph`."""
    found = find_graph(stored, given)
    found.check()
    return found


def find_graphs(stored: StoredIndex, means: Resources, given: GivenGraph = None) -> Graphs:
    """Return the graphs of the samples in ``stored``: given ones, and others at recorded paths.

    Raises :class:`UsageError` for an unrelated graph. A missing graph is None if the index has
    several; otherwise, access raises :class:`NotAStore`.
    """
    graphs = _source_of(stored, given)

    def graph_of(digest: str) -> Graph | None:
        if digest in graphs:
            return _fitting(stored, graphs[digest])
        generation = next(g for g in stored.freshness.snapshots if g.digest == digest)
        found = _there(stored, generation.path)
        if found is not None and found.digest == digest:
            graphs[digest] = found
            return _fitting(stored, found)
        if len(stored.freshness.snapshots) == 1:
            return _fitting(stored, _remembered(stored))  # raises an error with the reason
        return None

    return Graphs(graph_of, means)


def _in_offsets(stored: StoredIndex, given: GivenGraph) -> NDArray[np.uint64] | None:
    with suppress(CociteError):
        return find_graph(stored, given).in_offsets
    for part in stored.parts if stored.wanted is None else ():
        for name in ("in_offsets", "any_offsets"):
            if f"{part.prefix}{name}" in stored.store.manifest.files:
                return part.array(name)
    return None


def out_links_of(stored: StoredIndex, given: GivenGraph, ids: Ids) -> Ids | None:
    """Return uint32[h], the out-degrees of some nodes; None if the graph is unavailable."""
    try:
        return find_graph(stored, given).out_degrees[stored.in_graph(ids)]
    except CociteError:
        return None


def in_links_of(stored: StoredIndex, given: GivenGraph, ids: Ids) -> Ints:
    """Return int64[h], the in-degrees of some nodes; 0 if the graph is unavailable."""
    offsets = _in_offsets(stored, given)
    if offsets is None:
        return np.zeros(ids.size, np.int64)
    return count_in_links(offsets, stored.in_graph(ids))


def _fitting(stored: StoredIndex, graph: Graph) -> Graph:
    """Return the graph; raises :class:`Damaged` if its node count differs from the index's."""
    if graph.digest == stored.graph.get("digest") and graph.nodes != stored.graph_nodes:
        raise stored.damaged()
    return graph


def _source_of(stored: StoredIndex, given: GivenGraph) -> dict[str, Graph]:
    known = {generation.digest: generation.graph for generation in stored.freshness.snapshots}
    graphs = {}
    each = (given,) if isinstance(given, Graph | str | os.PathLike) else given or ()
    for graph in (one if isinstance(one, Graph) else Graph.open(one) for one in each):
        if graph.digest not in known:
            called = " or ".join(dict.fromkeys(reversed(known.values())))
            raise UsageError(
                f"{graph.path} is not the graph that {stored.store.path} was built from "
                f"({called}): the checksums differ. {_GIVE}, or build the index again"
            )
        graphs[graph.digest] = graph
    return graphs


def _place(stored: StoredIndex, recorded: str) -> Path:
    return Path(os.path.normpath(Path(stored.store.path).resolve() / recorded))


def _there(stored: StoredIndex, recorded: str | None) -> Graph | None:
    try:
        here = recorded is not None and "://" not in recorded
        return Graph.open(_place(stored, str(recorded))) if here else None
    except StoreError:
        return None


def _remembered(stored: StoredIndex) -> Graph:
    recorded, index = stored.graph.get("path"), stored.store.path
    name = stored.graph.get("name")
    if not isinstance(recorded, str):
        raise NotAStore(f"{index} does not say where its graph {name} is. {_GIVE}")
    if "://" in recorded:
        raise NotAStore(
            f"the graph {name}, from which {index} was built, was at {recorded}, which is not "
            f"downloaded automatically. Pass it: --graph {recorded} (graph={recorded!r})"
        )
    path = _place(stored, recorded)
    try:
        found = Graph.open(path)
    except NotAStore as error:
        raise NotAStore(
            f"the graph {name}, from which {index} was built, is not at {path}. {_GIVE}"
        ) from error
    if found.digest != stored.graph.get("digest"):
        raise UsageError(
            f"{path} is not the graph that {index} was built from ({name}): the checksums differ. "
            f"{_GIVE}, or build the index again (cocite refresh updates it)"
        )
    return found


# -- PageRanks ---------------------------------------------------------------------------


RanksLike = str | os.PathLike[str] | Floats | None
_ROWS = 1 << 14
Ranks = Floats


class PageRanks:
    """PageRanks by node id. Thread-safe."""

    def __init__(self, stored: StoredIndex, resources: Resources, graph: GivenGraph) -> None:
        self._stored, self._resources, self._graph = stored, resources, graph
        self._cache: dict[str, Ranks] = {}
        self._lock = threading.Lock()

    def of(self, ids: Ids, ranks: RanksLike = None) -> Ranks:
        """Return float64[h], the ranks of ``ids``, which are node ids of the index."""
        found: Ranks = self.all(ranks)[self._stored.in_graph(ids)]
        return found

    def all(self, ranks: RanksLike = None) -> Ranks:
        """Return float64[graph nodes], the given or computed ranks."""
        if ranks is not None and not isinstance(ranks, str | os.PathLike):
            return _checked(ranks, self._stored.graph_nodes, "ranks")
        key = "" if ranks is None else str(Path(ranks).absolute())
        with self._lock:  # computed once for all threads
            if key not in self._cache:
                self._cache[key] = (
                    self._computed() if ranks is None else _read(Path(ranks), self._stored)
                )
        return self._cache[key]

    def _computed(self) -> Ranks:
        from cocite.ranking import pagerank

        graph, means = checked_graph(self._stored, self._graph), self._resources
        return pagerank(graph, threads=means.threads, memory=means.total).values


def _checked(values: ArrayLike, nodes: int, name: str) -> Ranks:
    found = np.asarray(values)
    if found.shape != (nodes,) or found.dtype.kind != "f":
        raise InputError(
            f"{name}: found {found.dtype}{list(found.shape)}; it must have a number for each of "
            f"{nodes:,} nodes, as written by cocite rank -o"
        )
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise InputError(f"{name}: ranks must be finite numbers, 0 or more")
    return found.astype(np.float64, copy=False)


def _read(path: Path, stored: StoredIndex) -> Ranks:
    """Read ranks by graph node from a file, which must cover all nodes of the index."""
    from cocite.ranking import WeightsFile

    names, nodes = stored.names, stored.graph_nodes
    if path.suffix == ".npy":
        try:
            return _checked(np.load(path, mmap_mode="r", allow_pickle=False), nodes, str(path))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}") from error
    found, rows = np.full(nodes, np.nan), WeightsFile(path).items()
    while piece := list(islice(rows, _ROWS)):
        if stored.wanted is not None:  # other nodes of the graph are not in the index
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
