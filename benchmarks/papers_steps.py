"""Run one step of ``python -m benchmarks.papers`` in its own process and print one JSON object.

    python -m benchmarks.papers_steps STEP FOLDER '{"nodes": ..., "links": ..., ...}'

Reports processor and wall seconds without Python's start and imports; the peak of resident memory,
including mapped files; the memory of Python, its modules and compiled kernels alone (*base*); and
the results of the step.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import cocite
from benchmarks.peak import peak
from benchmarks.peers.worker import timed
from cocite import Graph, Index

SEED, K, COLD, WARM = 1, 20, 10, 300
RESERVE = 0.35
"""The share of the free disk that an index of samples may take: later steps need some, too."""
MINHASH = 8
"""Bytes a node, sample and step of min-hashes. Where they do not fit, 8 bits of each are taken."""
SCANNED, BESIDE = 4, 13
"""Bytes of scratch a node and sample while min-hashes are made: for each step, and beside that.
Where they do not fit, fewer steps are made."""
INDEXES = ("psimrank", "simrank", "xjaccard", "neighborhood", "fusion")
Found = dict[str, Any]
Chosen = dict[str, Any]


def bytes_of(folder: Path) -> int:
    """Of all files in it."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def trees(nodes: int, samples: int) -> int:
    """About how many bytes an index of trees takes: 8.5 a node and sample."""
    return round(8.5 * nodes * samples)


def free_samples(nodes: int, free: int, most: int = 100, least: int = 10) -> int:
    """How many samples the disk holds: ``most``, or fewer that fit; ``least`` in any case."""
    return max(least, min(most, int(RESERVE * free / trees(nodes, 1))))


def generate(folder: Path, chosen: Chosen) -> Found:
    spent, graph = timed(
        lambda: cocite.generate_web(
            folder / "web.graph",
            nodes=chosen["nodes"],
            links=chosen["links"],
            seed=SEED,
            names="integers",
            overwrite=True,
        )
    )
    facts = {"nodes": graph.nodes, "links": graph.edges}
    return facts | {"spent": spent, "bytes": bytes_of(folder / "web.graph")}


def rank(folder: Path, chosen: Chosen) -> Found:
    tolerance, damping = 1e-8 * 0.15, 0.85
    graph = Graph.open(folder / "web.graph")
    spent, ranks = timed(
        lambda: cocite.pagerank(
            graph, tolerance=tolerance, damping=damping, memory=chosen["memory"]
        )
    )
    found = ranks.convergence
    return {"spent": spent, "sweeps": found.sweeps, "error": found.residual / (1 - damping)}


def warm_up(step: str) -> None:
    """Compile, or load, what a step calls, on a graph of no size."""
    with TemporaryDirectory(prefix="cocite-bench-") as folder:
        graph = cocite.generate_web(
            Path(folder, "graph"), nodes=2000, links=20_000, names="integers"
        )
        if step == "rank":
            cocite.pagerank(graph)
        measure = "psimrank" if step == "related-all" else step.rsplit(maxsplit=1)[-1]
        if measure in INDEXES:
            index = cocite.build(graph, measure=measure)
            index.related(index.nodes.name(0))


def build(measure: str) -> Callable[[Path, Chosen], Found]:
    """The step that builds an index of a measure."""

    def step(folder: Path, chosen: Chosen) -> Found:
        settings: dict[str, Any] = {}
        if measure in ("psimrank", "simrank"):
            free = shutil.disk_usage(folder).free
            settings["samples"] = chosen["samples"] or free_samples(chosen["nodes"], free)
        elif measure == "xjaccard":
            settings["samples"] = 16
            room, step = 0.9 * shutil.disk_usage(folder).free, 16 * chosen["nodes"]
            length: int = chosen.get("rings") or chosen["length"]
            if "rings" in chosen:
                settings["bits"] = 8
            elif MINHASH * step * length > room:
                settings["bits"] = 8
                length = max(1, min(length, int((room / step - BESIDE) / (SCANNED + 1))))
            settings["length"] = length
        if measure in ("psimrank", "simrank"):
            settings["length"] = chosen["length"]
        output = folder / f"{measure}.index"
        spent, _ = timed(
            lambda: cocite.build(
                folder / "web.graph",
                output,
                measure=measure,
                memory=chosen["memory"],
                restart=True,
                overwrite=True,
                **settings,
            )
        )
        options = {key: settings[key] for key in ("samples", "length", "bits") if key in settings}
        return {"spent": spent, "bytes": bytes_of(output)} | options

    return step


def _names(index: Index, count: int) -> list[str]:
    ids = np.random.default_rng(2).integers(0, len(index.nodes), count).astype(np.uint32)
    return list(map(str, index.nodes.names(ids)))


def ask(measure: str) -> Callable[[Path, Chosen], Found]:
    """The step that asks an index: from a cold cache, then from a warm one."""

    def step(folder: Path, chosen: Chosen) -> Found:
        from benchmarks.cold import drop

        path = folder / f"{measure}.index"
        cold = []
        index = cocite.open(path, memory=chosen["memory"])
        names = _names(index, COLD + WARM)
        for name in names[:COLD]:
            del index
            drop(path)
            begin = time.perf_counter()
            index = cocite.open(path, memory=chosen["memory"])
            index.related(name, K)
            cold.append(1e3 * (time.perf_counter() - begin))
        spent, warm = [0.0, 0.0], []
        for name in names[COLD:]:
            index.related(name, K)  # what it reads is in the cache then
            each, _ = timed(lambda name=name: index.related(name, K))  # type: ignore[misc]
            spent = [a + b for a, b in zip(spent, each, strict=True)]
            warm.append(1e3 * each[1])
        return {
            "spent": spent,
            "cold_ms": [float(np.median(cold)), max(cold)],
            "warm_ms": [float(np.median(warm)), float(np.percentile(warm, 99))],
        }

    return step


def related_all(measure: str) -> Callable[[Path, Chosen], Found]:
    """Return the step that lists the related pages of a sample of the pages."""

    def step(folder: Path, chosen: Chosen) -> Found:
        index = cocite.open(folder / f"{measure}.index", memory=chosen["memory"])
        every = max(1, len(index.nodes) // chosen["asked"])
        ids = np.arange(0, len(index.nodes), every, dtype=np.uint32)[: chosen["asked"]]
        output = folder / "related.parquet"
        nodes = index.nodes.names(ids)
        spent, report = timed(
            lambda: index.related_all(output, K, nodes=nodes, ids=True, overwrite=True)
        )
        facts = {"nodes": report.nodes, "rows": report.rows, "bytes": report.bytes or 0}
        return {"spent": spent} | facts

    return step


def leave_out(folder: Path, chosen: Chosen) -> Found:
    """The later graph: without 1% of the pages, and the links to and from them."""
    graph = Graph.open(folder / "web.graph")
    some = np.random.default_rng(3).random(graph.nodes) < 0.01
    gone = graph.names.names(np.flatnonzero(some).astype(np.uint32))
    spent, later = timed(
        lambda: cocite.ingest(
            folder / "web.graph",
            folder / "later.graph",
            exclude_nodes=gone,
            memory=chosen["memory"],
            overwrite=True,
        )
    )
    facts = {"nodes": later.nodes, "links": later.edges}
    return facts | {"spent": spent, "bytes": bytes_of(folder / "later.graph")}


def refresh(folder: Path, chosen: Chosen) -> Found:
    spent, _ = timed(
        lambda: cocite.refresh(
            folder / "psimrank.index",
            folder / "later.graph",
            memory=chosen["memory"],
            restart=True,
            force=True,
        )
    )
    size = bytes_of(folder / "psimrank.index")
    return {"spent": spent, "bytes": size}


STEPS: dict[str, Callable[[Path, Chosen], Found]] = {
    "generate": generate,
    "rank": rank,
    "psimrank": build("psimrank"),
    "related psimrank": ask("psimrank"),
    "related-all": related_all("psimrank"),
    "leave out": leave_out,
    "refresh": refresh,
    "simrank": build("simrank"),
    "xjaccard": build("xjaccard"),
    "neighborhood": build("neighborhood"),
    "related neighborhood": ask("neighborhood"),
    "fusion": build("fusion"),
    "related fusion": ask("fusion"),
    "related-all fusion": related_all("fusion"),
}
"""In their order; each needs what those before it made."""


def main() -> None:
    """Run the step that the command line names."""
    name, folder, chosen = sys.argv[1:]
    warm_up(name)
    base = peak()
    found = STEPS[name](Path(folder), json.loads(chosen))
    print(json.dumps(found | {"peak": peak(), "base": base}))


if __name__ == "__main__":
    main()
