"""Web archives (WARC), and what Common Crawl tells of them (WAT), as links between their pages.

    records (records.py) -> HTML pages, parsed (../html/reader.py); WAT -> captures.py

A node is a URL, as browsers write it (WHATWG, without its fragment), at which a page was captured:
a response of status 200 to 299 that is HTML. All files that are named are read as one crawl, so
links lead from one to the other. What is no page is counted: redirects, errors, other files.

WAT has a record of metadata for each page, in JSON. Its links are told apart by their paths, as
elements and attributes; where elements stand is not told, so none is known to be navigation.

Cost: some 2 ms a page of 50 KB, on all threads; of WAT 0.2 ms a page, and a microsecond a link.
https://commoncrawl.org/get-started
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Any, NamedTuple

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.crawl.captures import OTHER, REVISIT, Captures, CrawlFound, Responses
from cocite.io.readers.crawl.records import (
    LARGEST,
    HttpMessage,
    Record,
    message_of,
    page_type,
    records,
)
from cocite.io.readers.html.page import TAGS, joined, refresh_of
from cocite.io.readers.html.reader import HtmlPage, Pages
from cocite.io.readers.sources import Source

_PATHS = {
    "A@/href": TAGS.index("a"),
    "AREA@/href": TAGS.index("area"),
    "FRAME@/src": TAGS.index("frame"),
    "IFRAME@/src": TAGS.index("frame"),
}
_TITLE = 1000


class Described(NamedTuple):
    """A response that WAT tells of: its URL and status, the header's names in small letters, and
    what is on the page, as ``html/page.links_of`` has it; None if that is not told.
    """

    url: str
    at: str
    status: int
    header: dict[str, str]
    found: dict[str, Any] | None


def described(block: bytes) -> Described | None:
    """What a record of WAT tells; None if it tells of no response.

    Raises ValueError for what is no WAT.
    """
    try:
        envelope = _part(json.loads(block), "Envelope")
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not envelope:
        raise ValueError("no Envelope")
    warc = _part(envelope, "WARC-Header-Metadata")
    response = _part(envelope, "Payload-Metadata", "HTTP-Response-Metadata")
    if warc.get("WARC-Type") != "response" or not response:
        return None
    url = _text(warc.get("WARC-Target-URI")).strip().strip("<>")
    status = _text(_part(response, "Response-Message").get("Status"))
    header = {k.lower(): _text(v) for k, v in _part(response, "Headers").items()}
    html = response.get("HTML-Metadata")
    found = _found(html, url) if isinstance(html, dict) else None
    at = _text(warc.get("WARC-Date"))
    return Described(url, at, int(status) if status.isdecimal() else 0, header, found)


def _found(html: dict[str, Any], url: str) -> dict[str, Any]:
    head = _part(html, "Head")
    base = url
    if _text(head.get("Base")):
        base = joined(_text(head.get("Base")), url) or url
        base = url if base.startswith(("data:", "javascript:")) else base
    links = []
    for link in _list(html.get("Links")):
        tag = _PATHS.get(_text(link.get("path")))
        if tag is not None:
            written = _text(link.get("url"))
            links.append((tag, True, joined(written, base), written))
    title = " ".join(_text(head.get("Title")).split())[:_TITLE]
    return {"title": title, "same": _same(head, url, base), "links": links}


def _same(head: dict[str, Any], url: str, base: str) -> dict[str, str]:
    same: dict[str, str] = {}
    for link in _list(head.get("Link")):
        if "canonical" in _text(link.get("rel")).lower().split():
            where = joined(_text(link.get("url")), base)
            if where is not None:
                same["canonical"] = where
                break
    for meta in _list(head.get("Metas")):
        if _text(meta.get("http-equiv")).lower() == "refresh":
            where = refresh_of(_text(meta.get("content")), base)
            if where is not None and where != url:
                same["refresh"] = where
                break
    return same


def _part(value: Any, *names: str) -> dict[str, Any]:
    """An object in objects; an empty one if it is not there."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text, whatever stands there; letters that are none become a sign of that."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    return text.encode("utf-8", "replace").decode("utf-8")


# -- warc --------------------------------------------------------------------------------


_WANTED = ("response", "resource", "revisit", "metadata")
_ADVICE = (
    "Fetch or copy the file again, or pass --bad-rows few (bad_rows='few') to leave out what "
    "is damaged and count it"
)


def refuse_site(job: Job, what: str) -> None:
    """Raise :class:`UsageError` where the site of a folder is named of what is none."""
    if job.options.pages.site:
        raise UsageError(f"--site is for a folder of HTML pages; {job.source.label} is {what}")


def _read(job: Job) -> Read:
    """The links between pages of all the files, and the pages."""
    refuse_site(job, READER.title)
    found = CrawlFound(job.source.label, integers=False, files=len(job.inputs))
    with Captures(job, found) as captures, ExitStack() as stack:
        crawl = _Crawl(job, captures, stack)
        for source in job.inputs:
            crawl.read(source)
        found.left_out = dict(sorted(crawl.left_out.items()))
        return captures.finish()


READER = FormatReader(
    "a web archive",
    "web archives of crawlers: WARC, and WAT of Common Crawl; nodes are URLs of pages",
    _read,
    together=True,
    restricts=True,
    columns=False,
)


class _Crawl(Responses):
    """The files of one crawl, read one after the other."""

    def __init__(self, job: Job, captures: Captures, stack: ExitStack) -> None:
        super().__init__(job, captures)
        self._stack = stack
        self._pages: Pages | None = None

    def read(self, source: Source) -> None:
        """Push what is in a file."""
        job, stage = self._job, "reading " + source.short
        seen = Counter[str]()

        def refuse(place: int, what: str) -> None:
            text = f"{source.label}: at byte {place:,}: {what}"
            if job.options.bad_rows == "stop":
                raise InputError(f"{text}. {_ADVICE}")
            self.captures.found.leave_out("damaged record", 1, [text])

        def html() -> Iterator[HtmlPage]:
            size = source.nbytes
            every = records(source, refuse, _WANTED, lambda at: job.progress(stage, at, size))
            for record in every:
                seen[record.kind] += 1
                try:
                    page = self._page(record)
                except ValueError as error:
                    refuse(record.place, f"a record of metadata that is no WAT ({error})")
                    continue
                if page is not None:
                    yield page

        first = next(pages := html(), None)
        if first is not None:
            if self._pages is None:
                self._pages = self._stack.enter_context(Pages(job.threads, "reading WARC", "warc"))
            self.parse(self._pages, chain((first,), pages))
        if not seen and not self.captures.found.bad:
            raise UnrecognizedInput(f"{source.label} holds no record of a page that was fetched")

    def _page(self, record: Record) -> HtmlPage | None:
        """The page in a record; all else is pushed or counted here."""
        url = _url(record.header.get("warc-target-uri", ""))
        at = record.header.get("warc-date", "").strip().rstrip("Zz")
        if record.kind == "metadata":
            self._metadata(record)
            return None
        if url is None:
            self.left_out["record that is of no web page (dns: and so on)"] += 1
            return None
        type_ = record.header.get("content-type", "").lower()
        if record.kind == "resource" or (record.kind == "response" and "http" not in type_):
            message: HttpMessage | None = HttpMessage(200, {"content-type": type_}, record.block)
        else:
            message = message_of(record.block)
        if record.kind == "revisit":
            self._revisit(record, message, url, at)
            return None
        if message is None:
            self.left_out["response that is no HTTP"] += 1
            return None
        cut = "warc-truncated" in record.header
        return self.page_of(message, url, at, long=record.long, cut=cut)

    def _revisit(self, record: Record, message: HttpMessage | None, url: str, at: str) -> None:
        """What is as it was before: at this URL, or at the one that is named."""
        self.left_out["revisit"] += 1
        if message is not None:
            if self.is_no_page(message.status, message.header, url, at):
                return
            type_ = message.header.get("content-type", "")
            if type_ and not page_type(type_):
                self.captures.capture(OTHER, url, at)
                return
        refers = _url(record.header.get("warc-refers-to-target-uri", ""))
        self.captures.capture(REVISIT, url, at, refers or "")

    def _metadata(self, record: Record) -> None:
        """A page that WAT tells of; other metadata is passed over."""
        if "json" not in record.header.get("content-type", "").lower():
            return
        told = described(record.block)
        if record.long:
            raise ValueError(f"it has more than {LARGEST >> 20} MiB")
        if told is None:
            return
        url = _url(told.url)
        if url is None:
            self.left_out["record that is of no web page (dns: and so on)"] += 1
            return
        at = told.at.strip().rstrip("Zz")
        if not self.is_no_page(told.status, told.header, url, at):
            self._reported(told, url, at)

    def _reported(self, told: Described, url: str, at: str) -> None:
        type_ = told.header.get("content-type", "")
        if told.found is None or (type_ and not page_type(type_)):
            self.other(url, at)
        else:
            self.captures.page(url, at, told.found)


def _url(written: str) -> str | None:
    """The URL of a record as browsers write it, without its fragment; None if it is none of the
    web. Some versions of wget write it in angle brackets.
    """
    url = joined("", written.strip().removeprefix("<").removesuffix(">"))
    return url if url is not None and url.startswith(("http:", "https:")) else None
