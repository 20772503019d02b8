"""Run the papers' web at full size on this machine, one step after another.

    python -m benchmarks.papers FOLDER [--nodes 78.6M] [--degree 12.7] [--memory 4GB] [--samples N]
                                [--only STEP]... [--force] [--write]

Generates a web of as many pages as the papers' (Fogaras and Rácz 2005, section 5.2: 78,636,371) in
FOLDER. Then computes ranks, an index of PSimRank, ``related`` with a cold and a warm cache,
``related-all`` of 1,000,000 pages, a refresh after 1% of the pages are removed, and indexes of
SimRank, XJaccard (one batch of 16 samples) and the default measure. By default, SimRank and
PSimRank have as many ``--samples`` as the disk can hold, 10 to 100. XJaccard stores 8 bits of each
min-hash if all bits do not fit.

Each step is a process whose result is added to FOLDER/steps.json, so an interrupted run continues
with the next step; ``--force`` starts over. ``--write`` also stores the results under results/. An
index is removed once no step needs it. Takes one to two hours and about 40 GB of disk, or a minute
with ``--nodes 100k``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.block import ROOT, add_write, run_today
from benchmarks.kept import ResultStore, watched
from benchmarks.papers_steps import INDEXES, STEPS
from benchmarks.papers_table import figures, line
from benchmarks.performance import write
from cocite.resources import format_size, parse_size

RESULTS = ResultStore("papers")
NEEDED_BY = {
    "psimrank": ("related psimrank", "related-all", "refresh"),
    "neighborhood": ("related neighborhood",),
    "fusion": ("related fusion", "related-all fusion"),
}
"""Steps that need an index: when all are done it is removed."""
_UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}


def number(text: str) -> int:
    """A count such as 78.6M or 100k."""
    unit = text[-1:]
    try:
        found = float(text[:-1]) * _UNITS[unit] if unit in _UNITS else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number, such as 78.6M") from None
    if found < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is less than 1")
    return round(found)


def run(step: str, folder: Path, chosen: dict[str, Any]) -> dict[str, Any]:
    """What a step found; raises CalledProcessError."""
    command = [sys.executable, "-m", "benchmarks.papers_steps", step, str(folder)]
    done = subprocess.run(
        [*command, json.dumps(chosen)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def drop_unneeded(folder: Path, done: dict[str, Any]) -> None:
    """Remove what no step needs any more."""
    for measure in INDEXES:
        path = folder / f"{measure}.index"
        if measure in done and set(NEEDED_BY.get(measure, ())) <= set(done) and path.exists():
            shutil.rmtree(path)
    if "refresh" in done:
        shutil.rmtree(folder / "later.graph", ignore_errors=True)


def main() -> None:
    """Run, keep, tell."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--nodes", type=number, default=78_636_371)
    parser.add_argument("--degree", type=float, default=12.7, help="links a page [12.7]")
    parser.add_argument("--memory", type=parse_size, default="4GB")
    parser.add_argument("--samples", type=int, default=0, help="of SimRank and PSimRank")
    parser.add_argument("--length", type=int, default=10)
    parser.add_argument("--asked", type=number, default=1_000_000, help="pages of related-all [1M]")
    parser.add_argument("--only", action="append", choices=list(STEPS), metavar="STEP")
    parser.add_argument("--force", action="store_true", help="do steps that are done, too")
    add_write(parser, "keep the results under results/ and put them into docs/performance.md")
    given = parser.parse_args()
    if given.samples < 0 or given.length < 1 or given.degree < 1:
        parser.error("--samples, --length and --degree are 1 or more")
    chosen = {
        "nodes": given.nodes,
        "links": round(given.nodes * given.degree),
        "memory": given.memory,
        "samples": given.samples,
        "length": given.length,
        "asked": min(given.asked, given.nodes),
    }
    given.folder.mkdir(parents=True, exist_ok=True)
    state = given.folder / "steps.json"
    before = json.loads(state.read_text("utf-8")) if state.exists() else {}
    if before and before["chosen"] != chosen and not given.again:
        parser.error(f"{state} is of other options: name another FOLDER, or begin --force")
    done: dict[str, Any] = before.get("done", {}) if before.get("chosen") == chosen else {}
    steps = [step for step in STEPS if given.only is None or step in given.only]
    if given.again:
        done = {step: found for step, found in done.items() if step not in steps}
    for count, step in enumerate(steps, 1):
        if step in done:
            print(f"{step}: done before", file=sys.stderr)
            continue
        free = format_size(shutil.disk_usage(given.folder).free)
        at = time.strftime("%H:%M:%S")
        print(f"{at} {step} ({count} of {len(steps)}), {free} of disk free", file=sys.stderr)
        with watched() as watch:
            found = run(step, given.folder, chosen)
        done[step] = found | {"others": watch.others}
        state.write_text(json.dumps({"chosen": chosen, "done": done}, indent=1) + "\n", "utf-8")
        if given.write:
            RESULTS.keep(step, found | {"chosen": chosen}, watch.others)
        print(f"  {line(step, found | {'chosen': chosen})}", file=sys.stderr, flush=True)
        drop_unneeded(given.folder, done)
    parts = {
        step: {**run_today(), "others": found["others"], "found": found | {"chosen": chosen}}
        for step, found in done.items()
    }
    print(figures(parts))
    if given.write:
        write()


if __name__ == "__main__":
    main()
