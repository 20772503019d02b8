"""What an object in memory is, and what reads its links: one table.

A kind is known by the module and the name of the object's class, or of one that it comes from, so
that no library is imported to find out. What no line knows is taken for rows.

Of tables (pandas, polars, Arrow) source and target are the columns whose titles say so, as of files
(``io/readers/dialect.py``), else the first two; unless others are named, by title or by number from
1. Rows that have no titles, pairs and arrays, have the weight as their third value, if there is
one; of a table a column of weights is named.

Of graphs (SciPy's sparse matrices, NetworkX, igraph) all nodes come along, whether they have links
or not. A link goes from a row to a column of a matrix. Weights are taken where there are some that
tell links apart: values of a matrix that are not all 1, the attribute ``weight`` of a graph where
some link has it, which counts 1 on links without. All other attributes are left aside.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.extras import need
from cocite.graph.sides import checked_sides
from cocite.io.objects import ObjectInput, is_missing, numbers, object_input, objects
from cocite.io.readers.dialect import column_place, ends_of, unread_weights
from cocite.options.ingest import IngestOptions

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


def table_request(options: IngestOptions) -> TableRequest:
    """Return what options choose of a table."""
    columns = options.columns.split(",") if isinstance(options.columns, str) else options.columns
    sides = checked_sides(options.bipartite, options.sides)
    return TableRequest(tuple(columns), options.weight_column, options.nodes, sides).checked()


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
    chosen = [column_place(what, titles, title) for title in wanted.columns] or _ends(
        what, titles, wanted
    )
    weight, weights = None, None
    if wanted.weight is not None:
        weight = column_place(what, titles, wanted.weight)
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


# -- graphs ------------------------------------------------------------------------------


def scipy_links(
    matrix: Any, *, names: Sequence[object] | None = None, weighted: bool | None = None
) -> ObjectInput:
    """Links of a sparse matrix, float64 or whole numbers or truth, [nodes, nodes]."""
    what = "the sparse matrix"
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise UsageError(
            f"{what} has the shape {matrix.shape}; it has a row and a column a node, as many of "
            "one as of the other"
        )
    if matrix.dtype.kind not in "biuf":
        raise UsageError(f"{what} holds {matrix.dtype}; its values are weights, or 1")
    coordinates = matrix.tocsr().tocoo()  # which adds up what is there twice
    values = coordinates.data
    there = values != 0
    values = values[there].astype(np.float64)
    a, b = (side[there].astype(np.uint64) for side in (coordinates.row, coordinates.col))
    nodes: Any = np.arange(matrix.shape[0], dtype=np.uint64)
    if names is not None:
        nodes = _named(names, matrix.shape[0], what)
        a, b = nodes[a], nodes[b]
    if weighted is None:
        weighted = bool((values != 1).any())
    return object_input(what, a, b, values if weighted else None, nodes=nodes, titles=_SIDES)


def networkx_links(graph: Any, *, weight: str | None = "weight") -> ObjectInput:
    """Links of a graph of NetworkX, directed or not, with links there once or several times."""
    rows = list(graph.edges(data=weight, default=None) if weight else graph.edges())
    a, b = (objects(row[side] for row in rows) for side in (0, 1))
    weights = _attribute([row[2] for row in rows], _NETWORKX, weight) if weight else None
    return object_input(
        _NETWORKX,
        a,
        b,
        weights,
        nodes=objects(graph.nodes),
        undirected=not graph.is_directed(),
        below_zero=True,
        titles=_SIDES,
    )


def igraph_links(graph: Any, *, weight: str | None = "weight") -> ObjectInput:
    """Links of a graph of igraph; nodes have the names that the attribute ``name`` says, if there
    is one, else their numbers.
    """
    pairs = np.array(graph.get_edgelist(), np.uint64).reshape(-1, 2)
    a, b = pairs[:, 0], pairs[:, 1]
    nodes: Any = np.arange(graph.vcount(), dtype=np.uint64)
    if "name" in graph.vs.attributes():
        nodes = _named(graph.vs["name"], graph.vcount(), _IGRAPH)
        a, b = nodes[a], nodes[b]
    weights = None
    if weight and weight in graph.es.attributes():
        weights = _attribute(graph.es[weight], _IGRAPH, weight)
    undirected = not graph.is_directed()
    return object_input(
        _IGRAPH, a, b, weights, nodes=nodes, undirected=undirected, below_zero=True, titles=_SIDES
    )


_NETWORKX, _IGRAPH = "the graph of NetworkX", "the graph of igraph"
_SIDES = ("the sources of its links", "the targets of its links")


def _attribute(values: list[Any], what: str, weight: str) -> NDArray[np.float64] | None:
    """The weights of links, 1 where one has none; None if none has any."""
    if all(value is None for value in values):
        return None
    filled = objects(1.0 if value is None else value for value in values)
    return numbers(filled, what, f"the attribute {weight!r} of its links")


def _named(names: Sequence[object], count: int, what: str) -> NDArray[Any]:
    found: NDArray[Any] = objects(names_in(names))
    if found.size != count:
        raise UsageError(f"{what} has {count:,} nodes, and there are {found.size:,} names")
    if any(map(is_missing, found)):
        raise UsageError(f"{what}: a node has no name; name all, or none")
    if len(set(found)) != count:
        raise UsageError(f"{what}: two nodes have the same name; each has its own")
    return found


# -- kinds -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """A kind of object: the library and the class it is known by, and what reads it."""

    name: str
    library: str
    class_name: str
    read: Callable[[Any, str, TableRequest], ObjectInput]
    table: bool = True
    """Whether it has rows and columns, of which some can be chosen."""


KINDS: tuple[Kind, ...] = (
    Kind("the data frame of pandas", "pandas", "DataFrame", series_links),
    Kind("the data frame of polars", "polars", "DataFrame", series_links),
    Kind("the Arrow table", "pyarrow", "Table", arrow_links),
    Kind("the Arrow table", "pyarrow", "RecordBatch", arrow_links),
    Kind("the Arrow table", "pyarrow", "RecordBatchReader", arrow_links),
    Kind("the array", "numpy", "ndarray", numpy_links),
    Kind(
        "the sparse matrix",
        "scipy",
        "_spbase",
        lambda matrix, what, wanted: scipy_links(matrix),
        table=False,
    ),
    Kind(
        "the graph of NetworkX",
        "networkx",
        "Graph",
        lambda graph, what, wanted: networkx_links(graph),
        table=False,
    ),
    Kind(
        "the graph of igraph",
        "igraph",
        "Graph",
        lambda graph, what, wanted: igraph_links(graph),
        table=False,
    ),
)
_ROWS = Kind("the list of links", "builtins", "list", pair_links)


def kind_of_object(value: object) -> Kind | None:
    """What an object is; None if no line says so."""
    for origin in type(value).__mro__:
        library = origin.__module__.partition(".")[0]
        for kind in KINDS:
            if (kind.library, kind.class_name) == (library, origin.__name__):
                return kind
    return None


def of_library(value: Any, library: str) -> Any:
    """Return an object that is no table, of a library; raise :class:`UsageError` for another."""
    kind = kind_of_object(value)
    if kind is None or kind.library != library:
        (name,) = (each.name for each in KINDS if each.library == library and not each.table)
        raise UsageError(f"{type(value).__name__} is not {name.replace('the', 'a', 1)}")
    return value


def links_of(value: Any, wanted: TableRequest, *, tables: bool = False) -> ObjectInput:
    """The links in an object; only ``tables``, and rows, where it is said so.

    Raises :class:`UsageError`, :class:`~cocite.errors.InputError`.
    """
    kind = kind_of_object(value)
    if kind is None and hasattr(value, "__arrow_c_stream__"):
        kind = Kind("the Arrow table", "pyarrow", "Table", arrow_links)
    if kind is None:
        if hasattr(value, "collect_schema") and hasattr(value, "collect"):
            raise UsageError("the table is a lazy one of polars: collect() it first")
        if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
            raise UsageError(
                f"{type(value).__name__} holds no links. Give pairs, a NumPy array (links, 2), a "
                "table of pandas, polars or Arrow, a sparse matrix, or a graph of NetworkX or "
                "igraph"
            )
        kind = _ROWS
    if tables and not kind.table:
        call = "from_" + kind.library
        raise UsageError(f"{kind.name} is no table of links: Graph.{call} reads it")
    if not kind.table and (wanted.columns or wanted.weight is not None or wanted.nodes is not None):
        raise UsageError(
            f"{kind.name} has no columns, and its nodes are its own: leave columns, weight_column "
            "and nodes out"
        )
    return kind.read(value, kind.name, wanted)


def split_objects(value: Any) -> tuple[bool, Any]:
    """Whether a value is an object with links, and not names of files; and the value, which is a
    list if it was an iterator.
    """
    if isinstance(value, str | bytes | os.PathLike):
        return False, value
    known = kind_of_object(value) is not None or hasattr(value, "__arrow_c_stream__")
    if known or not isinstance(value, Iterable):
        return True, value
    if isinstance(value, Iterator):
        value = list(value)
    first = next(iter(value), None)
    return first is not None and not isinstance(first, str | bytes | os.PathLike), value
