"""A site on this machine: a server that answers as it is told, and what it was asked."""

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
    """A server on this machine: what it answers, and what it was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer | Callable[[], Answer]] = {}
        self.asked: list[tuple[str, float, str]] = []
        self.most = self._now = 0
        self._lock = threading.Lock()
        self.url, self.clock = "", Clock()

    def page(self, path: str, *urls: str, title: str = "") -> None:
        self.pages[path] = 200, {"Content-Type": "text/html"}, html(*urls, title=title).encode()

    @contextmanager
    def answer(self, path: str, agent: str) -> Iterator[Answer]:
        with self._lock:
            self.asked.append((path, self.clock.now, agent))
            self._now += 1
            self.most = max(self.most, self._now)
        try:
            found = self.pages.get(path, (404, {"Content-Type": "text/html"}, b"lost"))
            yield found() if callable(found) else found
        finally:
            with self._lock:
                self._now -= 1

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    made = Served()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with made.answer(self.path, self.headers["User-Agent"]) as (status, header, body):
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | header).items():
                    self.send_header(name, value)
                self.send_header("Connection", "close")
                if body:
                    self.end_headers()
                    self.wfile.write(body[:-1])
            if not body:  # the end of the headers is the end of the answer
                self.end_headers()
            self.wfile.write(body[-1:])  # a client may ask again as soon as it has the last byte

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        made.url = f"http://127.0.0.1:{running.server_port}"
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield made
        running.shutdown()
        thread.join()
