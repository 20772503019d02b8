"""The nodes related to every node, written to a file: on all cores, in constant memory, resumable.

    node, rank, related, score, stderr, low, high     by node, then by rank from 1 on; no row for
                                                      no hit; low and high only with intervals

A standard error that does not exist, with a single sample, is null. There are other outputs, too
(``outputs/``): JSON lines, and a folder with a file a node, which have nodes without hits as well.

What is said is what ``Index.related`` says of its node, refined or not, to the bit
(``question.py``). Nodes that are answered together are taken in the order of their places in a
tree, where only what changes from one to the next is added up.

Workers hand over pieces, after some seconds at the latest (``pieces.py``); these are appended to a
journal in ``<output>.building``, beside a plan of everything that they depend on. A run that finds
the same plan asks for what is missing. When all are there they are written in the order of the
nodes, by one thread, so that equal rows are equal bytes. A batch that finds a shard to be damaged
begins again without it.

Memory: for each thread 40 bytes a node at most, of which only what is touched exists, and a piece;
some 20 bytes a node asked. Disk: 20 bytes a row, 36 with intervals, and the output twice while it
is made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import xxhash

from cocite.layouts.stored import DamagedShard
from cocite.query.batch.outputs import Pages, chosen_output
from cocite.query.batch.pieces import Kept, Piece
from cocite.query.batch.told import BatchPlan, tell
from cocite.query.batch.work import Progress, Work
from cocite.query.opened import DEFAULT_K
from cocite.query.ordered import Ordered
from cocite.store import Building

if TYPE_CHECKING:
    from cocite.query.batch.spread import Machines

__all__ = ["Batch", "BatchReport", "related_all"]

_FORMAT = 3
"""Of the journal: with another one an unfinished batch is not gone on with."""
_PIECES = "pieces"


@dataclass(frozen=True)
class BatchReport:
    """What a batch took: the nodes that it asked for itself, if it resumed, all rows, how many of
    all nodes have no hit, ``without``, and the bytes of the output, None if they are not known.
    """

    nodes: int
    rows: int
    without: int
    bytes: int | None


def related_all(
    index: Ordered,
    output: str | os.PathLike[str] | None = None,
    k: int = DEFAULT_K,
    *,
    cluster: str | None = None,
    progress: Progress = lambda stage, done, total: None,
    **options: Any,
) -> BatchReport:
    """Write the ``k`` nodes most related to every node of ``index`` to ``output``.

    Parameters
    ----------
    index
        An opened index, or a graph (:func:`~cocite.open_graph`).
    output
        What to make, by its ending: a table in Parquet, CSV, TSV or Arrow IPC, with the columns
        node, rank, related, score, stderr, low, high; JSON lines (``.jsonl``); the k-nearest graph
        as GraphML, GEXF or DOT; or a folder (``/``) with a JSON file a node
        (``outputs/folder.py``). Or ``to``, a table of a database. A batch that was interrupted is
        resumed.
    k
        How many hits a node at most.
    cluster
        Ask on the machines of a cluster, which see the index by the same path: ``"local:4"``,
        ``"HOST:PORT"`` of its head node, or ``"auto"``. ``threads`` are then those of a piece of
        work on a machine, by default all cores of the smallest. The extra ``cluster``.
    progress
        Called with (stage, done, total): ``"relating"`` in nodes, then ``"writing"`` in rows.
    options
        What :class:`Batch` takes.

    Raises
    ------
    UnknownNode, UsageError, OutputExists, Busy, ResourceError
    """
    if cluster is None:
        with Batch(index, output, k, **options) as work:
            return work.run(progress)
    from cocite.query.batch.spread import Machines
    from cocite.runner.ray import Cluster

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
        What the output is, whatever its name: ``parquet``, ``csv``, ``tsv``, ``jsonl``, ``arrow``,
        ``graphml``, ``gexf``, ``dot``, ``folder`` or ``site``.
    to, append
        In the place of an output, the address of a table of a database, such as
        ``"sqlite:///site.db#related"`` (``graph/writers/databases.py``); and whether rows are added
        to those that it has.
    nodes
        Names of the nodes to ask for, by default all. Each is asked for once, in this order.
    side
        Of a bipartite graph the side whose nodes are asked for, by its title, such as ``"user"``;
        by default the right one. Names in ``nodes`` are those of this side.
    ids
        Write the numbers of nodes instead of their names.
    threads
        How many questions at a time; by default as many as the index was opened with.
    overwrite
        Replace ``output``, or the table, when the new one is whole.
    safe
        In CSV and TSV, put an apostrophe before names and titles that a spreadsheet would take for
        formulas.
    restart
        Throw away an unfinished batch with other settings.
    machines
        Those of a cluster that ask, instead of this one (``spread.py``).
    intervals
        Write the ends of the intervals, too, ``low`` and ``high``, with the ``confidence`` and by
        the ``bound`` that :meth:`Index.related` takes. By default where that takes no samples: of
        measures without any, and of refined answers. Samples are read once more for them.
    options
        As for :meth:`Index.related`: ``min_score``, ``min_confidence`` with its ``bound``,
        ``prefix``, ``exclude_prefix``, ``among``, ``other_sites``, ``order`` with its
        ``candidates`` and ``ranks``, ``refine`` and ``target_error`` (a question takes milliseconds
        then), and what the measure takes when asking, such as ``decay=0.6`` or ``by="t <= 3"``.

    Raises
    ------
    UnknownNode, UsageError, OutputExists, Busy
        Before any work is done.
    """

    def __init__(
        self,
        index: Ordered,
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
        made_as: dict[str, Any] = {"overwrite": overwrite, "append": append, "safe": safe}
        self.output, place = chosen_output(
            output, index.stored.store.path, kind=kind, to=to, **made_as
        )
        if to is None:
            Building(place).sweep()
        self._path = self.output.check(place, overwrite)
        self.work, self._restart = Work(index, k, **options), restart
        self.output.expect(self.work.none)
        made = {
            "measure": index.measure,
            "direction": index.direction,
            "settings": index.settings,
            "weighted": index.stored.weighted,
        }
        self._facts = self.work.question.facts | {"made": made}
        if index.stored.lost:
            self._facts["lost"] = [each.file for each in index.stored.lost]
        self.order = self.work.order()
        self._building = Building(self._path, resumable=True)

    @property
    def label(self) -> str:
        """What the output is called."""
        return self.output.label or str(self._path)

    @property
    def refined(self) -> bool:
        """Whether answers are refined."""
        return self.work.question.refined

    @property
    def intervals(self) -> bool:
        """Whether the ends of intervals are written."""
        return self.work.question.intervals

    @property
    def _words(self) -> int:
        return self.work.question.words

    # -- what is there, what is to do -------------------------------------------------

    @property
    def nodes(self) -> int:
        """How many nodes are asked for."""
        return self.work.nodes

    @property
    def done(self) -> int:
        """For how many the hits are there."""
        return self.kept.done

    def told(self, progress: Progress = lambda stage, done, total: None) -> BatchPlan | None:
        """What it will take, from a sample of the nodes, whose hits are kept; None if these are all
        that there were.
        """
        while True:
            try:
                return tell(self.work, self.output, self.kept, self.order, progress)
            except DamagedShard as found:
                self._begin_again(found)

    @property
    def _plan(self) -> dict[str, Any]:
        """Everything that the pieces depend on; the digest is not all."""
        return self._facts | {
            "format": _FORMAT,
            "index": self.work.index.stored.digest,
            "nodes": xxhash.xxh3_128_hexdigest(self.work.asked.data),
        }

    def __enter__(self) -> Self:
        self._building.__enter__()
        try:
            self._leave_out_as_before()
            self._building.goes_on(self._plan, "batch", restart=self._restart)
            self.kept = Kept(self._building.path / _PIECES, self.nodes, self._words).__enter__()
            self._before = self.done
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
        self.kept.__exit__(kind, error, trace)
        if isinstance(error, KeyboardInterrupt):
            error.add_note(
                f"the hits of {self.done:,} of {self.nodes:,} nodes are kept in "
                f"{self._building.path}: repeat the command to go on"
            )
        self._building.__exit__(kind, error, trace)

    # -- the work ----------------------------------------------------------------------

    def run(self, progress: Progress = lambda stage, done, total: None) -> BatchReport:
        """Ask for what is missing, write the output; ``progress`` as for :func:`related_all`."""
        while True:
            try:
                self._relate(progress)
            except DamagedShard as found:
                self._begin_again(found)
            else:
                break
        return BatchReport(self.nodes - self._before, *self._write(progress))

    def _relate(self, progress: Progress) -> None:
        """Ask for what is missing."""
        self.work.advise()
        progress("relating", self.done, self.nodes)
        with closing(self._pieces()) as pieces:
            for piece in pieces:
                self.kept.add(piece)
                progress("relating", self.done, self.nodes)

    def _pieces(self) -> Generator[Piece]:
        missing = self.kept.missing
        if self._machines is None:
            yield from self.work.pieces(self.order, missing)
        elif missing:
            from cocite.query.batch.spread import spread_pieces

            key = json.dumps(self._plan, sort_keys=True)
            yield from spread_pieces(self._machines, self.work, self._options, missing, key)

    def _begin_again(self, found: DamagedShard) -> None:
        """Without a shard that was found to be damaged: all rows are of the same samples."""
        self._leave_out(found)
        self.kept.__exit__(None, None, None)
        self._building.goes_on(self._plan, "batch", restart=True)
        self.kept = Kept(self._building.path / _PIECES, self.nodes, self._words).__enter__()
        self._before = 0

    def _leave_out(self, found: DamagedShard) -> None:
        index = self.work.index
        index.leave_out(found)
        self.work.question.of(index.now)
        self._facts["lost"] = [each.file for each in self.work.index.stored.lost]
        self.order = self.work.order()

    def _leave_out_as_before(self) -> None:
        """What an earlier run of the same batch found to be damaged."""
        found = self._building.plan or {}
        lost, files = found.get("lost"), self.work.index.stored.store.manifest.files
        if self._restart or not lost or found != self._plan | {"lost": lost}:
            return
        known = {each.file for each in self.work.index.stored.lost}
        for file in lost:
            if file in files and file not in known:
                self._leave_out(DamagedShard("an earlier run found it to be damaged", file))

    # -- the output --------------------------------------------------------------------

    def _write(self, progress: Progress) -> tuple[int, int, int | None]:
        """Write all rows in the order of the nodes; returns how many there are, how many nodes have
        none, and the bytes.
        """
        rows = self.kept.rows(self.order)
        total, done = int(rows.counts.sum()), 0

        def pages() -> Iterator[Pages]:
            nonlocal done
            progress("writing", 0, total)
            for low in range(0, self.nodes, self.work.chunk):
                found = self.work.pages(rows, slice(low, low + self.work.chunk))
                yield found
                done += found.related.size
                progress("writing", done, total)

        facts = {"nodes": self.nodes, "rows": total, **self._facts}
        size = self.output.write(self._path, pages(), self.work.none, self._building.path, facts)
        self._building.done()
        return total, int((rows.counts == 0).sum()), size
