"""Fetch pages with httpx, respecting robots.txt (RFC 9309, using Protego) and a delay.

Only hosts in the input are contacted: at most eight at a time, each for one page at a time. The
delay between requests to a host is ``--delay``, or the delay in robots.txt if longer (up to a
minute). If robots.txt cannot be read (status 500 to 599, or no response), nothing is fetched from
the host; if it is missing, everything is allowed. Status 429 and 503 are retried once if
Retry-After is at most a minute. At most ten redirects are followed, under the same rules.

A body is truncated at 32 MiB. A stalled response ends after 30 seconds, any response after two
minutes, and a run after ten minutes plus ten seconds per page, excluding delays. No cookies or
referrers are sent; proxies come from the environment. Requests run on an event loop in a separate
thread, so an interrupt cancels them immediately. At most eight pages are in memory.
"""

from __future__ import annotations

import asyncio
import io
import threading
import time
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy
from queue import SimpleQueue
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from cocite import __version__
from cocite.errors import InputError, UnrecognizedInput
from cocite.extras import need
from cocite.io.readers.contract import FormatReader, Job, PagesFound, Read
from cocite.io.readers.crawl.captures import (
    ERROR,
    LARGEST,
    REDIRECTS,
    Captures,
    HttpMessage,
    body_of,
    is_web,
)
from cocite.io.readers.crawl.sitemap import Listed, listed_in, read_listed
from cocite.io.readers.crawl.warc import refuse_site
from cocite.io.readers.html.page import joined
from cocite.io.readers.html.parsers import HtmlPage, Pages
from cocite.io.readers.rows import clean_rows
from cocite.io.readers.sources import Source

_HOPS = 10
_HOSTS = 8
_TIMEOUT, _WHOLE = 30.0, 120.0
_RUN, _EACH = 600.0, 10.0
_LONGEST_DELAY = 60.0
_ROBOTS = 500 << 10
"""Maximum number of bytes to read from a robots.txt, as in RFC 9309."""
_HEADER = {
    "User-Agent": f"cocite/{__version__}",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
    "Connection": "close",
}


class Fetched(NamedTuple):
    """The response from a URL, or ``why`` there is none; ``at`` is the time, as text."""

    url: str
    at: str
    message: HttpMessage | None
    why: str = ""


class Fetcher:
    """Fetches pages, with ``delay`` seconds between requests to a host, across all calls."""

    def __init__(self, delay: float) -> None:
        self.httpx = need("httpx", "--fetch", "fetch")
        self._robots_of = need("protego", "--fetch", "fetch").Protego
        self._delay = delay
        self._rules: dict[str, Any] = {}
        self._next: dict[str, float] = {}

    def fetch(self, urls: Iterable[str]) -> Generator[Fetched, None, None]:
        """Yield each page and each redirect target once, as responses arrive."""
        run = _FetchRun(self, urls)
        thread = threading.Thread(target=run.run, name="cocite-fetch", daemon=True)
        thread.start()
        try:
            while (fetched := run.found.get()) is not None:
                if isinstance(fetched, BaseException):
                    raise fetched
                yield fetched
                run.call(run.room.release)
        finally:
            run.cancel()
            thread.join(1.0)  # a DNS lookup cannot be canceled

    async def one(self, url: str, run: _FetchRun) -> Fetched:
        """Fetch one page as soon as its host may be contacted."""
        rules = await self._rules_of(url, run)
        if rules is None:
            return Fetched(url, _now(), None, "the robots.txt of its host cannot be read")
        if not rules.can_fetch(url, "cocite"):
            return Fetched(url, _now(), None, "robots.txt forbids it")
        asked = rules.crawl_delay("cocite") or 0.0
        delay = max(self._delay, min(float(asked), _LONGEST_DELAY))
        fetched = await self._ask(url, run, delay)
        if fetched.message is not None and fetched.message.status in (429, 503):
            after = fetched.message.header.get("retry-after", "")
            if after.isdecimal() and int(after) <= _LONGEST_DELAY:
                self._next[_host(url)] += max(0.0, float(after) - delay)
                fetched = await self._ask(url, run, delay)
        return fetched

    async def _rules_of(self, url: str, run: _FetchRun) -> Any:
        """Return the host's robots.txt, fetched once; None if it cannot be read."""
        host = _host(url)
        if host not in self._rules:
            self._rules[host] = None
            where: str | None = f"{urlsplit(url).scheme}://{host}/robots.txt"
            for _ in range(5):
                if where is None or _host(where) != host:
                    break
                fetched = await self._ask(where, run, self._delay, _ROBOTS)
                status = fetched.message.status if fetched.message else 0
                if status not in REDIRECTS:
                    if fetched.message and 200 <= status < 500:
                        text = fetched.message.body.decode("utf-8", "replace")
                        self._rules[host] = self._robots_of.parse(text if status < 300 else "")
                    break
                where = _leads(fetched)
        return self._rules[host]

    async def _ask(
        self, url: str, run: _FetchRun, delay: float, most: int | None = None
    ) -> Fetched:
        """Make one request after the host's delay; read at most ``most`` + 1 bytes of the body."""
        host, most = _host(url), LARGEST if most is None else most
        await run.wait(self._next.get(host, 0.0) - time.monotonic())
        at = _now()
        try:
            async with asyncio.timeout(_WHOLE), run.client.stream("GET", url) as answer:
                header: dict[str, str] = {}
                for name, value in answer.headers.multi_items():
                    header.setdefault(name.lower(), " ".join(value.split()))
                header.pop("transfer-encoding", None)  # already decoded
                body = bytearray()
                async for piece in answer.aiter_raw():
                    body += piece
                    if len(body) > most:
                        break
                return Fetched(
                    url, at, HttpMessage(answer.status_code, header, bytes(body[: most + 1]))
                )
        except TimeoutError:
            return Fetched(url, at, None, f"it took longer than {_WHOLE:g} seconds")
        except (self.httpx.HTTPError, self.httpx.InvalidURL, OSError, ValueError) as error:
            why = str(error) or type(error).__name__
            return Fetched(url, at, None, f"it cannot be fetched ({why})")
        finally:
            self._next[host] = time.monotonic() + delay


class _FetchRun:
    """The requests of one call of ``fetch``.

    The queue ``found`` gets the results, then None. ``room`` limits the number of unread pages.
    ``client`` does not follow redirects, keep cookies, or reuse connections.
    """

    client: Any

    def __init__(self, fetcher: Fetcher, urls: Iterable[str]) -> None:
        self.found: SimpleQueue[Fetched | BaseException | None] = SimpleQueue()
        self.room = asyncio.Semaphore(_HOSTS)
        self._fetcher = fetcher
        self._waiting: dict[str, deque[tuple[str, int]]] = defaultdict(deque)
        for url in dict.fromkeys(urls):
            self._waiting[_host(url)].append((url, 0))
        self._seen = {url for each in self._waiting.values() for url, _ in each}
        self._busy: dict[str, str] = {}
        """Maps each host with a task to the URL being fetched."""
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def run(self) -> None:
        """Run all requests in the calling thread."""
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._fetch())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self.found.put(error)
        finally:
            self.found.put(None)

    def cancel(self) -> None:
        """Cancel all requests, from another thread."""
        self._ended = True
        self.call(lambda: self._task and self._task.cancel())

    def call(self, what: Callable[[], object]) -> None:
        """Call a function on the event loop, from another thread."""
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(what)

    async def wait(self, seconds: float) -> None:
        """Wait for a host's delay, and extend the run's time limit by the same time."""
        if seconds > 0:
            self._extend(seconds)
            await asyncio.sleep(seconds)

    def _extend(self, seconds: float) -> None:
        when = self._until.when()
        assert when is not None
        self._until.reschedule(when + seconds)

    async def _fetch(self) -> None:
        self._task = asyncio.current_task()
        if self._ended:
            return
        try:
            async with asyncio.timeout(_RUN + _EACH * len(self._seen)) as self._until:
                httpx = self._fetcher.httpx
                self.client = httpx.AsyncClient(
                    headers=_HEADER,
                    cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                    timeout=httpx.Timeout(_TIMEOUT, pool=None),
                    limits=httpx.Limits(max_keepalive_connections=0),  # servers may close them
                )
                async with self.client, asyncio.TaskGroup() as group:
                    for host in list(self._waiting):
                        self._begin(group, host)
        except TimeoutError:
            late = [*self._busy.values(), *(u for e in self._waiting.values() for u, _ in e)]
            for url in filter(None, late):
                self.found.put(Fetched(url, _now(), None, "the time limit of the run was reached"))

    def _begin(self, group: asyncio.TaskGroup, host: str) -> None:
        self._busy[host] = ""
        group.create_task(self._host(group, host))

    async def _host(self, group: asyncio.TaskGroup, host: str) -> None:
        while self._waiting[host]:
            await self.room.acquire()
            url, hops = self._waiting[host].popleft()
            self._busy[host] = url
            fetched = await self._fetcher.one(url, self)
            self._busy[host] = ""
            to = _leads(fetched)
            if to and to not in self._seen and _host(to) in self._waiting and hops < _HOPS:
                self._seen.add(to)
                self._extend(_EACH)
                self._waiting[_host(to)].append((to, hops + 1))
                if _host(to) not in self._busy:
                    self._begin(group, _host(to))
            self.found.put(fetched)
        del self._busy[host]


def _leads(fetched: Fetched) -> str | None:
    message = fetched.message
    if message is None or message.status not in REDIRECTS or not message.header.get("location"):
        return None
    to = joined(message.header["location"], fetched.url)
    return to if is_web(to) else None


def _host(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2].lower()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())


def _read(job: Job) -> Read:
    refuse_site(job, READER.title)
    skip = job.options.bad_rows != "stop"
    if job.wanted == 1:
        named = (read_listed(source, skip=skip).pages for source in job.inputs)
        return clean_rows(job, READER.title, ((url,) for pages in named for url in pages))
    every = [read_listed(source, skip=skip, beside=False) for source in job.inputs]
    if not job.options.fetch:
        raise UnrecognizedInput(_advice(job.source, every[0]))
    found = PagesFound(
        job.source.label, integers=False, files=len(job.inputs), format="pages fetched"
    )
    whole = Listed()
    for each in every:
        whole.pages |= each.pages
        whole.sitemaps |= each.sitemaps
        if each.bad:
            found.leave_out("no URL", each.bad, each.examples)
    fetcher = Fetcher(job.options.delay)
    with Captures(job, found) as captures, Pages(job.threads, "fetching pages", "fetch") as pages:
        _add_sitemaps(job, fetcher, whole, captures.left_out)
        captures.parse(pages, _pages(job, fetcher, whole.pages, captures))
        return captures.finish()


READER = FormatReader(
    "a sitemap or a list of URLs",
    "a sitemap, a sitemap index, or a list of URLs, one per line: pages to fetch (--fetch), or "
    "to read from a folder or archive (--pages)",
    _read,
    together=True,
    takes=("fetch",),
    columns=False,
)


def _advice(source: Source, listed: Listed) -> str:
    urls = listed.pages or listed.sitemaps
    hosts = {urlsplit(url).netloc for url in urls}
    where = next(iter(hosts)) if len(hosts) == 1 else f"{len(hosts):,} hosts"
    what = "pages" if listed.pages or not urls else "sitemaps"
    return (
        f"{source.label} is a sitemap or a list of URLs: it has {len(urls):,} {what} of {where}, "
        "but no links. To fetch the pages: --fetch. If they are in a folder or a web archive, read "
        f"that: cocite ingest FOLDER --pages {source.label} -o DIR. If the URLs are node names: "
        "--nodes"
    )


def _pages(
    job: Job, fetcher: Fetcher, urls: Iterable[str], captures: Captures
) -> Iterator[HtmlPage]:
    urls = list(urls)
    for done, fetched in enumerate(fetcher.fetch(urls), 1):
        job.progress("fetching pages", min(done, len(urls)), len(urls))
        url, at, message, why = fetched
        if message is None:
            forbidden = why.startswith("robots.txt")
            what = "page that robots.txt forbids" if forbidden else "page that could not be fetched"
            captures.left_out[what] += 1
            job.report(url, why, "", "")
            captures.capture(ERROR, url, at)
            continue
        if message.status >= 400:
            job.report(url, f"status {message.status}", "", "")
        if page := captures.page_of(message, url, at, long=len(message.body) > LARGEST):
            yield page


def _add_sitemaps(job: Job, fetcher: Fetcher, listed: Listed, left_out: Counter[str]) -> None:
    """Fetch the sitemaps in a sitemap index, recursively, but only from hosts in the input
    files.
    """
    hosts = {urlsplit(url).netloc for url in (*listed.sitemaps, *listed.pages)}
    seen: set[str] = set()
    while waiting := [url for url in listed.sitemaps if url not in seen]:
        seen.update(waiting)
        own = [url for url in waiting if urlsplit(url).netloc in hosts]
        left_out += Counter({"sitemap of another host": len(waiting) - len(own)})
        for fetched in fetcher.fetch(own):
            job.progress("fetching sitemaps", 0, 0)
            _add_sitemap(job, fetched, listed, left_out)


def _add_sitemap(job: Job, fetched: Fetched, listed: Listed, left_out: Counter[str]) -> None:
    message, why, body = fetched.message, fetched.why, None
    skip = job.options.bad_rows != "stop"
    if message is not None:
        if 300 <= message.status < 400:
            return  # the redirect's target is fetched as well
        why = f"status {message.status}"
        if 200 <= message.status < 300:
            why, body = "it is damaged", body_of(message, LARGEST)
            body = _unpacked(body) if body and body.startswith(b"\x1f\x8b") else body
    if body is not None:
        xml = body.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
        listed_in(io.BytesIO(body), fetched.url, listed, xml=xml, skip=skip)
        return
    if not skip:
        raise InputError(
            f"the sitemap {fetched.url} cannot be read ({why}). To skip it: --bad-rows few "
            "(bad_rows='few')"
        )
    left_out["sitemap that could not be fetched"] += 1


def _unpacked(body: bytes) -> bytes | None:
    unpacker = zlib.decompressobj(31)
    try:
        found = unpacker.decompress(body, LARGEST + 1)
    except zlib.error:
        return None
    return found if unpacker.eof and len(found) <= LARGEST else None
