"""What text comes from, and clean files, what becomes of it: rows that DuckDB loads without a
question.

A row a line, fields between tabs, LF at the end, no titles, no quotes, as ``kernels/text.py``
writes them. A clean file begins with a byte order mark, so that no name's U+FEFF is taken for one.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO, Protocol

from cocite.graph.readers.reader import Job
from cocite.store import disk

__all__ = ["Lines", "Unpacked", "clean_relation", "new_clean_file", "relation_of"]

_NAME = "clean.tsv"


@contextmanager
def new_clean_file(job: Job, name: str = _NAME) -> Iterator[BinaryIO]:
    """A clean file of an input, to be written to."""
    with disk.rewrite(job.scratch / name) as out:
        disk.write(out, codecs.BOM_UTF8)
        yield out


def clean_relation(job: Job, integers: bool) -> str:
    """The relation (``reader.py``) of the clean file that was written."""
    kind = "UBIGINT" if integers else "VARCHAR"
    columns = dict.fromkeys("ab"[: job.wanted], kind)
    return relation_of(job, columns | ({"w": "DOUBLE"} if job.options.weight else {}))


def relation_of(job: Job, columns: dict[str, str], name: str = _NAME) -> str:
    """The relation of a clean file with these columns, name -> type."""
    typed = ", ".join(f"'{column}': '{kind}'" for column, kind in columns.items())
    path = str(Path(job.scratch, name).resolve()).replace("'", "''")
    return (
        f"SELECT * FROM read_csv('{path}', delim = '\t', header = false, auto_detect = false, "
        "quote = '', escape = '', comment = '', new_line = '\\n', nullstr = '\x01', "
        f"columns = {{{typed}}})"
    )


class Lines(Protocol):
    """A stream of text."""

    def read(self, size: int) -> bytes:
        """Some of it; nothing at the end."""

    def tell(self) -> int:
        """How many bytes of the input were read for it."""


@dataclass(frozen=True)
class Unpacked:
    """An unpacked stream above the packed one."""

    stream: IO[bytes]
    raw: BinaryIO

    def read(self, size: int) -> bytes:
        """Some of it."""
        return self.stream.read(size)

    def tell(self) -> int:
        """How many bytes were read, packed."""
        return self.raw.tell()
