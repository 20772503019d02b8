"""CPU time of a program and its descendants: driver, workers, and Ray itself.

    driver    the process that was started
    workers   Ray's worker processes
    ray       raylets, the control store, and other Ray processes

A thread reads ``/proc`` several times per second, since a killed process does not report its usage;
the last tenth of a second of such a process is lost. This process adopts orphaned descendants
(``PR_SET_CHILD_SUBREAPER``), so that all are counted. Requires Linux.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_SUBREAPER = 36
_SECONDS = 0.1
_TICK = 1 / os.sysconf("SC_CLK_TCK")


class Spending:
    """CPU seconds of the processes below this one, but for those that it had before."""

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self._taken: dict[tuple[int, int], tuple[str, float]] = {}
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()

    def by_kind(self) -> Counter[str]:
        """Until now."""
        with self._lock:
            self._look()
            found: Counter[str] = Counter()
            for kind, seconds in self._taken.values():
                found[kind] += seconds  # type: ignore[assignment]
            return found

    def _watch(self) -> None:
        while not self._stop.wait(_SECONDS):
            with self._lock:
                self._look()

    def _look(self) -> None:
        for process, begun, seconds in _below(os.getpid()):
            kind = _kind(process) or self._taken.get((process, begun), ("ray", 0.0))[0]
            self._taken[process, begun] = kind, seconds


def others(seconds: float = 1.0) -> float:
    """The share of all processors that is busy while this process does nothing for so long."""

    def read() -> tuple[int, int]:
        fields = Path("/proc/stat").read_text("utf-8").partition("\n")[0].split()[1:9]
        counts = [int(each) for each in fields]
        return counts[3] + counts[4], sum(counts)

    idle, whole = read()
    time.sleep(seconds)
    still, now = read()
    return round(1 - (still - idle) / max(1, now - whole), 3)


def processor_seconds(process: int) -> float:
    """That a process has taken; it is there."""
    fields = Path("/proc", str(process), "stat").read_text("utf-8", "replace").rpartition(")")[2]
    return _TICK * sum(map(int, fields.split()[11:13]))


def _below(process: int) -> list[tuple[int, int, float]]:
    """All that are below a process: number, when it began, CPU seconds."""
    seen: dict[int, list[tuple[int, int, float]]] = {}
    for each in os.listdir("/proc"):
        if not each.isdigit():
            continue
        with suppress(OSError):
            words = Path("/proc", each, "stat").read_text("utf-8", "replace")
            fields = words.rpartition(")")[2].split()
            found = int(each), int(fields[19]), _TICK * (int(fields[11]) + int(fields[12]))
            seen.setdefault(int(fields[1]), []).append(found)
    found_all, left = [], [process]
    while left:
        mine = seen.get(left.pop(), [])
        found_all += mine
        left += [number for number, _, _ in mine]
    return found_all


def _kind(process: int) -> str:
    """Of a process by its command; nothing of one that is dead, as it has none any more."""
    try:
        command = Path("/proc", str(process), "cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    if not command:
        return ""
    if command.startswith("ray::") or "default_worker.py" in command:
        return "workers"
    if "raylet" in command or "gcs_server" in command or "cocite.cluster.ray" in command:
        return "ray"
    if "site-packages/ray/" in command:
        return "ray"
    return "driver"
