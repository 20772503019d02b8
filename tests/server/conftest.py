"""A real server for each test module: a separate process on a free port."""

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
from tests.server.browser import browser, demo_server, visit, visits

__all__ = ["Answer", "Server", "Start", "ask_app", "browser", "demo_server", "visit", "visits"]

LINKS = [
    *((f"hub{i}", page) for i in range(12) for page in ("red", "blue", f"leaf{i}", "été & <b>")),
    *((f"hub{i}", "green") for i in range(6)),
    ("red", "blue"),
    ("blue", "https://example.org/?a=1&b=2"),
    ("hub1", "https://example.org/?a=1&b=2"),
]
"""A small graph, with names that need escaping in URLs and HTML."""


CALM = ("--target-latency", "1000000", "--question-timeout", "600")
"""Options under which a busy machine still answers every query from all samples. Tests of load and
timeouts override them."""


class Answer:
    """A response of the server."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """A ``cocite serve`` process; ``log`` holds its stderr."""

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
        (port,) = (m[1] for line in self.log if (m := re.search(r"at http://\S+:(\d+)", line)))
        return int(port)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition; fail if the server exits."""

        def happened() -> bool:
            with contextlib.suppress(OSError, http.client.HTTPException):
                if condition():
                    return True
            assert self.process.poll() is None, "".join(self.log)
            return False

        try:
            wait_for(happened)
        except AssertionError as error:
            error.add_note("".join(self.log[-20:]))
            raise

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            connection.request(method, path, body, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("GET", path, headers=named)

    def ask(self, verb: str, **query: Any) -> Answer:
        return self.get(f"/v1/{verb}?{urlencode(query, doseq=True)}")

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request("POST", path, content, {"Content-Type": "application/json", **named})

    def end(self) -> int:
        """Send SIGTERM; return the exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGTERM)
        code = self.process.wait(LIMIT)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


async def ask_app(app: Any, path: str, body: Any = None, **headers: str) -> SimpleNamespace:
    """Call an app in this process; ``body`` is sent as JSON, or unchanged if it is bytes."""
    path, _, query = path.partition("?")
    outgoing: list[Any] = []
    payload = body if isinstance(body, bytes) else json.dumps(body).encode() if body else b""
    incoming = [{"type": "http.request", "body": payload}]

    async def receive() -> Any:
        return incoming.pop() if incoming else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        outgoing.append(message)

    request_headers = {"host": "localhost"} | ({"content-type": "application/json"} if body else {})
    request_headers |= {name.replace("_", "-"): value for name, value in headers.items()}
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
        "headers": [(k.encode(), v.encode()) for k, v in request_headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    start = next(each for each in outgoing if each["type"] == "http.response.start")
    content = b"".join(each.get("body", b"") for each in outgoing)
    response_headers = {k.decode().lower(): v.decode() for k, v in start["headers"]}
    is_json = response_headers.get("content-type", "").endswith(("/json", "+json"))
    document = (
        json.loads(content)
        if is_json and content and "content-encoding" not in response_headers
        else None
    )
    return SimpleNamespace(
        status=start["status"], headers=response_headers, body=content, json=document
    )


Start = Callable[..., Server]


@pytest.fixture
def serving() -> Iterator[Callable[..., "LocalServer"]]:
    """Start servers in this process; they close with the test."""
    with contextlib.ExitStack() as stack:

        def start_local(*arguments: Any, **options: Any) -> LocalServer:
            server = LocalServer(*arguments, **options)
            stack.callback(server.service.close)
            return server

        yield start_local


class LocalServer:
    """A server in this process, which reloads its index only on request."""

    def __init__(self, index: Path, limits: Limits | None = None, **options: Any) -> None:
        defaults = {"no_requests": True, "reload_interval": 3600.0, "target_latency": 1e6}
        served = (Served(index.stem, str(index)),)
        serve_options = ServeOptions(**defaults | options)
        self.service = Service(Config(served, serve_options, limits=limits or Limits()))
        self.app = make_app(self.service)

    def __call__(self, path: str, sent: Any = None, **headers: str) -> SimpleNamespace:
        return asyncio.run(ask_app(self.app, path, sent, **headers))


Serving = Callable[..., LocalServer]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph and its index: ``web.graph``, ``web.index``."""
    folder = tmp_path_factory.mktemp("service")
    rows = "".join(f"{source}\t{target}\n" for source, target in LINKS)
    (folder / "links.tsv").write_text(rows, "utf-8")
    graph = cocite.ingest(folder / "links.tsv", folder / "web.graph", delimiter="tab", header="no")
    cocite.build(graph, folder / "web.index", measure="psimrank", samples=60)
    return folder


@pytest.fixture(scope="module")
def start() -> Iterator[Start]:
    """Start servers; they end with the module."""
    servers: list[Server] = []

    def start_server(*arguments: str) -> Server:
        servers.append(Server(*arguments))
        return servers[-1]

    yield start_server
    for server in servers:
        server.end()


@pytest.fixture(scope="module")
def server(folder: Path, start: Start) -> Server:
    """Serve ``web``; ``near``, without samples; and ``one``, with one sample and with titles."""
    near, one = folder / "near.index", folder / "one.index"
    cocite.build(cocite.Graph.open(folder / "web.graph"), near)
    links, output, titles = folder / "links.tsv", folder / "named.graph", folder / "titles.tsv"
    titles.write_text("red\tRed\ngreen\tGreen\n", "utf-8")
    named = cocite.ingest(links, output, delimiter="tab", header="no", titles=titles)
    cocite.build(named, one, measure="psimrank", samples=1)
    return start(str(folder / "web.index"), f"near={near}", f"one={one}")
