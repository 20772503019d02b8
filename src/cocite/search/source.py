"""The graphs behind an index: found where they were when it was built, or where one says.

An index answers from its own files. What goes beyond them reads graphs again: refined answers the
newest, and the places where walks meet those that the samples were drawn from, of which an index
that was refreshed has several. Only the very graphs will do: digests are compared with those that
the index remembers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.errors import CociteError, NotAStore, StoreError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import count_in_links
from cocite.index import StoredIndex
from cocite.index.layouts.reader import Graphs
from cocite.resources import Resources

GraphLike = Graph | str | os.PathLike[str]
Ids = NDArray[np.uint32]
GivenGraph = GraphLike | Sequence[GraphLike] | None

_GIVE = "Say where it is with --graph (graph=...)"


def find_graph(stored: StoredIndex, given: GivenGraph = None) -> Graph:
    """Return the graph from which the newest samples of ``stored`` were drawn: ``given``, or the
    one at its recorded path, relative to the index.

    Raises :class:`NotAStore` if there is none, and :class:`UsageError` if it is another graph.
    """
    graphs = _source_of(stored, given)
    if graphs and stored.graph.get("digest") not in graphs:
        raise UsageError(
            f"{next(iter(graphs.values())).path} is a graph of older samples of "
            f"{stored.store.path}; the newest ones were drawn from another. {_GIVE}"
        )
    return _fitting(stored, graphs.get(str(stored.graph.get("digest"))) or _remembered(stored))


def find_graphs(stored: StoredIndex, means: Resources, given: GivenGraph = None) -> Graphs:
    """Return the graphs from which the samples of ``stored`` were drawn: those given, and others at
    their recorded paths.

    Raises :class:`UsageError` for an unrelated graph. On access, raises :class:`NotAStore` if the
    only graph is missing; of several, a missing one is None.
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
            return _fitting(stored, _remembered(stored))  # which says what is wrong
        return None

    return Graphs(graph_of, means)


def in_offsets_of(stored: StoredIndex, given: GivenGraph = None) -> NDArray[np.uint64] | None:
    """Return uint64[nodes of the graph + 1]: the offsets of in-links; None if not available."""
    try:
        return find_graph(stored, given).in_offsets
    except CociteError:
        pass
    if stored.wanted is not None:
        return None
    for part in stored.parts:
        for way in ("in", "any"):
            if f"{part.prefix}{way}_offsets" in stored.store.manifest.files:
                return part.array(f"{way}_offsets")
    return None


def out_links_of(stored: StoredIndex, given: GivenGraph, ids: Ids) -> NDArray[np.uint32] | None:
    """uint32[h]: how many nodes some nodes link to; None where the graph is not at hand."""
    try:
        return find_graph(stored, given).out_degrees[stored.in_graph(ids)]
    except CociteError:
        return None


def in_links_of(stored: StoredIndex, given: GivenGraph, ids: Ids) -> NDArray[np.int64]:
    """Return int64[h]: the numbers of in-links of some nodes; 0 if not available."""
    offsets = in_offsets_of(stored, given)
    if offsets is None:
        return np.zeros(ids.size, np.int64)
    return count_in_links(offsets, stored.in_graph(ids))


def _fitting(stored: StoredIndex, graph: Graph) -> Graph:
    """Return the graph if it has as many nodes as its index says; raises :class:`Damaged`."""
    if graph.digest == stored.graph.get("digest") and graph.nodes != stored.graph_nodes:
        raise stored.damaged()
    return graph


def _source_of(stored: StoredIndex, given: GivenGraph) -> dict[str, Graph]:
    """Return the given graphs by digest."""
    known = {generation.digest: generation.graph for generation in stored.freshness.snapshots}
    graphs = {}
    each = (given,) if isinstance(given, Graph | str | os.PathLike) else given or ()
    for graph in (one if isinstance(one, Graph) else Graph.open(one) for one in each):
        if graph.digest not in known:
            called = " or ".join(dict.fromkeys(reversed(known.values())))
            raise UsageError(
                f"{graph.path} is not the graph that {stored.store.path} was built from, which was "
                f"called {called}: their checksums differ. {_GIVE}, or build the index again"
            )
        graphs[graph.digest] = graph
    return graphs


def _place(stored: StoredIndex, told: str) -> Path:
    return Path(os.path.normpath(Path(stored.store.path).resolve() / told))


def _there(stored: StoredIndex, told: str | None) -> Graph | None:
    """Return the graph at a path recorded in the index, or None."""
    try:
        here = told is not None and "://" not in told
        return Graph.open(_place(stored, str(told))) if here else None
    except StoreError:
        return None


def _remembered(stored: StoredIndex) -> Graph:
    """Return the newest graph at its recorded path."""
    told, index = stored.graph.get("path"), stored.store.path
    name = stored.graph.get("name")
    if not isinstance(told, str):
        raise NotAStore(f"{index} does not say where its graph {name} is. {_GIVE}")
    if "://" in told:
        raise NotAStore(
            f"the graph {name}, from which {index} was built, lay at {told}, from where nothing is "
            f"fetched unasked. Give it: --graph {told} (graph={told!r})"
        )
    path = _place(stored, told)
    try:
        found = Graph.open(path)
    except NotAStore as error:
        raise NotAStore(
            f"the graph {name}, from which {index} was built, is not at {path}. {_GIVE}"
        ) from error
    if found.digest != stored.graph.get("digest"):
        raise UsageError(
            f"{path} is not the graph that {index} was built from, which was called {name}: their "
            f"checksums differ. {_GIVE}, or build the index again (cocite refresh takes a share)"
        )
    return found
