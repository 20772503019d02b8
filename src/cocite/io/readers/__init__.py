"""Readers: each turns one kind of input into clean rows for the tables of ``ingest``.

A new kind is a file in this folder with a ``READER`` (``io/readers/contract.py`` says what that
is), and a line of the table in ``io/readers/formats.py``.
"""

from cocite.io.readers.contract import (
    FormatReader,
    Found,
    Job,
    PageOptions,
    Read,
    ReadOptions,
)
from cocite.io.readers.formats import FORMATS, Format, reader_of, readers
from cocite.io.readers.rows import RowsFound, clean_rows
from cocite.io.readers.sources import Beginning, Source, expand
from cocite.io.readers.tables import LABELS, PAIRS, NameTable, read_values

__all__ = [
    "FORMATS",
    "LABELS",
    "PAIRS",
    "Beginning",
    "Format",
    "FormatReader",
    "Found",
    "Job",
    "NameTable",
    "PageOptions",
    "Read",
    "ReadOptions",
    "RowsFound",
    "Source",
    "clean_rows",
    "expand",
    "read_values",
    "reader_of",
    "readers",
]
