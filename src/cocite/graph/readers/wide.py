"""UTF-16 and UTF-32, as spreadsheets save them: told by their mark, or by their zeros, and read as
UTF-8.

Cost: that of Python's codecs, some nanoseconds a letter.
"""

from __future__ import annotations

import codecs
import io
import re
from typing import Any

__all__ = ["CONTROL", "Recoded", "bad_lines", "encoding_of", "is_utf8"]

CONTROL = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_CONTROLS = bytes(code for code in range(256) if CONTROL.match(bytes([code])))
_MARKS = {
    "UTF-32": (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"),
    "UTF-16": (b"\xff\xfe", b"\xfe\xff"),
}
_WITHOUT = ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE")


def encoding_of(content: bytes, whole: bool) -> str:
    """The encoding of 2 or 4 bytes a letter that a text begins in: by its mark, or as it makes no
    lines in UTF-8 and has zeros where such an encoding has them. "" if it is none.
    """
    for name, marks in _MARKS.items():
        if content.startswith(marks):
            return name
    if not bad_lines(content, whole, CONTROL):
        return ""
    for name in _WITHOUT:
        size = 2 if name.startswith("UTF-16") else 4
        letters = content[: len(content) // size * size]
        if letters and not (whole and letters != content) and _reads_as(letters, name):
            return name
    return ""


def _reads_as(content: bytes, codec: str) -> bool:
    size, first = (2 if codec.startswith("UTF-16") else 4), 0 if codec.endswith("BE") else -1
    zeros = [content[i::size].count(0) for i in range(size)]
    if first == -1:
        zeros.reverse()
    # The high bytes are zero in Latin text and in every blank and line end; hardly a low one is.
    letters = len(content) // size
    if (
        zeros[0] * 20 < letters
        or zeros[-1] * 10 > zeros[0]
        or (size == 4 and zeros[1] * 2 < letters)
    ):
        return False
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        text = content[: error.start].decode(codec)
        if len(content) - error.start > 4:
            return False
    return not CONTROL.search(text.encode("utf-8", "replace"))


def has_control(content: bytes) -> bool:
    """Whether :data:`CONTROL` is found in it, five times as fast."""
    return len(content.translate(None, _CONTROLS)) < len(content)


def bad_lines(content: bytes, whole: bool, bad: re.Pattern[bytes] | None) -> bool:
    """Whether most lines hold such a byte; or, without a pattern, are not UTF-8."""
    if not has_control(content) if bad is CONTROL else bad is None and is_utf8(content):
        return False  # most inputs: without a look at each line
    lines = [line for line in re.split(b"\r\n|\n|\r", content) if line.strip()]
    if not whole and len(lines) > 1:
        lines.pop()
    wrong = sum(bool(bad.search(line)) if bad else not is_utf8(line) for line in lines)
    return wrong * 2 > len(lines)


def is_utf8(line: bytes) -> bool:
    """Whether it is well-formed."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class Recoded(io.RawIOBase):
    """A stream of another encoding as UTF-8. Halves of letters stay what no UTF-8 has, so that the
    row they are in is malformed.
    """

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._encoding = stream, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
        self._ready = b""
        self._last = False

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes; none at the end."""
        while not self._ready and not self._last:
            data = self._stream.read(1 << 16)
            self._last = not data
            self._ready = self._decoded(data)
        piece, self._ready = self._ready[: len(buffer)], self._ready[len(buffer) :]
        buffer[: len(piece)] = piece
        return len(piece)

    def _decoded(self, data: bytes) -> bytes:
        try:
            return self._decoder.decode(data, self._last).encode("utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            if self._last:
                return b"\xff"
            raise OSError(f"bytes that are not {self._encoding} ({error.reason})") from error

    def close(self) -> None:
        """Close the stream below, too."""
        self._stream.close()
        super().close()
