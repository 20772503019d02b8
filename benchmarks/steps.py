"""Run one benchmark step in its own process and print one JSON object.

python -m benchmarks.steps ingest LINKS GRAPH
python -m benchmarks.steps build GRAPH INDEX MEASURE SAMPLES LENGTH SEED THREADS
python -m benchmarks.steps walk GRAPH MEASURE LENGTH SEED
python -m benchmarks.steps query INDEX K QUERIES
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

import cocite
from benchmarks.peak import peak
from cocite import Graph
from cocite.engine.walk import Mover, Walker
from cocite.graph.links import in_links
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.io.ingest import ingest as ingest_links
from cocite.measures import find_measure
from cocite.resources import Resources

WALKED = 20
"""Samples that the walk step times."""


def ingest(links: str, output: str) -> dict[str, Any]:
    begin = time.perf_counter()
    graph = ingest_links(links, output)
    return {
        "nodes": graph.nodes,
        "edges": graph.edges,
        "ingest_s": time.perf_counter() - begin,
    }


def build(path: str, output: str, measure: str, *numbers: str) -> dict[str, Any]:
    samples, length, seed, threads = map(int, numbers)
    graph = Graph.open(path)
    takes = {setting.name for setting in find_measure(measure).build}
    given = {"samples": samples, "length": length, "seed": seed}
    settings = {name: value for name, value in given.items() if name in takes}
    sampled = "samples" in takes
    options = BuildOptions.checked(measure, settings=settings)
    with IndexBuild(graph, output, options, Resources.checked(threads)) as work:
        estimate = work.estimate()  # compiles
        report = work.run()
    return {
        "build_s": report.seconds,
        "estimated_s": estimate.seconds,
        "estimated_bytes": estimate.bytes,
        "live_steps": report.live_steps / (graph.nodes * samples) if sampled else None,
        "bytes": report.bytes,
        "bytes_node_sample": report.bytes / (graph.nodes * samples) if sampled else None,
    }


def walk(path: str, measure: str, length: str, seed: str) -> dict[str, Any]:
    """Return the median over samples of the nanoseconds that one live step takes on one thread,
    without writing; None for a measure that does not walk.
    """
    step = find_measure(measure).step
    if step is None:
        return {"ns_live_step": None}
    walker = Walker(Mover(in_links(Graph.open(path)), step, int(seed)), int(length))
    walker(0)
    found = []
    for sample in range(WALKED):
        begin = time.perf_counter()
        live = sum(walker(sample).live)
        found.append(1e9 * (time.perf_counter() - begin) / live)
    return {"ns_live_step": float(np.median(found))}


def query(path: str, k: str, queries: str) -> dict[str, Any]:
    """Milliseconds of ``related`` in process, names included, on random nodes."""
    index = cocite.open(path)
    ids = np.random.default_rng(0).integers(0, len(index.nodes), int(queries))
    names = index.nodes.names(ids)
    for name in names[:100]:
        index.related(name, k=int(k))
    times = []
    for name in names:
        begin = time.perf_counter()
        index.related(name, k=int(k))
        times.append(1e3 * (time.perf_counter() - begin))
    return {
        "related_ms_median": float(np.median(times)),
        "related_ms_p99": float(np.percentile(times, 99)),
    }


STEPS = {"ingest": ingest, "build": build, "walk": walk, "query": query}


def main() -> None:
    """Run the step that the command line names."""
    name, *arguments = sys.argv[1:]
    found = STEPS[name](*arguments)  # type: ignore[operator]
    print(json.dumps(found | {f"{name}_peak_bytes": peak()}))


if __name__ == "__main__":
    main()
