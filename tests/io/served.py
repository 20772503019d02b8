"""A local web server with given answers, which records its requests."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.clock import Clock

Answer = tuple[int, dict[str, str], bytes]


def html(*urls: str, title: str = "", head: str = "") -> str:
    body = "".join(f'<a href="{url}">x</a>' for url in urls)
    return f"<!doctype html><title>{title}</title>{head}<body>{body}"


class Served:
    """A local server: its answers, its requests, and how many it had at once."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer | Callable[[], Answer]] = {}
        self.requests: list[tuple[str, float, str]] = []
        self.max_active = self._active = 0
        self._lock = threading.Lock()
        self.url, self.clock = "", Clock()

    def page(self, path: str, *urls: str, title: str = "") -> None:
        self.pages[path] = 200, {"Content-Type": "text/html"}, html(*urls, title=title).encode()

    @contextmanager
    def answer(self, path: str, agent: str) -> Iterator[Answer]:
        with self._lock:
            self.requests.append((path, self.clock.now, agent))
            self._active += 1
            self.max_active = max(self.max_active, self._active)
        try:
            found = self.pages.get(path, (404, {"Content-Type": "text/html"}, b"lost"))
            yield found() if callable(found) else found
        finally:
            with self._lock:
                self._active -= 1

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.requests]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    server = Served()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with server.answer(self.path, self.headers["User-Agent"]) as (status, header, body):
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | header).items():
                    self.send_header(name, value)
                self.send_header("Connection", "close")
                if body:
                    self.end_headers()
                    self.wfile.write(body[:-1])
            if not body:  # the answer ends with its headers
                self.end_headers()
            self.wfile.write(body[-1:])  # a client may send its next request now

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        server.url = f"http://127.0.0.1:{http_server.server_port}"
        thread = threading.Thread(target=http_server.serve_forever, daemon=True)
        thread.start()
        yield server
        http_server.shutdown()
        thread.join()
