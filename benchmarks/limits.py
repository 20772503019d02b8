"""Times of hot kernels, compared with the limits that memory sets.

    python -m benchmarks.limits [--graph GRAPH]... [--only KERNEL]... [--write]

The same run measures, on one thread, in CPU time, the best of several: the bandwidth of
sequential reads, and the time of a random access in arrays of the sizes that kernels use. For each
kernel, it counts

    streamed   bytes read and written in sequence, each once
    missed     random accesses that miss the second-level cache: if addresses are known (PageRank,
               the scan), misses in a simulated 16-way LRU cache of that size; otherwise all

The limit is streamed / bandwidth + the sum of missed * time of an access. It excludes arithmetic
and dependencies. *share* is limit / time: 1 is the limit, and values below 0.5 come with a reason.
Accesses counted one by one may hit the cache if ids have locality, so the share can exceed 1. GRAPH
is a name of ``benchmarks/peers/graphs.py`` or a stored graph.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.bandwidth import _read
from benchmarks.block import add_write
from benchmarks.kept import ResultStore, watched
from benchmarks.limits_table import KERNELS, figures
from benchmarks.peers.graphs import prepare, there
from benchmarks.performance import write
from benchmarks.studies.checks import labels_in
from cocite import Graph
from cocite.constants import Step
from cocite.engine.plan import plan_scan
from cocite.engine.scan import Fold, Scan
from cocite.engine.walk import Mover, Walker
from cocite.graph.links import in_links
from cocite.ranking import plan_ranks
from cocite.ranking.blocks import Resident
from cocite.ranking.solver import System
from cocite.resources import Resources, budget

RESULTS = ResultStore("limits")
GRAPHS = ("web-100k", "cnr-2000", "web-1M")
LINE, WAYS, WORDS, DRAWN = 64, 16, 1 << 25, 1 << 22
LANES, SAMPLES, LENGTH, WALKED, ASKED, OTHERS = 16, 20, 10, 5, 200, 10_000
Found = dict[str, Any]


@numba.njit(nogil=True)
def _sum_at(values: Any, places: Any) -> Any:
    total = np.uint64(0)
    for i in range(places.size):
        total += values[places[i]]
    return total


@numba.njit(nogil=True)
def _misses(lines: Any, tags: Any, ages: Any) -> Any:
    """How many of ``lines`` (uint32) are not in a cache: ``tags`` and ``ages`` uint32[sets, ways],
    all of them the largest number, and 0, at first.
    """
    missed, sets, ways = 0, tags.shape[0], tags.shape[1]
    for i in range(lines.size):
        line, at, oldest, found = lines[i], lines[i] % np.uint32(sets), 0, False
        for way in range(ways):
            if tags[at, way] == line:
                ages[at, way] = i + 1
                found = True
                break
            if ages[at, way] < ages[at, oldest]:
                oldest = way
        if not found:
            missed += 1
            tags[at, oldest] = line
            ages[at, oldest] = i + 1
    return missed


def best(work: Callable[[], object], runs: int = 5) -> float:
    """The least seconds of the processor, after one that does not count."""
    work()
    times = []
    for _ in range(runs):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


def cache_bytes() -> int:
    """The second-level cache of a core; 1 MiB where the system does not say."""
    try:
        text = Path("/sys/devices/system/cpu/cpu0/cache/index2/size").read_text("ascii")
    except OSError:
        return 1 << 20
    found = re.match(r"(\d+)([KM]?)", text)
    assert found is not None
    return int(found[1]) << {"": 0, "K": 10, "M": 20}[found[2]]


def missed(places: NDArray[Any], width: int) -> int:
    """How many accesses to ``places`` of an array of ``width`` bytes an entry miss."""
    lines = (places.astype(np.uint64) * np.uint64(width) // np.uint64(LINE)).astype(np.uint32)
    sets = max(1, cache_bytes() // LINE // WAYS)
    tags = np.full((sets, WAYS), 0xFFFFFFFF, np.uint32)
    return int(_misses(lines, tags, np.zeros((sets, WAYS), np.uint32)))


@cache
def bandwidth() -> float:
    """Bytes a second, read in order."""
    words = np.ones(WORDS, np.uint64)
    return 8 * WORDS / best(lambda: _read(words))


@cache
def access(size: int) -> float:
    """Seconds of an access to anywhere in an array of ``size`` bytes, others under way."""
    values = np.ones(max(1, size // 8), np.uint64)
    places = np.random.default_rng(0).integers(0, values.size, DRAWN).astype(np.uint32)
    seconds = best(lambda: _sum_at(values, places)) - 4 * DRAWN / bandwidth()
    return max(1e-10, seconds / DRAWN)


def row(seconds: float, streamed: float, accesses: list[tuple[float, int]]) -> Found:
    """``accesses``: how many miss, in an array of how many bytes."""
    limit = streamed / bandwidth() + sum(count * access(size) for count, size in accesses)
    return {
        "seconds": seconds,
        "streamed": streamed,
        "missed": sum(count for count, _ in accesses),
        "limit": limit,
    }


def sweep(graph: Graph) -> Found:
    """A sweep of PageRank; ``bandwidth.py`` lists the streamed bytes."""
    system = System(graph, 0.85, room=plan_ranks(graph, budget(None)))
    assert isinstance(system.links, Resident), "this graph does not fit in memory"
    sweeps = system.sweeps(np.full(graph.nodes, 1 / graph.nodes), None)
    _, ends, nodes, _ = system.links.core
    core, links = system.lumped.core, int(ends[-1])
    streamed = (8 + 32 + 16 + 16) * core + 4 * links
    return row(best(lambda: next(sweeps), 10), streamed, [(missed(nodes[:links], 8), 8 * core)])


def scan(graph: Graph) -> Found:
    """A scan by minimum, rows of 16 lanes of 32 bits: a line of x a link."""
    links = in_links(graph)
    work = Scan(links, plan_scan(links, Resources.checked(1), lanes=LANES, dtype=np.uint32))
    x, y = work.vector(), work.vector()
    x[:] = np.random.default_rng(0).integers(0, 2**32, x.shape, np.uint32)
    streamed = 8 * graph.nodes + 4 * graph.edges + 3 * 4 * LANES * graph.nodes
    at = missed(graph.in_sources, 4 * LANES)
    seconds = best(lambda: work(x, Fold.MIN, start=x, out=y))
    return row(seconds, streamed, [(at, 4 * LANES * graph.nodes)])


def walk(step: Step) -> Callable[[Graph], Found]:
    """Steps of walks until they meet: where a row begins, an in-link, who else is there."""

    def measured(graph: Graph) -> Found:
        walker = Walker(Mover(in_links(graph), step, 1), LENGTH)
        live = [sum(walker(sample).live) for sample in range(WALKED)]
        seconds = best(lambda: [walker(sample) for sample in range(WALKED)], 3)
        steps = sum(live)
        n, links = graph.nodes, graph.edges
        streamed = 16 * steps + WALKED * 17 * n
        return row(seconds, streamed, [(steps, 8 * n), (steps, 4 * links), (steps, 4 * n)])

    return measured


def _index(graph: Graph) -> Any:
    return cocite.build(graph, measure="psimrank", samples=SAMPLES, length=LENGTH)


def gather(graph: Graph) -> Found:
    """``related``: a place and the head of a tree a sample, then members and labels in order."""
    index = _index(graph)
    (reader,) = index.scorer.readers
    squares = 0.0
    for labels in labels_in(reader):
        starts = np.append(np.flatnonzero(labels == 0), labels.size).astype(np.float64)
        squares += float((np.diff(starts) ** 2).sum())
    members = squares / graph.nodes * ASKED
    ids = np.random.default_rng(3).integers(0, graph.nodes, ASKED).astype(np.uint32)
    names = index.nodes.names(ids)
    seconds = best(lambda: [index.related(name, 20) for name in names], 3)
    size = index.stored.store.nbytes
    found = row(seconds, 5 * members, [(2 * SAMPLES * ASKED, size)])
    return found | {"members": members / ASKED}


def pairs(graph: Graph) -> Found:
    """``similarity`` of one page with many: a place and a label between a pair and sample."""
    index = _index(graph)
    (reader,) = index.scorer.readers
    rng = np.random.default_rng(4)
    others = rng.integers(0, graph.nodes, OTHERS).astype(np.uint32)
    seconds = best(lambda: reader.times_with(1, others))
    count = SAMPLES * OTHERS
    return row(seconds, count, [(2 * count, index.stored.store.nbytes)])


def text(graph: Graph, folder: Path) -> Found:
    """From a text of integers to a stored graph: the text, and 4 bytes an end written and read
    twice, dealt out by source and by target; then names and checksums.
    """
    file = prepare(str(graph.path), folder).file
    output = folder / "read.graph"
    seconds = best(lambda: cocite.ingest(file, output, threads=1, overwrite=True), 3)
    links = graph.edges
    streamed = file.stat().st_size + 4 * 8 * links
    return row(seconds, streamed, [(2 * links, 4 * links)])


WORK: dict[str, Callable[[Graph], Found]] = {
    "sweep": sweep,
    "scan": scan,
    "walk simrank": walk(Step.UNIFORM),
    "walk psimrank": walk(Step.ARGMIN),
    "related": gather,
    "similarity": pairs,
}


def stored(name: str, folder: Path) -> Graph:
    """A graph by its name."""
    if Path(name).is_dir():
        return Graph.open(name)
    return cocite.ingest(prepare(name, folder).file, folder / "limits.graph", overwrite=True)


def main() -> None:
    """Measure, keep, tell."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.limits",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--graph", action="append", metavar="GRAPH")
    parser.add_argument("--only", action="append", choices=list(KERNELS), metavar="KERNEL")
    add_write(parser, "keep the results under results/ and put them into docs/performance.md")
    given = parser.parse_args()
    parts = {}
    for name in given.graph or GRAPHS:
        if not there(name):
            print(f"{name}: left out, its data is not there", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place:
            folder = Path(place)
            graph = stored(name, folder)
            label = Path(name).name.removesuffix(".graph")
            for chosen in given.only or KERNELS:
                with watched() as watch:
                    found = text(graph, folder) if chosen == "text" else WORK[chosen](graph)
                found |= {"kernel": chosen, "graph": label, "links": graph.edges}
                found |= {"nodes": graph.nodes, "bandwidth": bandwidth()}
                found |= {"access": access(320_000_000), "cache": cache_bytes()}
                key = f"{chosen} {label}"
                parts[key] = {"date": "", "machine": "", "others": watch.others, "found": found}
                print(f"{key}: {found['limit'] / found['seconds']:.2f} of the limit", flush=True)
                if given.write:
                    RESULTS.keep(key, found, watch.others)
    print(figures(RESULTS.newest() if given.write else parts))
    if given.write:
        write()


if __name__ == "__main__":
    main()
