"""A server in operation: its index is replaced, clients are slow, and signals end it."""

import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import cocite
from cocite.graph.generate import generate_web
from cocite.resources import parse_size
from tests.clock import LIMIT
from tests.server.conftest import Server, Start

pytestmark = pytest.mark.process

SWAPS, SLOW_CLIENTS = 30, 300


@pytest.fixture(scope="module")
def others(folder: Path) -> tuple[Path, Path]:
    """Two indexes with other answers, to replace the served one."""
    graph = cocite.Graph.open(folder / "web.graph")
    for name, seed in (("one", 1), ("two", 2)):
        options: Any = {"measure": "psimrank", "samples": 40, "seed": seed}
        cocite.build(graph, folder / f"{name}.index", **options)
    return folder / "one.index", folder / "two.index"


@pytest.fixture(scope="module")
def server(folder: Path, start: Start) -> Server:
    shutil.copytree(folder / "web.index", folder / "served.index")
    return start(
        str(folder / "served.index"),
        *("--workers", "2", "--reload-interval", "0.1"),
        *("--log-json", "--queue", "1000"),
    )


def replace_index(target: Path, source: Path) -> None:
    """Replace an index by a copy of another, as cocite does."""
    new, old = target.with_name("new"), target.with_name("old")
    shutil.copytree(source, new)
    target.rename(old)
    new.rename(target)
    shutil.rmtree(old)


def send_requests(server: Server, stop: threading.Event, results: list[Any], path: str) -> None:
    """Send requests over one connection until ``stop`` is set."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
    while not stop.is_set():
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            results.append((answer.status, answer.headers["cocite-generation"], answer.read()))
        except (OSError, http.client.HTTPException) as error:
            results.append(error)
            connection.close()
    connection.close()


def generation(server: Server) -> str:
    return str(server.ask("related", node="red").headers["cocite-generation"])


def test_reload_never_mixes_generations(
    server: Server, folder: Path, others: tuple[Path, Path]
) -> None:
    stop, results = threading.Event(), []  # type: ignore[var-annotated]
    path = "/v1/related?node=red&k=50"
    clients = [
        threading.Thread(target=send_requests, args=(server, stop, results, path)) for _ in range(3)
    ]
    for client in clients:
        client.start()
    server.until(lambda: bool(results))  # from the first index
    known = [results[0][1]]  # generations

    def is_new(since: int) -> Any:
        """Whether there is an answer of a new generation, or an error."""
        last = results[since:]
        return any(isinstance(each, Exception) or each[1] not in known for each in last)

    for swap in range(SWAPS):
        since = len(results)
        replace_index(folder / "served.index", others[swap % 2])
        if swap < len(others):
            server.until(partial(is_new, since))
            known += {each[1] for each in results[since:] if isinstance(each, tuple)} - {*known}
        else:  # between answers, whichever worker has reloaded
            server.until(lambda since=since: len(results) > since + 2)  # type: ignore[misc]
    expected = [hit.score for hit in cocite.open(others[1]).related("red", k=50)]

    def settled() -> bool:
        """Whether the last answers of both workers are those of the last index; or there are
        errors, which are reported below.
        """
        last = results[-30:]
        if any(isinstance(each, Exception) for each in last):
            return True
        bodies = {each[2] for each in last if len(last) == 30}
        scores = [[hit["score"] for hit in json.loads(body)["hits"]] for body in bodies]
        return scores == [expected]

    server.until(settled)
    stop.set()
    for client in clients:
        client.join()
    assert {each[0] for each in results} == {200}, [each for each in results if each[0] != 200][:3]
    answers: dict[str, set[bytes]] = {}
    for _, generation, body in results:
        answers.setdefault(generation, set()).add(body)
    assert len(answers) == 3  # the first index, and the two others
    assert all(len(bodies) == 1 for bodies in answers.values())


def test_reload_closes_old_generations(server: Server) -> None:
    """After many generations only the files of one are open."""
    workers = [int(line.split()[0]) for line in children(server.process.pid)]
    workers = [pid for pid in workers if files(pid)]
    assert len(workers) == 2

    def each_open_once() -> bool:
        return all(len(files(pid)) == len(set(files(pid))) for pid in workers)

    server.until(each_open_once)
    server.until(  # at the next look, if a thread still used an old one at the first
        lambda: not any(name.endswith("(deleted)") for pid in workers for name in files(pid))
    )


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def files(pid: int) -> list[str]:
    """The index files that a process has open."""
    targets = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if "/served.index/" in target or "/old/" in target:
            targets.append(target)
    return targets


def test_reload_refuses_damaged_index(
    server: Server, folder: Path, others: tuple[Path, Path]
) -> None:
    before, damaged = generation(server), folder / "bad"
    shutil.copytree(others[0], damaged)
    (victim,) = sorted(damaged.glob("in.samples-000000"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.chmod(0o644)
    victim.write_bytes(content)
    logged = len(server.log)
    replace_index(folder / "served.index", damaged)
    server.until(lambda: sum("keeping the old index" in line for line in server.log[logged:]) == 2)
    assert all(generation(server) == before for _ in range(10))
    shutil.rmtree(folder / "served.index")
    assert generation(server) == before  # whatever the number of looks: test_load.py
    shutil.copytree(others[0], folder / "served.index")
    server.until(lambda: all(generation(server) != before for _ in range(10)))


def test_log_json_prevents_forged_lines(server: Server) -> None:
    logged = len(server.log)
    name = 'x\n{"level": "error", "message": "forged"}\r\x1b[31m\u202e\u2028'
    server.get(f"/v1/related?node={quote(name)}")
    server.get("/v1/related?node=the-last-one")
    server.until(lambda: any("the-last-one" in line for line in server.log[logged:]))
    records = [json.loads(line) for line in server.log[logged:]]
    assert not [each for each in records if each["message"] == "forged"]
    assert not [line for line in server.log[logged:] if "\x1b" in line or "\u202e" in line]


@pytest.fixture(scope="module")
def slow_body(server: Server) -> Iterator[socket.socket]:
    """A connection whose body does not arrive; other tests run until the server closes it."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as connection:
        connection.sendall(
            b"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        yield connection


@pytest.mark.usefixtures("slow_body")
def test_server_answers_despite_slow_clients(server: Server) -> None:
    """Silent connections and those that trickle a header are closed; others get answers."""
    connections = []
    for number in range(SLOW_CLIENTS):
        connection = socket.create_connection(("127.0.0.1", server.port))
        if number % 2:
            connection.sendall(b"GET /v1/related?node=red HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        connections.append(connection)
        if number % 100 == 99:
            assert server.ask("related", node="red").status == 200
    poller = select.poll()
    try:
        for connection in connections:
            poller.register(connection, select.POLLIN)

        def closed() -> bool:
            """Whether the server closed one; meanwhile it answers others."""
            assert server.ask("related", node="red").status == 200
            for connection in connections[1::100]:
                with suppress(OSError):
                    connection.sendall(b"x")
            return bool(poller.poll(0))

        server.until(closed)
        for connection in connections[:: SLOW_CLIENTS // 20]:
            connection.settimeout(LIMIT)
            try:
                assert connection.recv(1) == b""  # closed by the server
            except ConnectionError:
                continue
    finally:
        for connection in connections:
            connection.close()


def test_server_times_out_slow_body(slow_body: socket.socket) -> None:
    assert b" 408 " in slow_body.recv(100)


def test_sigterm_loses_no_request_in_flight(server: Server) -> None:
    """Runs last: it ends the module's server."""
    body = json.dumps({"nodes": ["red", "blue"] * 150, "k": 50})
    responses: list[Any] = []
    sent = threading.Semaphore(0)
    ports: set[int] = set()

    def batch(media_type: str) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
        headers = {"Content-Type": "application/json", "Accept": media_type}
        connection.request("POST", "/v1/batch", body, headers)
        ports.add(connection.sock.getsockname()[1])
        sent.release()
        try:
            answer = connection.getresponse()
            responses.append((answer.status, answer.read()))
        except (OSError, http.client.HTTPException) as error:
            responses.append((error, b""))
        connection.close()

    media_types = ["application/json", "application/x-ndjson"] * 3
    clients = [threading.Thread(target=batch, args=(media_type,)) for media_type in media_types]
    for client in clients:
        client.start()
    for _ in clients:
        sent.acquire()
    server.until(lambda: not ports & unread_ports(server.port))
    os.kill(server.process.pid, signal.SIGTERM)
    for client in clients:
        client.join()
    assert [status for status, _ in responses] == [200] * len(media_types)
    assert all(body.count(b'"hits"') == 300 for _, body in responses)
    assert server.process.wait(LIMIT) == 0


def test_drain_time_fails_readyz_and_keeps_answering(folder: Path, start: Start) -> None:
    draining = start(str(folder / "web.index"), "--workers", "2", "--drain-time", "60")
    assert draining.get("/readyz").json == {"status": "ready"}
    pid = draining.process.pid
    before = {*children(pid)}
    os.kill(int(children(pid)[-1]), signal.SIGKILL)
    draining.until(lambda: bool({*children(pid)} - before))  # a new worker, not listening yet
    os.kill(draining.process.pid, signal.SIGTERM)
    draining.until(lambda: all(draining.get("/readyz").status == 503 for _ in range(10)))
    assert draining.get("/readyz").json == {"status": "ending"}
    assert draining.get("/healthz").status == 200
    response = draining.ask("related", node="red")
    assert response.status == 200, response.body
    assert draining.process.poll() is None
    os.kill(draining.process.pid, signal.SIGTERM)  # at once
    assert draining.process.wait(LIMIT) == 0


def unread_ports(port: int) -> set[int]:
    """The ports of clients whose connections are not accepted, or have unread bytes."""
    ports = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        local, remote = (int(words[i].rpartition(":")[2], 16) for i in (1, 2))
        unread, inode = int(words[4].rpartition(":")[2], 16), int(words[9])
        if local == port and (unread or not inode):
            ports.add(remote)
    return ports


@pytest.fixture(autouse=True)
def enough_descriptors() -> Iterator[None]:
    """Raise the limit of open files for all slow clients."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4 * SLOW_CLIENTS:
        pytest.skip(f"may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * SLOW_CLIENTS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_serve_memory_bounds_worker(start: Start, tmp_path: Path) -> None:
    """The index is larger than the memory left for it."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    nodes = 80_000
    generate_web(tmp_path / "g", nodes=nodes, links=320_000, seed=1)
    cocite.build(tmp_path / "g", tmp_path / "i", measure="psimrank", samples=24)
    command = [sys.executable, "-m", "cocite", "serve", str(tmp_path / "i"), "--threads", "2"]
    too_little = [*command, "--memory", "60MB"]
    refused = subprocess.run(too_little, check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    needed = re.search(r"with 2 threads, needs ([0-9.]+ MB) of memory", refused.stderr)
    assert needed is not None, refused.stderr
    server = start(str(tmp_path / "i"), "--threads", "2", "--memory", needed[1])
    names = cocite.open_graph(tmp_path / "g").names
    for node in range(0, nodes, 500):
        assert server.ask("related", node=names.name(node)).status == 200
    parent = server.process.pid
    (worker,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    status = Path(f"/proc/{worker}/status").read_text()
    peak = re.search(r"VmHWM:\s*(\d+)", status)
    assert peak is not None
    assert 1024 * int(peak[1]) <= 1.05 * parse_size(needed[1])
