"""Reproduce the experiments of Yu et al. 2011, section 5, on generated graphs.

    python -m benchmarks.sor [--only NAME] [--full] [-o FOLDER] [GRAPH...]

Each experiment writes a CSV file, and a plot if Matplotlib is installed; docs/exact.md discusses
the results. Stored graphs given as arguments are added to ``omega``, ``bandwidth`` and ``average``.

    omega       sweeps until the true largest error is below 1e-1 ... 1e-6, omega from 0.8 to 1.6,
                column by column (as in the paper) and by blocks (which is fast)
    sparse      seconds for n pages with 8 links each, all methods, c = 0.8, epsilon = 0.05
    dense       the same where half of all links exist
    bandwidth   before and after reverse Cuthill-McKee, and seconds per sweep
    average     mean |S_k - S_(k-1)| on an author-paper graph (its table 6)
    density     seconds of a sweep by links and by BLAS: where products become dense
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.partial_sums import partial_sums, sweeps_for
from cocite import Graph
from cocite.allpairs import AllPairsOptions
from cocite.allpairs.core import reduce
from cocite.allpairs.products import Products
from cocite.allpairs.prune import PrunedSweeps
from cocite.allpairs.run import AllPairs
from cocite.allpairs.sweeps import Sweeps
from cocite.cluster import Team
from cocite.errors import NotConverged
from cocite.graph.links import in_links
from cocite.resources import cores

Row = dict[str, Any]
Pairs = NDArray[np.int64]
DECAY = 0.8
OMEGAS = [0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6]
EPSILONS = [10.0**-k for k in range(1, 7)]
MOST_SWEEPS = 80


class Shop:
    """Makes graphs in a folder that goes, and runs best of several by a ``clock``."""

    def __init__(
        self,
        folder: Path,
        full: bool,
        named: list[str],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.folder, self.full, self.clock = folder, full, clock
        self.named = {Path(path).stem: Graph.open(path) for path in named}
        self._built = 0

    def graph(self, pairs: Pairs, nodes: int) -> Graph:
        """Ingest pairs of numbers."""
        self._built += 1
        links = self.folder / f"{self._built}.tsv"
        np.savetxt(links, pairs, fmt="%d", delimiter="\t")
        extra = self.folder / f"{self._built}.nodes"
        extra.write_text("".join(f"{i}\n" for i in range(nodes)))
        return cocite.ingest(links, self.folder / f"{self._built}.graph", nodes=extra)

    def sparse(self, nodes: int, seed: int = 1) -> Graph:
        """The paper's: uniform[0, 16] links from every page to anywhere."""
        rng = np.random.default_rng(seed)
        counts = rng.integers(0, 17, nodes)
        return self.graph(
            np.column_stack(
                [np.repeat(np.arange(nodes), counts), rng.integers(0, nodes, counts.sum())]
            ),
            nodes,
        )

    def dense(self, nodes: int, share: float = 0.5) -> Graph:
        """Every link with this probability."""
        return self.graph(
            np.argwhere(np.random.default_rng(2).random((nodes, nodes)) < share), nodes
        )

    def authors(self, authors: int) -> Graph:
        """Authors and papers, linked both ways: 3.9 links an author, heavy-tailed, 2.5 a paper."""
        rng = np.random.default_rng(3)
        papers = round(authors * 3.9 / 2.5)
        weights = 1 / np.arange(1, authors + 1) ** 0.6
        counts = 1 + rng.poisson(1.5, papers)
        who = rng.choice(authors, counts.sum(), p=weights / weights.sum())
        what = authors + np.repeat(np.arange(papers), counts)
        both = np.concatenate([np.column_stack([who, what]), np.column_stack([what, who])])
        return self.graph(both, authors + papers)

    def web(self, nodes: int) -> Graph:
        """Our generated web: communities, copied links, URL order."""
        return cocite.generate_web(
            self.folder / f"web{nodes}.graph", nodes=nodes, links=10 * nodes, seed=1
        )

    def grid(self, side: int) -> Graph:
        """A torn grid with shuffled numbers, which an order can mend."""
        at = np.random.default_rng(4).permutation(side * side).reshape(side, side)
        pairs = [(at[:, :-1], at[:, 1:]), (at[1:], at[:-1]), (at[:-1, :-1], at[1:, 1:])]
        return self.graph(
            np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs]), side * side
        )


def omega(shop: Shop) -> Iterator[Row]:
    graphs = {"8 links per page": shop.sparse(800), "author-paper": shop.authors(330)} | shop.named
    for name, graph in graphs.items():
        core = reduce(in_links(graph), order=False)
        if core.size > 5000:
            print(f"{name}: left out of omega, {core.size:,} rows", flush=True)
            continue
        with Team(cores()) as team:
            products = Products(core, np.float64, team, max(1, min(64, core.size // 64)))
            right = _until(Sweeps(products, DECAY), 1e-13)
            single = Products(core, np.float64, team, 1) if core.size < 1500 else None
            for label, used in (("columns", single), ("blocks", products)):
                if used is None:
                    continue
                for value in OMEGAS:
                    sweeps = Sweeps(used, DECAY, value)
                    yield {"graph": name, "by": label, "omega": value} | _sweeps_to(sweeps, right)
            plain = Sweeps(products, DECAY)
            yield {"graph": name, "by": "plain", "omega": ""} | _sweeps_to(plain, right)
        beforehand = {f"{e:.0e}": sweeps_for(e, DECAY) for e in EPSILONS}
        yield {"graph": name, "by": "beforehand (psum)", "omega": ""} | beforehand


def _until(sweeps: Any, change: float) -> NDArray[np.float64]:
    for _ in range(400):
        if sweeps().change <= change:
            break
    return np.array(sweeps.matrix.panels[0])


def _sweeps_to(sweeps: Any, right: NDArray[np.float64]) -> Row:
    """Sweeps until the true error is below each epsilon; more than 80 are none."""
    found: Row = {f"{e:.0e}": "" for e in EPSILONS}
    for count in range(1, MOST_SWEEPS + 1):
        sweeps()
        error = float(np.abs(sweeps.matrix.panels[0] - right).max())
        for e in EPSILONS:
            if error <= e and found[f"{e:.0e}"] == "":
                found[f"{e:.0e}"] = count
        if error <= EPSILONS[-1] or not error < 1e6:
            break
    return found


PSUM = {"method": "psum"}
METHODS: dict[str, dict[str, Any]] = {
    "gauss-seidel": {},
    "plain": {"method": "plain"},
    "sor 1.3": {"method": "sor"},
    "sor 1.3, pruned at 0.009": {"method": "sor", "prune": 0.009},
    "psum": PSUM,
    "svd, rank 50": {"method": "svd", "rank": 50},
}


def _times(
    shop: Shop, graph: Graph, methods: dict[str, dict[str, Any]], runs: int = 2
) -> Iterator[Row]:
    for title, options in methods.items():
        best, found = float("inf"), None
        for _ in range(runs):
            begin = shop.clock()
            if options == PSUM:
                found = partial_sums(graph, DECAY, 0.05).convergence
            else:
                plan = AllPairs(graph, AllPairsOptions(decay=DECAY, epsilon=0.05, **options))
                with suppress(NotConverged):  # a low rank may have no scores
                    found = plan.run().convergence
            best = min(best, shop.clock() - begin)
        row: Row = {"n": graph.nodes, "links": graph.edges, "method": title}
        row |= {"seconds": round(best, 4), "converged": found is not None and found.converged}
        if found is not None:
            row |= {"sweeps": found.sweeps, "error bound": f"{found.error_bound:.1e}"}
        yield row


def sparse(shop: Shop) -> Iterator[Row]:
    for nodes in range(1000, 10_001, 1000) if shop.full else (1000, 2000, 4000):
        methods = {k: v for k, v in METHODS.items() if k != "svd, rank 50" or nodes <= 4000}
        yield from _times(shop, shop.sparse(nodes), methods)


def dense(shop: Shop) -> Iterator[Row]:
    methods = {"plain, dense": {"method": "plain", "products": "dense"}}
    methods |= {"plain, sparse": {"method": "plain", "products": "sparse"}}
    methods |= {"gauss-seidel, dense": {"products": "dense"}, "psum": PSUM}
    for nodes in (500, 1000, 2000, 3000) if shop.full else (250, 500, 1000):
        yield from _times(shop, shop.dense(nodes), methods)


def bandwidth(shop: Shop) -> Iterator[Row]:
    graphs = {f"8 links per page, n = {n:,}": shop.sparse(n) for n in (1000, 2000, 4000)}
    graphs |= {"shuffled grid, n = 4,900": shop.grid(70), "web, n = 5,000": shop.web(5000)}
    for name, graph in (graphs | shop.named).items():
        row: Row = {"graph": name}
        runs: dict[str, Any] = {}
        with Team(cores()) as team:
            for title, ordered in (("stored", False), ("rcm", True)):
                core = reduce(in_links(graph), order=ordered)
                row |= {"rows": core.size, f"bandwidth {title}": core.bandwidth[1]}
                products = Products(core, np.float32, team, max(1, min(64, core.size // 64)))
                runs[title] = Sweeps(products, DECAY, 1.0)
                pruned = PrunedSweeps(
                    core, np.float32, team, (DECAY, 1.0, 0.01), False, (0, 1 << 33)
                )
                runs[f"{title}, pruned"] = pruned
            best = dict.fromkeys(runs, float("inf"))
            for _ in range(5):
                for title, sweeps in runs.items():
                    begin = shop.clock()
                    sweeps()
                    best[title] = min(best[title], shop.clock() - begin)
        yield row | {f"s a sweep, {title}": round(s, 4) for title, s in best.items()}


def average(shop: Shop) -> Iterator[Row]:
    """One method after another; large graphs in single precision, to k = 8."""
    sizes = {"98-99": 1525, "98-01": 3208} if shop.full else {"98-99": 1525}
    graphs = {f"authors as DBLP {k}": shop.authors(n) for k, n in sizes.items()} | shop.named
    for name, graph in graphs.items():
        core = reduce(in_links(graph), order=False)
        steps, dtype = (20, np.float64) if core.size < 10_000 else (8, np.float32)
        for title, value in (("plain", None), ("omega 1.0", 1.0), ("omega 1.3", 1.3)):
            with Team(cores()) as team:
                products = Products(core, dtype, team, max(1, min(64, core.size // 64)))
                sweeps: Any = Sweeps(products, DECAY, value or None)
                for k in range(1, steps + 1):
                    last = sweeps.matrix.panels[0].copy()
                    sweeps()
                    change = f"{_mean_change(core, sweeps.matrix.panels[0], last):.2e}"
                    yield {"graph": name, "method": title, "k": k, "mean change": change}


def _mean_change(core: Any, now: NDArray[Any], before: NDArray[Any]) -> float:
    """Over all n^2 pairs of nodes: each class counts for its nodes, by rows to save memory."""
    sizes = core.sizes.astype(np.float64)
    total = 0.0
    for row, count in enumerate(sizes):
        change = np.abs(now[row] - before[row])
        total += count * float(change @ sizes) - count * float(change[row])
    return total / float(core.nodes) ** 2


def density(shop: Shop) -> Iterator[Row]:
    nodes = 2000 if shop.full else 1000
    for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
        core = reduce(in_links(shop.dense(nodes, share)), order=False)
        with Team(cores()) as team:
            made = {
                "sparse": Sweeps(Products(core, np.float32, team, 16), DECAY, 1.0),
                "dense": Sweeps(Products(core, np.float32, team, 256, dense=True), DECAY, 1.0),
            }
            row: Row = {"n": nodes, "share": share}
            for title, sweeps in made.items():
                row[title] = round(_best(sweeps, 3), 4)
            yield row


def _best(work: Callable[[], Any], runs: int) -> float:
    found = float("inf")
    for _ in range(runs):
        begin = time.perf_counter()
        work()
        found = min(found, time.perf_counter() - begin)
    return found


EXPERIMENTS: dict[str, Callable[[Shop], Iterator[Row]]] = {
    "omega": omega,
    "sparse": sparse,
    "dense": dense,
    "bandwidth": bandwidth,
    "average": average,
    "density": density,
}
IN_FULL_ONLY = {"density"}


def write(rows: list[Row], path: Path) -> None:
    titles = list(dict.fromkeys(title for row in rows for title in row))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, titles)
        writer.writeheader()
        writer.writerows(rows)


def picture(name: str, rows: list[Row], path: Path) -> None:
    """One panel for a family of lines."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import MaxNLocator

    shown: Families
    lines = {"omega": _omega_lines, "sparse": _time_lines, "dense": _time_lines}
    if name == "average":
        shown, labels = {}, ("iteration k", "mean |S_k - S_(k-1)|")
        for row in rows:
            points = shown.setdefault(row["graph"], {}).setdefault(row["method"], [])
            points.append((row["k"], float(row["mean change"])))
    elif name in lines:
        shown, labels = lines[name](rows)
    else:
        return
    across = min(3, len(shown))
    down = -(-len(shown) // across)
    size = (4.4 * across + 2.2 * (across == 1), 3.4 * down)
    figure, axes = pyplot.subplots(
        down, across, figsize=size, squeeze=False, constrained_layout=True
    )
    for axis in axes.flat[len(shown) :]:
        axis.remove()
    for axis, (title, family) in zip(axes.flat, shown.items(), strict=False):
        for label, points in family.items():
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
        axis.set(title=title, xlabel=labels[0], ylabel=labels[1])
        if name != "omega":
            axis.set_yscale("log")
        if across == 1:
            axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1))
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        else:
            axis.legend(fontsize=8)
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


Families = dict[str, dict[str, list[tuple[float, float]]]]
Shown = tuple[Families, tuple[str, str]]


def _omega_lines(rows: list[Row]) -> Shown:
    shown: Families = {}
    for row in rows:
        if row["by"] in ("columns", "blocks"):
            panel = shown.setdefault(f"{row['graph']}, {row['by']}", {})
            for e in ("1e-02", "1e-04", "1e-06"):
                if row[e] != "":
                    panel.setdefault(f"error {e}", []).append((row["omega"], row[e]))
    return shown, ("omega", "sweeps")


def _time_lines(rows: list[Row]) -> Shown:
    family: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        family.setdefault(row["method"], []).append((row["n"], row["seconds"]))
    return {"c = 0.8, epsilon = 0.05": family}, ("nodes", "seconds")


def main() -> None:
    """Run the selected experiments."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sor",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    parser.add_argument("--only", choices=sorted(EXPERIMENTS))
    parser.add_argument("--full", action="store_true", help="up to the paper's sizes")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/sor"), metavar="FOLDER")
    chosen = parser.parse_args()
    names = [chosen.only] if chosen.only else [n for n in EXPERIMENTS if n not in IN_FULL_ONLY]
    if chosen.full and not chosen.only:
        names = list(EXPERIMENTS)
    chosen.output.mkdir(parents=True, exist_ok=True)
    plots = find_spec("matplotlib") is not None
    if not plots:
        print("no pictures: Matplotlib is not installed; pip install '.[plots]'")
    with tempfile.TemporaryDirectory(prefix="sor") as folder:
        shop = Shop(Path(folder), chosen.full, chosen.graphs)
        for name in names:
            print(f"\n{name}", flush=True)
            rows = []
            for row in EXPERIMENTS[name](shop):
                rows.append(row)
                print("  " + ", ".join(f"{k} {v}" for k, v in row.items()), flush=True)
            write(rows, chosen.output / f"{name}.csv")
            if plots:
                picture(name, rows, chosen.output / f"{name}.png")
    print(f"\nwritten to {chosen.output}")


if __name__ == "__main__":
    main()
