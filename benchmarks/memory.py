"""Memory that --memory allows, announced and actually used.

    python -m benchmarks.memory GRAPH... [--budgets 60MB,100MB,500MB] [--measures psimrank,...]

Runs ``cocite index`` of each measure, ``rank``, ``all-pairs``, and ``related-all`` of the last
index with each budget, as from a shell. The announced memory is read from the notes
(``--log-json``), the peak from the kernel (VmHWM) at the end, which includes the resident part of
mapped files. Budgets that are refused are omitted.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from cocite.cli.output import table_text
from cocite.resources import parse_size

_CHILD = """
import re, sys
from pathlib import Path
from cocite.cli.main import main
code = main(sys.argv[1:])
peak = re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]
print(f"peak {1024 * int(peak)}")
sys.exit(code)
"""
_TOLD = re.compile(r"([0-9.]+ [kMG]?B) of memory")


class Row(NamedTuple):
    """A command: bytes ``told``, by what ``note``, and at the ``peak``."""

    verb: str
    budget: str
    told: int
    note: str
    peak: int

    @property
    def allowed(self) -> int:
        """What ``--memory`` allows; what was told without it."""
        return self.told if self.budget == "default" else parse_size(self.budget)

    @property
    def ratio(self) -> float:
        """Taken over told."""
        return self.peak / self.told


def measured(verb: list[str], budget: str | None) -> Row | None:
    """A command with a budget, in a process of its own; None if it is refused."""
    more = [] if budget is None else ["--memory", budget]
    command = [sys.executable, "-c", _CHILD, *verb, *more, "--log-json", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    notes = [json.loads(line)["message"] for line in done.stderr.splitlines()]
    told = [(parse_size(match[1]), note) for note in notes if (match := _TOLD.search(note))]
    peak = re.search(r"^peak (\d+)$", done.stdout, re.M)
    if not told or peak is None:
        raise ValueError(f"{' '.join(verb)} tells no memory: {done.stdout}{done.stderr}")
    return Row("", budget or "default", *told[0], int(peak[1]))


def rows(graph: str, measures: list[str], budgets: list[str | None]) -> list[Row]:
    """All verbs of one graph with all budgets."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        verbs = {
            f"index {name}": ["index", graph, "--measure", name, "-o", f"{folder}/{name}"]
            for name in measures
        }
        related = ["related-all", f"{folder}/{measures[-1]}", "-o", f"{folder}/related.parquet"]
        verbs["related-all"] = related
        verbs["all-pairs"] = ["all-pairs", graph, "-o", f"{folder}/scores.npy"]
        verbs = {name: [*verb, "--overwrite"] for name, verb in verbs.items()}
        verbs["rank"] = ["rank", graph]
        for name, verb in verbs.items():
            for budget in budgets:
                row = measured(verb, budget)
                if row is not None:
                    found.append(row._replace(verb=f"{Path(graph).name} {name}"))
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--budgets", default="60MB,100MB,500MB")
    parser.add_argument("--measures", default="psimrank,xjaccard,neighborhood")
    given = parser.parse_args()
    budgets: list[str | None] = [*given.budgets.split(","), None]
    found = [r for g in given.graphs for r in rows(g, given.measures.split(","), budgets)]
    shown = [
        (r.budget, f"{r.told / 1e6:.1f} MB", f"{r.peak / 1e6:.1f} MB", f"{r.ratio:.3f}", r.verb)
        for r in found
    ]
    print(table_text(["--memory", "told", "peak", "taken / told", "command"], shown))


if __name__ == "__main__":
    main()
