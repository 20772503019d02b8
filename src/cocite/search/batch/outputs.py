"""The output formats of a batch, by name.

    tables        node, rank, related, score, stderr, low, high: Parquet, CSV, TSV, Arrow, databases
    JSON lines    a line per node: {"node": ..., "hits": [{"node": ..., "score": ...}, ...]}
    graphs        all pages, and links from page to hit with weight (the score), rank, stderr
    folders       a JSON file per node (``search/batch/folder.py``)

Tables omit nodes without hits. Links are directed, because a page need not be a hit of its own
hits.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from cocite.errors import UsageError
from cocite.io.database import is_address
from cocite.io.writers import GRAPHS, WRITERS, TableFile
from cocite.io.writers.databases import DatabaseTarget, database_target
from cocite.io.writers.graphs import GraphPiece, GraphShape
from cocite.search.batch.folder import FolderOutput
from cocite.search.batch.pages import Output, OutputPages, Pages, json_of
from cocite.storage import check_file, disk, ending_of
from cocite.storage.staging import written_from

_TABLES = ("parquet", "csv", "tsv", "arrow")
_FOLDERS = ("folder", "site")
OUTPUTS = ("parquet", "csv", "tsv", "jsonl", "arrow", "graphml", "gexf", "dot", *_FOLDERS)
"""Output formats. A database table has an address instead (``io/database.py``)."""


def chosen_output(
    output: str | os.PathLike[str] | None,
    index: Path,
    *,
    kind: str | None = None,
    to: str | None = None,
    overwrite: bool = False,
    append: bool = False,
    safe: bool = False,
) -> tuple[Output, Path]:
    """Return the writer for ``output`` or a database table, and the path of unfinished work:
    beside the output or, for a server, beside the ``index``. Raises :class:`UsageError`.
    """
    if to is None:
        if output is None:
            raise UsageError("an output is required: pass --output (output=...) or --to (to=...)")
        if append:
            raise UsageError(
                "--append (append=True) needs a database table: pass it with --to (to=...)"
            )
        return output_of(output, kind, safe), Path(output)
    if output is not None or kind is not None:
        raise UsageError(
            "hits go to a file or to a database: omit --to (to=...), or --output (output=...) and "
            "--output-format (kind=...)"
        )
    found = DatabaseOutput(database_target(to, overwrite=overwrite, append=append))
    return found, found.place(index)


def output_of(path: str | os.PathLike[str], kind: str | None = None, safe: bool = False) -> Output:
    """Return the writer for ``path``, chosen by ``kind`` or the extension. A final ``/`` means a
    folder; ``safe`` escapes CSV and TSV for spreadsheets. Raises :class:`UsageError`.
    """
    name = os.fspath(path)
    if is_address(name):
        raise UsageError("a database is not a file: pass it with --to (to=...), not --output")
    if kind is None:
        found = os.path.splitext(name)[1].removeprefix(".")
        kind = "folder" if name.endswith(os.sep) else found
        if kind not in OUTPUTS or (kind in _FOLDERS and found):
            endings = ", ".join(f".{each}" for each in OUTPUTS if each not in _FOLDERS)
            raise UsageError(
                f"{ending_of(Path(name))}; it must end in one of {endings}, or in / for a folder "
                "with one file per page; or set the format with --output-format (kind=...)"
            )
    if kind not in OUTPUTS:
        raise UsageError(f"kind is {kind!r}; it must be one of {', '.join(OUTPUTS)}")
    if kind in _FOLDERS:
        return FolderOutput(kind)
    if kind in _TABLES:
        return _TableOutput(kind, safe)
    return _LinesOutput() if kind == "jsonl" else _GraphOutput(kind)


class _FileOutput(Output):
    @abstractmethod
    def save(self, path: Path, pages: Pages, empty: OutputPages, facts: dict[str, Any]) -> None:
        """Write all pages to a file."""

    def check(self, path: Path, overwrite: bool) -> Path:
        return check_file(path, overwrite)

    def write(
        self, path: Path, pages: Pages, empty: OutputPages, scratch: Path, facts: dict[str, Any]
    ) -> int:
        with written_from(scratch, path) as file:
            self.save(Path(file.name), pages, empty, facts)
            return Path(file.name).stat().st_size

    def trial(self, pages: list[OutputPages], scratch: Path) -> int:
        path = scratch / f"trial.{self.kind}"
        self.save(path, pages, pages[0], {})
        return path.stat().st_size


class _TableOutput(_FileOutput):
    def __init__(self, kind: str, safe: bool) -> None:
        writer = WRITERS[f".{kind}"]
        assert isinstance(writer, TableFile)
        self._table = table = writer.safe or writer if safe else writer
        self.kind, self.memory, self.twice = kind, table.memory, table.twice
        self.streams = table.text is not None

    def check(self, path: Path, overwrite: bool) -> Path:
        self._table.ready()
        return super().check(path, overwrite)

    def save(self, path: Path, pages: Pages, empty: OutputPages, facts: dict[str, Any]) -> None:
        self._table.write(path, (some.columns for some in pages), empty.types)

    def text(self, pages: OutputPages, first: bool) -> bytes:
        assert self._table.text is not None
        return self._table.text(pages.columns, pages.types, first)


class _LinesOutput(_FileOutput):
    kind, streams = "jsonl", True

    def save(self, path: Path, pages: Pages, empty: OutputPages, facts: dict[str, Any]) -> None:
        with disk.rewrite(path) as file:
            for some in pages:
                disk.write(file, self.text(some, False))

    def text(self, pages: OutputPages, first: bool) -> bytes:
        return "".join(map(json_of, pages.each())).encode(errors="surrogateescape")


_LINK = {"rank": "int", "stderr": "double"}


class _GraphOutput(_FileOutput):
    twice = True

    def __init__(self, kind: str) -> None:
        self.kind, self._writer = kind, GRAPHS[f".{kind}"]

    def save(self, path: Path, pages: Pages, empty: OutputPages, facts: dict[str, Any]) -> None:
        about = ""
        if facts:
            measure = facts.get("made", {}).get("measure")
            about = (
                f"the {facts['k']} pages nearest to each of {facts['nodes']:,} pages, by {measure}"
            )
        titles = {"title": "string"} if empty.titles is not None else {}
        self._writer.write(path, map(_piece, pages), GraphShape(titles, _LINK, about))


def _piece(pages: OutputPages) -> GraphPiece:
    columns, titles = pages.columns, {}
    if pages.titles is not None and pages.node_titles is not None:
        titles["title"] = np.concatenate([pages.node_titles, pages.titles])
    return GraphPiece(
        np.concatenate([pages.ids, pages.related_ids]),
        np.concatenate([pages.nodes, pages.related]),
        titles,
        np.repeat(pages.ids, pages.counts),
        pages.related_ids,
        pages.numbers["score"],
        {title: columns[title] for title in _LINK},
    )


class DatabaseOutput(Output):
    """A database table, written in one transaction (``io/writers/databases.py``)."""

    kind = "database"

    def __init__(self, target: DatabaseTarget) -> None:
        self.target, self.label, self.memory = target, target.label, target.memory
        self.twice = target.address.kind == "duckdb"

    def place(self, index: Path) -> Path:
        """Return the path of unfinished work, given the index path."""
        address = self.target.address
        if address.is_file:
            return Path(address.place).with_name(self.target.plain)
        return index.with_name(f"{index.name}.{self.target.plain}")

    def check(self, path: Path, overwrite: bool) -> Path:
        """Return the path; the address has already been checked."""
        return path

    def expect(self, pages: OutputPages) -> None:
        """Try the transaction without rows."""
        self.target.expect(pages.types)

    def write(
        self, path: Path, pages: Pages, empty: OutputPages, scratch: Path, facts: dict[str, Any]
    ) -> int | None:
        """Insert all rows in one transaction."""
        return self.target.write_table((some.columns for some in pages), empty.types)

    def trial(self, pages: list[OutputPages], scratch: Path) -> int:
        """Insert rows and roll back."""
        columns = [some.columns for some in pages]
        return self.target.trial(columns, pages[0].types, scratch) or 0
