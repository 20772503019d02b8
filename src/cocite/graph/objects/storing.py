"""Links in memory to a stored graph: the rows are checked, then stored as those of files are.

What is refused in a row is what a file's would be: a name that is missing, empty, too long, or has
control characters or turns the direction of text; a number below 0; a weight that is no number from
1e-30 to below 1e30.

Cost: that of ``ingest`` without reading; the object itself is read where it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.errors import InputError, NotLinks, ResourceError, UsageError
from cocite.graph.objects.given import Given
from cocite.graph.readers.options import Progress
from cocite.graph.storing import How, store_links
from cocite.graph.unnamed import REFUSED_SQL, refused_in
from cocite.means import Means
from cocite.memory import OWN_MEMORY, database_memory, format_size
from cocite.store import Draft, Manifest, Store, disk
from cocite.store.temporary import Temporary

if TYPE_CHECKING:
    from cocite.graph.tables import Tables
    from cocite.graph.titles.titling import Titling

__all__ = ["store_given"]

_MAX_NAME = 65_535
_ROW_BYTES = 150
"""What a row takes at most while it is stored, with a name of some length."""
_ADVICE = "Mend it, or pass skip_bad_rows=True to leave such rows out and count them"


@dataclass
class _Found:
    """What was found in an object: goes into the manifest as what was found in a file does."""

    file: str
    rows: int = 0
    bad_rows: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    integers: bool = True


def store_given(
    given: Given,
    output: str | os.PathLike[str] | None,
    how: How,
    means: Means,
    *,
    skip_bad_rows: bool | str = False,
    overwrite: bool = False,
    exclude: tuple[str, ...] | None = None,
    titling: Callable[[Path], Titling] | None = None,
    progress: Progress,
) -> Store:
    """Store links in ``output``, or in a directory that goes with what is returned; ``titling``
    gives the titles, in a directory for its files.

    Raises what :func:`cocite.ingest` raises.
    """
    from cocite.graph.tables import Tables  # DuckDB: only those who ingest wait for it

    if skip_bad_rows not in (False, True, "all"):
        raise UsageError(f"skip_bad_rows is {skip_bad_rows!r}; it is True, False or 'all'")
    if given.weighted and how.count_duplicates:
        raise UsageError(
            f"{given.what} has weights, and count_duplicates makes some: leave one of the two out"
        )
    if means.memory < 2 * OWN_MEMORY:
        raise ResourceError(
            f"storing links needs at least {format_size(2 * OWN_MEMORY)}; found "
            f"{format_size(means.memory)}. Give more memory"
        )
    home = None
    if output is None:
        home = Temporary(_ROW_BYTES * (_length(given.links) + _length(given.nodes)), means.memory)
    place = home.path / "graph" if home else Path(os.fspath(output or ""))
    how = how._replace(undirected=how.undirected or given.undirected)
    with Draft(place, "graph", overwrite=overwrite) as draft:
        work = draft.path / "work"
        disk.make_own_folder(work)
        spare = database_memory(means.memory)
        with Tables(work, [], spare, means.threads, weighted=given.weighted) as tables:
            titles = None if titling is None else titling(work)
            if titles is not None:
                titles.read(tables, progress)
            progress("reading " + given.what, 0, 0)
            read = [_load(tables, given, 2, skip_bad_rows)]
            if given.nodes is not None:
                read.append(_load(tables, given, 1, skip_bad_rows))
            if not any(found.rows for found in read):
                raise NotLinks(f"{given.what} has no link, and no node: there is nothing to store")
            if exclude is not None:
                tables.leave_out(exclude)
            facts, files = store_links(draft.path, tables, how, progress)
            told, of_titles = ({}, {}) if titles is None else titles.store(draft.path, tables)
        facts["rows"] = read[0].rows
        facts["dropped"]["bad_rows"] = sum(sum(found.bad_rows.values()) for found in read)
        facts["sources"] = [asdict(found) | {"read_as": found.file} for found in read]
        path = draft.publish(Manifest("graph", facts | told, files | of_titles))
    return replace(Store.open(path, "graph"), home=home, labels=given.labels)


def _length(table: Any) -> int:
    if table is None:
        return 0
    return len(table["a"]) if isinstance(table, dict) else int(table.num_rows)


def _load(tables: Tables, given: Given, wanted: int, skip: bool | str) -> _Found:
    """Load the rows that are clean; raises :class:`InputError` for one that is not."""
    import duckdb

    table = f"given_{wanted}"
    fields = "ab"[:wanted]
    weighted = given.weighted and wanted == 2
    kind = "UBIGINT" if given.integers else "VARCHAR"
    found = _Found(given.what if wanted == 2 else f"{given.what}, its nodes")
    found.integers = given.integers
    read = ", ".join(f"{n} AS {n}" for n in fields) + (", w" if weighted else "")
    rows = f"(SELECT row_number() OVER () - 1 AS row, {read} FROM {table})"
    bad = " OR ".join(_bad(n, given.integers) for n in fields)
    if weighted:
        bad += " OR w IS NULL OR NOT (w >= 1e-30 AND w < 1e30)"
    try:
        with tables.reading() as database:
            database.register(table, given.links if wanted == 2 else given.nodes)
            counted = database.execute(f"SELECT count(*), count(*) FILTER ({bad}) FROM {table}")
            ((every, wrong),) = counted.fetchall()
            if wrong:
                told = f"SELECT row, {', '.join(fields)}{', w' * weighted} FROM {rows} WHERE {bad}"
                examples = database.execute(f"{told} ORDER BY row LIMIT 5").fetchall()
                found.examples = [_said(row, values, wanted) for row, *values in examples]
                found.bad_rows = {"bad value": wrong}
            found.rows = every - wrong
            _check_few_bad(found, skip)
            columns = ", ".join(f"TRY_CAST({n} AS {kind}) AS {n}" for n in fields)
            columns += ", CAST(w AS DOUBLE) AS w" if weighted else ""
            tables.load(f"SELECT {columns} FROM {rows} WHERE NOT ({bad})", wanted, given.integers)
            database.unregister(table)
    except duckdb.OutOfMemoryException as error:
        raise ResourceError(
            f"{given.what} does not fit the memory given: {error}. Give more memory"
        ) from error
    except duckdb.InvalidInputException as error:  # a surrogate that stands alone
        raise InputError(f"{given.what} holds text that is not Unicode: {error}") from error
    return found


def _check_few_bad(found: _Found, skip: bool | str) -> None:
    bad = sum(found.bad_rows.values())
    if bad and not (skip == "all" or (skip and bad <= found.rows)):
        advice = _ADVICE if not skip else "So are most rows: skip_bad_rows='all' leaves all out"
        raise InputError(f"{found.file}: {found.examples[0]}. {advice}")


def _bad(column: str, integers: bool) -> str:
    if integers:
        return f"({column} IS NULL OR {column} < 0)"
    text = f"CAST({column} AS VARCHAR)"
    return (
        f"({column} IS NULL OR {text} = '' OR strlen({text}) > {_MAX_NAME} "
        f"OR regexp_matches({text}, '{REFUSED_SQL}'))"
    )


def _said(row: int, values: list[Any], wanted: int) -> str:
    """What is wrong with a row, in words."""
    names, weights = values[:wanted], values[wanted:]
    called = ("its source", "its target") if wanted == 2 else ("the name",)
    for title, name in zip(called, names, strict=True):
        if name is None:
            wrong = f"{title} is missing"
        elif isinstance(name, int):
            if name >= 0:
                continue
            wrong = f"{title} is a number below 0; names are text, or numbers from 0 on"
        elif not name:
            wrong = f"{title} is empty"
        elif len(name.encode()) > _MAX_NAME:
            wrong = f"{title} is longer than {_MAX_NAME:,} bytes"
        elif refused := refused_in(name):
            wrong = f"{title} has {refused}"
        else:
            continue
        break
    else:
        wrong = "its weight is no number from 1e-30 to below 1e30"
    content = repr((*names, *weights))
    return f"row {row:,} (from 0), {content[:200]}: {wrong}"
