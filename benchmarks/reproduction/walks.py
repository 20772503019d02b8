"""Walks: pages with common witnesses, the sizes of fingerprint trees, what indexes take.

Figures 3 and 5 of 001, and what its section 5.2 says of time and space.

Cost: 20 samples of each graph, some seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cocite
from cocite.evaluation.structure import tree_sizes

__all__ = ["sizes", "trees", "witnesses"]

_K = (1, 10, 100)
_LINKS = {
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
}


def witnesses(data: Path, work: Path) -> dict[str, Any]:
    """Figure 3: two pages with the same k in-links, which have nothing else in common; c = 0.6."""
    found: dict[str, Any] = {}
    for k in _K:
        links = work / f"{k}.tsv"
        links.write_text("".join(f"w{i}\t{end}\n" for i in range(k) for end in "uv"))
        graph = cocite.ingest(links, work / f"{k}.graph", header="no", delimiter="tab")
        found[str(k)] = {
            measure: cocite.build(
                graph, work / f"{k}.{measure}", measure=measure, samples=10_000, threads=1
            )
            .similarity("u", "v")
            ._asdict()
            for measure in ("simrank", "psimrank")
        }
    return found


def trees(data: Path, work: Path) -> dict[str, Any]:
    """Figure 5: the trees that a question reads, by length, mean and largest."""
    found: dict[str, Any] = {}
    for name, links in _LINKS.items():
        graph = cocite.ingest(data / links, work / f"{name}.graph")
        found[name] = {"nodes": graph.nodes, "links": graph.edges}
        for measure in ("simrank", "psimrank"):
            index = cocite.build(
                graph, work / f"{name}.{measure}", measure=measure, samples=20, threads=1
            )
            found[name][measure] = {
                str(each.length): {"mean": round(each.mean, 1), "largest": each.largest}
                for each in tree_sizes(index)
            }
    return found


def sizes(data: Path, work: Path) -> dict[str, Any]:
    """Section 5.2: bytes a node and sample, walks of 10 steps, XJaccard of 10 and of 4."""
    graph = cocite.ingest(data / _LINKS["cnr-2000"], work / "g.graph")
    found: dict[str, Any] = {"nodes": graph.nodes}
    for name, length in (("simrank", 10), ("psimrank", 10), ("xjaccard", 10), ("xjaccard 4", 4)):
        index = cocite.build(
            graph, work / name, measure=name.split()[0], samples=20, length=length, threads=1
        )
        found[name] = round(index.stored.store.nbytes / graph.nodes / 20, 2)
    wanted = [graph.names.name(node) for node in range(0, graph.nodes, 10)]
    index = cocite.build(
        graph, work / "kept", measure="psimrank", samples=20, threads=1, keep=wanted
    )
    found["kept"] = round(index.stored.store.nbytes / len(wanted) / 20, 2)
    return found
