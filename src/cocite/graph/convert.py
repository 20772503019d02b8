"""Conversion of stored graphs to the objects of other libraries.

A stored graph has links, weights, and names that are text or integers. A graph created from a
Python object, and any index built from that graph, return the original names; after reopening from
disk, both return text. Other attributes and the node order are not stored. Weights of parallel
links are summed; unweighted parallel links are merged.

An undirected graph stores each link in both directions. A matrix contains both directions; a
converted graph or table contains each link once. Conversion takes 16 bytes per link in addition to
the result.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.extras import need
from cocite.graph.blocks import OFFSETS, InLinks, count_in_links
from cocite.graph.name_files import IntegerNames, Titles, is_integer, names_of, open_titles
from cocite.graph.names import Names
from cocite.progress import showing, shows


class Exchanged(InLinks):
    """Links with names and titles, which can be converted for other libraries."""

    @cached_property
    def names(self) -> Names:
        """Return the node names."""
        found, store = names_of(self._store), self._store
        found.in_links = lambda ids: count_in_links(store.array(OFFSETS), ids)
        return found

    @cached_property
    def titles(self) -> Titles | None:
        """Return the node titles, or None."""
        return open_titles(self._store, self.nodes)

    def with_links(
        self,
        links: Iterable[tuple[str, str, float]],
        output: str | os.PathLike[str],
        **options: Any,
    ) -> Self:
        """Store the graph with additional links in the directory ``output``.

        The result equals a graph ingested from all links, except for the reported sources.
        ``links`` are (source, target, weight) and must not be in the graph yet. Weights are ignored
        if the graph has none. New names become nodes. ``memory``, ``threads``, ``overwrite`` and
        ``progress`` are as for :func:`cocite.ingest`; with ``overwrite``, ``output`` may be the
        graph's own directory. All links must fit in memory.
        """
        from cocite.io.objects import object_input, objects
        from cocite.io.pipeline import store
        from cocite.options.ingest import IngestOptions
        from cocite.resources import Resources

        facts, rows, plain = self.store.facts, _rows(self), self.names.stored
        if plain.sides is not None:
            raise UsageError(
                "links cannot be added to a bipartite graph; add them to its table, and ingest "
                "the table again"
            )
        more = list(links)
        called: NDArray[Any] = objects(plain)
        ends: NDArray[Any] = objects(end for a, b, _ in more for end in (a, b))
        if isinstance(plain, IntegerNames) and all(map(is_integer, ends)):
            called, ends = plain.values(), ends.astype(np.uint64)
        weights = None
        if rows.weights is not None:
            added = np.array([weight for _, _, weight in more], np.float64)
            weights = np.concatenate([rows.weights.astype(np.float64), added])
        titles = None
        if self.titles is not None:
            texts = self.titles.of(np.arange(called.size))
            titles = {
                name: title for name, title in zip(called.tolist(), texts, strict=True) if title
            }

        given = object_input(
            str(self.store.path),
            np.concatenate([called[rows.sources], ends[0::2]]),
            np.concatenate([called[rows.targets], ends[1::2]]),
            weights,
            nodes=called,
            undirected=facts["undirected"],
            titles=("its sources", "its targets"),
        )
        kept = {"keep_self_loops": facts["self_loops_kept"], "titles": titles}
        kept["normalize_urls"] = "normalized_urls" in facts
        resources = Resources.checked(options.pop("threads", None), options.pop("memory", None))
        with showing("storing links") as report:
            progress = options.pop("progress", report)
            chosen = IngestOptions.of(None, options | kept)
            return type(self)(store(given, output, chosen, resources, progress))

    @shows("converting to a sparse matrix")
    def to_scipy(self) -> Any:
        """Return a ``scipy.sparse.csr_array``, float64[nodes, nodes]. Entry (u, v) is the weight of
        the link from id u to id v, 1 in unweighted graphs; ``graph.names[u]`` is the name of u.
        """
        sparse = need("scipy.sparse", "a sparse matrix", "scipy")
        self.check_links()
        nodes, weights = self.out_degrees.size, self.in_weights
        values = np.ones(self.in_sources.size) if weights is None else weights.astype(np.float64)
        kind = np.int32 if max(nodes, values.size) < 2**31 else np.int64
        columns = self.in_sources.astype(kind), self.in_offsets.astype(kind)
        return sparse.csc_array((values, *columns), shape=(nodes, nodes)).tocsr()

    @shows("converting to NetworkX")
    def to_networkx(self) -> Any:
        """Return a ``networkx.DiGraph``, or a ``Graph`` if the stored graph is undirected. Nodes
        are names. Weights are the edge attribute ``weight``.
        """
        networkx = need("networkx", "a NetworkX graph", "networkx")
        found = networkx.Graph() if self.store.facts["undirected"] else networkx.DiGraph()
        called = list(self.names)
        found.add_nodes_from(called)
        rows = _rows(self)
        pairs = ((called[a], called[b]) for a, b in zip(rows.sources, rows.targets, strict=True))
        if rows.weights is None:
            found.add_edges_from(pairs)
        else:
            weights = rows.weights.tolist()
            found.add_weighted_edges_from((*p, w) for p, w in zip(pairs, weights, strict=True))
        return found

    @shows("converting to igraph")
    def to_igraph(self) -> Any:
        """Return an ``igraph.Graph``, directed unless the stored graph is undirected. Vertices are
        ids; names, unless equal to the ids, are the vertex attribute ``name``. Weights are the edge
        attribute ``weight``.
        """
        igraph = need("igraph", "an igraph graph", "igraph")
        rows, directed = _rows(self), not self.store.facts["undirected"]
        pairs = np.column_stack((rows.sources, rows.targets))
        found = igraph.Graph(len(self.names), pairs.tolist(), directed=directed)
        plain = self.names.stored
        if not (isinstance(plain, IntegerNames) and plain.dense):
            found.vs["name"] = list(self.names)
        if rows.weights is not None:
            found.es["weight"] = rows.weights.tolist()
        return found

    @shows("converting to an Arrow table")
    def to_arrow(self) -> Any:
        """Return a ``pyarrow.Table`` of links with columns source, target and, in weighted graphs,
        weight, ordered by source id, then target id.

        An undirected link occurs once. Names that are neither text nor integers become text. Nodes
        without links are omitted.
        """
        pyarrow = need("pyarrow", "an Arrow table", "arrow")
        return pyarrow.table(_columns(self, names_of_one_type(self.names)))

    @shows("converting to pandas")
    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` like :meth:`to_arrow`, with the original names."""
        pandas = need("pandas", "a pandas table", "pandas")
        return pandas.DataFrame(_columns(self, names_as_they_are(self.names)))

    @shows("converting to polars")
    def to_polars(self) -> Any:
        """Return a ``polars.DataFrame`` of links, like :meth:`to_arrow`."""
        polars = need("polars", "a polars table", "polars")
        return polars.DataFrame(_columns(self, names_of_one_type(self.names)))


class _Rows(NamedTuple):
    """Ids of link ends, ordered by source, then target; weights, or None."""

    sources: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    weights: NDArray[np.float32] | None


def _rows(graph: Exchanged) -> _Rows:
    """Return all links; for an undirected graph, return each link once, from the smaller id."""
    graph.check_links()
    offsets = graph.in_offsets.astype(np.int64)
    degrees: NDArray[np.int64] = offsets[1:] - offsets[:-1]
    targets = np.repeat(np.arange(degrees.size, dtype=np.uint32), degrees)
    sources, weights = np.asarray(graph.in_sources), graph.in_weights
    if graph.store.facts["undirected"]:
        kept = sources <= targets
        sources, targets = sources[kept], targets[kept]
        weights = None if weights is None else weights[kept]
    order = np.argsort(sources, kind="stable")  # targets ascend already
    weights = None if weights is None else weights[order]
    return _Rows(sources[order], targets[order], weights)


def _columns(graph: Exchanged, called: NDArray[Any]) -> dict[str, NDArray[Any]]:
    rows = _rows(graph)
    columns = {"source": called[rows.sources], "target": called[rows.targets]}
    return columns if rows.weights is None else columns | {"weight": rows.weights}


def names_as_they_are(names: Names) -> NDArray[Any]:
    """Return the original names in id order, as integers if all are integers."""
    plain = names.stored
    if names.labels is not None and isinstance(plain, IntegerNames):
        values = plain.values()
        return values.astype(np.int64) if not values.size or values[-1] < 2**63 else values
    found = np.empty(len(names), object)
    found[:] = list(names)
    return found


def names_of_one_type(names: Names) -> NDArray[Any]:
    """Return the names in id order, all as integers or all as text."""
    found = names_as_they_are(names)
    return found if found.dtype != object else names_as_they_are(names.stored)
