"""Parse pages in parallel, with one process per thread (``io/readers/html/page.py``).

A parser that crashes, or takes more than a minute for a page, is restarted; that page then has no
links. A page of 40 KB takes about 0.8 ms, on all threads. Up to eight pages per thread are in
memory.
"""

from __future__ import annotations

import json
import select
import subprocess
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

import xxhash

from cocite.extras import need
from cocite.io.readers.spreadsheet import run_script

_PATIENCE = 60.0
"""Time limit for a page, in seconds."""
_SCRIPT = str(Path(__file__).with_name("page.py"))
_AHEAD = 8
"""Maximum number of pages in memory per thread."""


_REMEMBERED: ContextVar[dict[bytes, Parsed] | None] = ContextVar("_REMEMBERED", default=None)


@contextmanager
def remembered() -> Iterator[None]:
    """Cache the parsed pages of a folder that is read repeatedly, at a few kilobytes per page."""
    before = _REMEMBERED.set({})
    try:
        yield
    finally:
        _REMEMBERED.reset(before)


class HtmlPage(NamedTuple):
    """A page to parse; ``charset`` is the encoding that the server declared."""

    key: Any
    url: str
    content: bytes
    charset: str = ""


class Parsed(NamedTuple):
    """The result of the script's ``links_of``, or None and the reason ``why``."""

    key: Any
    found: dict[str, Any] | None
    why: str = ""


class Pages:
    """Context manager for the parser processes of a run.

    ``purpose`` and ``extra`` are for the message about missing ``libraries``; ``script`` is the
    parser, by default the one for HTML.
    """

    def __init__(
        self,
        threads: int,
        purpose: str,
        extra: str = "html",
        script: str = "",
        libraries: Sequence[str] = ("selectolax", "ada_url"),
    ) -> None:
        for library in libraries:
            need(library, purpose, extra)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="cocite-html")
        self._idle: SimpleQueue[_Parser] = SimpleQueue()
        self._script = script or _SCRIPT
        self._parsers = [_Parser(self._script) for _ in range(threads)]
        for parser in self._parsers:
            self._idle.put(parser)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown(cancel_futures=True)
        for parser in self._parsers:
            parser.end()

    def parsed(self, pages: Iterable[HtmlPage]) -> Iterator[Parsed]:
        """Yield the result for each page, in order."""
        known, now = _REMEMBERED.get(), dict[bytes, Parsed]()
        waiting: deque[tuple[bytes, Future[Parsed]]] = deque()

        def next_one() -> Parsed:
            digest, future = waiting.popleft()
            parsed = future.result()
            if known is not None and parsed.found is not None:
                now[digest] = parsed
            return parsed

        for page in pages:
            digest = b"" if known is None else self._digest(page)
            if known is not None and digest in known:
                future = Future[Parsed]()
                future.set_result(known[digest]._replace(key=page.key))
            else:
                future = self._pool.submit(self._parse, page)
            waiting.append((digest, future))
            if len(waiting) >= self._threads * _AHEAD:
                yield next_one()
        while waiting:
            yield next_one()
        if known is not None:  # evict removed pages
            known.clear()
            known.update(now)

    def _digest(self, page: HtmlPage) -> bytes:
        head = f"{self._script}\n{page.url}\n{page.charset}\n".encode()
        return xxhash.xxh3_128_digest(head + page.content)

    def _parse(self, page: HtmlPage) -> Parsed:
        parser = self._idle.get()
        try:
            found, why = parser.parse(page)
        finally:
            self._idle.put(parser)
        return Parsed(page.key, found, why)


class _Parser:
    def __init__(self, script: str) -> None:
        self._script = script
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, page: HtmlPage) -> tuple[dict[str, Any] | None, str]:
        """Return (result, ""), or (None, reason)."""
        process = self._process = self._process or run_script(self._script)
        assert process.stdin is not None
        assert process.stdout is not None
        request = json.dumps({"url": page.url, "charset": page.charset}).encode() + b"\n"
        size = len(request) + len(page.content)
        try:
            process.stdin.write(size.to_bytes(8, "little") + request + page.content)
            process.stdin.flush()
            poll = select.poll()
            poll.register(process.stdout, select.POLLIN)
            if not poll.poll(_PATIENCE * 1000):
                self.end()
                return None, f"parser took more than {_PATIENCE:.0f} seconds"
            answer = process.stdout.read(int.from_bytes(process.stdout.read(8), "little"))
            if answer:
                found: dict[str, Any] = json.loads(answer)
                return found, ""
        except BrokenPipeError:
            pass
        self.end()
        return None, "parser crashed"

    def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(BrokenPipeError):
                        stream.close()
            process.wait()
