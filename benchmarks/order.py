"""Effect of the node order: original, shuffled, breadth-first, and by label propagation.

    python -m benchmarks.order GRAPH... [--samples 20] [--runs 3]

Breadth-first search follows links in both directions, from the first node of each component.
Layered label propagation (Boldi, Rosa, Santini, Vigna 2011) has a layer for each resolution r of 1,
1/4, ..., 1/256 and 0. In a layer, each node repeatedly takes the label that maximizes
k - r (v - k), where k of its neighbors and v nodes have the label. Nodes are then sorted by label,
in the order of the layer before. Both orders start from the shuffled graph, so they do not profit
from the original order.

Prints the least CPU time of ``--runs`` for ordering, PageRank, and a packed index of PSimRank
with its size; and the mean time of a list of 20, over the same 500 pages in all orders.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, connected_components

import cocite
from cocite.cli.output import table_text

Ids = NDArray[np.int64]
RESOLUTIONS = (1, 1 / 4, 1 / 16, 1 / 64, 1 / 256, 0)
ROUNDS, PAGES = 6, 500


def timed(work: Callable[[], Any], runs: int = 1) -> tuple[float, Any]:
    """The least seconds of CPU time, and what the last run returned."""
    least, found = float("inf"), None
    for _ in range(runs):
        begin = time.process_time()
        found = work()
        least = min(least, time.process_time() - begin)
    return least, found


def links_of(graph: cocite.Graph) -> tuple[Ids, Ids]:
    """Sources and targets of all links."""
    degrees = np.diff(graph.in_offsets).astype(np.int64)
    return graph.in_sources.astype(np.int64), np.repeat(np.arange(graph.nodes), degrees)


def symmetric(nodes: int, sources: Ids, targets: Ids) -> csr_matrix:
    """The links in both directions."""
    one = csr_matrix((np.ones(sources.size, np.int8), (sources, targets)), (nodes, nodes))
    return csr_matrix(one + one.T)


def breadth_first(links: csr_matrix) -> Ids:
    """The nodes, component by component; small components by id."""
    _, component = connected_components(links, directed=False)
    sizes = np.bincount(component)
    order = np.lexsort((np.arange(component.size), component))
    starts = np.cumsum(sizes) - sizes
    for part in np.flatnonzero(sizes > 1000):
        begin, end = starts[part], starts[part] + sizes[part]
        order[begin:end] = breadth_first_order(links, order[begin], return_predecessors=False)
    return order


@njit(cache=False)
def _propagate(offsets: Any, neighbors: Any, visits: Any, resolution: float) -> Any:
    """The label of each node after some rounds of visits."""
    labels = np.arange(offsets.size - 1)
    volumes, counts = np.ones(labels.size, np.int64), np.zeros(labels.size, np.int64)
    for _ in range(ROUNDS):
        changed = 0
        for node in visits:
            begin, end = offsets[node], offsets[node + 1]
            old = labels[node]
            volumes[old] -= 1
            best, most = old, -np.inf
            for link in range(begin, end):
                counts[labels[neighbors[link]]] += 1
            for link in range(begin, end):
                label = labels[neighbors[link]]
                value = counts[label] - resolution * (volumes[label] - counts[label])
                if value > most or (value == most and label < best):
                    best, most = label, value
            for link in range(begin, end):
                counts[labels[neighbors[link]]] = 0
            labels[node] = best
            volumes[best] += 1
            changed += best != old
        if changed < labels.size // 100:
            break
    return labels


def by_labels(links: csr_matrix) -> Ids:
    """The nodes by layered label propagation."""
    nodes, order = links.shape[0], np.arange(links.shape[0])
    for layer, resolution in enumerate(RESOLUTIONS):
        visits = np.random.default_rng(layer).permutation(nodes)
        labels = _propagate(links.indptr, links.indices, visits, float(resolution))
        place, first = np.empty(nodes, np.int64), np.full(nodes, nodes)
        place[order] = np.arange(nodes)
        np.minimum.at(first, labels, place)
        order = np.lexsort((place, first[labels]))
    return order


def measures(folder: Path, links: tuple[Ids, Ids], ids: Ids, samples: int, runs: int) -> list[str]:
    """What a graph costs whose nodes have these new ``ids``."""
    rows, nodes = folder / "links.tsv", ids.size
    np.savetxt(rows, np.column_stack([ids[links[0]], ids[links[1]]]), "%d", "\t")
    graph = cocite.ingest(rows, folder / "g", overwrite=True)
    pages = [str(ids[i]) for i in np.random.default_rng(1).choice(links[1], PAGES)]
    ranking, ranks = timed(lambda: cocite.pagerank(graph, threads=1), runs)
    building, index = timed(
        lambda: cocite.build(
            graph,
            folder / "i",
            measure="psimrank",
            layout="packed",
            samples=samples,
            threads=1,
            overwrite=True,
        ),
        runs,
    )
    size = sum(file.stat().st_size for file in (folder / "i").iterdir())
    listing, _ = timed(lambda: [index.related(page, 20) for page in pages], runs)
    assert graph.nodes <= nodes
    return [
        f"{graph.nodes:,}",
        str(ranks.convergence.sweeps),
        f"{1000 * ranking:.0f} ms",
        f"{building:.2f} s",
        f"{1e-6 * size:.1f} MB",
        f"{1e6 * listing / PAGES:.0f} µs",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    by_labels(symmetric(3, np.array([0, 1]), np.array([1, 2])))  # compiled
    rows = []
    for path in asked.graphs:
        graph = cocite.Graph.open(path)
        nodes, sources_targets = graph.nodes, links_of(graph)
        shuffled = np.random.default_rng(5).permutation(nodes)
        links = symmetric(nodes, *(shuffled[ends] for ends in sources_targets))
        orders: dict[str, tuple[float, Ids]] = {
            "as it is": (0.0, np.arange(nodes)),
            "shuffled": (0.0, shuffled),
        }
        for name, way in (("breadth first", breadth_first), ("labels", by_labels)):
            seconds, order = timed(partial(way, links))
            place = np.empty(nodes, np.int64)
            place[order] = np.arange(nodes)
            orders[name] = seconds, place[shuffled]
        for name, (seconds, ids) in orders.items():
            with tempfile.TemporaryDirectory(prefix="cocite-") as folder:
                found = measures(Path(folder), sources_targets, ids, asked.samples, asked.runs)
            rows.append([Path(path).stem, name, f"{seconds:.1f} s", *found])
    titles = ["graph", "order", "ordering", "nodes", "sweeps", "PageRank", "index", "bytes", "list"]
    print(table_text(titles, rows))


if __name__ == "__main__":
    main()
