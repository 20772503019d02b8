"""The tables that ingest works on, in DuckDB: out of core, in a private directory.

    part(a, b)   what readers found, names or integers; a alone of inputs that name nodes
    raw(a, b)    links as read, names or integers         dropped once numbered; w if weighted
    names(name)  distinct names in the order of numbering; the row number is the id
    titles(title) of the names, in their order, if there are any; on the way titled(place, name,
                 title) as read
    excluded(name)  names that are left out, with their links, if any are
    links(key)   destination * 2**32 + source, ascending; duplicates still in it; with weights w,
                 ascending among duplicates, so that their sum is always the same

DuckDB does what it is good at: reading Parquet and clean text, the dictionary, the joins and the
sorts, all of them spilling under one memory limit. It is locked to the directories of its inputs
and loads no extensions. The result is streamed out as NumPy arrays, a piece at a time.

Names are numbered by their sort key, then by name (bytes). The key of a name that is a URL
(``scheme://...``) is its SURT form: the host's labels reversed, the port, ")", and the rest, so
that a site's pages, and a domain's hosts, stand side by side. Any other name is its own key.
Of a table with two sides (``sides.py``) the left one comes first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np

from cocite.database import open_duckdb
from cocite.errors import ResourceError
from cocite.graph.left_out import LeftOut
from cocite.graph.readers import Source
from cocite.graph.readers.title_file import TITLE_COLUMNS, TitleFile
from cocite.graph.streams import NAMES_PIECE, NO_ROOM, Streams, unwritable
from cocite.store import disk

__all__ = ["MAX_NODES", "Tables", "TitlesKept"]

MAX_NODES = 2**32 - 1
"""Ids are uint32 and the largest one means "none"."""

_LARGEST_SPILL = 1 << 60
"""Bytes: spilling is bounded by the disk, not by DuckDB's default of 90 % of what is free."""

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


class TitlesKept(NamedTuple):
    """What came of titles: of how many ``names`` there are some; how many of these are ``unknown``,
    the first of them in ``strangers``; and how many titles were one more of a node, and another.
    """

    names: int
    unknown: int
    others: int
    strangers: list[str]


class Tables(Streams):
    """One run's database; ``directory`` must be private to it and is emptied by its owner."""

    def __init__(
        self,
        directory: Path,
        sources: list[Source],
        memory: int,
        threads: int,
        weighted: bool = False,
    ) -> None:
        spill = directory / "spill"
        disk.make_own_folder(spill)
        try:
            database = open_duckdb(
                str(directory / "tables.duckdb"),
                {
                    "memory_limit": f"{memory}B",
                    "threads": threads,
                    "temp_directory": str(spill),
                    "max_temp_directory_size": f"{_LARGEST_SPILL}B",
                    "autoinstall_known_extensions": False,
                    "autoload_known_extensions": False,
                    "preserve_insertion_order": True,
                },
            )
        except NO_ROOM as error:
            raise unwritable(directory, error) from error
        super().__init__(database, directory)
        named = _places(sources)
        self._db.execute("SET allowed_paths = ?", [named])
        self._db.execute("SET allowed_directories = ?", [[str(directory.resolve()) + "/"]])
        self._db.execute("SET enable_external_access = false")
        self._db.execute("SET lock_configuration = true")
        self._parts: list[str] = []
        self._node_parts: list[str] = []
        self._left_out = False
        self._mark = ""
        self.weighted = weighted
        self.integers = True

    # -- loading ------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The database with a schema ``reading``, for tables that a reader needs on its way."""
        self._run("CREATE SCHEMA reading")
        yield self._db
        self._run("DROP SCHEMA reading CASCADE")

    def load(self, relation: str, wanted: int, integers: bool) -> None:
        """Load what a reader found: ``wanted`` is 2 for links, 1 for names of nodes, ``integers``
        whether all names are.
        """
        parts = self._parts if wanted == 2 else self._node_parts
        table = f"part_{wanted}_{'integers' if integers else 'text'}"
        if table in parts:
            self._run(f"INSERT INTO {table} {relation}")
        else:
            self._run(f"CREATE TABLE {table} AS {relation}")
            parts.append(table)
        self.integers &= integers

    def leave_out(self, names: Sequence[str]) -> None:
        """Have no nodes called so: all other nodes stay, and the links among them."""
        self._run("CREATE TABLE excluded (name VARCHAR)")
        for low in range(0, len(names), NAMES_PIECE):
            piece = np.array(names[low : low + NAMES_PIECE], object)
            self._db.register("piece", {"name": piece})
            self._run("INSERT INTO excluded SELECT name FROM piece")
            self._db.unregister("piece")
        self._left_out = True

    def rename(self, normal: Callable[[str], str], which: str) -> int:
        """Call nodes as ``normal`` says, of the names in which there is the pattern ``which``;
        returns how many names that changes.
        """
        columns = [(part, "ab") for part in self._parts] + [(p, "a") for p in self._node_parts]
        columns = [(part, ends) for part, ends in columns if part.endswith("_text")]
        names = [f"SELECT {c} AS name FROM {part}" for part, ends in columns for c in ends]
        if not names:
            return 0
        self._run(
            f"CREATE TABLE looked_at AS SELECT name FROM ({' UNION '.join(names)}) WHERE "
            f"regexp_matches(name, '{which}')"
        )
        self._run("CREATE TABLE renamed (name VARCHAR, other VARCHAR)")
        for piece in self._stream("looked_at", "name", NAMES_PIECE):
            others = np.array([normal(name) for name in piece], object)
            self._db.register("piece", {"name": piece.astype(object), "other": others})
            self._run("INSERT INTO renamed SELECT name, other FROM piece WHERE name != other")
            self._db.unregister("piece")
        self._run("DROP TABLE looked_at")
        count = int(self._run("SELECT count(*) FROM renamed")[0][0])
        for part, ends in columns if count else ():
            other = ", ".join(f"coalesce({c}_.other, p.{c}) AS {c}" for c in ends)
            weight = ", p.w" if self.weighted and ends == "ab" else ""
            joins = " ".join(f"LEFT JOIN renamed {c}_ ON {c}_.name = p.{c}" for c in ends)
            self._run(f"CREATE TABLE other AS SELECT {other}{weight} FROM {part} p {joins}")
            self._run(f"DROP TABLE {part}")
            self._run(f"ALTER TABLE other RENAME TO {part}")
        self._run("DROP TABLE renamed")
        return count

    def mark(self, title: str) -> str:
        """Set the names of sources apart from those of targets, by a mark that they begin with: the
        ``title`` and as many colons as no target has. Names of nodes stay as they are. Returns it.
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
            self._run(
                f"CREATE TABLE marked AS SELECT '{mark}' || a::VARCHAR AS a, b::VARCHAR AS b"
                f"{weight} FROM {part}"
            )
            self._run(f"DROP TABLE {part}")
            self._run(f"ALTER TABLE marked RENAME TO {part}")
        self._mark = mark
        return mark

    def marked(self) -> int:
        """How many of the names have the mark, once they are numbered."""
        named = f"SELECT count(*) FROM names WHERE starts_with(name, '{self._mark}')"
        return int(self._run(named)[0][0])

    # -- numbering and sorting ------------------------------------------------------

    def number(self) -> int:
        """Give every distinct name its id; returns their number."""
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
        if self._left_out:
            self._run(f"CREATE TABLE every AS SELECT name FROM {every}")
            every = f"every WHERE {self._stays('name')}"
        self._run(f"CREATE TABLE names AS SELECT name FROM {every} ORDER BY {order}")
        count = int(self._run("SELECT count(*) FROM names")[0][0])
        if count > MAX_NODES:
            raise ResourceError(
                f"the links name {count:,} nodes; a graph can have {MAX_NODES:,} (ids are uint32)"
            )
        return count

    @staticmethod
    def _stays(name: str) -> str:
        """The condition that a name is not left out; integers are compared as they are written."""
        return f"{name}::VARCHAR NOT IN (SELECT name FROM excluded)"

    def cut(self) -> LeftOut | None:
        """Drop the links of what is left out, once nodes are numbered; None if nothing is to be."""
        if not self._left_out:
            return None
        links = self._run(f"DELETE FROM raw WHERE NOT ({self._stays('a')} AND {self._stays('b')})")
        nodes = self._run(f"SELECT count(*) FROM every WHERE NOT {self._stays('name')}")
        strangers = "FROM excluded WHERE name NOT IN (SELECT name::VARCHAR FROM every)"
        unknown = self._run(f"SELECT count(*) {strangers}")
        first = self._run(f"SELECT name {strangers} ORDER BY rowid LIMIT 1")
        self._run("DROP TABLE every")
        example = str(first[0][0]) if first else None
        return LeftOut(int(nodes[0][0]), int(links[0][0]), int(unknown[0][0]), example)

    def dense(self, count: int) -> bool:
        """Whether the names are the integers 0 to count - 1, so that a name is its id."""
        return self.integers and (
            count == 0 or int(self._run("SELECT max(name) FROM names")[0][0]) == count - 1
        )

    def has_urls(self) -> bool:
        """Whether the order of ids is not the order of names."""
        if self.integers or self._mark:
            return not self.integers
        return bool(self._run(f"SELECT 1 FROM names WHERE {IS_URL} LIMIT 1"))

    def sort(self, dense: bool, undirected: bool) -> int:
        """Turn raw links into ascending keys; returns their number, duplicates included.

        Both ways of a self-loop are one link: the second adds nothing to its weight.
        """
        raw = "raw"
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
        return int(self._run("SELECT count(*) FROM links")[0][0])

    # -- titles ---------------------------------------------------------------------

    def load_titles(self, files: Sequence[TitleFile]) -> TitlesKept:
        """Give the named nodes their titles, of each the one with the first place."""
        columns = ", ".join(f"'{name}': '{kind}'" for name, kind in TITLE_COLUMNS.items())
        each = [
            f"SELECT * FROM read_csv('{_quoted(file.path)}', delim = '\t', header = false, "
            "auto_detect = false, quote = '', escape = '', comment = '', new_line = '\\n', "
            f"nullstr = '\x01', columns = {{{columns}}})"
            for file in files
            if file.count
        ]
        self._run("CREATE TABLE titled AS " + " UNION ALL ".join(each))
        self._run(
            "CREATE TABLE firsts AS SELECT name, min(place) AS place FROM titled GROUP BY name"
        )
        others = "SELECT count(*) FROM titled t JOIN firsts f ON f.name = t.name "
        others += "JOIN titled o ON o.place = f.place WHERE o.title <> t.title"
        unknown = "FROM firsts f ANTI JOIN names n ON n.name::VARCHAR = f.name"
        strangers = self._run(f"SELECT name {unknown} ORDER BY place LIMIT 3")
        kept = TitlesKept(
            int(self._run("SELECT count(*) FROM firsts")[0][0]),
            int(self._run(f"SELECT count(*) {unknown}")[0][0]),
            int(self._run(others)[0][0]),
            [str(row[0]) for row in strangers],
        )
        self._run(
            "CREATE TABLE titles AS SELECT coalesce(t.title, '') AS title FROM names n "
            "LEFT JOIN firsts f ON f.name = n.name::VARCHAR "
            "LEFT JOIN titled t ON t.place = f.place ORDER BY n.rowid"
        )
        self._run("DROP TABLE titled")
        self._run("DROP TABLE firsts")
        return kept

    def titles(self) -> Iterator[list[str]]:
        """The titles in order of id, "" for none, in pieces as of names."""
        return (piece.tolist() for piece in self._stream("titles", "title", NAMES_PIECE))


def _places(sources: list[Source]) -> list[str]:
    """The files as they are named, and where they lie."""
    named = [str(source.path) for source in sources if source.path is not None]
    folders: dict[str, str] = {}
    found = []
    for path in named:
        folder, name = os.path.split(path)
        if os.path.islink(path) or name in ("", ".", ".."):
            found.append(os.path.realpath(path))
            continue
        if folder not in folders:  # thousands of files lie in few
            folders[folder] = os.path.realpath(folder)
        found.append(os.path.join(folders[folder], name))
    return found + named


def _quoted(path: Path | None) -> str:
    return str(Path(path or "").resolve()).replace("'", "''")
