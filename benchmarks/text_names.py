"""Ingesting links between URLs, compared with the same links between integers.

    python -m benchmarks.text_names [--nodes 1M] [--links 15M] [--memory 4GB] [--runs 3]

Writes a generated web as text twice: two URLs per line, and two integers per line. Both are
ingested alternately, in their own processes. Prints medians of processor and wall seconds, without
Python's start and imports, and links per second. The graphs have the same number of links.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import cocite
from benchmarks.block import ROOT
from benchmarks.papers import number
from benchmarks.peak import peak
from benchmarks.peers.worker import timed
from cocite import Graph
from cocite.cli.output import table_text
from cocite.resources import format_size, parse_size

_PIECE = 1 << 20


def _write(graph: Graph, names: Path, numbers: Path) -> None:
    called = list(map(str, graph.names.names(np.arange(graph.nodes, dtype=np.uint32))))
    targets = np.repeat(np.arange(graph.nodes), np.diff(graph.in_offsets).astype(np.int64))
    with names.open("w") as texts, numbers.open("w") as ids:
        for low in range(0, graph.edges, _PIECE):
            ends = (
                graph.in_sources[low : low + _PIECE].tolist(),
                targets[low : low + _PIECE].tolist(),
            )
            for source, target in zip(*ends, strict=True):
                texts.write(f"{called[source]}\t{called[target]}\n")
                ids.write(f"{source}\t{target}\n")


def _ingested(file: Path, memory: int) -> dict[str, float]:
    """In this process: what it took, and the links of the graph."""
    with tempfile.TemporaryDirectory(prefix="cocite-bench-", dir=file.parent) as folder:
        few = Path(folder, "few.tsv")
        with file.open() as lines:
            few.write_text("".join(line for line, _ in zip(lines, range(1000), strict=False)))
        cocite.ingest(few, Path(folder, "few"))
        spent, graph = timed(lambda: cocite.ingest(file, Path(folder, "graph"), memory=memory))
        return {
            "processor": spent[0],
            "clock": spent[1],
            "links": graph.edges,
            "peak": peak(),
        }


def main() -> None:
    """Write the texts, ingest them alternately, and print the results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.text_names",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=number, default=1_000_000)
    parser.add_argument("--links", type=number, default=15_000_000)
    parser.add_argument("--memory", type=parse_size, default="4GB")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ingest", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ingest:
        print(json.dumps(_ingested(given.ingest, given.memory)))
        return
    rows = []
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        web = cocite.generate_web(Path(folder, "web"), nodes=given.nodes, links=given.links, seed=1)
        files = {"URLs": Path(folder, "urls.tsv"), "integers": Path(folder, "numbers.tsv")}
        _write(web, *files.values())
        command = [sys.executable, "-m", "benchmarks.text_names", "--memory", str(given.memory)]
        found: dict[str, list[dict[str, float]]] = {name: [] for name in files}
        for _ in range(given.runs):
            for name, file in files.items():
                done = subprocess.run(
                    [*command, "--ingest", str(file)],
                    cwd=ROOT,
                    check=True,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                found[name].append(json.loads(done.stdout.splitlines()[-1]))
        for name, file in files.items():
            links = found[name][0]["links"]
            processor, clock, most = (
                statistics.median(each[key] for each in found[name])
                for key in ("processor", "clock", "peak")
            )
            rows.append(
                (
                    name,
                    format_size(file.stat().st_size),
                    f"{links:,.0f}",
                    f"{processor:.2f}",
                    f"{clock:.2f}",
                    f"{links / processor / 1e6:.2f}",
                    f"{links / clock / 1e6:.2f}",
                    format_size(int(most)),
                )
            )
    head = ("names", "text", "links", "processor s", "clock s", "M links/s", "by the clock", "peak")
    print(table_text(head, rows))


if __name__ == "__main__":
    main()
