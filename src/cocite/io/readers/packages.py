"""What packages need, from what their managers write: a link from each package to those it needs.

    poetry.lock, uv.lock, pdm.lock, Cargo.lock     TOML with a [[package]] for each
    package-lock.json, npm-shrinkwrap.json         npm, versions 1 to 3
    pip inspect                                    what pip has installed, as JSON

Nodes are names of packages, whatever their versions; those of Python as the index spells them
(``typing-extensions``). What is needed on some systems or for tests only counts, too, if it is in
the file; extras of what is installed do not.

Cost: that of Python's parsers; such a file is some megabytes, and is read whole.

Rows that a reader has singly, checked as those of a text are: for formats without a faster way.

They go through the kernel that cleans text (``io/readers/text.py``), so the same names are clean,
the same kinds of bad rows are counted, and the first bad one is refused in the same words.

Cost: about a microsecond a row beside what making it takes; memory for some thousand rows.

Spreadsheets: the rows of a sheet of an .xlsx, .xlsb, .xls or .ods file, read as those of a text.

A sheet becomes text with commas and quotes, so header, columns and weights are found out, or told,
as of any text (``io/readers/text.py``), and a row that is malformed is named by its number in the
sheet. Whole numbers are written without a point; a line end in a cell is a blank. The sheet is the
one that is named (``--sheet``), or the only one with rows.

A stranger's sheet may claim any size, so it is read in a process with a limit of addresses
(``io/readers/sheet.py``): what a packed input may unpack to (``io/readers/sources.py``), and no
more than ``--memory``.

Cost: calamine parses some 5 million cells a second, and holds a sheet in memory, some 130 bytes a
cell; a sheet has 1,048,576 rows at most.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from cocite.errors import SKIP_ADVICE, InputError, UnrecognizedInput, UsageError
from cocite.extras import need
from cocite.io.readers.contract import Job, Read, no_progress
from cocite.io.readers.sources import (
    ALWAYS_UNPACKED,
    MOST_RATIO,
    most_unpacked,
    unpack_errors,
)
from cocite.io.readers.text import Cleaner, TextInput, clean_relation, new_clean_file, relation_of
from cocite.resources import format_size
from cocite.storage import disk

_ROWS = 1 << 12
_MARK = "-\t"
"""Begins every line, so that none is blank, however empty its names."""
_BREAKS = str.maketrans(dict.fromkeys("\t\n\r", "\x01"))
"""What would cut a line becomes another control character: no name has any."""


@dataclass
class RowsFound:
    """What was found in an input of a ``format`` that is read row by row."""

    file: str
    format: str
    rows: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    integers: bool = True

    note: str = ""

    @classmethod
    def of(cls, read: TextInput, title: str, note: str = "") -> Self:
        """What was counted, of an input of the format ``title``; ``note`` says how it was read."""
        return cls(read.file, title, read.rows, read.bad_rows, read.examples, read.integers, note)

    def describe(self) -> str:
        """One line for people."""
        return f"{self.file}: {self.format}" + (f", {self.note}" if self.note else "")


def clean_rows(job: Job, title: str, rows: Iterable[Sequence[str]]) -> Read:
    """The relation of ``rows``, and what was found in them, in an input of the format ``title``.

    A row is the source and the destination of a link, with its weight as text if ``job`` asks for
    weights; or one name of a node. Rows are counted from 1 on in messages.
    """
    with new_clean_file(job) as out:
        writer = RowWriter(job, out, job.wanted, weighted=bool(job.options.weight), unit="row")
        for number, row in enumerate(rows, 1):
            writer.add(row, number)
        read = writer.finish()
    return Read(clean_relation(job, read.integers), RowsFound.of(read, title))


class RowWriter(Cleaner):
    """Writes clean rows to ``out``: ``names`` of nodes, a weight if ``weighted``, and ``more``
    columns as they are. Rows are pushed one by one, each with its place, a number of the ``unit``.
    """

    as_written = False

    def __init__(
        self,
        job: Job,
        out: BinaryIO,
        names: int,
        *,
        weighted: bool = False,
        more: int = 0,
        unit: str = "line",
    ) -> None:
        weight = job.options.weight if weighted else ""
        super().__init__(job.source, names, replace(job.options, comment="", weight=weight))
        self.unit = unit
        self.found.taken = tuple(range(1, names + 1))
        self.found.columns = 1 + names + weighted + more
        self.found.weight = names + 1 if weighted else None
        self._rules_now = self.rules()
        self._rules_now[self._k.MORE] = more
        self._rules_now[self._k.EXACT] = 1  # blanks at the ends go where merges are counted
        self._shown = names + weighted
        self._out = out
        self._room = np.empty(0, np.uint8)
        self._lines: list[str] = []
        self._stand_at: list[int] = []
        self._before = 0
        self._other: dict[str, int] = {}
        self._of_weight = False

    def add(self, row: Sequence[str], place: int) -> None:
        """One row."""
        self._lines.append(_MARK + "\t".join([text.translate(_BREAKS) for text in row]) + "\n")
        self._stand_at.append(place)
        if len(self._lines) == _ROWS:
            self._flush()

    def leave_out(self, kind: str, place: int, what: str, content: str) -> None:
        """A row that cannot even be added: an error, or counted as of this ``kind``."""
        self._flush()
        self._example(place, what, content)
        self._other[kind] = self._other.get(kind, 0) + 1

    def finish(self) -> TextInput:
        """Write what is left; what there was."""
        self._flush()
        found = self._report()
        for kind, count in self._other.items():
            found.bad_rows[kind] = found.bad_rows.get(kind, 0) + count
        return found

    def _flush(self) -> None:
        piece = "".join(self._lines).encode("utf-8", "surrogatepass")
        if self._room.size < len(piece) + 2:
            self._room = np.empty(len(piece) + 2, np.uint8)
        if piece:
            self._clean(piece, self._rules_now, self._room)
            disk.write(self._out, self._room[: self._tally[self._k.T_BYTES]].data)
        self._before += len(self._lines)
        self._lines.clear()
        self._stand_at.clear()

    def refuse(self, line: int, what: str, content: str) -> None:
        """A bad row, by where its maker says that it is."""
        shown = content.removeprefix(_MARK).split("\t")[: self._shown]
        place = self._stand_at[line - self._before - 1]
        if self.found.weight is not None and what == self._explain(self._k.NO_WEIGHT):
            *ends, weight = shown
            key, numbers = repr(self.options.weight), what.removeprefix("a weight that is ")
            found = f"is {weight!r}, {numbers}" if weight else "is missing"
            self._of_weight = True
            self._example(place, f"the weight of a link, {key}, {found}", " -> ".join(ends))
            self._of_weight = False
            return
        self._example(place, what, "\t".join(shown))

    def _advice(self, line: int) -> str:
        """Of weights another one: rows are what they are, whatever is said of columns."""
        advice = super()._advice(line)
        if not self._of_weight:
            return advice
        first = f"{advice}. If" if advice == SKIP_ADVICE else "If"
        return (
            f"{first} weights have another name: --weight-column NAME (weight_column=); without it "
            "links have no weights"
        )

    def _example(self, place: int, what: str, content: str) -> None:
        super().refuse(place, what, content)


# -- packages ----------------------------------------------------------------------------


_MOST = 1 << 28
_NODES = "nodes.tsv"
_NPM = ("dependencies", "optionalDependencies", "peerDependencies", "devDependencies")
_EXTRA = re.compile(r"\bextra\b")
_LINK = tuple[str, str]


class PackagesReader:
    """Lock files."""

    title = "a lock file of packages"
    described = (
        "what packages need: poetry.lock, uv.lock, pdm.lock, Cargo.lock, package-lock.json, or "
        "what pip inspect prints"
    )
    streams = True

    def read(self, job: Job) -> Read:
        """All needs, and all packages."""
        if job.options.weight:
            raise InputError(f"{job.source.label} has no weights. Leave --weight-column out")
        names, needs = _packages(job)
        with new_clean_file(job) as out, new_clean_file(job, _NODES) as other:
            links = RowWriter(job, out, 2, unit="need")
            nodes = RowWriter(job, other, 1, unit="package")
            for number, name in enumerate(names, 1):
                nodes.add((name,), number)
            for number, need in enumerate(needs, 1):
                links.add(need, number)
            read, packages = links.finish(), nodes.finish()
        found = RowsFound.of(read, self.title, f"{packages.rows:,} packages link to what they need")
        found.integers = read.integers and packages.integers
        kind = "UBIGINT" if found.integers else "VARCHAR"
        named = relation_of(job, {"a": kind}, _NODES)
        if job.wanted == 1:
            found.rows = packages.rows
            return Read(named, found)
        return Read(clean_relation(job, found.integers), found, named)


READER = PackagesReader()


def _packages(job: Job) -> tuple[list[str], list[_LINK]]:
    """Names of packages, and who needs whom."""
    label = job.source.label
    stream, raw = job.source.open()
    try:
        content = stream.read(_MOST + 1)
    except unpack_errors() as error:
        raise InputError(f"{label} cannot be read to its end: {error}") from error
    finally:
        stream.close()
        raw.close()
    if len(content) > _MOST:
        raise InputError(f"{label} has more than {_MOST:,} bytes; lock files are some megabytes")
    try:
        text = content.decode("utf-8-sig")
        whole = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except RecursionError:
        raise InputError(f"{label} has lists in lists without end") from None
    except ValueError as error:
        raise InputError(f"{label} cannot be read: {error}") from None
    try:
        found = list(_read(whole))
    except (AttributeError, TypeError, KeyError) as error:
        raise InputError(
            f"{label} is no lock file that cocite knows: {type(error).__name__}, {error}. It reads "
            f"{READER.described}"
        ) from None
    names = [name for name, _ in found]
    return names, [(name, need) for name, needs in found for need in needs]


def _read(whole: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """(package, what it needs) of each."""
    if "installed" in whole:
        yield from _installed(whole["installed"])
    elif "packages" in whole:
        yield from _npm(whole)
    elif "lockfileVersion" in whole:
        yield from _npm_first(whole)
    else:
        yield from _tables(whole["package"])


def _tables(packages: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """TOML: needs are a table by name (Poetry), or a list of tables (uv) or texts (PDM, Cargo)."""
    for package in packages:
        needs: list[str] = []
        groups = [package.get("dependencies", [])]
        for key in ("optional-dependencies", "dev-dependencies"):  # uv: lists by group
            groups += list(package.get(key, {}).values())
        for group in groups:
            for each in group:
                text = each["name"] if isinstance(each, dict) else str(each)
                needs.append(re.split(r"[\s<>=!~;\[(@]", text.strip(), maxsplit=1)[0])
        yield str(package["name"]), needs


def _npm(whole: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Versions 2 and 3: packages by the folder that they lie in; "" is the project itself."""
    packages = whole["packages"]
    here = {_npm_name(folder, package, whole) for folder, package in packages.items()}
    for folder, package in packages.items():
        if package.get("link"):
            continue
        needs = [need for key in _NPM for need in package.get(key, {})]
        name = _npm_name(folder, package, whole)
        yield name, [need for need in dict.fromkeys(needs) if need in here]


def _npm_name(folder: str, package: dict[str, Any], whole: dict[str, Any]) -> str:
    if not folder:
        return str(package.get("name") or whole.get("name") or ".")
    return str(folder.rpartition("node_modules/")[2] or package.get("name") or folder)


def _npm_first(package: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Version 1: packages within packages; what the project itself needs is not told."""
    for name, content in package.get("dependencies", {}).items():
        needs = content.get("requires") or {}
        yield name, list(needs) if isinstance(needs, dict) else []
        yield from _npm_first(content)


def _installed(packages: list[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    """pip inspect: needs are texts of PEP 508; those for extras, or of what is not there, go."""
    here = {_spelt(package["metadata"]["name"]) for package in packages}
    for package in packages:
        metadata = package["metadata"]
        wanted = [
            text
            for text in metadata.get("requires_dist", [])
            if not re.search(r"\bextra\b", text.partition(";")[2])
        ]
        found = [re.match(r"[A-Za-z0-9._-]+", text.strip()) for text in wanted]
        needs = [_spelt(match[0]) for match in found if match]
        yield _spelt(metadata["name"]), [need for need in dict.fromkeys(needs) if need in here]


def _spelt(name: str) -> str:
    """A name of Python's index, as PEP 503 spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


# -- spreadsheet -------------------------------------------------------------------------


_SHEET = str(Path(__file__).with_name("sheet.py"))
_ERRORS = {"unknown": UsageError, "unclear": UnrecognizedInput, "damaged": InputError}


class SpreadsheetReader:
    """One sheet."""

    title = "a spreadsheet"
    described = (
        "a sheet of a spreadsheet (xlsx, xlsb, xls, ods), as rows of a text; --sheet names it"
    )
    streams = False

    def read(self, job: Job) -> Read:
        """Its rows as text, cleaned as such."""
        need("python_calamine", "a spreadsheet", "excel")
        job.progress("reading " + job.source.short, 0, 0)
        with closing(_Sheet(job)) as sheet, new_clean_file(job) as out:
            options = replace(job.options, delimiter="comma")
            found = Cleaner(job.source, job.wanted, options).run(sheet, out, no_progress)
        note = found.describe().removeprefix(f"{found.file}: comma-separated, ")
        told = RowsFound.of(found, f"the sheet {sheet.name!r} of a spreadsheet", note)
        return Read(clean_relation(job, found.integers), told)


SPREADSHEET_READER = SpreadsheetReader()


class _Sheet:
    """The text of a sheet, out of a process that may take so much memory, and may die of it."""

    def __init__(self, job: Job) -> None:
        self.name = ""
        self._source, self._given = job.source, 0
        self._most = min(most_unpacked(job.source.nbytes), job.memory)
        self._process = run_script(_SHEET)
        try:
            self._begin(str(job.source.path), job.options.sheet)
        except BaseException:
            self.close()
            raise

    def _begin(self, path: str, named: str) -> None:
        """See which sheet it is that comes, or what is wrong."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"path": path, "named": named, "limit": self._most}
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            found = json.loads(line)
            if "error" in found:
                raise _ERRORS[found["error"]](f"{self._source.label} {found['text']}")
            self.name = found.get("sheet") or found["reading"]
            if "sheet" in found:
                return
        raise self._failure(self._process.wait())

    def read(self, size: int) -> bytes:
        """So many bytes, fewer at the end."""
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if not data and (code := self._process.wait()):
            raise self._failure(code)
        self._given += len(data)
        return data

    def tell(self) -> int:
        """How much was given."""
        return self._given

    def _failure(self, code: int) -> InputError:
        """The error of a process that ended with ``code``: by a signal if memory was too little."""
        if code >= 0:
            return InputError(
                f"{self._source.label} cannot be read as a spreadsheet: what reads it ended with "
                f"exit code {code}"
            )
        where = (
            f"the sheet {self.name!r} of {self._source.label}" if self.name else self._source.label
        )
        return InputError(
            f"{where} takes more than {format_size(self._most)} to read: it has too many cells, or "
            f"cells too far apart or too long. A spreadsheet may take {MOST_RATIO} times its size, "
            f"or {format_size(ALWAYS_UNPACKED)} if that is more, and no more than --memory. If you "
            "trust it, save the sheet as CSV, and name that file"
        )

    def close(self) -> None:
        """See that the process goes."""
        self._process.kill()
        self._process.communicate()


def run_script(script: str) -> subprocess.Popen[bytes]:
    """Begin a file of ours in a process that may die of what a stranger made: it finds what this
    one can import, is asked by its standard input, and says nothing but what it prints.
    """
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.Popen(
        [sys.executable, "-P", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": paths},
    )
