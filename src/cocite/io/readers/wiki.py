"""Dumps of MediaWiki (mysqldump): tables ``page``, ``pagelinks``, ``linktarget``, ``redirect``.

A node is a page of the namespaces that are chosen, and no redirect: a link to a redirect is one to
the page where it leads in the end. It is called by its title with underscores, with the namespace
in front (``Category:Birds``) if that is not the main one. Links to pages that are not there (red
ones), and to redirects that lead nowhere, in a circle or to another wiki, are counted.

Files that belong to a named one are found beside it by their names (``enwiki-page.sql.gz``). Tables
may have a prefix (``wiki_page``). A statement begins a line; what is no row ends with it. Cost: 3
ns a byte, unpacked (``kernels/sql_rows.py``), and DuckDB's joins; memory for two pieces of
4 MiB. https://www.mediawiki.org/wiki/Manual:Database_layout
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, MalformedRow
from cocite.io.readers.contract import EXAMPLES, FormatReader, Found, Job, Read, follow, no_report
from cocite.io.readers.sources import Source, unpack_errors
from cocite.io.readers.text import new_clean_file, relation_of
from cocite.kernels.sql_rows import INTEGER, TEXT
from cocite.storage import disk

# -- tables ------------------------------------------------------------------------------


_TABLES_PIECE = 1 << 22
_LONGEST = 1 << 24
"""Bytes within which a row, or what creates a table, ends."""
_HEAD = 1 << 16
_STATEMENT = re.compile(
    rb"\n[ \t\r]*(?:(?P<create>CREATE)\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?|(?:INSERT|REPLACE)\s+"
    rb"(?:IGNORE\s+)?INTO\s+)(?:[`\"]?\w+[`\"]?\.)?[`\"]?(?P<table>\w+)[`\"]?\s*"
    rb"(?(create)\(|(?P<columns>\([^()']*\))?\s*VALUES\b)",
    re.I,
)
_COLUMN = re.compile(rb"^\s*[`\"](\w+)[`\"]\s+\w", re.M)
_NAME = re.compile(rb"\w+")


@dataclass
class Table:
    """A table that is wanted: ``kinds`` are the columns to take, if they are there, and what they
    are (TEXT or INTEGER); ``found`` are those that are, in their order.
    """

    kinds: Mapping[str, int]
    out: BinaryIO
    every: tuple[str, ...] = ()
    rows: int = 0
    read: bool = False
    found: tuple[str, ...] = field(default=())

    def begin(self, columns: list[str], label: str, name: str) -> None:
        """The columns that a file says it has: always the same ones."""
        self.read = True
        taken = tuple(column for column in columns if column in self.kinds)
        if self.found and taken != self.found:
            raise InputError(
                f"{label}: the table {name} has other columns than in the files before: "
                f"{', '.join(taken)}, and not {', '.join(self.found)}. Name the dump of one wiki, "
                "of one day"
            )
        self.every, self.found = tuple(columns), taken

    @property
    def take(self) -> NDArray[np.uint8]:
        """What is done with each column."""
        return np.array([self.kinds.get(column, 0) for column in self.every], np.uint8)


def read_tables(
    source: Source,
    tables: Mapping[str, Table],
    skip: bool,
    progress: Callable[[str, int, int], None],
) -> tuple[Counter[str], list[str]]:
    """Write the rows of those ``tables`` that are in a file; returns rows that are left out, by
    what is wrong with them, and the first of them, as text, if they are to be skipped.

    Raises :class:`MalformedRow` and :class:`InputError`.
    """
    reading = _Reading(source, tables, skip, progress)
    stream, raw = source.open()
    try:
        with raw, stream:
            reading.run(stream, raw)
    except unpack_errors() as error:
        raise InputError(
            f"{source.label} cannot be read beyond line {reading.line:,}, as it is cut or damaged: "
            f"{error}"
        ) from error
    return reading.bad, reading.examples


class _Reading:
    """One file."""

    def __init__(
        self,
        source: Source,
        tables: Mapping[str, Table],
        skip: bool,
        progress: Callable[[str, int, int], None],
    ) -> None:
        from cocite.kernels import sql_rows

        self._k = sql_rows
        self._source, self._tables = source, tables
        self._skip, self._progress = skip, progress
        self._columns: dict[str, list[str]] = {}
        self._buffer = b"\n"
        self._room = np.empty(0, np.uint8)
        self._tally = np.zeros(sql_rows.TALLY, np.int64)
        self._wrong = np.zeros((EXAMPLES, sql_rows.BAD_FIELDS), np.int64)
        self.line = 0
        self.bad: Counter[str] = Counter()
        self.examples: list[str] = []

    def run(self, stream: IO[bytes], raw: BinaryIO) -> None:
        """Read it to its end."""
        self._stream, self._raw = stream, raw
        while True:
            found = _STATEMENT.search(self._buffer)
            if found is None:
                # What may be the beginning of a statement stays.
                keep = self._buffer.rfind(b"\n")
                self._drop(len(self._buffer) if len(self._buffer) - keep > _HEAD else max(keep, 0))
                if not self._more():
                    return
                continue
            name = found["table"].decode()
            table = next((t for n, t in self._tables.items() if name.endswith(f"_{n}")), None)
            table = self._tables.get(name, table)
            if found["create"]:
                self._create(name, table, found.end())
            elif table is None:
                self._drop(found.end())
            else:
                columns = self._columns.get(name)
                if found["columns"]:
                    columns = [part.decode() for part in _NAME.findall(found["columns"])]
                if not columns:
                    raise InputError(
                        f"{self._source.label}: no CREATE TABLE says which columns {name} has. "
                        "Dump it with its structure"
                    )
                table.begin(columns, self._source.label, name)
                self._drop(found.end())
                self._insert(table)

    def _more(self) -> bool:
        """Read on, if there is more."""
        piece = self._stream.read(_TABLES_PIECE)
        self._progress("reading " + self._source.short, self._raw.tell(), self._source.nbytes)
        self._buffer += piece
        return bool(piece)

    def _drop(self, count: int) -> None:
        """Be done with the first bytes."""
        self.line += self._buffer.count(b"\n", 0, count)
        self._buffer = self._buffer[count:]

    def _create(self, name: str, table: Table | None, start: int) -> None:
        """Learn the columns of a table."""
        while (end := self._buffer.find(b";", start)) < 0:
            if len(self._buffer) > _LONGEST or not self._more():
                raise InputError(
                    f"{self._source.label}:{self.line:,}: what creates the table {name} does not "
                    "end: the file is cut"
                )
        self._columns[name] = [c.decode() for c in _COLUMN.findall(self._buffer[start:end])]
        if table is not None:
            table.begin(self._columns[name], self._source.label, name)
        self._drop(end)

    def _insert(self, table: Table) -> None:
        """The rows of one statement."""
        k, take = self._k, table.take
        while True:
            text = np.frombuffer(self._buffer, np.uint8)
            if self._room.size < text.size + take.size:
                self._room = np.empty(text.size + take.size + _TABLES_PIECE, np.uint8)
            end = int(k.rows(text, take, self._room, self._wrong, self._tally))
            _, written, state, bad = self._tally.tolist()
            disk.write(table.out, self._room[:written].data)
            table.rows += int(self._tally[k.T_ROWS])
            for low, high, reason in self._wrong[:bad].tolist():
                self._refuse(k.REASONS[reason], low, high)
            more = bad - min(bad, EXAMPLES)
            if more:
                self.bad["rows of names that are none"] += more
            self._drop(end)
            if state == k.ENDED:
                return
            if state == k.BROKEN or len(self._buffer) > _LONGEST:
                self._refuse("what is no row of as many columns as the table has", 0, 200)
                return
            if not self._more():
                self._refuse("the file ends within a row: it is cut", 0, 200)
                return

    def _refuse(self, what: str, low: int, high: int) -> None:
        content = self._buffer[low : min(high, low + 200)].decode("utf-8", "backslashreplace")
        line = self.line + self._buffer.count(b"\n", 0, low)
        if not self._skip:
            raise MalformedRow(self._source.label, line, what, content)
        self.bad[what] += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(f"{self._source.label}:{line}: {what}: {content!r}")


# -- reader ------------------------------------------------------------------------------


_COLUMNS = {
    "page": {"page_id": INTEGER, "page_namespace": INTEGER, "page_title": TEXT},
    "pagelinks": {
        "pl_from": INTEGER,
        "pl_namespace": INTEGER,
        "pl_title": TEXT,
        "pl_target_id": INTEGER,
    },
    "linktarget": {"lt_id": INTEGER, "lt_namespace": INTEGER, "lt_title": TEXT},
    "redirect": {
        "rd_from": INTEGER,
        "rd_namespace": INTEGER,
        "rd_title": TEXT,
        "rd_interwiki": TEXT,
    },
}
_TALKED = ("User", "Project", "File", "MediaWiki", "Template", "Help", "Category")
_NAMESPACES = {1: "Talk"} | {
    2 * i + talk: name + "_talk" * talk for i, name in enumerate(_TALKED, 1) for talk in (0, 1)
}
"""What namespaces are called in every wiki; others by their number."""
_ENDINGS = (".sql.gz", ".sql", ".sql.bz2", ".sql.xz", ".sql.zst")
_TABLE = re.compile(rf"(?<![a-z])({'|'.join(_COLUMNS)})(?![a-z])")
_WORDS = {
    "red": "broken (red)",
    "lost": "to redirects that lead nowhere",
    "far": "to other namespaces",
}


@dataclass
class WikiFound(Found):
    """What was found in a dump. ``others`` are links that lead to no node, by where they lead."""

    files: int = 1
    pages: int = 0
    redirects: int = 0
    namespaces: tuple[int, ...] = (0,)
    others: dict[str, int] = field(default_factory=dict)

    def describe(self) -> str:
        """Return one line for people."""
        more = f" and {self.files - 1:,} more" if self.files > 1 else ""
        numbers = ", ".join(map(str, self.namespaces))
        s = "s" * (len(self.namespaces) > 1)
        text = f"{self.file}{more}: {self.pages:,} pages of a wiki, namespace{s} {numbers}"
        text += f", {self.redirects:,} redirects; {self.rows:,} links"
        others = [f"{count:,} {what}" for what, count in self.others.items()]
        return text + (f"; {', '.join(others)}" if others else "")


READER = FormatReader(
    "a dump of MediaWiki",
    "a dump of MediaWiki: page, pagelinks, linktarget and redirect (.sql.gz), of which one is "
    "to be named, and the others lie beside it; redirects are resolved",
    lambda job: _Wiki(job, list(job.inputs)).run(),
    together=True,
    columns=False,
)


class _Wiki:
    """One dump."""

    def __init__(self, job: Job, sources: list[Source]) -> None:
        self._job, self._sources = job, sources
        self._chosen = job.options.namespaces
        self._tables: dict[str, Table] = {}
        self._found = WikiFound(job.source.label, integers=False, namespaces=self._chosen)

    def run(self) -> Read:
        """Read the files, and join the tables."""
        self._read()
        self._pages()
        nodes, found = "SELECT name AS a FROM reading.nodes", self._found
        if self._job.wanted == 1:
            found.rows = found.pages
            return Read(nodes, found)
        self._ends()
        self._links()
        return Read("SELECT a, b FROM reading.links", found, nodes)

    # -- files --------------------------------------------------------------------------

    def _read(self) -> None:
        """Write the tables that are needed to clean files."""
        with ExitStack() as stack:
            for name, kinds in _COLUMNS.items():
                out = stack.enter_context(new_clean_file(self._job, name + ".tsv"))
                self._tables[name] = Table(kinds, out)
            waiting = list(self._sources)
            self._found.files = 0
            while waiting:
                for source in waiting:
                    skip = self._job.options.bad_rows != "stop"
                    wrong, some = read_tables(source, self._tables, skip, self._job.progress)
                    for what, count in wrong.items():
                        self._found.leave_out(what, count, ())
                    self._found.examples = (self._found.examples + some)[:EXAMPLES]
                    self._found.files += 1
                waiting = [source for source in map(self._extra, self._missing()) if source]

    def _missing(self) -> list[str]:
        """Tables that are needed, and were not met yet."""
        if self._job.wanted == 1:
            needed = ["page", "redirect"]
        else:
            needed = ["page", "pagelinks", "redirect"]
            links = self._tables["pagelinks"]
            if links.read and "pl_target_id" in links.found:
                needed.append("linktarget")
        return [name for name in needed if not self._tables[name].read]

    def _extra(self, table: str) -> Source | None:
        """The file of a table beside those that are named; None if it can be done without, else
        raises :class:`InputError`.
        """
        tried: list[Path] = []
        for path in (source.path for source in self._sources if source.path is not None):
            matches = list(_TABLE.finditer(path.name))
            if matches:
                stem = path.name[: matches[-1].start()] + table
                tried += [path.with_name(stem + ending) for ending in _ENDINGS]
        found = next((path for path in tried if path.is_file()), None)
        # What is named, and does not hold it, is not read again.
        if found is None or found in [source.path for source in self._sources]:
            if table == "linktarget" and "pl_title" in self._tables["pagelinks"].found:
                return None
            where = f", and {tried[0].name} is not beside it" if tried else ""
            raise InputError(
                f"{self._found.file}: the table {table} is needed{where}. Name its file, too: "
                "cocite ingest PAGE PAGELINKS LINKTARGET REDIRECT -o DIR"
            )
        source = Source(found)
        self._sources.append(source)
        return source

    def _relation(self, table: str, **names: str) -> str:
        """The rows of a table, with columns called anew; of those that it has."""
        found = self._tables[table].found
        lacking = [column for column in _COLUMNS[table] if column not in found]
        if table == "pagelinks" and ("pl_target_id" in found or "pl_title" in found):
            lacking = [column for column in lacking if column == "pl_from"]
        if lacking:
            raise InputError(
                f"{self._found.file}: the table {table} has no column {lacking[0]}: it has "
                f"{', '.join(self._tables[table].every)}"
            )
        kinds = {TEXT: "VARCHAR", INTEGER: "BIGINT"}
        typed = {names[c]: kinds[_COLUMNS[table][c]] for c in found}
        return f"({relation_of(self._job, typed, table + '.tsv')})"

    # -- pages --------------------------------------------------------------------------

    def _pages(self) -> None:
        """``page``; ``goes``: the redirects that lead to a page, and to which; ``nodes``."""
        run = self._job.run
        page = self._relation("page", page_id="id", page_namespace="ns", page_title="title")
        run(f"CREATE TABLE reading.page AS SELECT * FROM {page}")
        twice = run(
            "SELECT id FROM reading.page GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT 1"
        )
        if twice:
            raise InputError(
                f"{self._found.file}: page {twice[0][0]} is there more than once: name the dump of "
                "one wiki, of one day"
            )
        redirect = self._relation(
            "redirect", rd_from="id", rd_namespace="ns", rd_title="title", rd_interwiki="wiki"
        )
        run(f"CREATE TABLE reading.redirect AS SELECT DISTINCT ON (id) * FROM {redirect}")
        run(
            "CREATE TABLE reading.goes AS SELECT r.id AS a, p.id AS b FROM reading.redirect r JOIN "
            "reading.page p ON p.ns = r.ns AND p.title = r.title WHERE r.wiki = ''"
        )
        follow(self._job.database, "reading.goes")
        chosen = ", ".join(map(str, self._chosen))
        names = " ".join(f"WHEN {n} THEN '{_NAMESPACES.get(n, n)}:'" for n in self._chosen if n)
        front = f"CASE ns {names} ELSE '' END || " if names else ""
        run(
            f"CREATE TABLE reading.nodes AS SELECT id, {front}title AS name FROM reading.page p "
            f"WHERE ns IN ({chosen}) AND title != '' AND NOT EXISTS "
            "(FROM reading.redirect r WHERE r.id = p.id)"
        )
        self._found.pages = self._job.count("SELECT count(*) FROM reading.nodes")
        self._found.redirects = self._job.count(
            "SELECT count(*) FROM reading.redirect JOIN reading.page p USING (id) "
            f"WHERE p.ns IN ({chosen})"
        )
        if self._job.titles.path is None:
            return
        for (name,) in self._job.streamed("reading.nodes", "name"):
            if "_" in name:
                self._job.titles.add(name, name.replace("_", " "))

    # -- links --------------------------------------------------------------------------

    def _ends(self) -> None:
        """``raw``: links by ids of pages and of ``ends``; ``ends``: what is called so."""
        names = {"pl_from": "id", "pl_namespace": "ns", "pl_title": "title", "pl_target_id": "to_"}
        found = self._tables["pagelinks"].found
        links = self._relation("pagelinks", **names)
        if "pl_target_id" in found and self._tables["linktarget"].read:
            target = self._relation("linktarget", lt_id="to_", lt_namespace="ns", lt_title="title")
            self._job.run(f"CREATE TABLE reading.target AS SELECT * FROM {target}")
            self._job.run(f"CREATE TABLE reading.raw AS SELECT id, to_ FROM {links}")
        else:
            self._job.run(f"CREATE TABLE reading.titled AS SELECT id, ns, title FROM {links}")
            self._job.run(
                "CREATE TABLE reading.target AS SELECT row_number() OVER () AS to_, ns, title FROM "
                "(SELECT DISTINCT ns, title FROM reading.titled)"
            )
            self._job.run(
                "CREATE TABLE reading.raw AS SELECT l.id, t.to_ FROM reading.titled l JOIN "
                "reading.target t ON t.ns = l.ns AND t.title = l.title"
            )
            self._job.run("DROP TABLE reading.titled")
        self._job.run(
            "CREATE TABLE reading.ends AS SELECT t.to_, any_value(n.name) AS name, "
            "CASE WHEN any_value(n.id) IS NOT NULL THEN '' WHEN any_value(p.id) IS NULL THEN 'red' "
            "WHEN any_value(r.id) IS NOT NULL AND any_value(g.b) IS NULL THEN 'lost' "
            "ELSE 'far' END AS what FROM reading.target t "
            "LEFT JOIN reading.page p ON p.ns = t.ns AND p.title = t.title "
            "LEFT JOIN reading.redirect r ON r.id = p.id LEFT JOIN reading.goes g ON g.a = p.id "
            "LEFT JOIN reading.nodes n ON n.id = coalesce(g.b, p.id) GROUP BY t.to_"
        )

    def _links(self) -> None:
        """The links between nodes; all others are counted."""
        every = self._job.count("SELECT count(*) FROM reading.raw")
        joined = (
            "FROM reading.raw l JOIN reading.nodes s ON s.id = l.id "
            "LEFT JOIN reading.ends e ON e.to_ = l.to_"
        )
        what = "coalesce(e.what, 'red')"
        self._job.run(
            f"CREATE TABLE reading.links AS SELECT s.name AS a, e.name AS b {joined} "
            f"WHERE {what} = ''"
        )
        counts = dict(self._job.run(f"SELECT {what}, count(*) {joined} GROUP BY ALL"))
        self._found.rows = counts.pop("", 0)
        others = {_WORDS[name]: count for name, count in counts.items()}
        rest = every - self._found.rows - sum(counts.values())
        if rest:
            others["from redirects and other namespaces"] = rest
        self._found.others = dict(sorted(others.items()))
        if self._job.report is not no_report:
            target = "LEFT JOIN reading.target t ON t.to_ = l.to_"
            for row in self._red(f"{joined} {target} WHERE {what} = 'red'"):
                self._job.report(*row)

    def _red(self, joined: str) -> Iterator[tuple[str, str, str, str]]:
        self._job.run(
            "CREATE TABLE reading.red AS SELECT s.name AS a, coalesce(t.title, '') AS title, "
            f"coalesce(t.ns, 0) AS ns {joined} ORDER BY ALL"
        )
        for page, title, number in self._job.streamed("reading.red", "a, title, ns"):
            front = f"{_NAMESPACES.get(number, number)}:" if number else ""
            yield page, "broken", front + title, ""
