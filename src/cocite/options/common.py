"""Options that many commands share: where an answer goes."""

from __future__ import annotations

from dataclasses import dataclass

from cocite.options import Options, option


@dataclass(frozen=True)
class OutputOptions(Options):
    """Where a table goes: a file, or a table of a database."""

    output: str | None = option(None, "The file to write.", flag="-o,--output", metavar="FILE")
    output_format: str | None = option(
        None, "What to write, whatever the name.", unset="by the name"
    )
    to: str | None = option(
        None,
        "Write to a table of a database instead of a file: sqlite:///FILE, duckdb:///FILE or "
        "postgres://USER@HOST/DATABASE, and #TABLE. All rows are there at once, or none.",
        metavar="DATABASE#TABLE",
    )
    append: bool = option(False, "Add to the rows that the table of --to has, if it is there.")
    overwrite: bool = option(
        False, "Replace the output file or the table. A symbolic link is refused."
    )
