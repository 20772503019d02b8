"""JSON: a graph as nodes and links, or a link a line; read value by value, whatever its size.

    {"directed": true, "nodes": [{"id": "a"}, ...], "links": [{"source": "a", "target": "b"}, ...]}
    {"source": "a", "target": "b"}      ["a", "b"]      [{"source": "a", "target": "b"}, ...]

Nodes and links are those of NetworkX and d3: ``edges`` may stand for ``links``, a node's label is
its ``label``, ``name`` or ``title``, and where nodes have no ids, links name them by their numbers
from 0. ``--weight-column`` is a key of links. The ends of a link a line are the members that
``--columns`` names, else those whose keys name them (``io/readers/dialect.py``), else the only two.

Cost: some microseconds a value; memory for the largest one.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any

from cocite.errors import InputError, UnrecognizedInput, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read, text_lines
from cocite.io.readers.dialect import answer_in, ends_of
from cocite.io.readers.graphs.document import GraphWriter
from cocite.io.readers.rows import RowsFound, RowWriter
from cocite.io.readers.text import clean_relation, new_clean_file

_PIECE = 1 << 18
_LONGEST = 1 << 24
_BLANK = re.compile(r"[ \t\r\n]*")


class JSONText:
    """The text of one input, read from its front; a context."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._reading = job.source.reading()
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self._json = json.JSONDecoder()
        self._text, self._at, self._last = "", 0, False
        self._line = 1

    def __enter__(self) -> JSONText:
        self._stream, self._raw = self._reading.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._reading.__exit__(*error)

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
        piece = self._stream.read(max(_PIECE, len(self._text) - self._at))
        self._last = not piece
        more = self._decoder.decode(piece, self._last)
        self._text, self._at = self._text[self._at :] + more, 0
        self._job.progress(
            "reading " + self._job.source.short, self._raw.tell(), self._job.source.nbytes
        )
        return bool(more) or not self._last


# -- nodes and links ---------------------------------------------------------------------


_LABELS = ("label", "name", "title")


def _read_node_link(job: Job) -> Read:
    """All links, and all nodes."""
    directed, number = True, 0
    with GraphWriter(job, NODE_LINK_READER.title) as out, JSONText(job) as text:
        for key, value, line in text.members():
            if key == "directed":
                directed = value is not False
            elif key == "nodes":
                _node(out, value, number, line)
                number += 1
            elif key in ("links", "edges"):
                _link(out, value, job.options.weight, line)
        if text.peek():
            raise text.wrong("more than one value of JSON")
        return out.finish(all_both=not directed)


NODE_LINK_READER = FormatReader(
    "JSON of nodes and links",
    "JSON of nodes and links (NetworkX, d3); nodes are named by their labels (label, name or "
    "title) if all have one of their own, else by their ids",
    _read_node_link,
)


def name_of(value: Any) -> str | None:
    """A text or a whole number as a name; None of anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _node(out: GraphWriter, value: Any, number: int, line: int) -> None:
    given = value if isinstance(value, dict) else {"id": value}
    name = name_of(given.get("id", number))
    if name is None:
        out.bad("node", line, "a node whose id is no text or whole number", str(value)[:100])
        return
    labels = (name_of(given[key]) for key in _LABELS if key in given)
    out.node(name, next(filter(None, labels), None), line)


def _link(out: GraphWriter, value: Any, weight: str, line: int) -> None:
    ends: list[Any] = []
    if isinstance(value, dict):
        ends = [value.get("source"), value.get("target"), value.get(weight, "")]
    elif isinstance(value, list) and len(value) >= 2:
        ends = [*value[:2], value[2] if len(value) > 2 else ""]
    # d3 puts the node itself in the place of its id while it draws
    names = [name_of(end.get("id") if isinstance(end, dict) else end) for end in ends[:2]]
    if len(names) < 2 or None in names:
        out.bad("link", line, "no link of a source and a target", str(value)[:100])
        return
    source, target = map(str, names)
    out.link(source, target, "" if ends[2] is None else str(ends[2]), False, line)


# -- a link a line -----------------------------------------------------------------------


_NAMES = ("id", "name", "node", "url", "title", "page")


def _read_lines(job: Job) -> Read:
    """All links, or the names of nodes."""
    columns: _Columns | None = None
    with new_clean_file(job) as out:
        weighted = bool(job.options.weight) and job.wanted == 2
        writer = RowWriter(job, out, job.wanted, weighted=weighted)
        for value, line in _values(job, writer):
            if not isinstance(value, dict | list):
                if job.wanted == 1 and name_of(value) is not None:
                    writer.add([str(value)], line)
                    continue
                what = "no object and no list"
                writer.leave_out("link", line, what, json.dumps(value)[:100])
                continue
            if columns is None:
                columns = _Columns(job, value)
            row = columns.of(value)
            if row is None:
                what = f"no text or whole number as {' or '.join(columns.asked[: job.wanted])}"
                writer.leave_out("link", line, what, json.dumps(value)[:100])
            else:
                writer.add(row, line)
        read = writer.finish()
    asked = columns.asked if columns is not None else []
    note = f"{' and '.join(asked[:2])} are the link" if job.wanted == 2 and asked else ""
    note += f" and {asked[2]} its weight" if len(asked) > 2 else ""
    return Read(clean_relation(job, read.integers), RowsFound.of(read, LINES_READER.title, note))


LINES_READER = FormatReader(
    "JSON lines",
    'a link a line, {"source": "a", "target": "b"} or ["a", "b"], or a list of such; --columns '
    "names other members",
    _read_lines,
)


class _Columns:
    """Where the ends of links are, as the options or the first value say."""

    def __init__(self, job: Job, first: Any) -> None:
        options, self._requested, self._sides = job.options, job.wanted, job.options.sides
        named = list(options.columns)
        if not named and isinstance(first, list):
            named = ["1", "2"][: self._requested]
        elif not named:
            named = self._found(job.source.label, list(first))
        self._weighted = bool(options.weight) and job.wanted == 2
        self._keys = named + ([options.weight] if self._weighted else [])
        if isinstance(first, list):
            numbers = [key for key in self._keys if not key.isdecimal() or int(key) < 1]
            if numbers:
                raise UsageError(
                    f"{job.source.label} has lists, whose elements are numbered from 1; "
                    f"{numbers[0]!r} is no number"
                )
        else:
            missing = [key for key in self._keys if key not in first]
            if missing:
                raise UsageError(
                    f"{job.source.label} has no member {missing[0]!r}; the first object has "
                    + ", ".join(map(repr, first))
                )
        self.asked = [repr(key) if isinstance(first, dict) else key for key in self._keys]

    def _found(self, label: str, keys: list[str]) -> list[str]:
        if self._requested == 1:
            known = [key for key in keys if key.lower() in _NAMES]
            return (known or keys)[:1]
        if answer := answer_in(keys):
            raise UnrecognizedInput(f"{label} {answer}")
        ends = ends_of(keys, self._sides)
        if ends is not None:
            return [keys[end] for end in ends]
        if len(keys) == 2:
            return keys
        raise UnrecognizedInput(
            f"{label} has objects with {', '.join(map(repr, keys)) or 'no members'}; which are "
            "source and target is not clear. Say it: --columns SOURCE,TARGET"
        )

    def of(self, value: Any) -> list[str] | None:
        """The row of a value; None if it has none."""
        if isinstance(value, list):
            places = [int(key) - 1 if key.isdecimal() else len(value) for key in self._keys]
            cells = [value[at] if 0 <= at < len(value) else None for at in places]
        else:
            cells = [value.get(key) for key in self._keys]
        names = [name_of(cell) for cell in cells[: self._requested]]
        if len(names) < self._requested or None in names:
            return None
        row = [str(name) for name in names]
        return [*row, "" if cells[-1] is None else str(cells[-1])] if self._weighted else row


def _values(job: Job, writer: RowWriter) -> Iterator[tuple[Any, int]]:
    """(value, line) of each value: of a line, or of one list of them all."""
    text = job.source.beginning().text.lstrip()
    first = text[:1]
    inner = text[1:].lstrip()[:1]
    if first == "[" and inner in ("{", "["):
        with JSONText(job) as whole:
            yield from whole.elements()
            if whole.peek():
                raise whole.wrong("more than one list")
        return
    yield from _of_lines(job, writer)


def _of_lines(job: Job, writer: RowWriter) -> Iterator[tuple[Any, int]]:
    for line, content in text_lines(job, _LONGEST, "line"):
        try:
            yield json.loads(content), line
        except (ValueError, RecursionError):
            writer.leave_out("JSON", line, "no value of JSON", content[:100])
