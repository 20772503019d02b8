"""The interface of readers: options, jobs, reports, URL normalization, and titles.

A reader returns *relations*: DuckDB queries with the columns ``a`` and ``b``, source and
destination (only ``a`` for node names), and ``w``, the weight as DOUBLE, if weights are requested.
Formats that list their nodes have a second relation for the nodes. Temporary tables go into the
schema ``reading``.

Names are nonempty UTF-8 without control characters, of at most 65,535 bytes. They are UBIGINT if
all are canonical integers below 2**64, else text. Invalid rows raise an error, or are counted by
kind. Readers without a faster method pass rows to ``clean_rows`` (``io/readers/rows.py``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from cocite.errors import SKIP_ADVICE, InputError, UsageError
from cocite.extras import need
from cocite.graph.sides import checked_sides
from cocite.graph.spelling import REFUSED, trimmed
from cocite.io.readers.sources import Source
from cocite.options.ingest import IngestOptions

if TYPE_CHECKING:
    import duckdb


# -- names of pages ----------------------------------------------------------------------
#
# --normalize-urls gives every page one name, at 4 µs per name. It changes only http and https URLs,
# in ways that make no difference to a server:
#
#    parsed as by a browser (WHATWG, ada-url)    HTTP://Example.COM:80/a/../b -> http://example.com/b
#    fragment removed                            http://a.org/b#c     -> http://a.org/b
#    letters, digits and -._~ unescaped,         http://a.org/%7eb%c3 -> http://a.org/~b%C3
#    other escapes in upper case
#    parameters of TRACKING removed              http://a.org/?utm_source=x&p=1 -> http://a.org/?p=1
#
# Everything else may matter to a server, and is kept: http or https, www., a trailing slash,
# index.html, the case of the path, the order of other parameters, a user name.


IS_WEB = r"^\s*[hH][tT][tT][pP][sS]?:"
"""Pattern of names to normalize, for both DuckDB and Python."""

TRACKING = (
    *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "utm_id"),
    *("gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "twclid"),
    *("ttclid", "igshid", "mc_cid", "mc_eid"),
)
"""Query parameters with which Google, Meta, Microsoft, Yandex, Mailchimp, ... track visitors."""

_WEB = re.compile(IS_WEB)
_TRACKED = re.compile(rf"(?:^|&)(?:{'|'.join(TRACKING)})(?:=[^&]*)?(?=&|$)")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def normalizer() -> Callable[[str], str]:
    """Return a function that normalizes a URL; raises :class:`~cocite.extras.MissingLibrary`."""
    ada = need("ada_url", "--normalize-urls", "html")

    def normal(name: str) -> str:
        if not _WEB.match(name):
            return name
        try:
            url: str = ada.normalize_url(name)
        except ValueError:
            return name
        url = url.partition("#")[0]
        if "%" in url:
            url = _ESCAPE.sub(_escape, url)
        page, mark, query = url.partition("?")
        if query and _TRACKED.search(query):
            query = _TRACKED.sub("", query).removeprefix("&")
            mark = "?" if query else ""
        return page + mark + query

    return normal


def _escape(match: re.Match[str]) -> str:
    letter = chr(int(match[1], 16))
    return letter if letter in _PLAIN else match[0].upper()


# -- options -----------------------------------------------------------------------------


DELIMITERS = {"tab": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}

Progress = Callable[[str, int, int], None]
"""Called with (stage, done, total); total is 0 if unknown."""


def no_progress(stage: str, done: int, total: int) -> None:
    """No-op callback."""


@dataclass(frozen=True)
class ReadOptions(IngestOptions):
    """Readers' options: :class:`~cocite.options.ingest.IngestOptions` after all checks.

    ``columns`` are the source and target columns, as names or numbers from 1; ``sides`` are the
    names of the two sides of a bipartite table.
    """

    @classmethod
    def checked(cls, chosen: IngestOptions) -> Self:
        """Return read options; raise :class:`UsageError` for invalid or conflicting ones."""
        columns = split(chosen.columns)
        if len(columns) not in (0, 2):
            raise UsageError(
                f"columns is {','.join(columns)}; it must be two columns, source and target, "
                "such as 1,2"
            )
        weight = "" if chosen.weight_column is None else str(chosen.weight_column).strip()
        if chosen.weight_column is not None and not weight:
            raise UsageError("weight_column is empty; it must be a column name, or a number from 1")
        if weight and chosen.count_duplicates:
            raise UsageError(
                "--count-duplicates (count_duplicates=True) and --weight-column "
                "(weight_column=...) both determine the weights. Omit one of the two"
            )
        named = (*columns, weight) if weight else columns
        if chosen.header == "no" and not all(map(str.isdecimal, named)):
            raise UsageError(
                f"columns {','.join(named)} are column names, but header is no: use numbers, from 1"
            )
        if len(set(named)) != len(named):
            raise UsageError(f"columns {','.join(named)} contains the same column twice")
        if len(chosen.comment) > 1 or not chosen.comment.isascii():
            raise UsageError(
                f"comment is {chosen.comment!r}; it must be one ASCII character, or empty"
            )
        namespaces = split(chosen.namespaces)
        if not namespaces or not all(text.isdecimal() and len(text) < 10 for text in namespaces):
            shown = ",".join(namespaces)
            raise UsageError(
                f"namespaces is {shown!r}; it must be whole numbers, 0 or more, such as 0,14"
            )
        tags = split(chosen.link_tags)
        wrong = [tag for tag in tags if tag not in ("a", "area", "frame")]
        if wrong or not tags:
            raise UsageError(
                f"link_tags is {','.join(wrong)!r}; it must be one or more of a, area, frame"
            )
        site = chosen.site or ""
        if site and not site.startswith(("http://", "https://")):
            raise UsageError(
                f"site is {site!r}; it must be the URL of the folder, such as "
                "https://www.example.org/docs/"
            )
        normal: dict[str, Any] = {
            "columns": columns,
            "weight_column": weight or None,
            "input_format": chosen.input_format.lower(),
            "predicate": (chosen.predicate or "").strip("<>"),
            "namespaces": tuple(dict.fromkeys(map(int, namespaces))),
            "sides": checked_sides(chosen.bipartite, chosen.sides),
            "link_tags": tags,
        }
        return cls(**(vars(chosen) | normal))

    @property
    def weight(self) -> str:
        """Return the weight column, as a name or a number, or ""."""
        return str(self.weight_column or "")

    @property
    def called(self) -> Callable[[str], str]:
        """Return a function that maps a name in the input to a node name."""
        return normalizer() if self.normalize_urls else str

    @property
    def columns_named(self) -> tuple[str, ...]:
        """Return all columns selected by name or number."""
        return (*self.columns, self.weight) if self.weight else self.columns

    def for_nodes(self) -> ReadOptions:
        """Return the options for a file of node names, which may lack a header."""
        header = "no" if self.header == "no" else "auto"
        return ReadOptions(
            delimiter=self.delimiter, header=header, comment=self.comment, bad_rows=self.bad_rows
        )


def split(columns: str | Iterable[str | int]) -> tuple[str, ...]:
    """Return columns, from a list or from comma-separated text."""
    each = columns.split(",") if isinstance(columns, str) else map(str, columns)
    return tuple(column.strip() for column in each)


def bad_row_advice(bad: int, rows: int) -> str:
    """Return advice on the first bad row: to skip such rows if few, else to check the options."""
    if bad * 2 <= rows and bad <= 1 + rows // 10:
        return SKIP_ADVICE
    return (
        f"{bad:,} of the first {rows:,} rows are bad: this may not be an edge list, or may need "
        "other options. See --delimiter, --columns and --header in cocite ingest --help"
        if bad > 1
        else "An edge list has one link per row: the source, then the target. See cocite ingest "
        "--help"
    )


# -- progress ----------------------------------------------------------------------------


_FEW = 10
"""Maximum number of files to report separately."""


def each_with_progress(
    progress: Progress, sources: Sequence[Source]
) -> Iterator[tuple[Source, Progress]]:
    """Yield sources with progress callbacks. Up to _FEW sources are separate stages; more than
    that share one stage.
    """
    if len(sources) <= _FEW:
        yield from ((source, progress) for source in sources)
        return
    stage, total = f"reading {len(sources):,} files", sum(source.nbytes for source in sources)

    def shown(before: int, _: str, done: int, of: int) -> None:
        progress(stage, min(before + done, total), total)

    before = 0
    for source in sources:
        yield source, partial(shown, before)
        before += source.nbytes
        shown(before, stage, 0, 0)


# -- titles ------------------------------------------------------------------------------


_CONTROL = re.compile(f"[{REFUSED}\u2028\u2029]+")
_MOST = 65_535
_LATE = 1 << 50
_HELD = 1 << 14
"""Titles to collect before storing them."""


class TitleSink:
    """Collects titles, and passes batches of (position, name, title) to ``store`` if given.

    Positions count from ``first``; a node's title is the one with the lowest position. ``called``
    maps a name in the input to a node name. Titles are trimmed, and each run of blanks, line
    ends, control characters and direction marks (``graph/spelling.py``) becomes one blank. Empty
    titles are ignored.
    """

    def __init__(
        self,
        store: Callable[[list[tuple[int, str, str]]], object] | None = None,
        first: int = 0,
        called: Callable[[str], str] = str,
    ) -> None:
        self.store, self.count, self.empty = store, 0, 0
        self._called, self._first = called, first
        self._held: list[tuple[int, str, str]] = []

    def add(self, name: str, title: str, late: bool = False) -> None:
        """Add a title, after others if ``late``; raises :class:`InputError` if it is too long."""
        if self.store is None:
            return
        text = " ".join(_CONTROL.sub(" ", title).split())
        if not text:
            self.empty += 1
            return
        encoded = text.encode("utf-8", "replace")
        if len(encoded) > _MOST:
            raise InputError(
                f"the title of {name!r} has {len(encoded):,} bytes; the maximum is {_MOST:,}"
            )
        # Node names contain no control characters, so a name with one matches no node.
        name = _CONTROL.sub("\x1a", self._called(trimmed(name))).encode("utf-8", "replace").decode()
        place = self._first + self.count + (_LATE if late else 0)
        self._held.append((place, name, encoded.decode()))
        self.count += 1
        if len(self._held) >= _HELD:
            self.flush()

    def flush(self) -> None:
        """Store the collected titles."""
        if self._held and self.store is not None:
            self.store(self._held)
            self._held = []


_ROWS = 1 << 16
"""Rows per fetch."""
EXAMPLES = 5
"""Maximum number of an input's bad rows to show."""

Reported = Callable[[str, str, str, str], None]
"""Called with (page, fault, link as written, target)."""


def no_report(page: str, what: str, written: str, url: str) -> None:
    """No-op callback."""


@dataclass(frozen=True)
class Job:
    """One input to read: links if ``wanted`` is 2, node names if 1.

    ``database`` runs the relations, and may read only the inputs and files in the directory
    ``scratch``. ``inputs`` are all inputs of links, for formats that consist of several files.
    Readers pass titles to ``titles.add(name, title)``, and broken links to ``report``. ``threads``
    limits the reader, ``memory`` the whole run, in bytes.
    """

    source: Source
    wanted: int
    options: ReadOptions
    scratch: Path
    database: duckdb.DuckDBPyConnection
    progress: Progress
    inputs: tuple[Source, ...] = ()
    titles: TitleSink = field(default_factory=TitleSink)
    threads: int = 1
    memory: int = 1 << 30
    report: Reported = no_report

    def run(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        rows: list[tuple[Any, ...]] = self.database.execute(query).fetchall()
        return rows

    def count(self, query: str) -> int:
        """Return the result of a query that yields one number."""
        return int(self.run(query)[0][0])

    def streamed(self, table: str, columns: str, where: str = "true") -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table in order, fetched in batches."""
        end = self.count(f"SELECT coalesce(max(rowid) + 1, 0) FROM {table}")
        for low in range(0, end, _ROWS):
            within = f"rowid >= {low} AND rowid < {low + _ROWS}"
            yield from self.run(f"SELECT {columns} FROM {table} WHERE {within} AND {where}")


@dataclass
class Found:
    """Report on an input, for the manifest: how it was read, and what it contained.

    ``file`` is the input's name in messages. ``rows`` is the number of rows in the relation;
    ``bad_rows`` counts skipped rows by fault, and ``examples`` are the first of them. ``integers``
    says whether all names are integers. ``note`` adds details about the ``format``.
    """

    file: str
    rows: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    integers: bool = True
    format: str = ""
    note: str = ""
    first_keys: ClassVar[tuple[str, ...]] = ()
    """Keys to put first in a manifest entry."""

    def to_json(self) -> dict[str, Any]:
        """Return the manifest entry."""
        values = {key: value for key, value in asdict(self).items() if value != ""}
        return {key: values[key] for key in (*self.first_keys, *values)}

    @property
    def bad(self) -> int:
        """Return the number of skipped rows."""
        return sum(self.bad_rows.values())

    def leave_out(self, kind: str, count: int, examples: Iterable[str]) -> None:
        """Add ``count`` skipped rows of a ``kind``; keep up to ``EXAMPLES`` examples in total."""
        self.bad_rows[kind] = self.bad_rows.get(kind, 0) + count
        self.examples = [*self.examples, *examples][:EXAMPLES]

    def describe(self) -> str:
        """Return a line of text that starts with ``file``."""
        how = f"{self.format}, {self.note}" if self.note else self.format
        return f"{self.file}: {how}" if how else self.file

    def read_as(self, title: str, note: str = "") -> Found:
        """Return a report with the same counts, for the format ``title``."""
        counted = self.file, self.rows, self.bad_rows, self.examples, self.integers
        return Found(*counted, title, note)


@dataclass
class PagesFound(Found):
    """Report on pages.

    ``links`` counts links between the pages by tag, ``others`` all other links by target, and
    ``left_out`` skipped files or records by kind. ``files`` counts the files read; ``file`` is the
    first. ``site`` is a folder's URL; ``format`` is what messages call the pages.
    """

    pages: int = 0
    links: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    copies: int = 0
    site: str = ""
    files: int = 1
    redirects: int = 0

    def describe(self) -> str:
        """Return a line of text that starts with ``file``."""
        text = self.file + (f" and {self.files - 1:,} more" if self.files > 1 else "")
        text += f": {self.pages:,} {self.format}" + (f" of {self.site}" if self.site else "")
        text += f", {self.redirects:,} redirects" if self.redirects else ""
        text += f", {self.copies:,} copies of pages" if self.copies else ""
        kinds = [f"{count:,} by {tag}" for tag, count in self.links.items() if count]
        text += f"; {sum(self.links.values()):,} links between them"
        text += f" ({', '.join(kinds)})" if len(kinds) > 1 else ""
        text += f"; {_listed(self.others)}" if self.others else ""
        return text + (f"; left out: {_listed(self.left_out)}" if self.left_out else "")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


class Read(NamedTuple):
    """A reader's result: the relation ``rows`` of links or names, and the report.

    ``nodes`` is a relation (column a) if the input lists its nodes, else ""; it replaces ``rows``
    if node names are requested.
    """

    rows: str
    found: Found
    nodes: str = ""


class RowBatch(NamedTuple):
    """A batch to load: one relation for several inputs, and a report on each."""

    rows: str
    sources: list[Source]
    found: list[Found]
    nodes: str = ""


@dataclass(frozen=True, eq=False)
class FormatReader:
    """A format: ``title`` is its name in messages, ``described`` its description in help.

    ``read`` returns the relations and the report of one input. A reader may have ``read_many``
    instead, which yields batches from all files of the format, so the cost per file is low. Each
    batch is loaded before the next is requested; ``job.source`` is the first file. Both raise
    :class:`~cocite.errors.MalformedRow` at the first bad row unless bad rows are skipped,
    :class:`~cocite.errors.InputError` for unreadable input, and :class:`~cocite.errors.UsageError`
    for options that do not apply.

    A reader that ``streams`` accepts a pipe. A reader with ``together`` reads all inputs of its
    format at once, as ``job.inputs``. ``takes`` lists optional features, such as ``pages`` (limit
    nodes to a list of pages). ``weights`` and ``columns`` say whether the format can have them.
    """

    title: str
    described: str
    read: Callable[[Job], Read] | None = None
    streams: bool = True
    read_many: Callable[[Job, Sequence[Source]], Iterator[RowBatch]] | None = None
    together: bool = False
    takes: tuple[str, ...] = ()
    weights: bool = True
    columns: bool = True

    def check(self, job: Job) -> None:
        """Raise an error for options that do not apply to this format."""
        label, options = job.source.label, job.options
        if options.columns_named and not self.columns:
            raise UsageError(
                f"{label} is {self.title}, which has no columns: omit --columns (columns=...) and "
                "--weight-column (weight_column=...). To weight links, use --count-duplicates "
                "(count_duplicates=True)"
            )
        if options.weight and not self.weights:
            raise InputError(
                f"{label} is {self.title}, whose links have no weights. Omit --weight-column "
                "(weight_column=...)"
            )


def text_lines(job: Job, longest: int, what: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, stripped text) for each nonblank line.

    Raises :class:`InputError` for a line of ``longest`` bytes or more, which messages call
    ``what``.
    """
    with job.source.reading() as (stream, raw):
        number = 0
        while data := stream.readline(longest):
            number += 1
            if number % 4096 == 0:
                job.progress("reading " + job.source.short, raw.tell(), job.source.nbytes)
            if len(data) == longest:
                raise InputError(
                    f"{job.source.label}:{number}: a {what} of more than {longest:,} bytes"
                )
            text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").strip()
            if text:
                yield number, text


def follow(job: Job, table: str) -> int:
    """Replace each redirect's target in ``table`` (a, b; a is unique) with its final target.

    Circular redirects are deleted; return their number. Each round doubles the distance covered, so
    chains of length n take log2(n) joins. A round that reaches no new end is the last.
    """
    every, before, ended = job.count(f"SELECT count(*) FROM {table}"), -2, -1
    while ended not in (every, before):
        job.run(
            f"CREATE OR REPLACE TABLE {table} AS SELECT s.a, coalesce(t.b, s.b) AS b, "
            f"t.a IS NULL AS ended FROM {table} s LEFT JOIN {table} t ON t.a = s.b"
        )
        before, ended = ended, job.count(f"SELECT count(*) FROM {table} WHERE ended")
    job.run(f"DELETE FROM {table} WHERE NOT ended")
    return every - ended
