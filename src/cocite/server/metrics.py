"""Prometheus metrics over all processes of a server, and the server's log.

If there are several processes, each writes its metrics to a mapped file in a common directory, and
any process can add them up. Log lines are text or JSON. Characters that could end a line or control
a terminal are escaped, so no line can be forged. A thread writes the lines, so that requests do not
wait for the disk.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from cocite.search.remote.index import ShardStatus
from cocite.server.results import FOLDER

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SAMPLES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)

_METRICS = {
    "requests": "Requests by operation and status.",
    "request_seconds": "Duration of answered requests.",
    "samples": "Samples used per answer.",
    "reloads": "Reloads of an index from a new directory, by outcome.",
    "links": "Posted links that were stored.",
    "links_waiting": "Posted links that are not in the index's graph yet.",
    "queue": "Queries that are waiting or running.",
    "samples_share": "Share of the samples that answers currently use; the minimum over all "
    "processes.",
}
_OF_SHARDS = {
    "answers": "Whether a sample server receives queries, or is skipped for now.",
    "samples": "How many samples a sample server has.",
    "waiting": "Queries that a sample server has not answered yet.",
    "seconds": "Recent mean response time of a sample server.",
    "opened": "How many times a sample server was found unresponsive.",
    "restarts": "How many times another process replaced a sample server.",
}
Kind = TypeVar("Kind", Counter, Gauge, Histogram)


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        _bury()
        self._registry = CollectorRegistry()
        self.requests = self._metric(Counter, "requests", "operation", "status")
        self.seconds = self._metric(Histogram, "request_seconds", "operation", buckets=_SECONDS)
        self.samples = self._metric(Histogram, "samples", "index", buckets=_SAMPLES)
        self.reloads = self._metric(Counter, "reloads", "index", "outcome")
        self.links = self._metric(Counter, "links", "index")
        waiting = {"multiprocess_mode": "livemax"}
        self.links_waiting = self._metric(Gauge, "links_waiting", "index", **waiting)
        self.queue = self._metric(Gauge, "queue", multiprocess_mode="livesum")
        self.share = self._metric(Gauge, "samples_share", multiprocess_mode="livemin")
        server = "index", "shard", "replica"
        self.shards = {
            name: Gauge(f"cocite_shard_{name}", text, server, registry=self._registry)
            for name, text in _OF_SHARDS.items()
        }

    def _metric(self, kind: type[Kind], name: str, *labels: str, **more: Any) -> Kind:
        return kind(f"cocite_{name}", _METRICS[name], labels, registry=self._registry, **more)

    def requested(self, operation: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self.requests.labels(operation, str(status)).inc()
        if status < 400:
            self.seconds.labels(operation).observe(seconds)

    def shard_status(self, index: str, seen: Iterable[ShardStatus]) -> None:
        """Set the gauges for an index's sample servers."""
        for each in seen:
            numbers = each._asdict() | {"answers": each.state == "answers"}
            for name, gauge in self.shards.items():
                gauge.labels(index, str(each.shard), str(each.replica)).set(numbers[name])

    def text(self) -> bytes:
        """Return all metrics in Prometheus format."""
        registry = self._registry
        if FOLDER in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        found: bytes = generate_latest(registry)
        return found


def _bury() -> None:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    numbers = {path.stem.rpartition("_")[2] for path in Path(folder).glob("gauge_live*.db")}
    for number in numbers:
        if not Path(f"/proc/{number}").exists():
            mark_process_dead(int(number))  # type: ignore[no-untyped-call]


# -- log ---------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """Escape unprintable characters."""
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text
    )


class Log:
    """The log of a process, with a line per request if ``requests`` is true."""

    def __init__(self, *, as_json: bool, quiet: bool, requests: bool) -> None:
        self.as_json, self.quiet, self.requests = as_json, quiet, requests and not quiet
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="log", daemon=True)
        self._writer.start()
        atexit.register(self.close)

    def say(self, message: str, level: str = "info", **more: Any) -> None:
        """Log a line with ``more`` fields."""
        if self.quiet and level == "info":
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        if self.as_json:
            line = json.dumps({"time": now, "level": level, "message": message, **more})
        else:
            fields = " ".join(f"{name}={value}" for name, value in more.items())
            line = one_line(" ".join(filter(None, (now, level, message, fields))))
        self._lines.put(line)

    def close(self) -> None:
        """Write all pending lines, then stop."""
        self._lines.put(None)
        self._writer.join()

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            with suppress(OSError, ValueError):  # stderr may be closed
                data = memoryview(f"{line}\n".encode("utf-8", "backslashreplace"))
                while data:
                    data = data[os.write(sys.stderr.fileno(), data) :]
