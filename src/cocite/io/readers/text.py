"""Text: detect the layout from the first lines, then clean the rows (``kernels/text.py``).

``io/readers/dialect.py`` detects the delimiter, header and columns that are not given, or raises an
error that asks for them. A file of node names has one name per line, or is a table if tabs (commas
in ``.csv``) split it into columns.

The result is a clean file, which DuckDB loads without detection: one row per line, fields separated
by tabs, lines ended by LF, no header, no quotes. It begins with a byte order mark, because DuckDB
would otherwise remove U+FEFF from the first name.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from cocite.errors import SKIP_ADVICE, MalformedRow, UnrecognizedInput
from cocite.graph.spelling import turn_in
from cocite.io.database import file_literal
from cocite.io.readers import dialect
from cocite.io.readers.contract import (
    DELIMITERS,
    EXAMPLES,
    FormatReader,
    Found,
    Job,
    Progress,
    ReadOptions,
    RowBatch,
    bad_row_advice,
    each_with_progress,
)
from cocite.io.readers.sources import LOOK, Source, lines_of
from cocite.storage import disk

_NAME = "clean.tsv"


@contextmanager
def new_clean_file(job: Job, name: str = _NAME) -> Iterator[BinaryIO]:
    """Open a clean file in the job's scratch directory for writing."""
    with disk.rewrite(job.scratch / name) as out:
        disk.write(out, codecs.BOM_UTF8)
        yield out


def clean_relation(job: Job, integers: bool) -> str:
    """Return the relation (``io/readers/contract.py``) of the clean file."""
    kind = "UBIGINT" if integers else "VARCHAR"
    columns = dict.fromkeys("ab"[: job.wanted], kind)
    return relation_of(job, columns | ({"w": "DOUBLE"} if job.options.weight else {}))


def relation_of(job: Job, columns: dict[str, str], name: str = _NAME) -> str:
    """Return the relation of a clean file; ``columns`` maps names to types."""
    typed = ", ".join(f"'{column}': '{kind}'" for column, kind in columns.items())
    return (
        f"SELECT * FROM read_csv({file_literal(Path(job.scratch, name).resolve())}, "
        "delim = '\t', header = false, auto_detect = false, quote = '', escape = '', "
        f"comment = '', new_line = '\\n', nullstr = '\x01', columns = {{{typed}}})"
    )


_PIECE = 1 << 23
_MAX_LINE = 1 << 22
_TOGETHER = 1 << 26
"""Bytes of clean rows, from several texts, to load at once."""
_TOLD = re.compile(r'"?sep=([,;|\t])"?', re.I)
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass
class TextInput(Found):
    """Report on one text, for the manifest."""

    first_keys: ClassVar[tuple[str, ...]] = (
        *("file", "delimiter", "header", "columns", "taken", "weight"),
        *("rows", "comments", "blank_lines"),
    )

    delimiter: str = "tab"
    header: bool = False
    columns: int = 2
    taken: tuple[int, ...] = (0, 1)
    weight: int | None = None
    comments: int = 0
    blank_lines: int = 0
    first: tuple[str, ...] = ()
    guessed = False  # whether columns were guessed; not a field, so not stored
    unread = ""  # name of an unused weight column; not stored either

    def describe(self) -> str:
        """Return a line of text that starts with ``file``."""
        kind = {"space": "blank-separated"}.get(self.delimiter, f"{self.delimiter}-separated")
        text = f"{self.file}: {kind}, {'a header' if self.header else 'no header'}"
        if self.header and self.first:
            titles = ", ".join(map(repr, self.first))
            text += f" ({titles}; if these are a link: --header no)"
        if self.comments:
            text += f", {self.comments:,} comment line{'s' * (self.comments > 1)}"
        if len(self.taken) == 2 and (self.columns > 2 or self.taken != (0, 1)):
            first, second = (i + 1 for i in self.taken)
            text += f", {self.columns} columns, with links from column {first} to column {second}"
            text += "" if self.weight is None else f" and weights in column {self.weight + 1}"
            unused = self.columns > 2 + (self.weight is not None)
            if self.guessed and (unused or self.taken != (0, 1)):
                text += dialect.OTHERS
            text += dialect.weights_note(self.unread)
        if self.first and not self.header and not self.integers:  # may be column names
            text += f"; the first link is {' -> '.join(self.first)}"
        return text


def _read_many(job: Job, sources: Sequence[Source]) -> Iterator[RowBatch]:
    """Clean texts, and yield batches of up to about :data:`_TOGETHER` bytes."""
    each = each_with_progress(job.progress, sources)
    for begun in each:
        read, found = list[Source](), list[Found]()
        with new_clean_file(job) as out:
            for source, progress in chain([begun], each):
                found.append(clean_text(source, job.wanted, job.options, out, progress))
                read.append(source)
                if out.tell() >= _TOGETHER:
                    break
        rows = clean_relation(job, all(one.integers for one in found))
        yield RowBatch(rows, read, found)


READER = FormatReader(
    "text",
    "rows of columns separated by tabs, commas, semicolons, bars or blanks",
    read_many=_read_many,
)


def load_text(job: Job, source: Source, table: str) -> TextInput:
    """Load a text into a table of the schema ``reading``, with the job's options."""
    with new_clean_file(job) as out:
        found = clean_text(source, job.wanted, job.options, out, job.progress)
    job.run(f"CREATE TABLE reading.{table} AS {clean_relation(job, found.integers)}")
    return found


def clean_text(
    source: Source, wanted: int, options: ReadOptions, out: BinaryIO, progress: Progress
) -> TextInput:
    """Write the clean rows of ``source`` to ``out``: links if ``wanted`` is 2, node names if 1.

    Raises :class:`MalformedRow` at the first bad row unless such rows are skipped, and
    :class:`InputError` for unreadable text.
    """
    with source.reading() as (stream, raw):
        return Cleaner(source, wanted, options).run(stream, raw.tell, out, progress)


class Cleaner:
    """One pass over one text; after :meth:`decide`, ``sampled`` contains the first rows' fields."""

    unit = "line"
    as_written = True  # rows are from the input, and weights may have decimal commas
    _to_do = ""

    def __init__(self, source: Source, wanted: int, options: ReadOptions) -> None:
        from cocite.kernels import text as kernels

        self._k = kernels
        self._source = source
        self.wanted = wanted
        self.options = options
        self._tally = np.zeros(kernels.TALLY, np.int64)
        self._tally[kernels.T_INTEGER] = 1
        self._bad = np.zeros((EXAMPLES, kernels.BAD_FIELDS), np.int64)
        self._long_lines = 0
        self._skip = 0
        self._first_row = 0  # the first row's line number; 0 if it is a header
        self.sampled: list[list[str]] = []
        self.found = TextInput(source.label)

    def run(
        self, stream: Any, tell: Callable[[], int], out: BinaryIO, progress: Progress
    ) -> TextInput:
        """Write the clean rows of ``stream``; ``tell`` returns the number of input bytes read."""
        k = self._k
        room = np.empty(_PIECE + _MAX_LINE + 2, np.uint8)
        rest = b""
        rules: NDArray[np.int64] | None = None
        suspects: tuple[str, ...] = ()
        while True:
            data = stream.read(_PIECE)
            last = not data
            piece = rest + data
            if rules is None:
                piece = piece.removeprefix(b"\xef\xbb\xbf")
                self.decide(piece)
                rules = self.rules()
                asked = self.found.header and self.wanted == 2
                suspects = self.found.first if asked else ()
            # A CR at the end of a chunk may be half of a CRLF.
            ends = piece.rfind(b"\n"), piece.rfind(b"\r", 0, max(len(piece) - 1, 0))
            cut = len(piece) if last else max(ends) + 1
            piece, rest = piece[:cut], piece[cut:]
            rules[k.UNFINISHED] = not last
            if room.size < len(piece) + 2:
                room = np.empty(len(piece) + 2, np.uint8)
            self._clean(piece, rules, room)
            clean = room[: self._tally[k.T_BYTES]].data
            if suspects:
                dialect.see_no_titles(bytes(clean), suspects, self.found.file)
            disk.write(out, clean)
            if self._tally[k.T_REST] >= 0:  # a quoted field continues in the next chunk
                rest = piece[self._tally[k.T_REST] :] + rest
            progress("reading " + self._source.short, tell(), self._source.nbytes)
            if len(rest) > _MAX_LINE:
                rest = self._drop_long_line(stream, rest)
            if last:
                break
        return self._report()

    def _clean(self, piece: bytes, rules: NDArray[np.int64], room: NDArray[np.uint8]) -> None:
        text = np.frombuffer(piece, np.uint8)
        wrong = self._k.normalize(text, rules, room, self._bad, self._tally)
        for line, low, high, reason in self._bad[:wrong].tolist():
            content = piece[low:high].decode("utf-8", "backslashreplace")
            what = advice = ""
            if reason == self._k.TURNED:
                what = f"a name with {turn_in(content)}"
            elif reason == self._k.NO_WEIGHT and not self.as_written:
                what = f"the weight of a link, {self.options.weight!r}, is missing, or is not a "
                what += "number from 1e-30 to below 1e30"
                advice = f"{SKIP_ADVICE}. If weights have another name: --weight-column NAME "
                advice += "(weight_column=...); without it, links have no weights"
            elif reason == self._k.NO_WEIGHT:
                comma = self.found.delimiter != "comma" and "," in content
                advice = "Weights have a decimal point, as in 0.5" if comma else ""
            content = content if len(content) <= 100 else content[:100] + "..."
            self._to_do = advice
            self.refuse(line, what or self._explain(reason), content)

    def refuse(self, line: int, what: str, content: str) -> None:
        """Raise an error for a bad row, or store an example if such rows are skipped."""
        if self.options.bad_rows == "stop":
            advice = self._to_do or self._advice(line)
            raise MalformedRow(self._source.label, line, what, content, advice)
        if len(self.found.examples) < EXAMPLES:
            self.found.examples.append(f"{self.unit} {line}: {what}: {content!r}")

    def _advice(self, line: int) -> str:
        """Return advice on the first bad row, given the numbers of bad and good rows so far."""
        bad, good = int(self._tally[self._k.T_BAD]), int(self._tally[self._k.T_ROWS])
        titles = "If it names the columns: --header yes. " if line == self._first_row else ""
        return titles + bad_row_advice(bad, bad + good)

    def _explain(self, reason: int) -> str:
        k, found = self._k, self.found
        kind = {"space": "blank"}.get(found.delimiter, found.delimiter)
        return {
            k.COLUMNS: f"not {found.columns} {kind}-separated columns",
            k.EMPTY: "an empty name",
            k.CONTROL: "a control character in a name",
            k.ENCODING: "bytes that are not UTF-8",
            k.QUOTE: "a quote that is not closed at the end of its field",
            k.LONG: f"a name of more than {k.MAX_NAME} bytes",
            k.NO_WEIGHT: "a weight that is not a number from 1e-30 to below 1e30",
        }[reason]

    def _drop_long_line(self, stream: Any, rest: bytes) -> bytes:
        """Refuse a line longer than :data:`_MAX_LINE` bytes; return the data after its end."""
        k, tally = self._k, self._tally
        tally[k.T_LINES] += 1
        tally[k.T_BAD] += 1
        self._long_lines += 1
        start = rest[:60].decode("utf-8", "backslashreplace") + "..."
        self.refuse(int(tally[k.T_LINES]), f"a line of more than {_MAX_LINE} bytes", start)
        tail: bytes = rest[-1:]
        while data := stream.read(_PIECE):
            tail += data
            end = _LINE_END.search(tail)
            if end and (end[0] != b"\r" or end.end() < len(tail)):
                return tail[end.end() :]
            tail = tail[-1:]
        return b""

    def decide(self, head: bytes) -> None:
        """Determine delimiter, header and columns from the first lines."""
        options, found = self.options, self.found
        lines = dialect.sample(head, options.comment)
        found.delimiter = options.delimiter
        separator = _TOLD.fullmatch(lines[0].strip()) if lines and self.wanted == 2 else None
        if separator and options.delimiter == "auto":  # Excel's line "sep=;"
            self._skip, lines = 1, lines[1:]
            found.delimiter = next(n for n, sign in DELIMITERS.items() if sign == separator[1])
        if found.delimiter == "auto":
            path = self._source.path
            comma_first = path is not None and ".csv" in path.suffixes
            found.delimiter = dialect.guess_delimiter(lines, self.wanted, comma_first)
        rows = self.sampled = [dialect.fields(line, found.delimiter) for line in lines]
        ends = None
        if self.wanted == 2 and not options.columns:
            found.guessed = options.header == "auto"
            if rows and options.header != "no" and (answer := dialect.answer_in(rows[0])):
                raise UnrecognizedInput(f"{found.file} {answer}")
            header = "yes" if _named(options) else options.header
            ends = dialect.titled_ends(rows, header, options.sides)
            asked = options.delimiter != "auto" or bool(options.weight) or ends is not None
            if not asked and (doubt := dialect.in_doubt(lines, found.delimiter)):
                raise UnrecognizedInput(f"{found.file} {doubt}")
        found.columns = len(rows[0]) if rows else self.wanted
        self._choose_columns(rows[0] if rows else [], ends)
        taken = found.taken
        found.header = options.header == "yes" or (
            options.header == "auto"
            and (
                ends is not None or _named(options) or dialect.has_header(rows, taken, found.weight)
            )
        )
        if rows and options.header == "auto" and not _named(options) and len(taken) == 2:
            found.first = tuple(rows[0][i].strip() for i in taken if i < len(rows[0]))
        if rows and found.header and not options.weight:
            read = [rows[0][i] for i in taken if i < len(rows[0])]
            found.unread = dialect.unread_weights([title.strip() for title in rows[0]], read)
        if lines and not found.header:
            above = lines_of(head[:LOOK].decode("utf-8", "replace"))
            self._first_row = 1 + above.index(lines[0].split("\n")[0])

    def rules(self) -> NDArray[np.int64]:
        """Return the kernel's rules, int64[RULES]."""
        k, options, found, taken = self._k, self.options, self.found, self.found.taken
        rules = np.full(k.RULES, -1, np.int64)
        rules[k.DELIMITER] = ord(DELIMITERS[found.delimiter])
        # Tab-separated text has no quotes, unless Excel saved it (in UTF-16).
        saved = found.delimiter == "tab" and bool(self._source.encoding)
        rules[k.QUOTES] = saved or found.delimiter in ("comma", "semicolon")
        rules[k.EXPECTED] = found.columns
        rules[k.FIRST] = taken[0]
        rules[k.SECOND] = taken[1] if len(taken) > 1 else -1
        rules[k.WEIGHT] = -1 if found.weight is None else found.weight
        rules[k.COMMENT] = ord(options.comment) if options.comment else -1
        self._tally[k.T_SKIP] = self.to_skip
        return rules

    @property
    def to_skip(self) -> int:
        """Return the number of rows above the links, after :meth:`decide`."""
        return int(self.found.header) + self._skip

    def _choose_columns(self, first: list[str], ends: tuple[int, int] | None) -> None:
        found, options = self.found, self.options
        if not options.columns:
            # Report a first row that is too short as malformed, with its line number.
            found.columns = max(found.columns, self.wanted)
        titles = first if _named(options) else [str(i) for i in range(1, found.columns + 1)]
        place = partial(dialect.column_place, found.file, titles, folded=True)
        found.taken = tuple(map(place, options.columns)) or ends or tuple(range(self.wanted))
        found.weight = place(options.weight) if options.weight else None
        dialect.check_distinct(found.file, titles, found.taken, found.weight)

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
