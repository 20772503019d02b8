"""What ``cocite plan`` tells of questions, beside what they then take.

    python -m benchmarks.plan [GRAPH ...] [--pilot TIME]

The graph is planned with the defaults; then the index is built, and in a new process 400 other
random nodes are asked, once each, by the processor time; and some of them from a shell, a process
each, by the clock. The ratio is what was told over what was measured; it should lie between 2/3
and 3/2. What else runs on the machine meanwhile makes it worse.

Graphs of the shared data. Takes some four minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import cocite

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("COCITE_DATA", ROOT.parent / "shared" / "data"))
GRAPHS = {
    "wikispeedia": "wikispeedia/links.tsv",
    "web-NotreDame": "web-NotreDame/web-NotreDame.txt.gz",
    "cnr-2000": "cnr-2000/cnr-2000.edges.txt.gz",
}
MEASURES = ("psimrank", "neighbourhood")
ASKED, WARM, SHELLS = 400, 5, 9
ASK = "import sys; from benchmarks.plan import ask; ask(sys.argv[1])"


def random_names(index: Path, count: int) -> list[str]:
    """Other nodes than a plan asks."""
    names = cocite.open(index).nodes
    chosen = np.random.default_rng(7).choice(len(names), min(len(names), count), replace=False)
    return names.names(chosen.astype(np.uint32))


def ask(path: str) -> None:
    """Print the quantiles of a process that has asked before, in seconds."""
    names = random_names(Path(path), ASKED + WARM)
    index = cocite.open(path)
    times = []
    for name in names:
        begin = time.thread_time()
        index.related(name)
        times.append(time.thread_time() - begin)
    print(json.dumps(np.quantile(times[WARM:], (0.5, 0.99)).tolist()))


def warm(path: Path) -> list[float]:
    command = [sys.executable, "-c", ASK, str(path)]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found: list[float] = json.loads(done.stdout)
    return found


def shell(path: Path) -> float:
    """The median of a few processes."""
    times = []
    for name in random_names(path, SHELLS):
        command = [sys.executable, "-m", "cocite", "related", str(path), "--quiet", "--", name]
        begin = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", default=list(GRAPHS), metavar="GRAPH")
    parser.add_argument("--pilot", default="10s")
    parser.add_argument("--measures", nargs="+", default=list(MEASURES))
    chosen = parser.parse_args()
    print(f"{'graph':14} {'measure':14} {'what':14} {'told ms':>8} {'measured':>8} {'ratio':>6}")
    with tempfile.TemporaryDirectory(prefix="cocite-bench-") as folder:
        for name in chosen.graphs:
            graph = Path(folder) / f"{name}.graph"
            cocite.ingest(DATA / GRAPHS[name], graph)
            for measure in chosen.measures:
                plan = cocite.plan_index(graph, measure=measure, pilot=chosen.pilot)
                figures, index = plan.planned, Path(folder) / "index"
                cocite.build(graph, index, measure=measure, overwrite=True)
                median, p99 = warm(index)
                rows = {
                    "warm, half": (figures.median, median),
                    "warm, 99 %": (figures.p99, p99),
                    "process, half": (figures.shell_median, shell(index)),
                }
                for what, (told, taken) in rows.items():
                    shown = "-" if told is None else f"{1000 * told:.3g}"
                    ratio = "-" if told is None else f"{told / taken:.2f}"
                    taken_ms = f"{1000 * taken:.3g}"
                    print(f"{name:14} {measure:14} {what:14} {shown:>8} {taken_ms:>8} {ratio:>6}")
                print(f"{'':29} pilot of {plan.pilot} samples", flush=True)


if __name__ == "__main__":
    main()
