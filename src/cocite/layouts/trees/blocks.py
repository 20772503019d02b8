"""The trees layout of a graph in blocks that each live somewhere, in a process of its own or not.

    TreeBlock       holds the rows of one block, walks with it and lays its trees out; and collects
                    one range of positions of every sample
    BlocksMaker     conducts: steps of walks, then the trees, and puts blobs together

Trees need one ascending pass over the blocks (``block.py``), so blocks lay out a sample one after
another; they are asked for several samples ahead, and while one block lays out a sample the one
before it lays out the next. Positions and ranges come to the conductor piece by piece, who writes
them to a scratch file. The blob is that of ``build.py``, to the byte.

What is done if somebody is lost: ``layouts/apart.py``.

Memory of a block: its rows, 21 bytes a node, 64 for each of ``rows`` rows under way, and of each
sample that walks 36 a node at most. Of the conductor: a piece of a blob.
Source: 001, section 2.1.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from cocite.engine.block import BLOCK_NODE, ROW_ROOM, BlockPart
from cocite.engine.blocks_walk import BlocksWalk, BlockWalker, Traffic, placed_links
from cocite.engine.parcels import TOKENS, Letters, Mailbox, Parcel, pack, unpacked
from cocite.engine.together import TOGETHER
from cocite.engine.weights import step_weights
from cocite.graph.in_blocks import BlockedLinks, GraphBlock
from cocite.graph.rows import Links
from cocite.layouts.apart import ApartMaker, ApartWork
from cocite.layouts.blobs import Blob
from cocite.layouts.memory_plan import MemoryPlan, see_apart, too_little
from cocite.layouts.plan import PartPlan
from cocite.layouts.trees.block import EIGHT, BlockTrees, range_cuts
from cocite.layouts.trees.external import Words
from cocite.layouts.trees.format import blob_words
from cocite.means import Means
from cocite.measures import LENGTH, SEED

__all__ = ["BlocksMaker", "TreeBlock", "fit_blocks"]

_ROWS = 1 << 16
_SAMPLE_NODE = 36
"""Bytes a node of a block, of each sample that walks: tokens come and go, and records."""
_AHEAD = 3
"""Samples that are laid out at a time."""


@dataclass(frozen=True)
class BlockWork(ApartWork):
    """What a :class:`TreeBlock` is to do, with so many ``rows`` under way."""

    rows: int

    @property
    def width(self) -> int:
        """Positions in a range: there is one range a block at most."""
        blocks = len(self.cuts) - 1
        return -(-self.nodes // (blocks * EIGHT)) * EIGHT


class TreeBlock(BlockWalker):
    """One block of a graph: its walks and its trees."""

    def __init__(self, work: BlockWork, block: int) -> None:
        """Open the block of that number, and check it. Raises
        :class:`~cocite.errors.StoreError`.
        """
        held = GraphBlock(work.folder, block, work.digest)
        plan, cuts = work.plan, np.array(work.cuts, np.uint32)
        own = Links(held.offsets, held.sources, held.weights if plan.weighted else None)
        weights = step_weights(own, plan.step) if plan.step.weighted else None
        rows = held.offsets, own.neighbours, own.weights
        part = BlockPart(
            placed_links(*rows, held.first, work.nodes),
            plan.step,
            plan.settings[LENGTH],
            plan.settings[SEED],
            cuts,
            work.rows,
            plan.turn,
            largest=max(held.last - held.first, work.width),
            weights=weights,
        )
        super().__init__(part, block)
        self._ranges = range_cuts(work.nodes, work.width)
        self._trees = BlockTrees(part.rooms, cuts, part.dealer, self._ranges)
        self._own_places: dict[int, Parcel] = {}

    def begin(self, samples: range) -> None:
        """Take up samples anew."""
        super().begin(samples)
        self._own_places = {}

    def lay_out(self, sample: int, cursor: int, *told: Parcel) -> tuple[object, ...]:
        """Where the block's nodes stand: where the next tree begins, and bytes sent; uint32[nodes]
        positions; then what it tells each block behind it, and the places of each range.
        """
        state = self._states[sample]
        messages, tell = Mailbox(), Letters(self._blocks)
        for _, _, tag, rows in unpacked(told):
            messages.put(tag, rows)
        records = _Records(state.inner, state.outer)
        found = self._trees.positions(self._block, cursor, records, messages, tell)
        cursor, positions = found[0], found[1].copy()
        places = Letters(self._ranges.size - 1)
        for piece in self._trees.places(self._block):
            self._trees.send_places(piece, places)
        behind = [_letter(sample, tell, block) for block in range(self._block + 1, self._blocks)]
        ranges: list[Parcel | None] = []
        for number in range(self._ranges.size - 1):
            parcel = _letter(sample, places, number)
            if number == self._block:
                self._own_places[sample] = parcel
                ranges.append(None)
            else:
                ranges.append(parcel)
        sent = sum(parcel.nbytes for parcel in [*behind, *ranges] if parcel is not None)
        return cursor, sent, positions, *behind, *ranges

    def collect(self, sample: int, members: int, *places: Parcel | None) -> tuple[object, ...]:
        """The range of the block's number: its members uint32[size], and their labels packed, whole
        words of them. ``members`` is how many the sample has.
        """
        from cocite.kernels import trees

        number = self._block
        low, high = (min(int(cut), members) for cut in self._ranges[number : number + 2])
        box = Mailbox()
        for _, _, tag, rows in unpacked([self._own_places.pop(sample), *filter(None, places)]):
            box.put(tag, rows)
        member, label = self._trees.range(number, low, high - low, box)
        packed = np.zeros(-(-(high - low) // EIGHT), np.uint32)
        trees.pack_labels(label, packed.view(np.uint8))
        return member.copy(), packed


class _Records:
    """Records of a sample as the layout asks for them: odd buckets are those of other blocks."""

    def __init__(self, inner: Mailbox, outer: Mailbox) -> None:
        self._boxes = inner, outer

    def pieces(self, bucket: int, buffer: NDArray[np.uint32]) -> Any:
        """(tag, rows) of a bucket."""
        return self._boxes[bucket % 2].pieces(bucket, buffer)


def _letter(sample: int, letters: Letters, bucket: int) -> Parcel:
    return pack([(sample, TOKENS, letters.taken(bucket))])


@dataclass
class _LaidOut:
    """Handles of a sample that is being laid out."""

    members: Any
    sent: list[Any]
    positions: list[Any]
    places: list[list[Any]]  # by range, from each block


class BlocksMaker(ApartMaker[BlockWork]):
    """Makes blobs of a graph in blocks."""

    ahead = _AHEAD

    def __init__(
        self, links: BlockedLinks, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> None:
        graph = links.whole
        work = BlockWork(
            str(graph.path.absolute()), graph.digest, tuple(graph.cuts), part, fit.rows
        )
        super().__init__(TreeBlock, work, graph, fit, folder, numbers)
        self._ranges = range_cuts(work.nodes, work.width)
        self._walk = BlocksWalk(self.crew, work.nodes, part.settings[LENGTH])
        self._live: dict[int, tuple[int, ...]] = {}

    @property
    def traffic(self) -> Traffic:
        """What blocks have sent each other."""
        return self._walk.traffic

    def draw(self, samples: range) -> None:
        """All walks of them."""
        self._live = self._walk.walk(samples)

    def ask(self, sample: int) -> _LaidOut:
        """Have a sample laid out, block after block, as soon as each can."""
        crew, blocks = self.crew, self.crew.size
        told: list[list[Any]] = [[] for _ in range(blocks)]
        ranges = self._ranges.size - 1
        found = _LaidOut(0, [], [], [[] for _ in range(ranges)])
        for block in range(blocks):
            behind = blocks - 1 - block
            cursor, sent, positions, *rest = crew.call(
                block, "lay_out", sample, found.members, *told[block], answers=3 + behind + ranges
            )
            found.members = cursor
            found.sent.append(sent)
            found.positions.append(positions)
            for other, parcel in enumerate(rest[:behind], block + 1):
                told[other].append(parcel)
            for number, parcel in enumerate(rest[behind:]):
                found.places[number].append(parcel)
        return found

    def put_together(self, sample: int, asked: _LaidOut) -> Blob:
        """Positions, then members and labels."""
        crew = self.crew
        members = int(crew.take([asked.members])[0])
        digest, at = xxhash.xxh3_64(), 0
        for handle in asked.positions:
            at = self._write(crew.take([handle])[0], at, digest)
        parts = [
            crew.call(number, "collect", sample, members, *places, answers=2)
            for number, places in enumerate(asked.places)
        ]
        labels = at + members
        last = labels
        for member, packed in parts:
            at = self._write(crew.take([member])[0], at, digest)
            last = self._write(crew.take([packed])[0], last, None)
        words = blob_words(self.work.nodes, members)
        self.blob.write(4 * last, np.zeros(words - last, np.uint32))
        for piece in Words(self.blob, labels, words):
            digest.update(piece.view(np.uint8).data)
        self._walk.traffic = self.traffic.plus(trees=sum(crew.take(asked.sent)))
        live = self._live[sample]
        return Blob(Words(self.blob, 0, words), members, live, digest.intdigest())

    def _write(self, words: NDArray[np.uint32], at: int, digest: xxhash.xxh3_64 | None) -> int:
        """Write words of the blob; returns where the next are."""
        words = np.ascontiguousarray(words)
        self.blob.write(4 * at, words)
        if digest is not None:
            digest.update(words.view(np.uint8).data)
        return at + words.size


def fit_blocks(links: BlockedLinks, part: PartPlan, means: Means) -> MemoryPlan:
    """How the blocks fit the memory that each of them may take: as many samples at a time as that
    has room for. Raises :class:`ResourceError` if it has none for one.
    """
    see_apart(links, part)
    graph, offsets = links.whole, links.offsets
    need = 0
    for count in range(TOGETHER, 0, -1):
        need = max(
            (8 + BLOCK_NODE + 8 + _SAMPLE_NODE * count) * (last - first)
            + (12 if part.weighted else 4) * int(offsets[last] - offsets[first])
            for first, last in pairwise(graph.cuts)
        )
        need += ROW_ROOM * _ROWS
        if need <= means.memory:
            return MemoryPlan(need, 1, tuple(graph.cuts[1:-1]), 0, _ROWS, 0, count, 0, graph.blocks)
    raise too_little("trees", links.nodes, need, means.memory, f"in {graph.blocks} blocks")
