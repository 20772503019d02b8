"""The graphs of the comparisons, as edge lists that all libraries can read: two ids per line.

Pages without links are omitted, because an edge list cannot contain them. The others are numbered
from 0 in the order of their names: the order of the crawl, or of the generated web. Next to each
edge list is a file of pairs of pages that are linked from a common page (``pairs.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.block import DATA
from benchmarks.peers.pairs import pairs_file
from cocite import Graph

FILES = {
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
    "wikispeedia": "wikispeedia/links.tsv",
    "cora": "cora-linqs/cora.cites",
    "wiki-Vote": "wiki-Vote/wiki-Vote.txt",
}
MADE = {"web-100k": (100_000, 1_000_000), "web-1M": (1_000_000, 15_000_000)}
MIXED = {"mixed-1M": (1_000_000, 15_000_000)}
"""The same, numbered in an order by chance, as ids are where nobody cared for one."""
PAIRS, PIECE = 100_000, 1 << 20
Ends = NDArray[np.int64]


class Text(NamedTuple):
    """A text, and how large its graph is."""

    file: Path
    nodes: int
    links: int


def there(name: str) -> bool:
    """Whether a graph can be had: it is made, a stored one, or its data is there."""
    if name in FILES:
        return (DATA / FILES[name]).exists()
    return name in MADE or name in MIXED or Path(name).exists()


def prepare(name: str, folder: Path) -> Text:
    """Write the text of a graph, and its pairs. FileNotFoundError where its data is not there."""
    stored = folder / "stored.graph"
    if name in MADE or name in MIXED:
        nodes, links = (MADE | MIXED)[name]
        graph = cocite.generate_web(
            stored, nodes=nodes, links=links, names="integers", overwrite=True
        )
    elif name in FILES:
        graph = cocite.ingest(DATA / FILES[name], stored, overwrite=True)
    else:
        graph = Graph.open(name)
    sources, targets = _ends(graph)
    if name in MIXED:
        sources, targets = _mixed(sources, targets)
    file = folder / f"{Path(name).name.removesuffix('.graph')}.txt"
    with file.open("w") as out:
        for low in range(0, sources.size, PIECE):
            part = slice(low, low + PIECE)
            both = zip(sources[part].tolist(), targets[part].tolist(), strict=True)
            out.writelines(f"{a} {b}\n" for a, b in both)
    np.save(pairs_file(file), _pairs(sources, targets))
    return Text(file, int(max(sources.max(), targets.max())) + 1, sources.size)


def _ends(graph: Graph) -> tuple[Ends, Ends]:
    """Of all links, by source and target."""
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    sources = graph.in_sources.astype(np.int64)
    names = graph.names.names(np.arange(graph.nodes, dtype=np.uint32))
    if all(map(str.isdecimal, names)):
        ids = np.array(list(map(int, names)))
        sources, targets = ids[sources], ids[targets]
    _, ends = np.unique(np.concatenate((sources, targets)), return_inverse=True)
    sources, targets = ends[: sources.size], ends[sources.size :]
    order = np.lexsort((targets, sources))
    return sources[order], targets[order]


def _mixed(sources: Ends, targets: Ends) -> tuple[Ends, Ends]:
    """The links under other ids, by source and target."""
    ids = np.random.default_rng(1).permutation(int(max(sources.max(), targets.max())) + 1)
    sources, targets = ids[sources], ids[targets]
    order = np.lexsort((targets, sources))
    return sources[order], targets[order]


def _pairs(sources: Ends, targets: Ends) -> Ends:
    """Different pages that one page links to, each pair once; by page."""
    rng = np.random.default_rng(1)
    starts = np.searchsorted(sources, np.arange(int(sources.max()) + 2))
    chosen = sources[rng.integers(0, sources.size, 4 * PAIRS)]
    low, size = starts[chosen], starts[chosen + 1] - starts[chosen]
    u = targets[low + (rng.random(chosen.size) * size).astype(np.int64)]
    v = targets[low + (rng.random(chosen.size) * size).astype(np.int64)]
    pairs = np.unique(np.column_stack((np.minimum(u, v), np.maximum(u, v)))[u != v], axis=0)
    return pairs[np.sort(rng.permutation(len(pairs))[:PAIRS])]
