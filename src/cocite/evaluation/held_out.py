"""Evaluate lists without labels: how well they recover the co-neighbors lost with hidden links.

Pairs of linked pages are hidden in the order of draw(seed, pair), with links in both directions,
until ``share`` of all links to other pages is hidden. Every page keeps a link (our own rule), and
its id.

    C(v)      = the co-neighbors of v: for each hidden link v -> w, the other pages that link to w;
                for each hidden link w -> v, the other pages that w links to
    g(x)      = 1 / sqrt(1 + links of x, either way, that are not hidden); without it, lists of
                popular pages would win
    coneighbors@k = mean over pages v of   sum of g(x) over x in C(v) and the first k of v's list
                                         / the sum of the k largest g(x) over C(v)
    links@k   = the fraction of the hidden neighbors among the first k (link prediction)

A node w with more than 10,000 links in that direction is ignored, and so are pages without
co-neighbors. Costs two passes over the links, 24 bytes per node, about 60 bytes per pair tried, and
a copy of the graph on disk. Source: the split of Liben-Nowell, Kleinberg 2003, *The link prediction
problem*, without dates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.evaluation.judge import QueryJudge
from cocite.evaluation.rankers import Ids, Ranker
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.exclude import write_rest
from cocite.graph.links import in_links, links_of
from cocite.graph.name_files import NAME_FILES
from cocite.resources import require
from cocite.storage import Manifest, evict
from cocite.storage.staging import Staging, copy_array

_PIECE = 1 << 17
_COUNTED, _TRIED, _LINK = 24, 60, 60
"""Bytes while choosing links: per node, per pair tried, and per link of a piece."""
_LOW, _SHIFT = np.uint64(0xFFFFFFFF), np.uint64(32)
Pairs = NDArray[np.uint64]


@dataclass(frozen=True)
class Hidden:
    """Pairs of pages whose links are hidden, ``low`` < ``high``, uint32[pairs], ascending."""

    low: Ids
    high: Ids

    @classmethod
    def of(cls, pairs: Pairs) -> Hidden:
        """Convert ascending keys, smaller id * 2**32 + larger id."""
        return cls((pairs >> _SHIFT).astype(np.uint32), (pairs & _LOW).astype(np.uint32))

    @property
    def pages(self) -> Ids:
        """Return the pages with hidden links, uint32[pages], ascending."""
        return np.unique(np.concatenate([self.low, self.high]))

    def of_pages(self, pages: Ids) -> list[Ids]:
        """Return the other ends of the hidden links of each of ``pages``."""
        ends = np.concatenate([self.low, self.high])
        others = np.concatenate([self.high, self.low])
        order = np.argsort(ends, kind="stable")
        ends, others = ends[order], others[order]
        begins, stops = (np.searchsorted(ends, pages, side) for side in ("left", "right"))
        return [others[a:b] for a, b in zip(begins, stops, strict=True)]


def hidden_pairs(graph: Graph, share: float, seed: int, memory: int = 1 << 62) -> Pairs:
    """Return the pairs to hide as ascending uint64 keys, smaller id * 2**32 + larger id.

    Raises :class:`UsageError` if hiding any link would leave a page without links, and
    :class:`ResourceError` if this takes more than ``memory`` bytes.
    """
    from cocite.kernels.links import admit

    total, degrees = _counted(graph)
    wanted, bound = max(1, round(share * total)), share
    while True:
        bound = min(1.0, 1.5 * bound + 64 / max(1, graph.edges))
        needed = _COUNTED * graph.nodes + round(_TRIED * bound * graph.edges)
        require(needed + _LINK * min(_PIECE, graph.edges), memory, "choosing links to hide")
        pairs, keys, links = _tried(graph, bound, seed)
        order = np.lexsort((pairs, keys))
        pairs, links = pairs[order], links[order]
        taken = np.zeros(pairs.size, bool)
        done = admit(pairs, links, degrees.copy(), wanted, taken)
        if done >= wanted or bound == 1:
            break
    if not done:
        raise UsageError(
            f"no link of {graph.path} can be hidden: each of its {total:,} links to other pages is "
            "a page's only link. Tune by labels with --labels (labels=...), or use the default "
            "measure"
        )
    return np.sort(pairs[taken])


def hide_links(graph: Graph, output: str | os.PathLike[str], pairs: Pairs) -> Graph:
    """Store ``graph`` without the links between ``pairs`` (from :func:`hidden_pairs`).

    Raises :class:`~cocite.errors.OutputExists`, :class:`~cocite.errors.ResourceError`.
    """

    def stays(targets: Ids, sources: Ids) -> NDArray[np.bool_]:
        return ~_among(_paired(targets, sources), pairs)

    with Staging(os.fspath(output), "graph") as draft:
        every = np.ones(graph.nodes, bool)
        weights, edges, files = write_rest(draft.path, graph, every, stays=stays)
        facts = graph.store.facts | {"edges": edges, "rows": edges, "sources": [], **weights}
        for name, entry in graph.store.manifest.files.items():
            if name.startswith(NAME_FILES):
                copy_array(graph.path / name, draft.path / name, entry)
                files[name] = entry
        return Graph.open(draft.publish(Manifest("graph", facts, files)))


def _links(graph: Graph) -> Iterator[tuple[Ids, Ids]]:
    """Yield targets and sources, uint32, of all links, piece by piece."""
    offsets, sources = graph.in_offsets, graph.in_sources
    for first in range(0, graph.edges, _PIECE):
        last = min(first + _PIECE, graph.edges)
        places = np.arange(first, last, dtype=np.uint64)
        low = int(np.searchsorted(offsets, np.uint64(first), side="right")) - 1
        high = int(np.searchsorted(offsets, np.uint64(last - 1), side="right"))
        targets = low + np.searchsorted(offsets[low + 1 : high + 1], places, side="right")
        yield targets.astype(np.uint32), np.array(sources[first:last])
        evict(sources, offsets)


def _paired(targets: Ids, sources: Ids) -> Pairs:
    low, high = np.minimum(targets, sources), np.maximum(targets, sources)
    return (low.astype(np.uint64) << _SHIFT) | high.astype(np.uint64)


def _among(values: Pairs, ascending: Pairs) -> NDArray[np.bool_]:
    at = np.minimum(np.searchsorted(ascending, values), max(0, ascending.size - 1))
    return ascending[at] == values if ascending.size else np.zeros(values.size, bool)


def _counted(graph: Graph) -> tuple[int, NDArray[np.int64]]:
    """Return the number of links between different pages, and int64[nodes]: each page's number of
    these links, in-links plus out-links.
    """
    degrees = np.diff(graph.in_offsets).astype(np.int64) + graph.out_degrees
    loops = 0
    for targets, sources in _links(graph):
        same = targets[targets == sources]
        np.subtract.at(degrees, same, 2)
        loops += same.size
    return graph.edges - loops, degrees


def _tried(
    graph: Graph, bound: float, seed: int
) -> tuple[Pairs, NDArray[np.uint64], NDArray[np.uint8]]:
    """Return the pairs whose random keys are below ``bound``, their keys, and numbers of links."""
    from cocite.kernels.random import pair_keys

    least = np.uint64(min(2**64 - 1, int(bound * 2**64)))
    found = []
    for targets, sources in _links(graph):
        pairs = _paired(targets, sources)[targets != sources]
        keys = np.empty(pairs.size, np.uint64)
        pair_keys(np.uint64(seed), pairs, keys)
        found.append(pairs[keys <= least])
    pairs, links = np.unique(np.concatenate(found or [np.empty(0, np.uint64)]), return_counts=True)
    keys = np.empty(pairs.size, np.uint64)
    pair_keys(np.uint64(seed), pairs, keys)
    return pairs, keys, links.astype(np.uint8)


CUTOFFS = (10, 50)
MAX_DEGREE = 10_000
CONEIGHBOR_TITLES = (
    "answered",
    *(f"coneighbors@{k}" for k in CUTOFFS),
    *(f"links@{k}" for k in CUTOFFS),
)


class CoNeighborGain(QueryJudge):
    """Evaluates rankers by hidden links. ``queries`` uint32[q] are the pages with co-neighbors."""

    titles = CONEIGHBOR_TITLES

    def __init__(self, graph: Graph, shown: Graph, hidden: Hidden, pages: Ids, memory: int) -> None:
        """Prepare the judge for those ``pages`` (ascending) that have co-neighbors.

        ``graph`` has all links, ``shown`` all but the ``hidden`` ones. Raises :class:`UsageError`
        if no page has co-neighbors.
        """
        ins, outs = in_links(shown), links_of(shown, "out", memory)
        degrees = np.diff(ins.offsets).astype(np.int64) + np.diff(outs.offsets).astype(np.int64)
        self._gains = 1 / np.sqrt(1.0 + degrees)
        found: list[tuple[int, Ids, Ids]] = []
        for page, ends in zip(pages.tolist(), hidden.of_pages(pages), strict=True):
            coneighbors = _gain(graph, ins, outs, page, ends)
            if coneighbors.size:
                found.append((page, ends, coneighbors))
        if not found:
            raise UsageError(
                f"in {graph.path}, no page with hidden links has co-neighbors, so there "
                "is nothing to find. Tune by labels with --labels (labels=...), or use the default "
                "measure"
            )
        self.queries = np.array([page for page, _, _ in found], np.uint32)
        self._ends = [ends for _, ends, _ in found]
        self._gain = [coneighbors for _, _, coneighbors in found]

    def of(self, rows: NDArray[np.bool_]) -> Self:
        """Return the judge for the selected pages, bool[queries]."""
        part, at = copy(self), np.flatnonzero(rows)
        part.queries = self.queries[at]
        part._ends, part._gain = [self._ends[i] for i in at], [self._gain[i] for i in at]
        return part

    def _row(self, ranker: Ranker, at: int) -> NDArray[np.float64]:
        ids = ranker.related(int(self.queries[at]), CUTOFFS[-1]).ids
        coneighbors, ends = self._gain[at], self._ends[at]
        best = np.sort(self._gains[coneighbors])[::-1]
        gains = np.where(np.isin(ids, coneighbors), self._gains[ids], 0.0)
        held = np.isin(ids, ends)
        figures = [float(ids.size > 0)]
        figures += [float(gains[:k].sum() / best[:k].sum()) for k in CUTOFFS]
        figures += [float(held[:k].sum() / min(k, ends.size)) for k in CUTOFFS]
        return np.array([figures, [1.0] * len(figures)])


def _gain(graph: Graph, ins: Links, outs: Links, page: int, ends: Ids) -> Ids:
    """Return the co-neighbors of ``page``, ascending, from its hidden links with ``ends``."""
    found = []
    for end in ends.tolist():
        if _has(graph.in_neighbors(end), page):
            found.append(_row_of(ins, end))
        if _has(graph.in_neighbors(page), end):
            found.append(_row_of(outs, end))
    found = [row for row in found if row.size <= MAX_DEGREE]
    coneighbors = np.unique(np.concatenate(found)) if found else np.empty(0, np.uint32)
    others: Ids = coneighbors[coneighbors != page].astype(np.uint32)
    return others


def _row_of(links: Links, node: int) -> Ids:
    begin, end = int(links.offsets[node]), int(links.offsets[node + 1])
    return np.asarray(links.neighbors[begin:end])


def _has(ascending: Ids, node: int) -> bool:
    at = int(np.searchsorted(ascending, np.uint32(node)))
    return at < ascending.size and int(ascending[at]) == node
