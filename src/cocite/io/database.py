"""Addresses of SQLite, DuckDB and PostgreSQL databases, and connections to them.

    sqlite:///site.db, sqlite:site.db    an SQLite file; absolute paths take four slashes
    duckdb:///site.duckdb, duckdb:...    a DuckDB file
    postgres://user@host/db              a PostgreSQL server (or postgresql://; any libpq URI)

A table, with its schema if necessary, follows a ``#``: ``sqlite:///site.db#web.related``. Options
that accept only databases also accept plain file names.

Databases are untrusted: connections for reading are read-only, and DuckDB loads no extensions,
opens only the files passed to it, and never expands paths (:func:`file_literal`). Labels, ``repr``
and errors (:func:`reported`) omit passwords.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from cocite.errors import CociteError, InputError, ResourceError, UsageError
from cocite.extras import need

FORMS = "sqlite:///FILE, duckdb:///FILE, postgres://USER@HOST/DATABASE"
"""Valid addresses, for messages and help."""

_TITLES = {"sqlite": "SQLite", "duckdb": "DuckDB", "postgres": "PostgreSQL"}
_SCHEMES = dict.fromkeys(("postgres", "postgresql"), "postgres") | {k: k for k in _TITLES}
_ENDINGS = dict.fromkeys((".sqlite", ".sqlite3", ".db", ".db3"), "sqlite")
_ENDINGS |= dict.fromkeys((".duckdb", ".ddb"), "duckdb")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.I)
_PART = re.compile(r'"(?:[^"\0]|"")+"|[^".\0]+')
_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_MEMORY_ALONE = ":memory:"
_PATTERN = re.compile(r"[*?\[]")
_HIDDEN = "***"
_PATIENCE = 10
"""Default ``connect_timeout``, in seconds."""
_LEAST_MEMORY = 80 << 20
_EXTENSION = re.compile(r"\bextension\b")
_REFUSED = (
    "Views may only read tables of their own database; queries (--sql) may also read the files "
    "that they quote. Store the view as a table instead: CREATE TABLE t AS FROM v"
)


@dataclass(frozen=True)
class Address:
    """A database and, optionally, a table in it.

    ``kind`` is sqlite, duckdb or postgres; ``place`` is a file's path or a server's full URI.
    """

    kind: str
    place: str = field(repr=False)
    table: str = ""

    @property
    def title(self) -> str:
        """Return the system's name: SQLite, DuckDB or PostgreSQL."""
        return _TITLES[self.kind]

    @property
    def is_file(self) -> bool:
        """Return whether the database is a file rather than a server."""
        return self.kind != "postgres"

    @property
    def label(self) -> str:
        """Return the address for messages, without its password or parameters."""
        if self.is_file:
            return self.place
        split = urlsplit(self.place)
        user, host = split.netloc.rpartition("@")[::2]
        user = user.split(":", 1)[0]
        return f"postgres://{user + '@' if user else ''}{host}{split.path}"

    @property
    def secrets(self) -> list[str]:
        """Return the address's passwords, as written, encoded and decoded, longest first."""
        if self.is_file:
            return []
        split = urlsplit(self.place)
        found = [split.netloc.rpartition("@")[0].partition(":")[2]]
        found += [value for key, value in parse_qsl(split.query) if "password" in key.lower()]
        found += [quote(value, safe="") for value in found] + [unquote(value) for value in found]
        return sorted({value for value in found if value}, key=len, reverse=True)

    def masked(self, text: object) -> str:
        """Return ``text`` on one line, with the address's passwords masked."""
        message = " ".join(str(text).split())
        for secret in self.secrets:
            message = message.replace(secret, _HIDDEN)
        return message


def is_address(text: str) -> bool:
    """Return whether ``text`` starts with a database scheme, such as ``sqlite:``."""
    scheme = _SCHEME.match(text)
    return scheme is not None and scheme[1].lower() in _SCHEMES


def address_of(text: str, *, files: bool = False) -> Address:
    """Parse a database address or, with ``files``, the name of an SQLite or DuckDB file. Raises
    :class:`~cocite.errors.UsageError`, whose message omits the password.
    """
    if not is_address(text):
        if files:
            return _file(text)
        raise UsageError(f"{text!r} is not a database address; valid forms are {FORMS}")
    scheme, rest = text.split(":", 1)
    kind = _SCHEMES[scheme.lower()]
    if kind == "postgres":
        return _server(rest)
    path = rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        if host not in ("", "localhost") or not slash:
            raise UsageError(
                f"{text!r}: a file's URL takes three slashes, {kind}:///FILE, or four if the "
                "path is absolute"
            )
    place, table = _behind(path)
    if not place or place == _MEMORY_ALONE:
        raise UsageError(f"{text!r} contains no file name; the form is {kind}:///FILE")
    return Address(kind, place, table)


def database_named(text: str) -> Address | None:
    """Parse a database address or the name of an existing SQLite or DuckDB file, optionally with a
    table after a ``#``. Return None for other files. Raises :class:`UsageError`.
    """
    if is_address(text):
        return address_of(text)
    place = text if os.path.isfile(text) else text.rpartition("#")[0]
    try:
        return address_of(text, files=True) if _stored_kind(place) else None
    except (OSError, ValueError):
        return None


def file_of_titles(text: str) -> tuple[str, Path | None]:
    """Return (absolute name of a title source, its file or None for a server)."""
    address = database_named(text)
    if address is None:
        return os.path.abspath(text), Path(text)
    if not address.is_file:
        return address.label, None
    table = f"#{address.table}" if address.table else ""
    return f"{address.kind}:///{os.path.abspath(address.place)}{table}", Path(address.place)


def _file(text: str) -> Address:
    place, table = (text, "") if Path(text).is_file() else _behind(text)
    path, kind = Path(place), ""
    if path.is_file():
        try:
            kind = _stored_kind(place)
        except OSError as error:
            raise InputError(f"{place} cannot be read: {error.strerror}") from error
        if not kind and path.stat().st_size:
            raise UsageError(f"{place} is not an SQLite or DuckDB database")
    kind = kind or _ENDINGS.get(path.suffix.lower(), "")
    if not kind:
        raise UsageError(
            f"{text!r} is neither an SQLite or DuckDB file nor a database address; valid forms are "
            + FORMS
        )
    return Address(kind, place, table)


def _stored_kind(place: str) -> str:
    """Return sqlite, duckdb or "" according to a file's first bytes; raises ``OSError``."""
    with open(place, "rb") as file:
        begins = file.read(16)
    if begins.startswith(b"SQLite format 3\0"):
        return "sqlite"
    return "duckdb" if begins[8:12] == b"DUCK" else ""


def _server(rest: str) -> Address:
    if not rest.startswith("//"):
        raise UsageError("a PostgreSQL address has the form postgres://USER@HOST/DATABASE")
    place, table = _behind(rest)
    try:
        split = urlsplit("postgres:" + place)
    except ValueError as error:  # the message may contain the password
        raise UsageError(
            "a PostgreSQL address has the form postgres://USER@HOST/DATABASE; put IPv6 addresses "
            "in [ ], and write special characters in names as %XX"
        ) from error
    if split.fragment or "\0" in place:
        raise UsageError("a PostgreSQL address has at most one #, before the table")
    return Address("postgres", "postgresql:" + place, table)


def _behind(path: str) -> tuple[str, str]:
    """Split off the table after the last ``#``."""
    place, mark, table = path.rpartition("#")
    if not mark:
        return path, ""
    if not table.strip():
        raise UsageError("no table name follows the #: add one, or omit the #")
    return place, table.strip()


def quoted(name: str) -> str:
    """Quote a table name, possibly with a schema, for SQL; raises :class:`UsageError`."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid table name; quote names with dots: '\"a.b\"'")
    parts = (part[0] for part in _PART.finditer(name))
    return ".".join(part if part.startswith('"') else f'"{part}"' for part in parts)


def quoted_column(name: str) -> str:
    """Quote a column name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def file_pattern(path: str | os.PathLike[str]) -> str:
    """Return a path with pattern characters escaped, because DuckDB reads paths as patterns. Raises
    :class:`~cocite.errors.InputError`.
    """
    whole = os.path.join(os.getcwd(), path)  # absolute, so that "~/a" and "s3:/a" are files
    if not _PATTERN.search(whole):
        return whole
    if "\\" in whole:
        raise InputError(
            f"{os.fspath(path)}: DuckDB cannot read a path with both a backslash and * ? or [. "
            "Rename the file"
        )
    return _PATTERN.sub(r"[\g<0>]", whole)


def file_literal(path: str | os.PathLike[str]) -> str:
    """Return a path as an SQL literal that DuckDB does not expand."""
    return literal(file_pattern(path))


def matches(pattern: str) -> list[str]:
    """Return the files that match a DuckDB pattern; [] for a plain path or a URL."""
    import duckdb

    if not _PATTERN.search(pattern):
        return []
    with suppress(duckdb.Error), duckdb.connect(config=_ALONE) as connection:
        return [path for (path,) in connection.execute("FROM glob(?)", [pattern]).fetchall()]
    return []


def connect(
    address: Address,
    *,
    write: bool = False,
    memory: int | None = None,
    threads: int | None = None,
    spill: str | None = None,
    files: Iterable[str] = (),
) -> Any:
    """Open a database, read-only or for writing; the caller closes the connection.

    With ``write``, a missing file is created. DuckDB may use ``memory`` bytes, ``threads`` threads
    and the folder ``spill``. In addition to the database, DuckDB may open ``files``; folders end in
    a slash.

    Raises :class:`InputError` if the database is missing or cannot be opened, and
    :class:`~cocite.extras.MissingLibrary` without psycopg.
    """
    if address.is_file and not write and not Path(address.place).is_file():
        raise InputError(f"{address.place}: no such file")
    with reported(address):
        if address.kind == "postgres":
            return _postgres(address, write)
        if address.kind == "sqlite":
            return _sqlite(address, write)
        limit = None if memory is None else f"{max(memory, _LEAST_MEMORY)}B"
        given = {"memory_limit": limit, "threads": threads, "temp_directory": spill}
        config = {name: value for name, value in given.items() if value is not None}
        if write and address.place != _MEMORY_ALONE:  # DuckDB's log and temporary files
            files = [*files, f"{Path(address.place).absolute().parent}/"]
        return open_duckdb(address.place, config, read_only=not write, files=files)


def _sqlite(address: Address, write: bool) -> sqlite3.Connection:
    path = Path(address.place).absolute().as_posix()
    mode = "rwc" if write else "ro"
    connection = sqlite3.connect(f"file:{quote(path)}?mode={mode}", uri=True)
    if not write:
        connection.execute("PRAGMA query_only = 1")
        connection.execute("PRAGMA trusted_schema = 0")  # no unsafe functions in views
    connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()  # fails if not SQLite
    return connection


_ALONE: dict[str, Any] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "allow_community_extensions": False,
    "allow_persistent_secrets": False,
}


def open_duckdb(
    place: str, config: dict[str, Any], *, read_only: bool = False, files: Iterable[str] = ()
) -> Any:
    """Open a DuckDB connection with access only to ``place``, ``files`` and a spill folder.

    Folders in ``files`` end in a slash. Extensions, Python variables and progress bars are
    disabled, and the configuration is locked. Raises :class:`InputError` for a path with a
    backslash.
    """
    import duckdb

    place = place if place == _MEMORY_ALONE else os.path.join(os.getcwd(), place)
    if os.sep != "\\" and "\\" in place:
        raise InputError(
            f"{place}: DuckDB reads a backslash as a path separator. Rename the file or its folder"
        )
    more = {"read_only": True} if read_only else {}
    connection = duckdb.connect(place, config=_ALONE | config, **more)
    with suppress(duckdb.InvalidInputException):  # raised in notebooks without ipywidgets
        connection.execute("SET enable_progress_bar = false")
    each = list(dict.fromkeys(files))
    folders = [path for path in each if path.endswith("/")]
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET allowed_paths = ?", [[path for path in each if path not in folders]])
    connection.execute("SET allowed_directories = ?", [folders])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _postgres(address: Address, write: bool) -> Any:
    psycopg = need("psycopg", "a PostgreSQL database", "postgres")
    given = psycopg.conninfo.conninfo_to_dict(address.place)
    usual = {"application_name": "cocite", "connect_timeout": _PATIENCE}
    connection = psycopg.connect(**(usual | given))
    connection.read_only = not write
    return connection


@contextmanager
def reported(
    address: Address, error_type: Callable[[str], CociteError] = InputError
) -> Iterator[None]:
    """Convert a driver's errors to ``error_type`` or :class:`ResourceError`; hide passwords."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, _errors(address.kind)):
            raise
        message = f"{address.label}: {address.masked(error)}"
        if type(error).__name__ == "OutOfMemoryException":
            message += ". Raise the limit with --memory (memory=...)"
            raise ResourceError(message) from None
        if type(error).__name__ == "PermissionException" or _EXTENSION.search(message):
            message += f". {_REFUSED}"
        raise error_type(message) from None  # the cause may quote the password


def _errors(kind: str) -> tuple[type[Exception], ...]:
    """Return the base classes of the driver's errors."""
    if kind == "sqlite":
        return (sqlite3.Error, UnicodeDecodeError)  # the latter for a damaged schema
    if kind == "duckdb":
        import duckdb

        return (duckdb.Error,)
    psycopg = need("psycopg", "a PostgreSQL database", "postgres")
    return (psycopg.Error,)
