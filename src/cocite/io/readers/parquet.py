"""Parquet edge lists, read by DuckDB: select columns and check rows.

Source and target are the ``--columns`` (names, or numbers from 1), else the columns with well-known
names (``io/readers/dialect.py``), else the first two; ``--weight-column`` is the weight. A row is
malformed if it has a null, an empty or invalid name (``graph/spelling.py``), or a weight outside
the range from 1e-30 to 1e30.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cocite.errors import InputError, MalformedRow, ResourceError, UnrecognizedInput
from cocite.graph.spelling import REFUSED_SQL, turn_in
from cocite.io.database import file_literal, literal, quoted_column
from cocite.io.readers.contract import (
    EXAMPLES,
    FormatReader,
    Found,
    Job,
    ReadOptions,
    RowBatch,
    bad_row_advice,
    each_with_progress,
)
from cocite.io.readers.dialect import answer_in, choose_columns, columns_note
from cocite.io.readers.sources import Source

if TYPE_CHECKING:
    import duckdb


_INTEGERS = frozenset(
    ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
)
_NUMBERS = _INTEGERS | {"HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE"}
MAX_NAME = 65_535
"""Maximum length of a name in bytes."""
_TOGETHER = 500
"""Files per scan."""
_FILE = "the file of cocite"
"""Column for file names; DuckDB refuses files that have such a column."""
BAD_WEIGHT = "(w IS NULL OR NOT (w >= 1e-30 AND w < 1e30))"


_PARTS = (
    (
        r"magic bytes|too small|footer",
        "its end is missing: it is truncated, or still being written",
    ),
    (r"corrupt|thrift|decompress|snappy|zstd|gzip|brotli|checksum", "it is damaged"),
)
"""Maps patterns in DuckDB's messages to their meanings."""


def not_parquet(source: Source, error: Exception) -> InputError:
    """Return the error for a Parquet file that DuckDB refuses with ``error``."""
    first = str(error).partition("\n")[0]
    what = next((meant for sign, meant in _PARTS if re.search(sign, first, re.I)), "")
    return InputError(
        f"{source.label} cannot be read as Parquet: "
        f"{what or 'it is damaged, or in another format'}. Copy it again, or write it again "
        f"(DuckDB: {first})"
    )


def _read_many(job: Job, sources: Sequence[Source]) -> Iterator[RowBatch]:
    """Read many files; scan files with the same schema together."""
    import duckdb

    each = each_with_progress(job.progress, sources)
    for first, progress in each:
        progress("reading " + first.short, 0, 0)
        some = [first, *(source for source, _ in islice(each, _TOGETHER - 1))]
        try:
            groups = _groups(job.database, some)
        except duckdb.Error:
            groups = [[source] for source in some]
        for group in groups:
            yield from _together(job, group)


READER = FormatReader("Parquet", "a Parquet table", streams=False, read_many=_read_many)


def read_file(job: Job, source: Source, path: Path) -> tuple[str, Found]:
    """Return the relation of ``path``, and the report; messages refer to ``source``."""
    import duckdb

    try:
        relation, (found,) = _checked(job, {str(path): source}, _taken(job, source, path))
    except duckdb.OutOfMemoryException as error:
        raise ResourceError(
            f"{source.label} exceeds the memory limit: {error}. Raise the limit with --memory "
            "(memory=...)"
        ) from error
    except duckdb.Error as error:
        raise not_parquet(source, error) from error
    return relation, found


class _Taken(NamedTuple):
    """Names of the selected columns: the ends, and the weight.

    ``integers`` says whether the ends are integers, ``guessed`` whether columns were selected only
    by position; ``unread`` is an unselected weight column.
    """

    chosen: tuple[str, ...]
    weight: str | None
    integers: bool
    guessed: bool = False
    unread: str = ""

    def of(self, source: Source) -> Found:
        note = columns_note(self.chosen, self.weight or "", self.guessed, self.unread)
        return Found(source.label, format="Parquet", note=note)

    @property
    def ends(self) -> str:
        return "ab"[: len(self.chosen)]

    @property
    def bad(self) -> str:
        each = [bad_name(column) for column in self.ends]
        return " OR ".join(each if self.weight is None else [*each, BAD_WEIGHT])

    def rows(self, paths: Iterable[str]) -> str:
        """Return a query of the files' rows; ``n`` says whether a row has a negative name."""
        negative = " OR ".join(f"{quoted_column(c)} < 0" for c in self.chosen)
        pairs = [f"{quoted_column(c)} AS {n}" for c, n in zip(self.chosen, self.ends, strict=True)]
        if self.weight is not None:
            pairs.append(f"CAST({quoted_column(self.weight)} AS DOUBLE) AS w")
        return (
            f"(SELECT {quoted_column(_FILE)}, file_row_number + 1 AS row, "
            f"{negative if self.integers else 'false'} AS n, {', '.join(pairs)} FROM read_parquet("
            f"{_list(paths)}, hive_partitioning = false, filename = {literal(_FILE)}))"
        )

    def refuse(
        self,
        found: Found,
        count: int,
        every: int,
        examples: list[tuple[int, list[Any]]],
        options: ReadOptions,
    ) -> None:
        """Raise an error for ``count`` malformed rows out of ``every``, or record them."""
        what = "a null, an empty name, a control character, or a name that is too long"
        if self.weight is not None:
            what += ", or a weight that is not a number from 1e-30 to below 1e30"
        failed = [(row, self._turn(content) or what, content) for row, content in examples]
        if options.bad_rows == "stop":
            row, what, content = failed[0]
            raise MalformedRow(found.file, row, what, repr(content), bad_row_advice(count, every))
        shown = (f"row {row}: {what}: {content!r}" for row, what, content in failed)
        found.leave_out("bad value", count, shown)

    def _turn(self, content: list[Any]) -> str:
        """Describe the direction marks in a row's names, which would distort messages."""
        names = content[: len(self.ends)]
        turns = filter(None, (turn_in(name) for name in names if name is not None))
        return next((f"a name with {turn}" for turn in turns), "")


def _taken(job: Job, source: Source, path: Path) -> _Taken:
    wanted, options = job.wanted, job.options
    query = f"DESCRIBE SELECT * FROM read_parquet({file_literal(path)}, hive_partitioning = false)"
    types = {str(row[0]): str(row[1]) for row in job.database.execute(query).fetchall()}
    titles = list(types)
    if wanted == 2 and not options.columns and (answer := answer_in(titles)):
        raise UnrecognizedInput(f"{source.label} {answer}")
    read = choose_columns(
        source.label, titles, wanted, options.columns, options.weight, options.sides
    )
    chosen = tuple(titles[place] for place in read.ends)
    weight = None if read.weight is None else titles[read.weight]
    if weight and types[weight] not in _NUMBERS and not types[weight].startswith("DECIMAL"):
        raise InputError(
            f"{source.label}: column {weight!r} is {types[weight]}; weights must be numbers. "
            "Convert the column, or choose another with --weight-column (weight_column=...)"
        )
    odd = [name for name in chosen if types[name] not in _INTEGERS and types[name] != "VARCHAR"]
    if odd:
        raise InputError(
            f"{source.label}: column {odd[0]!r} is {types[odd[0]]}; nodes must be integers or "
            "text. Convert the column, or choose others with --columns (columns=...)"
        )
    more = len(types) > 2 + (weight is not None)
    whole = all(types[name] in _INTEGERS for name in chosen)
    return _Taken(chosen, weight, whole, wanted == 2 and more and not read.named, read.unread)


# -- many files ------------------------------------------------------------------------


def _groups(connection: duckdb.DuckDBPyConnection, sources: Sequence[Source]) -> list[list[Source]]:
    """Group sources by schema; a file given twice is in two groups. Raises ``duckdb.Error``."""
    schemas: dict[str, list[tuple[Any, ...]]] = {}
    query = f"FROM parquet_schema({_list(str(_path(s)) for s in sources)})"
    for name, *column in connection.execute(query).fetchall():
        schemas.setdefault(str(name), []).append(tuple(column))
    groups: dict[tuple[Any, ...], list[Source]] = {}
    often: Counter[str] = Counter()
    for source in sources:
        path = str(_path(source))
        often[path] += 1
        groups.setdefault((often[path], *schemas[path]), []).append(source)
    return list(groups.values())


def _together(job: Job, group: list[Source]) -> Iterator[RowBatch]:
    """Scan files with the same schema together; after an error, one by one, to find its file."""
    import duckdb

    paths = {str(_path(source)): source for source in group}
    try:
        rows, every = _checked(job, paths, _taken(job, group[0], _path(group[0])))
    except duckdb.Error:
        for path, source in paths.items():
            alone, found = read_file(job, source, Path(path))
            yield RowBatch(alone, [source], [found])
        return
    yield RowBatch(rows, group, list(every))


def _checked(job: Job, paths: dict[str, Source], taken: _Taken) -> tuple[str, list[Found]]:
    """Return a relation over files with the same schema (``paths`` maps paths to sources), and a
    report on each file.
    """
    rows, bad, name = taken.rows(paths), taken.bad, quoted_column(_FILE)
    weight = "" if taken.weight is None else "w"
    figures = {
        str(path): (int(every), int(wrong), bool(negatives))
        for path, every, wrong, negatives in job.database.execute(
            f"SELECT {name}, count(*), count(*) FILTER ({bad}), bool_or(n) FROM {rows} GROUP BY ALL"
        ).fetchall()
    }
    examples: dict[str, list[tuple[int, list[Any]]]] = {}
    if any(wrong for _, wrong, _ in figures.values()):
        values = ", ".join(f"CAST({n} AS VARCHAR)" for n in taken.ends + weight)
        query = (
            f"SELECT {name}, row, {values} FROM {rows} WHERE {bad} "
            f"QUALIFY row_number() OVER (PARTITION BY {name} ORDER BY row) <= {EXAMPLES} "
            f"ORDER BY {name}, row"
        )
        for path, row, *content in job.database.execute(query).fetchall():
            examples.setdefault(str(path), []).append((int(row), content))
    every = []
    for path, source in paths.items():
        found = taken.of(source)
        count, wrong, negatives = figures.get(path, (0, 0, False))
        found.integers, found.rows = taken.integers and not negatives, count - wrong
        if wrong:
            taken.refuse(found, wrong, count, examples[path], job.options)
        every.append(found)
    kind = "UBIGINT" if all(found.integers for found in every) else "VARCHAR"
    columns = ", ".join([*(f"CAST({n} AS {kind}) AS {n}" for n in taken.ends), *weight])
    return f"SELECT {columns} FROM {rows} WHERE NOT ({bad})", every


def _path(source: Source) -> Path:
    """Return a file's path in the form that DuckDB returns."""
    assert source.path is not None
    return source.path.absolute()


def _list(paths: Iterable[str]) -> str:
    return "[" + ", ".join(map(file_literal, paths)) + "]"


def bad_name(column: str) -> str:
    """Return the SQL condition for an invalid name in ``column``."""
    text = f"CAST({column} AS VARCHAR)"
    return (
        f"({column} IS NULL OR {text} = '' OR strlen({text}) > {MAX_NAME} "
        f"OR regexp_matches({text}, '{REFUSED_SQL}'))"
    )
