"""Questions over a cluster beside those of one machine, and intervals with shards missing.

    python -m benchmarks.cluster_serving [INDEX] [--nodes N] [--shards N] [--questions N]

The nodes are Ray's, on this machine, so what they do side by side elsewhere they do here by turns.
Of INDEX: how long ``related`` takes (k = 20, random pages), here and over the cluster, with all
shards; processor time of the process that asks; how many answers are the same to the bit.

Coverage, which takes no INDEX: a generated web of 400 pages, the exact PSimRank of all pairs
(``cocite exact``), and 1,000 questions to servers of 8 shards of which 1 to 5 have been ended, for
four indexes of different seeds. The share of intervals that hold the exact score, 0.95 or more.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import cocite
from cocite import Index
from cocite.query.shards.company import Company
from cocite.query.shards.spread import SpreadIndex
from cocite.runner.ray import Cluster

PAGES, SEEDS, EACH = 400, 4, 250


def asked(index: Index, names: list[str]) -> tuple[list[float], float]:
    """Seconds of each question, and of the processor for one."""
    index.related(names[0])
    took, began = [], time.process_time()
    for name in names:
        begin = time.perf_counter()
        index.related(name)
        took.append(time.perf_counter() - begin)
    return took, (time.process_time() - began) / len(names)


def told(what: str, took: list[float], cpu: float) -> None:
    """A line."""
    middle, most = (1000 * float(x) for x in np.percentile(took, [50, 99]))
    print(f"{what}: p50 {middle:.1f} ms, p99 {most:.1f} ms, {1000 * cpu:.1f} ms of processor time")


def speed(path: str, cluster: Cluster, shards: int, questions: int) -> None:
    """Here, and over the cluster."""
    here = cocite.open(path)
    some = np.random.default_rng(1).integers(0, len(here.nodes), questions)
    names = [here.nodes.name(int(node)) for node in some]
    begin = time.perf_counter()
    spread = cocite.open(path, cluster=cluster, shards=shards, deadline=5.0)
    assert isinstance(spread, SpreadIndex)
    with spread:
        print(f"{shards} servers began in {time.perf_counter() - begin:.1f} s")
        told("one machine", *asked(here, names))
        told("the cluster", *asked(spread, names))
        same = sum(spread.related(name) == here.related(name) for name in names)
        print(f"{same} of {questions} answers the same to the bit, {spread.answered}")


def coverage(cluster: Cluster, shards: int) -> None:
    """How many intervals hold the exact score."""
    rng, inside, counts = np.random.default_rng(1), 0, set[int]()
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        links = np.column_stack((rng.zipf(1.5, 4000) % PAGES, rng.integers(0, PAGES, 4000)))
        table = Path(folder, "links.tsv")
        table.write_text("".join(f"{a}\t{b}\n" for a, b in links.tolist()))
        graph = cocite.ingest(table, Path(folder, "g"), delimiter="tab", header="no")
        truth = cocite.exact_simrank(graph, measure="psimrank", decay=0.6, epsilon=1e-9)
        for seed in range(SEEDS):
            path = Path(folder, f"{seed}")
            cocite.build(graph, path, measure="psimrank", samples=64, seed=seed)
            index = cocite.open(path, cluster=cluster, shards=shards, deadline=0.5)
            assert isinstance(index, SpreadIndex)
            assert isinstance(index.company, Company)
            with index:
                for shard in rng.choice(shards, 1 + seed % 5, replace=False).tolist():
                    index.company._servers[shard][0].actor.kill()
                for _ in range(EACH):
                    a, b = (
                        index.nodes.name(int(n)) for n in rng.choice(len(index.nodes), 2, False)
                    )
                    found, exact = index.similarity(a, b, decay=0.6), truth.similarity(a, b)
                    inside += found.low <= exact <= found.high
                    assert index.answered is not None
                    counts.add(index.answered.samples)
    print(f"coverage: {inside} of {SEEDS * EACH} intervals hold; samples {sorted(counts)} of 64")


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster_serving", description=__doc__
    )
    parser.add_argument("index", nargs="?", metavar="INDEX")
    parser.add_argument("--nodes", type=int, default=4, metavar="N")
    parser.add_argument("--shards", type=int, default=8, metavar="N")
    parser.add_argument("--questions", type=int, default=500, metavar="N")
    chosen = parser.parse_args()
    with Cluster.connect(f"local:{chosen.nodes}") as cluster:
        if chosen.index is not None:
            speed(chosen.index, cluster, chosen.shards, chosen.questions)
        coverage(cluster, chosen.shards)


if __name__ == "__main__":
    main()
