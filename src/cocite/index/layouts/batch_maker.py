"""The interface of builders, and makers that process samples in batches.

A blob depends only on the graph, the part's plan, and the sample number, so batch sizes, threads,
blocks, machines, and interruptions never change a byte. If a worker process of a partitioned graph
is lost, the batch's unfinished samples are drawn again (``index/parts.py``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import DTypeLike, NDArray

from cocite.cluster import Pace, in_order
from cocite.cluster.threads import Alone, WorkerPool
from cocite.constants import Words
from cocite.errors import WorkerLost
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.partitions import BlockedLinks, GraphBlock
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan, PartEstimate, Progress
from cocite.measures import PartSettings
from cocite.resources import Resources
from cocite.storage import ArrayWriter, Entry, evict, map_array
from cocite.storage.spool import ScratchFile

PIECE = 1 << 16
"""Words or labels of a scratch file to read at a time."""
_READ = 8 << 20
"""Bytes of an array to write at a time."""


@dataclass(frozen=True)
class Blob:
    """One sample: words, member count, live walks per step, and XXH3-64 digest.

    ``parts`` can be iterated repeatedly, and may read a file in chunks.
    """

    parts: Iterable[Words]
    members: int
    live: tuple[int, ...]
    digest: int

    @classmethod
    def of(cls, parts: Iterable[Words], members: int, live: tuple[int, ...] = ()) -> Blob:
        """Return a blob with its digest."""
        digest = xxhash.xxh3_64()
        for part in parts:
            digest.update(part.view(np.uint8).data)
        return cls(parts, members, live, digest.intdigest())

    @property
    def nbytes(self) -> int:
        """Return the size on disk."""
        return sum(part.nbytes for part in self.parts)


class FileWords:
    """The first ``words`` words of a scratch file, read in chunks on each iteration."""

    def __init__(self, file: ScratchFile, words: int) -> None:
        self._file, self._words = file, words

    def __iter__(self) -> Iterator[Words]:
        for low in range(0, self._words, PIECE):
            piece = np.empty(min(PIECE, self._words - low), np.uint32)
            self._file.read(4 * low, piece)
            yield piece


Maker = Callable[[int], Blob]
"""Makes a blob from a sample number. Owns scratch memory, so each thread needs its own maker."""


Carrier = Callable[[Words, NDArray[np.uint64]], Blob]
"""Converts a blob, given as its shard's words and its kernel row, to new ids. Raises
:class:`IndexError` if an offset or a node id is out of range.
"""


@dataclass(frozen=True)
class SampleJob:
    """A part's samples to make, by ``numbers``; scratch files go to ``folder``."""

    plan: PartPlan
    numbers: range
    folder: Path


class SampledBuilder(ABC):
    """The interface of sample builders."""

    @abstractmethod
    def fitted(self, links: Links, part: PartPlan, means: Resources) -> MemoryPlan:
        """Plan a build's memory; raises :class:`ResourceError` if it is insufficient."""

    @abstractmethod
    def makers(self, links: Links, job: SampleJob, fit: MemoryPlan) -> list[Maker]:
        """Return one maker per thread for all samples of a job."""

    def carrier(self, ids: Words, nodes: int, settings: PartSettings) -> Carrier:
        """Return a converter to a graph of ``nodes`` nodes, if the layout ``carries`` samples.

        ``ids`` uint32[old nodes] contains each node's new id, or 2**32 - 1 if it was removed. Each
        blob owns its memory.
        """
        raise NotImplementedError


# -- together ----------------------------------------------------------------------------


class BatchMaker:
    """Makes samples in batches; one maker suffices, because it has its own threads.

    ``numbers`` contains all samples to make. ``make`` draws up to ``together`` of them, and may
    discard earlier samples; each of the ``layers`` converts samples to blobs on one thread.
    """

    def __init__(
        self, numbers: range, together: int, make: Callable[[range], None], layers: Sequence[Maker]
    ) -> None:
        self._numbers, self.together = numbers, together
        self._make, self._layers = make, layers
        self._built = range(0)
        self._next = -1
        self._pace = Pace()
        self._blobs: Iterator[Blob] = iter(())

    def __call__(self, sample: int) -> Blob:
        """Return a sample's blob. Samples in ``numbers`` share batches; others are drawn singly."""
        if sample not in self._built:
            self._stop()
            self._built = range(0)
            wanted = self._numbers.stop if sample in self._numbers else sample + 1
            made = range(sample, min(sample + self.together, wanted))
            self._make(made)
            self._built = made
        if sample != self._next:
            self._stop()
            self._blobs = in_order(self._layers, range(sample, self._built.stop), self._pace)
        blob = next(self._blobs)
        self._next = sample + 1
        return blob

    def _stop(self) -> None:
        """Stop the threads that work ahead, before their input is overwritten."""
        close: Any = getattr(self._blobs, "close", None)
        if close is not None:
            close()
        self._blobs, self._next = iter(()), -1


@contextmanager
def fewer_together(makers: Sequence[Maker], most: int) -> Iterator[None]:
    """Limit batches to ``most`` samples within the context, for the pilot runs of an estimate."""
    batches = [maker for maker in makers if isinstance(maker, BatchMaker)]
    usual = [maker.together for maker in batches]
    for maker in batches:
        maker.together = min(maker.together, most)
    try:
        yield
    finally:
        for maker, together in zip(batches, usual, strict=True):
            maker.together = together


# -- apart -------------------------------------------------------------------------------


_LOSSES = 8
"""Maximum number of workers that may be lost before a sample is finished."""


@dataclass(frozen=True)
class PartitionWork:
    """Work for all blocks of a partitioned graph; ``rows`` is the number of buffered rows."""

    folder: str
    digest: str
    cuts: tuple[int, ...]
    plan: PartPlan
    rows: int

    @property
    def nodes(self) -> int:
        """Return the whole graph's node count."""
        return self.cuts[-1]

    def block(self, number: int) -> GraphBlock:
        """Open and check a block; raises :class:`~cocite.errors.StoreError`."""
        return GraphBlock(self.folder, number, self.digest)


class PartitionMaker(BatchMaker):
    """Maker for a partitioned graph; a blob is valid until the next blob is made."""

    ahead: ClassVar[int]
    """Number of samples to convert in advance."""

    def __init__(
        self, kind: Callable[..., Any], links: BlockedLinks, job: SampleJob, fit: MemoryPlan
    ) -> None:
        """Start a worker, ``kind(work, block)``, for each block."""
        super().__init__(job.numbers, fit.together, self._draw_all, [self._lay_out])
        graph = links.whole
        place, cuts = str(graph.path.absolute()), tuple(graph.cuts)
        self.work = PartitionWork(place, graph.digest, cuts, job.plan, fit.rows)
        arguments = [(self.work, block) for block in range(graph.blocks)]
        self._blob = ScratchFile(job.folder)
        self.crew: WorkerPool = (graph.crew or Alone)(kind, arguments, fit.memory)
        self._queried: dict[int, Any] = {}
        self._held = range(0)
        self._losses = 0

    @abstractmethod
    def draw(self, samples: range) -> None:
        """Draw ``samples`` in all blocks, discarding earlier samples."""

    @abstractmethod
    def ask(self, sample: int) -> Any:
        """Start converting a sample in all blocks; return handles to the results."""

    @abstractmethod
    def put_together(self, sample: int, asked: Any) -> Blob:
        """Assemble a blob from the blocks' results."""

    def written(self, pieces: Iterable[Words], members: int, live: tuple[int, ...] = ()) -> Blob:
        """Write consecutive pieces; return the blob."""
        at = 0
        for piece in pieces:
            words = np.ascontiguousarray(piece).reshape(-1)
            self._blob.write(4 * at, words)
            at += words.size
        return Blob.of(FileWords(self._blob, at), members, live)

    def evict(self) -> None:
        """Discard data from a lost worker."""

    def _draw_all(self, samples: range) -> None:
        while True:
            self._queried = {}
            try:
                self.draw(samples)
                self._held = samples
                return
            except WorkerLost as error:
                self._lost(error)

    def _lay_out(self, sample: int) -> Blob:
        while True:
            try:
                for later in range(sample, min(sample + self.ahead, self._held.stop)):
                    if later not in self._queried:
                        self._queried[later] = self.ask(later)
                blob = self.put_together(sample, self._queried.pop(sample))
                self._losses = 0
                return blob
            except WorkerLost as error:
                self._lost(error)
                self._draw_all(range(sample, self._held.stop))

    def _lost(self, error: WorkerLost) -> None:
        """Replace a lost worker; raise the error after too many losses."""
        self._losses += 1
        if self._losses > _LOSSES:
            raise error
        self._queried = {}
        self.evict()
        self.crew.again()


# -- whole -------------------------------------------------------------------------------


class ArrayFiles:
    """Writes a part's arrays; ``entries`` contains the entries of finished files."""

    def __init__(self, directory: Path, prefix: str) -> None:
        self.directory, self._prefix = directory, prefix
        self.entries: dict[str, Entry] = {}

    @contextmanager
    def writer(
        self, name: str, dtype: DTypeLike, tail: tuple[int, ...] = ()
    ) -> Iterator[ArrayWriter]:
        """Open a writer for the file ``name``; record the entry on exit."""
        file = self._prefix + name
        with ArrayWriter(self.directory / file, dtype, tail) as writer:
            yield writer
        self.entries[file] = writer.finished

    def stream(
        self,
        name: str,
        dtype: DTypeLike,
        pieces: Iterable[NDArray[Any]],
        tail: tuple[int, ...] = (),
    ) -> None:
        """Write an array chunk by chunk."""
        with self.writer(name, dtype, tail) as writer:
            for piece in pieces:
                writer.write(piece)

    def write(self, name: str, dtype: DTypeLike, array: NDArray[Any]) -> None:
        """Write an array in chunks; evict mapped pages."""
        tail = array.shape[1:]
        self.stream(name, dtype, pieces_of(array, _READ), tail)

    @contextmanager
    def rows_writer(
        self, kind: str, ids: str = "nodes", values: str = "values", dtype: DTypeLike = np.float32
    ) -> Iterator[RowsWriter]:
        """Open a writer for rows: the files of offsets, ``ids``, and ``values``."""
        with (
            self.writer(f"{kind}.offsets", np.uint64) as to_offsets,
            self.writer(f"{kind}.{ids}", np.uint32) as to_ids,
            self.writer(f"{kind}.{values}", dtype) as to_values,
        ):
            yield RowsWriter(to_offsets, to_ids, to_values)

    def write_rows(self, kind: str, rows: Links) -> None:
        """Write the offsets, ids, and values of ``rows``."""
        with self.rows_writer(kind) as writer:
            writer.copy(rows)

    def read(self, name: str) -> NDArray[Any]:
        """Map a written array."""
        file = self._prefix + name
        return map_array(self.directory / file, self.entries[file])

    def rows(self, kind: str, ids: str = "nodes", values: str = "values") -> Links:
        """Map written rows."""
        offsets, neighbors, weights = (self.read(f"{kind}.{n}") for n in ("offsets", ids, values))
        return Links(offsets, neighbors, weights)


class RowsWriter:
    """Writes rows one after another."""

    def __init__(self, offsets: ArrayWriter, ids: ArrayWriter, values: ArrayWriter) -> None:
        self._offsets, self._ids, self._values = offsets, ids, values
        self._end = np.zeros(1, np.uint64)
        offsets.write(self._end)

    def write(self, counts: NDArray[Any], ids: NDArray[Any], values: NDArray[Any]) -> None:
        """Append rows with these ``counts``; their ``ids`` and ``values`` may follow later."""
        ends = np.cumsum(np.append(self._end, counts), dtype=np.uint64)
        self._offsets.write(ends[1:])
        self._end = ends[-1:]
        self._ids.write(ids)
        self._values.write(values)

    def copy(self, rows: Links) -> None:
        """Append all ``rows`` in chunks; evict mapped pages."""
        assert rows.weights is not None
        nothing, step = (rows.neighbors[:0], rows.weights[:0]), _READ // 8
        for low in range(0, rows.nodes, step):
            self.write(np.diff(rows.offsets[low : low + step + 1]), *nothing)
        begin, end = int(rows.offsets[0]), int(rows.offsets[-1])
        for low in range(begin, end, step):
            piece = slice(low, min(low + step, end))
            self._ids.write(rows.neighbors[piece])
            self._values.write(rows.weights[piece])
            rows.evict()


def pieces_of(array: NDArray[Any], nbytes: int) -> Iterator[NDArray[Any]]:
    """Yield an array in chunks of about ``nbytes`` bytes, evicting each afterwards."""
    step = max(1, nbytes // (array.itemsize * math.prod(array.shape[1:])))
    for low in range(0, len(array), step):
        yield array[low : low + step]
        evict(array)


class WholeBuilder(ABC):
    """The interface of builders of parts without samples."""

    elsewhere: Callable[[Iterable[Any]], Iterator[Any]] | None = None
    """Maps :meth:`piece` over arguments on other machines, in order."""
    spreads = False
    """Whether cluster nodes can make chunks of the part."""
    logged = 0.0
    """Fraction of the work whose results are logged, so that a killed run can resume."""

    def __init__(self, graph: Graph, links: Links, plan: PartPlan, means: Resources) -> None:
        """Create a builder. ``links`` have the part's direction; for ``both``, they are the
        out-links.
        """
        self.graph, self.links, self.plan, self.means = graph, links, plan, means

    def piece(self, asked: Any) -> Any:
        """Make a chunk on another machine, for layouts that support it (``spreads``)."""
        raise NotImplementedError

    @abstractmethod
    def estimate(self) -> PartEstimate:
        """Estimate size, memory, and time from a pilot on this graph."""

    @abstractmethod
    def write(self, directory: Path, progress: Progress) -> dict[str, Entry]:
        """Write the arrays to ``directory``; return their entries. ``progress`` is called with
        (done, total) in nodes.
        """
