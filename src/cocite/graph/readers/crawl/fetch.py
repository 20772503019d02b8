"""Pages fetched from their servers, politely: urllib, robots.txt (RFC 9309, by Protego), a delay.

* A host gets one request at a time, and the next one not before the delay is over; that of its
  robots.txt, if it is longer (to a minute). Hosts are asked side by side, eight at most.
* Nothing is asked that robots.txt forbids to "cocite". Where there is none (400 to 499), all is
  allowed; where it cannot be read (500 to 599, no answer), nothing is.
* Only hosts that were named are asked: redirects to others are noted, and not followed. A redirect
  is a URL of its own. After ten of them in a row no more are followed.
* A body is cut off at 32 MiB, an answer that does not begin, or stands still, after 30 seconds, and
  one that takes longer than two minutes. "Too many requests" and "unavailable" (429, 503) are asked
  once more, after what they say, if that is a minute at most.

Nothing is sent but the address, what is understood and the name of the program: no cookies, no
referrer. Proxies are those of the environment.
"""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from email.message import Message as Header
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from cocite import __version__
from cocite.extras import need
from cocite.graph.readers.crawl.message import Message
from cocite.graph.readers.crawl.responses import LARGEST, REDIRECTS
from cocite.graph.readers.html.page import joined

__all__ = ["Fetched", "Fetcher"]

_HOPS = 10
_HOSTS = 8
_TIMEOUT, _WHOLE = 30.0, 120.0
_LONGEST_DELAY = 60.0
_AGENT = f"cocite/{__version__}"
_ROBOTS = 500 << 10
"""Bytes of a robots.txt that are read, as RFC 9309 has it."""


class Fetched(NamedTuple):
    """What came of a URL: a message, or ``why`` there is none. ``at`` is when, as text."""

    url: str
    at: str
    message: Message | None
    why: str = ""


class Fetcher:
    """``for fetched in Fetcher(delay).fetch(urls)``; ``delay`` is in seconds."""

    def __init__(self, delay: float) -> None:
        self._robots_of = need("protego", "--fetch", "fetch").Protego
        self._delay = delay
        self._opener = urllib.request.build_opener(_NoRedirects)
        self._opener.addheaders = []
        self._rules: dict[str, Any] = {}
        self._next: dict[str, float] = {}

    def fetch(self, urls: Iterable[str]) -> Iterator[Fetched]:
        """Fetch pages, and those that they are redirected to, each once; in the order in which
        they come.
        """
        waiting: dict[str, deque[tuple[str, int]]] = defaultdict(deque)
        for url in dict.fromkeys(urls):
            waiting[_host(url)].append((url, 0))
        seen = {url for each in waiting.values() for url, _ in each}
        hosts = deque(waiting)
        with ThreadPoolExecutor(_HOSTS, thread_name_prefix="cocite-fetch") as pool:
            running: dict[Future[Fetched], tuple[str, int]] = {}
            try:
                while hosts or running:
                    while hosts and len(running) < _HOSTS:
                        host = hosts.popleft()
                        url, hops = waiting[host].popleft()
                        running[pool.submit(self._one, host, url)] = host, hops
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        host, hops = running.pop(future)
                        fetched = future.result()
                        to = _leads(fetched)
                        if to and to not in seen and _host(to) in waiting and hops < _HOPS:
                            seen.add(to)
                            there = waiting[_host(to)]
                            asked = _host(to) in hosts or any(
                                other == _host(to) for other, _ in running.values()
                            )
                            there.append((to, hops + 1))
                            if not asked and _host(to) != host:
                                hosts.append(_host(to))
                        if waiting[host]:
                            hosts.append(host)
                        yield fetched
            finally:
                for future in running:
                    future.cancel()
                pool.shutdown(wait=True, cancel_futures=True)

    def _one(self, host: str, url: str) -> Fetched:
        """One page, when its host's turn has come."""
        rules = self._rules_of(host, url)
        if rules is None:
            return Fetched(url, _now(), None, "its host has no robots.txt that can be read")
        if not rules.can_fetch(url, "cocite"):
            return Fetched(url, _now(), None, "robots.txt forbids it")
        told = rules.crawl_delay("cocite") or 0.0
        delay = max(self._delay, min(float(told), _LONGEST_DELAY))
        fetched = self._ask(host, url, delay, LARGEST)
        if fetched.message is not None and fetched.message.status in (429, 503):
            after = fetched.message.header.get("retry-after", "")
            if after.isdecimal() and int(after) <= _LONGEST_DELAY:
                fetched = self._ask(host, url, max(delay, float(after)), LARGEST)
        return fetched

    def _rules_of(self, host: str, url: str) -> Any:
        """What robots.txt says, read once; None if it cannot be read. Redirects of it are followed
        on the same host.
        """
        if host not in self._rules:
            where: str | None = f"{urlsplit(url).scheme}://{host}/robots.txt"
            found: Any = None
            for _ in range(5):
                if where is None or _host(where) != host:
                    break
                fetched = self._ask(host, where, self._delay, _ROBOTS)
                message = fetched.message
                if message is None:
                    break
                if message.status in REDIRECTS:
                    where = _leads(fetched)
                    continue
                if 200 <= message.status < 300:
                    found = self._robots_of.parse(message.body.decode("utf-8", "replace"))
                elif 400 <= message.status < 500:
                    found = self._robots_of.parse("")
                break
            self._rules[host] = found
        return self._rules[host]

    def _ask(self, host: str, url: str, delay: float, most: int) -> Fetched:
        """One request. A host is asked by one thread at a time."""
        time.sleep(max(0.0, self._next.get(host, 0.0) - time.monotonic()))
        request = urllib.request.Request(
            url,
            headers={
                "User-Agent": _AGENT,
                "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5",
                "Accept-Encoding": "gzip, deflate",
            },
        )
        at = _now()
        try:
            try:
                answer = self._opener.open(request, timeout=_TIMEOUT)
            except urllib.error.HTTPError as error:
                answer = error
            with answer:
                header: dict[str, str] = {}
                for name, value in answer.headers.items():
                    header.setdefault(name.lower(), " ".join(value.split()))
                header.pop("transfer-encoding", None)  # is undone
                body = _body(answer, most)
                if body is None:
                    return Fetched(url, at, None, f"it takes longer than {_WHOLE:.0f} seconds")
                length = header.get("content-length", "")
                if length.isdecimal() and len(body) < min(int(length), most):
                    return Fetched(url, at, None, f"its answer ends after {len(body):,} bytes")
                return Fetched(url, at, Message(answer.status, header, body))
        except (OSError, http.client.HTTPException, ValueError) as error:
            why = getattr(error, "reason", None) or error
            return Fetched(url, at, None, f"it cannot be fetched ({why or type(error).__name__})")
        finally:
            self._next[host] = time.monotonic() + delay


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirects are answers as others."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Header, newurl: str
    ) -> None:
        """Not followed."""


def _body(answer: Any, most: int) -> bytes | None:
    """The body, or its first ``most`` + 1 bytes; None if it takes too long."""
    parts, size, end = list[bytes](), 0, time.monotonic() + _WHOLE
    while size <= most and (piece := answer.read1(1 << 16)):
        parts.append(piece)
        size += len(piece)
        if time.monotonic() > end:
            return None
    return b"".join(parts)[: most + 1]


def _leads(fetched: Fetched) -> str | None:
    """Where a redirect leads; None of what is none."""
    message = fetched.message
    if message is None or message.status not in REDIRECTS or not message.header.get("location"):
        return None
    to = joined(message.header["location"], fetched.url)
    return to if to is not None and to.startswith(("http:", "https:")) else None


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
