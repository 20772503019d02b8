"""Records of web archives (WARC, ISO 28500), and what servers sent, as they hold it.

FastWARC reads the records, which are packed one by one (gzip, Zstandard, lz4), as a whole, or not
at all. It takes a record for whole however many bytes of it there are, so they are counted here.
What is damaged is refused by its place, a byte of the file (unpacked, if it is packed as a whole or
comes through a pipe); or it is counted, and reading goes on at the next record that begins as one:
of a file, not of a pipe.

Of a response chunks are put together, and gzip, deflate, Brotli and Zstandard are undone, as by a
browser: of a body that is cut what is there. Archives often keep a header that their body has been
freed from, so a body that does not begin as its header says stays what it is, if it is text.

Cost: 5 µs a record, and what unpacking it takes; memory for one record, of 32 MiB at most.
https://iipc.github.io/warc-specifications/
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import IO, Any, BinaryIO, NamedTuple

from cocite.extras import need
from cocite.io.readers import signs
from cocite.io.readers.sources import Beginning, Source, unpack_errors, zstd

LARGEST = 1 << 25
"""Bytes of the block of a record that are read."""
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b\x08"
_OWN = (_GZIP, b"\x5d\x2a\x4d\x18", b"\x04\x22\x4d\x18")
"""What begins a file that FastWARC unpacks: gzip, Zstandard with a dictionary, lz4."""
_BEGIN = re.compile(rb"(?:\A|\n)(?=WARC/[01]\.)")

Refuse = Callable[[int, str], None]
"""Called with the place of what is damaged, and what is wrong; may raise."""


class Record(NamedTuple):
    """One record: its ``kind`` (WARC-Type), what its header says, its block; ``long`` if that has
    more than :data:`LARGEST` bytes and is cut.
    """

    place: int
    kind: str
    header: dict[str, str]
    block: bytes
    long: bool


def records(
    source: Source, refuse: Refuse, wanted: tuple[str, ...], progress: Callable[[int], None]
) -> Iterator[Record]:
    """The records of the kinds that are ``wanted``; ``progress`` is told how far the file is read.

    Raises what ``refuse`` raises, and :class:`~cocite.extras.MissingLibrary`.
    """
    need("fastwarc", "reading WARC", "warc")
    archive = _Archive(source, refuse, wanted, progress)
    start: int | None = 0
    while start is not None:
        start = yield from archive.records(start)


class _Archive:
    """One file, or a pipe."""

    def __init__(
        self,
        source: Source,
        refuse: Refuse,
        wanted: tuple[str, ...],
        progress: Callable[[int], None],
    ) -> None:
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

    def _file(self) -> BinaryIO:
        assert self._source.path is not None
        return self._source.path.open("rb", buffering=0)

    def _open(self, start: int) -> tuple[Any, BinaryIO]:
        """A stream for FastWARC, and the one below it, which tells how far it is read."""
        if self._native or self._seeks:
            file = self._file()
            file.seek(start)
            return file, file
        stream, raw = self._source.open()
        return _RecordReport(stream), raw

    def records(self, start: int) -> Generator[Record, None, int | None]:
        """The records from a place on; returns the place where to go on behind damage, if any."""
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
        except unpack_errors() as error:
            self._refuse(last, f"behind the record that begins there the file is damaged ({error})")
            return self._next(last, length)
        except BaseException as error:
            if type(error).__name__ != "PanicException":  # of Rust, which is no Exception
                raise
            self._refuse(last, f"behind the record that begins there FastWARC failed ({error})")
            return self._next(last, length)
        self._see_end(last)
        return None

    def _record(self, record: Any, place: int) -> Record | None:
        """One record, whole; None if it is not."""
        header = {name.lower(): value for name, value in record.headers.items()}
        if not header.get("content-length", "").strip().isdecimal():
            self._refuse(place, "a record without Content-Length, or cut in its header")
            return None
        kind, block = header.get("warc-type", "").strip().lower(), b""
        if kind in self._requested:
            block = record.reader.read(LARGEST)
        there = len(block) + record.consume()
        if there != record.content_length:
            what = f"a record that is cut: {there:,} of its {record.content_length:,} bytes"
            self._refuse(place, what)
            return None
        return Record(place, kind, header, block, there > len(block) > 0)

    def _see_end(self, last: int) -> None:
        """See that behind the last record no other one begins, and is cut: of gzip, of which
        FastWARC passes over what it cannot unpack.
        """
        if not self._gzip:
            return
        with self._file() as file:
            start = last
            file.seek(start)
            if file.read(3) != _GZIP:  # packed as a whole
                start = 0
            while True:
                file.seek(start)
                end = _end_of_member(file)
                if end is None:
                    self._refuse(start, "what is packed there is cut, or damaged")
                    return
                file.seek(end)
                head = file.read(512)
                if not head.strip(b"\0"):
                    return
                start = end

    def _next(self, last: int, length: int) -> int | None:
        """Where the next record begins behind the one at ``last``, of ``length`` bytes; None if
        there is none, or that cannot be told.
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


class _RecordReport(io.RawIOBase):
    """A stream that tells its place, as FastWARC asks for that."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._place = stream, 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes; none at the end."""
        piece = self._stream.read(len(buffer))
        buffer[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)

    def tell(self) -> int:
        """Bytes that were read."""
        return self._place

    def close(self) -> None:
        """Close the stream below, too."""
        self._stream.close()
        super().close()


def _end_of_member(file: BinaryIO) -> int | None:
    """Where what is packed by gzip from here on ends; None if it is cut or damaged."""
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
    """Whether a record begins in what is packed."""
    try:
        head = zlib.decompressobj(31).decompress(packed, 16)
    except zlib.error:
        return False
    return head.lstrip(b"\r\n").startswith(b"WARC/")


# -- message -----------------------------------------------------------------------------


_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})\b", re.I)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.I)
_PAGES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True)
class HttpMessage:
    """A response: names of the header in small letters, of several of a name the first one."""

    status: int
    header: dict[str, str]
    body: bytes

    @property
    def charset(self) -> str:
        """The encoding that the header names; "" if it does not."""
        found = _CHARSET.search(self.header.get("content-type", ""))
        return found[1] if found else ""


def message_of(block: bytes) -> HttpMessage | None:
    """The response in the block of a record; None if it is none."""
    end = _END.search(block)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    lines = re.split(rb"\r?\n(?![ \t])", head)
    status = _STATUS.match(lines[0])
    if status is None:
        return None
    header: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            header.setdefault(name.strip().lower(), " ".join(value.split()))
    return HttpMessage(int(status[1]), header, body)


def page_type(content_type: str) -> bool:
    """Whether what is called so is an HTML page."""
    return content_type.partition(";")[0].strip().lower() in _PAGES


def is_page(content_type: str, body: bytes) -> bool:
    """Whether it is an HTML page: by what it is called, else by what it begins with."""
    if content_type.strip():
        return page_type(content_type)
    return signs.html(Beginning(body[: 1 << 14]))


def body_of(message: HttpMessage, most: int) -> bytes | None:
    """The body, decoded; None if it cannot be, or has more than ``most`` bytes."""
    body = message.body
    if "chunked" in message.header.get("transfer-encoding", "").lower():
        body = _joined(body)
    named = message.header.get("content-encoding", "").lower().split(",")
    for name in reversed([name.strip() for name in named]):
        unpacked = _unpacked(name, body, most)
        if unpacked is None and b"\0" in body[:1024]:
            return None
        body = body if unpacked is None else unpacked
    return body if len(body) <= most else None


def _joined(body: bytes) -> bytes:
    """The chunks as one; what is no chunk stays as it is."""
    parts: list[bytes] = []
    at = 0
    while at < len(body):
        end = body.find(b"\r\n", at)
        size = body[at:end].partition(b";")[0].strip() if end >= 0 else b""
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            return b"".join(parts) if parts else body
        length = int(size, 16)
        if not length:
            break
        parts.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
    return b"".join(parts)


def _unpacked(name: str, body: bytes, most: int) -> bytes | None:
    """What was packed by this coding; of what is cut, what is there. None if it was not."""
    if name in ("", "identity") or not body:
        return body
    try:
        if name in ("gzip", "x-gzip"):
            return zlib.decompressobj(31).decompress(body, most + 1)
        if name == "deflate":
            zlib_wrapped = body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
            return zlib.decompressobj(15 if zlib_wrapped else -15).decompress(body, most + 1)
        if name == "br":
            return _brotli(body, most)
        if name == "zstd":
            return bytes(zstd().ZstdDecompressor().decompress(body, most + 1))
    except (zlib.error, zstd().ZstdError):
        return None
    return None


def _brotli(body: bytes, most: int) -> bytes | None:
    import brotli  # FastWARC brings it

    unpacker, parts, size = brotli.Decompressor(), list[bytes](), 0
    try:
        piece = unpacker.process(body, output_buffer_limit=most + 1)
        while piece and size <= most:
            parts.append(piece)
            size += len(piece)
            if unpacker.is_finished() or unpacker.can_accept_more_data():
                break
            piece = unpacker.process(b"", output_buffer_limit=most + 1)
    except brotli.error:
        return b"".join(parts) or None
    return b"".join(parts)
