"""Writers: results as files for other programs, in the format of the file extension.

A file is a *table* with named columns, an *array* of numbers by node id, or a *graph* of weighted
links. Output goes to a :class:`Target`: a file or a database table (``io/writers/databases.py``)
that appears only once complete. To add a format, write a module with its writer, and list the
writer in ``WRITERS`` or ``GRAPHS``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import OutputExists, UsageError
from cocite.graph.names import Names
from cocite.io.database import is_address
from cocite.io.remote import bare, is_url
from cocite.io.writers.databases import FileTarget as FileTarget
from cocite.io.writers.databases import Target as Target
from cocite.io.writers.databases import database_target, folder_at
from cocite.io.writers.graphs import DOT, GEXF, GRAPHML
from cocite.io.writers.graphs import GraphFile as GraphFile
from cocite.io.writers.tables import ARROW, CSV, JSON_LINES, NPY, PARQUET, TSV
from cocite.io.writers.tables import ArrayFile as ArrayFile
from cocite.io.writers.tables import Columns as Columns
from cocite.io.writers.tables import TableFile as TableFile
from cocite.io.writers.tables import Types as Types
from cocite.storage import check_file, ending_of, evict

WRITERS: dict[str, TableFile | ArrayFile] = {
    ".parquet": PARQUET,
    ".csv": CSV,
    ".tsv": TSV,
    ".jsonl": JSON_LINES,
    ".arrow": ARROW,
    ".npy": NPY,
}
"""Extensions -> writers of tables and arrays."""

GRAPHS: dict[str, GraphFile] = {".graphml": GRAPHML, ".gexf": GEXF, ".dot": DOT}
"""Extensions -> writers of graphs."""

TABLES = tuple(ending for ending, writer in WRITERS.items() if isinstance(writer, TableFile))
ARRAYS = tuple(ending for ending, writer in WRITERS.items() if isinstance(writer, ArrayFile))

_PIECE = 1 << 16


def target_of(
    output: str | os.PathLike[str] | None,
    to: str | None,
    *,
    kind: str | None = None,
    overwrite: bool = False,
    append: bool = False,
    types: Types | None = None,
    endings: Iterable[str] | None = None,
    safe: bool = False,
) -> Target | None:
    """Return the target: the file ``output``, the database table ``to``, or None.

    Call this before any other work, because it checks that the target is writable. ``types`` are
    the column types, if known; ``safe`` is as in :func:`check_output`. Raises like
    :func:`check_output` and :func:`~.databases.database_target`.
    """
    if to is None:
        if append:
            raise UsageError(
                "--append (append=True) needs a database table: pass it with --to (to=...)"
            )
        if output is None and kind is not None:
            raise UsageError(
                "--output-format (kind=...) needs a file: pass it with --output (output=...)"
            )
        return None if output is None else check_output(output, overwrite, endings, kind, safe=safe)
    if output is not None:
        raise UsageError(
            "results go either to a file or to a database: choose --output (output=...) or --to "
            "(to=...)"
        )
    if kind is not None:
        raise UsageError("a database table has no format: omit --output-format (kind=...)")
    return database_target(to, overwrite=overwrite, append=append, types=types)


def numbers_types(*columns: str) -> Types:
    """Return the column types of a table written by :func:`write_numbers`."""
    return {"node": "VARCHAR"} | dict.fromkeys(columns, "DOUBLE")


def kinds_of(endings: Iterable[str]) -> list[str]:
    """Return the extensions without their dots."""
    return [ending.removeprefix(".") for ending in endings]


def check_output(
    output: str | os.PathLike[str],
    overwrite: bool,
    endings: Iterable[str] | None = None,
    kind: str | None = None,
    *,
    safe: bool = False,
) -> FileTarget:
    """Check that the file ``output`` may be written; return the target.

    Call this before any other work. The extension, or ``kind``, must be among ``endings`` (by
    default all). ``safe`` escapes formulas in CSV and TSV (``io/writers/tables.py``). Raises
    :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    text = os.fspath(output)
    if is_address(text):
        raise UsageError("a database is not a file: pass it with --to (to=...), not --output")
    path = Path(_name_at(text) if is_url(text) else text)
    some = {each: WRITERS[each] for each in (WRITERS if endings is None else endings)}
    writer = some.get(path.suffix if kind is None else f".{kind.lower()}")
    if writer is None and kind is not None:
        raise UsageError(f"kind is {kind!r}; it must be one of {', '.join(kinds_of(some))}")
    if writer is None:
        raise UsageError(
            f"{ending_of(path)}; it must end in one of {', '.join(some)}; or set the format with "
            "--output-format (kind=...)"
        )
    if isinstance(writer, TableFile):
        writer.ready()
        writer = writer.safe or writer if safe else writer
    if not is_url(text):
        return FileTarget(check_file(path, overwrite), writer)
    if not overwrite and folder_at(text).has(path.name):
        raise OutputExists.already(bare(text))
    return FileTarget(path, writer, text)


def _name_at(url: str) -> str:
    """Return a URL's file name; raises :class:`UsageError` if it is invalid."""
    name = url.rpartition("/")[2]
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise UsageError(
            f"{bare(url)} does not end in a valid file name: use letters, digits, '_', '-' and "
            "'.', and begin with a letter, digit or '_'"
        )
    return name


def write_numbers(target: Target, names: Names, **columns: NDArray[np.float64]) -> None:
    """Write numbers per node, which may exceed memory, as a table or an array.

    A table has the columns ``node`` and ``columns``. An array has the shape [nodes] or, for several
    columns, [columns, nodes].
    """
    first, *others = columns.values()
    if isinstance(target, FileTarget) and target.is_array:
        shape = (1 + len(others), *first.shape) if others else first.shape
        target.write_array(_pieces(first, *others), first.dtype, shape)
    else:
        target.write_table(_named(names, columns), numbers_types(*columns))


def _pieces(*columns: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    for values in columns:
        for low in range(0, values.size, _PIECE):
            yield values[low : low + _PIECE]
            evict(values[low : low + _PIECE])


def _named(names: Names, columns: dict[str, NDArray[np.float64]]) -> Iterator[Columns]:
    names = names.stored
    for low in range(0, len(names), _PIECE):
        part = slice(low, min(low + _PIECE, len(names)))
        named: dict[str, Any] = {
            "node": np.array(names.names(np.arange(part.start, part.stop)), dtype=object)
        }
        yield named | {title: values[part] for title, values in columns.items()}
        names.evict()
        evict(*(values[part] for values in columns.values()))
