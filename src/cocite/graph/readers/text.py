"""Text edge lists: look at the first lines, decide how to read, then clean the whole.

What is not given is found out from the first lines (after comments and blank ones):

* delimiter: the first of tab, comma, semicolon, bar and blanks that cuts all of them into the
  same number of columns, two at least (comma first for ``.csv``);
* header: the first line, if the columns taken have well-known titles (``source``, ``to``, ...),
  or if it has text above a column of numbers;
* columns: the first two.

A file of nodes is one name a line, or a table if tabs (commas in ``.csv``) cut it into columns.

Every decision is reported in the manifest and by the command line; none is silent. The cleaning
itself is ``kernels/text.py``.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from typing import IO, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, MalformedRow, UsageError
from cocite.graph.readers.clean import clean_relation, new_clean_file
from cocite.graph.readers.options import DELIMITERS, Progress, ReadOptions
from cocite.graph.readers.reader import Job
from cocite.graph.readers.sources import Source, unpack_errors
from cocite.store import disk

__all__ = ["READER", "Cleaner", "Lines", "TextInput", "TextReader", "clean_text"]

_PIECE = 1 << 23
_MAX_LINE = 1 << 22
_LOOK = 1 << 16
_SAMPLE_LINES = 100
_KEPT_EXAMPLES = 5
_LINE_END = re.compile(rb"\r\n|\n|\r")
_TITLES = frozenset(
    {"source", "target", "src", "dst", "dest", "destination", "from", "to"}
    | {"citing", "cited", "node", "node1", "node2", "id", "name", "label", "page"}
    | {"url", "link", "title", "linksource", "linktarget", "fromnodeid", "tonodeid"}
    | {f"{end}_{what}" for end in ("from", "to") for what in ("id", "node", "page", "url")}
    | {f"{end}_{what}" for end in ("source", "target") for what in ("id", "node", "page", "url")}
    | {"src_id", "dst_id"}
)


@dataclass
class TextInput:
    """How one text was read and what was found: goes into the manifest."""

    file: str
    delimiter: str = "tab"
    header: bool = False
    columns: int = 2
    taken: tuple[int, ...] = (0, 1)
    weight: int | None = None
    rows: int = 0
    comments: int = 0
    blank_lines: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    integers: bool = True
    first: tuple[str, ...] = ()

    def describe(self) -> str:
        """One line for people."""
        kind = {"space": "blank-separated"}.get(self.delimiter, f"{self.delimiter}-separated")
        text = f"{self.file}: {kind}, {'a header' if self.header else 'no header'}"
        if self.comments:
            text += f", {self.comments:,} comment line{'s' * (self.comments > 1)}"
        if len(self.taken) == 2 and (self.columns > 2 or self.taken != (0, 1)):
            first, second = (i + 1 for i in self.taken)
            text += f", {self.columns} columns of which {first} and {second} are the link"
            text += "" if self.weight is None else f" and {self.weight + 1} its weight"
        if self.first and not self.integers:  # titles could be mistaken for names: show them
            text += f"; the first link is {' -> '.join(self.first)}"
        return text


class TextReader:
    """Text of any of the dialects above."""

    title = "text"
    described = "text (tabs, commas, semicolons, bars or blanks; plain, .gz or .zst)"
    streams = True

    def accepts(self, source: Source) -> bool:
        """Whatever is no directory: what it holds is found out on the way."""
        return not source.is_directory

    def read(self, job: Job) -> tuple[str, TextInput]:
        """Write the clean rows to a file, and load that."""
        with new_clean_file(job) as out:
            found = clean_text(job.source, job.wanted, job.options, out, job.progress)
        return clean_relation(job, found.integers), found


READER = TextReader()


def clean_text(
    source: Source, wanted: int, options: ReadOptions, out: BinaryIO, progress: Progress
) -> TextInput:
    """Write the clean rows of ``source`` to ``out``: ``wanted`` (2: links, 1: nodes) fields a row.

    Raises :class:`MalformedRow` at the first bad row unless they are to be skipped, and
    :class:`InputError` for text that cannot be read at all.
    """
    stream, raw = source.open()
    try:
        return Cleaner(source, wanted, options).run(_Text(stream, raw), out, progress)
    except unpack_errors() as error:
        raise InputError(f"{source.label} cannot be read to its end: {error}") from error
    finally:
        stream.close()
        raw.close()


class Lines(Protocol):
    """A stream of text."""

    def read(self, size: int) -> bytes:
        """Some of it; nothing at the end."""

    def tell(self) -> int:
        """How many bytes of the input were read for it."""


@dataclass(frozen=True)
class _Text:
    """An unpacked stream above the packed one."""

    stream: IO[bytes]
    raw: BinaryIO

    def read(self, size: int) -> bytes:
        return self.stream.read(size)

    def tell(self) -> int:
        return self.raw.tell()


class Cleaner:
    """One pass over one text. ``unit`` is what examples of bad rows are numbered by."""

    unit = "line"

    def __init__(self, source: Source, wanted: int, options: ReadOptions) -> None:
        from cocite.kernels import text as kernels

        self._k = kernels
        self._source = source
        self.wanted = wanted
        self.options = options
        self._tally = np.zeros(kernels.TALLY, np.int64)
        self._tally[kernels.T_INTEGER] = 1
        self._bad = np.zeros((_KEPT_EXAMPLES, kernels.BAD_FIELDS), np.int64)
        self._long_lines = 0
        self.found = TextInput(source.label)

    def run(self, stream: Lines, out: BinaryIO, progress: Progress) -> TextInput:
        """Write the clean rows of ``stream`` to ``out``."""
        k = self._k
        room = np.empty(_PIECE + _MAX_LINE + 2, np.uint8)
        rest = b""
        rules: NDArray[np.int64] | None = None
        while True:
            data = stream.read(_PIECE)
            last = not data
            piece = rest + data
            if rules is None:
                piece = piece.removeprefix(b"\xef\xbb\xbf")
                self.decide(piece)
                rules = self._rules()
            # A CR at the very end may be half of a CRLF.
            ends = piece.rfind(b"\n"), piece.rfind(b"\r", 0, max(len(piece) - 1, 0))
            cut = len(piece) if last else max(ends) + 1
            piece, rest = piece[:cut], piece[cut:]
            if room.size < len(piece) + 2:
                room = np.empty(len(piece) + 2, np.uint8)
            self._clean(piece, rules, room)
            disk.write(out, room[: self._tally[k.T_BYTES]].data)
            progress("reading " + self._source.short, stream.tell(), self._source.nbytes)
            if len(rest) > _MAX_LINE:
                rest = self._drop_long_line(stream, rest)
            if last:
                break
        return self._report()

    def _clean(self, piece: bytes, rules: NDArray[np.int64], room: NDArray[np.uint8]) -> None:
        text = np.frombuffer(piece, np.uint8)
        wrong = self._k.normalise(text, rules, room, self._bad, self._tally)
        for line, low, high, reason in self._bad[:wrong].tolist():
            content = piece[low:high].decode("utf-8", "backslashreplace")
            content = content if len(content) <= 100 else content[:100] + "..."
            self.refuse(line, self._explain(reason), content)

    def refuse(self, line: int, what: str, content: str) -> None:
        """A bad row: an error, or an example if such rows are to be skipped."""
        if not self.options.skip_bad_rows:
            raise MalformedRow(self._source.label, line, what, content)
        if len(self.found.examples) < _KEPT_EXAMPLES:
            self.found.examples.append(f"{self.unit} {line}: {what}: {content!r}")

    def _explain(self, reason: int) -> str:
        k = self._k
        if reason == k.COLUMNS:
            kind = {"space": "blank"}.get(self.found.delimiter, self.found.delimiter)
            return f"not {self.found.columns} {kind}-separated columns"
        return {
            k.EMPTY: "an empty name",
            k.CONTROL: "a control character in a name",
            k.ENCODING: "bytes that are not UTF-8",
            k.QUOTE: "a quote that is not closed at the end of its field",
            k.LONG: f"a name of more than {k.MAX_NAME} bytes",
            k.NO_WEIGHT: "a weight that is no number from 1e-30 to below 1e30",
        }[reason]

    def _drop_long_line(self, stream: Lines, rest: bytes) -> bytes:
        """A line beyond any name's length: refuse it and read on behind its end."""
        k, tally = self._k, self._tally
        tally[k.T_LINES] += 1
        tally[k.T_BAD] += 1
        self._long_lines += 1
        start = rest[:60].decode("utf-8", "backslashreplace") + "..."
        self.refuse(int(tally[k.T_LINES]), f"a line of more than {_MAX_LINE} bytes", start)
        tail = rest[-1:]
        while data := stream.read(_PIECE):
            tail += data
            end = _LINE_END.search(tail)
            if end and (end[0] != b"\r" or end.end() < len(tail)):
                return tail[end.end() :]
            tail = tail[-1:]
        return b""

    def decide(self, head: bytes) -> None:
        """Fix delimiter, header and columns from the first lines."""
        options, found = self.options, self.found
        lines = _sample(head, options.comment)
        found.delimiter = options.delimiter
        if found.delimiter == "auto":
            path = self._source.path
            comma_first = path is not None and ".csv" in path.suffixes
            found.delimiter = _guess_delimiter(lines, self.wanted, comma_first)
        rows = [_fields(line, found.delimiter) for line in lines]
        found.columns = len(rows[0]) if rows else self.wanted
        self._choose_columns(rows[0] if rows else [])
        taken = found.taken
        found.header = options.header == "yes" or (
            options.header == "auto" and (bool(_named(options)) or _has_header(rows, taken))
        )
        if rows and options.header == "auto" and not found.header and len(taken) == 2:
            found.first = tuple(rows[0][i].strip() for i in taken if i < len(rows[0]))

    def _rules(self) -> NDArray[np.int64]:
        """What was decided, as the kernel takes it."""
        k, options, found, taken = self._k, self.options, self.found, self.found.taken
        rules = np.full(k.RULES, -1, np.int64)
        rules[k.DELIMITER] = ord(DELIMITERS[found.delimiter])
        rules[k.QUOTES] = found.delimiter in ("comma", "semicolon")
        rules[k.EXPECTED] = found.columns
        rules[k.FIRST] = taken[0]
        rules[k.SECOND] = taken[1] if len(taken) > 1 else -1
        rules[k.WEIGHT] = -1 if found.weight is None else found.weight
        rules[k.COMMENT] = ord(options.comment) if options.comment else -1
        rules[k.STOP] = not options.skip_bad_rows
        self._tally[k.T_SKIP] = int(found.header)
        return rules

    def _choose_columns(self, first: list[str]) -> None:
        found, options = self.found, self.options
        if not options.columns:
            found.taken = tuple(range(self.wanted))
            # A first row that is too short is a malformed row, with its line number.
            found.columns = max(found.columns, self.wanted)
        places = self._places(options.columns_named, first)
        if options.columns:
            found.taken = places[: self.wanted]
        if options.weight:
            found.weight = places[-1]
        every = (*found.taken, *places[len(options.columns) :])
        if len(set(every)) != len(every):
            if options.columns:
                raise UsageError(
                    f"columns {','.join(options.columns_named)} names one column twice"
                )
            raise UsageError(
                f"{found.file}: the weight's column {options.weight!r} is one of the link's, which "
                "are the first two unless --columns names others"
            )

    def _places(self, columns_named: tuple[str, ...], first: list[str]) -> tuple[int, ...]:
        """Where the columns stand that are asked for, from 0 on."""
        found = self.found
        titles = [title.strip().lower() for title in first] if _named(self.options) else []
        missing = [
            n for n in columns_named if n.strip().lower() not in titles and not n.isdecimal()
        ]
        if missing:
            raise UsageError(
                f"{found.file} has no column {missing[0]!r}; its first row is "
                + ", ".join(map(repr, first))
            )
        places = tuple(
            titles.index(name.strip().lower()) if name.strip().lower() in titles else int(name) - 1
            for name in columns_named
        )
        if not all(0 <= i < found.columns for i in places):
            option = "--columns" if self.options.columns else "--weight-column"
            raise UsageError(
                f"{found.file} has {found.columns} columns; {option} asks for "
                + " and ".join(columns_named)
            )
        return places

    def _report(self) -> TextInput:
        k, tally, found = self._k, self._tally, self.found
        found.rows = int(tally[k.T_ROWS])
        found.comments = int(tally[k.T_COMMENT])
        found.blank_lines = int(tally[k.T_BLANK])
        found.bad_rows = {
            name: int(tally[k.T_BAD + reason])
            for reason, name in k.REASONS.items()
            if tally[k.T_BAD + reason]
        }
        if self._long_lines:
            found.bad_rows[f"line over {_MAX_LINE} bytes"] = self._long_lines
        found.integers = bool(tally[k.T_INTEGER])
        return found


def _named(options: ReadOptions) -> bool:
    return any(not column.isdecimal() for column in options.columns_named)


def _sample(head: bytes, comment: str) -> list[str]:
    """The first lines that hold data; the last one is left out if it may be cut."""
    text = head[:_LOOK].decode("utf-8", "replace")
    lines = re.split("\r\n|\n|\r", text)
    if len(head) > _LOOK and len(lines) > 1:
        lines.pop()
    marks = (comment,) if comment else ()
    return [s for s in lines if s.strip() and not s.strip().startswith(marks)][:_SAMPLE_LINES]


def _fields(line: str, delimiter: str) -> list[str]:
    if delimiter == "space":
        return line.split()
    if delimiter in ("comma", "semicolon"):
        return next(csv.reader([line], delimiter=DELIMITERS[delimiter], skipinitialspace=True), [])
    return line.split(DELIMITERS[delimiter])


def _guess_delimiter(lines: list[str], wanted: int, comma_first: bool) -> str:
    order = ["tab", "comma", "semicolon", "pipe", "space"]
    if comma_first:
        order = ["comma", "semicolon", "tab", "pipe", "space"]
    if wanted == 1:  # one name a line, blanks belonging to it, unless the file is a table
        order = order[:1] if comma_first else ["tab"]
    for delimiter in order:
        counts = {len(_fields(line, delimiter)) for line in lines}
        if len(counts) == 1 and counts.pop() >= 2:
            return delimiter
    for delimiter in order:  # not regular: read on, and name the first row that does not fit
        if lines and len(_fields(lines[0], delimiter)) >= 2:
            return delimiter
    return order[0]


def _has_header(rows: list[list[str]], taken: tuple[int, ...]) -> bool:
    if not rows or len(rows[0]) <= max(taken):
        return False
    first = [rows[0][i].strip() for i in taken]
    titled = all(title.lower().lstrip("_") in _TITLES for title in first)
    names = {row[i].strip() for row in rows[1:] for i in taken if len(row) > i}
    if titled and len(rows[0]) > 1 and not names & set(first):  # a node may be called "source"
        return True
    # Text above a column of numbers, in whichever column: a title.
    for i, title in enumerate(rows[0]):
        below = [row[i].strip() for row in rows[1:] if len(row) > i]
        if below and all(map(_numeric, below)) and not _numeric(title.strip()):
            return True
    return False


def _numeric(text: str) -> bool:
    return re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text) is not None
