"""The nodes related to every node, as rows of a file: on all cores, in constant memory, resumable.

    node, rank, related, score, stderr        by node, then by rank from 1 on; no row for no hit

A standard error that does not exist, with a single sample, is null.

What a row says is what ``Index.related`` says of its node, refined or not, to the bit. Where the
index is a single part of trees, nodes are taken in the order of their places in a tree, and only
what changes from one to the next is added up (``kernels/trees_batch.py``); else they are asked
singly, and with evidence, too.

The work is cut into pieces of some thousand nodes, the same whatever the threads. Finished ones are
appended to a journal in ``<output>.building``, beside a plan of everything that they depend on; a
run that finds the same plan goes on behind them. When all are there they are written in the order
of the nodes, by one thread, so that equal rows are equal bytes. A batch that finds a shard to be
damaged begins again without it.

Memory: for each thread 40 bytes a node at most, of which only what is touched exists, and a piece;
some 20 bytes a node asked. Disk: 20 bytes a row, and the output twice while it is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from types import TracebackType
from typing import Any, Self

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.errors import UsageError
from cocite.graph.writers import TABLES, check_output, write_table
from cocite.layouts.stored import DamagedShard
from cocite.layouts.trees.reader import TreeReader
from cocite.measures import AskValue
from cocite.memory import checked_threads
from cocite.query.batch.rows import WORDS, packed, ranks, rows_of
from cocite.query.evidence import refuse_evidence
from cocite.query.filters import Filter
from cocite.query.opened import DEFAULT_CONFIDENCE, DEFAULT_K, Opened
from cocite.query.refine.refiner import Level
from cocite.query.scores import scores_of
from cocite.runner import in_order
from cocite.store import Access, Building, Journal

__all__ = ["Batch", "BatchReport", "related_all"]

_FORMAT = 1
"""Of the journal: with another one an unfinished batch is not gone on with."""
_PIECES = "pieces"
_NONE = 2**32 - 1
_PIECE_ROWS, _MOST_NODES, _SLICE_ROWS, _OUT_ROWS = 1 << 18, 8192, 1 << 15, 1 << 17
_MOST_REFINED = 256
"""Nodes of a piece, where each takes milliseconds."""
_MANY = 0.001
"""The share of the nodes from which on a batch reads most pages of an index."""

Ids = NDArray[np.uint32]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class BatchReport:
    """What a batch took: the nodes that it asked for itself, if it resumed, all rows, and how many
    of all nodes have no hit, and so no row: ``without``.
    """

    nodes: int
    rows: int
    without: int


def related_all(
    index: Opened,
    output: str | os.PathLike[str],
    k: int = DEFAULT_K,
    *,
    progress: Progress = lambda stage, done, total: None,
    **options: Any,
) -> BatchReport:
    """Write the ``k`` nodes most related to every node of ``index`` to the file ``output``.

    Parameters
    ----------
    index
        An opened index.
    output
        The file to make: by its ending (:mod:`cocite.graph.writers`) Parquet, CSV or TSV, with the
        columns node, rank, related, score, stderr. A batch that was interrupted is resumed.
    k
        How many hits a node at most.
    progress
        Called with (stage, done, total): ``"relating"`` in nodes, then ``"writing"`` in rows.
    options
        What :class:`Batch` takes: ``nodes``, ``min_score``, ``prefix``, ``exclude_prefix``,
        ``ids``, ``refine``, ``target_error``, ``threads``, ``overwrite``, ``restart``, and what the
        measure takes when asking.

    Raises
    ------
    UnknownNode, UsageError, OutputExists, Busy, ResourceError
    """
    with Batch(index, output, k, **options) as work:
        return work.run(progress)


class Batch:
    """One batch: ``with Batch(index, output) as batch: batch.run(progress)``.

    Parameters
    ----------
    index, output, k
        As for :func:`related_all`.
    nodes
        Names of the nodes to ask for, by default all. Each is asked for once, in this order.
    min_score
        The least score of a hit; nodes whose score is 0 are never hits.
    prefix, exclude_prefix
        Only hits whose name begins so, or none of them.
    ids
        Write the numbers of nodes instead of their names.
    refine, target_error
        As for :meth:`Index.related`: a question takes milliseconds then.
    threads
        How many questions at a time; by default as many as the index was opened with.
    overwrite
        Replace ``output`` when the new one is whole.
    restart
        Throw away an unfinished batch with other settings.
    settings
        What the measure takes when asking, such as ``decay=0.6`` or ``by="t <= 3"``.

    Raises
    ------
    UnknownNode, UsageError, OutputExists, Busy
        Before any work is done.
    """

    def __init__(
        self,
        index: Opened,
        output: str | os.PathLike[str],
        k: int = DEFAULT_K,
        *,
        nodes: Iterable[object] | None = None,
        min_score: float = 0.0,
        prefix: str | None = None,
        exclude_prefix: str | None = None,
        ids: bool = False,
        refine: bool = False,
        target_error: float | None = None,
        threads: int | None = None,
        overwrite: bool = False,
        restart: bool = False,
        **settings: AskValue,
    ) -> None:
        self._output = check_output(output, overwrite, TABLES)
        if not isinstance(k, int | np.integer) or k < 1:
            raise UsageError(f"k is {k!r}; it is a whole number, 1 or more")
        if not isinstance(min_score, int | float) or not 0 <= min_score < float("inf"):
            raise UsageError(f"min_score is {min_score!r}; it is a number, 0 or more")
        self._index, self._ids, self._restart = index, ids, restart
        self._stopped = Event()
        self._threads = index.means.threads if threads is None else checked_threads(threads)
        self._k = max(1, min(int(k), len(index.nodes) - 1))
        self._asked = index.stored.ask_settings(settings)
        self._min_score = float(min_score)
        self._filter = Filter.checked(index.nodes, (), prefix=prefix, exclude_prefix=exclude_prefix)
        self._nodes = self._chosen(nodes)
        self._facts = {"k": int(k), "min_score": self._min_score, "settings": self._asked.to_json()}
        made = [index.measure, index.direction, index.settings, index.stored.weighted]
        self._facts |= {"prefix": prefix, "exclude_prefix": exclude_prefix, "made": made}
        if index.stored.lost:
            self._facts["lost"] = [each.file for each in index.stored.lost]
        self._level = None
        if refine or target_error is not None:
            self._level = Level.checked(target_error, DEFAULT_CONFIDENCE)
            refuse_evidence(index.stored.parts, self._asked)
            self._facts["target_error"] = self._level.target
            if index.refiner:  # which says so now if there is none
                index.refiner.check(self._asked)
        self._order = self._working_order()
        self._building = Building(self._output, resumable=True)

    def _chosen(self, nodes: Iterable[object] | None) -> Ids:
        names = self._index.nodes
        if nodes is None:
            return np.arange(len(names), dtype=np.uint32)
        if isinstance(nodes, str):
            raise UsageError("nodes is one text; give a list of names")
        found = names.ids(list(nodes))
        _, first = np.unique(found, return_index=True)
        return found[np.sort(first)]

    @property
    def refined(self) -> bool:
        """Whether answers are refined."""
        return self._level is not None

    @property
    def _fast(self) -> TreeReader | None:
        """The reader that answers for many nodes at once, if that is the whole index."""
        readers = self._index.reading(self._asked)
        fresh = self._index.stored.freshness
        if self._level is not None or (fresh.there and fresh.since is not None):
            return None
        alone = readers[0] if len(readers) == 1 else None
        return alone if isinstance(alone, TreeReader) and alone.part.weight == 1 else None

    def _working_order(self) -> Ids:
        """Which of the nodes comes when: neighbours in a tree one after another."""
        if self._fast is None:
            return np.arange(self._nodes.size, dtype=np.uint32)
        return np.argsort(self._fast.places()[self._nodes], kind="stable").astype(np.uint32)

    # -- what is there, what is to do -------------------------------------------------

    @property
    def nodes(self) -> int:
        """How many nodes are asked for."""
        return self._nodes.size

    @property
    def done(self) -> int:
        """For how many the hits are there."""
        return min(self.nodes, len(self._journal.sizes) * self._piece)

    @property
    def _piece(self) -> int:
        most = _MOST_NODES if self._level is None else _MOST_REFINED
        return max(1, min(most, _PIECE_ROWS // self._k))

    @property
    def _plan(self) -> dict[str, Any]:
        """Everything that the pieces depend on, and where they are cut; the digest is not all."""
        return self._facts | {
            "format": _FORMAT,
            "index": self._index.stored.digest,
            "nodes": xxhash.xxh3_128_hexdigest(self._nodes.data),
            "piece": self._piece,
        }

    def __enter__(self) -> Self:
        self._building.__enter__()
        try:
            self._leave_out_as_before()
            self._building.goes_on(self._plan, "batch", restart=self._restart)
            self._journal = Journal(self._building.path / _PIECES).__enter__()
        except BaseException as error:
            self._building.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._journal.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(
                f"the hits of {self.done:,} of {self.nodes:,} nodes are kept in "
                f"{self._building.path}: repeat the command to go on"
            )
        self._building.__exit__(kind, error, trace)

    # -- the work ----------------------------------------------------------------------

    def run(self, progress: Progress = lambda stage, done, total: None) -> BatchReport:
        """Ask for what is missing, write the output; ``progress`` as for :func:`related_all`."""
        before = self.done
        while True:
            try:
                self._relate(progress)
            except DamagedShard as found:
                before = 0
                self._begin_again(found)
            else:
                break
        rows, without = self._write(progress)
        return BatchReport(self.nodes - before, rows, without)

    def _relate(self, progress: Progress) -> None:
        """Ask for what is missing."""
        before = self.done
        self._index.stored.store.advise(self._access)
        progress("relating", before, self.nodes)
        todo = range(before, self.nodes, self._piece)
        pieces = in_order([self._answer] * min(self._threads, max(1, len(todo))), todo)
        try:
            for piece in pieces:
                self._journal.append(piece)
                progress("relating", self.done, self.nodes)
        finally:
            self._stopped.set()
            pieces.close()  # type: ignore[attr-defined]
            self._stopped.clear()

    def _begin_again(self, found: DamagedShard) -> None:
        """Without a shard that was found to be damaged: all rows are of the same samples."""
        self._leave_out(found)
        self._journal.__exit__(None, None, None)
        self._building.goes_on(self._plan, "batch", restart=True)
        self._journal = Journal(self._building.path / _PIECES).__enter__()

    def _leave_out(self, found: DamagedShard) -> None:
        self._index.leave_out(found)
        self._index = self._index.now
        self._facts["lost"] = [each.file for each in self._index.stored.lost]
        self._order = self._working_order()

    def _leave_out_as_before(self) -> None:
        """What an earlier run of the same batch found to be damaged."""
        found = self._building.plan or {}
        lost, files = found.get("lost"), self._index.stored.store.manifest.files
        if self._restart or not lost or found != self._plan | {"lost": lost}:
            return
        known = {each.file for each in self._index.stored.lost}
        for file in lost:
            if file in files and file not in known:
                self._leave_out(DamagedShard("an earlier run found it to be damaged", file))

    @property
    def _access(self) -> Access:
        """Of many nodes nearly every page will be read, so what stands around it is welcome; but
        where the memory given does not hold them all, it would drive out others.
        """
        index, many = self._index, self.nodes >= _MANY * len(self._index.nodes)
        fits = index.stored.store.nbytes <= index.means.memory
        return Access.AROUND if many and fits else Access.SCATTERED

    def _answer(self, begin: int) -> bytes:
        """The hits of one piece of nodes: how many each has, then all rows of all."""
        nodes = self._nodes[self._order[begin : begin + self._piece]]
        counts, rows = np.zeros(nodes.size, np.uint32), []
        step = max(1, min(1024, _SLICE_ROWS // self._k)) if self._fast else 1
        for low in range(0, nodes.size, step):
            if self._stopped.is_set():
                raise KeyboardInterrupt
            found, ids, best = self._hits(nodes[low : low + step])
            counts[low : low + step] = found
            rows.append(packed(ids, best))
        return counts.tobytes() + b"".join(rows)

    def _hits(self, nodes: Ids) -> tuple[Any, Ids, NDArray[np.float64]]:
        """How many hits each node has, their ids, their scores and errors."""
        if self._fast is None:
            asked = int(nodes[0]), self._k, self._min_score, self._filter, self._asked
            if self._level and self._index.refiner:
                better = self._index.refiner.top(*asked, self._level)
                return better.ids.size, better.ids, np.column_stack((better.scores, better.errors))
            ids, best = self._index.top(*asked)
            self._index.check(best[:, 0])
            return ids.size, ids, np.column_stack(scores_of(best))
        out = np.empty((nodes.size, self._k), np.uint32), np.empty((nodes.size, self._k, 2))
        floor = max(1.0, float(np.rint(self._min_score * GRAINS)))
        own = self._fast.part.ask_settings(self._asked)
        self._fast.related_many(nodes, floor, self._allowed, own, out)
        there = out[0] != _NONE
        return there.sum(axis=1), out[0][there], np.column_stack(scores_of(out[1][there]))

    @cached_property
    def _allowed(self) -> NDArray[np.bool_]:
        """The filter as bool[nodes]; empty if there is none."""
        if not self._filter.only and not self._filter.never:
            return np.empty(0, bool)
        allowed = np.full(len(self._index.nodes), not self._filter.only)
        for ids in self._filter.only:  # the prefix, if any
            allowed[ids] = True
        for ids in self._filter.never:
            allowed[ids] = False
        return allowed

    # -- the output --------------------------------------------------------------------

    def _write(self, progress: Progress) -> tuple[int, int]:
        """Write all rows in the order of the nodes, give the file its name; returns how many, and
        how many nodes have none.
        """
        words, begins, counts = self._read()
        total, done = int(counts.sum()), 0

        def pieces() -> Iterator[dict[str, Any]]:
            nonlocal done
            progress("writing", 0, total)
            step = max(1, _OUT_ROWS // self._k)
            for low in range(0, self.nodes, step):
                part = slice(low, low + step)
                rows = rows_of(words, begins[part], counts[part])
                yield self._columns(self._nodes[part], counts[part], rows)
                done += len(rows)
                progress("writing", done, total)

        name = "BIGINT" if self._ids else "VARCHAR"
        types = {"node": name, "rank": "INTEGER", "related": name}
        types |= {"score": "DOUBLE", "stderr": "DOUBLE"}
        write_table(self._output, pieces(), types, self._building.path)
        self._building.done()
        return total, int((counts == 0).sum())

    def _read(self) -> tuple[Ids, NDArray[np.uint64], Ids]:
        """All words of the journal; for each node where its rows begin and how many there are."""
        path, sizes = self._building.path / _PIECES, self._journal.sizes
        words = np.memmap(path, np.uint32, "r") if sum(sizes) else np.empty(0, np.uint32)
        begins, counts = np.empty(self.nodes, np.uint64), np.empty(self.nodes, np.uint32)
        for i, begin in enumerate(self._journal.begins):
            order = self._order[i * self._piece : (i + 1) * self._piece]
            first = begin // 4
            found = words[first : first + order.size]
            counts[order] = found
            ends = np.cumsum(found, dtype=np.uint64) * np.uint64(WORDS)
            begins[order] = ends - found * np.uint64(WORDS) + np.uint64(first + order.size)
        return words, begins, counts

    def _columns(self, nodes: Ids, counts: Ids, rows: NDArray[np.uint32]) -> dict[str, Any]:
        """The columns of the output for some nodes."""
        related, numbers = rows[:, 0], np.ascontiguousarray(rows[:, 1:]).view(np.float64)
        return {
            "node": np.repeat(self._named(nodes), counts),
            "rank": ranks(counts).astype(np.int32) + 1,
            "related": self._named(related),
            "score": np.ascontiguousarray(numbers[:, 0]),
            "stderr": np.ascontiguousarray(numbers[:, 1]),
        }

    def _named(self, ids: Ids) -> NDArray[Any]:
        """Names, or the numbers themselves; each name is looked up once."""
        if self._ids:
            return ids.astype(np.int64)
        different, where = np.unique(ids, return_inverse=True)
        return np.array(self._index.nodes.stored.names(different), object)[where]
