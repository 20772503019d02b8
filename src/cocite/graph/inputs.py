"""What is given to ingest: files of links, of nodes and of titles, or what a database gives; and
options as they may be written.

Cost: a look at the first bytes of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from cocite.errors import UsageError
from cocite.graph.readers import LinkReader, ReadOptions, Source, expand, reader_of
from cocite.graph.readers.sql import SqlSource
from cocite.graph.readers.title_table import title_sources

__all__ = [
    "Inputs",
    "Query",
    "numbers_of",
    "see_no_text",
    "size_of",
    "split",
    "threads_for",
    "weight_of",
]

_THREAD_BYTES = 1 << 18
"""Of the input for each thread of DuckDB, packed or not; it deals work out by some MB of text."""

_SIZES = 20
"""How much larger than a file what is made of it may be, meanwhile."""


class Query(NamedTuple):
    """What is asked of a database in the place of files, as users say it."""

    sql: str | None
    database: str | None
    table: str | None

    def source(self, inputs: Any, memory: int, **files: tuple[object, object]) -> SqlSource | None:
        """It as an input, None if there is none; raises :class:`~cocite.errors.UsageError` if there
        are ``inputs``, too, or options of ``files`` that are not what they usually are.
        """
        if self == (None, None, None):
            return None
        if inputs is not None:
            raise UsageError(
                "links are either in files or given by a database (--sql, --database): leave one "
                'of the two out. A query reads files itself, as in --sql "select src, dst from '
                "'a.parquet'\""
            )
        for title, (value, usual) in files.items():
            if value != usual:
                raise UsageError(f"{title} is for files: leave it out for what a database gives")
        return SqlSource.checked(self.sql, self.database, self.table, memory)


class Inputs(NamedTuple):
    """The files that are read: of links, of names of nodes, of titles."""

    links: list[Source]
    nodes: list[Source]
    titles: list[Source]

    @classmethod
    def checked(
        cls, links: Any, nodes: Any, titles: Any, options: ReadOptions, memory: int
    ) -> Inputs:
        """Those that are named, each of a kind that there is a reader for; ``memory`` is what
        DuckDB may take for titles in a database of its own.
        """
        found = cls(_sources(links), _sources(nodes), title_sources(titles, memory))
        if sum(source.is_stdin for source in found.all) > 1:
            raise UsageError("standard input (-) is named twice, for links and for nodes or titles")
        readers: list[LinkReader] = []
        for sources, wanted in ((found.links, 2), (found.nodes, 1)):
            for source in sources:
                if not source.is_pipe:  # of pipes the first bytes are there when their turn comes
                    readers.append(reader_of(source, options, wanted))
                    source.forget()
        if not any(source.is_pipe for source in found.links):
            _check_asked(readers[: len(found.links)], options)
        return found

    @property
    def all(self) -> list[Source]:
        """All of them."""
        return self.links + self.nodes + self.titles


def _check_asked(readers: list[LinkReader], options: ReadOptions) -> None:
    """See that some input does what is asked for."""
    if options.pages.listed and not any(getattr(each, "restricts", False) for each in readers):
        raise UsageError(
            "--pages (pages=) names pages of a folder of HTML pages or of web archives, and there "
            "is none in the input"
        )
    if options.pages.fetch and not any(getattr(each, "fetches", False) for each in readers):
        raise UsageError(
            "--fetch (fetch=True) fetches the pages of a sitemap or a list of URLs, and there is "
            "none in the input"
        )


def _sources(named: Any) -> list[Source]:
    if isinstance(named, SqlSource):
        return [named]
    return [] if named is None else expand(named)


def size_of(sources: list[Source]) -> int | None:
    """What storing them takes at most, where that can be told: not of what is packed."""
    if any(s.path is None or s.is_pipe or s.is_directory or s.packed for s in sources):
        return None
    return _SIZES * sum(source.nbytes for source in sources)


def threads_for(sources: list[Source], most: int) -> int:
    """As many threads as there is work for, where its size is known: DuckDB starts them all."""
    if any(s.path is None or s.is_pipe or s.is_directory for s in sources):
        return most
    return min(most, 1 + sum(source.nbytes for source in sources) // _THREAD_BYTES)


# -- options --------------------------------------------------------------------------


def weight_of(weight_column: str | int | None, count_duplicates: bool) -> str:
    """The column of weights, "" for none."""
    weight = "" if weight_column is None else str(weight_column).strip()
    if weight_column is not None and not weight:
        raise UsageError("weight_column is empty; it is a title or a number from 1")
    if weight and count_duplicates:
        raise UsageError(
            "count_duplicates (--count-duplicates) makes weights, and weight_column "
            "(--weight-column) reads them, adding up those of duplicates. Leave one of the two out"
        )
    return weight


def split(columns: str | Iterable[str | int]) -> tuple[str, ...]:
    """Columns, as a list or with commas between them."""
    each = columns.split(",") if isinstance(columns, str) else map(str, columns)
    return tuple(column.strip() for column in each)


def numbers_of(namespaces: str | Iterable[str | int]) -> tuple[int, ...]:
    """Numbers of namespaces, each once."""
    each = split(namespaces)
    strange = [text for text in each if not text.isdecimal() or len(text) > 9]
    if strange:
        raise UsageError(f"namespaces has {strange[0]!r}; it is numbers, such as 0,14")
    return tuple(dict.fromkeys(map(int, each)))


def see_no_text(**options: tuple[str, str]) -> None:
    """See that options of texts are what they are by default."""
    for title, (value, usual) in options.items():
        if value != usual:
            raise UsageError(f"{title} is for files: leave it out for what is in memory")
