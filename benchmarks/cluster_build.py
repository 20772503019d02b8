"""A sharded build on a cluster compared with one machine.

    python -m benchmarks.cluster_build GRAPH [--nodes 4] [--shards 8] [--samples 800]

Builds an index of psimrank for a stored GRAPH four times, each in its own process:

    one machine      on all cores
    cluster          on local Ray nodes, with --shards shards
    a node killed    by SIGKILL, when half of the shards are done
    driver killed    by SIGKILL, when a quarter is done; then the build is resumed

CPU time is that of the driver, Ray's workers and Ray itself (``processes.py``), from when the
nodes are up until the index is published. The time to start nodes, and what workers spend on shards
and idle, is reported separately. The aim is 1.3 times that of one machine. Files must be
byte-identical to those of one machine. Results are stored in ``results/cluster.json``.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.block import run_today
from benchmarks.processes import Spending, others
from benchmarks.simulator.constants import add_keep, keep_quiet
from cocite import Graph
from cocite.cluster.ray import Cluster
from cocite.index.build import IndexBuild
from cocite.index.cluster import ClusterBuild, of_nodes
from cocite.index.plan import BuildOptions
from cocite.resources import Resources

AIM = 1.3


class Noted:
    """Work on a node that also tells its process, and its CPU time."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self._work = work

    def __call__(self, item: Any) -> tuple[Any, int, float]:
        begin = time.process_time()
        found = self._work(item)
        return found, os.getpid(), time.process_time() - begin


class NotingCluster(Cluster):
    """Says of every item that is done which process did it, and in how much time."""

    def in_order(
        self, work: Callable[[Any], Any], items: Iterable[Any], **how: Any
    ) -> Iterator[Any]:
        for found, process, seconds in super().in_order(Noted(work), items, **how):
            say(shard=process, cpu=seconds)
            yield found


def say(**facts: object) -> None:
    """A line for who started this process."""
    print(json.dumps(facts), flush=True)


def drive(asked: argparse.Namespace) -> None:
    """Build; ``--nodes 0`` on this machine. Say when it begins and when it is done."""
    graph, shard = Graph.open(asked.graph), asked.samples // asked.shards
    options = BuildOptions.checked("psimrank", settings={"samples": asked.samples})
    means = Resources.checked(shard=shard)
    if not asked.nodes:
        say(mark="ready")
        with IndexBuild(graph, asked.output, options, means) as work:
            work.run()
        say(mark="built")
        return
    with NotingCluster.connect(f"local:{asked.nodes}") as cluster:
        say(mark="ready")
        spread, killed = ClusterBuild(cluster, None, None), list[int]()

        def progress(done: int, total: int) -> None:
            if asked.kill and 2 * done >= total and not killed:
                cluster.kill_node(1)
                killed.append(done)
                say(mark="killed")

        nodes = of_nodes(spread, means, None, None)
        with IndexBuild(graph, asked.output, options, nodes, spread=spread) as work:
            work.run(progress)
        say(mark="built")


@dataclass
class Run:
    """What was seen of a driver: CPU time by kind when a mark came, and seconds since the
    start; each shard's process and CPU time.
    """

    marks: dict[str, tuple[float, Counter[str]]] = field(default_factory=dict)
    shards: list[tuple[int, float]] = field(default_factory=list)

    def between(self, first: str, last: str) -> dict[str, Any]:
        """Seconds and CPU time."""
        (since, before), (until, after) = self.marks[first], self.marks[last]
        by = {kind: round(after[kind] - before[kind], 3) for kind in sorted(after)}
        return {"wall": until - since, "cpu": sum(by.values()), "by": by}


def followed(
    arguments: list[str], until: Callable[[Run], bool] = lambda _: False, trials: str = "built"
) -> Run:
    """Start a driver and follow it to its end, or kill it when ``until`` holds."""
    run, begun = Run(), time.monotonic()
    command = [sys.executable, "-m", "benchmarks.cluster_build", "--drive", *arguments]
    with Spending() as spending:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None

        def mark(name: str) -> None:
            run.marks[name] = time.monotonic() - begun, spending.by_kind()

        mark("start")
        for line in process.stdout:
            summary = json.loads(line)
            if "shard" in summary:
                run.shards.append((summary["shard"], summary["cpu"]))
            else:
                mark(summary["mark"])
            if until(run):
                process.send_signal(signal.SIGKILL)
                mark("ended")
                break
        process.stdout.close()
        code = process.wait()
        mark("gone")
    _bury()
    if trials not in run.marks or (code and trials == "built"):
        raise SystemExit(f"a build ended with {code}")
    return run


def _bury() -> None:
    """Those that had another parent: they end by themselves, and are waited for."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
        except ChildProcessError:
            return


def summary(run: Run) -> dict[str, Any]:
    """The figures of a run that came to its end."""
    found = {"start": run.between("start", "ready"), "build": run.between("ready", "built")}
    if run.shards:
        found["build"]["shards"] = [round(seconds, 4) for _, seconds in run.shards]
        found["build"]["own"] = sum(seconds for _, seconds in run.shards)
        found["build"]["workers"] = len({process for process, _ in run.shards})
    return found


def begun(run: Run) -> list[tuple[float, float]]:
    """Of each worker that did more than one shard: its first one, the mean of its others."""
    found = []
    for worker in {process for process, _ in run.shards}:
        mine = [seconds for process, seconds in run.shards if process == worker]
        if len(mine) > 1:
            found.append((mine[0], sum(mine[1:]) / len(mine[1:])))
    return found


def same(left: Path, right: Path) -> bool:
    """Whether two indexes have the same files, to the byte."""
    names = sorted(path.name for path in left.iterdir())
    if names != sorted(path.name for path in right.iterdir()):
        return False
    return not any(filecmp.cmpfiles(left, right, names, shallow=False)[1:])


def measure(graph: str, nodes: int, shards: int, samples: int, folder: Path) -> dict[str, Any]:
    """All four."""
    here = folder / "here.index"
    plan = [graph, "--shards", str(shards), "--samples", str(samples)]

    def arguments(output: Path, count: int) -> list[str]:
        return [*plan, "--nodes", str(count), "--output", str(output)]

    def compared(name: str, run: Run, output: Path) -> dict[str, Any]:
        found = summary(run) | {"equal": same(here, output)}
        shutil.rmtree(output)
        print(name, json.dumps(found), file=sys.stderr, flush=True)
        return found

    busy = others()
    alone = summary(followed(arguments(here, 0)))
    print("one machine", json.dumps(alone), file=sys.stderr, flush=True)
    stored = Graph.open(graph)
    found: dict[str, Any] = {
        **run_today(),
        "graph": {"nodes": stored.nodes, "edges": stored.edges},
        "plan": {"nodes": nodes, "shards": shards, "samples": samples},
        "one machine": alone,
    }
    there = folder / "there.index"
    found["cluster"] = compared("cluster", followed(arguments(there, nodes)), there)
    killed = followed([*arguments(there, nodes), "--kill"])
    at = killed.between("ready", "killed")["wall"]
    found["node killed"] = compared("node killed", killed, there) | {"at": at}
    first = followed(
        arguments(there, nodes), lambda run: 4 * len(run.shards) > shards, trials="ended"
    )
    before = first.between("ready", "ended")
    again = followed(arguments(there, nodes))
    reused = shards - len(again.shards)
    found["driver killed"] = compared("driver killed", again, there) | {
        "before": before,
        "kept": reused,
    }
    found["others"] = max(busy, others())
    both = before["cpu"] + found["driver killed"]["build"]["cpu"]
    base = alone["build"]["cpu"]
    found["against one machine"] = {
        "cluster": found["cluster"]["build"]["cpu"] / base,
        "cluster, shards alone": found["cluster"]["build"]["own"] / base,
        "node killed": found["node killed"]["build"]["cpu"] / base,
        "driver killed": both / base,
    }
    return found


def parser() -> argparse.ArgumentParser:
    """The command line; ``--drive`` and what follows are for processes that this one starts."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster_build",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("graph", metavar="GRAPH")
    found.add_argument("--nodes", type=int, default=4, metavar="N")
    found.add_argument("--shards", type=int, default=8, metavar="N")
    found.add_argument("--samples", type=int, default=800, metavar="N")
    add_keep(found)
    for name in ("--drive", "--kill"):
        found.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    found.add_argument("--output", help=argparse.SUPPRESS)
    return found


def main() -> None:
    """Measure, print, keep."""
    asked = parser().parse_args()
    if asked.drive:
        drive(asked)
        return
    if asked.samples % asked.shards or not asked.samples:
        raise SystemExit("--samples is a multiple of --shards, so that shards are of one size")
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as name:
        found = measure(asked.graph, asked.nodes, asked.shards, asked.samples, Path(name))
    print(json.dumps(found, indent=1))
    for what, ratio in found["against one machine"].items():
        print(f"{what}: {ratio:.2f} times the CPU time of one machine (aim {AIM})")
    keep_quiet("runs", "build", found, asked)
    if not all(found[name]["equal"] for name in ("cluster", "node killed", "driver killed")):
        raise SystemExit("bytes are not those of one machine")


if __name__ == "__main__":
    main()
