"""Builders of min-hash samples, and their memory plan.

One scan per ring gives the min-hash values (*winners*) of 16 samples (``engine/scan.py``). Samples
are then laid out one by one, as groups or as planes.

    in memory    links + rows of the scan + winners + blobs <= budget
    on disk      2 blobs + a scan in the rest of the budget; winners in a scratch file
    external     2 bytes per node or 4 MiB + a scan in the rest; blobs also in a scratch file

With n nodes, the rows need 128 n bytes, listing groups 4 n, and the winners 4 n per ring for each
of up to 16 samples. Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.constants import NOWHERE, Ints, Words
from cocite.engine.plan import ROW_BYTES, ScanPlan, Way
from cocite.engine.row_groups import RowGroups
from cocite.engine.scan import LANES, HopNeighborhoods, plan_ring_scan
from cocite.errors import UsageError
from cocite.graph.blocks import Links
from cocite.graph.partitions import BlockedLinks
from cocite.index.layouts.batch_maker import (
    BatchMaker,
    Blob,
    Carrier,
    FileWords,
    Maker,
    SampledBuilder,
    SampleJob,
)
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import MemoryPlan, too_little
from cocite.index.layouts.minhash.partitions import PartitionRingMaker, fit_ring_blocks
from cocite.index.layouts.minhash.reader import (
    BLOCK,
    MINHASH,
    check_words,
    minhash_words,
    ring_planes,
)
from cocite.kernels import minhash
from cocite.measures import LENGTH, SAMPLES, SEED, PartSettings
from cocite.measures.xjaccard import BITS
from cocite.resources import Resources, format_size
from cocite.storage import evict
from cocite.storage.spool import Scratch, ScratchFile

_LEAST_SCAN, _WINDOWS = 4 << 20, 8 << 20
"""Bytes for the scan, and for writing winners of 16 samples to disk."""
_LEAST_LAYER, _ROW = 4 << 20, 256
"""Minimum bytes for a layout in files, and bytes per buffered row."""
_ALL = np.empty(0, np.uint32)
"""An empty list of nodes, which means all nodes."""


@dataclass(frozen=True)
class RingPlan(MemoryPlan):
    """The plan of a build: total ``memory`` and ``threads``, with ``layers`` threads for layout;
    the ``plan`` of the scan; and the bytes of ``winners`` on disk, including blobs that are laid
    out there, ``rows`` at a time.
    """

    together: int = LANES
    layers: int = 1
    plan: ScanPlan | None = None
    winners: int = 0

    @property
    def on_disk(self) -> bool:
        """Return whether the winners are on disk."""
        return self.winners > 0

    def __str__(self) -> str:
        text, plan = f"{self.head}, {self.together} samples at once", self.plan
        if plan is not None and self.on_disk:
            text += f", {format_size(plan.scratch + self.winners)} of scratch on disk"
            if plan.way is not Way.MEMORY:
                text += ", with links read from disk"
            if plan.way is Way.BLOCKS:
                text += f" in {plan.blocks} block" + "s" * (plan.blocks > 1)
        return text


def plan_neighborhoods(links: Links, part: PartPlan, means: Resources, blob: int) -> RingPlan:
    """Plan a build in memory with as many threads as fit, or on disk.

    ``blob`` is the size of the largest blob, including the scratch for its layout. Raises
    :class:`ResourceError` if neither fits.
    """
    if means.external:
        raise UsageError(
            f"--out-of-core (external=True) does not apply to the {part.layout} layout, which "
            "uses the disk when memory is short: omit --out-of-core, or lower --memory"
        )
    threads, memory, blocks = means.threads, means.memory, means.blocks
    nodes = links.nodes
    together = min(LANES, part.settings[SAMPLES])
    winners = 4 * together * part.settings[LENGTH] * nodes
    least, rows = 2 * blob + _WINDOWS, 0
    layer = max(_LEAST_LAYER, 2 * nodes)
    external = layer + request_bytes(part) + _WINDOWS
    if memory < least + _LEAST_SCAN and external < least:
        least, rows = external, layer // _ROW

    for layers in range(threads, 0, -1) if blocks is None else ():
        # Layers in progress, one waiting, and one being written.
        need = winners + (layers + 2 * (layers > 1) + (layers == 1)) * blob
        whole = need + links.nbytes + 2 * ROW_BYTES * nodes
        if whole <= memory:
            plan = plan_ring_scan(links, replace(means, memory=memory - need))
            taken = need + plan.memory, threads, (), threads
            return RingPlan(*taken, together=together, layers=layers, plan=plan)
    if blocks is None and memory < least + _LEAST_SCAN:
        least = min(least + _LEAST_SCAN, whole)
        raise too_little(part.layout, nodes, least, memory, "even in blocks and with one thread")
    plan = plan_ring_scan(links, replace(means, memory=max(memory - least, _LEAST_SCAN)))
    need = least + plan.memory
    wanted = threads if blocks is None else plan.threads
    winners += blob + 12 * (1 + part.settings[LENGTH]) * nodes if rows else 0
    return RingPlan(
        need, plan.threads, (), wanted, rows, together=together, plan=plan, winners=winners
    )


def request_bytes(part: PartPlan) -> int:
    """Return the memory for the list of selected nodes and their winners in a ring, or 0."""
    return 0 if part.wanted is None else 8 * part.wanted.count


def request_of(winners: Words, wanted: Words | None) -> Words:
    """Return the winners of the selected nodes, or of all nodes if ``wanted`` is None."""
    return winners if wanted is None else winners[wanted]


LayOut = Callable[[int, list[Words]], Blob]
"""(Sample, winners by ring) -> blob."""


class Layer:
    """Lays out a sample. Owns scratch memory: use one per thread."""

    def __init__(self, part: PartPlan, nodes: int) -> None:
        self._part = part
        self._requested = None if part.wanted is None else part.wanted.ids()
        self._most = MINHASH.most_words(part.stored_nodes(nodes), part.settings)
        self._begins = np.empty(0, np.uint32)

    def __call__(self, sample: int, rings: Sequence[Words]) -> Blob:
        """Return a blob that owns its memory, from the winners in ``rings``, uint32[nodes] each."""
        if not self._part.settings[BITS]:
            return self._groups(sample, rings)
        mine = [request_of(winners, self._requested) for winners in rings]
        planes = ring_planes(self._part, sample, mine)
        return Blob.of((planes.reshape(-1),), mine[0].size)

    def _groups(self, sample: int, rings: Sequence[Words]) -> Blob:
        everybody, length = rings[0].size, len(rings)
        nodes = everybody if self._requested is None else self._requested.size
        words = np.empty(self._most, np.uint32)  # untouched pages take no memory
        cells = words[: nodes * length].reshape(nodes, length)
        group = words[nodes * length :]
        if not self._begins.size:
            self._begins = np.empty(everybody, np.uint32)
        at = 0
        for ring, all_winners in enumerate(rings):
            winners, begin = request_of(all_winners, self._requested), at
            scratch = self._begins, cells, group, np.uint64(at)
            at = int(minhash.list_groups(winners, _ALL, ring, *scratch))
            evict(all_winners)
            if self._requested is not None:
                minhash.name_winners(group[begin:at], self._requested)
            check_words(sample, at)
        used, end = nodes * length + at, minhash_words(nodes, length, at)
        words[used:end] = 0
        return Blob.of((words[:end],), at)


class RingMaker(BatchMaker):
    """Makes blobs of min-hash samples in batches."""

    def __init__(self, links: Links, job: SampleJob, fit: MemoryPlan) -> None:
        assert isinstance(fit, RingPlan)
        assert fit.plan is not None
        part, folder = job.plan, job.folder
        length, seed = part.settings[LENGTH], part.settings[SEED]
        self._rings = HopNeighborhoods(links, fit.plan, length, seed, turn=part.turn, folder=folder)
        scratch = Scratch.near(folder) if fit.on_disk else Scratch(None)
        self._winners = scratch.zeros((length, fit.together, links.nodes), np.uint32)
        self._first = 0
        layers: list[LayOut] = [ExternalLayer(part, links.nodes, fit.rows, folder)]
        if not fit.external:
            layers = [Layer(part, links.nodes) for _ in range(fit.layers)]
        makers = [partial(self._lay_out, layer) for layer in layers]
        super().__init__(job.numbers, fit.together, self._find_winners, makers)

    def _find_winners(self, samples: range) -> None:
        self._first = samples.start
        for ring in self._rings(samples):
            found = self._winners[ring.step - 1, : len(samples)]
            ring.winners(found)

    def _lay_out(self, layer: LayOut, sample: int) -> Blob:
        return layer(sample, list(self._winners[:, sample - self._first]))


class MinhashBuilder(SampledBuilder):
    """Builds the ``minhash`` and ``sketch`` layouts."""

    def fitted(self, links: Links, part: PartPlan, means: Resources) -> MemoryPlan:
        """Plan the memory (:func:`plan_neighborhoods`)."""
        if isinstance(links, BlockedLinks):
            return fit_ring_blocks(links, part, means)
        blob = MINHASH.most_words(part.stored_nodes(links.nodes), part.settings)
        blob += 0 if part.settings[BITS] else links.nodes
        return plan_neighborhoods(links, part, means, 4 * blob + request_bytes(part))

    def makers(self, links: Links, job: SampleJob, fit: MemoryPlan) -> list[Maker]:
        """Return one maker, which has its own threads."""
        if isinstance(links, BlockedLinks):
            return [PartitionRingMaker(links, job, fit)]
        return [RingMaker(links, job, fit)]

    def carrier(self, ids: Words, nodes: int, settings: PartSettings) -> Carrier:
        """Return a sample converter: removed nodes leave their groups; new nodes have none."""
        length = settings[LENGTH]

        def carry(words: Words, blob: NDArray[np.uint64]) -> Blob:
            made = np.empty(minhash_words(nodes, length, int(blob[2])), np.uint32)
            cells, group = made[: nodes * length].reshape(nodes, length), made[nodes * length :]
            members = int(minhash.carry_over(words, blob, ids, cells, group))
            if members == minhash.DAMAGED:
                raise IndexError
            end = minhash_words(nodes, length, members)
            made[nodes * length + members : end] = 0
            return Blob.of((made[:end],), members)

        return carry


# -- in files ----------------------------------------------------------------------------


class ExternalLayer:
    """Lays out a sample in a scratch file; a blob is valid until the next one is made."""

    def __init__(self, part: PartPlan, nodes: int, rows: int, folder: Path) -> None:
        self._part, self._stored = part, part.stored_nodes(nodes)
        self._length = part.settings[LENGTH]
        self._requested = None if part.wanted is None else part.wanted.ids()
        self._blob = ScratchFile(folder)
        self._rows = max(1, rows // BLOCK) * BLOCK
        self._groups, self._cells = RowGroups(nodes, rows), RowGroups(self._stored, rows)
        self._winning = self._groups.spool(folder)
        self._beginning = self._cells.spool(folder)

    def __call__(self, sample: int, rings: Sequence[Words]) -> Blob:
        """Return a sample's blob from the winners in ``rings``, uint32[nodes] each."""
        if self._part.settings[BITS]:
            at = 0
            for low in range(0, self._stored, self._rows):
                some = [self._winners(ring, low, self._rows) for ring in rings]
                planes = ring_planes(self._part, sample, some)
                self._blob.write(at, planes)
                at += planes.nbytes
                evict(*rings)
            return Blob.of(FileWords(self._blob, at // 4), self._stored)
        at = 0
        self._beginning.clear()
        for ring, winners in enumerate(rings):
            self._winning.clear()
            for low in range(0, self._stored, self._groups.rows):
                mine = self._winners(winners, low, self._groups.rows)
                nodes = np.arange(low, low + mine.size, dtype=np.uint32)
                self._groups.add(self._winning, mine, nodes)
                evict(winners)
            at = self._write_groups(sample, ring, at)
        self._write_cells()
        used, end = self._stored * self._length + at, minhash_words(self._stored, self._length, at)
        self._blob.write(4 * used, np.zeros(end - used, np.uint32))
        return Blob.of(FileWords(self._blob, end), at)

    def _winners(self, winners: Words, low: int, count: int) -> Words:
        if self._requested is None:
            return winners[low : low + count]
        return winners[self._requested[low : low + count]]

    def _write_groups(self, sample: int, ring: int, at: int) -> int:
        """Write a ring's groups at word ``at`` of all groups; return their end."""
        for low, counts, pieces in self._groups.groups(self._winning):
            sizes = np.where(counts > 1, counts + 2, 0)
            ends, begins = np.cumsum(counts), at + np.cumsum(sizes) - sizes
            at += int(sizes.sum())
            check_words(sample, at)
            done = 0
            for piece in pieces:
                index = np.arange(done, done + piece.size)
                done += piece.size
                key = np.searchsorted(ends, index, side="right")
                shared = counts[key] > 1
                nodes, key, index = piece[shared], key[shared], index[shared]
                if nodes.size:
                    rank = index - ends[key] + counts[key]
                    self._write_nodes(low, nodes, key, rank, begins, counts)
                    self._cells.add(self._beginning, nodes, begins[key], ring)
        return at

    def _write_nodes(
        self, low: int, nodes: Words, key: Ints, rank: Ints, begins: Ints, counts: Ints
    ) -> None:
        """Write nodes to their groups; each group begins with its winner and its size."""
        place = begins[key] + 2 + rank
        first = rank == 0
        begin = int(place[0]) - 2 * int(first[0])
        words = np.empty(int(place[-1]) + 1 - begin, np.uint32)
        words[place - begin] = nodes
        heads = place[first] - begin - 2
        words[heads] = self._named((low + key[first]).astype(np.uint32))
        words[heads + 1] = counts[key[first]]
        self._blob.write(4 * (self._stored * self._length + begin), words)

    def _named(self, winners: Words) -> Words:
        """Return the winners' positions among the stored nodes, or NOWHERE."""
        if self._requested is None:
            return winners
        places = np.searchsorted(self._requested, winners)
        near = self._requested[np.minimum(places, self._stored - 1)]
        return np.where(near == winners, places, NOWHERE).astype(np.uint32)

    def _write_cells(self) -> None:
        """Write where each node's groups begin, in order of node and ring."""
        for low, high, pieces in self._cells.ranges(self._beginning):
            cells = np.full((high - low, self._length), NOWHERE, np.uint32)
            for ring, rows in pieces:
                cells[rows[:, 0] - np.uint32(low), ring] = rows[:, 1]
            self._blob.write(4 * low * self._length, cells)
