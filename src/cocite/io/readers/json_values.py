"""JSON of any size, value by value, with the line each begins on.

    values(...)    all values that follow each other: one of a file, or one a line
    members(...)   of one object: (key, value) of each member; of a member that is a list, of each
                   of its elements
    elements(...)  those of one list

Cost: some microseconds a value; memory for the largest one of those that are yielded.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from cocite.errors import InputError
from cocite.io.readers.contract import Job
from cocite.io.readers.sources import unpack_errors

_PIECE = 1 << 18
_LONGEST = 1 << 24
_BLANK = re.compile(r"[ \t\r\n]*")


class JSONText:
    """The text of one input, read from its front; to be used as a context."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._stream, self._raw = job.source.open()
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text, self._at, self._last = "", 0, False
        self._line = 1

    def __enter__(self) -> JSONText:
        return self

    def __exit__(self, *error: object) -> None:
        self._stream.close()
        self._raw.close()

    def wrong(self, what: str, line: int | None = None) -> InputError:
        """The error to raise."""
        return InputError(f"{self._job.source.label}:{line or self._line}: {what}")

    def peek(self) -> str:
        """The next character that is no blank; "" at the end."""
        while True:
            end = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]
            self._go(end)
            if end < len(self._text):
                return self._text[end]
            if not self._more():
                return ""

    def take(self, wanted: str) -> bool:
        """Pass over the next character if it is this one."""
        if self.peek() != wanted:
            return False
        self._at += 1
        return True

    def expect(self, wanted: str) -> None:
        """Pass over the next character, which is this one."""
        if not self.take(wanted):
            found = self.peek()
            raise self.wrong(
                f"{wanted!r} is missing, where {found!r} stands" if found else "it ends too early"
            )

    def value(self) -> tuple[Any, int]:
        """The next value, whole, and its line."""
        if not self.peek():
            raise self.wrong("it ends too early")
        line = self._line
        while True:
            try:
                value, end = self._json.raw_decode(self._text, self._at)
            except RecursionError:
                raise self.wrong("lists in lists without end") from None
            except ValueError as error:
                if len(self._text) - self._at < _LONGEST and self._more():
                    continue
                raise self.wrong(f"no value of JSON ({error.args[0].split(':')[0]})") from None
            if end < len(self._text) or not self._more():
                self._go(end)
                return value, line

    def elements(self) -> Iterator[tuple[Any, int]]:
        """(value, line) of those of the list that begins here."""
        self.expect("[")
        if self.take("]"):
            return
        while True:
            yield self.value()
            if self.take("]"):
                return
            self.expect(",")

    def members(self) -> Iterator[tuple[str, Any, int]]:
        """(key, value, line) of those of the object that begins here; of lists, of each element."""
        self.expect("{")
        if self.take("}"):
            return
        while True:
            key, line = self.value()
            if not isinstance(key, str):
                raise self.wrong("a key that is no text", line)
            self.expect(":")
            if self.peek() == "[":
                for value, place in self.elements():
                    yield key, value, place
            else:
                yield key, *self.value()
            if self.take("}"):
                return
            self.expect(",")

    def _go(self, end: int) -> None:
        self._line += self._text.count("\n", self._at, end)
        self._at = end

    def _more(self) -> bool:
        """Have more text; whether there is."""
        if self._last:
            return False
        try:
            piece = self._stream.read(max(_PIECE, len(self._text) - self._at))
        except unpack_errors() as error:
            raise InputError(
                f"{self._job.source.label} cannot be read to its end: {error}"
            ) from error
        self._last = not piece
        more = self._decoder.decode(piece, self._last)
        self._text, self._at = self._text[self._at :] + more, 0
        self._job.progress(
            "reading " + self._job.source.short, self._raw.tell(), self._job.source.nbytes
        )
        return bool(more) or not self._last
