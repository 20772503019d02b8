"""Effect of truncating the rows of ``fusion``: its scores compared with those of whole rows.

    python -m benchmarks.cuts

Whole rows have every value above 0, with pushes that stop at 1e-6 and the usual rounding to codes.
For the first hits of random pages with links, prints the score difference (mean, 95th percentile
and maximum) and the common fraction of the first ten. Also prints the fraction of the weight of
whole rows that is stored, for lists and for pushed rows. Takes two minutes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import cocite
from benchmarks.embeddings import stored
from cocite import Graph, Index
from cocite.index.layouts.rows import fusion
from cocite.index.layouts.rows.fusion_reader import RowsReader
from cocite.measures.fusion import SIZES

GRAPHS = ("cora", "polblogs", "hollins")
PAGES, K, TEN = 300, 20, 10


def whole(graph: Graph, place: Path) -> Index:
    """The index without cuts."""
    usual, stages = dict(SIZES), fusion.STAGES
    SIZES["large"] = (graph.nodes, graph.nodes)
    fusion.STAGES = (*stages[:-1], 1e-6)
    try:
        return cocite.build(graph, place, size="large")
    finally:
        SIZES.update(usual)
        fusion.STAGES = stages


def row(name: str, size: str, index: Index, truth: Index) -> str:
    """The line of a graph and size."""
    drawn = np.random.default_rng(1).permutation(len(index.nodes)).astype(np.uint32)
    apart, same = list[float](), list[float]()
    for page in index.nodes.names(drawn):
        if len(same) == PAGES:
            break
        if not (hits := index.related(page, K)):
            continue
        scores = truth.similarities([(page, hit.node) for hit in hits])
        apart += [abs(hit.score - score.score) for hit, score in zip(hits, scores, strict=True)]
        best = {hit.node for hit in truth.related(page, TEN)}
        same.append(len(best & {hit.node for hit in hits[:TEN]}) / len(best))
    high = np.quantile(apart, 0.95)
    (mine,), (theirs,) = index.scorer.readers, truth.scorer.readers
    assert isinstance(mine, RowsReader)
    assert isinstance(theirs, RowsReader)
    kept = [mine.norms(family).sum() / theirs.norms(family).sum() for family in range(2)]
    figures = [*(f"{each:.3f}" for each in (np.mean(apart), high, max(apart)))]
    figures += [f"{each:.2f}" for each in (np.mean(same), *kept)]
    return " | ".join(["", name, size, *figures, ""]).strip()


def main() -> None:
    """A line a graph and size."""
    for name in GRAPHS:
        with tempfile.TemporaryDirectory() as folder:
            graph, _ = stored(name, Path(folder))
            truth = whole(graph, Path(folder) / "whole")
            for size in SIZES:
                index = cocite.build(graph, Path(folder) / size, size=size)
                print(row(name, size, index, truth), flush=True)


if __name__ == "__main__":
    main()
