"""Links between pages in web archives (WARC, ISO 28500), or in Common Crawl's metadata (WAT).

Nodes are URLs of captured pages (HTML responses of status 200 to 299), normalized as in browsers
(WHATWG) and without fragments. All files form one crawl; other records are counted. WAT describes
each page in JSON without the positions of elements, so no link counts as navigation.

FastWARC reads records, each compressed separately (gzip, Zstandard, lz4). It accepts truncated
records, so this module counts their bytes. Damage raises an error with its byte offset, or is
counted; in a file, reading then resumes at the next record. A record takes 5 µs, a page of 50 KB
about 2 ms (0.2 ms with WAT), on all threads. One record is in memory at a time.
https://iipc.github.io/warc-specifications/, https://commoncrawl.org
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, BinaryIO, NamedTuple

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.extras import need
from cocite.io.readers.contract import FormatReader, Job, PagesFound, Read
from cocite.io.readers.crawl.captures import (
    LARGEST,
    OTHER,
    REVISIT,
    Captures,
    HttpMessage,
    is_web,
    message_of,
)
from cocite.io.readers.html.page import LONGEST_TITLE, TAGS, base_of, joined, same_as
from cocite.io.readers.html.parsers import HtmlPage, Pages
from cocite.io.readers.sources import Counted, Source, unpack_errors

_PIECE = 1 << 20
_GZIP = b"\x1f\x8b\x08"
_OWN = (_GZIP, b"\x5d\x2a\x4d\x18", b"\x04\x22\x4d\x18")
"""Signatures of files that FastWARC decompresses: gzip, Zstandard with a dictionary, lz4."""
_BEGIN = re.compile(rb"(?:\A|\n)(?=WARC/[01]\.)")

Refuse = Callable[[int, str], None]
"""Called with the byte offset and a description of damage; may raise an error."""


class Record(NamedTuple):
    """A record at the offset ``place``; ``long`` says whether the block is truncated."""

    place: int
    kind: str
    header: dict[str, str]
    block: bytes
    long: bool


class WarcRecords:
    """Iterable of the records of the ``wanted`` kinds in a file or pipe.

    ``progress`` is called with the position in the file. Raises the errors of ``refuse``, and
    :class:`~cocite.extras.MissingLibrary`.
    """

    def __init__(
        self,
        source: Source,
        refuse: Refuse,
        wanted: tuple[str, ...],
        progress: Callable[[int], None],
    ) -> None:
        need("fastwarc", "reading WARC", "warc")
        self._source, self._refuse = source, refuse
        self._requested, self._progress = wanted, progress
        head = b""
        if not source.is_pipe:
            with self._file() as file:
                head = file.read(4)
        self._gzip = head.startswith(_GZIP)
        self._native = head.startswith(_OWN)
        self._seeks = self._gzip or (
            not source.is_pipe and not self._native and not source.beginning().packed
        )

    def __iter__(self) -> Iterator[Record]:
        start: int | None = 0
        while start is not None:
            start = yield from self._records(start)

    def _file(self) -> BinaryIO:
        assert self._source.path is not None
        return self._source.path.open("rb", buffering=0)

    def _open(self, start: int) -> tuple[Any, BinaryIO]:
        """Return (stream for FastWARC, raw stream whose position shows progress)."""
        if self._native or self._seeks:
            file = self._file()
            file.seek(start)
            return file, file
        stream, raw = self._source.open()
        return Counted(stream), raw

    def _records(self, start: int) -> Generator[Record, None, int | None]:
        """Yield records from ``start`` on. After damage, return where to resume, or None."""
        from fastwarc.warc import ArchiveIterator

        stream, raw = self._open(start)
        last, length = start, 0
        try:
            with raw, stream:
                for record in ArchiveIterator(stream, parse_http=False, fsspec_args=False):
                    last, length = record.stream_pos, record.content_length
                    read = self._record(record, last)
                    if read is None:
                        return self._next(last, 0)
                    self._progress(raw.tell())
                    if read.kind in self._requested:
                        yield read
        except BaseException as error:
            damaged = isinstance(error, unpack_errors())
            if not damaged and type(error).__name__ != "PanicException":  # from Rust
                raise
            what = "the file is damaged" if damaged else "FastWARC failed"
            self._refuse(last, f"{what} after the record that begins there ({error})")
            return self._next(last, length)
        self._see_end(last)
        return None

    def _record(self, record: Any, place: int) -> Record | None:
        """Read a record; refuse an incomplete one, and return None for it."""
        header = {name.lower(): value for name, value in record.headers.items()}
        if not header.get("content-length", "").strip().isdecimal():
            self._refuse(place, "a record with a truncated header, or no Content-Length")
            return None
        kind, block = header.get("warc-type", "").strip().lower(), b""
        if kind in self._requested:
            block = record.reader.read(LARGEST)
        there = len(block) + record.consume()
        if there != record.content_length:
            what = f"a truncated record: {there:,} of its {record.content_length:,} bytes"
            self._refuse(place, what)
            return None
        return Record(place, kind, header, block, there > len(block) > 0)

    def _see_end(self, last: int) -> None:
        """Check that no truncated gzip data follows, which FastWARC would skip."""
        if not self._gzip:
            return
        with self._file() as file:
            file.seek(last)
            start = last if file.read(3) == _GZIP else 0  # compressed as a whole
            while True:
                file.seek(start)
                end = _end_of_member(file)
                if end is None:
                    self._refuse(start, "the compressed data there is truncated or damaged")
                    return
                file.seek(start := end)
                if not file.read(512).strip(b"\0"):
                    return

    def _next(self, last: int, length: int) -> int | None:
        """Return the next record's offset, or None; ``length`` is the size of the one at
        ``last``.
        """
        if not self._seeks:
            return None
        with self._file() as file:
            at = last + 1 + (0 if self._gzip else length)
            file.seek(at)
            rest = b""
            while piece := file.read(_PIECE):
                window = rest + piece
                for match in re.finditer(re.escape(_GZIP), window) if self._gzip else ():
                    if _unpacks(window[match.start() :]):
                        return at - len(rest) + match.start()
                found = None if self._gzip else _BEGIN.search(window)
                if found:
                    return at - len(rest) + found.end()
                at += len(piece)
                rest = window[-2048:]
        return None


def _end_of_member(file: BinaryIO) -> int | None:
    """Return the end of the gzip member at the file's position; None if damaged or truncated."""
    unpacker = zlib.decompressobj(31)
    while piece := file.read(1 << 14):
        try:
            unpacker.decompress(piece)
        except zlib.error:
            return None
        if unpacker.eof:
            return file.tell() - len(unpacker.unused_data)
    return None


def _unpacks(packed: bytes) -> bool:
    """Return whether compressed data begins with a record."""
    try:
        head = zlib.decompressobj(31).decompress(packed, 16)
    except zlib.error:
        return False
    return head.lstrip(b"\r\n").startswith(b"WARC/")


# -- WAT ----------------------------------------------------------------------------------


_PATHS = {
    "A@/href": TAGS.index("a"),
    "AREA@/href": TAGS.index("area"),
    "FRAME@/src": TAGS.index("frame"),
    "IFRAME@/src": TAGS.index("frame"),
}


class Described(NamedTuple):
    """A response in WAT, without body; ``found`` is a result of ``html/page.links_of``, or None."""

    url: str
    at: str
    message: HttpMessage
    found: dict[str, Any] | None


def described(block: bytes) -> Described | None:
    """Return the response in a WAT record, or None; raises ValueError for invalid WAT."""
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
    message = HttpMessage(int(status) if status.isdecimal() else 0, header, b"")
    return Described(url, at, message, found)


def _found(html: dict[str, Any], url: str) -> dict[str, Any]:
    head = _part(html, "Head")
    base = base_of([_text(head["Base"])] if _text(head.get("Base")) else [], url)
    links = []
    for link in _list(html.get("Links")):
        tag = _PATHS.get(_text(link.get("path")))
        if tag is not None:
            written = _text(link.get("url"))
            links.append((tag, True, joined(written, base), written))
    title = " ".join(_text(head.get("Title")).split())[:LONGEST_TITLE]
    rel = ((_text(link.get("rel")), _text(link.get("url"))) for link in _list(head.get("Link")))
    metas = _list(head.get("Metas"))
    sent = (m.get("content") for m in metas if _text(m.get("http-equiv")).lower() == "refresh")
    return {"title": title, "same": same_as(rel, map(_text, sent), url, base), "links": links}


def _part(value: Any, *names: str) -> dict[str, Any]:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """Return a string or integer as text, with invalid characters replaced; "" for others."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    return text.encode("utf-8", "replace").decode("utf-8")


_KINDS = ("response", "resource", "revisit", "metadata")
_ADVICE = (
    "Fetch or copy the file again, or pass --bad-rows few (bad_rows='few') to skip and count "
    "damaged records"
)


def refuse_site(job: Job, what: str) -> None:
    """Raise :class:`UsageError` for ``--site``, which applies to folders only."""
    if job.options.site:
        raise UsageError(
            f"--site (site=...) is for a folder of HTML pages; {job.source.label} is {what}"
        )


def _read(job: Job) -> Read:
    refuse_site(job, READER.title)
    found = PagesFound(
        job.source.label, integers=False, files=len(job.inputs), format="pages in a web archive"
    )
    with Captures(job, found) as captures, Pages(job.threads, "reading WARC", "warc") as pages:
        for source in job.inputs:
            captures.parse(pages, _pages(job, source, captures))
        return captures.finish()


READER = FormatReader(
    "a web archive",
    "web archives of crawlers: WARC, and WAT of Common Crawl; nodes are URLs of pages",
    _read,
    together=True,
    takes=("pages",),
    columns=False,
)


def _pages(job: Job, source: Source, captures: Captures) -> Iterator[HtmlPage]:
    """Yield the pages of a file; add or count its other records."""
    stage, nbytes, empty = "reading " + source.short, source.nbytes, True

    def refuse(place: int, what: str) -> None:
        text = f"{source.label}: at byte {place:,}: {what}"
        if job.options.bad_rows == "stop":
            raise InputError(f"{text}. {_ADVICE}")
        captures.found.leave_out("damaged record", 1, [text])

    for record in WarcRecords(source, refuse, _KINDS, lambda at: job.progress(stage, at, nbytes)):
        empty = False
        try:
            page = _page(record, captures)
        except ValueError as error:
            refuse(record.place, f"a record of metadata that is not WAT ({error})")
            continue
        if page is not None:
            yield page
    if empty and not captures.found.bad:
        raise UnrecognizedInput(f"{source.label} has no record of a fetched page")


def _page(record: Record, captures: Captures) -> HtmlPage | None:
    """Return the page in a record; add or count other records. Raises ValueError for bad WAT."""
    header = record.header
    type_ = header.get("content-type", "").lower()
    written, at = header.get("warc-target-uri", ""), header.get("warc-date", "")
    response = None
    if record.kind == "metadata":
        response = described(record.block) if "json" in type_ else None
        if response is None:
            return None
        if record.long:
            raise ValueError(f"it has more than {LARGEST >> 20} MiB")
        written, at = response.url, response.at
    url, at = _url(written), at.strip().rstrip("Zz")
    if url is None:
        captures.left_out["record that is not a web page (dns: and so on)"] += 1
        return None
    if response is not None:
        if captures.is_no_page(response.message, url, at):
            pass
        elif response.found is None or response.message.is_html is False:
            captures.other(url, at)
        else:
            captures.page(url, at, response.found)
        return None
    if record.kind == "resource" or (record.kind == "response" and "http" not in type_):
        message: HttpMessage | None = HttpMessage(200, {"content-type": type_}, record.block)
    else:
        message = message_of(record.block)
    if record.kind == "revisit":  # unchanged since the capture that it refers to
        captures.left_out["revisit"] += 1
        if message is None or not captures.is_no_page(message, url, at):
            kind = OTHER if message is not None and message.is_html is False else REVISIT
            captures.capture(kind, url, at, _url(header.get("warc-refers-to-target-uri", "")) or "")
        return None
    if message is None:
        captures.left_out["response that is not HTTP"] += 1
        return None
    return captures.page_of(message, url, at, long=record.long, cut="warc-truncated" in header)


def _url(written: str) -> str | None:
    """Return a record's normalized URL, without wget's angle brackets; None if not http(s)."""
    url = joined("", written.strip().removeprefix("<").removesuffix(">"))
    return url if is_web(url) else None
