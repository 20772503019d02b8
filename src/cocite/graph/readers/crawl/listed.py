"""A sitemap or a list of URLs as an input: its pages are fetched, if that is asked for.

    files (sitemap.py) -> more sitemaps -> pages (fetch.py) -> parsed (html/pages.py) -> captures.py

Without ``--fetch`` nothing is asked of any server: such a file names pages, and no links, and what
to do with it is said. Nodes, redirects, copies and what is counted are as in web archives.

Cost: the delay between two requests to a host; a page in memory for each thread, and the URLs.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

from cocite.errors import InputError, NotLinks
from cocite.graph.readers.crawl.captures import ERROR, Captures, CrawlFound
from cocite.graph.readers.crawl.fetch import Fetched, Fetcher
from cocite.graph.readers.crawl.message import body_of
from cocite.graph.readers.crawl.responses import LARGEST, Responses
from cocite.graph.readers.crawl.sitemap import Listed, listed_in, read_listed
from cocite.graph.readers.crawl.warc import refuse_columns
from cocite.graph.readers.html.pages import Page, Pages
from cocite.graph.readers.reader import Job, Read
from cocite.graph.readers.rows import clean_rows
from cocite.graph.readers.sources import Source

__all__ = ["READER", "ListReader"]


class ListReader:
    """Sitemaps and lists of URLs."""

    title = "a sitemap or a list of URLs"
    described = (
        "a sitemap, an index of sitemaps, or a list of URLs, one a line: its pages are fetched "
        "(--fetch), or it names those of a folder or archive (--pages)"
    )
    streams = True
    together = True
    fetches = True

    def read(self, job: Job) -> Read:
        """The links between the pages, and the pages."""
        refuse_columns(job, self.title)
        sources = job.inputs
        skip = bool(job.options.skip_bad_rows)
        if job.wanted == 1:
            named = (read_listed(source, skip=skip).pages for source in sources)
            return clean_rows(job, self.title, ((url,) for pages in named for url in pages))
        every = [read_listed(source, skip=skip, beside=False) for source in sources]
        if not job.options.pages.fetch:
            raise NotLinks(_advice(job.source, every[0]))
        found = CrawlFound(job.source.label, len(sources), "fetched")
        found.bad_rows = {"no URL": bad} if (bad := sum(each.bad for each in every)) else {}
        found.examples = [example for each in every for example in each.examples][:5]
        with Captures(job, found) as captures, ExitStack() as stack:
            pages = stack.enter_context(Pages(job.threads, "fetching pages", "fetch"))
            fetching = _Fetching(job, captures, Fetcher(job.options.pages.delay))
            fetching.parse(pages, fetching.pages(every))
            found.records = dict(sorted(fetching.left_out.items()))
            return captures.finish()


READER = ListReader()


def _advice(source: Source, listed: Listed) -> str:
    urls = listed.pages or listed.sitemaps
    hosts = {urlsplit(url).netloc for url in urls}
    where = next(iter(hosts)) if len(hosts) == 1 else f"{len(hosts):,} hosts"
    what = "pages" if listed.pages or not urls else "sitemaps"
    return (
        f"{source.label} is a sitemap or a list of URLs: it names {len(urls):,} {what} of {where}, "
        "and no links. To fetch them from there: --fetch. If the pages are in a folder or a web "
        f"archive, read that: cocite ingest FOLDER --pages {source.label} -o DIR. If these are "
        "names of nodes: --nodes"
    )


class _Fetching(Responses):
    """The pages of some lists."""

    def __init__(self, job: Job, captures: Captures, fetcher: Fetcher) -> None:
        super().__init__(job, captures)
        self._fetcher = fetcher

    def pages(self, every: list[Listed]) -> Iterator[Page]:
        """What is fetched, and HTML."""
        whole = Listed()
        for listed in every:
            whole.pages |= listed.pages
            whole.sitemaps |= listed.sitemaps
        self._sitemaps(whole)
        total = len(whole.pages)
        for done, fetched in enumerate(self._fetcher.fetch(whole.pages), 1):
            self._job.progress("fetching pages", min(done, total), total)
            message = fetched.message
            if message is None:
                self._lose(fetched)
                continue
            page = self.page_of(message, fetched.url, fetched.at, long=len(message.body) > LARGEST)
            if page is not None:
                yield page

    def _lose(self, fetched: Fetched) -> None:
        forbidden = fetched.why.startswith("robots.txt")
        what = "page that robots.txt forbids" if forbidden else "page that could not be fetched"
        self.left_out[what] += 1
        self._job.report(fetched.url, fetched.why, "", "")
        self.captures.capture(ERROR, fetched.url, fetched.at)

    def _sitemaps(self, listed: Listed) -> None:
        """Fetch the sitemaps of an index, and theirs; of hosts that the files name."""
        hosts = {urlsplit(url).netloc for url in (*listed.sitemaps, *listed.pages)}
        seen: set[str] = set()
        while waiting := [url for url in listed.sitemaps if url not in seen]:
            seen.update(waiting)
            strange = [url for url in waiting if urlsplit(url).netloc not in hosts]
            self.left_out["sitemap of another host"] += len(strange)
            own = set(waiting) - set(strange)
            for fetched in self._fetcher.fetch(url for url in waiting if url in own):
                self._job.progress("fetching sitemaps", 0, 0)
                self._add(fetched, listed)
        self.left_out += type(self.left_out)()  # without those that are 0

    def _add(self, fetched: Fetched, listed: Listed) -> None:
        message, skip = fetched.message, bool(self._job.options.skip_bad_rows)
        if message is not None and 300 <= message.status < 400:
            return  # where it leads comes, too
        body = None
        if message is not None and 200 <= message.status < 300:
            body = body_of(message, LARGEST)
        if body is not None and body.startswith(b"\x1f\x8b"):
            body = _unpacked(body)
        if body is None:
            why = fetched.why or f"status {message.status}" if message is not None else fetched.why
            if not skip:
                raise InputError(
                    f"the sitemap {fetched.url} cannot be read ({why or 'it is damaged'}). "
                    "--skip-bad-rows goes on without it"
                )
            self.left_out["sitemap that could not be fetched"] += 1
            return
        xml = body.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")
        listed_in(io.BytesIO(body), fetched.url, listed, xml=xml, skip=skip)


def _unpacked(body: bytes) -> bytes | None:
    unpacker = zlib.decompressobj(31)
    try:
        found = unpacker.decompress(body, LARGEST + 1)
    except zlib.error:
        return None
    return found if unpacker.eof and len(found) <= LARGEST else None
