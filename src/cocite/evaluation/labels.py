"""Labels of nodes, the tree of categories, and bootstrap intervals of means over queries.

A label is a path, such as ``subject.Science.Biology``; a flat class has one part. The classes of a
node at depth d are the first d parts of its labels. Two nodes are *same* if they share a class,
*sibling* if classes of both agree in their first d - 1 parts, and otherwise *other*.

Every figure is a ratio of sums over queries. Intervals lie between quantiles over *resamples*. Each
of these draws as many queries with replacement, the same for all figures, so that easy queries
cancel in differences. Intervals cover the choice of queries, not the samples of the index.

Source: Haveliwala, Gionis, Klein, Indyk 2002 and Fogaras, Racz, *Scaling link-based similarity
search*, section 5.1; Efron, Tibshirani 1993, *An introduction to the bootstrap*, chapter 13.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, UsageError
from cocite.graph.names import Names
from cocite.io.readers import LABELS, NameTable, ReadOptions
from cocite.options.ingest import IngestOptions
from cocite.resources import require

_log = logging.getLogger("cocite")
OTHER, SIBLING, SAME = 0, 1, 2
_EXAMPLES = 3
_PAIR, _PART = 300, 60
"""Bytes per pair of node and label (or per label), and per part of a label."""
_FEW = 10
"""Minimum number of rows for the warning that most labels have a single node."""


@dataclass(frozen=True)
class Labels:
    """Pairs of nodes and labels: ``nodes`` uint32[p], ``labels`` int64[p], positions in ``paths``.

    ``unknown`` counts rows whose node is not in the graph. ``read`` describes how the table was
    read and what was skipped.
    """

    paths: tuple[tuple[str, ...], ...]
    nodes: NDArray[np.uint32]
    labels: NDArray[np.int64]
    unknown: int = 0
    read: str = ""

    @cached_property
    def labeled(self) -> NDArray[np.uint32]:
        """Return the ids of the labeled nodes, ascending."""
        return np.unique(self.nodes)

    @cached_property
    def usual_depth(self) -> int:
        """Return the most common label depth, the largest in a tie."""
        lengths = Counter(len(self.paths[label]) for label in self.labels.tolist())
        return max(lengths, key=lambda length: (lengths[length], length))

    def of(self, node: int) -> tuple[str, ...]:
        """Return the labels of a node, as text."""
        own = self.labels[self.nodes == node].tolist()
        return tuple(".".join(self.paths[label]) for label in own)

    def collapsed(self, depth: int | None = None) -> Hierarchy:
        """Return the classes at ``depth``, by default the whole labels."""
        deepest = max(map(len, self.paths))
        depth = deepest if depth is None else depth
        if depth < 1:
            raise UsageError(f"depth is {depth}; it must be a whole number, 1 or more")
        return Hierarchy(self, depth)


def read_labels(
    path: Path,
    names: Names,
    columns: Sequence[int | str] = (1, 2),
    separator: str = ".",
    *,
    delimiter: str = "auto",
    header: str = "auto",
    bad_rows: str = "stop",
    memory: int | None = None,
) -> Labels:
    """Read labels from a table of names and paths, one row per label.

    Parameters
    ----------
    path
        Text (tabs, commas, semicolons, bars or blanks; compressed or not) or Parquet.
    names
        Names of the graph's nodes. Rows with other names are counted.
    columns
        The node and label columns, by name or by number (from 1).
    separator
        The separator between the parts of a path; empty for flat labels.
    delimiter, header, bad_rows
        As for :func:`~cocite.ingest`. A first row that names a node of the graph is not a header,
        unless ``header`` says so.
    memory
        Maximum bytes. Sorting takes about 600 bytes per pair, in addition to the distinct labels.

    Raises
    ------
    ResourceError
        If the labels take more than ``memory``.
    InputError
        If the table cannot be read, or has no labels for nodes of the graph.
    UsageError
        For an invalid option, or an ambiguous file.
    """
    found: dict[tuple[str, ...], int] = {}
    ids: dict[str, int] = {}
    pairs: set[tuple[int, int]] = set()
    strangers: dict[str, None] = {}
    unknown = held = 0
    chosen = IngestOptions(delimiter=delimiter, header=header, bad_rows=bad_rows)
    options = replace(ReadOptions.checked(chosen), columns=tuple(map(str, columns)))
    table = NameTable(path, LABELS, options, lambda name: names.find(name) is not None)
    rows = enumerate(table, 1)
    for row, (name, label) in rows:
        node = ids.get(name)
        if node is None:
            node = names.find(name)
            if node is None:
                unknown += 1
                if len(strangers) < _EXAMPLES:
                    strangers[name] = None
                continue
            ids[name] = node
        parts = tuple(filter(None, label.split(separator))) if separator else (label,)
        if not parts:
            continue
        if parts not in found:
            found[parts] = len(found)
            held += _PAIR + _PART * len(parts) + len(label)
        held += _PAIR * ((node, found[parts]) not in pairs)
        pairs.add((node, found[parts]))
        if memory is not None and 2 * held > memory:
            total = row + sum(1 for _ in rows)
            require(2 * held * total // row + 1, memory, f"holding the {total:,} labels of {path}")
    if not pairs:
        how = table.describe().removeprefix(f"{table.label}: ")
        raise InputError(
            f"{path} has no labels for nodes of the graph. Its names are "
            + (", ".join(map(repr, strangers)) or "nothing")
            + f". The file was read as {how}; set the columns of names and labels with "
            "--label-columns (label_columns=...), or their separator with --delimiter "
            "(delimiter=...)"
        )
    nodes, labels = np.array(sorted(pairs)).T
    alone = int(np.count_nonzero(np.bincount(labels) == 1))
    if len(pairs) >= _FEW and 2 * alone > len(found) and 4 * alone > len(pairs):
        _log.warning(
            f"{path}: {alone:,} of its {len(found):,} labels have a single node, so lists cannot "
            f"be evaluated by them. Names and labels were read from columns {columns[0]} and "
            f"{columns[1]}; to read other columns: --label-columns (label_columns=...)"
        )
    return Labels(tuple(found), nodes.astype(np.uint32), labels, unknown, table.describe())


class Hierarchy:
    """The classes of labeled nodes at a depth.

    A node's row is its position among the labeled nodes. The object stores the classes of each row,
    and the rows of each class and of each group of sibling classes.
    """

    def __init__(self, labels: Labels, depth: int) -> None:
        self.depth = depth
        paths = [path[:depth] for path in labels.paths]
        self.classes = tuple(sorted(set(paths)))
        groups = sorted({path[: depth - 1] for path in self.classes})
        number = {path: i for i, path in enumerate(self.classes)}
        group = {path: i for i, path in enumerate(groups)}
        of_label = np.array([number[path] for path in paths])
        self._group = np.array([group[path[: depth - 1]] for path in self.classes])
        pairs = np.unique(np.stack([labels.nodes, of_label[labels.labels]], axis=1), axis=0)
        nodes, rows = np.unique(pairs[:, 0], return_inverse=True)
        self._row = np.full(int(nodes[-1]) + 2, nodes.size)  # the last row: unlabeled nodes
        self._row[nodes] = np.arange(nodes.size)
        self.nodes = nodes.size
        """Number of labeled nodes."""
        self._of_row = _gathered(rows, pairs[:, 1], nodes.size + 1)
        self._of_class = _gathered(pairs[:, 1], rows, len(self.classes))
        self._of_group = _gathered(self._group[pairs[:, 1]], rows, len(groups))

    def _own(self, node: int) -> NDArray[np.int64]:
        """Return the classes of a node."""
        return self._of_row[int(self._row[min(node, self._row.size - 1)])]

    def relation(self, node: int, others: NDArray[np.uint32]) -> NDArray[np.int8]:
        """Return the relation of each of ``others`` to ``node``, SAME, SIBLING or OTHER: int8."""
        found = np.zeros(self.nodes + 1, np.int8)
        own = self._own(node)
        for group in self._group[own].tolist():
            found[self._of_group[group]] = SIBLING
        for one in own.tolist():
            found[self._of_class[one]] = SAME
        related: NDArray[np.int8] = found[self._row[np.minimum(others, self._row.size - 1)]]
        return related

    def same_count(self, node: int) -> int:
        """Return how many other nodes share a class with ``node``."""
        members = [self._of_class[one] for one in self._own(node).tolist()]
        if len(members) == 1:
            return int(members[0].size) - 1
        return max(0, np.unique(np.concatenate([*members, np.zeros(0, np.int64)])).size - 1)


def _gathered(
    keys: NDArray[np.int64], values: NDArray[np.int64], count: int
) -> list[NDArray[np.int64]]:
    """Group ``values`` by key, for all keys below ``count``."""
    order = np.argsort(keys, kind="stable")
    ends = np.cumsum(np.bincount(keys, minlength=count))
    return np.split(values[order], ends[:-1])


_CELLS = 1 << 18


class Interval(NamedTuple):
    """A figure and its confidence interval, NaN if undefined."""

    value: float
    low: float
    high: float


class Bootstrap:
    """Bootstrap resamples of a set of queries."""

    def __init__(
        self, queries: int, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
    ) -> None:
        """Prepare the resamples. Raises :class:`UsageError` for invalid values."""
        if not 0 < confidence < 1:
            raise UsageError(f"confidence is {confidence}; it must be above 0 and below 1")
        if resamples < 1 or queries < 1:
            raise UsageError(f"{resamples} resamples of {queries} queries; both must be 1 or more")
        self.confidence = confidence
        self._queries, self._resamples, self._seed = queries, resamples, seed

    def sums(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum ``values`` float64[queries, figures] over all queries, then over each resample;
        returns float64[1 + resamples, figures].
        """
        rng = np.random.default_rng(self._seed)
        found = np.empty((1 + self._resamples, values.shape[1]))
        found[0] = values.sum(axis=0)
        step = max(1, _CELLS // self._queries)
        for low in range(0, self._resamples, step):
            count = min(step, self._resamples - low)
            drawn = rng.integers(0, self._queries, (count, self._queries))
            drawn += np.arange(count)[:, None] * self._queries
            times = np.bincount(drawn.ravel(), minlength=count * self._queries)
            found[1 + low : 1 + low + count] = times.reshape(count, -1).astype(float) @ values
        return found

    def ratios(
        self, parts: NDArray[np.float64], wholes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the ratios of the :meth:`sums` of both arrays, float64[1 + resamples, figures]."""
        tops, bottoms = self.sums(parts), self.sums(wholes)
        found = np.full(tops.shape, np.nan)
        np.divide(tops, bottoms, out=found, where=bottoms != 0)
        return found

    def interval(self, ratios: NDArray[np.float64]) -> Interval:
        """Return the interval of a column of :meth:`ratios`, or of the difference of two."""
        value, drawn = float(ratios[0]), ratios[1:]
        drawn = drawn[~np.isnan(drawn)]
        if drawn.size == 0:
            return Interval(value, float("nan"), float("nan"))
        tail = (1 - self.confidence) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail])
        return Interval(value, float(low), float(high))
