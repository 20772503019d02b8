"""Readers: each turns one kind of input into clean rows for the tables of ``ingest``.

A new kind is a file in this folder with a ``READER`` (``reader.py`` says what that is), and a line
of ``READERS``.
"""

from __future__ import annotations

from importlib import import_module
from typing import cast

from cocite.errors import InputError
from cocite.graph.readers.columns import read_columns
from cocite.graph.readers.options import ReadOptions
from cocite.graph.readers.reader import Found, Job, LinkReader
from cocite.graph.readers.rows import RowsFound, clean_rows
from cocite.graph.readers.sources import Source, expand

__all__ = [
    "READERS",
    "Found",
    "Job",
    "LinkReader",
    "ReadOptions",
    "RowsFound",
    "Source",
    "clean_rows",
    "expand",
    "read_columns",
    "reader_called",
    "reader_of",
]

READERS = {
    "parquet": "cocite.graph.readers.parquet",
    "text": "cocite.graph.readers.text",
}
"""Kinds of input, in the order in which they are tried -> their modules. The last takes all files.
"""


def reader_called(name: str) -> LinkReader:
    """The reader of a kind."""
    return cast(LinkReader, import_module(READERS[name]).READER)


def reader_of(source: Source) -> LinkReader:
    """The first reader that accepts ``source``; raises :class:`InputError` if none does."""
    for reader in map(reader_called, READERS):
        if reader.accepts(source):
            if source.is_pipe and not reader.streams:
                source.close()
                raise InputError(
                    f"{source.label} is {reader.title}, which cannot be read as a stream: name the "
                    "file"
                )
            return reader
    raise InputError(f"{source.label} is a directory; name its files, as in '{source.label}/*'")
