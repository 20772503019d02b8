"""Scores of many pairs: arrays, and a table. And the pairs themselves, however they are given.

Pairs are two columns: lists, arrays, columns of pandas, polars or Arrow; or one value that has
both, a table of two columns, an array (pairs, 2), or rows of two.

Many pairs, each asked for itself: the very scores and intervals of single questions.

Where samples are trees, blocks of pairs are asked together, sample by sample
(``kernels/pairs.py``), and their intervals are made some hundred at a time. Else, and of a node and
itself, of few pairs, of refined answers, and where parts have lost different samples, one pair is
asked after another.
Threads take a block each, or a pair. Blocks share nothing, so no score depends on them.

If a question finds a shard of samples to be damaged all pairs are asked again without it, so that
all scores are of the same samples.

Cost: together some 40 ns of the processor a pair and sample, intervals included; one by one some
0.1 ms a pair. Memory: 32 bytes a pair, and for each thread 2 to 11 bytes a node and 8 MiB of
meeting times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import Pace, in_order
from cocite.deadline import check
from cocite.errors import UsageError
from cocite.graph.names import Names
from cocite.index.layouts.reader import PairEvidence, Span
from cocite.measures import WholeSettings
from cocite.results import Writable
from cocite.search.hits import Score, scores_of
from cocite.search.intervals import around
from cocite.search.scorer import Answers, joined

if TYPE_CHECKING:
    from cocite.io.writers import Columns, Target, Types


Ids = NDArray[np.uint32]
Floats = NDArray[np.float64]
Column = Sequence[Any] | NDArray[Any]
_PIECE = 1 << 14
_SHOWN = 3
_FORM = (
    "pairs are two columns of names, a and b; or a table of two columns, an array (pairs, 2), or "
    "rows of two names"
)


@dataclass(frozen=True, eq=False)
class Similarities(Writable):
    """The similarity of each pair, in the order of the pairs: :attr:`score`, :attr:`stderr`,
    :attr:`low` and :attr:`high`, float64[pairs], of the nodes :attr:`a` and :attr:`b` as they were
    given. An item is a :class:`Score`.
    """

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

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` with a row a pair: a, b, score, stderr, low, high."""
        from cocite.extras import need

        return need("pandas", "a table of pandas", "pandas").DataFrame(self._columns())

    def to_polars(self) -> Any:
        """The same as a ``polars.DataFrame``."""
        from cocite.extras import need

        return need("polars", "a table of polars", "polars").DataFrame(self._plain())

    def to_arrow(self) -> Any:
        """The same as a ``pyarrow.Table``. Names that are neither text nor whole numbers are text
        in it.
        """
        from cocite.extras import need

        return need("pyarrow", "an Arrow table", "arrow").table(self._plain())

    def _columns(self) -> dict[str, Any]:
        numbers = {title: getattr(self, title) for title in Score._fields}
        return {"a": _listed(self.a), "b": _listed(self.b), **numbers}

    def _plain(self) -> dict[str, Any]:
        """The columns, with names as text where they are of several types, or of another."""
        columns = self._columns()
        for title in ("a", "b"):
            if set(map(type, columns[title])) not in ({str}, {int}):
                columns[title] = list(map(str, columns[title]))
        return columns

    def _types(self) -> Types:
        columns = self._plain()
        types = dict.fromkeys(columns, "DOUBLE")
        for title in ("a", "b"):
            whole = columns[title] and type(columns[title][0]) is int
            types[title] = "BIGINT" if whole else "VARCHAR"
        return types

    def _write(self, target: Target) -> None:
        target.write_table(self._pieces(), self._types())

    def _pieces(self) -> Iterator[Columns]:
        """Rows for writers, some thousand at a time."""
        columns, types = self._plain(), self._types()
        for low in range(0, len(self), _PIECE):
            piece: dict[str, Any] = {t: values[low : low + _PIECE] for t, values in columns.items()}
            for title in ("a", "b"):
                kind: type = np.int64 if types[title] == "BIGINT" else object
                piece[title] = np.array(piece[title], kind)
            yield piece


def _listed(column: Column) -> list[Any]:
    """A column as a list of Python's own values."""
    found: list[Any] = column.tolist() if isinstance(column, np.ndarray) else list(column)
    return found


def columns_of_pairs(a: Any, b: Any = None) -> tuple[Column, Column]:
    """Two columns of names, lists or arrays of equal length, from both, or from one value that has
    both. Raises :class:`UsageError`.
    """
    if b is None:
        return _separate(a)
    one, other = _column(a, "a"), _column(b, "b")
    if len(one) != len(other):
        raise UsageError(
            f"a has {len(one):,} names and b has {len(other):,}: each of a goes with one of b"
        )
    return one, other


def _separate(pairs: Any) -> tuple[Column, Column]:
    """The two columns of a table, an array, or rows."""
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
            raise UsageError(f"pairs: row {place:,} (from 0) is {row!r}; {_FORM}")
    return [row[0] for row in rows], [row[1] for row in rows]


def _column(values: Any, title: str) -> Column:
    """A column as a list, or an array of whole numbers."""
    if isinstance(values, str | bytes):
        raise UsageError(f"{title} is one text; {_FORM}")
    if not isinstance(values, np.ndarray | list | tuple):
        from cocite.io.object_kinds import names_in

        values = names_in(values)
    if not isinstance(values, np.ndarray):
        return values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    if values.ndim != 1:
        raise UsageError(f"{title} has {values.ndim} dimensions; a column of names has one")
    found: Column = values if values.dtype.kind in "iu" else values.tolist()
    return found


def ids_of(names: Names, column: Column, title: str, numbers: bool) -> Ids:
    """uint32[pairs]: the ids of a column of names, or of ``numbers``, which are ids themselves.

    Raises :class:`UsageError` for what is no id, and for names that no node has, all counted.
    """
    if numbers:
        found = np.asarray(column)
        if found.size and found.dtype.kind not in "iu":
            raise UsageError(
                f"{title} holds {found.dtype}; with ids=True it holds the numbers of nodes: "
                "whole numbers, from 0 on"
            )
        if found.size and not (found.min() >= 0 and found.max() < len(names)):
            raise UsageError(
                f"{title} holds {found.min()} to {found.max()}; ids go from 0 to {len(names) - 1:,}"
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
    """What is to be said of names that no node has."""
    if len(unknown) == 1:
        try:
            names.id(unknown[0])
        except UsageError as error:
            return error
    told = []
    for name in unknown[:_SHOWN]:
        nearest = names.suggest(str(name), 1)
        told.append(f"{str(name)!r}" + (f" (the nearest is {nearest[0]!r})" if nearest else ""))
    more = f" and {len(unknown) - _SHOWN:,} more" if len(unknown) > _SHOWN else ""
    note = f". {names.note}" if names.note else ""
    return UsageError(f"{len(unknown):,} of the names are no nodes: {', '.join(told)}{more}{note}")


# -- pairs -------------------------------------------------------------------------------


Progress = Callable[[str, int, int], None]
_TIMES = 1 << 23
"""Meeting times that a block has at most."""
_LEAST = 1024
_AT_ONCE = 512
"""Pairs whose intervals are made together."""
_TOLD = 1 << 12
"""Pairs that are asked one by one between two words of how many are done."""


def scores_of_pairs(
    first: Ids,
    second: Ids,
    one: Callable[[int, int], Score],
    block: Callable[[Ids, Ids], Floats] | None,
    blocks: int,
    threads: int,
    progress: Progress,
) -> Floats:
    """float64[4, pairs]: scores, standard errors, and the ends of intervals.

    ``one`` asks for a pair. ``block`` asks for many of different nodes at once, in so many
    ``blocks``; None if nothing does.
    """
    found, done = np.empty((4, first.size)), 0
    progress("scoring", 0, first.size)
    apart = np.arange(first.size)
    if block is not None:
        apart, others = np.flatnonzero(first == second), np.flatnonzero(first != second)
        ask = partial(_block, first, second, block)
        pieces = np.array_split(others, blocks)
        for places, values in in_order([ask] * min(threads, blocks), pieces):
            found[:, places] = values
            done += places.size
            progress("scoring", done, first.size)

    def single(place: int) -> tuple[int, Score]:
        return place, one(int(first[place]), int(second[place]))

    workers, pace = [single] * max(1, min(threads, apart.size)), Pace()
    for place, score in _first_alone(workers, apart.tolist(), pace):
        found[:, place] = score
        done += 1
        if done % _TOLD == 0:
            progress("scoring", done, first.size)
    progress("scoring", first.size, first.size)
    return found


def _block(
    first: Ids, second: Ids, ask: Callable[[Ids, Ids], Floats], places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Floats]:
    return places, ask(first[places], second[places])


def _first_alone(
    workers: Sequence[Callable[[int], tuple[int, Score]]], places: list[int], pace: Pace
) -> Iterator[tuple[int, Score]]:
    """All pairs, the first before the others begin, as what all need is made with it."""
    yield from map(workers[0], places[:1])
    yield from in_order(workers, places[1:], pace)


def blocks_of(index: Answers, asked: WholeSettings, pairs: int, threads: int) -> int:
    """In how many blocks so many pairs are asked together; 0 if one by one is better."""
    readers = index.reading(asked)
    least = [reader.pairs_from for reader in readers]
    held = {reader.part.freshness.held.size for reader in index._sampled}
    if len(held) > 1 or any(each is None or pairs < each for each in least):
        return 0
    samples = max(reader.part.samples for reader in readers)
    most = max(_LEAST, _TIMES // samples)
    return max(-(-pairs // most), min(threads, pairs // max(filter(None, least))))


def together(
    index: Answers, asked: WholeSettings, confidence: float, bound: str, first: Ids, second: Ids
) -> Floats:
    """float64[4, pairs] of different nodes, as :func:`scores_of_pairs`."""
    grains, variances = np.zeros(first.size), np.zeros(first.size)
    told: list[tuple[float, PairEvidence]] = []
    span = Span(0.0, 0.0, 0.0)
    for reader in index.reading(asked):
        check()
        own, weight = reader.part.ask_settings(asked), reader.part.weight
        found = reader.pairs(first, second, own)
        grains += weight * found.estimates[:, 0]
        variances += weight * weight * found.estimates[:, 1]
        told.append((weight, found))
    for reader in index._sampling(asked):
        span = span.plus(reader.span(reader.part.ask_settings(asked)), reader.part.weight)
    index.check(grains.tolist())
    scores, errors = map(np.array, scores_of(np.column_stack((np.rint(grains), variances))))
    freshness, room = index._stored.freshness, np.zeros((1, 2, first.size))
    known = None if freshness.since is None else freshness.knowing(first, second)
    for begin in range(0, first.size, _AT_ONCE):
        check()
        some = slice(begin, begin + _AT_ONCE)
        values = [_weighed(weight, each.values(some)) for weight, each in told]
        knowing = None if known is None else known[some]
        draws = joined(values, span, knowing, freshness.alike)
        _, below, above = around(draws, confidence, bound)
        room[0, 0, some], room[0, 1, some] = np.maximum(0.0, below), np.maximum(0.0, above)
    low, high = index._ends(room, scores, np.zeros(first.size, bool), asked)
    return np.stack((scores, errors, low[0], high[0]))


def _weighed(weight: float, values: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    least, most = values
    return (least, most) if weight == 1 else (weight * least, weight * most)
