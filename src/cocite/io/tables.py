"""DuckDB tables of an ingest: out of core, in a private directory.

    part(a, b)      results of readers, names or integers; only a for node names
    raw(a, b)       links as read, names or integers, w if weighted; dropped once numbered
    names(name)     distinct names in the order of ids; the row number is the id
    links(key)      destination * 2**32 + source, ascending, with duplicates and weights w; weights
                    of duplicates ascend, so that their float sum is reproducible

Ids follow the names' sort keys, then their bytes. A URL's sort key is its SURT form (the host's
labels reversed, the port, ")", and the rest), so a site's pages are adjacent. Other names are their
own keys. In a bipartite graph (``graph/sides.py``), the left side comes first.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import duckdb
import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError
from cocite.graph.names import MAX_NODES
from cocite.graph.spelling import PADDED, trimmed
from cocite.io.database import file_pattern, open_duckdb
from cocite.io.readers import Source
from cocite.resources import format_size
from cocite.storage import disk

_PIECE = 1 << 19
NAMES_PIECE = 1 << 17
"""Names per chunk, a multiple of the block size of names on disk."""


NO_ROOM = duckdb.IOException, duckdb.TransactionException, duckdb.FatalException
"""Exceptions that DuckDB raises if files cannot be written, for example on a full disk."""


def unwritable(directory: Path, error: Exception) -> ResourceError:
    """Return the error for a database that cannot write to ``directory``."""
    if {"?", "\\"} & set(str(directory.absolute())):
        return ResourceError(
            f"temporary files in {directory} cannot be written or read: DuckDB does not support ? "
            f"or backslashes in paths ({error}). Choose an output in another folder"
        )
    return ResourceError(
        f"temporary files in {directory} cannot be written or read, where "
        f"{format_size(shutil.disk_usage(directory).free)} is free: {error}. Free disk space, or "
        "choose an output on another disk"
    )


_log = logging.getLogger("cocite")
_LARGEST_SPILL = 1 << 60
"""Only the disk limits spilling; DuckDB's default is 90% of the free space."""

_SCHEME = "^[A-Za-z][A-Za-z0-9+.-]*://"
_HOST = f"regexp_extract(name, '{_SCHEME}(?:[^/?#@]*@)?([^/?#:]*)', 1)"
_REST = f"regexp_replace(name, '{_SCHEME}(?:[^/?#@]*@)?[^/?#:]*', '')"
SORT_KEY = (
    f"CASE WHEN regexp_matches(name, '{_SCHEME}') THEN "
    f"array_to_string(list_reverse(string_split(lower({_HOST}), '.')), ',') || "
    f"regexp_extract({_REST}, '^:[0-9]*') || ')' || regexp_replace({_REST}, '^:[0-9]*', '') "
    "ELSE name END"
)

IS_URL = f"regexp_matches(name, '{_SCHEME}')"


class Tables:
    """The database of one run, in a private ``directory``, which the caller removes."""

    def __init__(
        self,
        directory: Path,
        sources: list[Source],
        memory: int,
        threads: int,
        weighted: bool = False,
    ) -> None:
        spill, where = directory / "spill", directory.resolve()
        disk.make_own_folder(spill)
        try:
            database = open_duckdb(
                str(directory / "tables.duckdb"),
                {
                    "memory_limit": f"{memory}B",
                    "threads": threads,
                    "temp_directory": str(spill),
                    "max_temp_directory_size": f"{_LARGEST_SPILL}B",
                    "preserve_insertion_order": True,
                },
                files=[*_places(sources), f"{where}/", file_pattern(where) + "/"],
            )
        except NO_ROOM as error:
            raise unwritable(directory, error) from error
        self._db, self._directory = database, directory
        self._parts: list[str] = []
        self._node_parts: list[str] = []
        self._mark = ""
        self.weighted = weighted
        self.integers = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()

    def _insert(self, table: str, **columns: NDArray[Any]) -> None:
        self._db.register("piece", columns)
        self._run(f"INSERT INTO {table} SELECT {', '.join(columns)} FROM piece")
        self._db.unregister("piece")

    def _rewrite(self, part: str, query: str) -> None:
        self._run(f"CREATE TABLE other AS {query}")
        self._run(f"DROP TABLE {part}")
        self._run(f"ALTER TABLE other RENAME TO {part}")

    def _count(self, table: str) -> int:
        return int(self._run(f"SELECT count(*) FROM {table}")[0][0])

    def _run(self, query: str, fetch: str = "fetchall") -> Any:
        """Run a query; return its rows, by default as tuples."""
        try:
            return getattr(self._db.execute(query), fetch)()
        except (duckdb.InterruptException, RuntimeError) as error:
            if "interrupt" in str(error).lower():
                raise KeyboardInterrupt from error
            raise
        except duckdb.OutOfMemoryException as error:
            raise ResourceError(
                f"the links exceed the memory limit, even when spilling to disk: {error}. Raise "
                "the limit with --memory (memory=...)"
            ) from error
        except NO_ROOM as error:
            raise unwritable(self._directory, error) from error

    def _stream(self, table: str, column: str, piece: int) -> Iterator[NDArray[Any]]:
        return (values for (values,) in self._stream_rows(table, (column,), piece))

    def _stream_rows(
        self, table: str, columns: tuple[str, ...], piece: int
    ) -> Iterator[tuple[NDArray[Any], ...]]:
        count, query = self._count(table), f"SELECT {', '.join(columns)} FROM {table}"
        for low in range(0, count, piece):
            some = f"{query} WHERE rowid >= {low} AND rowid < {low + piece}"
            values = self._run(some, "fetchnumpy")
            found = tuple(np.asarray(values[column]) for column in columns)
            if len(found[0]) != min(piece, count - low):
                raise InputError(f"table {table} lost rows at {low}: please report this bug")
            yield found

    # -- loading ------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a schema ``reading`` for a reader's temporary tables."""
        self._run("CREATE SCHEMA reading")
        yield self._db
        self._run("DROP SCHEMA reading CASCADE")

    def load(self, relation: str, wanted: int, integers: bool) -> None:
        """Load a reader's relation of links (``wanted`` is 2) or node names (1); ``integers`` says
        whether its names are integers or text.
        """
        parts = self._parts if wanted == 2 else self._node_parts
        table = f"part_{wanted}_{'integers' if integers else 'text'}"
        if table in parts:
            self._run(f"INSERT INTO {table} {relation}")
        else:
            self._run(f"CREATE TABLE {table} AS {relation}")
            parts.append(table)
        self.integers &= integers

    def rename(self, normal: Callable[[str], str], which: str) -> tuple[int, int]:
        """Apply ``normal`` to names that match ``which`` (SQL); return (changed, merged)."""
        columns = [(part, "ab") for part in self._parts] + [(p, "a") for p in self._node_parts]
        columns = [(part, ends) for part, ends in columns if part.endswith("_text")]
        every = " UNION ".join(f"SELECT {c} AS name FROM {p}" for p, ends in columns for c in ends)
        if not every:
            return 0, 0
        self._run(f"CREATE TABLE looked_at AS SELECT name FROM ({every}) WHERE {which}")
        self._run("CREATE TABLE renamed (name VARCHAR, other VARCHAR)")
        for piece in self._stream("looked_at", "name", NAMES_PIECE):
            others = np.array([normal(name) for name in piece], object)
            other = others != piece
            self._insert("renamed", name=piece.astype(object)[other], other=others[other])
        self._run("DROP TABLE looked_at")
        count, others = self._run("SELECT count(*), count(DISTINCT other) FROM renamed")[0]
        merged = count - others
        if count:
            own = "SELECT name FROM renamed"
            there = f"SELECT name FROM ({every}) WHERE name IN (SELECT other FROM renamed)"
            merged += self._count(f"({there} EXCEPT {own})")
        for part, ends in columns if count else ():
            other = ", ".join(f"coalesce({c}_.other, p.{c}) AS {c}" for c in ends)
            weight = ", p.w" if self.weighted and ends == "ab" else ""
            joins = " ".join(f"LEFT JOIN renamed {c}_ ON {c}_.name = p.{c}" for c in ends)
            self._rewrite(part, f"SELECT {other}{weight} FROM {part} p {joins}")
        self._run("DROP TABLE renamed")
        return int(count), int(merged)

    def trim(self) -> int:
        """Strip blanks around names; return how many names were merged with others."""
        _, merged = self.rename(trimmed, PADDED)
        if merged:
            _log.warning(
                f"{merged:,} name{'s' * (merged > 1)} differed from other names only in leading "
                f"or trailing blanks, and {'were' if merged > 1 else 'was'} merged with them"
            )
        return merged

    def mark(self, title: str) -> str:
        """Prefix the names of sources with ``title`` and colons, as many as it takes for no target
        to start with the prefix; return the prefix. Names loaded as nodes are unchanged.
        """
        self.integers = False
        targets = " UNION ALL ".join(f"SELECT b::VARCHAR AS b FROM {t}" for t in self._parts)
        mark = title + ":"
        while targets and self._run(
            f"SELECT 1 FROM ({targets}) WHERE starts_with(b, '{mark}') LIMIT 1"
        ):
            mark += ":"
        weight = ", w" if self.weighted else ""
        for part in list(self._parts):
            marked = f"'{mark}' || a::VARCHAR AS a, b::VARCHAR AS b{weight}"
            self._rewrite(part, f"SELECT {marked} FROM {part}")
        self._mark = mark
        return mark

    def marked(self) -> int:
        """Return how many of the numbered names have the prefix."""
        return self._count(f"names WHERE starts_with(name, '{self._mark}')")

    # -- numbering and sorting ------------------------------------------------------

    def number(self) -> int:
        """Assign an id to every distinct name; return the number of names."""
        kind = "UBIGINT" if self.integers else "VARCHAR"
        weight = ", w" if self.weighted else ""
        links = [f"SELECT a::{kind} AS a, b::{kind} AS b{weight} FROM {t}" for t in self._parts]
        self._run("CREATE TABLE raw AS " + " UNION ALL ".join(links))
        names = [f"SELECT {c}::{kind} AS name FROM raw" for c in "ab"]
        names += [f"SELECT a::{kind} AS name FROM {t}" for t in self._node_parts]
        for table in self._parts:
            self._run(f"DROP TABLE {table}")
        order = "name" if self.integers else f"{SORT_KEY}, name"
        if self._mark:
            order = f"NOT starts_with(name, '{self._mark}'), {order}"
        every = f"({' UNION '.join(names)})"
        self._run(f"CREATE TABLE names AS SELECT name FROM {every} ORDER BY {order}")
        count = self._count("names")
        if count > MAX_NODES:
            raise ResourceError(
                f"the links have {count:,} nodes; the maximum is {MAX_NODES:,} (ids are uint32)"
            )
        return count

    def dense(self, count: int) -> bool:
        """Return whether the names are the integers below ``count``, so each is its own id."""
        return self.integers and (
            count == 0 or int(self._run("SELECT max(name) FROM names")[0][0]) == count - 1
        )

    def has_urls(self) -> bool:
        """Return whether the id order differs from the name order."""
        if self.integers or self._mark:
            return not self.integers
        return bool(self._run(f"SELECT 1 FROM names WHERE {IS_URL} LIMIT 1"))

    def sort(self, dense: bool, undirected: bool) -> int:
        """Convert raw links to ascending keys; return their number, including duplicates."""
        raw = "raw"  # below, a reversed self-loop has weight 0, so that its weight counts once
        weight, back = (", w", ", if(a = b, 0, w) AS w") if self.weighted else ("", "")
        if undirected:
            raw = (
                f"(SELECT a, b{weight} FROM raw UNION ALL SELECT b AS a, a AS b{back} FROM raw) "
                "AS raw"
            )
        shift = "::UBIGINT * 4294967296::UBIGINT + "
        if dense:
            keys = f"SELECT b{shift}a AS key{weight} FROM {raw}"
        else:
            keys = (
                f"SELECT d.rowid{shift}s.rowid::UBIGINT AS key{weight} FROM {raw} "
                "JOIN names s ON s.name = raw.a JOIN names d ON d.name = raw.b"
            )
        self._run(f"CREATE TABLE keys AS {keys}")
        self._run("DROP TABLE raw")
        self._run(f"CREATE TABLE links AS SELECT key{weight} FROM keys ORDER BY key{weight}")
        self._run("DROP TABLE keys")
        return self._count("links")

    # -- titles ---------------------------------------------------------------------

    def add_titles(self, rows: Sequence[tuple[int, str, str]]) -> None:
        """Add titles, as (position, name, title)."""
        self._run("CREATE TABLE IF NOT EXISTS titled (place UBIGINT, name VARCHAR, title VARCHAR)")
        places, names, titles = zip(*rows, strict=True)
        texts = {"name": np.array(names, object), "title": np.array(titles, object)}
        self._insert("titled", place=np.array(places, np.uint64), **texts)

    def load_titles(self) -> dict[str, Any]:
        """Assign titles to nodes; if a node has several, the one with the lowest position counts.

        Return the manifest's counts: ``nodes`` with a title, ``unknown`` names (``strangers`` lists
        the first), and ``others``, titles that differ from the first one of the same name.
        """
        self._run(
            "CREATE TABLE firsts AS SELECT name, min(place) AS place FROM titled GROUP BY name"
        )
        others = "titled t JOIN firsts f ON f.name = t.name "
        others += "JOIN titled o ON o.place = f.place WHERE o.title <> t.title"
        unknown = "firsts f ANTI JOIN names n ON n.name::VARCHAR = f.name"
        strangers = self._run(f"SELECT name FROM {unknown} ORDER BY place LIMIT 3")
        names, without, more = map(self._count, ("firsts", unknown, others))
        self._run(
            "CREATE TABLE titles AS SELECT coalesce(t.title, '') AS title FROM names n "
            "LEFT JOIN firsts f ON f.name = n.name::VARCHAR "
            "LEFT JOIN titled t ON t.place = f.place ORDER BY n.rowid"
        )
        for table in ("titled", "firsts"):
            self._run(f"DROP TABLE {table}")
        found = {"nodes": names - without, "unknown": without, "others": more}
        return found | {"strangers": [str(row[0]) for row in strangers]}

    def titles(self) -> Iterator[list[str]]:
        """Yield chunks of titles ("" for none) in order of id, aligned with the chunks of names."""
        return (piece.tolist() for piece in self._stream("titles", "title", NAMES_PIECE))

    # -- output -------------------------------------------------------------------

    def links(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64] | None]]:
        """Yield chunks of ascending keys, with weights or None."""
        columns = ("key", "w") if self.weighted else ("key",)
        for key, *weights in self._stream_rows("links", columns, _PIECE):
            yield key, weights[0] if weights else None

    def integer_names(self) -> Iterator[NDArray[np.uint64]]:
        """Yield chunks of integer names in order of id."""
        return self._stream("names", "name", _PIECE)

    def text_names(self) -> Iterator[list[str]]:
        """Yield the names in order of id, in chunks of :data:`NAMES_PIECE`."""
        return (piece.tolist() for piece in self._stream("names", "name", NAMES_PIECE))

    def ids_by_name(self) -> Iterator[NDArray[np.uint32]]:
        """Yield chunks of ids in the byte order of their names."""
        self._run("CREATE TABLE by_name AS SELECT rowid::UINTEGER AS id FROM names ORDER BY name")
        return self._stream("by_name", "id", _PIECE)

    def sort_hashes(self, pieces: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint64]]:
        """Yield chunks of hash * 2**32 + id, ascending, from hashes in order of id."""
        self._run("CREATE TABLE hashes(key UBIGINT)")
        base = 0
        for hashes in pieces:
            ids = np.arange(base, base + hashes.size, dtype=np.uint64)
            self._insert("hashes", key=(hashes.astype(np.uint64) << np.uint64(32)) | ids)
            base += hashes.size
        self._run("CREATE TABLE by_hash AS SELECT key FROM hashes ORDER BY key")
        self._run("DROP TABLE hashes")
        return self._stream("by_hash", "key", _PIECE)


def _places(sources: list[Source]) -> list[str]:
    """Return the sources' paths in all forms that DuckDB may check: absolute, escaped, resolved."""
    found = []
    for path in [str(source.path) for source in sources if source.path is not None]:
        found += [os.path.join(os.getcwd(), path), path, os.path.realpath(path)]
        with suppress(InputError):  # DuckDB cannot read such a path
            found.append(file_pattern(path))
    return found
