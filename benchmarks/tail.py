"""Latency of the slowest queries, and the bytes of samples that they read.

    python -m benchmarks.tail INDEX [INDEX ...] [--questions 300] [--rounds 3] [--k 20 100]

Runs ``related`` of the same random nodes on all indexes alternately, in one process, with data in
memory and kernels compiled. Prints processor microseconds per query, the best of some rounds:
median, 90th and 99th percentile, mean, and the 99th percentile over the median. Indexes of the same
graph, measure and samples in several layouts must return bit-identical results; a difference is an
error.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite import Index
from cocite.index import is_shard

TITLES = ["k", "index", "median", "p90", "p99", "mean", "p99 / median"]


def size(index: Index) -> str:
    """Bytes of samples a node and sample."""
    files = index.stored.store.manifest.files.items()
    samples = sum(entry.nbytes for name, entry in files if is_shard(name))
    return f"{samples / len(index.nodes) / (index.samples or 1):.2f} bytes a node and sample"


def asked(index: Index, node: str, k: int) -> tuple[float, list[str]]:
    """Seconds of the processor that a question takes, and its answer."""
    begin = time.process_time()
    hits = index.related(node, k)
    return time.process_time() - begin, [repr(hit) for hit in hits]


def measured(
    indexes: Sequence[Index], nodes: Sequence[str], k: int, rounds: int
) -> NDArray[np.float64]:
    """float64[indexes, nodes]: seconds, the best of some rounds."""
    found = np.full((len(indexes), len(nodes)), np.inf)
    for _ in range(rounds):
        for at, node in enumerate(nodes):
            answers = []
            for number, index in enumerate(indexes):
                seconds, answer = asked(index, node, k)
                found[number, at] = min(found[number, at], seconds)
                answers.append(answer)
            if any(answer != answers[0] for answer in answers):
                raise SystemExit(f"answers of {node} differ")
    return found


def row(k: int, index: Index, seconds: NDArray[np.float64]) -> str:
    """A line of the table."""
    median, high, highest = np.quantile(1e6 * seconds, (0.5, 0.9, 0.99))
    numbers = [median, high, highest, 1e6 * seconds.mean()]
    cells = [str(k), index.stored.store.path.name, *(f"{number:.0f}" for number in numbers)]
    return " | ".join([*cells, f"{highest / median:.1f}"])


def main() -> None:
    """Print a line an index and k."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("indexes", type=cocite.open, nargs="+", metavar="INDEX")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--k", type=int, nargs="+", default=[20, 100])
    options = parser.parse_args()
    first = options.indexes[0]
    chosen = np.random.default_rng(1).integers(0, len(first.nodes), options.questions)
    nodes = [first.nodes.name(node) for node in chosen.tolist()]
    for index in options.indexes:
        print(f"{index.stored.store.path.name}: {size(index)}", flush=True)
        for node in nodes:
            index.related(node, 1)
    print(" | ".join(TITLES))
    for k in options.k:
        found = measured(options.indexes, nodes, k, options.rounds)
        for index, seconds in zip(options.indexes, found, strict=True):
            print(row(k, index, seconds), flush=True)


if __name__ == "__main__":
    main()
