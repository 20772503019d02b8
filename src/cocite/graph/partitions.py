"""A graph partitioned by link target, for clusters whose machines each hold only a part of it.

    web.blocks/graph/          everything but the links: offsets, out-degrees, names, titles
    web.blocks/block-0000/     the rows of the first block, with their out-degrees
    web.blocks/block-0001/     ...

Each folder is a store with checksums (``storage/FORMAT.md``), so a machine needs only the blocks
that it works on. A block records the digest of the whole graph, which prevents mixing blocks of
different graphs. Results are byte-identical to those from the whole graph.

Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.1.3: each computer gets a
part of the vertices and their in-edges.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged, NotAStore, UsageError
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, WEIGHTS, Links, are_positive, rows_fault
from cocite.graph.graph import Graph, GraphInfo, Hub
from cocite.graph.name_files import NAME_KINDS, sides_text, take_text_files
from cocite.graph.names import MAX_NODES
from cocite.graph.sides import Sides
from cocite.results import Document
from cocite.storage import DeclaredFiles, Facts, Manifest, Store, evict, kind_of

HEAD = "graph"
BLOCKED, BLOCK = "blocked", "block"
"""Kinds of stores: a graph without its links, and the links of one block."""
MOST_BLOCKS = 1024
"""Maximum number of blocks; walks hold data in memory for each pair of blocks."""
_PIECE = 1 << 20


def folder_of(block: int) -> str:
    """Return the name of a block's folder."""
    return f"block-{block:04}"


def is_blocked(path: str | os.PathLike[str]) -> bool:
    """Return whether ``path`` contains the manifest of a partitioned graph."""
    return kind_of(Path(path) / HEAD) == BLOCKED


def parts_of(path: str | os.PathLike[str]) -> list[Path]:
    """Return the paths of all stores of a partitioned graph, the one without links first."""
    graph = BlockedGraph.open(path)
    return [graph.store.path, *(graph.path / folder_of(block) for block in range(graph.blocks))]


class GraphBlock:
    """The validated rows of nodes [first, last) of ``nodes``, from the partitioned graph with
    ``digest`` in ``folder``. ``offsets`` uint64[last - first + 1] begin at 0; ``sources``,
    ``weights`` (or None) and ``degrees`` are as in a graph. Raises
    :class:`~cocite.errors.StoreError`.
    """

    def __init__(self, folder: str | os.PathLike[str], block: int, digest: str) -> None:
        store = Store.open(Path(folder) / folder_of(block), BLOCK)
        facts = Facts(store.facts, f"{store.path}: the manifest")
        self.nodes = facts.whole("nodes", 1, MAX_NODES)
        self.last = facts.whole("last", 0, self.nodes)
        self.first = facts.whole("first", 0, self.last)
        edges = facts.whole("edges")
        if (facts.whole("block"), facts.text("digest")) != (block, digest):
            raise Damaged(
                f"{store.path} is not block {block} of this graph. Copy that block again, or "
                "partition the graph again"
            )
        files = DeclaredFiles(store.path, store.manifest.files)
        own = {OFFSETS: "<u8[k + 1]", SOURCES: "<u4[m]", DEGREES: "<u4[k]", WEIGHTS: "<f4[m]"}
        files.take(own, {"k": self.last - self.first, "m": edges}, optional=(WEIGHTS,))
        files.no_more()
        store.require(*store.manifest.files)
        self.offsets = store.array(OFFSETS)
        self.sources = store.array(SOURCES)
        self.degrees = store.array(DEGREES)
        self.weights = store.array(WEIGHTS) if store.has(WEIGHTS) else None
        fault = rows_fault(self.offsets, self.sources, self.nodes)
        if not fault and self.weights is not None and not are_positive(self.weights):
            fault = "some weights are not positive"
        if fault:
            raise Damaged(f"{store.path} is damaged: {fault}. Partition the graph again")


@dataclass(frozen=True)
class BlockedLinks(Links):
    """Placeholder for links stored in blocks: the offsets, with ``neighbors`` empty."""

    graph: BlockedGraph | None = None

    @property
    def edges(self) -> int:
        """Return the number of links."""
        return int(self.offsets[-1])

    @property
    def whole(self) -> BlockedGraph:
        """Return the partitioned graph."""
        assert self.graph is not None
        return self.graph


class BlockedGraph(Graph):
    """A partitioned graph without its links, for the coordinating process.

    ``crew`` starts the workers that hold the blocks. By default, this process holds them.
    """

    def __init__(self, folder: Path, store: Store, crew: Any = None) -> None:
        self._store, self._folder, self.crew = store, folder, crew
        check_head(store)
        facts = store.facts
        self.cuts: list[int] = facts["cuts"]
        """First node of each block, and the number of nodes."""
        self.blocks = len(self.cuts) - 1
        """Number of blocks."""
        self.digest, self.weighted = facts["digest"], facts["weighted"]

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, verify: bool = True, crew: Any = None
    ) -> BlockedGraph:
        """Open the folder ``path``. Raises the errors of :meth:`Graph.open`."""
        folder = Path(path)
        if not is_blocked(folder):
            raise NotAStore(
                f"{folder} is not a partitioned graph. To create one: cocite ingest GRAPH -o "
                f"{folder} --partitions N"
            )
        return cls(folder, Store.open(folder / HEAD, BLOCKED, verify=verify), crew)

    @property
    def path(self) -> Any:
        """Return the path of the folder."""
        return self._folder

    @cached_property
    def here(self) -> list[Path]:
        """Return the paths of the blocks on this machine."""
        return [path for path in parts_of(self._folder)[1:] if kind_of(path) == BLOCK]

    @property
    def nbytes(self) -> int:
        """Return the size of all local files on disk."""
        return self._store.nbytes + sum(Manifest.read(path, BLOCK).nbytes for path in self.here)

    @property
    def in_weights(self) -> NDArray[np.float32] | None:
        """Return an empty array if the graph is weighted. The weights are in the blocks."""
        return np.empty(0, np.float32) if self.weighted else None

    @property
    def in_sources(self) -> NDArray[np.uint32]:
        """Raise :class:`UsageError`. The sources are in the blocks."""
        raise UsageError(
            f"{self.path} is partitioned. Only cocite index (simrank, psimrank, xjaccard) and "
            "cocite rank with --cluster support partitioned graphs. Use the original graph"
        )

    def links(self, direction: str, weighted: bool) -> BlockedLinks:
        """Return the placeholder for in-links. Other directions raise :class:`UsageError`."""
        if direction != "in":
            raise UsageError(
                f"{self.path} is partitioned by link targets, so it supports only --direction in "
                "(direction='in'). For other directions, use the original graph"
            )
        weights = np.empty(0, np.float32) if weighted and self.weighted else None
        return BlockedLinks(self.in_offsets, np.empty(0, np.uint32), weights, None, self)

    def check_links(self) -> None:
        """Check the offsets. Workers check each block when they open it."""
        offsets = self.in_offsets
        fine = int(offsets[0]) == 0 and int(offsets[-1]) == self.edges
        for low in range(0, self.nodes, _PIECE):
            begins = offsets[low : low + _PIECE + 1]
            fine = fine and bool((begins[1:] >= begins[:-1]).all())
            evict(begins)
        if not fine:
            raise Damaged.graph(self.path, "its row offsets do not ascend")


def check_block(path: Path) -> None:
    """Validate the block at ``path``, and that it matches the graph in the same folder, if there is
    one. Raises :class:`~cocite.errors.Damaged`.
    """
    facts = Facts(Manifest.read(path, BLOCK).facts, f"{path}: the manifest")
    number, digest = facts.whole("block"), facts.text("digest")
    graph = BlockedGraph.open(path.parent) if is_blocked(path.parent) else None
    if path.name != folder_of(number) or (graph and number >= graph.blocks):
        raise Damaged(
            f"{path} contains block {number}, but is not the folder of that block. "
            "Copy the block again"
        )
    block = GraphBlock(path.parent, number, graph.digest if graph else digest)
    if graph and [block.first, block.last] != graph.cuts[number : number + 2]:
        raise Damaged(
            f"{path} does not match the block boundaries of its graph. Partition the graph again"
        )


def check_head(store: Store) -> None:
    """Check the manifest and file sizes of a graph without its links. Does not read the files."""
    facts = Facts(store.facts, f"{store.path}: the manifest")
    nodes = facts.whole("nodes", 0, MAX_NODES)
    facts.whole("edges")
    facts.text("names", NAME_KINDS)
    facts.text("digest")
    facts.flag("weighted")
    sides_text(facts, nodes)
    cuts = store.facts.get("cuts")
    fine = (
        isinstance(cuts, list)
        and 2 <= len(cuts) <= MOST_BLOCKS + 1
        and all(type(cut) is int for cut in cuts)
        and cuts[0] == 0
        and cuts[-1] == nodes
        and all(low < high for low, high in pairwise(cuts))
    )
    if not fine:
        raise Damaged(f"{store.path}: the manifest has no valid block boundaries")
    files = DeclaredFiles(store.path, store.manifest.files)
    files.take({OFFSETS: "<u8[n + 1]", DEGREES: "<u4[n]"}, {"n": nodes})
    take_text_files(files, facts.text("names"), nodes)
    files.no_more()


@dataclass(frozen=True)
class GraphDocument(Document):
    """What ``cocite info`` shows about a graph, including how each of its ``sources`` was read.

    ``excluded`` counts excluded pages, their links, and names without a page; ``titles`` counts
    titles. ``blocks`` has the number of blocks, the number on this machine, and the number of links
    in the largest. These fields and ``sides`` are None if they do not apply.
    """

    path: str
    info: GraphInfo
    weighted: bool
    digest: str
    hubs: Sequence[Hub]
    sources: list[dict[str, Any]]
    excluded: dict[str, int] | None
    titles: dict[str, Any] | None
    sides: Sides | None
    blocks: dict[str, int] | None = None

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Collect the facts of a graph."""
        weighted = graph.in_weights is not None
        sources, left_out = graph.store.facts["sources"], graph.store.facts.get("excluded")
        titles = None if graph.titles is None else graph.store.facts["titles"]
        path, info, blocks = str(graph.path), graph.info(), None
        if isinstance(graph, BlockedGraph):
            largest = int(np.diff(graph.in_offsets[graph.cuts].astype(np.int64)).max())
            blocks = {"count": graph.blocks, "here": len(graph.here), "largest": largest}
        found = graph.digest, graph.hubs, sources, left_out, titles, graph.sides
        return cls(path, info, weighted, *found, blocks)

    def facts(self) -> dict[str, Any]:
        """Return the facts as one JSON object."""
        begin: dict[str, Any] = {"kind": "graph", "path": self.path}
        end: dict[str, Any] = {"digest": self.digest}
        end["hubs"] = [hub._asdict() for hub in self.hubs]
        sides = self.sides and self.sides.to_json()
        more = {"excluded": self.excluded, "titles": self.titles, "sides": sides}
        more |= {"blocks": self.blocks}
        end |= {name: value for name, value in more.items() if value}
        return begin | asdict(self.info) | end | {"sources": self.sources}
