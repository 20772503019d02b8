"""Time of a single query from the shell, from process start to end.

    python -m benchmarks.shell INDEX [--rounds N]

Each command runs in its own process, alternating with processes that only import NumPy, click, LLVM
or Numba, so that other load affects all alike. Prints processor and wall time, median and least,
and CPU time relative to ``import numba``. The first round, which may compile kernels and
reads files into memory, is not counted. Python must be able to write bytecode
(``PYTHONDONTWRITEBYTECODE`` is not set).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

import cocite

Times = tuple[float, float]


def timed(command: list[str]) -> Times:
    """(processor, wall) of a process, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def commands(index: str) -> dict[str, list[str]]:
    """What is timed."""
    opened = cocite.open(index)
    first = str(opened.nodes.name(5))
    second = str(opened.related(first, k=1)[0].node)
    verb = ["-m", "cocite"]
    return {
        "python": ["-c", "pass"],
        "import numpy": ["-c", "import numpy"],
        "import click": ["-c", "import click"],
        "numpy and llvmlite": ["-c", "import numpy, llvmlite.binding"],
        "import numba": ["-c", "import numba"],
        "cocite --version": [*verb, "--version"],
        "cocite --help": [*verb, "--help"],
        "related": [*verb, "related", index, first, "-k", "10"],
        "similarity": [*verb, "similarity", index, first, second],
        "why": [*verb, "why", index, first, second],
        "info": [*verb, "info", index],
        "nodes": [*verb, "nodes", index, first],
        "open and related": [
            "-c",
            "import sys, cocite; cocite.open(sys.argv[1]).related(sys.argv[2])",
            index,
            first,
        ],
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shell", description=__doc__)
    parser.add_argument("index", metavar="INDEX")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    chosen = parser.parse_args()
    if os.environ.get("PYTHONDONTWRITEBYTECODE"):
        parser.error("PYTHONDONTWRITEBYTECODE is set: every process compiles all modules anew")
    what = commands(chosen.index)
    found: dict[str, list[Times]] = {name: [] for name in what}
    for number in range(chosen.rounds + 1):
        for name, command in what.items():
            times = timed(command)
            if number:
                found[name].append(times)
    beside = statistics.median(processor for processor, _ in found["import numba"])
    print("| process | processor, median | least | wall, median | least | import numba |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, rounds in found.items():
        cells = [name]
        for which in (0, 1):
            values = [times[which] for times in rounds]
            cells += [f"{statistics.median(values):.3f} s", f"{min(values):.3f} s"]
        share = statistics.median(processor for processor, _ in rounds) / beside
        print("| " + " | ".join([*cells, f"{share:.2f}"]) + " |")


if __name__ == "__main__":
    main()
