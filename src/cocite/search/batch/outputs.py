"""What a batch writes: a file each, and the table that finds them by name.

A new kind is a file in this folder with an :class:`~.output.Output`, and a line of ``OUTPUTS``.

Tables of node, rank, related, score, stderr, low, high: Parquet, CSV, TSV, Arrow IPC.

JSON lines: a line a node.

    {"node": ..., "hits": [{"node": ..., "score": ..., "stderr": ...}, ...]}

With intervals hits have their ends, ``low`` and ``high``. A node without hits has a line, too.

The k-nearest graph: every page, and a link to each of its hits, for Gephi and the like.

    node    label (the name), title               link    weight (the score), rank, stderr

Links have a direction: that a page is among the nearest to another does not say that this is among
the nearest to it. Pages without hits are there, too.

A table of a database: node, rank, related, score, stderr, a row a hit.

SQLite, DuckDB or PostgreSQL, all in one transaction (``io/writers/databases.py``). What was
found so far lies beside the file of the database, or beside the index if a server has it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from cocite.errors import UsageError
from cocite.io.database import is_address
from cocite.io.writers import GRAPHS, WRITERS, TableFile
from cocite.io.writers.databases import DatabaseTarget, database_target
from cocite.io.writers.graphs import GraphPiece, GraphShape
from cocite.search.batch.output import Output, OutputPages, json_of
from cocite.storage import check_file, disk, written_from

OUTPUTS = {
    "parquet": "cocite.search.batch.outputs:table_output",
    "csv": "cocite.search.batch.outputs:table_output",
    "tsv": "cocite.search.batch.outputs:table_output",
    "jsonl": "cocite.search.batch.outputs:lines_output",
    "arrow": "cocite.search.batch.outputs:table_output",
    "graphml": "cocite.search.batch.outputs:graph_output",
    "gexf": "cocite.search.batch.outputs:graph_output",
    "dot": "cocite.search.batch.outputs:graph_output",
    "folder": "cocite.search.batch.folder:output",
    "site": "cocite.search.batch.folder:output",
}
"""What the output may be -> the function of a kind that makes it. A table of a database, which has
an address and no path, is in ``io/database.py``.
"""
_FOLDERS = ("folder", "site")
_SHEETS = ("csv", "tsv")
"""What a spreadsheet opens."""


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
    """What writes to ``output``, or to a table of a database, and where that is; what is unfinished
    lies beside it, or, if it is on a server, beside the ``index``. Raises :class:`UsageError`.
    """
    if to is None:
        if output is None:
            raise UsageError("name an output, by --output (output=) or --to (to=)")
        if append:
            raise UsageError("--append is for a table of a database: name it by --to")
        return output_of(output, kind, safe), Path(output)
    if output is not None or kind is not None:
        raise UsageError(
            "hits go to a file or to a database: leave out --to, or --output and --output-format"
        )

    found = database(to, overwrite=overwrite, append=append)
    return found, found.place(index)


def output_of(path: str | os.PathLike[str], kind: str | None = None, safe: bool = False) -> Output:
    """What writes ``path``: of the kind that is named, or by the end of its name, of which ``/``
    is that of a folder; CSV and TSV ``safe`` for spreadsheets or not. Raises :class:`UsageError`.
    """
    name = os.fspath(path)
    if is_address(name):
        raise UsageError("a database is no file: name it by --to (to=), and no --output")
    if kind is None:
        found = os.path.splitext(name)[1].removeprefix(".")
        kind = "folder" if name.endswith(os.sep) else found
        if kind not in OUTPUTS or (kind in _FOLDERS and found):
            endings = ", ".join(f".{each}" for each in OUTPUTS if each not in _FOLDERS)
            raise UsageError(
                f"{name} ends in {os.path.splitext(name)[1]!r}; it ends in one of {endings}, or in "
                "/ for a folder with a file a page. Or say what it is with --output-format (kind=)"
            )
    if kind not in OUTPUTS:
        raise UsageError(f"kind is {kind!r}; it is one of {', '.join(OUTPUTS)}")
    module, _, called = OUTPUTS[kind].partition(":")
    make = getattr(import_module(module), called)
    return cast(Output, make(kind, safe) if kind in _SHEETS else make(kind))


# -- table -------------------------------------------------------------------------------


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
        pages: Iterable[OutputPages],
        empty: OutputPages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int:
        with written_from(scratch, path) as file:
            columns = (some.columns for some in pages)
            self._writer.write(Path(file.name), columns, empty.types)
            return Path(file.name).stat().st_size

    def trial(self, pages: Iterable[OutputPages], scratch: Path) -> tuple[int, float]:
        began = time.perf_counter()
        path, found = scratch / f"trial.{self.kind}", list(pages)
        self._writer.write(path, [some.columns for some in found], found[0].types)
        return path.stat().st_size, time.perf_counter() - began

    def text(self, pages: OutputPages, first: bool, scratch: Path) -> bytes:
        assert self._writer.text is not None
        return self._writer.text(pages.columns, pages.types, first)


def table_output(kind: str, safe: bool = False) -> Output:
    """The table of that kind, ``safe`` for spreadsheets or not."""
    return _Table(kind, safe)


# -- lines -------------------------------------------------------------------------------


class _Lines(Output):
    kind, streams = "jsonl", True

    def check(self, path: Path, overwrite: bool) -> Path:
        return check_file(path, overwrite)

    def write(
        self,
        path: Path,
        pages: Iterable[OutputPages],
        empty: OutputPages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int:
        size = 0
        with written_from(scratch, path) as file:
            for some in pages:
                content = self.text(some, False, scratch)
                disk.write(file, content)
                size += len(content)
        return size

    def text(self, pages: OutputPages, first: bool, scratch: Path) -> bytes:
        return "".join(map(json_of, pages.each())).encode(errors="surrogateescape")


def lines_output(kind: str) -> Output:
    """The one kind that there is."""
    return _Lines()


# -- graph -------------------------------------------------------------------------------


_LINK = {"rank": "int", "stderr": "double"}
_TITLE = {"title": "string"}


def _piece(pages: OutputPages) -> GraphPiece:
    columns = pages.columns
    facts = {}
    if pages.titles is not None and pages.node_titles is not None:
        facts["title"] = np.concatenate([pages.node_titles, pages.titles])
    return GraphPiece(
        np.concatenate([pages.ids, pages.related_ids]),
        np.concatenate([pages.nodes, pages.related]),
        facts,
        np.repeat(pages.ids, pages.counts),
        pages.related_ids,
        pages.scores,
        {title: columns[title] for title in _LINK},
    )


class _GraphOutput(Output):
    twice = True

    def __init__(self, kind: str) -> None:
        self.kind, self._writer = kind, GRAPHS[f".{kind}"]

    def check(self, path: Path, overwrite: bool) -> Path:
        return check_file(path, overwrite)

    def write(
        self,
        path: Path,
        pages: Iterable[OutputPages],
        empty: OutputPages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int:
        shape = GraphShape(_TITLE if empty.titles is not None else {}, _LINK, _about(facts))
        with written_from(scratch, path) as file:
            self._writer.write(Path(file.name), map(_piece, pages), shape)
            return Path(file.name).stat().st_size

    def trial(self, pages: Iterable[OutputPages], scratch: Path) -> tuple[int, float]:
        began, found = time.perf_counter(), list(pages)
        path = scratch / f"trial.{self.kind}"
        shape = GraphShape(_TITLE if found[0].titles is not None else {}, _LINK)
        self._writer.write(path, map(_piece, found), shape)
        return path.stat().st_size, time.perf_counter() - began


def _about(facts: dict[str, Any]) -> str:
    made = facts.get("made", {})
    return f"the {facts['k']} pages nearest to each of {facts['nodes']:,}, by {made.get('measure')}"


def graph_output(kind: str) -> Output:
    """The graph of that kind."""
    return _GraphOutput(kind)


# -- database ----------------------------------------------------------------------------


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

    def expect(self, pages: OutputPages) -> None:
        """Try without rows."""
        self.target.expect(pages.types)

    def write(
        self,
        path: Path,
        pages: Iterable[OutputPages],
        empty: OutputPages,
        scratch: Path,
        facts: dict[str, Any],
    ) -> int | None:
        """All rows at once."""
        return self.target.write_table((some.columns for some in pages), empty.types)

    def trial(self, pages: Iterable[OutputPages], scratch: Path) -> tuple[int, float]:
        """Of rows that are taken back."""
        began, found = time.perf_counter(), list(pages)
        columns = [some.columns for some in found]
        size = self.target.trial(columns, found[0].types, scratch)
        return size or 0, time.perf_counter() - began


def database(to: str, *, overwrite: bool, append: bool) -> Database:
    """The output for an address; raises as :func:`database_target` does."""
    return Database(database_target(to, overwrite=overwrite, append=append))
