"""Measure the suite: ``python -m benchmarks [--only NAME] [--document] [--write]``."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from benchmarks.block import add_write, edit, run_today
from benchmarks.report import DOCUMENTS, RESULTS, figures, newest, table, with_figures
from cocite.resources import format_size

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("COCITE_DATA", ROOT.parent / "shared" / "data"))
SHELL_RUNS = 7


def step(*arguments: object) -> dict[str, Any]:
    """One step in its own process."""
    command = [sys.executable, "-m", "benchmarks.steps", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shell_seconds(index: Path) -> float:
    """Wall time of one ``cocite related``, from the shell, median of several; Python keeps its
    bytecode, as it does for people.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    import cocite

    node = cocite.open(index).nodes.name(0)
    command = [sys.executable, "-m", "cocite", "related", str(index), node]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    times = []
    for _ in range(SHELL_RUNS):
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def links_of(run: dict[str, Any], folder: Path) -> Path | None:
    """The file of links, made if it can be; None if the data is not there."""
    if run["name"] == "stdlib":
        sys.path.insert(0, str(ROOT / "examples"))
        from stdlib_demo import write_links

        write_links(Path(sysconfig.get_paths()["stdlib"]), folder / "imports.tsv")
        return folder / "imports.tsv"
    path = DATA / run["links"]
    return path if path.exists() else None


def measure(run: dict[str, Any], suite: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """All rows of one run."""
    links = links_of(run, folder)
    if links is None:
        print(f"{run['name']}: left out, {DATA / run['links']} is not there", file=sys.stderr)
        return []
    b, q = suite["build"], suite["query"]
    graph = folder / (run["name"] + ".graph")
    loaded = step("ingest", links, graph)
    rows = []
    for name in run["measures"]:
        index = folder / f"{run['name']}.{name}.index"
        print(f"{run['name']}, {name}", file=sys.stderr)
        row = {"name": run["name"], "measure": name} | loaded
        row |= step("build", graph, index, name, *(b[x] for x in b))
        row |= step("walk", graph, name, b["length"], b["seed"])
        row |= step("query", index, q["k"], q["queries"])
        row["shell_s"] = shell_seconds(index)
        rows.append(row)
    return rows


def main() -> None:
    """Measure, print, and write with ``--write``."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", help="the run of this name only")
    parser.add_argument(
        "--document", action="store_true", help="measure nothing: show the newest results"
    )
    add_write(
        parser,
        "keep the results under results/, or put the --document into its documents",
    )
    chosen = parser.parse_args()
    if chosen.document:
        print(figures(newest()))
        for path, brief in DOCUMENTS.items():
            edit(path, with_figures(path.read_text("utf-8"), newest(), brief), write=chosen.write)
        return
    suite = tomllib.loads((Path(__file__).parent / "suite.toml").read_text("utf-8"))
    results: dict[str, Any] = {
        **run_today(),
        "machine": f"{os.cpu_count()} shared cores, {memory()}, Python {platform.python_version()}",
        "build": suite["build"],
        "query": suite["query"],
        "rows": [],
    }
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        for run in suite["run"]:
            if chosen.only in (None, run["name"]):
                results["rows"] += measure(run, suite, Path(folder))
    print(table(results["rows"]))
    path = RESULTS / f"{results['date']}.json"
    edit(path, json.dumps(results, indent=1) + "\n", write=chosen.write)


def memory() -> str:
    """How much this machine has."""
    return format_size(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


if __name__ == "__main__":
    main()
