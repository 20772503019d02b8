"""MediaWiki dumps (mysqldump): tables ``page``, ``pagelinks``, ``linktarget``, ``redirect``.

Nodes are the pages of the selected namespaces, except redirects: a link to a redirect leads to its
final target. A page is named by its title with underscores, preceded by its namespace
(``Category:Birds``) unless that is the main namespace. Links to missing pages, and to redirects
that are broken, circular or lead to another wiki, are counted.

Other files of a dump are found by their names (``enwiki-page.sql.gz``) next to the input files.
Tables may have a prefix (``wiki_page``). Statements begin at the start of a line. Parsing takes 3
ns per decompressed byte (``kernels/sql_rows.py``) and memory for two chunks of 4 MiB; DuckDB joins
the tables. https://www.mediawiki.org/wiki/Manual:Database_layout
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cocite.errors import InputError, MalformedRow
from cocite.io.readers.contract import (
    EXAMPLES,
    FormatReader,
    Found,
    Job,
    PagesFound,
    Progress,
    Read,
    follow,
    no_report,
)
from cocite.io.readers.sources import Source, unpack_errors
from cocite.io.readers.text import new_clean_file, relation_of
from cocite.kernels.sql_rows import INTEGER, TEXT
from cocite.storage import disk

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
"""Columns to read from each table, if they exist."""


_PIECE = 1 << 22
_LONGEST = 1 << 24
"""Maximum length in bytes of a row, or of a CREATE TABLE statement."""
_HEAD = 1 << 16
_STATEMENT = re.compile(
    rb"\n[ \t\r]*(?:(?P<create>CREATE)\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?|(?:INSERT|REPLACE)\s+"
    rb"(?:IGNORE\s+)?INTO\s+)(?:[`\"]?\w+[`\"]?\.)?[`\"]?(?P<table>\w+)[`\"]?\s*"
    rb"(?(create)\(|(?P<columns>\([^()']*\))?\s*VALUES\b)",
    re.I,
)
_COLUMN = re.compile(rb"^\s*[`\"](\w+)[`\"]\s+\w", re.M)
_NAME = re.compile(rb"\w+")


class Dump:
    """Writes the rows of a dump's tables to ``outs``, a mapping of table names to files.

    ``columns`` and ``rows`` contain each table's columns and number of rows. Bad rows are counted
    in ``found``, or raise an error with ``stop``.
    """

    def __init__(
        self, outs: Mapping[str, BinaryIO], found: Found, progress: Progress, *, stop: bool
    ) -> None:
        from cocite.kernels import sql_rows

        self._k, self._outs, self._found = sql_rows, outs, found
        self._progress, self._stop = progress, stop
        self._room = np.empty(0, np.uint8)
        self._tally = np.zeros(sql_rows.TALLY, np.int64)
        self._wrong = np.zeros((EXAMPLES, sql_rows.BAD_FIELDS), np.int64)
        self.columns: dict[str, list[str]] = {}
        self.rows: Counter[str] = Counter()

    def taken(self, table: str) -> list[str]:
        """Return the columns to write from a table."""
        return [column for column in self.columns[table] if column in _COLUMNS[table]]

    def read(self, source: Source) -> None:
        """Read a file. Raises :class:`MalformedRow` and :class:`InputError`."""
        self._source, self._line, self._buffer = source, 0, b"\n"
        created: dict[str, list[str]] = {}
        self._stream, self._raw = source.open()
        try:
            with self._raw, self._stream:
                while statement := self._statement():
                    self._run(statement, created)
        except unpack_errors() as error:
            raise InputError(
                f"{source.label} cannot be read beyond line {self._line:,}: it is truncated or "
                f"damaged ({error})"
            ) from error

    def _statement(self) -> re.Match[bytes] | None:
        """Return the next CREATE TABLE, INSERT or REPLACE statement, or None."""
        while not (found := _STATEMENT.search(self._buffer)):
            # Keep the last line: a statement may begin there.
            keep = self._buffer.rfind(b"\n")
            self._drop(len(self._buffer) if len(self._buffer) - keep > _HEAD else max(keep, 0))
            if not self._more():
                return None
        return found

    def _run(self, found: re.Match[bytes], created: dict[str, list[str]]) -> None:
        """Process a statement; ``created`` maps this file's tables to their columns."""
        name = found["table"].decode()
        table = name if name in self._outs else name.rpartition("_")[2]
        wanted = table in self._outs
        if found["create"]:
            start = found.end()
            while (end := self._buffer.find(b";", start)) < 0:
                if len(self._buffer) > _LONGEST or not self._more():
                    raise InputError(
                        f"{self._source.label}:{self._line:,}: the statement that creates the "
                        f"table {name} does not end: the file is truncated"
                    )
            created[name] = [c.decode() for c in _COLUMN.findall(self._buffer[start:end])]
            if wanted:
                self._begin(table, created[name], name)
            self._drop(end)
            return
        if wanted:
            columns = created.get(name)
            if found["columns"]:
                columns = [part.decode() for part in _NAME.findall(found["columns"])]
            if not columns:
                raise InputError(
                    f"{self._source.label}: there is no CREATE TABLE with the columns of {name}. "
                    "Dump the table with its structure"
                )
            self._begin(table, columns, name)
        self._drop(found.end())
        if wanted:
            self._insert(table)

    def _begin(self, table: str, columns: list[str], name: str) -> None:
        """Set a table's columns, which must be the same in all files."""
        before = self.taken(table) if self.columns.get(table) else []
        self.columns[table] = columns
        if before and self.taken(table) != before:
            raise InputError(
                f"{self._source.label}: the table {name} has the columns "
                f"{', '.join(self.taken(table))}; in other files it has {', '.join(before)}. Use "
                "files from a single dump (same wiki, same date)"
            )

    def _more(self) -> bool:
        """Read another chunk; return whether there was one."""
        piece = self._stream.read(_PIECE)
        self._progress("reading " + self._source.short, self._raw.tell(), self._source.nbytes)
        self._buffer += piece
        return bool(piece)

    def _drop(self, count: int) -> None:
        self._line += self._buffer.count(b"\n", 0, count)
        self._buffer = self._buffer[count:]

    def _insert(self, table: str) -> None:
        k = self._k
        take = np.array([_COLUMNS[table].get(each, 0) for each in self.columns[table]], np.uint8)
        while True:
            text = np.frombuffer(self._buffer, np.uint8)
            if self._room.size < text.size + take.size:
                self._room = np.empty(text.size + take.size + _PIECE, np.uint8)
            end = int(k.rows(text, take, self._room, self._wrong, self._tally))
            _, written, state, bad = self._tally.tolist()
            disk.write(self._outs[table], self._room[:written].data)
            self.rows[table] += int(self._tally[k.T_ROWS])
            for low, high, reason in self._wrong[:bad].tolist():
                self._refuse(k.REASONS[reason], low, high)
            if bad > EXAMPLES:
                self._found.leave_out("rows with invalid names", bad - EXAMPLES, ())
            self._drop(end)
            if state == k.ENDED:
                return
            if state == k.BROKEN or len(self._buffer) > _LONGEST:
                self._refuse("a row that does not match the columns of its table", 0, 200)
                return
            if not self._more():
                self._refuse("the file ends within a row: it is truncated", 0, 200)
                return

    def _refuse(self, what: str, low: int, high: int) -> None:
        content = self._buffer[low : min(high, low + 200)].decode("utf-8", "backslashreplace")
        line = self._line + self._buffer.count(b"\n", 0, low)
        if self._stop:
            raise MalformedRow(self._source.label, line, what, content)
        self._found.leave_out(what, 1, [f"{self._source.label}:{line}: {what}: {content!r}"])


_TALKED = ("User", "Project", "File", "MediaWiki", "Template", "Help", "Category")
_NAMESPACES = {1: "Talk"} | {
    2 * i + talk: name + "_talk" * talk for i, name in enumerate(_TALKED, 1) for talk in (0, 1)
}
"""Names of the standard namespaces; other namespaces are named by their numbers."""
_ENDINGS = (".sql.gz", ".sql", ".sql.bz2", ".sql.xz", ".sql.zst")
_TABLE = re.compile(rf"(?<![a-z])({'|'.join(_COLUMNS)})(?![a-z])")
_WORDS = {
    "red": "broken (red)",
    "lost": "to redirects that lead nowhere",
    "far": "to other namespaces",
}


READER = FormatReader(
    "a MediaWiki dump",
    "a MediaWiki dump: pass one of page, pagelinks, linktarget and redirect (.sql.gz), with the "
    "others next to it; redirects are resolved",
    lambda job: _Wiki(job, list(job.inputs)).run(),
    together=True,
    columns=False,
)


class _Wiki:
    def __init__(self, job: Job, sources: list[Source]) -> None:
        self._job, self._sources = job, sources
        self._chosen = job.options.namespaces
        numbers = ", ".join(map(str, self._chosen))
        what = f"pages of a wiki, namespace{'s' * (len(self._chosen) > 1)} {numbers}"
        self._found = PagesFound(job.source.label, integers=False, format=what)

    def run(self) -> Read:
        self._read()
        self._pages()
        nodes, found = "SELECT name AS a FROM reading.nodes", self._found
        if self._job.wanted == 2:
            self._ends()
            self._links()
        return Read("SELECT a, b FROM reading.links", found, nodes)

    # -- files --------------------------------------------------------------------------

    def _read(self) -> None:
        """Write the required tables to clean files."""
        with ExitStack() as stack:
            files = {name: new_clean_file(self._job, name + ".tsv") for name in _COLUMNS}
            outs = {name: stack.enter_context(file) for name, file in files.items()}
            stop = self._job.options.bad_rows == "stop"
            self._dump = Dump(outs, self._found, self._job.progress, stop=stop)
            waiting = list(self._sources)
            self._found.files = 0
            while waiting:
                for source in waiting:
                    self._dump.read(source)
                    self._found.files += 1
                waiting = [source for source in map(self._extra, self._missing()) if source]

    def _missing(self) -> list[str]:
        needed = ["page", "redirect"]
        if self._job.wanted == 2:
            needed.insert(1, "pagelinks")
            if self._has("pagelinks", "pl_target_id"):
                needed.append("linktarget")
        return [name for name in needed if name not in self._dump.columns]

    def _has(self, table: str, column: str) -> bool:
        return column in self._dump.columns.get(table, ())

    def _extra(self, table: str) -> Source | None:
        """Return a table's file; None for a missing optional table. Raises :class:`InputError`."""
        tried: list[Path] = []
        for path in (source.path for source in self._sources if source.path is not None):
            matches = list(_TABLE.finditer(path.name))
            if matches:
                stem = path.name[: matches[-1].start()] + table
                tried += [path.with_name(stem + ending) for ending in _ENDINGS]
        found = next((path for path in tried if path.is_file()), None)
        # An input file has already been read, and lacks the table.
        if found is None or found in [source.path for source in self._sources]:
            if table == "linktarget" and self._has("pagelinks", "pl_title"):
                return None
            where = f", but {tried[0].name} is not next to it" if tried else ""
            raise InputError(
                f"{self._found.file}: the table {table} is needed{where}. Pass all files: cocite "
                "ingest PAGE PAGELINKS LINKTARGET REDIRECT -o DIR"
            )
        source = Source(found)
        self._sources.append(source)
        return source

    def _relation(self, table: str, **names: str) -> str:
        """Return a table's relation, with its columns renamed by ``names``."""
        found = self._dump.taken(table)
        lacking = [column for column in _COLUMNS[table] if column not in found]
        if table == "pagelinks" and ("pl_target_id" in found or "pl_title" in found):
            lacking = [column for column in lacking if column == "pl_from"]
        if lacking:
            raise InputError(
                f"{self._found.file}: the table {table} has no column {lacking[0]}; it has "
                f"{', '.join(self._dump.columns[table])}"
            )
        kinds = {TEXT: "VARCHAR", INTEGER: "BIGINT"}
        typed = {names[c]: kinds[_COLUMNS[table][c]] for c in found}
        return f"({relation_of(self._job, typed, table + '.tsv')})"

    # -- pages --------------------------------------------------------------------------

    def _pages(self) -> None:
        """Create the tables ``page``, ``redirect``, ``goes`` (redirect, target), ``nodes``."""
        run = self._job.run
        page = self._relation("page", page_id="id", page_namespace="ns", page_title="title")
        run(f"CREATE TABLE reading.page AS SELECT * FROM {page}")
        twice = run(
            "SELECT id FROM reading.page GROUP BY id HAVING count(*) > 1 ORDER BY id LIMIT 1"
        )
        if twice:
            raise InputError(
                f"{self._found.file}: page {twice[0][0]} occurs more than once. Use files from a "
                "single dump (same wiki, same date)"
            )
        redirect = self._relation(
            "redirect", rd_from="id", rd_namespace="ns", rd_title="title", rd_interwiki="wiki"
        )
        run(f"CREATE TABLE reading.redirect AS SELECT DISTINCT ON (id) * FROM {redirect}")
        run(
            "CREATE TABLE reading.goes AS SELECT r.id AS a, p.id AS b FROM reading.redirect r JOIN "
            "reading.page p ON p.ns = r.ns AND p.title = r.title WHERE r.wiki = ''"
        )
        follow(self._job, "reading.goes")
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
        if self._job.titles.store is None:
            return
        for (name,) in self._job.streamed("reading.nodes", "name"):
            if "_" in name:
                self._job.titles.add(name, name.replace("_", " "))

    # -- links --------------------------------------------------------------------------

    def _ends(self) -> None:
        """Create the tables ``raw`` (page, end) and ``ends`` (id, name, fault)."""
        names = {"pl_from": "id", "pl_namespace": "ns", "pl_title": "title", "pl_target_id": "to_"}
        run, links = self._job.run, self._relation("pagelinks", **names)
        if self._has("pagelinks", "pl_target_id") and "linktarget" in self._dump.columns:
            target = self._relation("linktarget", lt_id="to_", lt_namespace="ns", lt_title="title")
            run(f"CREATE TABLE reading.target AS SELECT * FROM {target}")
            run(f"CREATE TABLE reading.raw AS SELECT id, to_ FROM {links}")
        else:
            run(f"CREATE TABLE reading.titled AS SELECT id, ns, title FROM {links}")
            run(
                "CREATE TABLE reading.target AS SELECT row_number() OVER () AS to_, ns, title FROM "
                "(SELECT DISTINCT ns, title FROM reading.titled)"
            )
            run(
                "CREATE TABLE reading.raw AS SELECT l.id, t.to_ FROM reading.titled l JOIN "
                "reading.target t ON t.ns = l.ns AND t.title = l.title"
            )
            run("DROP TABLE reading.titled")
        run(
            "CREATE TABLE reading.ends AS SELECT t.to_, any_value(n.name) AS name, "
            "CASE WHEN any_value(n.id) IS NOT NULL THEN '' WHEN any_value(p.id) IS NULL THEN 'red' "
            "WHEN any_value(r.id) IS NOT NULL AND any_value(g.b) IS NULL THEN 'lost' "
            "ELSE 'far' END AS what FROM reading.target t "
            "LEFT JOIN reading.page p ON p.ns = t.ns AND p.title = t.title "
            "LEFT JOIN reading.redirect r ON r.id = p.id LEFT JOIN reading.goes g ON g.a = p.id "
            "LEFT JOIN reading.nodes n ON n.id = coalesce(g.b, p.id) GROUP BY t.to_"
        )

    def _links(self) -> None:
        """Create the table ``links``, those between nodes; count all others."""
        run, found = self._job.run, self._found
        every = self._job.count("SELECT count(*) FROM reading.raw")
        joined = (
            "FROM reading.raw l JOIN reading.nodes s ON s.id = l.id "
            "LEFT JOIN reading.ends e ON e.to_ = l.to_"
        )
        what = "coalesce(e.what, 'red')"
        run(
            f"CREATE TABLE reading.links AS SELECT s.name AS a, e.name AS b {joined} "
            f"WHERE {what} = ''"
        )
        counts = dict(run(f"SELECT {what}, count(*) {joined} GROUP BY ALL"))
        found.rows = counts.pop("", 0)
        found.links = {"link": found.rows}
        others = {_WORDS[name]: count for name, count in counts.items()}
        rest = every - found.rows - sum(counts.values())
        if rest:
            others["from redirects and other namespaces"] = rest
        found.others = dict(sorted(others.items()))
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
