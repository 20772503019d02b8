"""Pages parsed side by side, in processes that may die: a page that kills one is a page without
links, and is counted.

Each thread has one process, which is begun anew if it dies or takes longer than a minute for a
page. Pages come back in the order in which they went in; a few a thread are in memory.

Cost: some 0.7 ms a page of 40 KB, and 0.1 ms to send it there and back.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

from cocite.extras import need

__all__ = ["Page", "Pages", "Parsed"]

_PATIENCE = 60.0
"""Seconds for one page."""
_SCRIPT = str(Path(__file__).with_name("page.py"))
_AHEAD = 8
"""Pages in memory for each thread."""


class Page(NamedTuple):
    """A page: what its reader calls it, its URL, its bytes, and what the server said of them."""

    key: Any
    url: str
    content: bytes
    charset: str = ""


class Parsed(NamedTuple):
    """What was found on a page (``page.links_of``); None, and why, if its parser died."""

    key: Any
    found: dict[str, Any] | None
    why: str = ""


class Pages:
    """``with Pages(threads, purpose) as pages: pages.parsed(...)``; ``purpose`` is what needs it,
    in the message that a library is missing, and ``extra`` what it comes with.
    """

    def __init__(self, threads: int, purpose: str, extra: str = "html") -> None:
        need("selectolax", purpose, extra)
        need("ada_url", purpose, extra)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="cocite-html")
        self._idle: SimpleQueue[_Parser] = SimpleQueue()
        self._parsers = [_Parser() for _ in range(threads)]
        for parser in self._parsers:
            self._idle.put(parser)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        for parser in self._parsers:
            parser.end()

    def parsed(self, pages: Iterable[Page]) -> Iterator[Parsed]:
        """What is on each page, in the same order."""
        waiting: deque[Future[Parsed]] = deque()
        for page in pages:
            waiting.append(self._pool.submit(self._parse, page))
            if len(waiting) >= self._threads * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _parse(self, page: Page) -> Parsed:
        parser = self._idle.get()
        try:
            found, why = parser.parse(page)
        finally:
            self._idle.put(parser)
        return Parsed(page.key, found, why)


class _Parser:
    """One process that parses."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, page: Page) -> tuple[dict[str, Any] | None, str]:
        """What was found, or why nothing was."""
        process = self._process or self._begin()
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
                return None, f"its parser took more than {_PATIENCE:.0f} seconds"
            answer = process.stdout.read(int.from_bytes(process.stdout.read(8), "little"))
            if answer:
                found: dict[str, Any] = json.loads(answer)
                return found, ""
        except BrokenPipeError:
            pass
        self.end()
        return None, "its parser died"

    def _begin(self) -> subprocess.Popen[bytes]:
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", _SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": paths},
        )
        return self._process

    def end(self) -> None:
        """Let it go, or see that it goes."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(BrokenPipeError):
                        stream.close()
            process.wait()
