"""Effect of a thousand slow connections on the response times of others.

    python -m benchmarks.trickle INDEX [--connections N] [--seconds S] [--rounds N]

One connection repeatedly requests ``related`` of random nodes, k = 20. In every other round, a
process also holds N connections open, half of them silent, half sending a byte of a request's head
per second; connections that the server closes are reopened. Prints p50 and p99 with and without
them, over all rounds, and how often connections were closed.

Other load affects both; the aim is at most twice the p99.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import multiprocessing
import random
import resource
import sys
import time
from multiprocessing.synchronize import Event
from typing import Any
from urllib.parse import quote

import cocite
from benchmarks.serving import serving

HEAD = b"GET /v1/related?node=x HTTP/1.1\r\nHost: x\r\nX-Slow: "
ASKED = 5000


def dawdle(port: int, connections: int, ready: Event, stop: Event, closed: Any) -> None:
    """Hold connections open until stopped."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

    async def one(number: int) -> None:
        await asyncio.sleep(number / connections)  # not all at once
        while not stop.is_set():
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            with contextlib.suppress(OSError):
                if number % 2:
                    writer.write(HEAD)
                while not stop.is_set() and not reader.at_eof():
                    if number % 2:
                        writer.write(b"x")
                        await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(4096), 1.0)
            closed.value += not stop.is_set()
            writer.close()

    async def every() -> None:
        tasks = [asyncio.create_task(one(number)) for number in range(connections)]
        await asyncio.sleep(1.5)
        ready.set()
        await asyncio.gather(*tasks)

    asyncio.run(every())


def ask(port: int, names: list[str], seconds: float) -> list[float]:
    """How long each answer took, in seconds."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        link.request("GET", f"/v1/related?k=20&node={quote(random.choice(names))}")
        answer = link.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        times.append(time.perf_counter() - began)
    link.close()
    return times


def told(what: str, times: list[float]) -> float:
    """Print the quantiles; returns p99 in milliseconds."""
    found = sorted(times)
    half, late = (1000 * found[int(share * len(found))] for share in (0.5, 0.99))
    print(f"{what}   p50 {half:.2f} ms   p99 {late:.2f} ms   ({len(found):,} answers)")
    return late


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("index")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    index = cocite.open(given.index)
    names = [index.nodes.name(random.randrange(len(index.nodes))) for _ in range(ASKED)]
    command = [sys.executable, "-m", "cocite", "serve", given.index, "--port", "0"]
    command += ["--no-requests", "--target-latency", "1000000"]
    times: dict[bool, list[float]] = {False: [], True: []}
    context = multiprocessing.get_context("spawn")
    closed = context.Value("q", 0)
    with serving(command) as server:
        ask(server.port, names, given.seconds / 2)
        for _ in range(given.rounds):
            times[False] += ask(server.port, names, given.seconds)
            ready, stop = context.Event(), context.Event()
            arguments = (server.port, given.connections, ready, stop, closed)
            dawdlers = context.Process(target=dawdle, args=arguments)
            dawdlers.start()
            ready.wait(60)
            times[True] += ask(server.port, names, given.seconds)
            stop.set()
            dawdlers.join(20)
            dawdlers.kill()
    usual = told("without them", times[False])
    late = told(f"with {given.connections:,} ", times[True])
    print(f"p99 {late / usual:.2f} times; {closed.value:,} connections were closed by the server")


if __name__ == "__main__":
    main()
