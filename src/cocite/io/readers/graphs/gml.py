"""GML: a graph in brackets, of nodes with ids and labels.

    graph [ directed 1  node [ id 0 label "Zebra" ]  edge [ source 0 target 1 value 2 ] ]

Links are without direction unless the graph says ``directed 1``. ``--weight-column`` is a key of
links, such as ``value`` or ``weight``. Text is UTF-8, with the entities of HTML in it.

Cost: a microsecond a word, and that of :mod:`~cocite.io.readers.graphs.document`.
Himsolt, "GML: a portable graph file format", University of Passau, 1997.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from html import unescape

from cocite.errors import InputError
from cocite.io.readers.contract import FormatReader, Job, Read
from cocite.io.readers.graphs.document import GraphWriter

_PIECE = 1 << 18
_LONGEST = 1 << 22
_WORD = re.compile(r'\s+|#[^\n]*|"([^"]*)"|([\[\]])|([^\s\[\]"#]+)')
_DEEPEST = 1000


def _read_gml(job: Job) -> Read:
    """All links, and all nodes."""
    with GraphWriter(job, READER.title) as out:
        return out.finish(all_both=not _Graph(job, out).run())


READER = FormatReader(
    "GML",
    "GML; nodes are named by their labels if all have one of their own, else by their ids",
    _read_gml,
)


class _Graph:
    """The nesting of keys; what is in a node or a link is kept until it is closed."""

    def __init__(self, job: Job, out: GraphWriter) -> None:
        self._job, self._out = job, out
        self._directed = False
        self._open: list[str] = []
        self._values: dict[str, str] = {}
        self._begun = 0

    def run(self) -> bool:
        """Push all nodes and links; whether links have a direction."""
        key, line = "", 1
        for line, kind, text in _words(self._job):
            if not key and kind == "key":
                key = text.lower()
            elif text == "]" and kind == "mark" and not key and self._open:
                self._close()
            elif not key or (kind == "mark" and text == "]"):
                raise self._wrong(line, f"{text[:60]!r} is not where a key is to be")
            else:
                self._value(key, kind, text, line)
                key = ""
        if self._open or key:
            raise self._wrong(line, "it ends within brackets")
        return self._directed

    def _wrong(self, line: int, what: str) -> InputError:
        return InputError(f"{self._job.source.label}:{line}: {what}: this is not GML")

    def _value(self, key: str, kind: str, text: str, line: int) -> None:
        if kind == "mark":
            self._open.append(key)
            if len(self._open) > _DEEPEST:
                raise self._wrong(line, f"more than {_DEEPEST:,} brackets in each other")
            if self._open in (["graph", "node"], ["graph", "edge"]):
                self._values, self._begun = {}, line
        elif len(self._open) == 2:
            self._values.setdefault(key, text)
        elif self._open == ["graph"] and key == "directed":
            self._directed = text == "1"

    def _close(self) -> None:
        values = self._values
        if self._open == ["graph", "node"]:
            self._out.node(values.get("id", ""), values.get("label"), self._begun)
        elif self._open == ["graph", "edge"]:
            weight = values.get(self._job.options.weight.lower(), "")
            ends = values.get("source", ""), values.get("target", "")
            self._out.link(*ends, weight, False, self._begun)
        self._open.pop()


def _words(job: Job) -> Iterator[tuple[int, str, str]]:
    """(line, key or text or mark, the word) of all words."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    rest, line, last = "", 1, False
    with job.source.reading() as (stream, raw):
        while not last:
            piece = stream.read(_PIECE)
            last = not piece
            text = rest + decoder.decode(piece, last)
            job.progress("reading " + job.source.short, raw.tell(), job.source.nbytes)
            at = 0
            while at < len(text):
                found = _WORD.match(text, at)
                if not last and (found is None or found.end() == len(text)):
                    break  # it may go on in the next piece
                if found is None:
                    raise InputError(
                        f"{job.source.label}:{line}: a text that is not closed: this is not GML"
                    )
                if found[1] is not None:
                    yield line, "text", unescape(found[1]) if "&" in found[1] else found[1]
                elif found[2] is not None:
                    yield line, "mark", found[2]
                elif found[3] is not None:
                    yield line, "key", found[3]
                line += text.count("\n", at, found.end())
                at = found.end()
            rest = text[at:]
            if len(rest) > _LONGEST:
                raise InputError(
                    f"{job.source.label}:{line}: a text of more than {_LONGEST:,} characters: this "
                    "is not GML"
                )
