"""Cost of samples on graphs larger than memory, one at a time and in batches.

    python -m benchmarks.together GRAPH... [--samples N] [--blocks N] [--threads N]

Draws N samples of each measure with the graph in memory, and with one of ``--blocks`` parts of it
in memory: one sample at a time, each reading the links at every step, and in batches of 16 samples,
with one scan of the links per step. The first runs have all files in the system's cache. The others
drop released blocks from the cache, as if it had no space for the graph, so they are read from disk
again. ``read`` is what was read from disk. ``scratch`` is what samples wrote and read between their
steps, mostly in the cache. The bytes of all samples are compared.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from cocite import Graph
from cocite.cluster import in_order
from cocite.graph.blocks import Links
from cocite.graph.links import in_links
from cocite.index.layouts.batch_maker import SampleJob
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan
from cocite.index.layouts.reader import sampled_builder
from cocite.index.plan import BuildOptions
from cocite.resources import Resources, cores, format_size

MEASURES = ("simrank", "psimrank")
FILES = ("in_offsets", "in_sources")


def _counts() -> tuple[float, float, int, int]:
    """(seconds, of the processor, bytes from the disk, bytes written and read)."""
    with open("/proc/self/io", encoding="ascii") as file:
        io = {name: int(value) for name, value in (line.split(": ") for line in file)}
    used = resource.getrusage(resource.RUSAGE_SELF)
    busy = used.ru_utime + used.ru_stime
    return time.perf_counter(), busy, io["read_bytes"], io["rchar"] + io["wchar"]


@contextmanager
def _without_cache(graph: Graph) -> Iterator[None]:
    """What is given back of the links leaves the system's cache."""
    files = [os.open(graph.path / name, os.O_RDONLY) for name in FILES]
    real = Links.evict

    def forget(links: Links) -> None:
        real(links)
        for file in files:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    try:
        with mock.patch.object(Links, "forget", forget):
            yield
    finally:
        for file in files:
            os.close(file)


def built(graph: Graph, part: PartPlan, fit: MemoryPlan, numbers: range) -> tuple[list[int], str]:
    """Digests of all samples, and what they cost."""
    links = in_links(graph)
    links.evict()
    with tempfile.TemporaryDirectory(dir=graph.path.parent) as folder:
        builder = sampled_builder(part.layout)
        makers = builder.makers(links, SampleJob(part, numbers, Path(folder)), fit)
        before = _counts()
        digests = [blob.digest for blob in in_order(makers, numbers)]
        clock, busy, read, moved = (b - a for a, b in zip(before, _counts(), strict=True))
        moved = 0 if fit.together == 1 else moved
    cells = f"{clock:.1f} | {busy:.1f} | {format_size(read)} | {format_size(moved)}"
    return digests, cells


def main() -> None:
    """A table for each graph."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.together", description=__doc__)
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--threads", type=int, default=cores())
    chosen = parser.parse_args()
    for path in chosen.graphs:
        graph = Graph.open(path)
        links, numbers = in_links(graph), range(chosen.samples)
        print(f"{path}: {graph.nodes:,} nodes, {format_size(links.nbytes)} of links\n")
        print("| measure | form | memory | seconds | processor | read | scratch |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for measure in MEASURES:
            part = BuildOptions.checked(measure, settings={"samples": chosen.samples}).parts[0]
            builder = sampled_builder(part.layout)
            whole = builder.fitted(links, part, Resources.checked(chosen.threads))
            group = builder.fitted(
                links, part, Resources.checked(chosen.threads, blocks=chosen.blocks)
            )
            alone = builder.fitted(links, part, Resources.checked(1, blocks=chosen.blocks))
            alone = replace(alone, together=1, scratch_bytes=0)
            for fit in (whole, alone, group):
                built(graph, part, fit, range(2))  # compiles
            expected: list[int] = []
            for form, fit in (("in memory", whole), ("alone", alone), ("together", group)):
                digests, cells = built(graph, part, fit, numbers)
                assert digests == (expected := expected or digests)
                memory = format_size(fit.memory)
                print(f"| {measure} | {form}, cached | {memory} | {cells} |", flush=True)
            for form, fit in (("alone", alone), ("together", group)):
                with _without_cache(graph):
                    digests, cells = built(graph, part, fit, numbers)
                assert digests == expected
                print(f"| {measure} | {form}, from disk | {format_size(fit.memory)} | {cells} |")
        print()


if __name__ == "__main__":
    main()
