"""Dated results, stored part by part: ``results/NAME-YYYY-MM-DD.json``.

A part has a key, what was found, and when, where and beside which load it was measured:

    {"pagerank web": {"date": ..., "machine": ..., "others": 0.9, "found": {...}}, ...}

Each part is stored as soon as it is measured, in the file of that day, which starts as a copy of
the newest file. Interrupted runs can thus continue, parts can be measured on different days, and
the newest file has all results. *others* is the mean number of cores that other programs used
meanwhile: the machine's CPU time less that of this program and its children (Linux; None
elsewhere).
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.block import run_today

RESULTS = Path(__file__).parent / "results"
Parts = dict[str, dict[str, Any]]


class ResultStore:
    """The results of one benchmark, in ``folder``."""

    def __init__(self, name: str, folder: Path = RESULTS) -> None:
        self.name, self.folder = name, folder

    def files(self) -> list[Path]:
        """All of them, oldest first."""
        return sorted(self.folder.glob(f"{self.name}-????-??-??.json"))

    def newest(self, before: str = "9999") -> Parts:
        """The newest parts, of files that are older than ``before`` (a day); {} without any."""
        files = [file for file in self.files() if file.stem[-10:] < before]
        found: Parts = json.loads(files[-1].read_text("utf-8")) if files else {}
        return found

    def keep(self, part: str, found: Any, others: float | None) -> None:
        """Keep a part, in the file of today."""
        parts = self.newest()
        parts[part] = {**run_today(), "others": others, "found": found}
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{self.name}-{date.today().isoformat()}.json"
        beside = path.with_suffix(".beside")
        beside.write_text(json.dumps(parts, indent=1) + "\n", "utf-8")
        beside.replace(path)


class Watch:
    """How many cores ``others`` kept busy, once what was watched is done."""

    others: float | None = None


@contextmanager
def watched() -> Iterator[Watch]:
    """Look at what else runs meanwhile."""
    watch, begin, mine, all_of_it = Watch(), time.perf_counter(), _mine(), _busy()
    yield watch
    if all_of_it is not None:
        seconds = time.perf_counter() - begin
        watch.others = busy_of_others((_busy() or 0.0) - all_of_it, _mine() - mine, seconds)


def busy_of_others(busy: float, mine: float, seconds: float) -> float:
    """Cores: ``busy`` and ``mine`` are seconds of CPU time, of all and of this program."""
    return round(max(0.0, busy - mine) / seconds, 2)


def provenance(parts: Mapping[str, Mapping[str, Any]]) -> str:
    """When and where parts were measured, and beside what: a line above a table."""
    dates = sorted({part["date"] for part in parts.values()})
    machines = sorted({part["machine"] for part in parts.values()})
    others = [part["others"] for part in parts.values() if part["others"] is not None]
    line = f"{dates[0]}" + (f" to {dates[-1]}" if len(dates) > 1 else "") + f", {machines[-1]}"
    if others:
        low, high = f"{min(others):.1f}", f"{max(others):.1f}"
        line += f"; other programs kept {low if low == high else f'{low} to {high}'} cores busy"
    return line + "."


def _mine() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _busy() -> float | None:
    """Seconds that all cores have worked: all but idle, waiting for disks, and lost to a host."""
    try:
        cells = Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:8]
    except OSError:
        return None
    user, nice, system, _, _, irq, soft = map(int, cells)
    return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")
