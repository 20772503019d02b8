"""Titles that are in memory: a mapping of names to titles, pairs, or a table with two columns.

Of a table those columns are name and title that are chosen, or whose titles say so, such as
``name`` and ``title``; else the first two. Of a data frame with one column, and of a series, names
are the index. Rows without a name or a title are passed over.

Cost: some microseconds a title; a table is turned into lists.

Links in graphs of other libraries: SciPy's sparse matrices, NetworkX, igraph.

A link goes from a row to a column of a matrix, as everywhere. All nodes come along, whether they
have links or not. Weights are taken where there are some that tell links apart: values of a matrix
that are not all 1, the attribute ``weight`` of a graph where some link has it, which counts 1 on
links without. All other attributes are left aside.

What an object in memory is, and what reads its links: one table.

A kind is told by the module and the name of the object's class, or of one that it comes from, so
that no library is imported to find out. What no line tells is taken for rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph.name_files import text_of
from cocite.graph.titles import Titling
from cocite.io.object_tables import (
    TableRequest,
    arrow_links,
    names_in,
    numpy_links,
    pair_links,
    series_links,
)
from cocite.io.objects import ObjectInput, is_missing, numbers, object_input, objects
from cocite.io.readers import ReadOptions
from cocite.io.readers.titles import title_places, title_sources


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


# -- titles ------------------------------------------------------------------------------


_ALLOWED = (
    "titles are a mapping of names to titles, pairs of the two, a table with a column for each, or "
    "names of files"
)


def split_titles(
    titles: Any, columns: tuple[str, ...]
) -> tuple[Any, tuple[tuple[str, str], ...] | None]:
    """What was given as titles: names of files, and those that are in memory, one of both None.

    Raises :class:`UsageError` for what holds no titles.
    """
    if titles is None or isinstance(titles, str | os.PathLike):
        return titles, None
    if isinstance(titles, Mapping) or _is_series(titles):
        if columns:
            raise UsageError("title_columns are those of a table: leave them out for a mapping")
        return None, tuple(_checked(titles.items()))
    in_memory, titles = split_objects(titles)
    if not in_memory:
        return titles, None
    return None, tuple(_checked(_rows(titles, columns)))


def titling_of(titles: Any, columns: tuple[str, ...], memory: int) -> Callable[[Path], Titling]:
    """The titles of links that are in memory, files or in memory, too: made in a directory.
    ``memory`` is what DuckDB may take.

    Raises what :meth:`Titling.checked` does.
    """
    files, pairs = split_titles(titles, columns)
    sources = title_sources(files, memory)
    options = ReadOptions()
    named = () if pairs is not None else Titling.checked(sources, columns, options)
    return lambda work: Titling(sources, named, options, work, pairs=pairs or ())


def _is_series(value: Any) -> bool:
    return kind_of_object(value) is None and callable(getattr(value, "items", None))


def _rows(titles: Any, columns: tuple[str, ...]) -> Iterable[Any]:
    """The pairs of a table, or the rows of anything else."""
    kind = kind_of_object(titles)
    if kind is not None and not kind.table:
        raise UsageError(f"{kind.name} holds no titles: {_ALLOWED}")
    if kind is None and not hasattr(titles, "__arrow_c_stream__"):
        if not isinstance(titles, Iterable):
            raise UsageError(f"{type(titles).__name__} holds no titles: {_ALLOWED}")
        return titles
    if isinstance(titles, np.ndarray):
        return titles.tolist()  # type: ignore[no-any-return]
    named, cells = _columns(titles)
    first, second = title_places(named, columns)
    return zip(cells[first](), cells[second](), strict=True)


def _columns(table: Any) -> tuple[list[str], list[Any]]:
    """The titles of columns, and what gives each as a list."""
    if hasattr(table, "iloc"):  # pandas
        named = [str(title) for title in table.columns]
        cells = [lambda i=i: table.iloc[:, i].tolist() for i in range(len(named))]
        if len(named) == 1:
            index = "name" if table.index.name is None else str(table.index.name)
            return [index, *named], [table.index.tolist, *cells]
        return named, cells
    if hasattr(table, "get_columns"):  # polars
        return list(table.columns), [column.to_list for column in table.get_columns()]
    if hasattr(table, "read_all"):
        table = table.read_all()
    if not hasattr(table, "column_names") and not hasattr(table, "schema"):
        from cocite.extras import need

        table = need("pyarrow", "a table of Arrow", "arrow").table(table)
    named = [str(field.name) for field in table.schema]
    return named, [table.column(i).to_pylist for i in range(len(named))]


def _checked(rows: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """(name, title) as text."""
    for row in rows:
        if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != 2:
            raise UsageError(f"{row!r} is no name and its title: {_ALLOWED}")
        name, title = row
        if is_missing(name) or is_missing(title):
            continue
        if not isinstance(title, str | int | float | np.generic):
            raise UsageError(f"the title of {name!r} is {title!r}; a title is text")
        yield text_of(name), str(title)
