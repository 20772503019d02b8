"""Tables of node, rank, related, score, stderr, low, high: Parquet, CSV, TSV, Arrow IPC."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cocite.graph.writers import WRITERS, TableFile
from cocite.query.batch.outputs.output import Output, Pages
from cocite.store import check_file, written_from

__all__ = ["output"]


class _Table(Output):
    def __init__(self, kind: str, safe: bool) -> None:
        writer = WRITERS[f".{kind}"]
        assert isinstance(writer, TableFile)
        writer = writer.safe or writer if safe else writer
        self.kind, self._writer = kind, writer
        self.memory, self.streams = writer.memory, writer.text is not None
        self.twice = writer.twice

    def check(self, path: Path, overwrite: bool) -> Path:
        self._writer.ready()
        return check_file(path, overwrite)

    def write(
        self,
        path: Path,
        pages: Iterable[Pages],
        empty: Pages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int:
        with written_from(scratch, path) as file:
            columns = (some.columns for some in pages)
            self._writer.write(Path(file.name), columns, empty.types)
            return Path(file.name).stat().st_size

    def trial(self, pages: Iterable[Pages], scratch: Path) -> tuple[int, float]:
        began = time.perf_counter()
        path, found = scratch / f"trial.{self.kind}", list(pages)
        self._writer.write(path, [some.columns for some in found], found[0].types)
        return path.stat().st_size, time.perf_counter() - began

    def text(self, pages: Pages, first: bool, scratch: Path) -> bytes:
        assert self._writer.text is not None
        return self._writer.text(pages.columns, pages.types, first)


def output(kind: str, safe: bool = False) -> Output:
    """The table of that kind, ``safe`` for spreadsheets or not."""
    return _Table(kind, safe)
