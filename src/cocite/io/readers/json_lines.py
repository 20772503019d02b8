"""JSON, a link a line, or a list of links: objects and lists by the rules of tables.

    {"source": "a", "target": "b"}      ["a", "b"]      [{"source": "a", "target": "b"}, ...]

The ends of a link are the members that ``--columns`` names, else those whose keys name them
(``io/readers/dialect.py``), else the only two; of lists, the first two, or those of these numbers.

Cost: some microseconds a link; memory for one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cocite.errors import UnrecognizedInput, UsageError
from cocite.io.readers.contract import FormatReader, Job, Read, text_lines
from cocite.io.readers.dialect import answer_in, ends_of
from cocite.io.readers.graphs.text import name_of
from cocite.io.readers.json_values import JSONText
from cocite.io.readers.rows import RowsFound, RowWriter
from cocite.io.readers.text import clean_relation, new_clean_file

_LONGEST = 1 << 24
_NAMES = ("id", "name", "node", "url", "title", "page")


def _read(job: Job) -> Read:
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
    return Read(clean_relation(job, read.integers), RowsFound.of(read, READER.title, note))


READER = FormatReader(
    "JSON lines",
    'a link a line, {"source": "a", "target": "b"} or ["a", "b"], or a list of such; --columns '
    "names other members",
    _read,
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
    yield from _lines(job, writer)


def _lines(job: Job, writer: RowWriter) -> Iterator[tuple[Any, int]]:
    for line, content in text_lines(job, _LONGEST, "line"):
        try:
            yield json.loads(content), line
        except (ValueError, RecursionError):
            writer.leave_out("JSON", line, "no value of JSON", content[:100])
