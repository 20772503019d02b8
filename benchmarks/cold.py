"""Reads of a cold query, with nothing of the index in the system's cache.

    python -m benchmarks.cold INDEX... [--questions N] [--batch]

For N random nodes, drops the index's files from the cache, opens the index, runs one query
(``related``, and ``similarity`` to the next of the nodes), and counts the pages and runs of pages
that were read into the cache. Compares this with default read-ahead, which also reads surrounding
pages. Opening the index, which reads three files, is included. Kernels are compiled first.
Read-ahead depends on the device (``/sys/block/*/queue/read_ahead_kb``), and seconds on the disk.

``--batch`` runs ``related-all`` of a twentieth of the nodes instead, by ids, on one thread, with a
cold and with a warm cache.
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
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import cocite
from cocite.resources import format_size
from cocite.search import Index
from cocite.search.batch.run import Batch
from cocite.storage import Access

PAGE = mmap.PAGESIZE


def drop(folder: str | os.PathLike[str]) -> None:
    """Drop the files of a folder from the system's cache. No process may have them mapped."""
    for entry in os.scandir(folder):
        descriptor = os.open(entry.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # pages that are not written yet would stay
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def _resident(folder: str | os.PathLike[str], prefix: str = "") -> Iterator[NDArray[np.int8]]:
    """Yield for each file of a folder whose name begins so, by page, 1 if the cache has it."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mincore.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    for entry in os.scandir(folder):
        size = entry.stat().st_size
        if size == 0 or not entry.name.startswith(prefix):
            continue
        with open(entry.path, "rb") as file, mmap.mmap(file.fileno(), size, prot=1) as view:
            data, there = np.frombuffer(view, np.uint8), np.zeros(-(-size // PAGE), np.uint8)
            if libc.mincore(data.ctypes.data, size, there.ctypes.data):
                raise OSError(ctypes.get_errno(), f"mincore: {entry.path}")
            del data
        yield (there & 1).astype(np.int8)


def cached(folder: str | os.PathLike[str]) -> int:
    """How many pages of the files of a folder are in the system's cache."""
    return sum(int(pages.sum()) for pages in _resident(folder))


def runs(folder: str | os.PathLike[str], prefix: str = "") -> int:
    """Return the number of runs of these pages, each one access of a disk, of the files whose names
    begin so.
    """
    return sum(int((np.diff(p, prepend=0) == 1).sum()) for p in _resident(folder, prefix))


def pages(folder: str | os.PathLike[str]) -> int:
    """How many pages the files of a folder have."""
    return sum(-(-entry.stat().st_size // PAGE) for entry in os.scandir(folder))


def related(index: Index, node: int, other: int) -> None:
    """One question."""
    index.related(index.nodes.name(node))


def similarity(index: Index, node: int, other: int) -> None:
    """Another one."""
    index.similarity(index.nodes.name(node), index.nodes.name(other))


Ask = Callable[[Index, int, int], None]


def one(path: str, ask: Ask, nodes: tuple[int, int], access: Access | None) -> tuple[float, ...]:
    """Pages that came into the cache for one question, runs of them, and its seconds."""
    gc.collect()  # what was mapped is not any more
    drop(path)
    before, begin = np.array([cached(path), runs(path)]), time.perf_counter()
    index = cocite.open(path)
    if access is not None:
        index.stored.store.advise(access)
    ask(index, *nodes)
    seconds = time.perf_counter() - begin
    return *(np.array([cached(path), runs(path)]) - before).tolist(), seconds


def questions(path: str, ask: Ask, count: int) -> None:
    """Two rows of the table."""
    index = cocite.open(path)
    chosen = np.random.default_rng(0).integers(0, len(index.nodes), count).tolist()
    asked = list(zip(chosen, [*chosen[1:], chosen[0]], strict=True))
    for nodes in asked:  # compiles, and brings what Python reads
        ask(index, *nodes)
    begin = time.perf_counter()
    for nodes in asked:
        ask(index, *nodes)
    warm = (time.perf_counter() - begin) / count
    what = index.measure, index.stored.parts[0].layout, ask.__name__
    del index
    for access, how in ((None, "as opened"), (Access.AROUND, "with those around")):
        pages_read, runs_read, seconds = zip(
            *(one(path, ask, nodes, access) for nodes in asked), strict=True
        )
        read = [PAGE * int(number) for number in pages_read]
        cells = (
            *what,
            format_size(PAGE * pages(path)),
            how,
            format_size(statistics.median(read)),
            format_size(max(read)),
            f"{statistics.median(runs_read):g}",
            f"{max(runs_read):g}",
            f"{1e3 * statistics.median(seconds):.1f} ms",
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
        print("| measure | layout | question | index | pages come | read, median | most", end=" | ")
        print("runs, median | most | cold | warm |")
        print("|" + " --- |" * 11)
    for path in chosen.indexes:
        if chosen.batch:
            batch(path)
        else:
            for ask in related, similarity:
                questions(path, ask, chosen.questions)


if __name__ == "__main__":
    main()
