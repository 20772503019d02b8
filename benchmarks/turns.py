"""Compare two checkouts, or commands on one thread and on two.

    python -m benchmarks.turns OTHER OTHER_INDEX INDEX [K]
    python -m benchmarks.turns --write

The first form runs two processes, one with the code of the checkout OTHER and one with this one.
They alternately run ``related`` of the same 600 nodes, and which goes first alternates. Prints the
median ratio of this over the other, and its quartiles; on a shared machine, single times vary by a
third.

``--write`` runs commands of the command line, each in its own process, alternately on one thread
and on two, the best of three. By Amdahl's law, the serial fraction that both times imply limits the
speed-up on more threads. Results are stored under results/ and in docs/performance.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import cocite
from benchmarks.block import DATA
from benchmarks.kept import Parts, ResultStore, provenance, watched
from benchmarks.text_names import _write as write_texts

ROUNDS = 60
ANSWER = """
import sys, time
import numpy as np, cocite
index, k = cocite.open(sys.argv[1]), int(sys.argv[2])
nodes = [int(node) for node in np.random.default_rng(5).integers(0, len(index.nodes), 600)]
for line in sys.stdin:
    times = []
    for node in nodes:
        begin = time.perf_counter()
        index.related(node, k)
        times.append(time.perf_counter() - begin)
    print(float(np.median(times)), flush=True)
"""


def start(checkout: Path, index: str, k: str) -> subprocess.Popen[str]:
    """Start a process that answers a turn for each line that it reads."""
    command = [str(checkout / ".venv/bin/python"), "-c", ANSWER, str(Path(index).resolve()), k]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=checkout, stdin=pipe, stdout=pipe, text=True)


def turn(process: subprocess.Popen[str]) -> float:
    """Return the median seconds of one turn."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


# -- threads -----------------------------------------------------------------------------

RESULTS, PAIRS, MORE = ResultStore("turns"), 3, (4, 8, 16)
COMMANDS = {
    "ingest, 3 M links between URLs": "ingest urls.tsv -o made.graph --overwrite",
    "rank, 3 M links": "rank web -o ranks.npy --overwrite",
    "rank, 3 M links, in blocks": "rank web --memory 66MB -o ranks.npy --overwrite",
    "all-pairs, SimRank": "all-pairs graph -o pairs.parquet --overwrite",
    "all-pairs, PSimRank": "all-pairs graph --measure psimrank -o pairs.parquet --overwrite",
    "evaluate, PSimRank": "evaluate index --labels LABELS",
    "tune, PSimRank": "tune graph --measure psimrank --queries 200 --no-resume --overwrite "
    "-o best.toml",
}
"""Rows of the table, and their commands; from the fourth on, of wikispeedia."""


def clocked(command: str, threads: int, folder: Path) -> tuple[float, float]:
    """Run a command; return seconds of the clock and of the processor."""
    words = command.replace("LABELS", str(DATA / "wikispeedia/categories.tsv")).split()
    quiet = subprocess.DEVNULL
    line = [sys.executable, "-m", "cocite", *words, "--threads", str(threads)]
    begin = time.perf_counter()
    with subprocess.Popen(line, cwd=folder, stdout=quiet, stderr=quiet) as process:
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return seconds, used.ru_utime + used.ru_stime


def measure_threads() -> None:
    """Measure and keep all commands."""
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as place:
        folder = Path(place)
        web = cocite.generate_web(folder / "web", nodes=300_000, links=3_000_000, seed=1)
        write_texts(web, folder / "urls.tsv", folder / "numbers.tsv")
        graph = cocite.ingest(DATA / "wikispeedia/links.tsv", folder / "graph")
        cocite.build(graph, folder / "index", measure="psimrank")
        for name, command in COMMANDS.items():
            found: dict[str, list[tuple[float, float]]] = {"1": [], "2": []}
            with watched() as watch:
                for pair in range(PAIRS):
                    for threads in (1, 2) if pair % 2 else (2, 1):
                        found[str(threads)].append(clocked(command, threads, folder))
            best = {threads: np.min(times, axis=0).tolist() for threads, times in found.items()}
            RESULTS.keep(name, best, watch.others)
            print(name, best, flush=True)


def figures(parts: Parts) -> str:
    """The block of docs/performance.md."""
    titles = ["command", "wall time, 1 thread", "wall time, 2 threads"]
    titles += ["CPU time, 1 thread", "CPU time, 2 threads", "speed-up"]
    titles += [f"{n} threads at most" for n in MORE]
    lines = [provenance(parts), "", f"| {' | '.join(titles)} |", "|" + " --- |" * len(titles)]
    for name, part in parts.items():
        (one, busy), (two, busy_two) = part["found"]["1"], part["found"]["2"]
        alone = min(1.0, max(0.0, 2 * two / one - 1))
        more = [f"{1 / (alone + (1 - alone) / n):.1f}" for n in MORE]
        cells = [
            *(f"{seconds:.2f} s" for seconds in (one, two, busy, busy_two)),
            f"{one / two:.2f}",
        ]
        lines.append(f"| {' | '.join([name, *cells, *more])} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    if sys.argv[1:] == ["--write"]:
        from benchmarks.performance import write

        measure_threads()
        write()
        return
    other, other_index, index = sys.argv[1:4]
    k = sys.argv[4] if len(sys.argv) > 4 else "20"
    here = Path(__file__).parents[1]
    sides = [start(Path(other).resolve(), other_index, k), start(here, index, k)]
    for side in sides:
        turn(side)
    times = np.empty((ROUNDS, 2))
    for number in range(ROUNDS):
        for column in (0, 1) if number % 2 else (1, 0):
            times[number, column] = turn(sides[column])
    for side in sides:
        side.kill()
    low, middle, high = np.quantile(times[:, 1] / times[:, 0], (0.25, 0.5, 0.75))
    print(
        f"other {1e3 * np.median(times[:, 0]):.3f} ms, this {1e3 * np.median(times[:, 1]):.3f} ms"
    )
    print(f"this / other: {middle:.3f}, quartiles {low:.3f} and {high:.3f}")


if __name__ == "__main__":
    main()
