"""Parquet edge lists: DuckDB reads them; here their columns are chosen and their rows checked.

Source and target are the columns named with ``--columns`` (or numbered from 1), else those whose
names say so (``ends.py``), else the first two; the weight is that named with ``--weight-column``. A
row with a null, an empty name or a control character is malformed, as in text, and so is one whose
weight is not positive.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cocite.errors import InputError, MalformedRow, NotLinks, ResourceError, UsageError
from cocite.graph.readers.ends import answer_in, ends_of
from cocite.graph.readers.options import ReadOptions, bad_row_advice
from cocite.graph.readers.reader import Job, Read
from cocite.graph.readers.sources import Source

if TYPE_CHECKING:
    import duckdb

__all__ = ["READER", "ParquetInput", "ParquetReader"]

_INTEGERS = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
)
_NUMBERS = _INTEGERS | {"HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE"}
_MAX_NAME = 65_535
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

    def describe(self) -> str:
        """One line for people."""
        text = f"{self.file}: Parquet, columns " + " and ".join(map(repr, self.columns))
        return text if self.weight is None else f"{text} with the weight in {self.weight!r}"


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
        return Read(*_relation(job.database, job.source, job.wanted, job.options))


READER = ParquetReader()


def _relation(
    connection: duckdb.DuckDBPyConnection, source: Source, wanted: int, options: ReadOptions
) -> tuple[str, ParquetInput]:
    file = f"read_parquet({_literal(str(source.path))}, hive_partitioning = false)"
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
    found = ParquetInput(source.label, chosen, weight=weight)
    found.integers = all(types[name] in _INTEGERS for name in chosen) and not _run(
        connection,
        source,
        f"SELECT 1 FROM {file} WHERE "
        + " OR ".join(f"{_quoted(c)} < 0" for c in chosen)
        + " LIMIT 1",
    )
    fields = "ab"[:wanted]
    pairs = ", ".join(f"{_quoted(c)} AS {n}" for c, n in zip(chosen, fields, strict=True))
    bad = " OR ".join(map(_bad, fields))
    values = ", ".join(f"CAST({n} AS VARCHAR)" for n in fields)
    what = "a null, an empty name, a control character, or a name that is too long"
    if weight is not None:
        pairs += f", CAST({_quoted(weight)} AS DOUBLE) AS w"
        bad += f" OR {_BAD_WEIGHT}"
        values += ", CAST(w AS VARCHAR)"
        what += ", or a weight that is no number from 1e-30 to below 1e30"
    rows = f"(SELECT row_number() OVER () AS row, {pairs} FROM {file})"
    count = int(_run(connection, source, f"SELECT count(*) FROM {rows} WHERE {bad}")[0][0])
    if count:
        examples = _run(
            connection,
            source,
            f"SELECT row, {values} FROM {rows} WHERE {bad} ORDER BY row LIMIT 5",
        )
        if not options.skip_bad_rows:
            row, *content = examples[0]
            every = int(_run(connection, source, f"SELECT count(*) FROM {file}")[0][0])
            advice = bad_row_advice(count, every)
            raise MalformedRow(source.label, int(row), what, repr(content), advice)
        found.bad_rows = {"bad value": count}
        found.examples = [f"row {row}: {what}: {content!r}" for row, *content in examples]
    kind = "UBIGINT" if found.integers else "VARCHAR"
    columns = ", ".join(f"CAST({n} AS {kind}) AS {n}" for n in fields)
    columns += "" if weight is None else ", w"
    found.rows = int(_run(connection, source, f"SELECT count(*) FROM {file}")[0][0]) - count
    return f"SELECT {columns} FROM {rows} WHERE NOT ({bad})", found


def _bad(column: str) -> str:
    text = f"CAST({column} AS VARCHAR)"
    return (
        f"({column} IS NULL OR {text} = '' OR strlen({text}) > {_MAX_NAME} "
        f"OR regexp_matches({text}, '[\\x00-\\x1f\\x7f]'))"
    )


def _choose(source: Source, names: list[str], wanted: int, options: ReadOptions) -> tuple[str, ...]:
    if len(names) < wanted:
        raise InputError(f"{source.label} has {len(names)} columns; {wanted} are needed")
    if not options.columns:
        if wanted == 2 and (answer := answer_in(names)):
            raise NotLinks(f"{source.label} {answer}")
        ends = ends_of(names) if wanted == 2 else None
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


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _run(connection: duckdb.DuckDBPyConnection, source: Source, query: str) -> list[Any]:
    import duckdb

    try:
        return connection.execute(query).fetchall()
    except duckdb.OutOfMemoryException as error:
        raise ResourceError(
            f"{source.label} does not fit the memory given: {error}. Give more with --memory"
        ) from error
    except duckdb.Error as error:
        raise InputError(f"{source.label} cannot be read as Parquet: {error}") from error
