"""What an object in memory is, and what reads its links: one table.

A kind is told by the module and the name of the object's class, or of one that it comes from, so
that no library is imported to find out. What no line tells is taken for rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from cocite.errors import UsageError
from cocite.graph.objects.given import Given
from cocite.graph.objects.networks import igraph_links, networkx_links, scipy_links
from cocite.graph.objects.tables import (
    Wanted,
    arrow_links,
    numpy_links,
    pair_links,
    series_links,
)

__all__ = ["KINDS", "Kind", "kind_of_object", "links_of", "told_apart"]


@dataclass(frozen=True)
class Kind:
    """A kind of object: the library and the class it is known by, and what reads it."""

    name: str
    library: str
    class_name: str
    read: Callable[[Any, str, Wanted], Given]
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


def links_of(value: Any, wanted: Wanted, *, tables: bool = False) -> Given:
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


def told_apart(value: Any) -> tuple[bool, Any]:
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
