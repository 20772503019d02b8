"""Links in memory, as sources: pairs, arrays, tables, matrices and graphs.

Objects are recognized by the module and name of their class or a base class, so no library is
imported; other iterables are read as rows. A column of names consists of integers, of text, or of
other hashable values, which are *mapped*: each is stored as text (``graph/name_files.py``).

Table columns are selected as in files (``io/readers/dialect.py``). Pairs and arrays may have a
weight as the third value. Matrices and graphs keep nodes without links. A matrix's weights are its
values, unless all are 1; a graph's weights are the attribute ``weight`` (1 where missing).
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError, UsageError
from cocite.extras import need
from cocite.graph.names import INTEGERS, NodeLabels, text_of
from cocite.graph.sides import checked_sides
from cocite.graph.spelling import refused_in, trimmed
from cocite.io.readers.contract import EXAMPLES, FormatReader, Found, Job, Read
from cocite.io.readers.dialect import choose_columns
from cocite.io.readers.parquet import BAD_WEIGHT, MAX_NAME, bad_name
from cocite.io.readers.sources import Source
from cocite.options.ingest import IngestOptions

_log = logging.getLogger("cocite")
_LARGEST = 2**64
_FORM = "each row must be (source, target) or (source, target, weight)"
_NAMES = (
    "names must be text, or whole numbers, 0 or more: convert the column, or choose other columns "
    "with columns=..."
)
_ENDS = ("the sources of its links", "the targets of its links")


@dataclass(frozen=True)
class ObjectInput:
    """Links in memory, called ``what`` in messages, as tables for DuckDB: ``links`` has the columns
    a, b and, if ``weighted``, w; ``nodes`` has the column a.
    """

    what: str
    links: Any
    nodes: Any
    integers: bool
    weighted: bool
    labels: NodeLabels | None
    undirected: bool = False


# -- tables ------------------------------------------------------------------------------


def columns_of(table: Any) -> tuple[list[Any], Callable[[int], Any]]:
    """Return a table's column names, and a function from position to column."""
    if hasattr(table, "iloc"):  # pandas, where column names may repeat
        return list(table.columns), lambda i: _series(table.iloc[:, i])
    if hasattr(table, "to_series"):
        return list(table.columns), lambda i: _series(table.to_series(i))
    pyarrow = need("pyarrow", "reading Arrow tables", "arrow")
    found = table if isinstance(table, pyarrow.Table) else pyarrow.table(table)
    return found.column_names, lambda i: _arrow(found.column(i))


def _series(series: Any) -> Any:
    """Return a pandas or polars column: Arrow text unchanged, other values as an array."""
    kind = str(series.dtype)
    if kind == "String" and find_spec("pyarrow"):
        return need("pyarrow", "polars text", "arrow").chunked_array(series)
    if getattr(series.dtype, "storage", "") == "pyarrow" and kind.startswith("str"):
        return series.array.__arrow_array__()
    if kind == "category":
        series = series.astype(series.cat.categories.dtype)
    values = series.to_numpy()
    if values.dtype.kind == "f" and not kind.lower().startswith("float"):
        return _without_missing(series.to_list())
    return _without_missing(values) if values.dtype == object else values


def _arrow(column: Any) -> Any:
    """Return an Arrow column: text unchanged, other types as an array."""
    from pyarrow import types

    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return column
    return objects(column.to_pylist()) if column.null_count else np.asarray(column)


def _array_links(array: NDArray[Any], what: str, options: IngestOptions) -> ObjectInput:
    """Return the links in an array: (links, 2), (links, 3), or a structured array."""
    if array.dtype.names:
        fields = array.dtype.names
        return _table_links(what, list(fields), lambda i: array[fields[i]].ravel(), options)
    if array.ndim != 2 or array.shape[1] not in (2, 3):
        raise UsageError(
            f"{what} has the shape {array.shape}; it must be (links, 2), or (links, 3) with "
            "weights: a source and a target per row"
        )
    columns = [array[:, i] for i in range(array.shape[1])]
    if array.dtype.kind == "f" and len(columns) == 3:
        columns[:2] = [_whole(column, what) for column in columns[:2]]
    return _untitled(what, columns, options)


def _pair_links(rows: Iterable[Any], what: str, options: IngestOptions) -> ObjectInput:
    listed = list(rows)
    widths = set()
    for place, row in enumerate(listed):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence | np.ndarray):
            raise UsageError(
                f"{what}: row {place:,} (counting from 0) is {repr(row)[:60]}; {_FORM}"
            )
        widths.add(len(row))
        if len(row) not in (2, 3) or len(widths) > 1:
            raise UsageError(
                f"{what}: row {place:,} (counting from 0) has {len(row)} values: "
                f"{repr(row)[:60]}; {_FORM}, and all rows must have the same length"
            )
    columns = list(zip(*listed, strict=True)) if listed else [(), ()]
    return _untitled(what, [objects(column) for column in columns], options)


def names_in(nodes: Any) -> Any:
    """Return node names from a list, an array, or a table column."""
    if nodes is None or isinstance(nodes, np.ndarray):
        return nodes
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Iterable):
        raise UsageError(f"nodes is {repr(nodes)[:60]}; it must be a list of names")
    library = type(nodes).__module__.partition(".")[0]
    if library in ("pandas", "polars") and hasattr(nodes, "dtype"):
        return _series(nodes)
    return _arrow(nodes) if library == "pyarrow" else objects(nodes)


def _untitled(what: str, columns: list[Any], options: IngestOptions) -> ObjectInput:
    weight = 3 if len(columns) == 3 and options.weight_column is None else options.weight_column
    chosen = replace(options, columns=options.columns or (1, 2), weight_column=weight)
    return _table_links(what, [*range(1, len(columns) + 1)], lambda i: columns[i], chosen)


def _table_links(
    what: str, titles: list[Any], column: Callable[[int], Any], options: IngestOptions
) -> ObjectInput:
    asked = options.columns
    asked = tuple(asked.split(",") if isinstance(asked, str) else asked)
    if len(asked) not in (0, 2):
        shown = ", ".join(map(str, asked))
        raise UsageError(f"columns is {shown}; it must be two columns, source and target")
    sides = checked_sides(options.bipartite, options.sides)
    found = choose_columns(what, titles, 2, asked, options.weight_column, sides)
    called = [repr(titles[i]) for i in found.ends]
    if not asked and (len(titles) > 2 or found.ends != (0, 1)):
        _log.info(
            f"{what}: links go from {' to '.join(called)}; to choose other columns: "
            "columns=(source, target)"
        )
    weights = None
    if found.weight is not None:
        weights = numbers(column(found.weight), what, f"column {titles[found.weight]!r}")
    elif found.unread:
        _log.warning(
            f"{what}: column {found.unread!r} is ignored, and links have no weights; to use it: "
            f"weight_column={found.unread!r}"
        )
    first, second = map(column, found.ends)
    ends = [f"column {each}" for each in called]
    return object_input(what, first, second, weights, nodes=names_in(options.nodes), titles=ends)


def _whole(column: NDArray[Any], what: str) -> NDArray[Any]:
    """Convert ids in a float array, which also contains weights, to integers."""
    exact = np.abs(column) < 2**53  # exact as float64; False for nan and inf
    fine = (column == np.floor(column)) & exact
    if not fine.all():
        place = int(np.argmin(fine))
        raise UsageError(
            f"{what}: row {place:,} (counting from 0) has the node {column[place]}; in a numeric "
            "array, names must be whole numbers, 0 or more"
        )
    return column.astype(np.int64)


# -- graphs ------------------------------------------------------------------------------


def _scipy_links(matrix: Any, what: str, options: IngestOptions) -> ObjectInput:
    """Return the links in a numeric or boolean matrix [nodes, nodes], from rows to columns."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UsageError(
            f"{what} has the shape {matrix.shape}; it must be square, with a row and a column per "
            "node"
        )
    if matrix.dtype.kind not in "biuf":
        raise UsageError(f"{what} holds {matrix.dtype}; its values must be numbers or booleans")
    coordinates = matrix.tocsr().tocoo()  # adds up duplicates
    there = coordinates.data != 0
    values = coordinates.data[there].astype(np.float64)
    a, b = (side[there].astype(np.uint64) for side in (coordinates.row, coordinates.col))
    nodes: Any = np.arange(matrix.shape[0], dtype=np.uint64)
    if options.nodes is not None:
        nodes = _named(options.nodes, matrix.shape[0], what)
        a, b = nodes[a], nodes[b]
    weights = values if bool((values != 1).any()) else None
    return object_input(what, a, b, weights, nodes=nodes, titles=_ENDS)


def _weight_of(options: IngestOptions) -> str | None:
    """Return the name of the weight attribute; None to count duplicates instead."""
    if options.weight_column is None:
        return None if options.count_duplicates else "weight"
    return str(options.weight_column)


def _networkx_links(graph: Any, what: str, options: IngestOptions) -> ObjectInput:
    weight = _weight_of(options)
    rows = list(graph.edges(data=weight or False, default=None))
    ends = [objects(row[side] for row in rows) for side in (0, 1)]
    values = [row[2] for row in rows] if weight else []
    return _graph_links(what, ends, values, objects(graph.nodes), not graph.is_directed(), options)


def _igraph_links(graph: Any, what: str, options: IngestOptions) -> ObjectInput:
    """Return the links of an igraph graph; node names are its ``name`` attribute, or indices."""
    weight, ends = _weight_of(options), np.array(graph.get_edgelist(), np.uint64).reshape(-1, 2).T
    nodes: Any = np.arange(graph.vcount(), dtype=np.uint64)
    if "name" in graph.vs.attributes():
        nodes = _named(graph.vs["name"], graph.vcount(), what)
        ends = nodes[ends]
    values = graph.es[weight] if weight in graph.es.attributes() else []
    return _graph_links(what, ends, values, nodes, not graph.is_directed(), options)


def _graph_links(
    what: str, ends: Any, values: list[Any], nodes: Any, both: bool, options: IngestOptions
) -> ObjectInput:
    """Return a graph's links, with weights (1 where missing) if any link has one."""
    weights, title = None, f"the attribute {_weight_of(options)!r} of its links"
    if values.count(None) < len(values):
        weights = numbers(objects(1.0 if v is None else v for v in values), what, title)
    elif options.weight_column is not None:
        raise UsageError(f"the links of {what} have no attribute {options.weight_column!r}")
    a, b = ends
    return object_input(
        what, a, b, weights, nodes=nodes, undirected=both, below_zero=True, titles=_ENDS
    )


def _named(names: Sequence[object], count: int, what: str) -> NDArray[Any]:
    found: NDArray[Any] = objects(names_in(names))
    if found.size != count:
        raise UsageError(f"{what} has {count:,} nodes, but {found.size:,} names")
    if any(map(is_missing, found)):
        raise UsageError(f"{what}: a node has no name; name all nodes, or none")
    if len(set(found)) != count:
        raise UsageError(f"{what}: two nodes have the same name; names must be unique")
    return found


# -- kinds -------------------------------------------------------------------------------


def _frame_links(table: Any, what: str, options: IngestOptions) -> ObjectInput:
    return _table_links(what, *columns_of(table), options)


class Kind(NamedTuple):
    """A supported kind of object; ``table`` says whether it has selectable columns."""

    name: str
    library: str
    class_name: str
    read: Callable[[Any, str, IngestOptions], ObjectInput]
    table: bool = True


_ARROW = Kind("the Arrow table", "pyarrow", "Table", _frame_links)
_ROWS = Kind("the list of links", "builtins", "list", _pair_links)
KINDS: tuple[Kind, ...] = (
    Kind("the pandas data frame", "pandas", "DataFrame", _frame_links),
    Kind("the polars data frame", "polars", "DataFrame", _frame_links),
    *(_ARROW._replace(class_name=name) for name in ("Table", "RecordBatch", "RecordBatchReader")),
    Kind("the array", "numpy", "ndarray", _array_links),
    Kind("the sparse matrix", "scipy", "_spbase", _scipy_links, table=False),
    Kind("the NetworkX graph", "networkx", "Graph", _networkx_links, table=False),
    Kind("the igraph graph", "igraph", "Graph", _igraph_links, table=False),
)


def kind_of_object(value: object) -> Kind | None:
    """Return the kind of an object, or None."""
    for origin in type(value).__mro__:
        library = origin.__module__.partition(".")[0]
        for kind in KINDS:
            if (kind.library, kind.class_name) == (library, origin.__name__):
                return kind
    return _ARROW if hasattr(value, "__arrow_c_stream__") else None


def links_of(value: Any, options: IngestOptions) -> ObjectInput:
    """Return an object's links; raises :class:`UsageError`, :class:`~cocite.errors.InputError`."""
    kind = kind_of_object(value)
    if kind is None:
        if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
            raise UsageError(
                f"{type(value).__name__} contains no links. Pass pairs, a NumPy array (links, 2), "
                "a pandas, polars or Arrow table, a sparse matrix, or a NetworkX or igraph graph"
            )
        kind = _ROWS
    matrix = kind.library == "scipy"  # nodes may have names; values are weights
    other = options.weight_column if matrix else options.nodes
    if not kind.table and (options.columns or other is not None):
        own = "its values are the weights" if matrix else "it has its own nodes"
        raise UsageError(
            f"{kind.name} has no columns, and {own}: omit columns and "
            f"{'weight_column' if matrix else 'nodes'}"
        )
    return kind.read(value, kind.name, options)


def split_objects(value: Any) -> tuple[bool, Any]:
    """Return (whether ``value`` holds links, not file names; the value, or an iterator's items)."""
    if isinstance(value, str | bytes | os.PathLike):
        return False, value
    if kind_of_object(value) or isinstance(value, dict) or not isinstance(value, Iterable):
        return True, value
    if isinstance(value, Iterator):
        value = list(value)
    first = next(iter(value), None)
    return first is not None and not isinstance(first, str | bytes | os.PathLike), value


# -- columns -----------------------------------------------------------------------------


def objects(values: Iterable[object]) -> NDArray[np.object_]:
    """Return a one-dimensional array of Python objects, without unpacking tuples."""
    listed = list(values)
    found = np.empty(len(listed), object)
    found[:] = listed
    return found


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or pandas' NA or NaT."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def _without_missing(values: Iterable[object]) -> NDArray[np.object_]:
    return objects(None if is_missing(value) else value for value in values)


def numbers(values: Any, what: str, title: str) -> NDArray[np.float64]:
    """Return weights as float64; raises :class:`UsageError` for other values."""
    found = np.asarray(values)
    if found.dtype == object:
        if any(isinstance(value, str | bytes) for value in found):
            raise UsageError(
                f"{what}: {title} contains text; weights must be numbers. Convert them"
            )
        found = np.array([np.nan if is_missing(value) else value for value in found], object)
    try:
        return found.astype(np.float64, casting="unsafe" if found.dtype == object else "same_kind")
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{what}: {title} is not numeric ({error}); weights must be numbers"
        ) from error


def object_input(
    what: str,
    a: Any,
    b: Any,
    w: NDArray[np.float64] | None = None,
    *,
    nodes: Any = None,
    undirected: bool = False,
    below_zero: bool = False,
    titles: Sequence[str],
) -> ObjectInput:
    """Return links from columns of names (NumPy arrays or Arrow text) and weights.

    Negative integers are names only with ``below_zero``, which graphs set; in tables, they usually
    mark missing nodes. Raises :class:`UsageError` for values that cannot be names, and
    :class:`InputError` if two names have the same text.
    """
    given = zip((a, b, nodes), (*titles, "the list of nodes"), strict=True)
    columns = [_column(each, what, title, below_zero) for each, title in given if each is not None]
    kinds = {_kind(values) for values in columns if len(values)}
    labels: NodeLabels | None = None
    if kinds == {"integers"}:
        labels = INTEGERS
    elif kinds - {"text"}:
        columns, labels = _mapped(columns, what)
    links = dict(zip("ab", columns, strict=False)) | ({} if w is None else {"w": w})
    named = None if nodes is None else _table({"a": columns[2]})
    whole, weighted = labels is INTEGERS, w is not None
    return ObjectInput(what, _table(links), named, whole, weighted, labels, undirected)


def _table(columns: dict[str, Any]) -> Any:
    """Return columns in a form that DuckDB reads: a dictionary of arrays, or an Arrow table."""
    if all(isinstance(values, np.ndarray) for values in columns.values()):
        return {title: np.ascontiguousarray(values) for title, values in columns.items()}
    import pyarrow

    return pyarrow.table(columns)


def _kind(values: Any) -> str:
    if not isinstance(values, np.ndarray):
        return "text"
    if values.dtype.kind in "iu":
        return "integers"
    return "text" if all(type(value) is str or value is None for value in values) else "mapped"


def _column(values: Any, what: str, title: str, below_zero: bool) -> Any:
    """Check a column of names; return integers as an integer array."""
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim != 1:
        raise UsageError(f"{what}: {title} has {values.ndim} dimensions; it must have one")
    kind = values.dtype.kind
    if kind in "iu":
        return values
    if kind == "U":
        return values.astype(object)
    if kind != "O":
        raise UsageError(f"{what}: {title} holds {values.dtype}; {_NAMES}")
    types = set(map(type, values))
    if types == {int}:
        least, most = min(values), max(values)
        if least >= 0 and most < _LARGEST:
            return values.astype(np.uint64)
        small = least >= -_LARGEST // 2 and most < _LARGEST // 2
        return values.astype(np.int64) if small and not below_zero else values
    if not types <= {str, type(None)}:
        values = _without_missing(values)
        types = set(map(type, values))
        for bad in types & {bool, np.bool_, bytes, bytearray}:
            raise UsageError(f"{what}: {title} holds {bad.__name__}; {_NAMES}")
    return values


def _mapped(columns: list[Any], what: str) -> tuple[list[Any], NodeLabels]:
    """Return the columns as text (None for missing values), and the label of each text."""
    texts: dict[Hashable, str] = {}
    labels: dict[str, Hashable] = {}

    def text(label: Any) -> str:
        try:
            known = texts.get(label)
        except TypeError:
            raise UsageError(
                f"{what}: {label!r} is not a node name; names are text, whole numbers, or other "
                "hashable values, such as tuples"
            ) from None
        if known is None:
            known = text_of(label)
            label = label.item() if isinstance(label, np.generic) else label
            other = labels.setdefault(known, label)
            if other != label:
                raise InputError(
                    f"{what}: {other!r} and {label!r} are different names with the same text, "
                    f"{known!r}. Names are stored as text: rename one of them"
                )
            texts[label] = known
        return known

    listed = (each if isinstance(each, np.ndarray) else each.to_pylist() for each in columns)
    found = [objects(None if value is None else text(value) for value in each) for each in listed]
    return found, NodeLabels(labels)


# -- reading -----------------------------------------------------------------------------


_ROW_BYTES = 150  # upper bound for a row with long names


class ObjectSource(Source):
    """Links or node names in memory, as a source."""

    def __init__(self, given: ObjectInput, table: Any, what: str) -> None:
        super().__init__(None, what)
        self.given, self.table, self.reader = given, table, READER
        self.is_pipe = self.is_directory = False
        rows = len(table["a"]) if isinstance(table, dict) else int(table.num_rows)
        self.most_stored = _ROW_BYTES * rows
        self.encoding = self.packed = ""


def sources_of(given: ObjectInput) -> tuple[list[ObjectSource], list[ObjectSource] | None]:
    """Return the links and the node names as sources."""
    called = f"{given.what}, its nodes"
    nodes = None if given.nodes is None else [ObjectSource(given, given.nodes, called)]
    return [ObjectSource(given, given.links, given.what)], nodes


def _read(job: Job) -> Read:
    """Read the valid rows; raises :class:`InputError` for others unless they are skipped."""
    import duckdb

    source, wanted = job.source, job.wanted
    assert isinstance(source, ObjectSource)
    job.progress("reading " + source.short, 0, 0)
    integers, weighted = source.given.integers, bool(job.options.weight)
    table, fields = f"given_{wanted}", "ab"[:wanted]
    columns = ", ".join(fields + "w" if weighted else fields)
    rows = f"(SELECT row_number() OVER () - 1 AS row, {columns} FROM {table})"
    bad = " OR ".join(f"({n} IS NULL OR {n} < 0)" if integers else bad_name(n) for n in fields)
    bad += f" OR {BAD_WEIGHT}" if weighted else ""
    kind = "UBIGINT" if integers else "VARCHAR"
    cast = ", ".join(f"TRY_CAST({n} AS {kind}) AS {n}" for n in fields)
    cast += ", CAST(w AS DOUBLE) AS w" if weighted else ""
    found = Found(source.label, integers=integers)
    try:
        job.database.register(table, source.table)
        ((every, wrong),) = job.run(f"SELECT count(*), count(*) FILTER ({bad}) FROM {table}")
        if wrong:
            query = f"SELECT row, {columns} FROM {rows} WHERE {bad} ORDER BY row LIMIT {EXAMPLES}"
            shown = [_wrong(row, values, wanted) for row, *values in job.run(query)]
            found.leave_out("bad value", wrong, shown)
            if job.options.bad_rows == "stop":
                raise InputError(
                    f"{found.file}: {found.examples[0]}. Fix the row, or pass bad_rows='few' to "
                    "skip such rows and count them"
                )
        found.rows = every - wrong
    except duckdb.OutOfMemoryException as error:
        raise ResourceError(
            f"{found.file} exceeds the memory limit: {error}. Raise the limit with --memory "
            "(memory=...)"
        ) from error
    except duckdb.InvalidInputException as error:  # a lone surrogate
        raise InputError(f"{found.file} contains text that is not Unicode: {error}") from error
    return Read(f"SELECT {cast} FROM {rows} WHERE NOT ({bad})", found)


READER = FormatReader("an object in memory", "links in memory", _read)


def _wrong(row: int, values: list[Any], wanted: int) -> str:
    called = ("its source", "its target") if wanted == 2 else ("the name",)
    faults = zip(called, map(_fault, values[:wanted]), strict=True)
    each = (f"{title} {fault}" for title, fault in faults if fault)
    wrong = next(each, "its weight is not a number from 1e-30 to below 1e30")
    return f"row {row:,} (counting from 0), {repr(tuple(values))[:200]}: {wrong}"


def _fault(name: Any) -> str:
    if name is None:
        return "is missing"
    if isinstance(name, int):
        below = "is a number below 0; names must be text, or whole numbers, 0 or more"
        return below if name < 0 else ""
    if not trimmed(name):
        return "is empty"
    if len(name.encode()) > MAX_NAME:
        return f"is longer than {MAX_NAME:,} bytes"
    refused = refused_in(name)
    return f"has {refused}" if refused else ""
