"""A server while things happen to it: its index is replaced, clients dawdle, it is told to end."""

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

SWAPS, DAWDLERS = 100, 1000


@pytest.fixture(scope="module")
def others(folder: Path) -> tuple[Path, Path]:
    """Two indexes that answer differently, to take the place of the one that is served."""
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


def put(place: Path, made: Path) -> None:
    """Have a copy of an index take the place of another, as cocite does."""
    new, old = place.with_name("new"), place.with_name("old")
    shutil.copytree(made, new)
    place.rename(old)
    new.rename(place)
    shutil.rmtree(old)


def asking(server: Server, stop: threading.Event, found: list[Any], path: str) -> None:
    """Ask again and again over one connection."""
    link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
    while not stop.is_set():
        try:
            link.request("GET", path)
            answer = link.getresponse()
            found.append((answer.status, answer.headers["cocite-generation"], answer.read()))
        except (OSError, http.client.HTTPException) as error:
            found.append(error)
            link.close()
    link.close()


def generation(server: Server) -> str:
    return str(server.ask("related", node="red").headers["cocite-generation"])


def test_swaps_mix_no_answers(server: Server, folder: Path, others: tuple[Path, Path]) -> None:
    stop, found = threading.Event(), []  # type: ignore[var-annotated]
    path = "/v1/related?node=red&k=50"
    clients = [threading.Thread(target=asking, args=(server, stop, found, path)) for _ in range(3)]
    for client in clients:
        client.start()
    server.until(lambda: bool(found))  # by what was there
    known = [found[0][1]]  # generations

    def told(since: int) -> Any:
        """Whether there is an answer of a generation that was put there, or an error."""
        last = found[since:]
        return any(isinstance(each, Exception) or each[1] not in known for each in last)

    for swap in range(SWAPS):
        since = len(found)
        put(folder / "served.index", others[swap % 2])
        if swap < len(others):
            server.until(partial(told, since))
            known += {each[1] for each in found[since:] if isinstance(each, tuple)} - {*known}
        else:  # amid answers, whichever of both processes has looked meanwhile
            server.until(lambda since=since: len(found) > since + 2)  # type: ignore[misc]
    expected = [hit.score for hit in cocite.open(others[1]).related("red", k=50)]

    def settled() -> bool:
        """The last answers, of both processes, are those of the last one that was put there; or
        there are errors, which are told below.
        """
        last = found[-30:]
        if any(isinstance(each, Exception) for each in last):
            return True
        bodies = {each[2] for each in last if len(last) == 30}
        scores = [[hit["score"] for hit in json.loads(body)["hits"]] for body in bodies]
        return scores == [expected]

    server.until(settled)
    stop.set()
    for client in clients:
        client.join()
    assert {each[0] for each in found} == {200}, [e for e in found if e[0] != 200][:3]
    answers: dict[str, set[bytes]] = {}
    for _, generation, body in found:
        answers.setdefault(generation, set()).add(body)
    assert len(answers) == 3  # that which was there, and the two
    assert all(len(bodies) == 1 for bodies in answers.values())


def test_old_generations_are_closed(server: Server) -> None:
    """Each has its files open for as long as it is: after a hundred there are those of one."""
    workers = [int(line.split()[0]) for line in children(server.process.pid)]
    workers = [pid for pid in workers if files(pid)]
    assert len(workers) == 2

    def one_each() -> bool:
        return all(len(files(pid)) == len(set(files(pid))) for pid in workers)

    server.until(one_each)
    server.until(  # swept at the next look, where a thread had an old one in hand at the first
        lambda: not any(name.endswith("(deleted)") for pid in workers for name in files(pid))
    )


def children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def files(pid: int) -> list[str]:
    """The files of the index that a process has open."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:
            continue
        if "/served.index/" in target or "/old/" in target:
            found.append(target)
    return found


def test_damaged_index_is_refused(server: Server, folder: Path, others: tuple[Path, Path]) -> None:
    before, bad = generation(server), folder / "bad"
    shutil.copytree(others[0], bad)
    (victim,) = sorted(bad.glob("in.samples-000000"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.chmod(0o644)
    victim.write_bytes(content)
    said = len(server.log)
    put(folder / "served.index", bad)
    server.until(lambda: sum("keeping the old index" in line for line in server.log[said:]) == 2)
    assert all(generation(server) == before for _ in range(10))
    shutil.rmtree(folder / "served.index")
    assert generation(server) == before  # however often it is looked at: test_load.py
    shutil.copytree(others[0], folder / "served.index")
    server.until(lambda: all(generation(server) != before for _ in range(10)))


def test_lines_of_the_log_cannot_be_forged(server: Server) -> None:
    said = len(server.log)
    name = 'x\n{"level": "error", "message": "forged"}\r\x1b[31m\u202e\u2028'
    server.get(f"/v1/related?node={quote(name)}")
    server.get("/v1/related?node=the-last-one")
    server.until(lambda: any("the-last-one" in line for line in server.log[said:]))
    told = [json.loads(line) for line in server.log[said:]]
    assert not [each for each in told if each["message"] == "forged"]
    assert not [line for line in server.log[said:] if "\x1b" in line or "\u202e" in line]


@pytest.fixture(scope="module")
def trickling(server: Server) -> Iterator[socket.socket]:
    """A connection whose body does not come. Until it is given up others are waited for."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=LIMIT) as link:
        link.sendall(
            b"POST /v1/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        yield link


@pytest.mark.usefixtures("trickling")
def test_dawdlers_keep_nobody_from_answers(server: Server) -> None:
    """Connections that trickle a head, a byte a second, or are silent: they end, others do not."""
    links = []
    for number in range(DAWDLERS):
        link = socket.create_connection(("127.0.0.1", server.port))
        if number % 2:
            link.sendall(b"GET /v1/related?node=red HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        links.append(link)
        if number % 100 == 99:
            assert server.ask("related", node="red").status == 200
    watched = select.poll()
    try:
        for link in links:
            watched.register(link, select.POLLIN)

        def closed() -> bool:
            """By the server, and meanwhile others are answered."""
            assert server.ask("related", node="red").status == 200
            for link in links[1::100]:
                with suppress(OSError):
                    link.sendall(b"x")
            return bool(watched.poll(0))

        server.until(closed)
        for link in links[:: DAWDLERS // 20]:
            link.settimeout(LIMIT)
            try:
                assert link.recv(1) == b""  # closed by the server
            except ConnectionError:
                continue
    finally:
        for link in links:
            link.close()


def test_a_body_that_trickles_is_given_up(trickling: socket.socket) -> None:
    assert b" 408 " in trickling.recv(100)


def test_sigterm_loses_no_request_in_flight(server: Server) -> None:
    """The last test of this server."""
    body = json.dumps({"nodes": ["red", "blue"] * 150, "k": 50})
    found: list[Any] = []
    sent = threading.Semaphore(0)
    ports: set[int] = set()

    def batch(form: str) -> None:
        link = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LIMIT)
        headers = {"Content-Type": "application/json", "Accept": form}
        link.request("POST", "/v1/batch", body, headers)
        ports.add(link.sock.getsockname()[1])
        sent.release()
        try:
            answer = link.getresponse()
            found.append((answer.status, answer.read()))
        except (OSError, http.client.HTTPException) as error:
            found.append((error, b""))
        link.close()

    forms = ["application/json", "application/x-ndjson"] * 3
    clients = [threading.Thread(target=batch, args=(form,)) for form in forms]
    for client in clients:
        client.start()
    for _ in clients:
        sent.acquire()
    server.until(lambda: not ports & not_read(server.port))
    os.kill(server.process.pid, signal.SIGTERM)
    for client in clients:
        client.join()
    assert [status for status, _ in found] == [200] * len(forms)
    assert all(body.count(b'"hits"') == 300 for _, body in found)
    assert server.process.wait(LIMIT) == 0


def test_a_server_that_is_about_to_end_says_so_and_goes_on(folder: Path, start: Start) -> None:
    own = start(str(folder / "web.index"), "--workers", "2", "--drain-time", "60")
    assert own.get("/readyz").json == {"status": "ready"}
    pid = own.process.pid
    before = {*children(pid)}
    os.kill(int(children(pid)[-1]), signal.SIGKILL)
    own.until(lambda: bool({*children(pid)} - before))  # in its place, and does not listen yet
    os.kill(own.process.pid, signal.SIGTERM)
    own.until(lambda: all(own.get("/readyz").status == 503 for _ in range(10)))
    assert own.get("/readyz").json == {"status": "ending"}
    assert own.get("/healthz").status == 200
    found = own.ask("related", node="red")
    assert found.status == 200, found.body
    assert own.process.poll() is None
    os.kill(own.process.pid, signal.SIGTERM)  # at once
    assert own.process.wait(LIMIT) == 0


def not_read(port: int) -> set[int]:
    """The ports of clients whose connections are not accepted yet, or have bytes to be read."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        here, there = (int(words[i].rpartition(":")[2], 16) for i in (1, 2))
        unread, inode = int(words[4].rpartition(":")[2], 16), int(words[9])
        if here == port and (unread or not inode):
            found.add(there)
    return found


@pytest.fixture(autouse=True)
def enough_files() -> Iterator[None]:
    """Those of a thousand connections."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4 * DAWDLERS:
        pytest.skip(f"may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4 * DAWDLERS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_each_process_takes_the_memory_that_is_given(start: Start, tmp_path: Path) -> None:
    """The index is larger than what remains for it."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    nodes = 80_000
    generate_web(tmp_path / "g", nodes=nodes, links=320_000, seed=1)
    cocite.build(tmp_path / "g", tmp_path / "i", measure="psimrank", samples=24)
    command = [sys.executable, "-m", "cocite", "serve", str(tmp_path / "i"), "--threads", "2"]
    small = [*command, "--memory", "60MB"]
    refused = subprocess.run(small, check=False, capture_output=True, text=True)
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
