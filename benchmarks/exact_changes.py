"""Tables 6 and 7 of Yu et al. 2011, on available graphs: how far iterates move.

    mean |S_k - S_(k-1)| over all pairs of nodes, its equation 13 (``ave_err``)

for partial sums (whose iterates are those of the plain iteration) and for over-relaxation with
omega = 1.3, whole and pruned at 0.01. ``python -m benchmarks.exact_figures`` prints them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.partial_sums import sweeps_for
from benchmarks.sor import Row, Shop, average
from cocite import Graph
from cocite.allpairs.core import Core, reduce
from cocite.allpairs.products import Products, block_width
from cocite.allpairs.prune import PrunedSweeps
from cocite.allpairs.sweeps import Sweeps
from cocite.cluster import Team
from cocite.graph.links import in_links
from cocite.resources import cores

DATA = Path(os.environ.get("COCITE_DATA", Path(__file__).parents[2] / "shared" / "data"))

TABLE_6 = {
    "SOR-SR": {1: 2.80e-4, 5: 1.31e-4, 10: 4.59e-5, 15: 1.43e-5, 20: 4.42e-6},
    "PSUM-SR": {1: 1.52e-4, 5: 1.08e-4, 10: 6.65e-5, 15: 3.49e-5, 20: 2.23e-5},
}
"""As printed for DBLP 98-99."""
TABLE_7 = {
    "SOR-SR": {
        "wiki0715": {2: 8.74e-5, 4: 3.09e-5, 6: 3.19e-5},
        "wiki0825": {2: 8.63e-5, 4: 4.04e-5, 6: 3.31e-5},
        "wiki0919": {2: 5.91e-5, 4: 4.82e-5, 6: 3.41e-5},
    },
    "PSUM-SR": {
        "wiki0715": {2: 5.76e-4, 4: 1.09e-4, 6: 5.22e-5},
        "wiki0825": {2: 4.76e-4, 4: 1.32e-4, 6: 6.59e-5},
        "wiki0919": {2: 4.50e-4, 4: 1.64e-4, 6: 9.02e-5},
    },
}
"""As printed; the sweeps that it took to 0.1 were 3 and 6."""
REAL = {
    "cora": "cora-linqs/cora.cites",
    "polblogs": "polblogs/edges.tsv",
    "wiki-Vote": "wiki-Vote/wiki-Vote.txt",
    "wikispeedia": "wikispeedia/links.tsv",
}


def real(shop: Shop, *names: str) -> Iterator[tuple[str, Graph]]:
    """Return the available data sets; report missing ones."""
    for name in names:
        path = DATA / REAL[name]
        if path.exists():
            graph = shop.folder / f"{name}.graph"
            yield name, Graph.open(graph) if graph.exists() else cocite.ingest(path, graph)
        else:
            print(f"{name} is left out: {path} is not there (COCITE_DATA names the folder)")


def table6(shop: Shop) -> Iterator[Row]:
    """Ours beside the printed ones, where a k is printed."""
    printed = {"plain": TABLE_6["PSUM-SR"], "omega 1.3": TABLE_6["SOR-SR"], "omega 1.0": {}}
    for row in average(shop):
        if row["k"] in TABLE_6["SOR-SR"]:
            yield row | {"printed": printed[row["method"]].get(row["k"])}


def categories(shop: Shop) -> Graph | None:
    """Wikispeedia's subjects: a link from each to those below it and to its articles."""
    path = DATA / "wikispeedia" / "categories.tsv"
    if not path.exists():
        print(f"wikispeedia's categories are left out: {path} is not there (COCITE_DATA)")
        return None
    links = set()
    for line in path.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            article, subject = line.split("\t")
            parts = subject.split(".")
            whole = [".".join(parts[: i + 1]) for i in range(len(parts))]
            links |= set(pairwise(whole)) | {(subject, article)}
    file = shop.folder / "categories.tsv"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in sorted(links)), "utf-8")
    return cocite.ingest(file, shop.folder / "categories.graph", overwrite=True)


def like_wikipedia(shop: Shop, articles: int = 30_882, links: int = 11_267) -> Graph:
    """A hundredth of wiki0715: categories of Zipf's sizes, a fifth of the links among themselves,
    where rings of categories occur.
    """
    rng = np.random.default_rng(5)
    count = links // 8
    weights = 1 / np.arange(1, count + 1) ** 0.8
    who = rng.choice(count, links, p=weights / weights.sum())
    inner = rng.random(links) < 0.2
    what = np.where(inner, rng.integers(0, count, links), count + rng.integers(0, articles, links))
    return shop.graph(np.column_stack([who, what]), articles + count)


def table7(shop: Shop) -> Iterator[Row]:
    """Mean changes at k = 2, 4, 6 for c = 0.6, and the sweeps to epsilon = 0.1."""
    graphs = {"generated, 1/100 of wiki0715": like_wikipedia(shop)}
    if (found := categories(shop)) is not None:
        graphs["wikispeedia's categories"] = found
    for name, graph in (graphs | dict(real(shop, "wikispeedia"))).items():
        core = reduce(in_links(graph), order=False)
        with Team(cores()) as team:
            for title, make in _iterations(core, team).items():
                row: Row = {"graph": name, "nodes": graph.nodes, "links": graph.edges}
                row |= {"rows": core.size, "method": title}
                yield row | _changes(core, make()) | {"sweeps to 0.1": _sweeps_to(graph, title)}


def _iterations(core: Core, team: Team) -> dict[str, Callable[[], Any]]:
    width = block_width(core.size)
    return {
        "PSUM-SR (plain)": lambda: Sweeps(Products(core, float, team, width), 0.6),
        "SOR-SR (omega 1.3)": lambda: Sweeps(Products(core, float, team, width), 0.6, 1.3),
        "SOR-SR (omega 1.3, pruned at 0.01)": lambda: PrunedSweeps(
            core, float, team, (0.6, 1.3, 0.01), True, (0, 1 << 40)
        ),
    }


def _changes(core: Core, sweeps: Any) -> Row:
    found: Row = {}
    for k in range(1, 7):
        before = _rows_of(sweeps.matrix, core.size)
        sweeps()
        if k % 2 == 0:
            found[f"k={k}"] = mean_change(core, _rows_of(sweeps.matrix, core.size), before)
    return found


def _rows_of(matrix: Any, size: int) -> NDArray[np.float64]:
    """A dense copy."""
    return np.array(matrix if isinstance(matrix, np.ndarray) else matrix.block(0, size))


def mean_change(core: Core, now: NDArray[Any], before: NDArray[Any]) -> float:
    """Equation 13 over all pairs of nodes: each class counts for its nodes.

    A node and itself is 1 in every iterate, whatever its class has on the diagonal.
    """
    change = np.abs(now - before)
    sizes = core.sizes.astype(np.float64)
    return float(sizes @ change @ sizes - sizes @ change.diagonal()) / float(core.nodes) ** 2


def _sweeps_to(graph: Graph, title: str) -> str:
    """Those made until the bound is at most 0.1; of partial sums those made beforehand as well."""
    if title.startswith("PSUM"):
        found = cocite.exact_simrank(graph, method="plain", epsilon=0.1).convergence
        return f"{found.sweeps} measured, {sweeps_for(0.1, 0.6)} beforehand"
    prune = 0.01 if "pruned" in title else None
    found = cocite.exact_simrank(graph, method="sor", epsilon=0.1, prune=prune).convergence
    return str(found.sweeps) if found.converged else f"none: {found.reason}"
