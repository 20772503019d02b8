"""Links in tables: pandas, polars, Arrow, NumPy, and pairs of anything.

Source and target are the columns whose titles say so, as of files (``io/readers/dialect.py``), else
the first two; unless others are named, by title or by number from 1.
Rows that have no titles, pairs and arrays, have the weight as their third value, if there is one;
of a table a column of weights is named.

From loaded links to the files of a stored graph, as a stream.

    number the names -> leave pages out -> sort by (destination, source) -> drop duplicates -> write

Self-loops are dropped unless asked for, duplicates always; both are counted, and a node that is
named only by such a link is still a node. Weights of duplicates are added, the smallest first; or
the weight of a link is how often it was read, which takes a second pass over the sorted links.

Memory beyond DuckDB's: 4 bytes a node for the out-degrees, and a few pieces.

Links in memory to a stored graph: the rows are checked, then stored as those of files are.

What is refused in a row is what a file's would be: a name that is missing, empty, too long, or has
control characters or turns the direction of text; a number below 0; a weight that is no number from
1e-30 to below 1e30.

Cost: that of ``ingest`` without reading; the object itself is read where it is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError, UnrecognizedInput, UsageError
from cocite.extras import need
from cocite.graph.blocks import DEGREES, OFFSETS, SOURCES, write_weights
from cocite.graph.excluded import nothing_left
from cocite.graph.name_files import write_names
from cocite.graph.sides import SIDES, Sides
from cocite.graph.spelling import REFUSED_SQL, refused_in, trimmed
from cocite.io.objects import ObjectInput, is_missing, numbers, object_input, objects
from cocite.io.readers.contract import Progress
from cocite.io.readers.dialect import ends_of, unread_weights
from cocite.resources import OWN_MEMORY, Resources, database_memory, format_size
from cocite.storage import ArrayWriter, Entry, Manifest, Staging, Store, disk
from cocite.storage.spool import Temporary

if TYPE_CHECKING:
    from cocite.graph.titles import Titling
    from cocite.io.tables import Tables


_log = logging.getLogger("cocite")
_EXACT = 2**53
"""Below it every whole number is a float64."""
_FORM = "links are rows of a source and a target, or of these and a weight"


@dataclass(frozen=True)
class TableRequest:
    """What is asked for: ``columns``, titles or numbers from 1, ``weight``, one of these or None,
    and the names of ``nodes`` that are there whether they have links or not; what the ``sides`` of
    a bipartite table are called.
    """

    columns: tuple[str | int, ...] = ()
    weight: str | int | None = None
    nodes: Any = None
    sides: tuple[str, str] | None = None

    def checked(self) -> TableRequest:
        """The same; raises :class:`UsageError` for columns that are no two."""
        if len(self.columns) not in (0, 2):
            named = ", ".join(map(str, self.columns))
            raise UsageError(f"columns is {named}; it takes two, source and target")
        return self


def series_links(frame: Any, what: str, wanted: TableRequest) -> ObjectInput:
    """Links of a data frame of pandas or polars: both have columns that are arrays."""
    return _titled(what, list(frame.columns), lambda i: _series(_nth(frame, i)), wanted)


def arrow_links(table: Any, what: str, wanted: TableRequest) -> ObjectInput:
    """Links of a table of Arrow, or of what can be one."""
    pyarrow = need("pyarrow", "reading Arrow tables", "arrow")
    if not isinstance(table, pyarrow.Table):
        table = pyarrow.table(table)
    return _titled(what, table.column_names, lambda i: _arrow(table.column(i)), wanted)


def numpy_links(array: NDArray[Any], what: str, wanted: TableRequest) -> ObjectInput:
    """Links of an array, (links, 2) or (links, 3); or of one with named fields."""
    if array.dtype.names:
        fields = array.dtype.names
        return _titled(what, list(fields), lambda i: array[fields[i]].ravel(), wanted)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        turned = array.ndim == 2 and array.shape[0] in (2, 3)
        raise UsageError(
            f"{what} has the shape {array.shape}; it is (links, 2), or (links, 3) with weights. "
            + ("Turn it round: array.T" if turned else "Each row is a link: source, target")
        )
    columns = [array[:, i] for i in range(array.shape[1])]
    if array.dtype.kind == "f" and len(columns) == 3:
        columns[:2] = [_whole(column, what) for column in columns[:2]]
    return _untitled(what, columns, wanted)


def pair_links(rows: Iterable[Any], what: str, wanted: TableRequest) -> ObjectInput:
    """Links that are pairs, or triples with a weight."""
    listed = list(rows)
    widths = set()
    for place, row in enumerate(listed):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray):
            raise UsageError(f"{what}: row {place:,} (from 0) is {_shown(row)}; {_FORM}")
        widths.add(len(row))
        if len(row) not in (2, 3) or len(widths) > 1:
            raise UsageError(
                f"{what}: row {place:,} (from 0) has {len(row)} values: {_shown(row)}; {_FORM}, "
                "all alike"
            )
    columns = list(zip(*listed, strict=True)) if listed else [(), ()]
    return _untitled(what, [objects(column) for column in columns], wanted)


def names_in(nodes: Any) -> Any:
    """The names of nodes: a list, an array, a column of a table."""
    if nodes is None or isinstance(nodes, np.ndarray):
        return nodes
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        raise UsageError(f"nodes is {_shown(nodes)}; it is a list of names")
    library = type(nodes).__module__.partition(".")[0]
    if library in ("pandas", "polars") and hasattr(nodes, "dtype"):
        return _series(nodes)
    return _arrow(nodes) if library == "pyarrow" else objects(nodes)


def _titled(
    what: str, titles: list[Any], column: Callable[[int], Any], wanted: TableRequest
) -> ObjectInput:
    if len(titles) < 2:
        raise UsageError(f"{what} has {len(titles)} columns; a link takes two, source and target")
    chosen = [_place(what, titles, title) for title in wanted.columns] or _ends(
        what, titles, wanted
    )
    weight, weights = None, None
    if wanted.weight is not None:
        weight = _place(what, titles, wanted.weight)
        weights = numbers(column(weight), what, f"column {titles[weight]!r}")
    elif unread := unread_weights(titles, [titles[i] for i in chosen]):
        _log.warning(
            f"{what}: column {unread!r} is ignored, and links have no weights; to take it: "
            f"weight_column={unread!r}"
        )
    if len({*chosen, weight}) != 3:
        raise UsageError(
            f"{what}: one column is named twice. Source and target are "
            f"{' and '.join(repr(titles[i]) for i in chosen)}, unless columns=... names others, "
            "and the weight is another"
        )
    called = [f"column {titles[i]!r}" for i in chosen]
    first, second = map(column, chosen)
    return object_input(what, first, second, weights, nodes=names_in(wanted.nodes), titles=called)


def _ends(what: str, titles: list[Any], wanted: TableRequest) -> list[int]:
    """The columns of source and target, from 0 on: by their titles, else the first two."""
    texts = [title if isinstance(title, str) else "" for title in titles]
    named = ends_of(texts, wanted.sides)
    if len(titles) > 2 or named not in (None, (0, 1)):
        first, second = named or (0, 1)
        _log.info(
            f"{what}: links go from {str(titles[first])!r} to {str(titles[second])!r}; if other "
            "columns are the link: columns=(source, target)"
        )
    return list(named or (0, 1))


def _place(what: str, titles: list[Any], column: str | int) -> int:
    """Where a column is: by its title, else by its number from 1."""
    if column in titles:
        return titles.index(column)
    if str(column).isdecimal() and 1 <= int(column) <= len(titles):
        return int(column) - 1
    named = ", ".join(repr(str(title)) for title in titles)
    raise UsageError(f"{what} has no column {column!r}; it has {named}")


def _untitled(what: str, columns: list[Any], wanted: TableRequest) -> ObjectInput:
    titles = list(range(1, len(columns) + 1))
    weight = 3 if len(columns) == 3 and wanted.weight is None else wanted.weight
    asked = TableRequest(wanted.columns or (1, 2), weight, wanted.nodes)
    return _titled(what, titles, lambda i: columns[i], asked)


def _whole(column: NDArray[Any], what: str) -> NDArray[Any]:
    """Whole numbers out of an array that is one of floats for its weights."""
    fine = (column == np.floor(column)) & (np.abs(column) < _EXACT)  # nan and inf are not
    if not fine.all():
        place = int(np.argmin(fine))
        raise UsageError(
            f"{what}: row {place:,} (from 0) names a node {column[place]}; in an array of numbers "
            "names are whole numbers from 0 on"
        )
    return column.astype(np.int64)


def _nth(frame: Any, place: int) -> Any:
    """A column by its place: pandas' titles may be there twice."""
    return frame.iloc[:, place] if hasattr(frame, "iloc") else frame.to_series(place)


def _series(series: Any) -> Any:
    """A column of pandas or polars as an array, a missing value as None."""
    kind = str(series.dtype)
    if kind == "category":
        series = series.astype(series.cat.categories.dtype)
    values = series.to_numpy()
    if values.dtype.kind == "f" and not kind.lower().startswith("float"):
        values = objects(None if is_missing(value) else value for value in series.to_list())
    elif values.dtype == object:
        values = objects(None if is_missing(value) else value for value in values)
    return values


def _arrow(column: Any) -> Any:
    """A column of Arrow: of text as it is, for DuckDB reads that; else as an array."""
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return column
    if column.null_count:
        return objects(column.to_pylist())
    return np.asarray(column)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# -- storing -----------------------------------------------------------------------------


_ROWS = 1 << 20

_Piece = TypeVar("_Piece", NDArray[Any], tuple[NDArray[Any], NDArray[Any]])


class How(NamedTuple):
    """How links become those of the graph."""

    undirected: bool
    keep_self_loops: bool
    count_duplicates: bool
    sides: tuple[str, str] | None = None
    """What the two sides of a bipartite table are called; None for nodes of one kind."""


def store_links(
    directory: Path, tables: Tables, how: How, progress: Progress
) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Write what is loaded into ``directory``; returns the facts that come of it, and the files."""
    progress("numbering the names", 0, 0)
    mark = tables.mark(how.sides[0]) if how.sides else ""
    count = tables.number()
    left_out = tables.cut()
    if left_out is not None and not count:
        raise nothing_left(left_out.nodes)
    dense = tables.dense(count)
    kind = "dense" if dense else "integers" if tables.integers else "text"
    progress("sorting the links", 0, 0)
    read = tables.sort(dense, how.undirected)
    keys = _counted(tables.link_keys(), "writing the links", read, progress)
    edges, loops, files = _write_links(directory, keys, count, how.keep_self_loops)
    weights = {}
    if tables.weighted or how.count_duplicates:
        found = tables.weighted_links() if tables.weighted else _ones(tables, how.undirected)
        pairs = _counted(found, "writing the weights", read, progress)
        weights["weights"], entry = write_weights(directory, pairs, how.keep_self_loops)
        files |= entry
    progress("storing the names", 0, 0)
    files |= write_names(directory, tables, kind, count)
    facts = graph_facts(count, edges, kind, how, read - edges - loops, loops) | weights
    if how.sides:
        left = tables.marked()
        facts[SIDES] = Sides(how.sides, mark, left, count - left).to_json()
    if left_out is not None:
        left_out.tell()
        facts["excluded"] = left_out.to_json()
    return facts, files


def graph_facts(
    nodes: int, edges: int, names: str, how: How, duplicates: int, loops: int
) -> dict[str, Any]:
    """What the manifest says of any graph's links, however they were sorted; ``duplicates`` and
    ``loops`` are those that were dropped.
    """
    return {
        "nodes": nodes,
        "edges": edges,
        "names": names,
        "undirected": how.undirected,
        "self_loops_kept": how.keep_self_loops,
        "dropped": {"duplicates": duplicates, "self_loops": loops},
    }


def _ones(
    tables: Tables, undirected: bool
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.float64]]]:
    """The keys in ascending order, each with 1; both ways of a self-loop are one link, so that each
    counts half.
    """
    for keys in tables.link_keys():
        loop = keys >> np.uint64(32) == keys & np.uint64(0xFFFFFFFF)
        yield keys, np.where(loop & undirected, 0.5, 1.0)


def _counted(
    pieces: Iterator[_Piece], stage: str, total: int, progress: Progress
) -> Iterator[_Piece]:
    """``pieces``, arrays or tuples of equally long ones, with their rows told to ``progress``."""
    done = 0
    progress(stage, 0, total)
    for piece in pieces:
        yield piece
        done += len(piece[0] if isinstance(piece, tuple) else piece)
        progress(stage, done, total)


def _write_links(
    directory: Path, keys: Iterator[NDArray[np.uint64]], nodes: int, keep_self_loops: bool
) -> tuple[int, int, dict[str, Entry]]:
    """Stream ascending keys into the three arrays; returns edges, self-loops dropped, entries.

    A self-loop that is dropped is counted as often as it was read, so that rows = edges +
    duplicates + self-loops (twice the rows of an undirected graph).
    """
    from cocite.kernels.links import add_counts

    degrees = np.zeros(nodes, np.uint32)
    edges, loops = 0, 0
    next_node = 0
    previous = np.empty(0, np.uint64)
    with (
        ArrayWriter(directory / OFFSETS, np.uint64) as offsets,
        ArrayWriter(directory / SOURCES, np.uint32) as sources,
    ):
        for piece in keys:
            destination = (piece >> np.uint64(32)).astype(np.uint32)
            source = (piece & np.uint64(0xFFFFFFFF)).astype(np.uint32)
            keep = _changes(piece, previous)
            if not keep_self_loops:
                loop = source == destination
                loops += int(loop.sum())
                keep &= ~loop
            previous = piece[-1:]
            destination, source = destination[keep], source[keep]
            if source.size:
                last = int(destination[-1])
                for low in range(next_node, last + 1, _ROWS):
                    reached = np.arange(low, min(low + _ROWS, last + 1), dtype=np.uint32)
                    begins = np.searchsorted(destination, reached).astype(np.uint64)
                    offsets.write(begins + np.uint64(edges))
                next_node = last + 1
                sources.write(source)
                add_counts(source, degrees)
                edges += source.size
        for low in range(next_node, nodes + 1, _ROWS):
            offsets.write(np.full(min(_ROWS, nodes + 1 - low), edges, np.uint64))
    with ArrayWriter(directory / DEGREES, np.uint32) as out:
        out.write(degrees)
    files = {OFFSETS: offsets.finished, SOURCES: sources.finished, DEGREES: out.finished}
    return edges, loops, files


def _changes(piece: NDArray[np.uint64], previous: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Where a value differs from the one before it, which for the first is in ``previous``."""
    changes = np.ones(piece.size, bool)
    changes[1:] = piece[1:] != piece[:-1]
    if previous.size and piece.size:
        changes[0] = piece[0] != previous[0]
    return changes


# -- storing -----------------------------------------------------------------------------


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


def store_objects(
    given: ObjectInput,
    output: str | os.PathLike[str] | None,
    how: How,
    means: Resources,
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
    from cocite.io.tables import Tables  # DuckDB: only those who ingest wait for it

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
    with Staging(place, "graph", overwrite=overwrite) as draft:
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
                raise UnrecognizedInput(
                    f"{given.what} has no link, and no node: there is nothing to store"
                )
            merged = tables.trim()
            if exclude is not None:
                tables.leave_out(exclude)
            facts, files = store_links(draft.path, tables, how, progress)
            told, of_titles = ({}, {}) if titles is None else titles.store(draft.path, tables)
        facts["rows"] = read[0].rows
        facts |= {"merged_names": merged} if merged else {}
        facts["dropped"]["bad_rows"] = sum(sum(found.bad_rows.values()) for found in read)
        facts["sources"] = [asdict(found) | {"read_as": found.file} for found in read]
        path = draft.publish(Manifest("graph", facts | told, files | of_titles))
    return replace(Store.open(path, "graph"), home=home, labels=given.labels)


def _length(table: Any) -> int:
    if table is None:
        return 0
    return len(table["a"]) if isinstance(table, dict) else int(table.num_rows)


def _load(tables: Tables, given: ObjectInput, wanted: int, skip: bool | str) -> _Found:
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
        elif not trimmed(name):
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
