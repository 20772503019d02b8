"""What is wrong with a file that a library cannot read, in words for those who have the file.

A library says what it met while it read; users need to know what has become of their file, and
what to do. What it said stands behind, its first line, for those who look for it.
"""

from __future__ import annotations

import re

from cocite.errors import InputError
from cocite.graph.readers.sources import Source

__all__ = ["not_parquet"]

_PARTS = (
    (r"magic bytes|too small|footer", "its end is missing: it was cut, or is still being written"),
    (r"corrupt|thrift|decompress|snappy|zstd|gzip|brotli|checksum", "it is damaged"),
)
"""What is in the words of DuckDB -> what that means."""


def not_parquet(source: Source, error: Exception) -> InputError:
    """The error of a Parquet file of which DuckDB says ``error``."""
    first = str(error).partition("\n")[0]
    what = next((told for sign, told in _PARTS if re.search(sign, first, re.I)), "")
    return InputError(
        f"{source.label} cannot be read as Parquet: {what or 'it is damaged, or of another kind'}. "
        f"Copy it again, or write it anew (DuckDB: {first})"
    )
