"""Parquet edge lists: DuckDB reads them; here their columns are chosen and their rows checked.

Source and target are the columns named with ``--columns`` (or numbered from 1), else those whose
names say so (``io/readers/dialect.py``), else the first two; the weight is that named with
``--weight-column``. A row with a null, an empty name or what no name has (``graph/spelling.py``) is
malformed, as in text, and so is one whose weight is not positive.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cocite.errors import InputError, MalformedRow, ResourceError, UnrecognizedInput, UsageError
from cocite.graph.spelling import REFUSED_SQL, turn_in
from cocite.io.database import file_literal, literal
from cocite.io.readers.contract import (
    Job,
    Read,
    ReadMany,
    ReadOptions,
    Together,
    bad_row_advice,
    not_parquet,
)
from cocite.io.readers.dialect import OTHERS, answer_in, ends_of, unread_weights, weights_note
from cocite.io.readers.sources import Source

if TYPE_CHECKING:
    import duckdb


_INTEGERS = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
)
_NUMBERS = _INTEGERS | {"HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE"}
_MAX_NAME = 65_535
_EXAMPLES = 5
_TOGETHER = 500
"""Files that are scanned at once."""
_FILE = "the file of cocite"
"""The column of the files' names; one of theirs that is called so is an error of DuckDB."""
_BAD_WEIGHT = "(w IS NULL OR NOT (w >= 1e-30 AND w < 1e30))"


@dataclass
class ParquetInput:
    """How one Parquet file was read and what was found: goes into the manifest."""

    file: str
    columns: tuple[str, ...]
    rows: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    integers: bool = True
    weight: str | None = None
    guessed = False  # the columns; is no field, as it is not kept
    unread = ""  # a column of weights that is not read; likewise

    def describe(self) -> str:
        """One line for people."""
        text = f"{self.file}: Parquet, columns " + " and ".join(map(repr, self.columns))
        text += "" if self.weight is None else f" with the weight in {self.weight!r}"
        return text + (OTHERS if self.guessed else "") + weights_note(self.unread)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class ParquetReader:
    """Parquet files."""

    title = "Parquet"
    described = "a table in Parquet"
    streams = False

    def read(self, job: Job) -> Read:
        """The wanted columns, as integers or text, with the weights if there are any."""
        job.progress("reading " + job.source.short, 0, 0)
        source = job.source
        return Read(*read_file(job.database, source, _path(source), job.wanted, job.options))

    def read_many(self, job: Job, sources: Sequence[Source]) -> Iterator[ReadMany]:
        """The same of many files, those of the same columns in one scan."""
        import duckdb

        told = Together(job.progress, sources)
        for low in range(0, len(sources), _TOGETHER):
            some = list(sources[low : low + _TOGETHER])
            with told.of(*some) as progress:
                progress("reading " + some[0].short, 0, 0)
                try:
                    groups = _groups(job.database, some)
                except duckdb.Error:
                    groups = [[source] for source in some]
            for group in groups:
                yield from _together(job, group)


READER = ParquetReader()


def read_file(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    path: Path,
    wanted: int,
    options: ReadOptions,
) -> tuple[str, ParquetInput]:
    """The relation of the file ``path``, which messages call as ``source`` is called."""
    file = f"read_parquet({file_literal(path)}, hive_partitioning = false)"
    taken = _taken(connection, source, file, wanted, options)
    found = taken.of(source)
    negative = f"SELECT 1 FROM {file} WHERE {taken.negative} LIMIT 1"
    found.integers = taken.integers and not _run(connection, source, negative)
    rows = f"(SELECT row_number() OVER () AS row, {taken.pairs} FROM {file})"
    bad = taken.bad
    count = int(_run(connection, source, f"SELECT count(*) FROM {rows} WHERE {bad}")[0][0])
    if count:
        examples = _run(
            connection,
            source,
            f"SELECT row, {taken.values} FROM {rows} WHERE {bad} ORDER BY row LIMIT {_EXAMPLES}",
        )
        every = int(_run(connection, source, f"SELECT count(*) FROM {file}")[0][0])
        taken.refuse(
            found, count, every, [(int(row), content) for row, *content in examples], options
        )
    found.rows = int(_run(connection, source, f"SELECT count(*) FROM {file}")[0][0]) - count
    return f"SELECT {taken.cast(found.integers)} FROM {rows} WHERE NOT ({bad})", found


class _Taken(NamedTuple):
    """The columns that are read: those of the ends, as they are called, and that of the weight;
    ``integers`` if the ends are of such a type, ``guessed`` if nothing but their places tells that
    they are the link.
    """

    chosen: tuple[str, ...]
    weight: str | None
    integers: bool
    guessed: bool = False
    unread: str = ""

    def of(self, source: Source) -> ParquetInput:
        """What is found in a file of them, as far as that is known."""
        found = ParquetInput(source.label, self.chosen, weight=self.weight)
        found.guessed, found.unread = self.guessed, self.unread
        return found

    @property
    def _ends(self) -> str:
        return "ab"[: len(self.chosen)]

    @property
    def pairs(self) -> str:
        """They as a, b and w."""
        pairs = [f"{_quoted(c)} AS {n}" for c, n in zip(self.chosen, self._ends, strict=True)]
        if self.weight is not None:
            pairs.append(f"CAST({_quoted(self.weight)} AS DOUBLE) AS w")
        return ", ".join(pairs)

    @property
    def bad(self) -> str:
        """The condition of a malformed row of these."""
        each = [_bad(field) for field in self._ends]
        return " OR ".join(each if self.weight is None else [*each, _BAD_WEIGHT])

    @property
    def negative(self) -> str:
        """The condition of a row whose names are no integers from 0 on, of the file's columns."""
        return " OR ".join(f"{_quoted(c)} < 0" for c in self.chosen)

    @property
    def values(self) -> str:
        """They as they are shown."""
        every = self._ends if self.weight is None else self._ends + "w"
        return ", ".join(f"CAST({n} AS VARCHAR)" for n in every)

    def cast(self, integers: bool) -> str:
        """They as they are loaded."""
        kind = "UBIGINT" if integers else "VARCHAR"
        columns = ", ".join(f"CAST({n} AS {kind}) AS {n}" for n in self._ends)
        return columns + ("" if self.weight is None else ", w")

    def refuse(
        self,
        found: ParquetInput,
        count: int,
        every: int,
        examples: list[tuple[int, list[Any]]],
        options: ReadOptions,
    ) -> None:
        """Malformed rows, ``count`` of ``every``: an error, or told, with the first of them."""
        what = "a null, an empty name, a control character, or a name that is too long"
        if self.weight is not None:
            what += ", or a weight that is no number from 1e-30 to below 1e30"
        told = [(row, self._turn(content) or what, content) for row, content in examples]
        if not options.skip_bad_rows:
            row, what, content = told[0]
            raise MalformedRow(found.file, row, what, repr(content), bad_row_advice(count, every))
        found.bad_rows = {"bad value": count}
        found.examples = [f"row {row}: {what}: {content!r}" for row, what, content in told]

    def _turn(self, content: list[Any]) -> str:
        """What is wrong with a row in whose names writing turns; else empty: values show it."""
        names = content[: len(self._ends)]
        turns = filter(None, (turn_in(name) for name in names if name is not None))
        return next((f"a name with {turn}" for turn in turns), "")


def _taken(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    file: str,
    wanted: int,
    options: ReadOptions,
) -> _Taken:
    """The columns that are read of a ``file`` as DuckDB calls it."""
    described: list[tuple[Any, ...]] = _run(connection, source, f"DESCRIBE SELECT * FROM {file}")
    types = {str(row[0]): str(row[1]) for row in described}
    chosen = _choose(source, list(types), wanted, options)
    weight = _choose_weight(source, types, chosen, options)
    odd = [name for name in chosen if types[name] not in _INTEGERS and types[name] != "VARCHAR"]
    if odd:
        raise InputError(
            f"{source.label}: column {odd[0]!r} is {types[odd[0]]}; nodes are integers or text. "
            "Convert it, or choose others with --columns"
        )
    more = len(types) > 2 + (weight is not None)
    guessed = (
        wanted == 2 and not options.columns and more and ends_of(chosen, options.sides) is None
    )
    unread = unread_weights(list(types), chosen) if wanted == 2 and weight is None else ""
    whole = all(types[name] in _INTEGERS for name in chosen)
    return _Taken(chosen, weight, whole, guessed, unread)


# -- many files ------------------------------------------------------------------------


def _groups(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> list[list[Source]]:
    """Sources of the same columns, as their schemas say; raises ``duckdb.Error``."""
    schemas: dict[str, list[tuple[Any, ...]]] = {}
    query = f"FROM parquet_schema({_list(sources)})"
    for name, *column in connection.execute(query).fetchall():
        schemas.setdefault(str(name), []).append(tuple(column))
    groups: dict[tuple[tuple[Any, ...], ...], list[Source]] = {}
    for source in sources:
        groups.setdefault(tuple(schemas[str(_path(source))]), []).append(source)
    return list(groups.values())


def _together(job: Job, group: list[Source]) -> Iterator[ReadMany]:
    """Files of the same columns; what is wrong with one of them is told by that."""
    import duckdb

    database, wanted, options = job.database, job.wanted, job.options
    try:
        rows, every = _of_group(database, group, wanted, options)
    except duckdb.OutOfMemoryException:
        raise
    except duckdb.Error:
        for source in group:
            alone, found = read_file(database, source, _path(source), wanted, options)
            yield ReadMany(alone, [source], [found])
        return
    yield ReadMany(rows, group, list(every))
    database.execute("DROP TABLE IF EXISTS reading.rows")


def _of_group(
    connection: duckdb.DuckDBPyConnection, sources: list[Source], wanted: int, options: ReadOptions
) -> tuple[str, list[ParquetInput]]:
    """As ``read_file`` of files of the same columns, each of which is read once if nothing is wrong
    with any: then as many rows are found as there are.
    """
    file = f"read_parquet({_list(sources)}, hive_partitioning = false, filename = {literal(_FILE)})"
    one = f"read_parquet({file_literal(_path(sources[0]))}, hive_partitioning = false)"
    taken = _taken(connection, sources[0], one, wanted, options)
    bad, name = taken.bad, _quoted(_FILE)
    negative = taken.negative if taken.integers else "false"
    rows = (
        f"(SELECT {name}, file_row_number + 1 AS row, {negative} AS n, {taken.pairs} FROM {file})"
    )
    sizes = {
        str(path): int(count)
        for path, count in connection.execute(
            f"SELECT file_name, num_rows FROM parquet_file_metadata({_list(sources)})"
        ).fetchall()
    }
    connection.execute(
        f"CREATE OR REPLACE TABLE reading.rows AS SELECT {taken.cast(taken.integers)} FROM {rows} "
        f"WHERE NOT (n OR {bad})"
    )
    (loaded,) = connection.execute("SELECT count(*) FROM reading.rows").fetchall()[0]
    if int(loaded) == sum(sizes.values()):
        return "FROM reading.rows", [
            replace(taken.of(source), integers=taken.integers, rows=sizes[str(_path(source))])
            for source in sources
        ]
    figures = {
        str(path): (int(every), int(wrong), bool(negatives))
        for path, every, wrong, negatives in connection.execute(
            f"SELECT {name}, count(*), count(*) FILTER ({bad}), bool_or(n) FROM {rows} GROUP BY ALL"
        ).fetchall()
    }
    examples: dict[str, list[tuple[int, list[Any]]]] = {}
    if any(wrong for _, wrong, _ in figures.values()):
        query = (
            f"SELECT {name}, row, {taken.values} FROM {rows} WHERE {bad} "
            f"QUALIFY row_number() OVER (PARTITION BY {name} ORDER BY row) <= {_EXAMPLES} "
            f"ORDER BY {name}, row"
        )
        for path, row, *content in connection.execute(query).fetchall():
            examples.setdefault(str(path), []).append((int(row), content))
    every = []
    for source in sources:
        found = taken.of(source)
        count, wrong, negatives = figures.get(str(_path(source)), (0, 0, False))
        found.integers, found.rows = taken.integers and not negatives, count - wrong
        if wrong:
            taken.refuse(found, wrong, count, examples[str(_path(source))], options)
        every.append(found)
    integers = all(found.integers for found in every)
    return f"SELECT {taken.cast(integers)} FROM {rows} WHERE NOT ({bad})", every


def _path(source: Source) -> Path:
    """Where a file is, as DuckDB calls it, too."""
    assert source.path is not None
    return source.path.absolute()


def _list(sources: Sequence[Source]) -> str:
    return "[" + ", ".join(file_literal(_path(source)) for source in sources) + "]"


def _bad(column: str) -> str:
    text = f"CAST({column} AS VARCHAR)"
    return (
        f"({column} IS NULL OR {text} = '' OR strlen({text}) > {_MAX_NAME} "
        f"OR regexp_matches({text}, '{REFUSED_SQL}'))"
    )


def _choose(source: Source, names: list[str], wanted: int, options: ReadOptions) -> tuple[str, ...]:
    if len(names) < wanted:
        raise InputError(f"{source.label} has {len(names)} columns; {wanted} are needed")
    if not options.columns:
        if wanted == 2 and (answer := answer_in(names)):
            raise UnrecognizedInput(f"{source.label} {answer}")
        ends = ends_of(names, options.sides) if wanted == 2 else None
        return tuple(names[:wanted]) if ends is None else (names[ends[0]], names[ends[1]])
    chosen = tuple(_find(source, names, column) for column in options.columns)
    if len(set(chosen)) != len(chosen):
        raise UsageError(f"columns {','.join(options.columns)} names one column twice")
    return chosen


def _choose_weight(
    source: Source, types: dict[str, str], chosen: tuple[str, ...], options: ReadOptions
) -> str | None:
    if not options.weight:
        return None
    weight = _find(source, list(types), options.weight)
    if weight in chosen:
        raise UsageError(
            f"{source.label}: the weight's column {weight!r} is one of the link's, which are "
            f"{' and '.join(map(repr, chosen))} unless --columns names others"
        )
    if types[weight] not in _NUMBERS and not types[weight].startswith("DECIMAL"):
        raise InputError(
            f"{source.label}: column {weight!r} is {types[weight]}; weights are numbers. Convert "
            "it, or choose another with --weight-column"
        )
    return weight


def _find(source: Source, names: list[str], column: str) -> str:
    if column in names:
        return column
    if column.isdecimal() and 1 <= int(column) <= len(names):
        return names[int(column) - 1]
    raise UsageError(
        f"{source.label} has no column {column!r}; it has " + ", ".join(map(repr, names))
    )


def _run(connection: duckdb.DuckDBPyConnection, source: Source, query: str) -> list[Any]:
    import duckdb

    try:
        return connection.execute(query).fetchall()
    except duckdb.OutOfMemoryException as error:
        raise ResourceError(
            f"{source.label} does not fit the memory given: {error}. Give more with --memory"
        ) from error
    except duckdb.Error as error:
        raise not_parquet(source, error) from error
