"""Cost of updating PageRank after some links changed: from scratch, from old ranks, and by pushes.

    python -m benchmarks.warm GRAPH...

Replaces half of a fraction of the links by random ones, whose ends are drawn in proportion to their
number of links. All computations end at the default tolerance.

A push corrects the old ranks: it adds a node's residual to its value and passes the residual on
along out-links. A round pushes, in order of id, all nodes whose residual per link is at least 9/10
of the mean, as ``kernels/push.py`` does. Costs are in passes over the links; a sweep is one pass.
Pushes need the links by source, and write at random.
"""

from __future__ import annotations

import argparse

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import cocite
from cocite import Graph
from cocite.options.rank import RankOptions
from cocite.ranking import Ranks, pagerank
from cocite.ranking.vectors import Vector

SHARES = (0.001, 0.01)
_DAMPING = 0.85


def changed(graph: Graph, share: float, seed: int = 1) -> list[tuple[str, str]]:
    """The links, by name, of which a share has changed: half of it out, half of it in."""
    names = graph.names.names(np.arange(graph.nodes))
    sources = graph.in_sources.astype(np.int64)
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    rng, count = np.random.default_rng(seed), int(sources.size * share / 2)
    stay = np.ones(sources.size, bool)
    stay[rng.choice(sources.size, count, replace=False)] = False

    def named(ends: NDArray[np.int64]) -> list[str]:
        drawn = np.concatenate([ends[stay], rng.choice(ends, count)])
        return [names[node] for node in drawn.tolist()]

    return list(zip(named(sources), named(targets), strict=True))


def pushed(after: Graph, before: Ranks, old: Graph) -> tuple[float, Vector]:
    """How often all links are read by pushes, and the ranks that these find."""
    outs = after.to_scipy().tocsr()
    degrees, y = np.diff(outs.indptr), np.array([before[name] for name in after.names])
    # The solution of the linear system is a multiple of the ranks: y = c x, 1 = c (1 - d + d D).
    dangling = before.values[old.out_degrees == 0].sum()
    y /= 1 - _DAMPING + _DAMPING * dangling
    passed = np.repeat(_DAMPING / np.maximum(degrees, 1), degrees)
    steps = csr_array((passed, outs.indices, outs.indptr), outs.shape)
    residual = 1 / after.nodes + y @ steps - y
    links = after.edges  # the residual takes a pass over all links
    while (left := np.abs(residual).sum()) > RankOptions().tolerance * y.sum():
        links += _round(outs.indptr, outs.indices, y, residual, 0.9 * left / after.edges)
    return links / after.edges, y / y.sum()


@numba.njit
def _round(offsets, targets, y, residual, least):  # type: ignore[no-untyped-def]
    """Push the nodes with a residual a link of ``least`` or more; the links read."""
    links = 0
    for v in range(y.size):
        begin, end = offsets[v], offsets[v + 1]
        mine = residual[v]
        if abs(mine) >= least * max(end - begin, 1):
            residual[v] = 0.0
            y[v] += mine
            links += end - begin
            for i in range(begin, end):
                residual[targets[i]] += _DAMPING * mine / (end - begin)
    return links


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    for path in parser.parse_args().graphs:
        graph = Graph.open(path)
        before = pagerank(graph)
        for share in SHARES:
            after = cocite.ingest(changed(graph, share))
            cold, warm = pagerank(after), pagerank(after, start=before)
            times, values = pushed(after, before, graph)
            assert np.abs(values - cold.values).sum() < 2e-7
            print(
                f"{path}: {share:.1%} of the links changed, {warm.started:,} of {after.nodes:,} "
                f"nodes known: {cold.convergence.sweeps} sweeps from nothing, "
                f"{warm.convergence.sweeps} from the ranks before, "
                f"pushes read the links {times:.1f} times"
            )


if __name__ == "__main__":
    main()
