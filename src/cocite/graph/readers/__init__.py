"""Readers: each turns one kind of input into clean rows for the tables of ``ingest``.

A new kind is a file in this folder with a ``READER`` (``reader.py`` says what that is), and a line
of the table in ``recognise.py``.
"""

from cocite.graph.readers.columns import read_columns
from cocite.graph.readers.labelled import Labelled, PairRows
from cocite.graph.readers.options import PageOptions, ReadOptions
from cocite.graph.readers.reader import Found, Job, LinkReader, Read, ReadsMany
from cocite.graph.readers.recognise import FORMATS, Format, reader_of, readers
from cocite.graph.readers.rows import RowsFound, clean_rows
from cocite.graph.readers.sources import Beginning, Source, expand

__all__ = [
    "FORMATS",
    "Beginning",
    "Format",
    "Found",
    "Job",
    "Labelled",
    "LinkReader",
    "PageOptions",
    "PairRows",
    "Read",
    "ReadOptions",
    "ReadsMany",
    "RowsFound",
    "Source",
    "clean_rows",
    "expand",
    "read_columns",
    "reader_of",
    "readers",
]
