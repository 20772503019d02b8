"""Local refresh of the ``rows`` layout: recompute only the rows near changed links.

    recomputed   the rows of nodes whose links changed, and of their neighbors (except hubs')
    retained     all other rows, with the new graph's ids, without removed nodes

The scales and the weight of walks with an odd number of steps are those of the full build, so that
old and new rows are comparable. To measure how stale retained rows are, some of them are recomputed
(:func:`staleness`). A node that would enter a list only with its own new row is missed, so the
fraction of lists that differ is a lower bound. A local refresh costs one list and one push for each
recomputed node, one pass over links and rows, and, for each compared node, as much as 15 recomputed
nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, NOWHERE, Bools, Floats, Ids, Ints
from cocite.graph import Graph
from cocite.graph.blocks import cut_blocks, entries_of
from cocite.graph.links import links_of
from cocite.index.layouts.part import StoredPart
from cocite.kernels.random import GOLDEN, mix
from cocite.kernels.rows import answer, pair
from cocite.storage import evict

HUB = 32
"""Maximum number of links, in both directions, of a changed node whose neighbors are recomputed: a
single link of a hub hardly affects the hub's many neighbors.
"""
CHECKED, LISTED = 1000, 10
"""Number of nodes to compare, and length of their lists."""
_READ = 8 << 20

Codes = tuple[NDArray[np.uint64], Ids, NDArray[np.uint8], Ids]
"""(Counts, ids, codes, norms) of rows."""


# -- what changed ------------------------------------------------------------------------


def changed_nodes(before: Graph, now: Graph, ids: Ids, *, weighted: bool) -> Bools:
    """Return bool[nodes now]: new nodes, and nodes whose links have changed.

    ``ids`` contains the old nodes' current ids, or NOWHERE for removed nodes. Compares sums of
    64-bit hashes of links, so differences are missed with negligible probability.
    """
    keys = mixed(np.arange(now.nodes, dtype=np.uint64))
    gone = mixed(np.arange(before.nodes, dtype=np.uint64) + np.uint64(1 << 32))
    stay = ids != NOWHERE
    gone[stay] = keys[ids[stay]]
    sums, earlier = _sums(now, keys, weighted), _sums(before, gone, weighted)
    changed = np.ones(now.nodes, bool)
    changed[ids[stay]] = sums[ids[stay]] != earlier[stay]
    return changed


def with_neighbors(graph: Graph, nodes: Bools) -> Bools:
    """Return bool[nodes]: ``nodes``, and the neighbors of those that are not hubs."""
    degrees = np.diff(graph.in_offsets.astype(np.int64)) + graph.out_degrees
    found, telling = nodes.copy(), nodes & (degrees <= HUB)
    for sources, ends, _ in _links(graph, False):
        found[sources[telling[ends]]] = True
        found[ends[telling[sources]]] = True
    return found


def _sums(graph: Graph, keys: NDArray[np.uint64], weighted: bool) -> NDArray[np.uint64]:
    """Return uint64[nodes]: the sum of hashes of each node's links."""
    found, back = np.zeros(graph.nodes, np.uint64), mixed(~keys)
    for sources, ends, weights in _links(graph, weighted):
        factor = np.uint64(1)
        if weights is not None:
            factor = 2 * weights.view(np.uint32).astype(np.uint64) + factor
        np.add.at(found, ends, keys[sources] * factor)
        np.add.at(found, sources, back[ends] * factor)
    return found


def _links(graph: Graph, weighted: bool) -> Iterator[tuple[Ids, Ints, Any]]:
    """Yield (sources, targets, weights) of links in chunks."""
    links = links_of(graph, "in", weighted=weighted)
    for low, high in pairwise((0, *cut_blocks(links, _READ), links.nodes)):
        offsets = links.offsets[low : high + 1].astype(np.int64)
        piece = slice(int(offsets[0]), int(offsets[-1]))
        ends = np.repeat(np.arange(low, high), np.diff(offsets))
        weights = None if links.weights is None else links.weights[piece]
        yield links.neighbors[piece], ends, weights
        links.evict()


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return hashes of ``words``."""
    found: NDArray[np.uint64] = mix(words + GOLDEN)
    return found


# -- retained rows -----------------------------------------------------------------------


@dataclass(frozen=True)
class OldRows:
    """The rows of a ``part`` before a refresh. ``places`` contains each new node's old row, or
    NOWHERE; ``made`` marks the nodes to recompute; ``ids`` contains the old nodes' new ids.
    """

    part: StoredPart
    places: Ids
    made: Bools
    ids: Ids

    @cached_property
    def scales(self) -> list[float]:
        """Return each family's value of code 255."""
        found: list[float] = self.part.array("scales").tolist()
        return found

    def rows(self, family: int, pages: Ids) -> Codes:
        """Return the rows of ``pages``, with new ids."""
        offsets, ids, codes = (self.part.array(f"rows.{n}") for n in ("offsets", "ids", "codes"))
        at = family * self.part.nodes + self.places[pages].astype(np.int64)
        entries, row = entries_of(offsets[at], offsets[at + 1] - offsets[at])
        columns = self.ids[ids[entries]]
        stay = columns != NOWHERE
        row, columns, entries = row[stay], columns[stay], entries[stay]
        order = np.lexsort((columns, row))
        values = codes[entries[order]]
        norms = np.bincount(row, codes[entries].astype(np.float64) ** 2, pages.size)
        counts = np.bincount(row, minlength=pages.size).astype(np.uint64)
        return counts, columns[order], values, norms.astype(np.uint32)

    def evict(self) -> None:
        """Evict the mapped rows."""
        evict(*(self.part.array(f"rows.{name}") for name in ("ids", "codes")))


def with_old(rows: Codes, old: OldRows, family: int, pages: Ids) -> Codes:
    """Return the rows of ``pages``: those in ``rows`` for recomputed pages, and old rows for the
    other pages, which have empty rows in ``rows``.
    """
    kept = np.flatnonzero(~old.made[pages])
    counts, ids, codes, norms = rows
    old_counts, old_ids, old_codes, old_norms = old.rows(family, pages[kept])
    row = np.repeat(np.arange(pages.size), counts.astype(np.int64))
    order = np.argsort(np.append(row, np.repeat(kept, old_counts.astype(np.int64))), kind="stable")
    counts[kept], norms[kept] = old_counts, old_norms
    return counts, np.append(ids, old_ids)[order], np.append(codes, old_codes)[order], norms


def report_file(prefix: str) -> str:
    """Return the name of the staging file with the staleness of a part."""
    return f"{prefix}local.json"


# -- staleness ---------------------------------------------------------------------------


class RowArrays(NamedTuple):
    """The rows of all families: (offsets, ids, codes), and norms."""

    arrays: tuple[NDArray[Any], ...]
    norms: Ids


def staleness(
    stored: RowArrays,
    columns: tuple[NDArray[Any], ...],
    weights: Floats,
    left: Ints,
    make: Callable[[Ints], RowArrays],
) -> dict[str, float]:
    """Measure the staleness of the rows at the positions ``left``, from ``checked`` random nodes.

    ``differ`` is the fraction of their top-ten lists that change with recomputed rows;
    ``largest_difference`` is the largest score difference within these lists. ``weights`` are the
    family weights; ``make`` recomputes the rows at given positions.
    """
    checked = left
    if left.size > CHECKED:
        checked = np.sort(np.random.default_rng(0).choice(left, CHECKED, replace=False))
    if not checked.size:
        return {"checked": 0, "differ": 0.0, "largest_difference": 0.0}
    nodes = stored.norms.size // weights.size
    own = (np.arange(weights.size)[:, None] * nodes + checked).ravel()

    def lists(mine: RowArrays) -> list[Ids]:
        """Return the checked nodes' lists, from ``mine`` and the stored rows of other nodes."""
        norms = stored.norms.copy()
        norms[own] = mine.norms[own]
        room = np.zeros(nodes, np.uint64), np.empty(2 * nodes + 1, np.uint32)
        k = min(LISTED, nodes)
        counts, ids = np.zeros(checked.size, np.uint32), np.empty((checked.size, k), np.uint32)
        out, pages = (counts, ids, np.empty((checked.size, k, 4))), checked.astype(np.uint32)
        answer(mine.arrays, columns, norms, weights, pages, 1.0, room, out)
        return [ids[i, :size] for i, size in enumerate(counts.tolist())]

    listed, others = lists(stored), lists(make(checked))
    found = [np.union1d(*each) for each in zip(listed, others, strict=True)]
    fresh = make(np.unique(np.concatenate((checked, *found)).astype(np.int64)))

    def scores(by: RowArrays, node: int, others: Ids) -> Floats:
        pairs = (pair(by.arrays, by.norms, weights, node, other) for other in others.tolist())
        return np.fromiter(pairs, np.float64, others.size)

    differ = largest = 0.0
    for node, mine, near in zip(checked.tolist(), listed, found, strict=True):
        now, before = scores(fresh, node, near), scores(stored, node, near)
        largest = max(largest, float(np.abs(now - before).max(initial=0.0)))
        inside = np.isin(near, mine)
        least = now[inside].min(initial=GRAINS) if mine.size == LISTED else 0.0
        best = now[~inside].max(initial=0.0)
        differ += bool(best > least or (now[inside] == 0).any())
    differ /= checked.size
    return {"checked": checked.size, "differ": differ, "largest_difference": largest / GRAINS}
