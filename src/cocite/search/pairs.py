"""Score many pairs, and run many queries, on all cores.

Pairs come as two columns (lists, arrays, or pandas, polars or Arrow columns), or as one value: a
two-column table, an array (pairs, 2), or rows of two. Scores and intervals equal those of single
queries, whatever the number of threads. If samples are in trees, blocks of pairs are scored
together, sample by sample (``kernels/pairs.py``).

Blocks, with intervals, take about 40 ns of CPU time per pair per sample; single pairs take
about 0.1 ms each. Memory is 32 bytes per pair and, per thread, 2 to 11 bytes per node and 8 MiB of
meeting times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import Pace, in_order
from cocite.constants import Floats, Ids
from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.progress import shows
from cocite.results import NodeTable
from cocite.search.hits import HitLists, Hits, Score

_Index = TypeVar("_Index")
Column = Sequence[Any] | NDArray[Any]
_PIECE = 1 << 14
_SHOWN = 3
_FORM = (
    "pairs must be two columns of names (a and b), a table of two columns, an array of shape "
    "(n, 2), or rows of two names"
)


@dataclass(frozen=True, eq=False)
class Similarities(NodeTable):
    """Similarities of pairs: a sequence of :class:`Score`, and a table.

    The columns are :attr:`a` and :attr:`b`, the nodes as passed, and :attr:`score`,
    :attr:`stderr`, :attr:`low` and :attr:`high`, float64[pairs].
    """

    _named = ("a", "b")
    a: Column
    b: Column
    score: Floats
    stderr: Floats
    low: Floats
    high: Floats

    def __len__(self) -> int:
        return self.score.size

    def __getitem__(self, place: int) -> Score:
        values = self.score, self.stderr, self.low, self.high
        return Score(*(float(each[place]) for each in values))

    def __iter__(self) -> Iterator[Score]:
        return map(self.__getitem__, range(len(self)))

    def _columns(self) -> dict[str, Any]:
        numbers = {title: getattr(self, title) for title in Score._fields}
        return {"a": _listed(self.a), "b": _listed(self.b), **numbers}


def _listed(column: Column) -> list[Any]:
    found: list[Any] = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return found


def columns_of_pairs(a: Any, b: Any = None) -> tuple[Column, Column]:
    """Return two columns of equal length, given two columns or one table of both; raises
    :class:`UsageError`.
    """
    if b is None:
        return _separate(a)
    one, other = _column(a, "a"), _column(b, "b")
    if len(one) != len(other):
        raise UsageError(
            f"a has {len(one):,} names and b has {len(other):,}; they must have the same length"
        )
    return one, other


def _separate(pairs: Any) -> tuple[Column, Column]:
    if isinstance(pairs, str | bytes | dict):
        raise UsageError(f"pairs is {type(pairs).__name__}; {_FORM}")
    if isinstance(pairs, np.ndarray):
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise UsageError(f"pairs has the shape {pairs.shape}; {_FORM}")
        return _column(pairs[:, 0], "a"), _column(pairs[:, 1], "b")
    titles = getattr(pairs, "column_names", getattr(pairs, "columns", None))
    if titles is not None and hasattr(pairs, "shape"):
        titles = list(titles)
        if len(titles) != 2 or titles[0] == titles[1]:
            raise UsageError(
                f"pairs has the columns {', '.join(map(repr, titles))}; choose two: "
                "similarities(table['a'], table['b'])"
            )
        return _column(pairs[titles[0]], "a"), _column(pairs[titles[1]], "b")
    try:
        rows = list(pairs)
    except TypeError:
        raise UsageError(f"pairs is {type(pairs).__name__}; {_FORM}") from None
    for place, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__") or len(row) != 2:
            raise UsageError(f"pairs: row {place:,} (counting from 0) is {row!r}; {_FORM}")
    return [row[0] for row in rows], [row[1] for row in rows]


def _column(values: Any, title: str) -> Column:
    if isinstance(values, str | bytes):
        raise UsageError(f"{title} is a single string; {_FORM}")
    if not isinstance(values, np.ndarray | list | tuple):
        from cocite.io.objects import names_in

        values = names_in(values)
    if not isinstance(values, np.ndarray):
        return values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if values.ndim != 1:
        raise UsageError(f"{title} has {values.ndim} dimensions; a column of names must have one")
    found: Column = values if values.dtype.kind in "iu" else values.tolist()
    return found


def ids_of_pairs(names: Names, columns: tuple[Column, Column], *, numbers: bool) -> tuple[Ids, Ids]:
    """Return the ids of two columns; raises :class:`UsageError` for unknown names, and for a pair
    of nodes on different sides.
    """
    first, second = (
        ids_of(names, column, title, numbers) for column, title in zip(columns, "ab", strict=True)
    )
    sides = names.sides
    if sides is not None:
        for place in np.flatnonzero((first < sides.left) != (second < sides.left))[:1].tolist():
            pair = int(first[place]), int(second[place])
            sides.check_alike(pair, names.names(np.array(pair)))
    return first, second


def ids_of(names: Names, column: Column, title: str, numbers: bool) -> Ids:
    """Return uint32[pairs], the ids for a column of names, or of ids if ``numbers``; raises
    :class:`UsageError`.
    """
    if numbers:
        found = np.asarray(column)
        if found.size and found.dtype.kind not in "iu":
            raise UsageError(
                f"{title} contains {found.dtype}; with ids=True it must contain node ids: whole "
                "numbers, 0 or more"
            )
        if found.size and not (found.min() >= 0 and found.max() < len(names)):
            raise UsageError(
                f"{title} contains {found.min()} to {found.max()}; ids are 0 to {len(names) - 1:,}"
            )
        return found.astype(np.uint32)
    ids = np.empty(len(column), np.int64)
    for low in range(0, len(column), _PIECE):
        ids[low : low + _PIECE] = names.found(column[low : low + _PIECE])
    missing = np.flatnonzero(ids < 0)
    if missing.size:
        raise unknown_nodes(names, list(dict.fromkeys(column[i] for i in missing.tolist())))
    return ids.astype(np.uint32)


def unknown_nodes(names: Names, unknown: Sequence[Any]) -> UsageError:
    """Return the error for unknown names, with suggestions."""
    if len(unknown) == 1:
        try:
            names.id(unknown[0])
        except UsageError as error:
            return error
    shown = []
    for name in unknown[:_SHOWN]:
        nearest = names.suggest(str(name), 1)
        shown.append(f"{str(name)!r}" + (f" (the nearest is {nearest[0]!r})" if nearest else ""))
    more = f" and {len(unknown) - _SHOWN:,} more" if len(unknown) > _SHOWN else ""
    note = f". {names.note}" if names.note else ""
    return UsageError(
        f"{len(unknown):,} of the names are not nodes: {', '.join(shown)}{more}{note}"
    )


# -- on all cores ------------------------------------------------------------------------


Progress = Callable[[str, int, int], None]
_REPORTED = 1 << 12
"""Pairs scored one by one between two progress reports."""


@shows("relating nodes")
def related_many(
    nodes: Sequence[object],
    threads: int,
    current: Callable[[], _Index],
    ask: Callable[[_Index, object], Hits],
) -> HitLists:
    """Query each of ``nodes`` on the index that ``current`` returns; start again if the index
    changes.
    """
    while True:
        now = current()
        question = partial(ask, now)
        found = [question(node) for node in nodes[:1]]
        rest = nodes[1:]
        found += in_order([question] * max(1, min(threads, len(rest))), rest)
        if current() is now:
            return HitLists(nodes, found)


@shows("computing similarities")
def scores_of_pairs(
    first: Ids,
    second: Ids,
    one: Callable[[int, int], Score],
    block: Callable[[Ids, Ids], Floats],
    blocks: int,
    threads: int,
    progress: Progress = lambda stage, done, total: None,
) -> Floats:
    """Return float64[4, pairs]: scores, standard errors, lower and upper interval ends.

    ``block`` scores pairs of different nodes, in ``blocks`` blocks; ``one`` scores a single pair,
    and all pairs if ``blocks`` is 0.
    """
    found, done = np.empty((4, first.size)), 0
    progress("scoring", 0, first.size)
    apart = np.arange(first.size)
    if blocks:
        apart, others = np.flatnonzero(first == second), np.flatnonzero(first != second)
        ask = lambda places: (places, block(first[places], second[places]))  # noqa: E731
        pieces = np.array_split(others, blocks)
        for places, values in in_order([ask] * min(threads, blocks), pieces):
            found[:, places] = values
            done += places.size
            progress("scoring", done, first.size)

    def single(place: int) -> tuple[int, Score]:
        return place, one(int(first[place]), int(second[place]))

    workers, places_left = [single] * max(1, min(threads, apart.size)), apart.tolist()
    # The first pair runs alone: it prepares data that all pairs need.
    rest = in_order(workers, places_left[1:], Pace())
    for place, score in chain(map(single, places_left[:1]), rest):
        found[:, place] = score
        done += 1
        if done % _REPORTED == 0:
            progress("scoring", done, first.size)
    progress("scoring", first.size, first.size)
    return found
