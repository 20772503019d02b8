"""Writers: results as files that other programs read, a kind of file by the ending of its name.

A file is a *table*, whose columns have titles, or an *array*, which is numbers by the ids of nodes
and has no names. A new kind is a file in this folder with its writer, and a line of ``WRITERS``.
A file appears under its name when it is whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.graph.writers.numpy import NPY
from cocite.graph.writers.tables import CSV, PARQUET, TSV
from cocite.graph.writers.writer import ArrayFile, Columns, TableFile, Types
from cocite.store import check_file, forget, written_beside

__all__ = [
    "ARRAYS",
    "TABLES",
    "WRITERS",
    "ArrayFile",
    "Columns",
    "TableFile",
    "Types",
    "check_output",
    "is_array",
    "memory_of",
    "write_array",
    "write_numbers",
    "write_table",
]

WRITERS: dict[str, TableFile | ArrayFile] = {
    ".parquet": PARQUET,
    ".csv": CSV,
    ".tsv": TSV,
    ".npy": NPY,
}
"""What a name may end in -> what writes such files."""

TABLES = tuple(ending for ending, writer in WRITERS.items() if isinstance(writer, TableFile))
ARRAYS = tuple(ending for ending, writer in WRITERS.items() if isinstance(writer, ArrayFile))

_PIECE = 1 << 16


def check_output(
    output: str | os.PathLike[str], overwrite: bool, endings: Iterable[str] = WRITERS
) -> Path:
    """The path, if its ending is among ``endings`` and it may be written; before any work is done.

    Raises :class:`~cocite.errors.UsageError` or :class:`~cocite.errors.OutputExists`.
    """
    path = Path(output)
    if path.suffix not in endings:
        raise UsageError(f"{path} ends in {path.suffix!r}; it ends in one of {', '.join(endings)}")
    return check_file(path, overwrite)


def is_array(path: Path) -> bool:
    """Whether a file of that name holds numbers by id, and no names."""
    return isinstance(WRITERS[path.suffix], ArrayFile)


def memory_of(path: Path) -> int:
    """Bytes that writing a file of that name takes, whatever its size."""
    writer = WRITERS[path.suffix]
    return writer.memory if isinstance(writer, TableFile) else 0


def write_table(
    path: Path, pieces: Iterable[Columns], types: Types, folder: Path | None = None
) -> None:
    """Write pieces of equally long columns; ``types`` names them and their SQL types. ``folder`` is
    where the file grows, by default that of ``path``.
    """
    writer = WRITERS[path.suffix]
    assert isinstance(writer, TableFile)
    with written_beside(path, folder) as file:
        writer.write(Path(file.name), pieces, types)


def write_array(
    path: Path, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    """Write an array of that type and shape; the pieces are its elements in their order."""
    writer = WRITERS[path.suffix]
    assert isinstance(writer, ArrayFile)
    with written_beside(path) as file:
        writer.write(Path(file.name), pieces, dtype, shape)


def write_numbers(path: Path, names: Names, **columns: NDArray[np.float64]) -> None:
    """Write numbers a node: a table of ``node`` and the titles of the columns, or an array by id,
    with a row a column if there are several. Both may be larger than memory.
    """
    first, *others = columns.values()
    if is_array(path):
        shape = (1 + len(others), *first.shape) if others else first.shape
        write_array(path, _pieces(first, *others), first.dtype, shape)
    else:
        types = {"node": "VARCHAR"} | dict.fromkeys(columns, "DOUBLE")
        write_table(path, _named(names, columns), types)


def _pieces(*columns: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    for values in columns:
        for low in range(0, values.size, _PIECE):
            yield values[low : low + _PIECE]
            forget(values[low : low + _PIECE])


def _named(names: Names, columns: dict[str, NDArray[np.float64]]) -> Iterator[Columns]:
    names = names.stored
    for low in range(0, len(names), _PIECE):
        part = slice(low, min(low + _PIECE, len(names)))
        named = {"node": np.array(names.names(np.arange(part.start, part.stop)), dtype=object)}
        yield named | {title: values[part] for title, values in columns.items()}
        names.forget()
        forget(*(values[part] for values in columns.values()))
