"""Links in graphs of other libraries: SciPy's sparse matrices, NetworkX, igraph.

A link goes from a row to a column of a matrix, as everywhere. All nodes come along, whether they
have links or not. Weights are taken where there are some that tell links apart: values of a matrix
that are not all 1, the attribute ``weight`` of a graph where some link has it, which counts 1 on
links without. All other attributes are left aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph.objects.given import Given, given, is_missing, numbers, objects
from cocite.graph.objects.tables import names_in

__all__ = ["igraph_links", "networkx_links", "scipy_links"]


def scipy_links(
    matrix: Any, *, names: Sequence[object] | None = None, weighted: bool | None = None
) -> Given:
    """Links of a sparse matrix, float64 or whole numbers or truth, [nodes, nodes]."""
    what = "the sparse matrix"
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UsageError(
            f"{what} has the shape {matrix.shape}; it has a row and a column a node, as many of "
            "one as of the other"
        )
    if matrix.dtype.kind not in "biuf":
        raise UsageError(f"{what} holds {matrix.dtype}; its values are weights, or 1")
    coordinates = matrix.tocsr().tocoo()  # which adds up what is there twice
    values = coordinates.data
    there = values != 0
    values = values[there].astype(np.float64)
    a, b = (side[there].astype(np.uint64) for side in (coordinates.row, coordinates.col))
    nodes: Any = np.arange(matrix.shape[0], dtype=np.uint64)
    if names is not None:
        nodes = _named(names, matrix.shape[0], what)
        a, b = nodes[a], nodes[b]
    if weighted is None:
        weighted = bool((values != 1).any())
    return given(what, a, b, values if weighted else None, nodes=nodes, titles=_SIDES)


def networkx_links(graph: Any, *, weight: str | None = "weight") -> Given:
    """Links of a graph of NetworkX, directed or not, with links there once or several times."""
    rows = list(graph.edges(data=weight, default=None) if weight else graph.edges())
    a, b = (objects(row[side] for row in rows) for side in (0, 1))
    weights = _attribute([row[2] for row in rows], _NETWORKX, weight) if weight else None
    return given(
        _NETWORKX,
        a,
        b,
        weights,
        nodes=objects(graph.nodes),
        undirected=not graph.is_directed(),
        below_zero=True,
        titles=_SIDES,
    )


def igraph_links(graph: Any, *, weight: str | None = "weight") -> Given:
    """Links of a graph of igraph; nodes have the names that the attribute ``name`` says, if there
    is one, else their numbers.
    """
    pairs = np.array(graph.get_edgelist(), np.uint64).reshape(-1, 2)
    a, b = pairs[:, 0], pairs[:, 1]
    nodes: Any = np.arange(graph.vcount(), dtype=np.uint64)
    if "name" in graph.vs.attributes():
        nodes = _named(graph.vs["name"], graph.vcount(), _IGRAPH)
        a, b = nodes[a], nodes[b]
    weights = None
    if weight and weight in graph.es.attributes():
        weights = _attribute(graph.es[weight], _IGRAPH, weight)
    undirected = not graph.is_directed()
    return given(
        _IGRAPH, a, b, weights, nodes=nodes, undirected=undirected, below_zero=True, titles=_SIDES
    )


_NETWORKX, _IGRAPH = "the graph of NetworkX", "the graph of igraph"
_SIDES = ("the sources of its links", "the targets of its links")


def _attribute(values: list[Any], what: str, weight: str) -> NDArray[np.float64] | None:
    """The weights of links, 1 where one has none; None if none has any."""
    if all(value is None for value in values):
        return None
    filled = objects(1.0 if value is None else value for value in values)
    return numbers(filled, what, f"the attribute {weight!r} of its links")


def _named(names: Sequence[object], count: int, what: str) -> NDArray[Any]:
    found: NDArray[Any] = objects(names_in(names))
    if found.size != count:
        raise UsageError(f"{what} has {count:,} nodes, and there are {found.size:,} names")
    if any(map(is_missing, found)):
        raise UsageError(f"{what}: a node has no name; name all, or none")
    if len(set(found)) != count:
        raise UsageError(f"{what}: two nodes have the same name; each has its own")
    return found
