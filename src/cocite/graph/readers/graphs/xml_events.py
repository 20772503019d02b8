"""XML as events, with the line each stands on, and nothing that a document could do beyond itself.

A document that declares entities is refused, whatever they are for, and nothing is fetched. Names
of elements and attributes are without their prefix. Nothing is kept of what was read; the text of
an element is given to whoever asks for it, up to a megabyte.

Cost: a microsecond an element; memory for some 64 KiB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import IO, Any, Protocol
from xml.parsers import expat

from cocite.errors import InputError
from cocite.graph.readers.reader import Job
from cocite.graph.readers.sources import unpack_errors

__all__ = ["Handler", "parse_stream", "parse_xml"]

_PIECE = 1 << 16
_LONGEST_TEXT = 1 << 20


class Handler(Protocol):
    """Who is told of elements. ``wants_text`` is looked at for every text."""

    wants_text: bool

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        """An element begins."""

    def end(self, name: str, text: str) -> None:
        """An element ends; ``text`` is what was wanted since the last begin or end."""


def parse_xml(job: Job, handler: Handler) -> None:
    """Tell ``handler`` of all elements. Raises :class:`InputError` with the line."""
    source = job.source
    stream, raw = source.open()
    try:
        parse_stream(
            stream,
            source.label,
            handler,
            lambda: job.progress("reading " + source.short, raw.tell(), source.nbytes),
        )
    finally:
        stream.close()
        raw.close()


def parse_stream(
    stream: IO[bytes], label: str, handler: Handler, read: Callable[[], None] = lambda: None
) -> None:
    """The same of a stream that messages call ``label``; ``read`` is called now and then."""
    parser = expat.ParserCreate()
    _Events(parser, handler, label)
    try:
        while piece := stream.read(_PIECE):
            parser.Parse(piece, False)
            read()
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = expat.errors.messages.get(error.code, str(error))
        raise InputError(
            f"{label}:{error.lineno}: {what}, at column {error.offset + 1}: this is not "
            "well-formed XML"
        ) from error
    except unpack_errors() as error:
        raise InputError(f"{label} cannot be read to its end: {error}") from error


class _Events:
    """Expat's events, as :class:`Handler` has them."""

    def __init__(self, parser: Any, handler: Handler, label: str) -> None:
        self._parser, self._handler, self._label = parser, handler, label
        self._text: list[str] = []
        self._length = 0
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = self._refuse
        parser.SkippedEntityHandler = self._refuse
        parser.ExternalEntityRefHandler = self._refuse

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._clear()
        plain = {key.rpartition(":")[2]: value for key, value in attributes.items()}
        line = self._parser.CurrentLineNumber
        self._handler.start(name.rpartition(":")[2], plain, line)

    def _end(self, name: str) -> None:
        self._handler.end(name.rpartition(":")[2], "".join(self._text))
        self._clear()

    def _characters(self, text: str) -> None:
        if self._handler.wants_text:
            self._text.append(text)
            self._length += len(text)
            if self._length > _LONGEST_TEXT:
                raise InputError(
                    f"{self._label}:{self._parser.CurrentLineNumber}: a text of more than "
                    f"{_LONGEST_TEXT:,} characters; labels and weights are short"
                )

    def _clear(self) -> None:
        self._text.clear()
        self._length = 0

    def _refuse(self, *what: object) -> int:
        raise InputError(
            f"{self._label}:{self._parser.CurrentLineNumber}: the document declares or uses "
            "entities of its own, which cocite does not read. Write it without"
        )
