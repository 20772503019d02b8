"""The links of an all-pairs run, and the order of the matrix's rows.

    in    the pages that link to a page: the graph as stored
    out   the pages that a page links to
    any   both in one row; in a bipartite graph, from users to their items and back

With ``any``, mutual links count twice in SimRank, which adds the weights of both directions, and
once in PSimRank, which compares sets. On a bipartite graph, ``any`` gives the SimRank of Jeh and
Widom 2002, section 4.3, with a single decay. Reverse Cuthill-McKee (Yu et al. 2011, section 4.2,
Definition 2 and Algorithm 2) puts linked rows close together, so that blocks read few rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import in_links, links_of
from cocite.kernels import allpairs
from cocite.options.all_pairs import AllPairsRun


def directed(graph: Graph, direction: str, memory: int, *, weighted: bool, sets: bool) -> Links:
    """Return the links in a direction, ``in``, ``out`` or ``any``, as in-links.

    With ``sets``, mutual links count once; otherwise their weights are added.
    """
    if direction == "in":
        return in_links(graph, weighted=weighted)
    links = links_of(graph, direction, memory, weighted=weighted)
    if direction == "out":
        return links
    row = np.repeat(np.arange(links.nodes), np.diff(links.offsets).astype(np.int64))
    first = np.ones(links.edges, bool)
    first[1:] = (links.neighbors[1:] != links.neighbors[:-1]) | (row[1:] != row[:-1])
    if first.all():
        return links
    places = np.flatnonzero(first)
    counts = np.bincount(row[places], minlength=links.nodes)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
    neighbors = np.asarray(links.neighbors)[places]
    if sets:
        return Links(offsets, neighbors)
    each = np.ones(links.edges) if links.weights is None else links.weights.astype(np.float64)
    return Links(offsets, neighbors, np.add.reduceat(each, places).astype(np.float32))


def compared(graph: Graph, options: AllPairsRun, side: str | None) -> range:
    """Return the ids of the compared nodes: all, or one side."""
    if graph.sides is None:
        if side is not None:
            raise UsageError(f"{graph.path} is not bipartite: omit --side (side=...)")
        return range(graph.nodes)
    found = graph.sides.named(side)
    way = {"in": 0, "out": 1}.get(options.direction)
    if way is not None and graph.sides.titles[way] == graph.sides.title_of(found.start):
        title, other = graph.sides.titles[way], ("in", "out")[1 - way]
        raise UsageError(
            f"{title} nodes have no {options.direction}-links, so all their scores are 0. Choose "
            f"--direction {other} (direction={other!r}), or any"
        )
    return found


def checked_weights(
    links: Links, options: AllPairsRun, weights: NDArray[np.float32] | None
) -> NDArray[np.float32] | None:
    """Return float32[edges]: ``weights``, or the weights of the links; None without weights."""
    if weights is not None and options.direction != "in":
        raise UsageError("weights apply to in-links only: omit the weights for other directions")
    if weights is None:
        weights = links.weights
    if weights is None:
        return None
    found = np.asarray(weights, np.float32)
    if found.shape != (links.edges,) or not np.isfinite(found).all() or (found <= 0).any():
        raise UsageError(
            f"weights must be {links.edges:,} positive, finite numbers, one for each link"
        )
    if options.measure == "psimrank":
        raise UsageError(
            "only simrank uses weights: pass --unweighted (weighted=False) to ignore them"
        )
    return found


Ints = NDArray[np.int64]


def bandwidth(offsets: Ints, columns: NDArray[np.uint32]) -> int:
    """Return the largest |row - column| of an entry; 0 if there are none."""
    row = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    return int(np.abs(row - columns.astype(np.int64)).max(initial=0))


def reordered(offsets: Ints, columns: NDArray[np.uint32]) -> Ints:
    """Return the rows in their new order, int64[n]."""
    n = offsets.size - 1
    row = np.repeat(np.arange(n), np.diff(offsets))
    column = columns.astype(np.int64)
    off = row != column
    both = np.concatenate([row[off] * n + column[off], column[off] * n + row[off]])
    both = np.unique(both)
    here, other = both // n, both % n
    degrees = np.bincount(here, minlength=n)
    by_degree = np.lexsort((other, degrees[other], here))
    begins = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    found = np.empty(n, np.int64)
    starts = np.argsort(degrees, kind="stable")
    allpairs.reverse_cuthill_mckee(begins, other[by_degree], starts, np.zeros(n, np.uint8), found)
    return found
