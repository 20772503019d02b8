"""Links in memory, in one form: columns that DuckDB reads, and what the names were.

Whatever an object is (``io/object_kinds.py``), its columns of names become one of three:

    integers    NumPy arrays of whole numbers; the graph's names are integers
    text        NumPy arrays of str, or Arrow's; the graph's names are text
    mapped      anything else that can name a node, by the text of each (``graph/name_files.py``)

A missing name stays missing: whoever stores the rows refuses it, or leaves it out.

Cost: a pass over what is no array of numbers; for mapped names some 0.3 microseconds a name, and a
dictionary of the different ones.

Links that are objects in memory: what they are, how they are stored, and the way back.

A new kind is a function that gives a ``ObjectInput``, and its line of ``io/object_kinds.py``.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, UsageError
from cocite.graph.name_files import INTEGERS, NodeLabels, text_of

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
