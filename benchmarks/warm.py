"""Sweeps of PageRank after some links changed, from nothing and from the ranks before.

    python -m benchmarks.warm GRAPH...

Half of a share of the links is taken out at random and as many random ones are put in, their ends
drawn as often as they are ends of links. Both rankings end at the default tolerance.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite import Graph
from cocite.ranking import pagerank

SHARES = (0.001, 0.01)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    for path in parser.parse_args().graphs:
        graph = Graph.open(path)
        before = pagerank(graph)
        for share in SHARES:
            after = cocite.ingest(changed(graph, share))
            cold, warm = pagerank(after), pagerank(after, start=before)
            print(
                f"{path}: {share:.1%} of the links changed, {warm.started:,} of {after.nodes:,} "
                f"nodes known: {cold.convergence.sweeps} sweeps from nothing, "
                f"{warm.convergence.sweeps} from the ranks before"
            )


if __name__ == "__main__":
    main()
