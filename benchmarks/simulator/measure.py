"""Measure the constants on this machine: the work of one machine, and the overhead of Ray.

    samples      a build in memory on all cores, of two sizes: the cost of another sample
    blocks       a build and a ranking over blocks in this process, each call timed: tokens, trees,
                 sweeps, and the work of the coordinating process
    workers      a build by shards on two local Ray nodes: the start of workers, and Ray itself
    calls        builds of a tiny graph over 2 and 6 blocks on two nodes: overhead only, so that two
                 equations give the cost of a call and of a message
    questions    over 2 and 6 shards on three nodes: the cost of another shard

The simulated runs are different ones, with more samples, shards, blocks and nodes.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import cocite
from benchmarks import cluster_blocks, cluster_build, cluster_serving
from benchmarks.block import run_today
from benchmarks.processes import others
from benchmarks.simulator.building import fine_calls
from benchmarks.simulator.serving import Serving, serve
from cocite import Graph
from cocite.cluster.ray import Cluster
from cocite.cluster.threads import Alone
from cocite.graph.partitions import BlockedGraph
from cocite.io.partitions import split
from cocite.ranking import pagerank
from cocite.resources import cores

BLOCKS = 4
INDEX = "samples-100"
"""Questions are asked of as many samples as they are everywhere else."""
GROUP = 16
"""Samples that walk together."""
_STEPS = 11
"""Of a walk of length 10: the last one tells who met at the end."""


class TimedAlone(Alone):
    """The crew of one process, and the CPU time of its calls by method."""

    spent: dict[str, float]

    def __init__(self, kind: Callable[..., Any], arguments: Sequence[Any], memory: int = 0) -> None:
        super().__init__(kind, arguments, memory)
        self.spent = {}

    def call(self, block: int, method: str, *arguments: Any, answers: int = 1) -> list[Any]:
        """Done at once, and timed."""
        begin = time.process_time()
        found = super().call(block, method, *arguments, answers=answers)
        self.spent[method] = self.spent.get(method, 0.0) + time.process_time() - begin
        return found


class TimedHall:
    """Hires such a crew, and keeps it."""

    crew: TimedAlone

    def __call__(self, *arguments: Any) -> TimedAlone:
        self.crew = TimedAlone(*arguments)
        return self.crew


def samples(graph: Graph, folder: Path) -> dict[str, Any]:
    """In memory, on all cores."""
    took = {}
    for count in (2, 40, 100):
        output = folder / f"samples-{count}"
        begin = time.process_time()
        cocite.build(graph, output, measure="psimrank", samples=count)
        took[count] = time.process_time() - begin
    return {"sample_node": (took[100] - took[40]) / 60 / graph.nodes}


def blocks(graph: Graph, folder: Path) -> dict[str, Any]:
    """Over blocks in this process."""
    split(graph, folder / "blocks", BLOCKS)
    hall = TimedHall()
    blocked = BlockedGraph.open(folder / "blocks", crew=hall)
    cluster_blocks.built(blocked, folder / "blocks-1", "psimrank", 1, None)
    results = cluster_blocks.built(blocked, folder / "blocks-16", "psimrank", GROUP, None)
    spent, nodes, sent = dict(hall.crew.spent), graph.nodes, results["sent"]
    live = live_of(blocked, hall)
    tokens = GROUP * nodes * sum(live)
    laid = spent["lay_out"] + spent["collect"]
    rest = results["cpu"] - sum(spent.values())
    pagerank(blocked, max_sweeps=1)
    found = pagerank(blocked)
    swept = sum(hall.crew.spent[name] for name in ("settle", "above", "sweep"))
    sweeps = found.convergence.sweeps
    return {
        "live": live,
        "fine_token": (spent["begin"] + spent["step"] + spent["end"]) / tokens,
        "fine_layout": laid / GROUP / nodes,
        "gather": rest / GROUP / nodes,
        "crossing": sent["bytes_of_tokens"] / 12 / tokens,
        "record_bytes": sent["bytes_of_records"] / GROUP / nodes,
        "tree_bytes": sent["bytes_of_trees"] / GROUP / nodes,
        "sweeps_here": sweeps,
        "block_link": swept / sweeps / graph.edges,
        "border": cluster_blocks.values_sent(blocked) / nodes,
    }


def live_of(blocked: BlockedGraph, hall: TimedHall) -> list[float]:
    """Tokens that make each step, as a share of the nodes: the mean of some samples."""
    from cocite.engine.carriers import BlocksWalk

    walked = BlocksWalk(hall.crew, blocked.nodes, 10).walk(range(GROUP))
    most = max(map(len, walked.values()))
    counts = np.array([[*steps, *[0] * (most - len(steps))] for steps in walked.values()])
    shares: list[float] = (counts.mean(0) / blocked.nodes).tolist()
    return shares


def workers(place: str, nodes: int, folder: Path) -> dict[str, Any]:
    """Shards on two Ray nodes: a worker's beginning is what its first shard takes longer, and what
    workers take beside shards.
    """
    plan = [place, "--shards", "12", "--samples", "192", "--nodes", "2"]
    run = cluster_build.followed([*plan, "--output", str(folder / "workers.index")])
    results = cluster_build.summary(run)["build"]
    later = cluster_build.begun(run)
    first = statistics.mean(max(0.0, one - rest) for one, rest in later)
    idle = (results["by"]["workers"] - results["own"]) / results["workers"]
    return {
        "begin": first + idle,
        "beside": results["by"]["driver"],
        "ray": results["by"]["ray"] / results["wall"] / 2,
        "shard_node": statistics.median(results["shards"]) / 16 / nodes,
    }


def calls(folder: Path) -> dict[str, Any]:
    """A tiny graph: 2 blocks and 6, one group of samples and three. Of each the least of three
    runs, as Ray sometimes waits ten seconds before it starts a process.
    """
    graph = cocite.generate_web(folder / "tiny", nodes=2000, links=10_000, seed=1)
    rows: list[tuple[int, int, float, float]] = []
    last: dict[str, float] = {}
    with Cluster.connect("local:2") as cluster:
        hall = cluster_blocks.Hall(cluster)
        for count in (2, 6):
            split(graph, folder / f"tiny-{count}", count)
            blocked = BlockedGraph.open(folder / f"tiny-{count}", crew=hall)
            results: dict[int, dict[str, Any]] = {}
            for size in (2, GROUP, 3 * GROUP) * 3:
                output = folder / f"tiny-{count}-{size}"
                shutil.rmtree(output, ignore_errors=True)
                found = cluster_blocks.built(blocked, output, "psimrank", size, hall)
                print(count, size, json.dumps(found), file=sys.stderr, flush=True)
                known = results.setdefault(size, found)
                results[size] = {key: min(found[key], known[key]) for key in _TAKEN}
            one, three = results[GROUP], results[3 * GROUP]
            mine = (three["conductor"] - one["conductor"]) / 2
            theirs = (three["cpu"] - one["cpu"]) / 2 - mine
            rows.append((*fine_calls(count, _STEPS, GROUP), mine, theirs))
            group = (three["wall"] - one["wall"]) / 2
            last = {
                "block_begin": max(0.0, one["cpu"] - mine - theirs) / count,
                "block_start": max(0.0, one["wall"] - group) * min(cores(), count) / count,
            }
        last |= ranked(blocked, hall)
    driver, crew = solved([row[:3] for row in rows]), solved([(*row[:2], row[3]) for row in rows])
    each = {
        "call": driver[0],
        "parcel": driver[1],
        "call_block": crew[0],
        "parcel_block": crew[1],
    }
    return each | last


def ranked(blocked: BlockedGraph, hall: cluster_blocks.Hall) -> dict[str, float]:
    """What a ranking takes to begin, and a sweep of a block."""
    taken, walls, sweeps = [], [], []
    for most in (1, 1000):
        rounds = []
        for _ in range(3):
            begin, cpu = time.monotonic(), time.process_time()
            found = pagerank(blocked, max_sweeps=most)
            assert hall.crew is not None
            spent = time.process_time() - cpu + hall.crew.spent()
            rounds.append((spent, time.monotonic() - begin))
        sweeps.append(found.convergence.sweeps)
        taken.append(min(spent for spent, _ in rounds))
        walls.append(min(wall for _, wall in rounds))
    return {
        "rank_begin": taken[0] / blocked.blocks,
        "rank_start": walls[0] * min(cores(), blocked.blocks) / blocked.blocks,
        "hop": max(0.0, walls[1] - walls[0]) / (sweeps[1] - sweeps[0]) / blocked.blocks,
    }


def solved(rows: Sequence[tuple[int, int, float]]) -> tuple[float, float]:
    """Seconds a call and a parcel, neither below 0, from two runs."""
    (a, b, x), (c, d, y) = rows
    each = np.linalg.solve([[a, b], [c, d]], [x, y])
    if each[1] < 0:
        return max(0.0, (x + y) / (a + c)), 0.0
    if each[0] < 0:
        return 0.0, max(0.0, (x + y) / (b + d))
    return float(each[0]), float(each[1])


def questions(index: Path) -> dict[str, Any]:
    """Over 2 shards and 6, on three nodes: what is the same for all, and what each shard adds."""
    results = {}
    with Cluster.connect("local:3") as cluster:
        for shards in (2, 6):
            results[shards] = cluster_serving.speed(str(index), cluster, shards, 200)["cluster"]
            print(shards, results[shards], file=sys.stderr)
    two, six = results[2], results[6]
    merge = max(0.0, (six["asker_cpu"] - two["asker_cpu"]) / 4)
    call = max(0.0, (six["servers_cpu"] - two["servers_cpu"]) / 4)
    found = {
        "front": max(0.0, two["asker_cpu"] - 2 * merge),
        "merge": merge,
        "ask_call": call,
        "ask_all": max(0.0, two["servers_cpu"] - 2 * call),
    }
    return found | fitted(found, results)


def fitted(found: dict[str, float], results: dict[int, dict[str, Any]]) -> dict[str, float]:
    """The way there and back, and the spread of a server's time, with which the simulated questions
    over 2 and 6 shards take what the measured ones took: the median, and the 99th percentile.
    """

    def simulated(shards: int, trip: float, spread: float) -> tuple[float, float]:
        work = found["ask_call"] + found["ask_all"] / shards
        run = Serving(
            1, float(cores()), 3, shards, 1, 1, work, spread, found["front"], found["merge"], trip,
            60.0, beside=True,
        )  # fmt: skip
        served = serve(run, 400, None)
        return served.percentile(0.5), served.percentile(0.99)

    def off(shards: int, trip: float, spread: float) -> float:
        p50, p99 = simulated(shards, trip, spread)
        there = results[shards]
        return float((p50 / there["p50"] - 1) ** 2 + (p99 / there["p99"] - 1) ** 2)

    trips = [0.0, *(0.0001 * 1.5**i for i in range(14))]
    spreads = [0.1 * i for i in range(1, 26)]
    best = min(
        ((t, s) for t in trips for s in spreads),
        key=lambda each: float(sum(off(shards, *each) for shards in results)),
    )
    return {"trip": best[0], "ask_spread": best[1]}


_TAKEN = "cpu", "wall", "conductor"
PARTS = ("samples", "blocks", "workers", "calls", "questions")


def measure(
    place: str, parts: Sequence[str], folder: Path, keep: Callable[[dict[str, Any]], None]
) -> None:
    """The parts, of the graph at a place; each is kept as soon as it is known."""
    graph = Graph.open(place)
    keep(
        {
            **run_today(),
            "of": {"nodes": graph.nodes, "edges": graph.edges},
            "processors": float(cores()),
            "others": others(),
        }
    )
    if "questions" in parts and "samples" not in parts:
        cocite.build(graph, folder / INDEX, measure="psimrank", samples=100)
    each: dict[str, Callable[[], dict[str, Any]]] = {
        "samples": lambda: samples(graph, folder),
        "blocks": lambda: blocks(graph, folder),
        "workers": lambda: workers(place, graph.nodes, folder),
        "calls": lambda: calls(folder),
        "questions": lambda: questions(folder / INDEX),
    }
    for part in PARTS:
        if part in parts:
            found = each[part]()
            print(part, json.dumps(found), flush=True)
            keep(found)
