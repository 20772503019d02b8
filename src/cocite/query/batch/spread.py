"""The nodes of a batch, asked by the machines of a cluster: a run of them is a piece of work.

Each machine opens the index for itself, by the path that all see, sees that it is the very one, and
answers runs of places in the order of work, as ``work.py`` does here; rows come back as pieces of
the journal. So the output is that of one machine, and what a lost machine had is asked elsewhere.

Cost: a machine reads the index as this one would; some 20 bytes a row are sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.errors import ClusterError, UsageError
from cocite.graph import Graph
from cocite.index import StoredIndex
from cocite.index.unbuilt import UnbuiltIndex
from cocite.layouts.stored import DamagedShard
from cocite.means import Means
from cocite.query.batch.pieces import Piece
from cocite.query.batch.work import Work
from cocite.query.ordered import Ordered

if TYPE_CHECKING:
    from cocite.runner.ray import Cluster

__all__ = ["Machines", "spread_pieces"]

_LEAST, _MOST, _SHARES = 64, 8192, 4
"""Nodes of a piece of work; there are so many for each that runs at a time, or more."""
_opened: dict[tuple[object, ...], Work] = {}
"""In a process of a cluster: the batch that it works for."""


@dataclass(frozen=True)
class RangeWork:
    """What a machine does: a run of places of a batch of an index."""

    kind: type[Ordered]
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
        """The hits of the run."""
        work = self._work()
        with closing(work.pieces(work.order(), [run])) as found:
            return list(found)

    def _work(self) -> Work:
        key = self.key, self.lost
        if key not in _opened:
            _opened.clear()
            _opened[key] = self._open()
        return _opened[key]

    def _open(self) -> Work:
        if not self.path.exists():
            raise ClusterError(
                f"a node of the cluster does not see {self.path}. Put the index on a disk that all "
                "its machines share, under the same path"
            )
        stored = StoredIndex.open(self.path, verify=False)  # the driver has compared it
        index = self.kind(stored, Means(self.threads, self.memory), self.graph)
        if index.stored.digest != self.digest:
            raise ClusterError(
                f"a node of the cluster has another index at {self.path}: its checksums differ. "
                "All have to see the same"
            )
        known = {each.file for each in index.stored.lost}
        for file in self.lost:
            if file not in known:
                index.leave_out(DamagedShard("the driver found it to be damaged", file))
        return Work(index.now, self.k, **self.options | {"threads": self.threads})


@dataclass(frozen=True)
class Machines:
    """A cluster, and the ``threads`` and the ``memory`` of a piece of work there; None for what its
    machines have.
    """

    cluster: Cluster
    threads: int | None = None
    memory: int | None = None


def spread_pieces(
    machines: Machines, work: Work, options: dict[str, Any], todo: Sequence[range], key: str
) -> Iterator[Piece]:
    """The pieces of all runs, from the machines of a cluster. ``options`` are those that ``work``
    was made of; ``key`` is of the batch.

    Raises :class:`UsageError` for a graph without an index, and :class:`ClusterError` for a machine
    that does not see the index.
    """
    index: Ordered = work.index
    stored = index.stored
    if isinstance(stored, UnbuiltIndex):
        raise UsageError(
            "a graph is asked on this machine only. Build its index first: cocite index, and ask "
            "that"
        )
    cluster = machines.cluster
    threads = cluster.threads_each(machines.threads)
    memory = cluster.memory_each(machines.memory, threads)
    slots = cluster.slots(threads, memory)
    sent = RangeWork(
        type(index),
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
    """The graphs that were given, as paths."""
    if given is None or isinstance(given, str | Path):
        return given
    if isinstance(given, Graph):
        return str(given.path)
    return [_sent(each) for each in given]
