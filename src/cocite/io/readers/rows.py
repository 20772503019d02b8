"""Check the rows of formats that have no faster method.

Rows pass through the kernel that cleans text (``io/readers/text.py``), so the same names are valid
in all formats, and bad rows are reported in the same way. A row takes about a microsecond; a few
thousand are in memory at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import BinaryIO, Self

import numpy as np

from cocite.io.readers.contract import EXAMPLES, Job, Read
from cocite.io.readers.text import Cleaner, TextInput, clean_relation, new_clean_file, relation_of
from cocite.storage import disk

_ROWS = 1 << 12
NODES = "nodes.tsv"
_MARK = "-\t"
"""Prefix that keeps lines from being blank."""
_BREAKS = str.maketrans(dict.fromkeys("\t\n\r", "\x01"))
"""Table that replaces separators with a control character, which is invalid in names."""


def clean_rows(job: Job, title: str, rows: Iterable[Sequence[str]]) -> Read:
    """Return the relation of ``rows``, and the report, for input in the format ``title``.

    A row is one node name, or a link's source and destination, followed by the weight as text if
    weights are requested. Messages count rows from 1.
    """
    with new_clean_file(job) as out:
        writer = RowWriter(job, out, job.wanted, weighted=bool(job.options.weight), unit="row")
        for number, row in enumerate(rows, 1):
            writer.add(row, number)
        read = writer.finish()
    return Read(clean_relation(job, read.integers), read.read_as(title))


class LinkWriter:
    """Context manager that collects links and nodes; ``units`` are what their positions count."""

    def __init__(
        self, job: Job, units: tuple[str, str] = ("line", "line"), *, weighted: bool = False
    ) -> None:
        self._job, self._open = job, ExitStack()
        links = self._open.enter_context(new_clean_file(job))
        nodes = self._open.enter_context(new_clean_file(job, NODES))
        self.links = RowWriter(job, links, 2, weighted=weighted, unit=units[0])
        self.nodes = RowWriter(job, nodes, 1, unit=units[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def finish(self, title: str, note: str, *, named: bool = True) -> Read:
        """Write the remaining rows; return relations of links and, if ``named``, of nodes."""
        links, nodes = self.links.finish(), self.nodes.finish()
        self._open.close()
        found = links.read_as(title, note.replace("{nodes}", f"{nodes.rows:,}"))
        found.bad_rows = dict(Counter(links.bad_rows) + Counter(nodes.bad_rows))
        found.examples = [*nodes.examples, *links.examples][:EXAMPLES]
        found.integers = links.integers and nodes.integers
        relation = partial(relation_of, self._job)
        kind = "UBIGINT" if found.integers else "VARCHAR"
        weight = {"w": "DOUBLE"} if self.links.found.weight is not None else {}
        rows = relation({"a": kind, "b": kind} | weight)
        return Read(rows, found, relation({"a": kind}, NODES) if named else "")


class RowWriter(Cleaner):
    """Cleans rows of ``names`` names each, followed by a weight if ``weighted``.

    ``unit`` is what positions count, such as "line" or "file".
    """

    as_written = False

    def __init__(
        self, job: Job, out: BinaryIO, names: int, *, weighted: bool = False, unit: str = "line"
    ) -> None:
        weight = job.options.weight_column if weighted else None
        options = replace(job.options, comment="", weight_column=weight)
        super().__init__(job.source, names, options)
        self.unit = unit
        self.found.taken = tuple(range(1, names + 1))
        self.found.columns = 1 + names + weighted
        self.found.weight = names + 1 if weighted else None
        self._rules_now = self.rules()
        self._rules_now[self._k.EXACT] = 1  # names are trimmed later, where merges are counted
        self._shown = names + weighted
        self._out = out
        self._room = np.empty(0, np.uint8)
        self._lines: list[str] = []
        self._stand_at: list[int] = []
        self._before = 0
        self._other: dict[str, int] = {}

    def add(self, row: Sequence[str], place: int) -> None:
        """Add a row at the position ``place``."""
        self._lines.append(
            _MARK + "\t".join([t if t.isprintable() else t.translate(_BREAKS) for t in row]) + "\n"
        )
        self._stand_at.append(place)
        if len(self._lines) == _ROWS:
            self.flush()

    def leave_out(self, kind: str, place: int, what: str, content: str) -> None:
        """Raise an error for an invalid row, or count it under ``kind``."""
        self.flush()
        super().refuse(place, what, content)
        self._other[kind] = self._other.get(kind, 0) + 1

    def finish(self) -> TextInput:
        """Write the remaining rows; return the report."""
        self.flush()
        found = self._report()
        for kind, count in self._other.items():
            found.bad_rows[kind] = found.bad_rows.get(kind, 0) + count
        return found

    def flush(self) -> None:
        """Clean and write the added rows."""
        piece = "".join(self._lines).encode("utf-8", "surrogatepass")
        if self._room.size < len(piece) + 2:
            self._room = np.empty(len(piece) + 2, np.uint8)
        if piece:
            self._clean(piece, self._rules_now, self._room)
            disk.write(self._out, self._room[: self._tally[self._k.T_BYTES]].data)
        self._before += len(self._lines)
        self._lines.clear()
        self._stand_at.clear()

    def refuse(self, line: int, what: str, content: str) -> None:
        """Raise an error for a bad row, or store an example, with its position."""
        shown = content.removeprefix(_MARK).split("\t")[: self._shown]
        super().refuse(self._stand_at[line - self._before - 1], what, "\t".join(shown))
