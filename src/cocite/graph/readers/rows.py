"""Rows that a reader has singly, checked as those of a text are: for formats without a faster way.

They go through the kernel that cleans text (``text.py``), so the same names are clean, the same
kinds of bad rows are counted, and the first bad one is refused in the same words.

Cost: about a microsecond a row beside what making it takes; constant memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from cocite.graph.readers.clean import clean_relation, new_clean_file
from cocite.graph.readers.options import no_progress
from cocite.graph.readers.reader import Job, Read
from cocite.graph.readers.text import Cleaner

__all__ = ["RowsFound", "clean_rows"]

_MARK = "-\t"
"""Begins every line, so that none is blank, however empty its names."""
_BREAKS = str.maketrans(dict.fromkeys("\t\n\r", "\x01"))
"""What would cut a line becomes another control character: no name has any."""


@dataclass
class RowsFound:
    """What was found in an input of a ``format`` that is read row by row."""

    file: str
    format: str
    rows: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    integers: bool = True

    def describe(self) -> str:
        """One line for people."""
        return f"{self.file}: {self.format}"


def clean_rows(job: Job, title: str, rows: Iterable[Sequence[str]]) -> Read:
    """The relation of ``rows``, and what was found in them, in an input of the format ``title``.

    A row is the source and the destination of a link, with its weight as text if ``job`` asks for
    weights; or one name of a node. Rows are counted from 1 on in messages.
    """
    cleaner = _RowCleaner(job.source, job.wanted, replace(job.options, comment=""))
    with new_clean_file(job) as out:
        read = cleaner.run(_Lines(iter(rows)), out, no_progress)
    found = RowsFound(
        job.source.label, title, read.rows, read.bad_rows, read.examples, read.integers
    )
    return Read(clean_relation(job, found.integers), found)


class _RowCleaner(Cleaner):
    """Lines of which nothing is to be found out: a mark, the names, the weight."""

    unit = "row"

    def decide(self, head: bytes) -> None:
        self.found.taken = tuple(range(1, self.wanted + 1))
        self.found.columns = self.wanted + 1
        if self.options.weight:
            self.found.weight = self.found.columns
            self.found.columns += 1

    def refuse(self, line: int, what: str, content: str) -> None:
        super().refuse(line, what, content.removeprefix(_MARK))


class _Lines:
    """Rows as a stream of lines."""

    def __init__(self, rows: Iterator[Sequence[str]]) -> None:
        self._rows = rows

    def read(self, size: int) -> bytes:
        """Some ``size`` bytes of whole lines; none at the end."""
        lines, have = [], 0
        for row in self._rows:
            line = _MARK + "\t".join(name.translate(_BREAKS) for name in row) + "\n"
            lines.append(line.encode("utf-8", "surrogatepass"))
            have += len(lines[-1])
            if have >= size:
                break
        return b"".join(lines)

    def tell(self) -> int:
        """Unknown: whoever makes the rows tells how far it is."""
        return 0
