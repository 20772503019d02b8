"""A partitioned graph on a cluster compared with one machine: bytes, CPU time and traffic.

    python -m benchmarks.cluster_blocks [GRAPH] [--blocks 4] [--nodes 2] [--samples 32]

GRAPH is a stored graph, or links (by default those of cnr-2000 in DATA, the folder of data sets).
Builds indexes of psimrank and simrank in memory, by the external walk in as many blocks, and with
blocks on local Ray nodes; then computes ranks. CPU time is that of the process, or of the
coordinating process and all blocks, with kernels compiled, excluding Ray's own processes. Blocks
take about a second each to load kernels, whatever the graph, so the additional time of more samples
is compared as well. The aim is three times the external walk in one process. Results are stored in
``results/cluster.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cocite
from benchmarks.block import run_today
from benchmarks.processes import others
from benchmarks.simulator.constants import add_keep, keep_quiet
from cocite import Graph
from cocite.cluster.ray import Cluster
from cocite.cluster.workers import ClusterPool
from cocite.graph.partitions import BlockedGraph, GraphBlock
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.io.partitions import split
from cocite.options.rank import RankOptions
from cocite.ranking import pagerank
from cocite.ranking.partitions import PartitionedLinks
from cocite.resources import Resources
from cocite.storage import kind_of

LINKS = "cnr-2000/cnr-2000.edges.txt.gz"


class Timed:
    """An object that lives on a node, and the CPU time of its process since it was made."""

    def __init__(self, kind: Callable[..., Any], *arguments: Any) -> None:
        self._begin = time.process_time()
        self._held = kind(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)

    def spent(self) -> float:
        """Seconds."""
        return time.process_time() - self._begin


class TimedCrew(ClusterPool):
    """A crew of such."""

    def __init__(
        self,
        cluster: Cluster,
        kind: Callable[..., Any],
        arguments: Sequence[tuple[Any, ...]],
        memory: int,
    ) -> None:
        super().__init__(cluster, Timed, [(kind, *each) for each in arguments], memory)

    def spent(self) -> float:
        """Seconds of all."""
        asked = [self.call(block, "spent")[0] for block in range(self.size)]
        return float(sum(self.take(asked)))


class Hall:
    """Hires crews, and keeps the one that was hired last."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.crew: TimedCrew | None = None

    def __call__(self, *arguments: Any) -> TimedCrew:
        self.crew = TimedCrew(self._cluster, *arguments)
        return self.crew


def files(path: Path) -> dict[str, bytes]:
    """All files of a store but its manifest, which tells where the graph was."""
    return {each.name: each.read_bytes() for each in path.iterdir() if each.suffix != ".json"}


def built(
    graph: Graph, output: Path, measure: str, samples: int, hall: Hall | None, **means: Any
) -> dict[str, Any]:
    """Build an index; return CPU seconds and bytes sent."""
    options = BuildOptions.checked(measure, settings={"samples": samples})
    begin = time.process_time()
    crew = 0.0

    def seen(done: int, total: int) -> None:
        nonlocal crew
        if done == total and hall is not None and hall.crew is not None:
            crew = hall.crew.spent()

    with IndexBuild(graph, output, options, Resources.checked(1, "1GB", **means)) as work:
        report = work.run(seen)
    found: dict[str, Any] = {"cpu": time.process_time() - begin + crew, "wall": report.seconds}
    if report.traffic is not None:
        found |= {"conductor": found["cpu"] - crew, "sent": report.traffic.facts()}
    return found


def indexes(graph: Graph, blocked: BlockedGraph, hall: Hall, folder: Path, samples: int) -> Any:
    """Build both measures with three methods, each after an unmeasured run."""
    found = {}
    for measure in ("psimrank", "simrank"):
        ways: dict[str, tuple[Graph, Hall | None, dict[str, Any]]] = {
            "in memory": (graph, None, {}),
            "external": (graph, None, {"blocks": blocked.blocks, "external": True}),
            "in blocks apart": (blocked, hall, {}),
        }
        results: dict[str, Any] = {}
        for way, (source, who, means) in ways.items():
            few = 0.0
            for count in (2, samples):
                output = folder / f"{measure}-{way.replace(' ', '-')}-{count}"
                results[way] = built(source, output, measure, count, who, **means)
                print(measure, way, count, json.dumps(results[way]), file=sys.stderr, flush=True)
                few = few or results[way]["cpu"]
            results[way]["each"] = (results[way]["cpu"] - few) / (samples - 2)
            results[way]["bytes"] = files(output)
        whole = results["in memory"]["bytes"]
        results["equal"] = all(results[way].pop("bytes") == whole for way in ways)
        apart = results["in blocks apart"]["cpu"]
        results["against memory"] = apart / results["in memory"]["cpu"]
        results["against external"] = apart / results["external"]["cpu"]
        each = results["in blocks apart"]["each"]
        results["each against external"] = each / results["external"]["each"]
        found[measure] = results
    return found


def ranks(graph: Graph, blocked: BlockedGraph, hall: Hall) -> Any:
    """PageRank in memory and over blocks that live apart."""
    pagerank(graph, max_sweeps=1)
    pagerank(blocked, max_sweeps=1)
    begin = time.process_time()
    whole = pagerank(graph)
    alone, begin = time.process_time() - begin, time.process_time()
    wall = time.monotonic()
    found = pagerank(blocked)
    conductor, wall = time.process_time() - begin, time.monotonic() - wall
    assert hall.crew is not None
    apart = conductor + hall.crew.spent()
    values = values_sent(blocked)
    return {
        "equal": found.values.tobytes() == whole.values.tobytes(),
        "sweeps": found.convergence.sweeps,
        "in memory": {"cpu": alone},
        "in blocks apart": {"cpu": apart, "conductor": conductor, "wall": wall},
        "against memory": apart / alone,
        "values sent a sweep": values,
        "bytes a node and sweep": 8 * values / graph.nodes,
        "links across borders a node": crossing(blocked) / graph.nodes,
    }


def values_sent(blocked: BlockedGraph) -> int:
    """As the sweeps count them."""
    from cocite.ranking.pagerank import set_up

    system, *_ = set_up(
        blocked, RankOptions(damping=0.85, dangling="spread", removals=0), None, 1 << 30
    )
    assert isinstance(system.links, PartitionedLinks)
    return system.links.values


def crossing(blocked: BlockedGraph) -> int:
    """Links between blocks: what would be sent if values were not combined."""
    count = 0
    for number in range(blocked.blocks):
        block = GraphBlock(blocked.path, number, blocked.digest)
        count += int(((block.sources < block.first) | (block.sources >= block.last)).sum())
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", nargs="?")
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--samples", type=int, default=32)
    add_keep(parser)
    asked = parser.parse_args()
    if asked.samples < 3:
        raise SystemExit("--samples is 3 or more: they are compared with two")
    place = asked.graph or str(Path(os.environ.get("DATA", "../shared/data")) / LINKS)
    busy = others()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if kind_of(place) == "graph":
            graph = Graph.open(place)
        else:
            graph = cocite.ingest(place, folder / "graph")
        split(graph, folder / "blocks", asked.blocks)
        with Cluster.connect(f"local:{asked.nodes}") as cluster:
            hall = Hall(cluster)
            blocked = BlockedGraph.open(folder / "blocks", crew=hall)
            found: dict[str, Any] = {
                **run_today(),
                "plan": {"nodes": asked.nodes, "samples": asked.samples},
                "graph": {"nodes": graph.nodes, "edges": graph.edges, "blocks": blocked.blocks},
                "indexes": indexes(graph, blocked, hall, folder, asked.samples),
                "ranks": ranks(graph, blocked, hall),
            }
    found["others"] = max(busy, others())
    print(json.dumps(found, indent=1))
    keep_quiet("runs", "blocks", found, asked)
    if not (found["ranks"]["equal"] and all(each["equal"] for each in found["indexes"].values())):
        raise SystemExit("bytes are not those of one machine")


if __name__ == "__main__":
    main()
