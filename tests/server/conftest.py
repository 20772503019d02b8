"""A real server for each module of tests: a process of its own, on a free port."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("granian", reason="the extra serve is not installed")

import cocite
from cocite.options.serve import ServeOptions
from cocite.server.app import make_app
from cocite.server.results import Config, Limits, Served
from cocite.server.service import Service
from tests.clock import LIMIT, wait_for
from tests.server.browser import browser, visit, worlds

__all__ = ["Answer", "Server", "Start", "ask_app", "browser", "visit", "worlds"]

LINKS = [
    *((f"hub{i}", page) for i in range(12) for page in ("red", "blue", f"leaf{i}", "été & <b>")),
    *((f"hub{i}", "green") for i in range(6)),
    ("red", "blue"),
    ("blue", "https://example.org/?a=1&b=2"),
    ("hub1", "https://example.org/?a=1&b=2"),
]
"""Small, with names that need care in addresses and pages."""


CALM = ("--target-latency", "1000000", "--question-timeout", "600")
"""Whatever else the machine does meanwhile, all questions are answered, from all samples; a test of
what becomes of others says so itself."""


class Answer:
    """What came back."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """``cocite serve`` as a process; ``log`` is what it said."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "cocite", "serve", *CALM, *arguments, "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.port = self._port()
        self.until(lambda: self.get("/readyz").status == 200)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)

    def _port(self) -> int:
        self.until(lambda: any("at http://" in line for line in self.log))
        (found,) = (m[1] for line in self.log if (m := re.search(r"at http://\S+:(\d+)", line)))
        return int(found)

    def until(self, true: Callable[[], bool]) -> None:
        """Wait for something; fails if the server ends."""

        def event() -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if true():
                    return True
            assert self.process.poll() is None, "".join(self.log)
            return False

        try:
            wait_for(event)
        except AssertionError as error:
            error.add_note("".join(self.log[-20:]))
            raise

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            link.request(method, path, body, headers or {})
            return Answer(link.getresponse())
        finally:
            link.close()

    def get(self, path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("GET", path, headers=named)

    def ask(self, verb: str, **query: Any) -> Answer:
        return self.get(f"/v1/{verb}?{urlencode(query, doseq=True)}")

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, sent, {"Content-Type": "application/json", **named})

    def end(self) -> int:
        """SIGTERM; the exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        code = self.process.wait(LIMIT)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


async def ask_app(app: Any, path: str, body: Any = None, **headers: str) -> SimpleNamespace:
    """Ask an app in this process; ``body`` is sent as JSON, or as it is if it is bytes."""
    path, _, query = path.partition("?")
    sent: list[Any] = []
    data = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
    given = [{"type": "http.request", "body": data}]

    async def receive() -> Any:
        return given.pop() if given else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    told = {"host": "localhost"} | ({"content-type": "application/json"} if body else {})
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST" if body else "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(k.encode(), v.encode()) for k, v in told.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    start = next(each for each in sent if each["type"] == "http.response.start")
    found = b"".join(each.get("body", b"") for each in sent)
    heads = {k.decode().lower(): v.decode() for k, v in start["headers"]}
    plain = heads.get("content-type", "").endswith(("/json", "+json"))
    read = json.loads(found) if plain and found and "content-encoding" not in heads else None
    return SimpleNamespace(status=start["status"], headers=heads, body=found, json=read)


Start = Callable[..., Server]


@pytest.fixture
def serving() -> Iterator[Callable[..., "LocalServer"]]:
    """Starts servers in this process, which end with the test."""
    with contextlib.ExitStack() as stack:

        def starting(*given: Any, **options: Any) -> LocalServer:
            begun = LocalServer(*given, **options)
            stack.callback(begun.service.close)
            return begun

        yield starting


class LocalServer:
    """A server in this process, that looks at its index when it is told to."""

    def __init__(self, index: Path, limits: Limits | None = None, **options: Any) -> None:
        usual = {"no_requests": True, "reload_interval": 3600.0, "target_latency": 1e6}
        served = (Served(index.stem, str(index)),)
        given = ServeOptions(**usual | options)
        self.service = Service(Config(served, given, limits=limits or Limits()))
        self.app = make_app(self.service)

    def __call__(self, path: str, sent: Any = None, **headers: str) -> SimpleNamespace:
        return asyncio.run(ask_app(self.app, path, sent, **headers))


Serving = Callable[..., LocalServer]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph and an index of it: ``web.graph``, ``web.index``."""
    place = tmp_path_factory.mktemp("service")
    rows = "".join(f"{source}\t{target}\n" for source, target in LINKS)
    (place / "links.tsv").write_text(rows, "utf-8")
    graph = cocite.ingest(place / "links.tsv", place / "web.graph", delimiter="tab", header="no")
    cocite.build(graph, place / "web.index", measure="psimrank", samples=60)
    return place


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """Starts servers, which end with the module."""
    begun: list[Server] = []

    def starting(*arguments: str) -> Server:
        begun.append(Server(*arguments))
        return begun[-1]

    yield starting
    for server in begun:
        server.end()


@pytest.fixture(scope="module")
def server(folder: Path, start: Start) -> Server:
    """Serves ``web``; ``near``, without samples; and ``one``, with a sample and with titles."""
    near, one = folder / "near.index", folder / "one.index"
    cocite.build(cocite.Graph.open(folder / "web.graph"), near)
    links, output, titles = folder / "links.tsv", folder / "named.graph", folder / "titles.tsv"
    titles.write_text("red\tRed\ngreen\tGreen\n", "utf-8")
    named = cocite.ingest(links, output, delimiter="tab", header="no", titles=titles)
    cocite.build(named, one, measure="psimrank", samples=1)
    return start(str(folder / "web.index"), f"near={near}", f"one={one}")
