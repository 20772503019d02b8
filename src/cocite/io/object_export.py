"""A stored graph as an object of another library: a sparse matrix, a graph, a table.

Nodes go by their names, which are those that came in (``graph/name_files.py``); of a matrix rows
and columns are ids, and ``graph.names[id]`` tells the name. Where the graph is undirected every
link is stored both ways; a matrix has both, a graph and a table have it once.

Memory: the links in the form asked for, with 16 bytes a link meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.extras import need
from cocite.graph.name_files import LabeledNames
from cocite.graph.names import IntegerNames, Names

if TYPE_CHECKING:
    from cocite.graph.blocks import InLinks


class _Rows(NamedTuple):
    """Links as rows of ids, by source, then by target; weights if there are any."""

    sources: NDArray[np.uint32]
    targets: NDArray[np.uint32]
    weights: NDArray[np.float32] | None


def _rows(graph: InLinks, once: bool) -> _Rows:
    """All links; ``once``, of those that are there both ways that from the smaller id."""
    graph.check_links()
    offsets = graph.in_offsets.astype(np.int64)
    degrees: NDArray[np.int64] = offsets[1:] - offsets[:-1]
    targets = np.repeat(np.arange(degrees.size, dtype=np.uint32), degrees)
    sources, weights = np.asarray(graph.in_sources), graph.in_weights
    if once:
        kept = sources <= targets
        sources, targets = sources[kept], targets[kept]
        weights = None if weights is None else weights[kept]
    order = np.argsort(sources, kind="stable")  # targets ascend already
    weights = None if weights is None else weights[order]
    return _Rows(sources[order], targets[order], weights)


def to_scipy(graph: InLinks) -> Any:
    """A ``csr_array``, float64[nodes, nodes]: the weight of the link from row to column, or 1."""
    sparse = need("scipy.sparse", "a sparse matrix", "scipy")
    graph.check_links()
    nodes = graph.out_degrees.size
    weights = graph.in_weights
    values = np.ones(graph.in_sources.size) if weights is None else weights.astype(np.float64)
    kind = np.int32 if max(nodes, values.size) < 2**31 else np.int64
    columns = graph.in_sources.astype(kind), graph.in_offsets.astype(kind)
    return sparse.csc_array((values, *columns), shape=(nodes, nodes)).tocsr()


def to_networkx(graph: InLinks, names: Names, undirected: bool) -> Any:
    """A ``DiGraph``, or a ``Graph``, with the attribute ``weight`` if there are weights."""
    networkx = need("networkx", "a graph of NetworkX", "networkx")
    found = networkx.Graph() if undirected else networkx.DiGraph()
    called = list(names)
    found.add_nodes_from(called)
    rows = _rows(graph, undirected)
    pairs = ((called[a], called[b]) for a, b in zip(rows.sources, rows.targets, strict=True))
    if rows.weights is None:
        found.add_edges_from(pairs)
    else:
        weights = rows.weights.tolist()
        found.add_weighted_edges_from((*p, w) for p, w in zip(pairs, weights, strict=True))
    return found


def to_igraph(graph: InLinks, names: Names, undirected: bool) -> Any:
    """An igraph ``Graph``; vertices have the attribute ``name``, unless names are their numbers."""
    igraph = need("igraph", "a graph of igraph", "igraph")
    rows = _rows(graph, undirected)
    pairs = np.column_stack((rows.sources, rows.targets))
    found = igraph.Graph(len(names), pairs.tolist(), directed=not undirected)
    plain = names.stored
    if not (isinstance(plain, IntegerNames) and plain.dense):
        found.vs["name"] = list(names)
    if rows.weights is not None:
        found.es["weight"] = rows.weights.tolist()
    return found


def to_arrow(graph: InLinks, names: Names, undirected: bool) -> Any:
    """A ``pyarrow.Table`` with the columns source, target and, if there are weights, weight."""
    pyarrow = need("pyarrow", "an Arrow table", "arrow")
    return pyarrow.table(_columns(graph, _one_type(names), undirected))


def to_pandas(graph: InLinks, names: Names, undirected: bool) -> Any:
    """A ``pandas.DataFrame`` with the columns source, target and, if there are weights, weight."""
    pandas = need("pandas", "a table of pandas", "pandas")
    return pandas.DataFrame(_columns(graph, _any_type(names), undirected))


def to_polars(graph: InLinks, names: Names, undirected: bool) -> Any:
    """A ``polars.DataFrame`` with the columns source, target and, if there are weights, weight."""
    polars = need("polars", "a table of polars", "polars")
    return polars.DataFrame(_columns(graph, _one_type(names), undirected))


def _columns(graph: InLinks, called: NDArray[Any], undirected: bool) -> dict[str, NDArray[Any]]:
    rows = _rows(graph, undirected)
    columns = {"source": called[rows.sources], "target": called[rows.targets]}
    return columns if rows.weights is None else columns | {"weight": rows.weights}


def _any_type(names: Names) -> NDArray[Any]:
    """The names by id, whatever they are; an array of numbers where all are numbers."""
    plain = names.stored
    if isinstance(names, LabeledNames) and isinstance(plain, IntegerNames):
        values = plain.values()
        return values.astype(np.int64) if not values.size or values[-1] < 2**63 else values
    found = np.empty(len(names), object)
    found[:] = list(names)
    return found


def _one_type(names: Names) -> NDArray[Any]:
    """The names by id: numbers, or else text."""
    found = _any_type(names)
    return found if found.dtype != object else _any_type(names.stored)
