"""Clean files: rows that DuckDB loads without a question.

A row a line, fields between tabs, LF at the end, no titles, no quotes, as ``kernels/text.py``
writes them. A clean file begins with a byte order mark, so that no name's U+FEFF is taken for one.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from cocite.graph.readers.reader import Job
from cocite.store import disk

__all__ = ["clean_relation", "new_clean_file", "relation_of"]

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
