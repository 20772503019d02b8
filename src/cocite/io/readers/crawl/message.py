"""HTTP responses, as archives and servers give them: status, header, and the body, decoded.

Chunks are put together, and gzip, deflate, Brotli and Zstandard are undone, as by a browser: of a
body that is cut what is there. Archives often store a header whose body was decoded, so a body that
does not begin as its header says stays what it is, if it is text.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from cocite.io.readers import signs
from cocite.io.readers.sources import Beginning, zstd

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
