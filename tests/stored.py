"""Small stored graphs for tests, without the database that reads files of any size.

``ingest`` takes 50 ms for a graph of ten links, nearly all in DuckDB, and thousands of tests begin
with one. Here plain Python numbers names and sorts links; ``io/storing.py`` writes them as always.
``tests/graph/test_stored_graph.py`` compares the bytes with those of ``ingest``; tests of how
graphs are made call ``ingest`` itself.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite import Graph
from cocite.io.readers import ReadOptions
from cocite.io.readers.contract import no_progress
from cocite.io.storing import store_links
from cocite.storage import Manifest
from cocite.storage.staging import Staging

SIMPLE = re.compile(r"[A-Za-z0-9]+( [A-Za-z0-9]+)*")
"""Names that any reader takes and sorts unchanged."""
INTEGER = re.compile(r"0|[1-9][0-9]{0,17}")
OPTIONS = {"weight_column", "undirected", "keep_self_loops"}


def can_store(rows: Sequence[Sequence[str]], nodes: Sequence[str], options: dict[str, Any]) -> bool:
    """Whether :func:`store` makes the same graph as ``ingest``."""
    if not options.keys() <= OPTIONS or not (rows or nodes):
        return False
    weight = options.get("weight_column")
    columns = 2 if weight is None else 3
    if weight not in (None, 3, "3") or (weight and not rows):
        return False
    if any(len(row) != columns for row in rows):
        return False
    if any(not 1e-30 <= float(row[2]) < 1e30 for row in rows if weight is not None):
        return False
    return all(map(SIMPLE.fullmatch, [*nodes, *(name for row in rows for name in row[:2])]))


def store(
    output: Path, rows: Sequence[Sequence[str]], nodes: Sequence[str], **options: Any
) -> Graph:
    """The graph of rows (source, target) or (source, target, weight), and of more ``nodes``."""
    tables: Any = Sorted(rows, nodes, options.pop("weight_column", None) is not None)
    undirected, loops = (bool(options.get(key)) for key in ("undirected", "keep_self_loops"))
    read_options = ReadOptions(undirected=undirected, keep_self_loops=loops)
    with Staging(output, "graph") as draft:
        facts, files = store_links(draft.path, tables, read_options, no_progress)
        facts["rows"] = len(rows)
        facts["dropped"]["bad_rows"] = 0
        facts["sources"] = []
        return Graph.open(draft.publish(Manifest("graph", facts, files)))


class Sorted:
    """The part of ``Tables`` that ``io/storing.py`` uses, for rows in memory."""

    def __init__(self, rows: Sequence[Sequence[str]], nodes: Sequence[str], weighted: bool) -> None:
        names = {*nodes, *(name for row in rows for name in row[:2])}
        self.weighted = weighted
        self.integers = all(map(INTEGER.fullmatch, names))
        self._names = sorted(names, key=int if self.integers else str)
        ids = {name: i for i, name in enumerate(self._names)}
        self._links = [(ids[row[0]], ids[row[1]]) for row in rows]
        self._weights = [float(row[2]) for row in rows] if weighted else [1.0] * len(rows)
        self._keys = np.empty(0, np.uint64)

    def number(self) -> int:
        return len(self._names)

    def cut(self) -> None:
        """Keep everything."""

    def dense(self, count: int) -> bool:
        return self.integers and int(self._names[-1]) == count - 1

    def has_urls(self) -> bool:
        return False

    def sort(self, dense: bool, undirected: bool) -> int:
        links = list(zip(self._links, self._weights, strict=True))
        if undirected:
            links += [((b, a), 0.0 if a == b else w) for (a, b), w in links]
        rows = sorted(((b << 32) + a, w) for (a, b), w in links)
        self._keys = np.array([key for key, _ in rows], np.uint64)
        self._weights = [w for _, w in rows]
        return len(rows)

    def links(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64] | None]]:
        if self._keys.size:
            yield self._keys, np.array(self._weights) if self.weighted else None

    def integer_names(self) -> Iterator[NDArray[np.uint64]]:
        yield np.array([int(name) for name in self._names], np.uint64)

    def text_names(self) -> Iterator[list[str]]:
        yield self._names

    def sort_hashes(self, pieces: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint64]]:
        hashes = np.concatenate(list(pieces)).astype(np.uint64)
        yield np.sort((hashes << np.uint64(32)) | np.arange(hashes.size, dtype=np.uint64))
