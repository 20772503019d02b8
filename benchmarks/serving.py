"""Throughput and latency of a server, below and above its capacity.

    python -m benchmarks.serving INDEX [--workers N] [--threads N] [--seconds S]
                                       [--usearch GRAPH | --vectors FILE] [--requests N]

wrk (the load generator, available in Debian) runs on the same machine and requests ``related`` of
random nodes, k = 20. Each request has a different confidence, so the server's cache has no hits:

    capacity    all samples, 8 connections: requests per second, p50 and p99, CPU time per
                request
    overload    as many connections as request four times the capacity, retrying at once when
                refused (after a tenth of a second): statuses; p99 of a few more connections, which
                count only 200 responses; samples per response; memory
    afterwards  time until all samples respond again
    trickling   1,000 more connections that send a byte of a request's head per second, and
                reconnect when closed: p50 and p99 of all others, without and with them

``--requests`` only sends that many requests, and prints the server's memory after each tenth.

``--usearch`` serves nearest neighbors in 128 spectral dimensions from the same server. Computing
the vectors of the graph takes a minute or two (usearch, scikit-learn).

All figures but CPU time include the effect of other programs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import cocite

TICK = os.sysconf("SC_CLK_TCK")
CONNECTIONS, TIMES, HELD_BACK = 8, 4, 0.1
TIMED = 8
"""Connections whose answers are timed under load."""
TRICKLING = 1000
ASKED = 20_000
SCRIPT = """
local ffi = require("ffi")
ffi.cdef "typedef struct {{ long s; long n; }} ts; int clock_gettime(int, ts *);"
local clock, nodes, at, counts, begun = ffi.new("ts"), {{}}, 1, {{}}, 0
local times
local function now()
    ffi.C.clock_gettime(1, clock)
    return tonumber(clock.s) + tonumber(clock.n) / 1e9
end
for line in io.lines("{nodes}") do nodes[#nodes + 1] = line end
function init(args)
    math.randomseed({seed} + number)
    at = math.random(#nodes)
    if {alone} then times = io.open("{output}" .. number, "w") end
end
function request()
    at = at % #nodes + 1
    begun = now()
    local confidence = "0.9" .. math.random(10^8)
    return wrk.format("GET", "/v1/related?confidence=" .. confidence .. "&k=20&node=" .. nodes[at])
end
function response(status)
    counts[status] = (counts[status] or 0) + 1
    if {alone} and status == 200 then times:write(now() - begun, "\\n"); times:flush() end
    told = ""
    for s, n in pairs(counts) do told = told .. " " .. s .. "=" .. n end
end
local threads = {{}}
function setup(thread)
    threads[#threads + 1] = thread
    thread:set("number", #threads)
end
function done()
    for _, thread in ipairs(threads) do io.write(thread:get("told") or "", "\\n") end
end
"""
"""One connection a thread can be timed, to a file each; of many only the statuses are counted."""


@dataclass(frozen=True)
class Run:
    """What wrk told: requests a second, p50 and p99 of all answers in ms, answers by status."""

    rate: float
    median: float
    late: float
    statuses: dict[int, int]

    @property
    def answers(self) -> int:
        return sum(self.statuses.values())


class Server:
    """A server, its processes and its metrics."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port

    def get(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            found: bytes = answer.read()
        return found.decode()

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        rows = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", self.get("/metrics"), re.M)
        return sum(map(float, rows))

    def workers(self) -> list[int]:
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [pid for pid in map(int, text.split()) if self._of(pid, "stat")[1] != "Z"]

    def _of(self, pid: int, file: str) -> list[str]:
        return Path(f"/proc/{pid}/{file}").read_text().rpartition(")")[2].split()

    def seconds(self) -> float:
        """CPU time of all workers so far."""
        return sum(sum(map(int, self._of(pid, "stat")[11:13])) for pid in self.workers()) / TICK

    def memory(self) -> int:
        """Bytes of all workers that are theirs alone: not those of mapped indexes."""
        found = 0
        for pid in self.workers():
            text = Path(f"/proc/{pid}/status").read_text()
            found += sum(int(kb) for kb in re.findall(r"RssAnon:\s+(\d+)", text))
        return found << 10


def wrk(port: int, connections: int, seconds: float, nodes: Path, alone: Path | None = None) -> Any:
    """Begin a run; ``alone`` is where the times of its answers go, with a thread a connection."""
    script = nodes.with_name(f"ask-{connections}-{alone is not None}.lua")
    script.write_text(
        SCRIPT.format(
            nodes=nodes,
            seed=random.randrange(10**6),
            alone="true" if alone else "false",
            output=alone or "",
        )
    )
    command = [
        "wrk",
        f"-t{connections if alone else 1}",
        f"-c{connections}",
        f"-d{max(1, round(seconds))}s",
        "--timeout",
        "30s",
        "--latency",
    ]
    command += ["-s", str(script), f"http://127.0.0.1:{port}"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def told(running: subprocess.Popen[str]) -> Run:
    """What came of a run."""
    text, _ = running.communicate()
    rate = re.search(r"Requests/sec:\s+(\S+)", text)
    quantiles = dict(re.findall(r"^\s+(50|99)%\s+(\S+)$", text, re.M))
    statuses = {int(s): int(n) for s, n in re.findall(r"(\d{3})=(\d+)", text)}
    assert rate is not None, text
    assert "99" in quantiles, text
    return Run(float(rate[1]), _ms(quantiles["50"]), _ms(quantiles["99"]), statuses)


def _ms(text: str) -> float:
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()  # type: ignore[union-attr]
    return float(number) * {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}[unit]


@contextmanager
def serving(command: list[str], environ: dict[str, str] | None = None) -> Iterator[Server]:
    """A server that is ready."""
    everything = os.environ | (environ or {})
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=everything)
    try:
        assert process.stderr is not None
        line = ""
        while "at http://" not in line:
            line = process.stderr.readline().decode()
            if not line:
                raise SystemExit(f"no server came of: {' '.join(command)}")
        server = Server(process, int(line.rsplit(":", 1)[1]))
        for _ in range(600):
            try:
                server.get("/readyz")
                break
            except OSError:
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait()


def capacity(server: Server, nodes: Path, seconds: float) -> Run:
    """A run at what the server can do, behind a shorter one that nobody counts."""
    told(wrk(server.port, CONNECTIONS, seconds / 2, nodes))
    before = server.seconds()
    run = told(wrk(server.port, CONNECTIONS, seconds, nodes))
    each = (server.seconds() - before) / run.answers * 1e6
    print(
        f"  {run.rate:8,.0f} a second   p50 {run.median:.1f} ms   p99 {run.late:.1f} ms   "
        f"{each:,.0f} us of CPU time each   {run.statuses}"
    )
    return run


def overload(server: Server, nodes: Path, seconds: float, usual: Run) -> None:
    """More than can be answered, and what comes of it."""
    alone = nodes.with_name("alone-")
    sums = [server.metric(f"cocite_samples_{what}") for what in ("sum", "count")]
    begun = server.memory()
    many = max(4 * CONNECTIONS, round(TIMES * usual.rate * HELD_BACK))
    running = wrk(server.port, many, seconds, nodes)
    time.sleep(min(3.0, seconds / 4))
    few = wrk(server.port, TIMED, seconds * 0.6, nodes, alone)
    middle = server.memory()
    told(few)
    run = told(running)
    files = alone.parent.glob(f"{alone.name}*")
    times = sorted(float(line) for file in files for line in file.read_text().split())
    more = [server.metric(f"cocite_samples_{what}") for what in ("sum", "count")]
    samples = (more[0] - sums[0]) / max(1.0, more[1] - sums[1])
    late = 1000 * times[int(0.99 * len(times))]
    print(
        f"  asked for {run.rate / usual.rate:.1f} times the capacity: {run.statuses}; "
        f"p99 of the answers {late:.1f} ms (n = {len(times):,}), {late / usual.late:.1f} times"
    )
    print(
        f"  {samples:.0f} samples an answer on average; memory {begun / 1e6:.0f}, "
        f"{middle / 1e6:.0f}, {server.memory() / 1e6:.0f} MB before, within, behind"
    )


def recovery(server: Server) -> None:
    """How long until all samples answer again."""
    begun = time.monotonic()
    while server.metric("cocite_samples_share") < 1 and time.monotonic() < begun + 60:
        time.sleep(0.2)
    print(f"  all samples again after {time.monotonic() - begun:.1f} s")


def endurance(server: Server, nodes: Path, requests: int) -> None:
    """Ask so many questions; what memory the server has at each tenth."""
    answered, shown = 0, 0
    while answered < requests:
        run = told(wrk(server.port, CONNECTIONS, 5, nodes))
        if set(run.statuses) - {200}:
            raise SystemExit(f"other answers than 200: {run.statuses}")
        answered += run.answers
        if answered * 10 // requests > shown:
            shown = answered * 10 // requests
            print(f"  {answered:10,} answers   {server.memory() / 1e6:.1f} MB", flush=True)


class Trickle:
    """Connections that send a byte of a request's head a second."""

    HEAD = b"GET /v1/related?node=" + b"x" * 4000

    def __init__(self, port: int, count: int) -> None:
        self.address, self.count, self.opened = ("127.0.0.1", port), count, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Trickle:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < self.count + 256:
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, self.count + 256), hard))
        self._thread.start()
        while self.opened < self.count:
            time.sleep(0.1)
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        links: list[tuple[socket.socket, int] | None] = [None] * self.count
        while not self._stop.is_set():
            begun = time.monotonic()
            for i in range(self.count):
                links[i] = self._next(links[i])
                if i % 50 == 49:  # evenly over the second
                    time.sleep(max(0.0, begun + (i + 1) / self.count - time.monotonic()))
        for link in links:
            if link is not None:
                link[0].close()

    def _next(self, link: tuple[socket.socket, int] | None) -> tuple[socket.socket, int] | None:
        """The connection with a byte more, or another one if it was closed."""
        try:
            if link is None:
                self.opened += 1
                link = socket.create_connection(self.address, timeout=5), 0
            made, sent = link
            made.sendall(self.HEAD[sent : sent + 1])
            return made, sent + 1
        except OSError:
            if link is not None:
                link[0].close()
            return None


def starving(server: Server, nodes: Path, seconds: float) -> None:
    """What connections that trickle take from others: a few that ask all the time."""
    alone = told(wrk(server.port, CONNECTIONS, seconds / 2, nodes))
    with Trickle(server.port, TRICKLING) as trickle:
        beside = told(wrk(server.port, CONNECTIONS, seconds, nodes))
        opened = trickle.opened
    again = told(wrk(server.port, CONNECTIONS, seconds / 2, nodes))
    for name, run in (("without", alone), (f"{TRICKLING:,} trickling", beside), ("without", again)):
        print(
            f"  {name}: {run.rate:,.0f} a second   p50 {run.median:.1f} ms   p99 {run.late:.1f} ms"
            f"   {run.statuses}"
        )
    usual = max(alone.late, again.late)
    print(f"  p99 {beside.late / usual:.2f} times; {opened:,} connections were opened to trickle")


def near_answers() -> None:
    """Have this process answer ``related`` by usearch: the nearest vectors by cosine."""
    import numpy as np
    from usearch.index import Index as Near

    from cocite.server.requests import ANSWERS
    from cocite.server.results import CompleteDocument

    vectors = np.load(os.environ["COCITE_VECTORS"], mmap_mode="r")
    near = Near(ndim=vectors.shape[1], metric="cos")
    near.view(os.environ["COCITE_VECTORS"] + ".usearch")

    class Found(CompleteDocument):
        """Hits of usearch, with what hits of ours have."""

        def facts(self) -> dict[str, Any]:
            return {"node": self.text, "hits": self.nodes}

    def related(index: Any, asked: Any) -> Found:
        name, k = asked["node"][0], asked.get("k", 20)
        me = index.nodes.id(name)
        found = near.search(vectors[me], k + 1)
        kept = found.keys != me
        ids, scores = found.keys[kept][:k], (1 - found.distances[kept][:k]).tolist()
        names = index.nodes.names(ids.astype(np.uint32))
        hits = [
            {"node": node, "score": score, "stderr": 0.0, "low": score, "high": score}
            for node, score in zip(names, scores, strict=True)
        ]
        return Found(name, False, hits, False, None)  # type: ignore[arg-type]

    ANSWERS["related"] = related


def vectors_of(graph: str, folder: Path) -> Path:
    """The vectors of a graph, and usearch's index of them."""
    import numpy as np
    from usearch.index import Index as Near

    from benchmarks.studies.checks import embed

    place = folder / "vectors.npy"
    made = embed(cocite.Graph.open(graph))
    np.save(place, made)
    near = Near(ndim=made.shape[1], metric="cos")
    near.add(np.arange(len(made)), made)
    near.save(f"{place}.usearch")
    return place


NEAR = """
import sys
from benchmarks.serving import near_answers
from cocite.cli.main import main
from cocite.server import processes as serving
real = serving.application
def application(config):
    near_answers()
    return real(config)
serving.application = application
sys.exit(main(sys.argv[1:]))
"""
"""The command line, whose processes answer from vectors."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--target-latency", type=float, default=25)
    parser.add_argument("--requests", type=int, metavar="N", help="Only memory over N answers.")
    parser.add_argument("--usearch", metavar="GRAPH")
    parser.add_argument("--vectors", metavar="FILE", help="Those of an earlier --usearch.")
    given = parser.parse_args()
    if shutil.which("wrk") is None:
        raise SystemExit("wrk is not installed (Debian: apt-get install wrk)")
    if (given.usearch or given.vectors) and importlib.util.find_spec("usearch") is None:
        raise SystemExit("usearch is not installed (pip install usearch)")
    index = cocite.open(given.index)
    shape = ["--workers", str(given.workers), "--threads", str(given.threads)]
    usual = [sys.executable, "-m", "cocite", "serve", given.index, "--port", "0", "--no-requests"]
    usual += shape
    with tempfile.TemporaryDirectory() as place:
        folder, count = Path(place), len(index.nodes)
        rng = random.Random(1)
        names = [index.nodes.name(rng.randrange(count)) for _ in range(ASKED)]
        nodes = folder / "nodes.txt"
        nodes.write_text("".join(f"{quote(name, safe='')}\n" for name in names))
        if given.requests:
            with serving([*usual, "--target-latency", "1000000"]) as server:
                endurance(server, nodes, given.requests)
            return
        print(f"{index.measure}, {index.samples} samples: all of them")
        with serving([*usual, "--target-latency", "1000000"]) as server:
            run = capacity(server, nodes, given.seconds)
        print(f"adapting to {given.target_latency:g} ms")
        with serving([*usual, "--target-latency", str(given.target_latency)]) as server:
            own = capacity(server, nodes, given.seconds)
            overload(server, nodes, 2 * given.seconds, own)
            recovery(server)
            print(f"beside {TRICKLING:,} connections that trickle")
            starving(server, nodes, given.seconds)
        if given.usearch or given.vectors:
            vectors = given.vectors or vectors_of(given.usearch, folder)
            print("usearch, 128 spectral dimensions, behind the same server")
            near = [sys.executable, "-c", NEAR, *usual[3:], "--target-latency", "1000000"]
            with serving(near, {"COCITE_VECTORS": str(vectors)}) as server:
                other = capacity(server, nodes, given.seconds)
            print(f"  {run.rate / other.rate:.2f} of its requests a second are ours")


if __name__ == "__main__":
    main()
