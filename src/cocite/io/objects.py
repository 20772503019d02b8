"""Links in memory, in one form: columns that DuckDB reads, and what the names were.

Whatever an object is (``io/object_kinds.py``), its columns of names become one of three:

    integers    NumPy arrays of whole numbers; the graph's names are integers
    text        NumPy arrays of str, or Arrow's; the graph's names are text
    mapped      anything else that can name a node, by the text of each (``graph/name_files.py``)

An object is then a source like a file, whose reader registers its columns. What is refused in a row
is what a file's would be: a name that is missing, empty, too long, or has control characters or
turns the direction of text; a number below 0; a weight that is no number from 1e-30 to below 1e30.

Cost: a pass over what is no array of numbers; for mapped names some 0.3 microseconds a name, and a
dictionary of the different ones. The object itself is read where it is.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError, UsageError
from cocite.graph.names import INTEGERS, NodeLabels, text_of
from cocite.graph.spelling import refused_in, trimmed
from cocite.io.readers.contract import EXAMPLES, FormatReader, Found, Job, Read
from cocite.io.readers.parquet import BAD_WEIGHT, MAX_NAME, bad_name
from cocite.io.readers.sources import Source

# -- given -------------------------------------------------------------------------------


_LARGEST = 2**64


@dataclass(frozen=True)
class ObjectInput:
    """Links as they were given: ``what`` is their name in messages, ``links`` and ``nodes`` what
    DuckDB reads, with the columns a, b and, if ``weighted``, w; of nodes a.
    """

    what: str
    links: Any
    nodes: Any
    integers: bool
    weighted: bool
    labels: NodeLabels | None
    undirected: bool = False


def objects(values: Iterable[object]) -> NDArray[np.object_]:
    """An array of Python objects: tuples in it stay tuples."""
    listed = list(values)
    found = np.empty(len(listed), object)
    found[:] = listed
    return found


def is_missing(value: object) -> bool:
    """Whether a value stands for none: None, NaN, pandas' NA and NaT."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def numbers(values: Any, what: str, title: str) -> NDArray[np.float64]:
    """Weights as float64; raises :class:`UsageError` for what are no numbers."""
    found = np.asarray(values)
    if found.dtype == object:
        if any(isinstance(value, str | bytes) for value in found):
            raise UsageError(f"{what}: {title} holds text; weights are numbers: convert it")
        found = np.array([np.nan if is_missing(value) else value for value in found], object)
    if found.dtype.kind not in "iufO":
        raise UsageError(f"{what}: {title} holds {found.dtype}; weights are numbers")
    try:
        return found.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{what}: {title} holds what is no number ({error}); weights are numbers"
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
    titles: Sequence[str] = ("its first column", "its second column"),
) -> ObjectInput:
    """Links from columns of names, NumPy arrays or Arrow's columns of text, and weights. Numbers
    ``below_zero`` are names only where an object says so, as mostly they stand for no node.

    Raises :class:`UsageError` for columns that hold no names, and :class:`InputError` where two
    names would be one.
    """
    called = (*titles[:2], "the list of nodes")
    columns = [a, b] + ([] if nodes is None else [nodes])
    columns = [
        _column(values, what, title, below_zero)
        for values, title in zip(columns, called, strict=False)
    ]
    kinds = {_kind(values) for values in columns if len(values)}
    labels: NodeLabels | None = None
    if kinds == {"integers"}:
        labels = INTEGERS
    elif kinds - {"text"}:
        mapper = _Mapper(what)
        columns = [mapper.column(values) for values in columns]
        labels = mapper.labels()
    first, second, *rest = columns
    return ObjectInput(
        what,
        _table(a=first, b=second) if w is None else _table(a=first, b=second, w=w),
        _table(a=rest[0]) if rest else None,
        labels is INTEGERS,
        w is not None,
        labels,
        undirected,
    )


def _table(**columns: Any) -> Any:
    """What DuckDB reads: a dictionary of arrays, or an Arrow table if some are Arrow's."""
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
    """The column, if it can hold names; whole numbers as an array of them, if there is one."""
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim != 1:
        raise UsageError(f"{what}: {title} has {values.ndim} dimensions; a column of names has one")
    kind = values.dtype.kind
    if kind in "iu":
        return values
    if kind == "U":
        return values.astype(object)
    if kind != "O":
        raise UsageError(f"{what}: {title} holds {values.dtype}; {_advice(kind)}")
    types = set(map(type, values))
    if types == {int}:
        least, most = min(values), max(values)
        if least >= 0 and most < _LARGEST:
            return values.astype(np.uint64)
        small = least >= -_LARGEST // 2 and most < _LARGEST // 2
        return values.astype(np.int64) if small and not below_zero else values
    if not types <= {str, type(None)}:
        values = objects(None if is_missing(value) else value for value in values)
        types = set(map(type, values))
        for bad in types & {bool, np.bool_, bytes, bytearray}:
            raise UsageError(f"{what}: {title} holds {bad.__name__}; {_advice('')}")
    return values


def _advice(kind: str) -> str:
    told = "names are text, or whole numbers from 0 on"
    if kind == "f":
        return (
            told
            + ". Where some were missing, whole numbers become such: leave these rows out, and "
            "convert the others with astype('int64')"
        )
    return told + ". Convert it with astype(str), or name other columns with columns=..."


class _Mapper:
    """Gives every different name its text."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._texts: dict[Hashable, str] = {}
        self._labels: dict[str, Hashable] = {}

    def column(self, values: Any) -> NDArray[np.object_]:
        """The texts of a column; None for those that are missing."""
        return objects(
            None if value is None else self._text(value)
            for value in (values if isinstance(values, np.ndarray) else values.to_pylist())
        )

    def _text(self, label: Any) -> str:
        try:
            known = self._texts.get(label)
        except TypeError:
            raise UsageError(
                f"{self._what}: {label!r} is no name: a name is text, a whole number, or another "
                "value that can be the key of a dictionary, as tuples can"
            ) from None
        if known is None:
            known = text_of(label)
            label = label.item() if isinstance(label, np.generic) else label
            other = self._labels.setdefault(known, label)
            if other != label:
                raise InputError(
                    f"{self._what}: {other!r} and {label!r} are different names, and the same as "
                    f"text: {known!r}. Names are stored as text: call one of them otherwise"
                )
            self._texts[label] = known
        return known

    def labels(self) -> NodeLabels:
        """What the texts were."""
        return NodeLabels(self._labels)


# -- reading -----------------------------------------------------------------------------


_ROW_BYTES = 150
"""What a row takes at most while it is stored, with a name of some length."""
_ADVICE = "Mend it, or pass bad_rows='few' to leave such rows out and count them"


class ObjectSource(Source):
    """Links in memory, or names of nodes, in the place of a file."""

    def __init__(self, given: ObjectInput, table: Any, what: str) -> None:
        super().__init__(None)
        self.given, self.table, self._what = given, table, what
        self.reader = READER
        self.is_pipe = self.is_directory = False
        rows = len(table["a"]) if isinstance(table, dict) else int(table.num_rows)
        self.most_stored = _ROW_BYTES * rows
        self._reported = "", ""  # neither packed nor in another encoding

    @property
    def label(self) -> str:
        """What messages call it."""
        return self._what

    @property
    def short(self) -> str:
        """The same."""
        return self._what


def sources_of(given: ObjectInput) -> tuple[list[Source], list[Source] | None]:
    """The links that are given, and the names of nodes, as sources."""
    links: list[Source] = [ObjectSource(given, given.links, given.what)]
    if given.nodes is None:
        return links, None
    return links, [ObjectSource(given, given.nodes, f"{given.what}, its nodes")]


def _read(job: Job) -> Read:
    """The rows that are clean; raises :class:`InputError` for one that is not."""
    import duckdb

    source = job.source
    assert isinstance(source, ObjectSource)
    job.progress("reading " + source.short, 0, 0)
    integers, weighted = source.given.integers, bool(job.options.weight)
    table, fields = f"given_{job.wanted}", "ab"[: job.wanted]
    kind = "UBIGINT" if integers else "VARCHAR"
    columns = ", ".join(fields) + (", w" if weighted else "")
    rows = f"(SELECT row_number() OVER () - 1 AS row, {columns} FROM {table})"
    bad = " OR ".join(f"({n} IS NULL OR {n} < 0)" if integers else bad_name(n) for n in fields)
    bad += f" OR {BAD_WEIGHT}" if weighted else ""
    cast = ", ".join(f"TRY_CAST({n} AS {kind}) AS {n}" for n in fields)
    cast += ", CAST(w AS DOUBLE) AS w" if weighted else ""
    found, database = Found(source.label, integers=integers), job.database
    try:
        database.register(table, source.table)
        counted = database.execute(f"SELECT count(*), count(*) FILTER ({bad}) FROM {table}")
        ((every, wrong),) = counted.fetchall()
        if wrong:
            query = f"SELECT row, {columns} FROM {rows} WHERE {bad} ORDER BY row LIMIT {EXAMPLES}"
            examples = database.execute(query).fetchall()
            shown = [_said(row, values, job.wanted) for row, *values in examples]
            found.leave_out("bad value", wrong, shown)
            if job.options.bad_rows == "stop":
                raise InputError(f"{found.file}: {found.examples[0]}. {_ADVICE}")
        found.rows = every - wrong
    except duckdb.OutOfMemoryException as error:
        raise ResourceError(
            f"{found.file} does not fit the memory given: {error}. Give more with --memory"
        ) from error
    except duckdb.InvalidInputException as error:  # a surrogate that stands alone
        raise InputError(f"{found.file} holds text that is not Unicode: {error}") from error
    return Read(f"SELECT {cast} FROM {rows} WHERE NOT ({bad})", found)


READER = FormatReader("an object in memory", "links in memory", _read)


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
        elif len(name.encode()) > MAX_NAME:
            wrong = f"{title} is longer than {MAX_NAME:,} bytes"
        elif refused := refused_in(name):
            wrong = f"{title} has {refused}"
        else:
            continue
        break
    else:
        wrong = "its weight is no number from 1e-30 to below 1e30"
    content = repr((*names, *weights))
    return f"row {row:,} (from 0), {content[:200]}: {wrong}"
