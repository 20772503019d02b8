"""Titles while a graph is made: read, given to the nodes that there are, and counted.

Titles come from tables that are given for them, and from readers of links that meet some on their
way (``io/readers/contract.py``); those of tables go first, and the first one of a node
stands. Those of names that no node has are counted.

Writing titles: front-coded in blocks, as names are; the package reads them.

Cost: a pass over the titles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, UsageError
from cocite.graph.name_files import TITLES_BLOCKS, TITLES_DATA, Titles, encode_texts, joined_names
from cocite.io.readers import ReadOptions, Source
from cocite.io.readers.contract import Progress, TitleFile
from cocite.io.readers.titles import TitlesFound, check_titles, read_titles
from cocite.storage import ArrayWriter, Entry

if TYPE_CHECKING:
    from cocite.io.tables import Tables


_PIECE = 1 << 12


def write_titles(directory: Path, pieces: Iterable[list[str]]) -> dict[str, Entry]:
    """Write the titles of all nodes, in order of id, in pieces whose length a block divides."""
    base = 0
    with (
        ArrayWriter(directory / TITLES_DATA, np.uint8) as data,
        ArrayWriter(directory / TITLES_BLOCKS, np.uint64) as blocks,
    ):
        for titles in pieces:
            base += encode_texts(*joined_names(titles), data, blocks, base)
    return {TITLES_DATA: data.finished, TITLES_BLOCKS: blocks.finished}


def write_some_titles(directory: Path, titles: Titles, ids: NDArray[np.uint32]) -> dict[str, Entry]:
    """Write the titles of the nodes ``ids``, ascending, as those of nodes of their own."""
    pieces = (titles.of(ids[low : low + _PIECE]) for low in range(0, ids.size, _PIECE))
    return write_titles(directory, pieces)


# -- titling -----------------------------------------------------------------------------


_BEHIND = 1 << 40
"""The place of the first title that is not out of a table."""


class Titling:
    """The titles of one run; its files are in ``work``."""

    def __init__(
        self,
        sources: list[Source],
        columns: tuple[str, ...],
        options: ReadOptions,
        work: Path,
        called: Callable[[str], str] = str,
        pairs: Iterable[tuple[str, str]] = (),
    ) -> None:
        """``pairs`` are names and titles that are in memory."""
        self._sources, self._columns, self._options = sources, columns, options
        self._pairs = pairs
        self._given = TitleFile(work / "titles.given", called=called)
        self.met = TitleFile(work / "titles.met", _BEHIND, called)
        """Takes the titles that readers of links meet."""
        self._read: list[TitlesFound] = []

    @staticmethod
    def checked(
        sources: list[Source], columns: tuple[str, ...], options: ReadOptions
    ) -> tuple[str, ...]:
        """The columns; raises :class:`UsageError` for those that are none, or for no table, and
        :class:`~cocite.errors.UnrecognizedInput` for what is no table.
        """
        if len(columns) not in (0, 2):
            raise UsageError(
                f"title_columns is {','.join(columns)}; it takes two, name and title, as in 1,2"
            )
        if columns and not sources:
            raise UsageError(
                "title_columns (--title-columns) are those of a table of titles: give that, too "
                "(--titles)"
            )
        for source in sources:
            if not source.is_pipe:
                check_titles(source, options)
        return columns

    def read(self, tables: Tables, progress: Progress) -> None:
        """Read the tables."""
        with self._given, tables.reading() as database:
            for name, title in self._pairs:
                self._given.add(name, title)
            for source in self._sources:
                found = read_titles(
                    source, self._columns, self._options, database, self._given, progress
                )
                self._read.append(found)

    def store(self, directory: Path, tables: Tables) -> tuple[dict[str, Any], dict[str, Entry]]:
        """Write the titles of the nodes that ``tables`` has numbered; returns what the manifest
        says of them and the files, nothing if there are none and none were given.
        """
        with self.met:  # which writes what is left of them
            pass
        files = [file for file in (self._given, self.met) if file.count]
        if not files:
            if self._sources:
                raise InputError(f"{self._sources[0].label} has no title")
            return {}, {}
        kept = tables.load_titles(files)
        known = kept.names - kept.unknown
        if self._given.count and not known:
            raise InputError(
                f"none of the {kept.names:,} titles is of a node: {kept.strangers[0]!r} is no name "
                "of one. If the columns are others: --title-columns NAME,TITLE (title_columns=)"
            )
        if not known:
            return {}, {}
        facts = {
            "nodes": known,
            "unknown": kept.unknown,
            "others": kept.others,
            "strangers": kept.strangers,
            "sources": [self._reported(found) for found in self._read],
        }
        return {"titles": facts}, write_titles(directory, tables.titles())

    @staticmethod
    def _reported(found: TitlesFound) -> dict[str, Any]:
        """As of an input of links: its base name, not where it lay on this machine."""
        name = Path(found.file).name
        return asdict(found) | {
            "file": name,
            "read_as": found.describe().replace(found.file, name, 1),
        }
