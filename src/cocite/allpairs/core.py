"""Reduction of SimRank's linear system: nodes with equal in-links share a row.

Row q_v of Q contains v's in-links, normalized. Nodes without in-links have no row and are similar
only to themselves. Nodes with equal rows form a *class* with one row. Let T be the matrix of
c q_k S q_l' for classes k and l, which equals S off the diagonal. Then

    T = c W T W' + c sum over nodes v of q_k[v] q_l[v] (1 - T[class of v, class of v])

where W[k, a] sums q_k over the nodes of class a. The last factor, the *excess* of v, is 1 for a
node without a class. Nodes that are alone in their class need no such term, because the diagonal is
set to 1. All other nodes are *loose*. Takes O(n + m) time and memory, with a Python step per node;
wiki-Vote has 7,115 nodes and 2,379 rows. Source: Yu et al. 2011, eq. 6, and eq. 7 for
teleportation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.allpairs.links import bandwidth, reordered
from cocite.graph.blocks import Links

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedLinks:
    """A sparse matrix in CSR form: int64 offsets, uint32 columns, and weights (usually float64)."""

    offsets: Ints
    columns: NDArray[np.uint32]
    weights: NDArray[Any]

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.offsets.size - 1

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""
        return self.offsets.nbytes + self.columns.nbytes + self.weights.nbytes

    def typed(self, dtype: DTypeLike) -> WeightedLinks:
        """Return the matrix with weights of another type."""
        return replace(self, weights=self.weights.astype(dtype))

    def part(self, first: int, end: int) -> tuple[Ints, NDArray[np.uint32], NDArray[Any]]:
        """Return the rows from ``first`` to ``end`` as arguments for kernels."""
        return self.offsets[first : end + 1], self.columns, self.weights

    def transposed(self, rows: int) -> WeightedLinks:
        """Return the transpose, with ``rows`` rows and ascending columns."""
        row = np.repeat(np.arange(self.rows), np.diff(self.offsets))
        order = np.argsort(self.columns, kind="stable")
        return WeightedLinks(
            offsets_of(np.bincount(self.columns, minlength=rows)),
            row[order].astype(np.uint32),
            self.weights[order],
        )


@dataclass(frozen=True)
class Core:
    """The reduced system of a graph with ``nodes`` nodes.

    ``number`` int64[nodes] is each node's class or -1. ``firsts`` has one node of each class, and
    ``sizes`` the number of nodes in each. ``links`` is W, and ``bandwidth`` its bandwidth before
    and after ordering. ``shared`` lists the loose nodes in each class's row, ``spread`` the classes
    in each loose node's column, and ``owners`` int64[loose] the nodes' classes or -1.
    """

    nodes: int
    number: Ints
    firsts: Ints
    sizes: Ints
    links: WeightedLinks
    shared: WeightedLinks
    spread: WeightedLinks
    owners: Ints
    bandwidth: tuple[int, int]

    @property
    def size(self) -> int:
        """Return the number of classes, which is the number of the matrix's rows."""
        return self.sizes.size

    @property
    def single(self) -> NDArray[np.uint8]:
        """Return the mask of classes with one node. Their diagonal stays 1."""
        return np.asarray(self.sizes == 1, np.uint8)

    @property
    def depth(self) -> int:
        """Return the longest chain of additions, which bounds rounding errors."""
        widest = int(np.diff(self.links.offsets).max(initial=0))
        return 2 * (-(-widest // 4) + 5) + int(np.diff(self.shared.offsets).max(initial=0))

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""
        lists = self.links.nbytes + self.shared.nbytes + self.spread.nbytes
        return lists + self.number.nbytes + self.sizes.nbytes + self.owners.nbytes

    def excess(self, diagonal: NDArray[np.floating]) -> Floats:
        """Return 1 - T[class, class] for each loose node, or 1 if it has no class."""
        owned = self.owners >= 0
        found = np.ones(self.owners.size)
        single = self.sizes[self.owners[owned]] == 1
        found[owned] -= np.where(single, 1.0, diagonal[self.owners[owned]])
        return found


def reduce(
    links: Links,
    *,
    weights: NDArray[np.float32] | None = None,
    teleport: float | None = None,
    order: bool = True,
    all_loose: bool = False,
) -> Core:
    """Reduce the system whose in-links are ``links``; ``teleport`` is lambda in eq. 7.

    ``order`` applies reverse Cuthill-McKee; ``all_loose``, for PSimRank, makes all nodes loose.
    """
    rows = node_rows(links, weights, teleport)
    number, firsts = _classes(rows)
    if teleport is not None:
        without = np.flatnonzero(np.diff(links.offsets) == 0)
        number[without] = number[without[:1]]
    quotient = _quotient(rows, number, firsts)
    before = after = bandwidth(quotient.offsets, quotient.columns)
    if order and firsts.size:
        places = reordered(quotient.offsets, quotient.columns)
        rank = np.empty_like(places)
        rank[places] = np.arange(places.size)
        firsts = firsts[places]
        number[number >= 0] = rank[number[number >= 0]]
        quotient = _quotient(rows, number, firsts)
        after = bandwidth(quotient.offsets, quotient.columns)
    sizes = np.bincount(number[number >= 0], minlength=firsts.size)
    loose = (number < 0) | (sizes[number] > 1) if firsts.size else np.zeros(links.nodes, bool)
    shared, owners = _shared(rows, number, firsts, loose | all_loose)
    return Core(
        links.nodes,
        number,
        firsts,
        sizes,
        quotient,
        shared,
        shared.transposed(owners.size),
        owners,
        (before, after),
    )


def offsets_of(counts: NDArray[np.integer]) -> Ints:
    """Return where lists of these lengths begin, followed by the total."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def node_rows(
    links: Links, weights: NDArray[np.float32] | None, teleport: float | None
) -> WeightedLinks:
    """Return Q by nodes. With teleportation (eq. 7), one row represents all uniform rows."""
    offsets = links.offsets.astype(np.int64)
    degrees = np.diff(offsets)
    target = np.repeat(np.arange(links.nodes), degrees)
    raw = np.ones(links.edges) if weights is None else weights.astype(np.float64)
    sums = np.bincount(target, raw, minlength=links.nodes)
    values = raw / sums[target]
    columns = np.asarray(links.neighbors)
    if teleport is None:
        return WeightedLinks(offsets, columns, values)
    values, empty = teleport * values, np.flatnonzero(degrees == 0)
    if empty.size == 0 or teleport == 1:
        return WeightedLinks(offsets, columns, values)
    n, first = links.nodes, int(empty[0])
    at = int(offsets[first])
    offsets[first + 1 :] += n
    columns = np.insert(columns, at, np.arange(n, dtype=np.uint32))
    return WeightedLinks(offsets, columns, np.insert(values, at, np.full(n, (1 - teleport) / n)))


def _classes(rows: WeightedLinks) -> tuple[Ints, Ints]:
    """Return (each node's class or -1, each class's first node), in order of first nodes."""
    number = np.full(rows.rows, -1, np.int64)
    firsts: list[int] = []
    known: dict[bytes, int] = {}
    for node in np.flatnonzero(np.diff(rows.offsets)).tolist():
        low, high = rows.offsets[node], rows.offsets[node + 1]
        key = rows.columns[low:high].tobytes() + rows.weights[low:high].tobytes()
        found = known.setdefault(key, len(firsts))
        if found == len(firsts):
            firsts.append(node)
        number[node] = found
    return number, np.array(firsts, np.int64)


def _entries(rows: WeightedLinks, firsts: Ints) -> tuple[Ints, Ints, Floats]:
    """Return (class, node, weight) of all entries in the classes' rows, by class."""
    counts = rows.offsets[firsts + 1] - rows.offsets[firsts]
    row = np.repeat(np.arange(firsts.size), counts)
    begins = offsets_of(counts)[:-1]
    place = np.arange(row.size) - begins[row] + rows.offsets[firsts][row]
    return row, rows.columns[place].astype(np.int64), rows.weights[place]


def _quotient(rows: WeightedLinks, number: Ints, firsts: Ints) -> WeightedLinks:
    """Return W: weights summed by class, with ascending columns."""
    row, node, weight = _entries(rows, firsts)
    column = number[node]
    inner = column >= 0
    key = row[inner] * np.int64(max(firsts.size, 1)) + column[inner]
    order = np.argsort(key, kind="stable")
    keys, begins = np.unique(key[order], return_index=True)
    sums = np.add.reduceat(weight[inner][order], begins) if keys.size else np.zeros(0)
    size = max(firsts.size, 1)
    counts = np.bincount(keys // size, minlength=firsts.size)
    return WeightedLinks(offsets_of(counts), (keys % size).astype(np.uint32), sums)


def _shared(
    rows: WeightedLinks, number: Ints, firsts: Ints, loose: NDArray[np.bool_]
) -> tuple[WeightedLinks, Ints]:
    """Return the loose nodes in each class's row, renumbered, and their classes."""
    row, node, weight = _entries(rows, firsts)
    kept = loose[node]
    nodes, index = np.unique(node[kept], return_inverse=True)
    counts = np.bincount(row[kept], minlength=firsts.size)
    return WeightedLinks(offsets_of(counts), index.astype(np.uint32), weight[kept]), number[nodes]
