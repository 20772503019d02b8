"""Readers: each turns one kind of input into clean rows for the tables of ``ingest``."""

from cocite.graph.readers.columns import read_columns
from cocite.graph.readers.options import ReadOptions
from cocite.graph.readers.parquet import ParquetInput, read_parquet
from cocite.graph.readers.sources import Source, expand
from cocite.graph.readers.text import TextInput, clean_text

__all__ = [
    "ParquetInput",
    "ReadOptions",
    "Source",
    "TextInput",
    "clean_text",
    "expand",
    "read_columns",
    "read_parquet",
]
