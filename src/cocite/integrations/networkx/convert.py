"""Conversion of NetworkX graphs and of node pairs to backend graphs, and back to NetworkX.

NetworkX reuses a converted graph for all functions that need no other attributes. Some functions
read ``weight`` without declaring it, so ``weight`` is always converted. Nodes, each node's
neighbors, and parallel links have the order that ``G.add_edge`` produces.

Conversion takes some 0.2 µs per link and attribute; conversion back creates a dictionary per link.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from cocite.integrations.networkx.graph import MISSING, BackendGraph, Column, column_of


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: dict[Any, Any] | None = None,
    node_attrs: dict[Any, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> BackendGraph:
    """Return a backend graph of a NetworkX graph, with ``weight`` and the requested attributes.

    ``name`` is the called function, and ``graph_name`` is its parameter for the graph.
    """
    if isinstance(graph, BackendGraph):
        return graph
    if not isinstance(graph, nx.Graph):
        raise TypeError(f"{name}: {graph_name} is {type(graph).__name__}; it must be a graph")
    nodes, adjacent = list(graph), graph._adj
    rows = [adjacent[node] for node in nodes]
    index = dict(zip(nodes, range(len(nodes)), strict=True))
    multigraph = graph.is_multigraph()
    keys: list[Any] | None = None
    if multigraph:
        parallel = list(chain.from_iterable(row.values() for row in rows))
        counts = [sum(map(len, row.values())) for row in rows]
        ends: Iterable[Any] = (end for row in rows for end, links in row.items() for _ in links)
        data = list(chain.from_iterable(links.values() for links in parallel))
        if any(list(links) != list(range(len(links))) for links in parallel):
            keys = list(chain.from_iterable(parallel))
    else:
        counts = list(map(len, rows))
        ends = chain.from_iterable(rows)
        data = list(chain.from_iterable(row.values() for row in rows))
    offsets = np.zeros(len(nodes) + 1, np.uint64)
    np.cumsum(counts, out=offsets[1:], dtype=np.uint64)
    neighbors = np.fromiter(map(index.__getitem__, ends), np.uint32, len(data))
    found = BackendGraph(
        nodes,
        offsets,
        neighbors,
        directed=graph.is_directed(),
        multigraph=multigraph,
        columns=_columns(data, edge_attrs, preserve_edge_attrs),
        keys=keys,
        graph=dict(graph.graph) if preserve_graph_attrs else None,
        node_data=_node_data(graph, node_attrs, preserve_node_attrs),
    )
    found.__dict__["index"] = index
    return found


def _columns(data: list[Any], wanted: dict[Any, Any] | None, every: bool) -> dict[Any, Column]:
    names: dict[Any, None] = dict.fromkeys(chain(("weight",), wanted or ()))
    if every:
        names.update(dict.fromkeys(chain.from_iterable(data)))
    found = {name: column_of([d.get(name, MISSING) for d in data]) for name in names}
    return {name: column for name, column in found.items() if column is not None}


def _node_data(
    graph: Any, wanted: dict[Any, Any] | None, every: bool
) -> list[dict[Any, Any]] | None:
    if every:
        return [dict(attributes) for attributes in graph._node.values()]
    if not wanted:
        return None
    return [
        {
            name: attributes.get(name, default)
            for name, default in wanted.items()
            if default is not None or name in attributes
        }
        for attributes in graph._node.values()
    ]


def convert_to_nx(obj: Any, *, name: str | None = None) -> Any:
    """Convert a backend graph to NetworkX; return anything else unchanged."""
    if not isinstance(obj, BackendGraph):
        return obj
    found = getattr(nx, obj.kind)()
    found.graph.update(obj.graph)
    found.add_nodes_from(obj.nodes)
    for node, attributes in zip(obj.nodes, obj.node_data or (), strict=False):
        found._node[node].update(attributes)
    _link(obj, found)
    return found


def _link(graph: BackendGraph, found: Any) -> None:
    """Fill the adjacency of ``found`` directly, without the repeated lookups of its methods."""
    nodes, adjacent = graph.nodes, found._adj
    data: list[dict[Any, Any]] = [{} for _ in range(graph.outs.neighbors.size)]
    for name, column in graph.columns.items():
        values = column.values.tolist()
        have = range(len(data)) if column.missing is None else np.flatnonzero(~column.missing)
        for link in have:
            data[link][name] = values[link]
    sources, targets = graph.sources.tolist(), graph.outs.neighbors.tolist()
    keys = graph.keys
    directed, before = graph.is_directed(), found._pred if graph.is_directed() else None
    for link, (source, target) in enumerate(zip(sources, targets, strict=True)):
        u, v = nodes[source], nodes[target]
        back = not directed and target < source  # the row of ``v`` already has the link
        if not graph.is_multigraph():
            adjacent[u][v] = adjacent[v][u] if back else data[link]
        elif back:
            adjacent[u][v] = adjacent[v][u]
        else:
            links = adjacent[u].setdefault(v, {})
            links[len(links) if keys is None else keys[link]] = data[link]
    if before is not None:
        order = range(len(sources)) if graph.arrived is None else np.argsort(graph.arrived).tolist()
        for link in order:
            u, v = nodes[sources[link]], nodes[targets[link]]
            before[v][u] = adjacent[u][v]


Ids = NDArray[np.int64]


def numbered(ends: list[Any]) -> tuple[list[Any], Ids]:
    """Return (nodes in order of first occurrence, the id of each end).

    Raises ValueError for None and TypeError for unhashable values, as NetworkX does.
    """
    index = dict.fromkeys(ends)
    if None in index:
        raise ValueError("None cannot be a node")
    nodes = list(index)
    index = dict(zip(nodes, range(len(nodes)), strict=True))
    return nodes, np.fromiter(map(index.__getitem__, ends), np.int64, len(ends))


def numbered_whole(ends: Ids) -> tuple[list[Any], Ids]:
    """Return the result of :func:`numbered` for integers, by sorting."""
    found, first, place = np.unique(ends, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return found[order].tolist(), rank[place]


def linked(
    nodes: list[Any],
    sources: Ids,
    targets: Ids,
    columns: dict[Any, Column],
    *,
    directed: bool,
    multigraph: bool,
) -> BackendGraph:
    """Return a backend graph of links between node ids; a column has a cell per link."""
    count = len(nodes)
    came = np.arange(sources.size)
    if not directed:  # both directions, but self-loops once
        back = sources != targets
        sources, targets, came = (
            np.concatenate((sources, targets[back])),
            np.concatenate((targets, sources[back])),
            np.concatenate((came, came[back])),
        )
    pairs = sources * np.int64(max(count, 1)) + targets
    order = np.lexsort((came, pairs))
    pairs, came = pairs[order], came[order]
    starts = np.flatnonzero(np.concatenate(([True], pairs[1:] != pairs[:-1]))[: pairs.size])
    ends = np.concatenate((starts[1:], [pairs.size]))[: starts.size]
    first = came[starts]
    if multigraph:
        lead = np.repeat(first, ends - starts)
        last = came
    else:
        pairs, lead = pairs[starts], first
        last = _last(columns, came, starts, ends)
    rows = pairs // max(count, 1)
    order = np.lexsort((last if multigraph else lead, lead, rows))
    offsets = np.zeros(count + 1, np.uint64)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:], dtype=np.uint64)
    return BackendGraph(
        nodes,
        offsets,
        (pairs[order] % max(count, 1)).astype(np.uint32),
        directed=directed,
        multigraph=multigraph,
        columns={name: column.take(last[order]) for name, column in columns.items()},
        arrived=lead[order],
    )


def _last(columns: dict[Any, Column], came: Ids, starts: Ids, ends: Ids) -> Ids:
    """Return each link's last occurrence; fill in missing attributes from earlier occurrences."""
    last = came[ends - 1]
    for name, column in columns.items():
        missing = column.missing
        if missing is None:
            continue
        values, gone = column.values.copy(), missing.copy()
        for begin, end in zip(starts.tolist(), ends.tolist(), strict=True):
            here = came[end - 1]
            given = [link for link in came[begin:end].tolist() if not missing[link]]
            if gone[here] and given:
                values[here], gone[here] = values[given[-1]], False
        columns[name] = Column(values, gone if gone.any() else None)
    return last
