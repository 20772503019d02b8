"""What a cold question reads: an index of which nothing is in the system's cache.

    python -m benchmarks.cold INDEX... [--questions N] [--batch]

The files of the index are dropped from the cache, the index is opened, one question is asked
(``related``), and what came of the files into the cache is counted: for N random nodes, each from
cold, beside the same with pages that bring those around them along, as mapped files do unless told
otherwise. Kernels are compiled before. How much comes along is up to the device
(``/sys/block/*/queue/read_ahead_kb``); seconds are those of the disk.

``--batch`` writes ``related-all`` instead, of a twentieth of the nodes, by ids, on one thread: from
cold, then once more with everything in the cache.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import mmap
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

import cocite
from cocite.resources import format_size
from cocite.search import Index
from cocite.search.batch.run import Batch
from cocite.storage import Access

PAGE = mmap.PAGESIZE


def drop(folder: str | os.PathLike[str]) -> None:
    """Ask the system to drop the files of a folder from its cache; nobody may have them mapped."""
    for entry in os.scandir(folder):
        descriptor = os.open(entry.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # pages that are not written yet would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached(folder: str | os.PathLike[str]) -> int:
    """How many pages of the files of a folder are in the system's cache."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    pages = 0
    for entry in os.scandir(folder):
        size = entry.stat().st_size
        if size == 0:
            continue
        with open(entry.path, "rb") as file, mmap.mmap(file.fileno(), size, prot=1) as view:
            data, there = np.frombuffer(view, np.uint8), np.zeros(-(-size // PAGE), np.uint8)
            if libc.mincore(data.ctypes.data, size, there.ctypes.data):
                raise OSError(ctypes.get_errno(), f"mincore: {entry.path}")
            pages += int((there & 1).sum())
            del data
    return pages


def pages(folder: str | os.PathLike[str]) -> int:
    """How many pages the files of a folder have."""
    return sum(-(-entry.stat().st_size // PAGE) for entry in os.scandir(folder))


def ask(index: Index, node: int) -> None:
    """One question."""
    index.related(index.nodes.name(node))


def one(path: str, node: int, access: Access | None) -> tuple[int, float]:
    """Pages that came into the cache for one question, and its seconds."""
    gc.collect()  # what was mapped is not any more
    drop(path)
    before, begin = cached(path), time.perf_counter()
    index = cocite.open(path)
    if access is not None:
        index.stored.store.advise(access)
    ask(index, node)
    seconds = time.perf_counter() - begin
    return cached(path) - before, seconds


def questions(path: str, count: int) -> None:
    """Two rows of the table."""
    index = cocite.open(path)
    chosen = np.random.default_rng(0).integers(0, len(index.nodes), count).tolist()
    for node in chosen:  # compiles, and brings what Python reads
        ask(index, node)
    begin = time.perf_counter()
    for node in chosen:
        ask(index, node)
    warm = (time.perf_counter() - begin) / count
    what = index.measure, index.stored.parts[0].layout
    del index
    for access, how in ((None, "as opened"), (Access.AROUND, "with those around")):
        found = [one(path, node, access) for node in chosen]
        read = [PAGE * number for number, _ in found]
        cells = (
            *what,
            format_size(PAGE * pages(path)),
            how,
            format_size(statistics.median(read)),
            format_size(max(read)),
            f"{1e3 * statistics.median(seconds for _, seconds in found):.1f} ms",
            f"{1e3 * warm:.2f} ms",
        )
        print("| " + " | ".join(cells) + " |", flush=True)


def batch(path: str) -> None:
    """Seconds of a batch, cold and warm."""
    for access in (Access.SCATTERED, None, Access.AROUND, Access.THROUGH):
        kind = Batch if access is None else type("Told", (Batch,), {"_access": access})
        times = []
        for cold in (True, False):
            gc.collect()
            if cold:
                drop(path)
            index = cocite.open(path)
            nodes = index.nodes.names(np.arange(0, len(index.nodes), 20, dtype=np.uint32))
            with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
                begin = time.perf_counter()
                output = Path(folder, "out.parquet")
                with kind(index, output, 10, nodes=nodes, ids=True, threads=1) as work:
                    work.run()
                times.append(time.perf_counter() - begin)
            del index, work
        how = "as it chooses" if access is None else access.name.lower()
        print(f"{path}: {how}: cold {times[0]:.2f} s, warm {times[1]:.2f} s", flush=True)


def main() -> None:
    """A table, or the times of batches."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cold", description=__doc__)
    parser.add_argument("indexes", nargs="+", metavar="INDEX")
    parser.add_argument("--questions", type=int, default=10, metavar="N")
    parser.add_argument("--batch", action="store_true")
    chosen = parser.parse_args()
    if not chosen.batch:
        print("| measure | layout | index | pages come | read, median | most | cold | warm |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for path in chosen.indexes:
        if chosen.batch:
            batch(path)
        else:
            questions(path, chosen.questions)


if __name__ == "__main__":
    main()
