"""Queries on a cluster compared with one machine, and intervals with missing shards.

    python -m benchmarks.cluster_serving [INDEX] [--nodes N] [--shards N] [--questions N]

All Ray nodes run on this machine, so work that would be parallel on a cluster is sequential here.
For INDEX, measures ``related`` (k = 20, random pages), locally and on the cluster, with all shards
and with three of eight killed: latency; CPU time of the client and of the servers; the number
of bit-identical results; and the time until servers are back. Results are stored in
``results/cluster.json``.

Coverage needs no INDEX: on a generated web of 400 pages, it compares 1,000 queries to servers of 8
shards, 1 to 5 of them killed, with the exact PSimRank of all pairs (``cocite all-pairs``), for four
indexes with different seeds. At least 0.95 of the intervals should contain the exact score.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from benchmarks.block import run_today
from benchmarks.processes import others, processor_seconds
from benchmarks.simulator.constants import add_keep, keep_quiet
from cocite import Index
from cocite.cluster.ray import Cluster
from cocite.search.remote.replicas import ReplicaSet

PAGES, SEEDS, EACH = 400, 4, 250


def asked(
    index: Index, names: list[str], answering: Callable[[], list[int]] = list
) -> dict[str, float]:
    """Seconds of the questions, one after another, and CPU time of each: of who asks and of
    the processes that answer. All have been asked before: what they read is in memory by now.
    """
    for name in names:
        index.related(name)
    took, servers = [], answering()
    asker, others = time.process_time(), sum(map(processor_seconds, servers))
    for name in names:
        begin = time.perf_counter()
        index.related(name)
        took.append(time.perf_counter() - begin)
    middle, most = (float(x) for x in np.percentile(took, [50, 99]))
    return {
        "p50": middle,
        "p99": most,
        "asker_cpu": (time.process_time() - asker) / len(names),
        "servers_cpu": (sum(map(processor_seconds, servers)) - others) / len(names),
    }


def processes(cluster: Cluster, servers: Sequence[Any]) -> list[int]:
    """Of servers, as they say now: one that was started anew has another."""
    return [cluster.get(server.actor.call("holds"), 60.0).process for server in servers]


def told(what: str, found: dict[str, float]) -> None:
    """A line."""
    p50, p99, asker, servers = (1000 * found[name] for name in found)
    print(
        f"{what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, {asker:.1f} ms of CPU time, and "
        f"{servers:.1f} of servers",
        flush=True,
    )


def until_all(index: Index, name: str, seconds: float = 120.0) -> float:
    """Ask until all shards answer; how long that took."""
    begin = time.monotonic()
    while True:
        index.related(name)
        answered = index.answered
        assert answered is not None
        if answered.shards == answered.of:
            return time.monotonic() - begin
        if time.monotonic() > begin + seconds:
            raise SystemExit(f"{answered.shards} of {answered.of} shards answer, for {seconds:g} s")


def speed(path: str, cluster: Cluster, shards: int, questions: int) -> dict[str, Any]:
    """Here, and over the cluster; then with three of eight shards ended, in the same share."""
    here = cocite.open(path)
    some = np.random.default_rng(1).integers(0, len(here.nodes), questions)
    names = [here.nodes.name(int(node)) for node in some]
    begin = time.perf_counter()
    spread = cocite.open(path, cluster=cluster, shards=shards, deadline=5000)
    assert spread.remote is not None
    with spread:
        found: dict[str, Any] = {"began": time.perf_counter() - begin}
        print(f"{shards} servers began in {found['began']:.1f} s", flush=True)
        replicas = spread.remote.replicas
        assert isinstance(replicas, ReplicaSet)
        until_all(spread, names[0])
        found["one machine"] = asked(here, names)
        told("one machine", found["one machine"])
        servers = [server for each in replicas._servers for server in each]
        found["cluster"] = asked(spread, names, lambda: processes(cluster, servers))
        told("the cluster", found["cluster"])
        same = sum(spread.related(name) == here.related(name) for name in names)
        found["same"] = same / questions
        print(f"{same} of {questions} answers the same to the bit, {spread.answered}", flush=True)
        gone = [replicas._servers[shard][0] for shard in range(3 * shards // 8)]
        if gone:
            found["killed"] = killed(cluster, spread, replicas, gone, names)
    return found


def killed(
    cluster: Cluster,
    spread: Index,
    replicas: ReplicaSet,
    gone: Sequence[Any],
    names: list[str],
) -> dict[str, Any]:
    """Some servers ended for good, and the questions again; then as a fault would end them: how
    long it takes until all shards answer again.
    """
    left = [each for servers in replicas._servers for each in servers if each not in gone]
    for server in left[: len(gone)]:
        server.actor.kill(restart=True)
    back = until_all(spread, names[0])
    for server in gone:
        server.actor.kill()
    spread.related(names[0])
    found = asked(spread, names, lambda: processes(cluster, left))
    told(f"{len(gone)} shards ended", found)
    answered = spread.answered
    assert answered is not None
    print(f"{answered}; servers that were ended were back after {back:.1f} s", flush=True)
    return {**found, "shards": answered.shards, "samples": answered.samples, "back": back}


def coverage(cluster: Cluster, shards: int) -> dict[str, Any]:
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
            index = cocite.open(path, cluster=cluster, shards=shards, deadline=500)
            assert index.remote is not None
            replicas = index.remote.replicas
            assert isinstance(replicas, ReplicaSet)
            with index:
                for shard in rng.choice(shards, 1 + seed % 5, replace=False).tolist():
                    replicas._servers[shard][0].actor.kill()
                for _ in range(EACH):
                    a, b = (
                        index.nodes.name(int(n)) for n in rng.choice(len(index.nodes), 2, False)
                    )
                    found, exact = index.similarity(a, b, decay=0.6), truth.similarity(a, b)
                    inside += found.low <= exact <= found.high
                    assert index.answered is not None
                    counts.add(index.answered.samples)
    print(f"coverage: {inside} of {SEEDS * EACH} intervals hold; samples {sorted(counts)} of 64")
    return {"intervals": SEEDS * EACH, "hold": inside, "samples": sorted(counts)}


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster_serving", description=__doc__
    )
    parser.add_argument("index", nargs="?", metavar="INDEX")
    parser.add_argument("--nodes", type=int, default=4, metavar="N")
    parser.add_argument("--shards", type=int, default=8, metavar="N")
    parser.add_argument("--questions", type=int, default=300, metavar="N")
    add_keep(parser)
    chosen = parser.parse_args()
    busy = others()
    with Cluster.connect(f"local:{chosen.nodes}") as cluster:
        found: dict[str, Any] = {
            **run_today(),
            "plan": {"nodes": chosen.nodes, "shards": chosen.shards},
            "coverage": coverage(cluster, chosen.shards),
        }
        if chosen.index is None:
            return
        found |= speed(chosen.index, cluster, chosen.shards, chosen.questions)
    stored = cocite.open(chosen.index)
    found["index"] = {"nodes": len(stored.nodes), "samples": stored.samples}
    found["others"] = max(busy, others())
    keep_quiet("runs", "serving", found, chosen)


if __name__ == "__main__":
    main()
