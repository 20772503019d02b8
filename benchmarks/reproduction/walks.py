"""Pages with common witnesses, sizes of fingerprint trees, sizes of indexes.

Figures 3 and 5 and section 5.2 of Fogaras and Rácz 2005.

Cost: 20 samples per graph and seed, a minute or two of CPU time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocite
from benchmarks.reproduction.gamma import SEEDS
from benchmarks.studies.checks import tree_sizes

_K = (1, 10, 100)
_LINKS = {
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
}


def witnesses(data: Path, work: Path) -> dict[str, Any]:
    """Measure figure 3: two pages that share k otherwise unrelated in-links; c = 0.6."""
    found: dict[str, Any] = {}
    for k in _K:
        links = work / f"{k}.tsv"
        links.write_text("".join(f"w{i}\t{end}\n" for i in range(k) for end in "uv"))
        graph = cocite.ingest(links, work / f"{k}.graph", header="no", delimiter="tab")
        found[str(k)] = {
            measure: [
                round(index.similarity("u", "v").score, 6)
                for index in _seeded(graph, work, measure=measure, samples=10_000)
            ]
            for measure in ("simrank", "psimrank")
        }
    return found


def trees(data: Path, work: Path) -> dict[str, Any]:
    """Measure figure 5: mean and largest tree that a query reads, by length."""
    found: dict[str, Any] = {}
    for name, links in _LINKS.items():
        graph = cocite.ingest(data / links, work / f"{name}.graph")
        found[name] = {"nodes": graph.nodes, "links": graph.edges}
        for measure in ("simrank", "psimrank"):
            by_length: dict[str, Any] = {}
            found[name][measure] = by_length
            for index in _seeded(graph, work, measure=measure, samples=20):
                for size in tree_sizes(index):
                    one = by_length.setdefault(str(size.length), {"mean": [], "largest": []})
                    one["mean"].append(round(size.mean, 1))
                    one["largest"].append(size.largest)
    return found


def sizes(data: Path, work: Path) -> dict[str, Any]:
    """Measure section 5.2: bytes per node and sample; 10 steps, and 4 for XJaccard."""
    graph = cocite.ingest(data / _LINKS["cnr-2000"], work / "g.graph")
    found: dict[str, Any] = {"nodes": graph.nodes}

    def bytes_of(nodes: int, **options: Any) -> list[float]:
        return [
            round(index.stored.store.nbytes / nodes / 20, 2)
            for index in _seeded(graph, work, samples=20, **options)
        ]

    for name, length in (("simrank", 10), ("psimrank", 10), ("xjaccard", 10), ("xjaccard 4", 4)):
        found[name] = bytes_of(graph.nodes, measure=name.split()[0], length=length)
    wanted = [graph.names.name(node) for node in range(0, graph.nodes, 10)]
    found["kept"] = bytes_of(len(wanted), measure="psimrank", only_nodes=wanted)
    return found


def _seeded(graph: cocite.Graph, work: Path, **options: Any) -> Iterator[cocite.Index]:
    """Yield an index for each seed, one at a time."""
    for seed in SEEDS:
        with tempfile.TemporaryDirectory(dir=work) as folder:
            yield cocite.build(graph, Path(folder, "index"), seed=seed, threads=1, **options)
