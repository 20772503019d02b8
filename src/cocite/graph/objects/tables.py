"""Links in tables: pandas, polars, Arrow, NumPy, and pairs of anything.

Source and target are the columns whose titles say so, as of files (``graph/readers/ends.py``), else
the first two; unless others are named, by title or by number from 1.
Rows that have no titles, pairs and arrays, have the weight as their third value, if there is one;
of a table a column of weights is named.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.extras import need
from cocite.graph.objects.given import Given, given, is_missing, numbers, objects
from cocite.graph.readers.ends import ends_of

__all__ = ["Wanted", "arrow_links", "names_in", "numpy_links", "pair_links", "series_links"]

_log = logging.getLogger("cocite")
_EXACT = 2**53
"""Below it every whole number is a float64."""
_FORM = "links are rows of a source and a target, or of these and a weight"


@dataclass(frozen=True)
class Wanted:
    """What is asked for: ``columns``, titles or numbers from 1, ``weight``, one of these or None,
    and the names of ``nodes`` that are there whether they have links or not; what the ``sides`` of
    a bipartite table are called.
    """

    columns: tuple[str | int, ...] = ()
    weight: str | int | None = None
    nodes: Any = None
    sides: tuple[str, str] | None = None

    def checked(self) -> Wanted:
        """The same; raises :class:`UsageError` for columns that are no two."""
        if len(self.columns) not in (0, 2):
            named = ", ".join(map(str, self.columns))
            raise UsageError(f"columns is {named}; it takes two, source and target")
        return self


def series_links(frame: Any, what: str, wanted: Wanted) -> Given:
    """Links of a data frame of pandas or polars: both have columns that are arrays."""
    return _titled(what, list(frame.columns), lambda i: _series(_nth(frame, i)), wanted)


def arrow_links(table: Any, what: str, wanted: Wanted) -> Given:
    """Links of a table of Arrow, or of what can be one."""
    pyarrow = need("pyarrow", "reading Arrow tables", "arrow")
    if not isinstance(table, pyarrow.Table):
        table = pyarrow.table(table)
    return _titled(what, table.column_names, lambda i: _arrow(table.column(i)), wanted)


def numpy_links(array: NDArray[Any], what: str, wanted: Wanted) -> Given:
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


def pair_links(rows: Iterable[Any], what: str, wanted: Wanted) -> Given:
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


def _titled(what: str, titles: list[Any], column: Callable[[int], Any], wanted: Wanted) -> Given:
    if len(titles) < 2:
        raise UsageError(f"{what} has {len(titles)} columns; a link takes two, source and target")
    chosen = [_place(what, titles, title) for title in wanted.columns] or _ends(
        what, titles, wanted
    )
    weight, weights = None, None
    if wanted.weight is not None:
        weight = _place(what, titles, wanted.weight)
        weights = numbers(column(weight), what, f"column {titles[weight]!r}")
    if len({*chosen, weight}) != 3:
        raise UsageError(
            f"{what}: one column is named twice. Source and target are "
            f"{' and '.join(repr(titles[i]) for i in chosen)}, unless columns=... names others, "
            "and the weight is another"
        )
    called = [f"column {titles[i]!r}" for i in chosen]
    first, second = map(column, chosen)
    return given(what, first, second, weights, nodes=names_in(wanted.nodes), titles=called)


def _ends(what: str, titles: list[Any], wanted: Wanted) -> list[int]:
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


def _untitled(what: str, columns: list[Any], wanted: Wanted) -> Given:
    titles = list(range(1, len(columns) + 1))
    weight = 3 if len(columns) == 3 and wanted.weight is None else wanted.weight
    asked = Wanted(wanted.columns or (1, 2), weight, wanted.nodes)
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
