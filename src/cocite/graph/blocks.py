"""Links as rows of neighbors, grouped by target or by source, and their division into blocks.

The neighbors of node v are ``neighbors[offsets[v] : offsets[v + 1]]``, ascending. A block is a
range of nodes with their offsets (8 bytes per node) and links (4 bytes each, 8 with weights).
Blocks never split a row. Cuts are the first nodes of all blocks after the first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, UsageError
from cocite.storage import Access, ArrayWriter, Entry, Store, evict, fetch, write_array

OFFSETS, SOURCES, DEGREES = "in_offsets", "in_sources", "out_degrees"
WEIGHTS = "in_weights"
"""Link files of a stored graph."""

_PIECE = 1 << 17
"""Nodes or neighbors to examine at a time."""


def rows_fault(
    offsets: NDArray[np.uint64], neighbors: NDArray[np.uint32], bound: int, *, twice: bool = False
) -> str:
    """Describe the first fault in rows of neighbors, or return "".

    Offsets must ascend from 0 to the number of neighbors. Neighbors must be below ``bound`` and
    ascend strictly within a row; with ``twice``, a neighbor may occur twice. Reads both arrays
    once, in chunks, and releases mapped memory.
    """
    if int(offsets[0]) != 0 or int(offsets[-1]) != neighbors.size:
        return "row offsets do not span the data"
    for low in range(0, offsets.size - 1, _PIECE):
        begins = offsets[low : low + _PIECE + 1]
        if not (begins[1:] >= begins[:-1]).all():
            return "row offsets do not ascend"
        evict(offsets)
    compare = np.greater_equal if twice else np.greater
    for low in range(0, neighbors.size, _PIECE):
        piece = neighbors[max(low - 1, 0) : low + _PIECE]
        if int(piece.max()) >= bound:
            return f"some ids are not below {bound:,}"
        ascends = np.ones(min(_PIECE, neighbors.size - low), np.bool_)
        compare(piece[1:], piece[:-1], out=ascends[ascends.size + 1 - piece.size :])
        first, last = np.searchsorted(offsets, np.array([low, low + ascends.size], np.uint64))
        ascends[offsets[first:last] - np.uint64(low)] = True  # row starts need not ascend
        if not ascends.all():
            return "a row does not ascend, or repeats an id"
        evict(neighbors, offsets)
    return ""


def are_positive(weights: NDArray[np.float32]) -> bool:
    """Return whether all weights are positive and finite; read them in chunks, evicting each."""
    for low in range(0, weights.size, _PIECE):
        piece = weights[low : low + _PIECE]
        if not (piece.min() > 0 and piece.max() < np.inf):  # NaN fails both
            return False
        evict(piece)
    return True


@dataclass(frozen=True)
class Links:
    """Rows of neighbors: ``offsets`` uint64[nodes + 1], ``neighbors`` uint32[edges] and ``weights``
    float32[edges], or None. ``back`` has the transposed links, for walks in both directions, or is
    None.
    """

    offsets: NDArray[np.uint64]
    neighbors: NDArray[np.uint32]
    weights: NDArray[np.float32] | None = None
    back: Links | None = None

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return self.offsets.size - 1

    @property
    def edges(self) -> int:
        """Return the number of links."""
        return self.neighbors.size

    @property
    def link_bytes(self) -> int:
        """Return the bytes per link."""
        return 4 if self.weights is None else 8

    @property
    def nbytes(self) -> int:
        """Return the total bytes."""
        own = self.offsets.nbytes + self.link_bytes * self.edges
        return own + (0 if self.back is None else self.back.nbytes)

    def fetch(self, first: int, last: int) -> None:
        """Prefetch the rows of nodes [first, last) of mapped links."""
        offsets = self.offsets[first : last + 1]
        part = slice(int(offsets[0]), int(offsets[-1]))
        fetch(offsets, self.neighbors[part])
        if self.weights is not None:
            fetch(self.weights[part])

    def evict(self) -> None:
        """Release the memory of mapped arrays."""
        evict(self.offsets, self.neighbors)
        if self.weights is not None:
            evict(self.weights)
        if self.back is not None:
            self.back.evict()


class InLinks:
    """The links of a stored graph (``graph/graph.py``), in mapped files."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def store(self) -> Store:
        """Return the directory and its manifest."""
        return self._store

    @property
    def path(self) -> Any:
        """Return the graph's path."""
        return self._store.path

    @property
    def nodes(self) -> int:
        """Return the number of nodes, whose ids are 0 to nodes - 1."""
        return int(self._store.facts["nodes"])

    @property
    def edges(self) -> int:
        """Return the number of distinct links."""
        return int(self._store.facts["edges"])

    @cached_property
    def in_offsets(self) -> NDArray[np.uint64]:
        """Return where each node's in-neighbors begin, uint64[nodes + 1]."""
        return self._store.array(OFFSETS)

    @cached_property
    def in_sources(self) -> NDArray[np.uint32]:
        """Return the in-neighbors, uint32[edges], ascending within a node."""
        return self._store.array(SOURCES)

    @cached_property
    def in_weights(self) -> NDArray[np.float32] | None:
        """Return the link weights in the order of ``in_sources``, float32[edges], or None."""
        return self._store.array(WEIGHTS) if WEIGHTS in self._store.manifest.files else None

    @cached_property
    def out_degrees(self) -> NDArray[np.uint32]:
        """Return the out-degree of each node, uint32[nodes]."""
        return self._store.array(DEGREES)

    def check(self) -> None:
        """Check that offsets and in-neighbors ascend, that weights are positive, and that file
        checksums match (once per open graph, and not with ``verify=False``). Reads the links once.
        Raises :class:`~cocite.errors.Damaged`, which names the file, and
        :class:`~cocite.errors.UsageError` for a graph without nodes.
        """
        if self.nodes == 0:
            raise UsageError(f"{self.path} has no nodes, so there is nothing to compute")
        self.store.advise(Access.AROUND)
        self.store.require(*self.store.manifest.files)
        self.check_links()
        if self.in_weights is not None and not are_positive(self.in_weights):
            raise Damaged.graph(self.path, "some weights are not positive")

    def check_links(self) -> None:
        """Validate offsets and links. A graph without nodes is valid."""
        fault = rows_fault(self.in_offsets, self.in_sources, self.nodes)
        if fault:
            raise Damaged.graph(self.path, f"its links are invalid: {fault}")


@runtime_checkable
class InBlocks(Protocol):
    """A partitioned graph (``graph/partitions.py``)."""

    def links(self, direction: str, weighted: bool) -> Links:
        """Return a placeholder for the links."""


def entries_of(
    begins: NDArray[Any], counts: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each entry's position, and its row, in rows with these ``begins`` and ``counts``."""
    begins, counts = begins.astype(np.int64), counts.astype(np.int64)
    row = np.repeat(np.arange(counts.size), counts)
    return np.arange(row.size) + (begins - np.cumsum(counts) + counts)[row], row


def count_in_links(offsets: NDArray[np.uint64], ids: NDArray[np.uint32]) -> NDArray[np.int64]:
    """Return the in-degrees of ``ids`` from ``offsets`` uint64[nodes + 1]; 0 for an unseen page."""
    found, stored = np.zeros(ids.size, np.int64), ids < offsets.size - 1
    places = ids[stored].astype(np.int64)
    found[stored] = offsets[places + 1] - offsets[places]
    return found


_OFFSET = 8


def cut_blocks(
    links: Links, block: int, beside: int = 0, link: int | None = None
) -> tuple[int, ...]:
    """Return where to cut nodes into blocks of at most ``block`` bytes; one node may exceed that.

    A node takes ``beside`` bytes in addition to its rows in the links and in ``back``. A link takes
    ``link`` bytes, by default the size of a neighbor and any weight.
    """
    rows = _BlockRows(links, _OFFSET + beside, link or links.link_bytes)
    cuts: list[int] = []
    first = 0
    while True:
        fitting = rows.first_beyond(rows.before(first) + block) - 1
        first = max(fitting, first + 1)  # a single node may exceed a block
        if first >= links.nodes:
            return tuple(cuts)
        cuts.append(first)


def cut_evenly(links: Links, blocks: int) -> tuple[int, ...]:
    """Return where to cut the nodes into at most ``blocks`` blocks of about equal size."""
    rows = _BlockRows(links, _OFFSET, links.link_bytes)
    whole, blocks = rows.before(links.nodes), min(blocks, links.nodes)
    cuts = {rows.first_beyond(whole * i // blocks) for i in range(1, blocks)}
    return tuple(sorted(cuts - {0, links.nodes, links.nodes + 1}))


@dataclass(frozen=True)
class _BlockRows:
    """Row sizes, at ``node`` bytes per node and ``link`` bytes per link."""

    links: Links
    node: int
    link: int

    def before(self, node: int) -> int:
        """Return the bytes of the rows of all smaller nodes."""
        back, found = self.links.back, self.node * node
        if back is not None:
            found += _OFFSET * node + self.link * int(back.offsets[node])
        return found + self.link * int(self.links.offsets[node])

    def first_beyond(self, size: int) -> int:
        """Return the first node with more than ``size`` bytes before it, or nodes + 1."""
        found = bisect_right(range(self.links.nodes + 1), size, key=self.before)
        for rows in (self.links, self.links.back or self.links):
            evict(rows.offsets)  # every probe loaded memory pages around it
        return found


class LinkFileWriter:
    """Writes a graph's link files node by node: ``add_rows``, then ``add_links``. Created by
    :func:`link_writer`; when its ``with`` block ends, ``files`` has the entries for the manifest.
    """

    def __init__(self, out: dict[str, ArrayWriter], degrees: NDArray[np.uint32]) -> None:
        self._out, self._degrees = out, degrees
        self._smallest, self._largest, self._total = np.inf, 0.0, 0.0
        self.files: dict[str, Entry] = {}
        self.edges = 0
        """Number of links so far."""

    def add_rows(self, begins: NDArray[Any]) -> None:
        """Append rows; ``begins`` are their offsets in the links that are added next."""
        self._out[OFFSETS].write(begins.astype(np.uint64) + np.uint64(self.edges))

    def add_links(
        self, sources: NDArray[np.uint32], weights: NDArray[np.float32] | None = None
    ) -> None:
        """Append links, in the order of their targets and sources."""
        from cocite.kernels.links import add_counts, sum_runs

        self._out[SOURCES].write(sources)
        add_counts(sources, self._degrees)
        self.edges += sources.size
        if weights is not None and weights.size:
            self._out[WEIGHTS].write(weights)
            found = np.empty(1)
            sum_runs(np.zeros(1, np.int64), np.concatenate([[self._total], weights]), found)
            self._total = float(found[0])
            self._smallest = min(self._smallest, float(weights.min()))
            self._largest = max(self._largest, float(weights.max()))

    @property
    def facts(self) -> dict[str, Any]:
        """Return the manifest's facts about weights; only a sum if there are no links."""
        ends = {"smallest": self._smallest, "largest": self._largest} if self._largest else {}
        return {"weights": ends | {"sum": self._total}} if WEIGHTS in self._out else {}


@contextmanager
def link_writer(
    directory: Path, degrees: NDArray[np.uint32], *, weighted: bool = False
) -> Iterator[LinkFileWriter]:
    """Write link files to ``directory``, and out-degrees to ``degrees`` (uint32[nodes], all 0)."""
    kinds = {OFFSETS: np.uint64, SOURCES: np.uint32} | ({WEIGHTS: np.float32} if weighted else {})
    with ExitStack() as stack:
        out = {n: stack.enter_context(ArrayWriter(directory / n, k)) for n, k in kinds.items()}
        yield (writer := LinkFileWriter(out, degrees))
        writer.add_rows(np.zeros(1))  # the end of the last row
    writer.files = {name: each.finished for name, each in out.items()}
    pieces = (degrees[low : low + _PIECE] for low in range(0, degrees.size, _PIECE))
    writer.files[DEGREES] = write_array(directory / DEGREES, np.uint32, pieces)
