"""Cost of thousands of small files compared with one file of the same rows.

    python -m benchmarks.small_files [--files 20000] [--rows 250] [--kinds tsv,parquet]
        [--memory 350MB]

Links connect pages of sites, named by URLs, with a tenth as many pages as links. Each format holds
the links once in small files and once in a single file. Every ingest runs in its own process, with
kernels compiled. Reports CPU time and peak memory; the resulting graphs must be equal.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

from benchmarks.peak import peak


def made(folder: Path, kinds: list[str], files: int, rows: int) -> None:
    """Write ``small/`` and ``whole/``."""
    (folder / "small").mkdir()
    (folder / "whole").mkdir()
    pages = max(1, files * rows // 10)
    with duckdb.connect() as database:
        database.execute("SET preserve_insertion_order = true")
        for place, kind in enumerate(kinds):
            few = files // len(kinds) * rows
            name = "'https://www.site' || {0} % 997 || '.example.org/page/' || {0}"
            ends = ", ".join(
                name.format(f"(hash(i, {side}, {place}) % {pages})") + f" AS {title}"
                for side, title in enumerate(("source", "target"))
            )
            database.execute(
                f"CREATE OR REPLACE TABLE links AS SELECT {ends} FROM range({few}) t(i)"
            )
            ending = "(FORMAT parquet)" if kind == "parquet" else "(DELIMITER '\t', HEADER)"
            database.execute(f"COPY links TO '{folder}/whole/links.{kind}' {ending}")
            for file in range(few // rows):
                low, high = file * rows, (file + 1) * rows
                part = f"SELECT * FROM links WHERE rowid >= {low} AND rowid < {high}"
                target = folder / "small" / f"{file:05}.{kind}"
                if kind == "parquet":
                    database.execute(f"COPY ({part}) TO '{target}' {ending}")
                else:
                    lines = ["\t".join(row) + "\n" for row in database.execute(part).fetchall()]
                    target.write_text("source\ttarget\n" + "".join(lines), "utf-8")


def ingested(pattern: str, output: str, memory: str) -> None:
    """Ingest, and print what it took; for a process of its own."""
    import cocite

    begin, start = time.process_time(), time.perf_counter()
    graph = cocite.ingest(pattern, output, memory=memory, threads=2)
    found = {
        "seconds": time.process_time() - begin,
        "wall": time.perf_counter() - start,
        "megabytes": peak() / 2**20,
        "digest": graph.digest,
        "edges": graph.edges,
    }
    print(json.dumps(found))


def of_process(pattern: Path, output: Path, memory: str) -> dict[str, Any]:
    """What :func:`ingested` prints."""
    command = [sys.executable, "-m", "benchmarks.small_files", "--ingest", str(pattern)]
    done = subprocess.run(
        [*command, str(output), memory],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a line each, and how often the one takes the other's time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=250)
    parser.add_argument("--kinds", default="tsv,parquet")
    parser.add_argument("--memory", default="350MB")
    parser.add_argument("--ingest", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ingest:
        ingested(*options.ingest)
        return
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        made(folder, options.kinds.split(","), options.files, options.rows)
        found = {}
        for name in ("whole", "small"):
            run = of_process(folder / name / "*", folder / f"{name}.graph", options.memory)
            found[name] = run
            count = sum(1 for _ in (folder / name).iterdir())
            print(
                f"{count:,} files, {run['edges']:,} links: {run['seconds']:.1f} s of the "
                f"processor, {run['wall']:.1f} s in all, {run['megabytes']:.0f} MB",
                flush=True,
            )
        assert found["whole"]["digest"] == found["small"]["digest"]
        print(f"{found['small']['seconds'] / found['whole']['seconds']:.2f} times the time")


if __name__ == "__main__":
    main()
