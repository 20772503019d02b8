"""A table of a database: node, rank, related, score, stderr, a row a hit.

SQLite, DuckDB or PostgreSQL, all in one transaction (``graph/writers/databases.py``). What was
found so far lies beside the file of the database, or beside the index if a server has it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cocite.graph.writers.databases import DatabaseTarget, database_target
from cocite.query.batch.outputs.output import Output, Pages

__all__ = ["Database", "database"]


class Database(Output):
    """A table of a database, whatever the path that stands for it."""

    kind = "database"

    def __init__(self, target: DatabaseTarget) -> None:
        self.target, self.label, self.memory = target, target.label, target.memory
        self.twice = target.address.kind == "duckdb"

    def place(self, index: Path) -> Path:
        """What the path is, of an index at ``index``: what is unfinished lies beside it."""
        address = self.target.address
        if address.is_file:
            return Path(address.place).with_name(self.target.plain)
        return index.with_name(f"{index.name}.{self.target.plain}")

    def check(self, path: Path, overwrite: bool) -> Path:
        """The address was seen to."""
        return path

    def expect(self, pages: Pages) -> None:
        """Try without rows."""
        self.target.expect(pages.types)

    def write(
        self,
        path: Path,
        pages: Iterable[Pages],
        empty: Pages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int | None:
        """All rows at once."""
        return self.target.write_table((some.columns for some in pages), empty.types)

    def trial(self, pages: Iterable[Pages], scratch: Path) -> tuple[int, float]:
        """Of rows that are taken back."""
        began, found = time.perf_counter(), list(pages)
        columns = [some.columns for some in found]
        size = self.target.trial(columns, found[0].types, scratch)
        return size or 0, time.perf_counter() - began


def database(to: str, *, overwrite: bool, append: bool) -> Database:
    """The output for an address; raises as :func:`database_target` does."""
    return Database(database_target(to, overwrite=overwrite, append=append))
