"""The first commands of a new installation: how long they take, and how much of it is compiling.

    python -m benchmarks.first [--warm]

Every verb runs in a process of its own on ``examples/animals.tsv``, with compiled kernels kept in
an empty directory (``--warm``: again with what the first round left there). *wall* is the time of
the process, *compiling* that of kernels in it, *processor* what all of it took.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = (
    "import json, sys; from cocite.cli.main import main; "
    "from cocite.compiled.clock import compiling; assert main(sys.argv[1:]) == 0; "
    "print(json.dumps([compiling.kernels, compiling.seconds]), file=sys.stderr)"
)


def timed(arguments: list[str], folder: Path) -> tuple[float, float, int, float]:
    """(wall, processor, kernels, compiling) of one verb."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        cwd=folder,
        env=os.environ | {"COCITE_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    kernels, seconds = json.loads(done.stderr.splitlines()[-1])
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, processor, kernels, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--warm", action="store_true")
    rounds = 2 if parser.parse_args().warm else 1
    links = str(ROOT / "examples" / "animals.tsv")
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as scratch:
        for _ in range(rounds):
            print("verb            wall   processor   kernels   compiling")
            total = 0.0
            for verb in (
                ["ingest", links, "-o", "g", "--overwrite"],
                ["index", "g", "-o", "i", "--overwrite"],
                ["related", "i", "Zebra"],
                ["related-all", "i", "-o", "all.csv", "--overwrite"],
            ):
                wall, processor, kernels, seconds = timed(verb, Path(scratch))
                total += wall
                print(f"{verb[0]:12} {wall:5.1f} s     {processor:5.1f} s   {kernels:7}", end="")
                print(f"     {seconds:5.1f} s")
            print(f"{'in all':12} {total:5.1f} s")


if __name__ == "__main__":
    main()
