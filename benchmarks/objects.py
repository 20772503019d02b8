"""Cost of ingesting links from memory, compared with the same links in a file.

    python -m benchmarks.objects [--links 3000000] [--names 300000] [--runs 1]

Links are random, some pages more popular than others, with text names and with integers. Each
object is ingested in its own process. Reports CPU time of all threads, without creating the
object and loading compiled kernels, and peak memory, including the object. Best of ``--runs``.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocite
from benchmarks.peak import peak
from cocite.resources import format_size

Ids = NDArray[np.int64]


def drawn(links: int, names: int) -> Ids:
    """int64[links, 2]: half of all ends are among a hundredth of the pages."""
    rng = np.random.default_rng(1)
    ends = rng.integers(0, names, (links, 2))
    few = rng.random((links, 2)) < 0.5
    return np.where(few, ends // 100, ends)


def named(ids: Ids) -> list[NDArray[np.object_]]:
    """Sources and targets as text, object[links] each."""
    every = np.array(
        [f"http://www.example.org/page/{i}" for i in range(int(ids.max()) + 1)], object
    )
    return [every[ids[:, i]] for i in (0, 1)]


def numpy_numbers(ids: Ids, file: Path) -> Any:
    return ids


def pandas_text(ids: Ids, file: Path) -> Any:
    import pandas

    source, target = named(ids)
    return pandas.DataFrame({"source": source, "target": target})


def arrow_text(ids: Ids, file: Path) -> Any:
    import pyarrow

    source, target = named(ids)
    return pyarrow.table({"source": source, "target": target})


def polars_text(ids: Ids, file: Path) -> Any:
    import polars

    source, target = named(ids)
    return polars.DataFrame({"source": source.tolist(), "target": target.tolist()})


def pairs_text(ids: Ids, file: Path) -> Any:
    return list(zip(*named(ids), strict=True))


def tsv_numbers(ids: Ids, file: Path) -> Any:
    np.savetxt(file, ids, "%d", "\t")
    return file


def tsv_text(ids: Ids, file: Path) -> Any:
    with file.open("w") as out:
        out.writelines(f"{a}\t{b}\n" for a, b in zip(*named(ids), strict=True))
    return file


OBJECTS: dict[str, tuple[str, Callable[[Ids, Path], Any]]] = {
    "numpy": ("NumPy array of whole numbers", numpy_numbers),
    "tsv-numbers": ("the same as TSV", tsv_numbers),
    "pandas": ("pandas, text", pandas_text),
    "polars": ("polars, text", polars_text),
    "arrow": ("Arrow table, text", arrow_text),
    "pairs": ("list of pairs of text", pairs_text),
    "tsv": ("the same as TSV", tsv_text),
}
"""What is measured: what it is called, and what makes it."""


def measured(key: str, links: int, names: int, folder: Path) -> dict[str, float]:
    """Ingest one object, in this process."""
    thing = OBJECTS[key][1](drawn(links, names), folder / "links.tsv")
    small = OBJECTS[key][1](drawn(100, 50), folder / "small.tsv")
    cocite.ingest(small, folder / "small.graph")
    began, clock = time.process_time(), time.perf_counter()
    graph = cocite.ingest(thing, folder / "links.graph")
    took, waited = time.process_time() - began, time.perf_counter() - clock
    return {"seconds": took, "waited": waited, "peak": peak(), "nodes": graph.nodes}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.objects")
    parser.add_argument("--links", type=int, default=3_000_000)
    parser.add_argument("--names", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", choices=OBJECTS)
    parser.add_argument("--measure", choices=OBJECTS, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measured(asked.measure, asked.links, asked.names, Path(folder))))
        return
    print(f"{asked.links:,} links, {asked.names:,} names, Python {platform.python_version()}\n")
    print("| object | CPU time | peak of memory |\n| --- | --- | --- |")
    for key in [asked.only] if asked.only else OBJECTS:
        command = [sys.executable, "-m", "benchmarks.objects", "--measure", key]
        command += ["--links", str(asked.links), "--names", str(asked.names)]
        runs = [
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            for _ in range(asked.runs)
        ]
        best = min(runs, key=lambda run: run["seconds"])
        told = f"{best['seconds']:.1f} s | {format_size(int(best['peak']))}"
        print(f"| {OBJECTS[key][0]} | {told} |", flush=True)


if __name__ == "__main__":
    main()
