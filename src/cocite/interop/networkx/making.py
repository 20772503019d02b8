"""A graph of the backend of links as they come: pairs of nodes, one after another.

What comes of it is what ``G.add_edge`` makes of the same links: nodes in the order in which they
are named, neighbours in the order in which they are linked first, a link that is named again with
the attributes of the last time, or, in a multigraph, once more.

Cost: a dictionary of the nodes, and two sorts of the links.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.interop.networkx.graph import BackendGraph, Column

__all__ = ["interleaved", "linked", "numbered", "numbered_whole"]

Ids = NDArray[np.int64]


def interleaved(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """The ends of links, in the order in which they are named."""
    return list(chain.from_iterable(zip(first, second, strict=True)))


def numbered(ends: list[Any]) -> tuple[list[Any], Ids]:
    """(nodes, the number of each end): nodes in the order in which they come.

    Raises ValueError for None, TypeError for what can be no key, as NetworkX does.
    """
    index = dict.fromkeys(ends)
    if None in index:
        raise ValueError("None cannot be a node")
    nodes = list(index)
    index = dict(zip(nodes, range(len(nodes)), strict=True))
    return nodes, np.fromiter(map(index.__getitem__, ends), np.int64, len(ends))


def numbered_whole(ends: Ids) -> tuple[list[Any], Ids]:
    """The same of whole numbers, by a sort."""
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
    """The graph of links between ``nodes``, by number; a column has a cell a link."""
    count = len(nodes)
    came = np.arange(sources.size)
    if not directed:  # both ways; a link of a node to itself is one way
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
    """The last time that each link was named; what an attribute was not given then, it is taken
    from the time before.
    """
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
