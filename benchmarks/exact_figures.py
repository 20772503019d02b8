"""Reproduce the figures of Yu et al. 2011 on space, order and differences.

    python -m benchmarks.exact_figures [--only NAME] [--full] [-o FOLDER]

    space       memory and time by method and size (its figures 7a and 7b), each to its accuracy
    sparsity    links before and after reverse Cuthill-McKee (its figure 6f), as tables and pictures
    table6      mean |S_k - S_(k-1)| on an author-paper graph
    table7      the same on category graphs, and sweeps to the requested accuracy

The paper's data is not available. Generated author-paper graphs of the same sizes replace DBLP
(``benchmarks/sor.py``). The categories of wikispeedia and a generated graph of a hundredth of the
size replace those of Wikipedia. Real graphs are added if present. ``--full`` includes experiments
that take minutes. ``python -m benchmarks.reproduction`` compares the same figures with the printed
ones and stores them.

Memory is the peak of all NumPy arrays together, including the graph's reduction.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.exact_changes import real, table6, table7
from benchmarks.partial_sums import partial_sums, partial_sums_bytes
from benchmarks.plots import SERIES, draw
from benchmarks.sor import PSUM, Row, Shop
from cocite import Graph, exact_simrank
from cocite.allpairs import AllPairsOptions
from cocite.allpairs.core import reduce
from cocite.allpairs.links import bandwidth, reordered
from cocite.allpairs.run import AllPairs
from cocite.errors import NotConverged, ResourceError
from cocite.graph.links import in_links
from cocite.resources import available, format_size

PERIODS = {"98-99": 1525, "98-01": 3208, "98-03": 5307, "98-05": 7984, "98-07": 10_682}
"""Authors of each DBLP graph (its table 3)."""
KINDS: dict[str, dict[str, Any]] = {
    "SOR-SR (sor 1.3, pruned at 0.009)": {"method": "sor", "prune": 0.009},
    "gauss-seidel": {},
    "PSUM-SR (psum)": PSUM,
    "SVD-SR (svd, rank 50)": {"method": "svd", "rank": 50},
    "SVD-SR (svd, rank 800)": {"method": "svd", "rank": 800},
}
"""The paper's three methods, and our default, at its settings: c = 0.8, epsilon = 0.05.

Its threshold of 0.01 may by itself cost 0.01 / (1 - c), the whole accuracy: 0.009 leaves a tenth
to the iteration. Rows are in the stored order: in reverse Cuthill-McKee's, linked rows share a
block, do not see each other's new values, and omega = 1.3 does not converge (docs/exact.md).
"""
EXACT_ROWS = 5000
"""Up to so many rows, true errors are measured, and low rank is run with rank 800."""
MOST_MEMORY = 0.75
"""The share of the available memory that a run may take; a larger one is planned only."""
BLOCKS = 5

# -- figures 7a and 7b --------------------------------------------------------------------------


def space(shop: Shop) -> Iterator[Row]:
    """Bytes and seconds by method and graph, each run to its end on one thread."""
    list(_spaces("warm", shop.sparse(200)))  # compiles kernels
    for period, authors in PERIODS.items():
        yield from _spaces(f"authors as DBLP {period}", shop.authors(authors))
    for name, graph in real(shop, "cora", "polblogs", "wiki-Vote"):
        yield from _spaces(name, graph)


def _spaces(name: str, graph: Graph) -> Iterator[Row]:
    truth, rows = None, reduce(in_links(graph), order=False).size
    if rows <= EXACT_ROWS:
        truth = exact_simrank(graph, decay=0.8, epsilon=1e-6, threads=1).array()
    for title, options in KINDS.items():
        if options == PSUM:
            planned = partial_sums_bytes(graph)
        else:
            checked = AllPairsOptions(decay=0.8, epsilon=0.05, **options)
            planned = AllPairs(graph, checked, memory=1 << 45, threads=1).bytes
        sparse = "prune" in options
        row = {"graph": name, "nodes": graph.nodes, "links": graph.edges, "rows": rows}
        row |= {"method": title, "planned": None if sparse else planned}
        fits = sparse or planned <= MOST_MEMORY * available()
        if fits and (truth is not None or "rank 800" not in title):
            row |= _measured(graph, options, truth)
        yield row


def _measured(graph: Graph, options: dict[str, Any], truth: NDArray[np.floating] | None) -> Row:
    """Seconds are of CPU time. ``converged``: the bound is within the accuracy asked for."""
    tracemalloc.start()
    begin = time.process_time()
    row: Row = {"converged": False}
    try:
        if options == PSUM:
            found = partial_sums(graph, 0.8, 0.05)
        else:
            checked = AllPairsOptions(decay=0.8, epsilon=0.05, **options)
            found = AllPairs(graph, checked, memory=1 << 45, threads=1).run()
    except (NotConverged, ResourceError) as error:
        row["ended"] = str(error).split(". ")[0]
    else:
        how = found.convergence
        row = {"converged": how.converged, "sweeps": how.sweeps, "bound": how.error_bound}
        row["ended"] = how.reason
        if "prune" in options:
            row["scores kept"] = int(found.matrix.end)  # type: ignore[attr-defined]
    row["seconds"] = round(time.process_time() - begin, 2)
    row["measured"] = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    if truth is not None and "sweeps" in row:
        row["true error"] = float(np.abs(found.array() - truth).max())
    return row


def space_picture(rows: list[Row], folder: Path) -> None:
    def panel(axes: Any) -> None:
        at = {f"authors as DBLP {period}": i for i, period in enumerate(PERIODS)}
        for title, color in zip(KINDS, SERIES, strict=False):
            mine = [row for row in rows if row["method"] == title and row["graph"] in at]
            for kind, style in (("planned", "-"), ("measured", "o")):
                points = [(at[row["graph"]], row[kind]) for row in mine if row.get(kind)]
                if points:
                    label = title.split(" (")[0] if kind == "measured" else None
                    axes.plot(*zip(*points, strict=True), style, color=color, label=label)
        axes.set(yscale="log", xlabel="DBLP's sizes", ylabel="bytes: dots measured, lines planned")
        axes.set_xticks(range(len(PERIODS)), PERIODS)

    draw(folder / "space.svg", "Space by method (figure 7b)", [panel])


# -- figure 6f ----------------------------------------------------------------------------------


def sparsity(shop: Shop) -> Iterator[Row]:
    """How near links are to the diagonal, in the stored order and in reverse Cuthill-McKee's."""
    for name, graph in _patterns(shop):
        for title, row, column in _orders(graph):
            apart = np.abs(row - column)
            blocks = row * BLOCKS // graph.nodes == column * BLOCKS // graph.nodes
            widest = bandwidth(*_sorted(row, column, graph.nodes))
            yield {
                "graph": name,
                "nodes": graph.nodes,
                "links": graph.edges,
                "order": title,
                "bandwidth": widest,
                "mean distance": round(float(apart.mean()), 1),
                "in the diagonal's blocks": round(float(blocks.mean()), 4),
                "blocks without links": _empty_blocks(row, column, graph.nodes),
            }


def _patterns(shop: Shop) -> Iterator[tuple[str, Graph]]:
    yield "8 links per page", shop.sparse(10_000)
    yield "shuffled grid", shop.grid(100)
    yield "authors as DBLP 98-99", shop.authors(PERIODS["98-99"])
    yield from real(shop, "cora", "wikispeedia")


def _orders(graph: Graph) -> Iterator[tuple[str, NDArray[np.int64], NDArray[np.int64]]]:
    """(order, rows, columns) of all links."""
    offsets = graph.in_offsets.astype(np.int64)
    row = np.repeat(np.arange(graph.nodes), np.diff(offsets))
    column = graph.in_sources.astype(np.int64)
    yield "stored", row, column
    rank = np.empty(graph.nodes, np.int64)
    rank[reordered(offsets, graph.in_sources)] = np.arange(graph.nodes)
    yield "reverse Cuthill-McKee", rank[row], rank[column]


def _sorted(row: Any, column: Any, nodes: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=nodes))])
    return offsets, column[np.argsort(row, kind="stable")].astype(np.uint32)


def _empty_blocks(row: Any, column: Any, nodes: int) -> int:
    """Of the 25 blocks that the paper cuts the matrix into."""
    block = (row * BLOCKS // nodes) * BLOCKS + column * BLOCKS // nodes
    return BLOCKS * BLOCKS - np.unique(block).size


def sparsity_pictures(shop: Shop, folder: Path) -> None:
    def pattern(title: str, row: Any, column: Any, nodes: int) -> Callable[[Any], None]:
        def panel(axes: Any) -> None:
            bins = min(nodes, 250)
            place = row * bins // nodes * bins + column * bins // nodes
            counts = np.bincount(place, minlength=bins * bins).reshape(bins, bins)
            extent = (0, nodes, nodes, 0)
            axes.imshow(np.log1p(counts), cmap="Grays", extent=extent, interpolation="nearest")
            axes.set(title=title, xlabel="column")
            axes.set_xticks([nodes * i // BLOCKS for i in range(BLOCKS + 1)])
            axes.set_yticks([nodes * i // BLOCKS for i in range(BLOCKS + 1)])
            axes.tick_params(labelsize=6)

        return panel

    for name, graph in _patterns(shop):
        panels = [pattern(t, row, column, graph.nodes) for t, row, column in _orders(graph)]
        path = folder / f"sparsity-{name.replace(' ', '-')}.png"
        draw(path, f"Links of {name}, {graph.nodes:,} nodes (figure 6f)", panels)


# -- all of it ----------------------------------------------------------------------------------

FIGURES: dict[str, Callable[[Shop], Iterator[Row]]] = {
    "space": space,
    "sparsity": sparsity,
    "table6": table6,
    "table7": table7,
}


def shown(value: Any) -> str:
    """A cell."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2e}" if 0 < abs(value) < 1e-3 else f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def table(rows: list[Row]) -> str:
    """Markdown; bytes in words."""
    titles = list(dict.fromkeys(title for row in rows for title in row))
    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    for row in rows:
        cells = dict(row)
        for title in ("planned", "measured"):
            if cells.get(title) is not None:
                cells[title] = format_size(cells[title])
        lines.append("| " + " | ".join(shown(cells.get(title)) for title in titles) + " |")
    return "\n".join(lines)


def pictures(name: str, rows: list[Row], shop: Shop, folder: Path) -> None:
    """Those that the paper has."""
    if name == "space":
        space_picture(rows, folder)
    elif name == "sparsity":
        sparsity_pictures(shop, folder)


def main() -> None:
    """Make the figures asked for, print them, and save their pictures."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.exact_figures",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", choices=sorted(FIGURES))
    parser.add_argument("--full", action="store_true", help="up to the paper's sizes")
    parser.add_argument("-o", "--output", type=Path, default=Path("build/exact"), metavar="FOLDER")
    chosen = parser.parse_args()
    drawn = find_spec("matplotlib") is not None
    if not drawn:
        print("no pictures: Matplotlib is not installed; pip install '.[plots]'")
    chosen.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="exact") as folder:
        shop = Shop(Path(folder), chosen.full, [])
        for name in [chosen.only] if chosen.only else FIGURES:
            rows = list(FIGURES[name](shop))
            print(f"\n{name}\n\n{table(rows)}", flush=True)
            if drawn:
                pictures(name, rows, shop, chosen.output)
    if drawn:
        print(f"\npictures are in {chosen.output}")


if __name__ == "__main__":
    main()
