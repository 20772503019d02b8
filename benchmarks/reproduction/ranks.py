"""PageRank: blocks, precision, and how fast the order settles: figures 5 to 11 of 004.

Cost: half a minute of processor time.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from benchmarks.precision import rows as precision_rows
from cocite import Graph
from cocite.ranking import query_of_words, study
from cocite.ranking.pagerank import pagerank, set_up
from cocite.ranking.stopping import Sweeps

__all__ = ["blocks", "orders", "precision"]

_WEBS = {
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
}
_BLOCKS, _SWEEPS = (1, 2, 4), 20


def blocks(data: Path, work: Path) -> dict[str, Any]:
    """By number of blocks: what is in memory of a block, bytes of links, seconds a sweep."""
    found: dict[str, Any] = {}
    for name, links in _WEBS.items():
        graph = cocite.ingest(data / links, work / f"{name}.graph")
        mine = found[name] = {"nodes": graph.nodes, "links": graph.edges}
        for count in _BLOCKS:
            system, _, _ = set_up(
                graph,
                damping=0.85,
                personalization=None,
                dangling="spread",
                removals=0,
                memory=1 << 30,
                blocks=count,
            )
            arranged = system.links._arranged  # type: ignore[union-attr]
            inner = [arranged.upper, arranged.lower, arranged.tails]
            outer = [arranged.outer, arranged.outer_tails]
            size = sum(i.rows.nbytes + i.links.nbytes for i in inner)
            size += sum(o.words.nbytes for o in outer)
            core = max(b.rows.stop - b.rows.start for b in arranged.blocks)
            nodes = max(b.nodes.stop - b.nodes.start for b in arranged.blocks)
            mine[str(count)] = {
                "working set": 8 * (core + nodes),
                "links": size,
                "seconds a sweep": _seconds(graph, count),
            }
        mine["in memory"] = _seconds(graph, None)
    return found


def _seconds(graph: Graph, count: int | None) -> float:
    """Of processor time, the difference of many sweeps and of one; the better of two."""

    def took(sweeps: int) -> float:
        begin = time.process_time()
        pagerank(graph, stop=Sweeps(sweeps), blocks=count)
        return time.process_time() - begin

    best = min(took(1 + _SWEEPS) - took(1) for _ in range(2))
    return round(best / _SWEEPS, 5)


def precision(data: Path, work: Path) -> dict[str, Any]:
    """Section 4: the residual after 100 sweeps, in single and in double precision."""
    found = {}
    for name, links in _WEBS.items():
        graph = cocite.ingest(data / links, work / f"{name}.graph")
        found[name] = {row[1]: row[2] for row in precision_rows(name, graph)}
    return found


def orders(data: Path, work: Path) -> dict[str, Any]:
    """Figures 8 to 11: positions, tops, and the order within the results of a query."""
    found: dict[str, Any] = {}
    graphs = {name: (data / links, ()) for name, links in _WEBS.items()}
    for name, (links, _) in graphs.items():
        graph = cocite.ingest(links, work / f"{name}.graph")
        found[name] = _followed(study(graph, sweeps=(10, 25, 50), top=10_000))
    graph = _hollins(data / "hollins", work)
    queries = [query_of_words(graph, words) for words in ("faculty html", "alumnae")]
    found["hollins"] = _followed(
        study(graph, sweeps=(10, 25, 50), top=graph.nodes, queries=queries)
    )
    return found


def _hollins(source: Path, work: Path) -> Graph:
    """Pages by their addresses, so that words find them."""
    rows = [line.split() for line in (source / "hollins_urls.txt").read_text().splitlines()[1:]]
    called = {number: f"{address}#{number}" for number, address in rows}
    links = work / "hollins.tsv"
    pairs = (line.split() for line in (source / "hollins_edges.txt").read_text().splitlines()[1:])
    links.write_text("".join(f"{called[a]}\t{called[b]}\n" for a, b in pairs))
    return cocite.ingest(links, work / "hollins.graph", header="no", delimiter="tab")


def _followed(made: Any) -> dict[str, Any]:
    """Of power iteration, as the paper has it, for all nodes and for queries."""
    found = {}
    for each in made.agreements:
        if each.iteration.value != "power iteration":
            continue
        last = max(each.settled, key=lambda s: s.n)
        told: dict[str, Any] = {"nodes": each.nodes, "same order from": last.order, "top": last.n}
        for sweeps in (10, 25, 50):
            histogram = each.positions[sweeps]
            still = np.abs(histogram.middle) == 0
            told[str(sweeps)] = {
                "alike": round(float(each.similarity[sweeps][-1]), 4),
                "in place": round(float(histogram.nodes[still].sum() / histogram.nodes.sum()), 4),
            }
        found[each.query or "all"] = told
    return found
