"""Query every node on all cores, and write the hits; resumable.

Workers return a piece every few seconds (``search/batch/pieces.py``). Pieces are appended to a
journal in ``<output>.building``, beside a plan that records everything they depend on; a run with
the same plan computes only missing pieces. One thread then writes all hits in the order of the
nodes, so the same rows give the same bytes. If a damaged shard is detected, the batch restarts
without the shard. On a cluster, machines open the index under a common path and query ranges of
nodes; other machines repeat the ranges of a lost machine.

A batch needs 44 bytes of memory per node per thread, a piece per thread, and 24 bytes per queried
node. On disk, a row takes 20 bytes, 36 with intervals; the output may temporarily take twice its
size.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self

import xxhash

from cocite.errors import ClusterError, UsageError
from cocite.graph import Graph
from cocite.index import StoredIndex
from cocite.index.layouts.part import DamagedShard
from cocite.options.query import DEFAULT_K
from cocite.progress import shows
from cocite.resources import Resources
from cocite.search.batch.estimate import BatchPlan, Progress, Work, estimate, plan_of
from cocite.search.batch.outputs import OUTPUTS, chosen_output, output_of
from cocite.search.batch.pages import OutputPages
from cocite.search.batch.pieces import Piece, PieceRecord, rows_of
from cocite.search.searcher import Searcher, Searching
from cocite.storage.staging import Building

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


_FORMAT = 4
"""Journal format; unfinished batches in other formats cannot be resumed."""
_PIECES = "pieces"


def _silent(stage: str, done: int, total: int) -> None:
    """Ignore progress."""


@dataclass(frozen=True)
class BatchReport:
    """Counts of a finished batch: ``nodes`` queried by this run, all ``rows``, nodes ``without``
    hits, and the output's ``bytes``, None if unknown.
    """

    nodes: int
    rows: int
    without: int
    bytes: int | None


@shows("relating all nodes")
def related_all(
    index: Searching,
    output: str | os.PathLike[str] | None = None,
    k: int = DEFAULT_K,
    *,
    cluster: str | None = None,
    progress: Progress = _silent,
    **options: Any,
) -> BatchReport:
    """Write the ``k`` most related nodes for every node of ``index``. Interrupted batches resume.

    Parameters
    ----------
    index
        An opened index.
    output
        The output path, whose extension selects the format: a table as Parquet, CSV, TSV or Arrow
        IPC, with the columns node, rank, related, score, stderr, low, high; JSON lines
        (``.jsonl``); the k-nearest-neighbor graph as GraphML, GEXF or DOT; or a folder (``/``) with
        a JSON file per node (``search/batch/folder.py``). Use ``to`` instead for a database table.
    k
        The maximum number of hits per node.
    cluster
        Query on a cluster: ``"local:4"``, ``"HOST:PORT"`` of the head node, or ``"auto"``. All
        machines must find the index under the same path. ``threads`` then applies to each task; the
        default is the number of cores of the smallest machine. Requires the extra ``cluster``.
    progress
        Called with (stage, done, total): ``"relating"`` in nodes, then ``"writing"`` in rows.
    options
        Keyword arguments of :class:`Batch`.

    Raises
    ------
    UnknownNode, UsageError, OutputExists, Busy, ResourceError
    """
    if cluster is None:
        with Batch(index, output, k, **options) as work:
            return work.run(progress)
    from cocite.cluster.ray import Cluster

    with Cluster.connect(cluster) as connected:
        machines = Machines(connected, options.pop("threads", None))
        with Batch(index, output, k, machines=machines, **options) as work:
            return work.run(progress)


class Batch:
    """One batch: ``with Batch(index, output) as batch: batch.run(progress)``.

    Parameters
    ----------
    index, output, k
        As for :func:`related_all`.
    kind
        The output format, overriding the extension (``search/batch/outputs.py``).
    to, append
        The address of a database table to write instead, such as ``"sqlite:///site.db#related"``;
        and whether to add rows to an existing table.
    nodes, side, ids, threads
        As for :class:`~cocite.search.batch.estimate.Work`.
    overwrite
        Replace ``output``, or the table, once the new one is complete.
    safe
        In CSV and TSV, put an apostrophe before names and titles that a spreadsheet would read as
        formulas.
    restart
        Discard an unfinished batch instead of resuming it.
    machines
        Cluster machines that compute the hits instead of this one.
    intervals
        Also write interval ends. They are written by default if they need no second pass over the
        samples: for measures without samples, and for refined answers.
    options
        As for :meth:`Index.related`, except ``offset`` and ``aggregate``.

    Raises
    ------
    UnknownNode, UsageError, OutputExists, Busy
        Before any work is done.
    """

    def __init__(
        self,
        index: Searching,
        output: str | os.PathLike[str] | None = None,
        k: int = DEFAULT_K,
        *,
        kind: str | None = None,
        to: str | None = None,
        overwrite: bool = False,
        append: bool = False,
        safe: bool = False,
        restart: bool = False,
        machines: Machines | None = None,
        **options: Any,
    ) -> None:
        self._machines, self._options = machines, options
        self.output, place = chosen_output(
            output,
            index.now.stored.store.path,
            kind=kind,
            to=to,
            overwrite=overwrite,
            append=append,
            safe=safe,
        )
        if to is None:
            Building(place).sweep()
        self._path = self.output.check(place, overwrite)
        self.work, self._restart = Work(index, k, **options), restart
        self.output.expect(self.work.none)
        stored = self.work.index.stored
        made = {
            "measure": stored.measure.name,
            "direction": stored.direction,
            "settings": stored.settings.to_json(),
            "weighted": stored.weighted,
        }
        self._facts = self.work.question.facts | {"made": made}
        if stored.lost:
            self._facts["lost"] = [each.file for each in stored.lost]
        self._building = Building(self._path, resumable=True)

    @property
    def label(self) -> str:
        """Return the output's name for messages."""
        return self.output.label or str(self._path)

    @property
    def nodes(self) -> int:
        """Return the number of nodes to query."""
        return self.work.nodes

    @property
    def done(self) -> int:
        """Return the number of nodes whose hits are stored."""
        return self.kept.done

    def estimate(self, progress: Progress = _silent) -> BatchPlan | None:
        """Predict the cost from a sample of nodes, whose hits are kept; None if no node is left."""
        while True:
            try:
                return estimate(self.work, self.output, self.kept, progress)
            except DamagedShard as found:
                self._begin_again(found)

    @property
    def _plan(self) -> dict[str, Any]:
        """Return everything that determines the pieces."""
        return self._facts | {
            "format": _FORMAT,
            "index": self.work.index.stored.digest,
            "nodes": xxhash.xxh3_128_hexdigest(self.work.asked.data),
        }

    def __enter__(self) -> Self:
        self._building.__enter__()
        try:
            self._leave_out_as_before()
            self._begin(self._restart)
        except BaseException as error:
            self._building.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.kept.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(
                f"the hits of {self.done:,} of {self.nodes:,} nodes are saved in "
                f"{self._building.path}: repeat the command to continue"
            )
        self._building.__exit__(kind, error, trace)

    def _begin(self, restart: bool) -> None:
        self._building.goes_on(self._plan, "batch", restart=restart)
        path = self._building.path / _PIECES
        self.kept = PieceRecord(path, self.nodes, self.work.words).__enter__()
        self._before = self.done

    # -- the work ----------------------------------------------------------------------

    def run(self, progress: Progress = _silent) -> BatchReport:
        """Query missing nodes, then write the output; ``progress`` as for :func:`related_all`."""
        while True:
            try:
                self.work.advise()
                progress("relating", self.done, self.nodes)
                with closing(self._pieces()) as pieces:
                    for piece in pieces:
                        self.kept.add(piece)
                        progress("relating", self.done, self.nodes)
            except DamagedShard as found:
                self._begin_again(found)
            else:
                break
        return BatchReport(self.nodes - self._before, *self._write(progress))

    def _pieces(self) -> Generator[Piece]:
        missing = self.kept.missing
        if self._machines is None:
            yield from self.work.pieces(missing)
        elif missing:
            key = json.dumps(self._plan, sort_keys=True)
            yield from spread_pieces(self._machines, self.work, self._options, missing, key)

    def _begin_again(self, found: DamagedShard) -> None:
        self._leave_out([found.file], str(found))
        self.kept.__exit__(None, None, None)
        self._begin(restart=True)

    def _leave_out(self, files: Iterable[str], fault: str) -> None:
        index = self.work.index
        index.leave_out_files(files, fault)
        self.work.question.index = index.now
        self._facts["lost"] = [each.file for each in index.now.stored.lost]

    def _leave_out_as_before(self) -> None:
        """Exclude shards that an earlier run of the batch found damaged."""
        found = self._building.plan or {}
        lost, files = found.get("lost"), self.work.index.stored.store.manifest.files
        if not self._restart and lost and found == self._plan | {"lost": lost}:
            known = [file for file in lost if file in files]
            self._leave_out(known, "an earlier run found it damaged")

    # -- the output --------------------------------------------------------------------

    def _write(self, progress: Progress) -> tuple[int, int, int | None]:
        """Write all rows in node order; return counts of rows, nodes without rows, and bytes."""
        rows = self.kept.rows()
        total, done = int(rows.counts.sum()), 0

        def pages() -> Iterator[OutputPages]:
            nonlocal done
            self.work.index.stored.store.evict()  # from here, only names and titles are read
            progress("writing", 0, total)
            for low in range(0, self.nodes, self.work.chunk):
                found = self.work.pages(rows, slice(low, low + self.work.chunk))
                yield found
                self.work.give_back(rows.words)
                done += found.related.size
                progress("writing", done, total)

        facts = {"nodes": self.nodes, "rows": total, **self._facts}
        size = self.output.write(self._path, pages(), self.work.none, self._building.path, facts)
        self._building.done()
        return total, int((rows.counts == 0).sum()), size


_LEAST, _MOST, _SHARES = 64, 8192, 4
"""Minimum and maximum nodes per task, and minimum number of tasks per slot of the cluster."""
_opened: dict[tuple[object, ...], Work] = {}
"""The current batch of this worker process."""


@dataclass(frozen=True)
class RangeWork:
    """A cluster task: query a range of nodes."""

    path: Path
    digest: str
    graph: Any
    k: int
    options: dict[str, Any]
    lost: tuple[str, ...]
    threads: int
    memory: int
    key: str

    def __call__(self, run: range) -> list[Piece]:
        """Return the range's hits."""
        key = self.key, self.lost
        if key not in _opened:
            _opened.clear()
            _opened[key] = self._open()
        with closing(_opened[key].pieces([run])) as found:
            return list(found)

    def _open(self) -> Work:
        if not self.path.exists():
            raise ClusterError(
                f"a cluster node cannot find {self.path}. Put the index on a disk that all nodes "
                "share, under the same path"
            )
        stored = StoredIndex.open(self.path, verify=False)  # verified by the driver
        index = Searcher(stored, Resources.checked(self.threads, self.memory), self.graph)
        if index.stored.digest != self.digest:
            raise ClusterError(
                f"a cluster node has another index at {self.path}: the checksums differ. All nodes "
                "need the same index"
            )
        index.leave_out_files(self.lost, "the driver found it damaged")
        return Work(index.now, self.k, **self.options | {"threads": self.threads})


@dataclass(frozen=True)
class Machines:
    """A cluster, and each task's ``threads`` and ``memory``; None for all of a machine."""

    cluster: Cluster
    threads: int | None = None
    memory: int | None = None


def spread_pieces(
    machines: Machines, work: Work, options: dict[str, Any], todo: Sequence[range], key: str
) -> Iterator[Piece]:
    """Compute and yield the pieces of all ranges ``todo`` on a cluster; ``key`` identifies the
    batch. Raises :class:`ClusterError` if a machine cannot open the index.
    """
    index = work.index
    stored = index.stored
    cluster = machines.cluster
    threads = cluster.threads_each(machines.threads)
    memory = cluster.memory_each(machines.memory, threads)
    slots = cluster.slots(threads, memory)
    sent = RangeWork(
        Path(stored.store.path).absolute(),
        stored.digest,
        _sent(index.given),
        work.question.k,
        options,
        tuple(each.file for each in stored.lost),
        threads,
        memory,
        key,
    )
    left = sum(map(len, todo))
    size = min(_MOST, max(_LEAST, -(-left // (_SHARES * slots))))
    runs = [run[low : low + size] for run in todo for low in range(0, len(run), size)]
    with closing(
        cluster.in_order(sent, runs, threads=threads, memory=memory)  # type: ignore[type-var]
    ) as found:
        for pieces in found:
            yield from pieces


def _sent(given: Any) -> Any:
    if given is None or isinstance(given, str | Path):
        return given
    if isinstance(given, Graph):
        return str(given.path)
    return [_sent(each) for each in given]


def plan_related_all(
    index: Searching,
    k: int = DEFAULT_K,
    *,
    kind: str = "parquet",
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress = _silent,
    **options: Any,
) -> BatchPlan:
    """Estimate the time, memory and size of :func:`related_all`, in about three seconds.

    Queries a sample of nodes (``search/batch/estimate.py``) and writes the hits to a temporary
    directory within ``scratch``. The estimate includes writing, so choose a directory on the
    output's disk. If the sample covers all nodes, the whole batch is measured. Other
    arguments are those of :func:`related_all`.

    Raises
    ------
    UnknownNode, UsageError
        For invalid options.
    ResourceError
        If there is no space for the sample.
    """
    from cocite.search.plan import scratch_folder

    began = time.perf_counter()
    with (
        scratch_folder(scratch) as folder,
        Batch(index, folder / "all", k, kind=kind, **options) as batch,
    ):
        found = batch.estimate(progress)
        if found is not None:
            return found
        report = batch.run()
        took = time.perf_counter() - began
        return plan_of(batch.work, batch.output, report.rows, took, report.bytes or 0)


DEFAULT_STREAM = "jsonl"
_WINDOW = 256
"""Number of nodes to query before writing."""


class HitStream:
    """A batch that writes to a stream: ``HitStream(index, k, kind="csv").run(file)``. The options
    are those of :class:`Batch`.

    Nodes are queried in the given order. Nothing is stored, so a stream cannot be resumed.

    Raises
    ------
    UnknownNode, UsageError
        Before any work is done.
    """

    def __init__(
        self,
        index: Searching,
        k: int = DEFAULT_K,
        *,
        kind: str | None = None,
        safe: bool = False,
        **options: Any,
    ) -> None:
        self.output = output_of("-", kind or DEFAULT_STREAM, safe)
        if not self.output.streams:
            kinds = ", ".join(kind for kind in OUTPUTS if output_of("-", kind).streams)
            raise UsageError(
                f"{self.output.kind} cannot be written to a pipe: choose one of {kinds} with "
                "--output-format (kind=...), or write to a file"
            )
        self.work = Work(index, k, **options)

    @property
    def nodes(self) -> int:
        """Return the number of nodes to query."""
        return self.work.nodes

    def run(self, file: BinaryIO, progress: Progress = _silent) -> BatchReport:
        """Write all pages to an open file; ``progress`` as for :func:`related_all`."""
        self.work.advise()
        rows = without = size = 0
        progress("relating", 0, self.nodes)
        for first in range(0, max(1, self.nodes), _WINDOW):
            pages = self._answered(first, min(_WINDOW, self.nodes - first))
            content = self.output.text(pages, first == 0)
            file.write(content)
            file.flush()
            rows, size = rows + pages.related.size, size + len(content)
            without += int((pages.counts == 0).sum())
            progress("relating", first + pages.counts.size, self.nodes)
        return BatchReport(self.nodes, rows, without, size)

    def _answered(self, first: int, nodes: int) -> OutputPages:
        """Query some nodes. A damaged shard ends the stream: all rows must use the same samples."""
        try:
            with closing(self.work.pieces([range(nodes)], first)) as found:
                pieces = list(found)
        except DamagedShard as damaged:
            damaged.add_note("Or write to a file: the batch then omits the damaged shard")
            raise
        return self.work.pages(rows_of(pieces, nodes, self.work.words), slice(nodes), first)
