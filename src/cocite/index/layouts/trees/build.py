"""Builders of walk samples.

Step weights, where n is the number of nodes and d(u) is how often u is a neighbor:

    hubs=plain       none, or the weight w(u, v) of the link
    hubs=idf         t(u) = log((n + 1) / d(u)), times w(u, v)
    hubs=rare        t(u) = 1 / d(u), times w(u, v)

Memory in bytes per sample per node: 26.5 for trees, or 35 while one sample waits to be written; 28
plus the sample for packed; 30, and at most 12 per step, for paths; and 28 for compact. Step weights
need another 4 bytes per link for cumulative weights or products, and 4 per node for page weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Labels, Step, Words
from cocite.engine.walk import Mover, Walker, walker_bytes
from cocite.engine.walk_batch import GroupWalker, WalkerGroup
from cocite.engine.walk_blocks import ExternalWalker
from cocite.engine.weights import StepWeights, step_weights, telling_weights
from cocite.graph.blocks import Links
from cocite.graph.partitions import BlockedLinks
from cocite.index.layouts.batch_maker import (
    BatchMaker,
    Blob,
    Carrier,
    Maker,
    SampledBuilder,
    SampleJob,
)
from cocite.index.layouts.contract import PartPlan
from cocite.index.layouts.memory_plan import (
    WALK_NODE,
    Demand,
    MemoryPlan,
    StepBytes,
    plan_fit,
    samples_together,
)
from cocite.index.layouts.trees.assemble import (
    BlocksMaker,
    ExternalCompact,
    ExternalPaths,
    ExternalTrees,
    fit_blocks,
)
from cocite.index.layouts.trees.format import (
    GROUP,
    GROUP_WORDS,
    WIDTH,
    bits_of,
    check_points,
    compact_words,
    eighths,
    group_trees,
    packed_words,
    parts_of,
    path_words,
    tree_words,
)
from cocite.kernels import paths, runs, trees
from cocite.measures import HUBS, LENGTH, SAMPLES, SEED, PartSettings
from cocite.resources import Resources, available
from cocite.storage.spool import Scratch

_ID, _VALUE = 4, 4
"""Bytes of a neighbor id, and of a weight."""


def step_bytes(part: PartPlan) -> StepBytes:
    """Return the memory that a part's steps need in addition to the links."""
    if part.measure.step is None or not part.step.weighted:
        return StepBytes()
    node = _VALUE if part.by_page else 0
    products = _VALUE if part.by_page and part.weighted else 0
    if part.step is Step.WEIGHTED:
        return StepBytes(_VALUE + products, node, _ID + _VALUE)
    return StepBytes(products, node, _ID + _VALUE if part.weighted else _ID)


def part_weights(links: Links, part: PartPlan, scratch: Scratch) -> StepWeights | None:
    """Compute the step weights that all walkers of a part share into ``scratch``; return None if
    steps are uniform. Raises :class:`UsageError` for products outside the range of float32.
    """
    if not part.step.weighted:
        return None
    pages = telling_weights(links, part.settings[HUBS]) if part.by_page else None
    return step_weights(links, part.step, node_weights=pages, scratch=scratch)


WANTED_NODE = 12
"""Bytes per selected node in addition to the blob: the mapped id list, and buffered positions."""


class TreesBuilder(SampledBuilder):
    """Builds the ``trees`` layout."""

    def fitted(self, links: Links, part: PartPlan, means: Resources) -> MemoryPlan:
        """Plan the memory (:func:`plan_fit`); packed trees have no external form."""
        packed, step = part.layout == "packed", step_bytes(part)
        if isinstance(links, BlockedLinks) and not packed:
            return fit_blocks(links, part, means)
        wanted = None if part.wanted is None else part.wanted.count
        if wanted is not None and not packed:
            step = replace(step, fixed=WANTED_NODE * wanted)
        need = partial(tree_maker_bytes, wanted=wanted, packed=packed)
        together = _together(links, part, means, WALK_NODE)
        external = 0 if packed else together
        return plan_fit(links, means, Demand(part.layout, need, step, together, external))

    def makers(self, links: Links, job: SampleJob, fit: MemoryPlan) -> list[Maker]:
        """Return one maker per thread, or a batch maker that uses all threads."""
        if isinstance(links, BlockedLinks):
            return [BlocksMaker(links, job, fit)]
        part, folder, numbers = job.plan, job.folder, job.numbers
        mover, length = _mover_of(links, job, fit), part.settings[LENGTH]
        wanted = None if part.wanted is None else part.wanted.ids()
        if fit.external:
            walker = ExternalWalker(mover(), length, folder, fit.rows, fit.together)
            layer = ExternalTrees(walker, links.nodes, folder, wanted)
            return [BatchMaker(numbers, walker.together, walker.walk, [layer])]
        laid_out = links.nodes, fit.keep, wanted, part.layout == "packed"
        if fit.together > 1:
            group = WalkerGroup(
                mover(), length, together=fit.together, threads=fit.threads, folder=folder
            )
            layers = [TreeMaker(walker, *laid_out) for walker in group.walkers]
            return [BatchMaker(numbers, fit.together, group, layers)]
        return [TreeMaker(Walker(mover(), length), *laid_out) for _ in range(fit.threads)]

    def carrier(self, ids: Words, nodes: int, settings: PartSettings) -> Carrier:
        """Return a sample converter: removed nodes leave their trees; new nodes have none."""

        def carry(words: Words, blob: NDArray[np.uint64]) -> Blob:
            member, joined = np.empty(nodes, np.uint32), np.empty(nodes, np.uint8)
            laid_out, count = self._laid_out(words, blob, ids.size)
            at = np.uint64(laid_out.ctypes.data)
            members = int(trees.carry_over(at, count, ids, member, joined))
            if members == trees.DAMAGED:
                raise IndexError
            return self._encoded(member[:members], joined[:members], nodes)

        return carry

    def _laid_out(self, words: Words, blob: NDArray[np.uint64], nodes: int) -> tuple[Words, int]:
        """Return the trees of a stored sample of ``nodes`` nodes, and the member count."""
        return words[int(blob[1]) :], int(blob[3])

    def _encoded(self, member: Words, joined: Labels, nodes: int) -> Blob:
        return tree_blob(member, joined)


class PackedBuilder(TreesBuilder):
    """Builds the ``packed`` layout: trees encoded as runs."""

    def _laid_out(self, words: Words, blob: NDArray[np.uint64], nodes: int) -> tuple[Words, int]:
        row = blob[:WIDTH].astype(np.uint64)
        row[:3] = row[:3] * np.uint64(4) + np.uint64(words.ctypes.data)
        member, joined = np.empty(nodes, np.uint32), np.empty(nodes, np.uint8)
        count = int(runs.unpack(row, member, joined))
        if count == runs.DAMAGED:
            raise IndexError
        return group_trees(member[:count], joined[:count]), count

    def _encoded(self, member: Words, joined: Labels, nodes: int) -> Blob:
        return packed_blob(member, joined, np.empty(nodes, np.uint32))


def _together(links: Links, part: PartPlan, means: Resources, node: int) -> int:
    """Return how many samples share a scan of the links, given ``node`` scratch bytes per node."""
    # With the links in memory, scans cost less than the state that more samples write: a build of
    # cnr-2000 took 15% longer with all 100 samples together than with 16.
    disk = means.disk if links.nbytes > available() else 0
    return samples_together(part.settings[SAMPLES], links.nodes, disk, node)


def _mover_of(links: Links, job: SampleJob, fit: MemoryPlan) -> Callable[[], Mover]:
    """Return a function that makes a mover for a walker of a part. Movers share weights."""
    part, weights = job.plan, part_weights(links, job.plan, fit.scratch(job.folder))
    how = part.step, part.settings[SEED], fit.cuts, part.turn, weights, part.in_share
    return partial(Mover, links, *how)


class TreeMaker:
    """Makes blobs of trees. Owns a walker and scratch memory: use one per thread.

    With ``keep``, or if ``packed``, a blob remains valid when the next one is made. ``wanted``
    uint32[m], ascending, contains the selected nodes, or is None for all nodes.
    """

    def __init__(
        self,
        walker: Walker | GroupWalker,
        nodes: int,
        keep: bool,
        wanted: Words | None = None,
        packed: bool = False,
    ) -> None:
        self._walker, self._packed = walker, packed
        self._keep, self._requested = keep, wanted
        self._joined = np.empty(nodes, np.uint8)

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample."""
        found = self._walker(sample)
        (position, member), joined = found.spare, self._joined
        members = int(
            trees.lay_out(found.parent, found.label, found.extent, position, member, joined)
        )
        if self._requested is not None:
            trees.mark(self._requested, position, member[:members], joined[:members])
            marked = member[:members], joined[:members], np.zeros(4, np.int64)
            members = int(trees.select(*marked, member, joined))
        member, joined = member[:members], joined[:members]
        if self._packed:
            stored = position if self._requested is None else position[: self._requested.size]
            return packed_blob(member, joined, stored, found.live)
        return tree_blob(member, joined, found.live, _NO_ROOM if self._keep else position)


_NO_ROOM = np.empty(0, np.uint32)


def _grouped(member: Words, joined: Labels, room: Words) -> tuple[Words, Words]:
    """Return trees in groups: those that fit in ``room``, and the rest."""
    words, cut = tree_words(member.size), min(room.size // GROUP_WORDS, member.size // GROUP)
    parts = room[: cut * GROUP_WORDS], np.zeros(words - cut * GROUP_WORDS, np.uint32)
    for part, places in zip(parts, (slice(cut * GROUP), slice(cut * GROUP, None)), strict=True):
        group_trees(member[places], joined[places], part)
    return parts


def tree_blob(
    member: Words, joined: Labels, live: tuple[int, ...] = (), room: Words = _NO_ROOM
) -> Blob:
    """Return the blob of laid-out trees, using the buffer ``room`` as far as they fit."""
    return Blob.of(_grouped(member, joined, room), member.size, live)


def packed_blob(member: Words, joined: Labels, room: Words, live: tuple[int, ...] = ()) -> Blob:
    """Return the packed blob of laid-out trees, overwriting ``room``, which has one element per
    node. Raises :class:`IndexError` if a node occurs twice.
    """
    nodes = room.size
    met = np.empty(nodes, np.uint8)
    count = int(runs.count_runs(member, joined, met))
    if count > nodes:
        raise IndexError
    words = np.zeros(packed_words(nodes, count), np.uint32)
    directory, order, _ = parts_of(nodes, count)
    bits = np.array([bits_of(nodes), bits_of(count)], np.uint64)
    parts = words[:directory], words[directory : directory + order], words[directory + order :]
    runs.pack(member, joined, met, bits, *parts, room)
    return Blob.of((words,), count, live)


def tree_maker_bytes(
    nodes: int, keep: bool, *, wanted: int | None = None, packed: bool = False
) -> int:
    """Return the memory of one :class:`TreeMaker` and its blob; with ``keep``, also of a waiting
    blob. ``wanted`` is the number of selected nodes, or None for all; the list of selected nodes is
    not included.
    """
    stored = nodes if wanted is None else wanted
    walk = walker_bytes(nodes) + nodes
    if packed:
        return walk + stored + (1 + keep) * 4 * packed_words(stored, stored)
    blob = 4 * tree_words(stored)
    return walk + (2 * blob if keep else blob - 4 * GROUP_WORDS * (stored // GROUP_WORDS))


class PathsBuilder(SampledBuilder):
    """Builds the ``paths`` layout."""

    def fitted(self, links: Links, part: PartPlan, means: Resources) -> MemoryPlan:
        """Plan as for trees, but make one sample at a time if only the links are in blocks."""
        length = part.settings[LENGTH]
        need = partial(path_maker_bytes, length)
        scratch = WALK_NODE + 12 * length, 39 + 16 * length
        together = _together(links, part, means, scratch[0])
        demand = Demand(part.layout, need, step_bytes(part), 1, together, scratch)
        return plan_fit(links, means, demand)

    def makers(self, links: Links, job: SampleJob, fit: MemoryPlan) -> list[Maker]:
        """Return one maker per thread, or a batch maker of samples in files."""
        mover, length = _mover_of(links, job, fit), job.plan.settings[LENGTH]
        if fit.external:
            rows = max(1, fit.rows // 2)  # half to walk, half to group
            walker = ExternalWalker(mover(), length, job.folder, rows, fit.together, points=True)
            layer = ExternalPaths(walker, links.nodes, rows, job.folder)
            return [BatchMaker(job.numbers, walker.together, walker.walk, [layer])]
        own = links.nodes, length, fit.keep
        return [PathMaker(Walker(mover(), length), *own) for _ in range(fit.threads)]


class PathMaker:
    """Makes blobs of paths. Owns a walker and scratch memory: use one per thread.

    With ``keep``, a blob remains valid when the next one is made.
    """

    def __init__(self, walker: Walker, nodes: int, length: int, keep: bool) -> None:
        self._walker = walker
        self._keep = keep
        self._joined, self._steps = np.empty(nodes, np.uint8), np.empty(nodes, np.uint8)
        self._noted = np.empty(nodes * length, np.uint32)  # untouched pages take no memory
        self._begins: list[int] = []

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample."""
        self._steps[:] = 0
        self._begins = [0]
        found = self._walker(sample, self._note)
        points = self._begins[-1]
        check_points(sample, points)
        nodes, joined = self._joined.size, self._joined
        words = eighths(nodes)
        position, member = found.spare
        place = trees.lay_out(found.parent, found.label, found.extent, position, member, joined)
        paths.seat_others(position, member, joined, np.uint32(place))
        grouped = _grouped(member, joined, _NO_ROOM if self._keep else found.parent)
        tail = np.zeros(path_words(nodes, points) - nodes - tree_words(nodes), np.uint32)
        steps, begin, point = np.split(tail, [words, 2 * words])
        first, seated = found.extent, joined  # reuse both as scratch
        paths.lay_steps(member, self._steps, first, seated, begin)
        trees.pack_labels(seated, steps.view(np.uint8))
        cursors = np.array(self._begins, np.int64)
        paths.lay_points(self._steps, first, self._noted, cursors, point)
        position = position.copy() if self._keep else position
        return Blob.of((position, *grouped, tail), points, found.live)

    def _note(self, step: int, heads: Words, at: Words) -> None:
        begin = self._begins[-1]
        paths.note_step(heads, at, np.uint8(step), self._steps, self._noted[begin:])
        self._begins.append(begin + at.size)


def path_maker_bytes(length: int, nodes: int, keep: bool) -> int:
    """Return the maximum memory of one :class:`PathMaker`, its blob, and the previous blob. The
    maximum is reached only if no walks meet.
    """
    blob = 4 * path_words(nodes, nodes * length) - (0 if keep else 8 * nodes)
    return walker_bytes(nodes) + (2 + 4 * length) * nodes + 2 * blob


class CompactBuilder(SampledBuilder):
    """Builds the ``compact`` layout."""

    def fitted(self, links: Links, part: PartPlan, means: Resources) -> MemoryPlan:
        """Plan as for paths."""
        scratch = 24, 0
        together = _together(links, part, means, scratch[0])
        step = step_bytes(part)
        demand = Demand(part.layout, compact_maker_bytes, step, 1, together, scratch)
        return plan_fit(links, means, demand)

    def makers(self, links: Links, job: SampleJob, fit: MemoryPlan) -> list[Maker]:
        """Return one maker per thread, or a batch maker of samples in files."""
        part = job.plan
        move = Mover(links, part.step, part.settings[SEED], fit.cuts, part.turn)
        if fit.external:
            made = ExternalCompact(links, move, fit.cuts, fit.rows, job.folder, fit.together)
            return [BatchMaker(job.numbers, fit.together, made.make, [made])]
        return [CompactMaker(move, links.nodes) for _ in range(fit.threads)]


class CompactMaker:
    """Makes compact blobs, which own their memory."""

    def __init__(self, move: Mover, nodes: int) -> None:
        self._move = move
        self._everywhere = np.arange(nodes, dtype=np.uint32)

    def __call__(self, sample: int) -> Blob:
        """Return the blob of a sample."""
        nodes = self._everywhere.size
        words = np.zeros(compact_words(nodes, nodes), np.uint32)
        forward, begin = words[:nodes], words[nodes : 2 * nodes + 1]
        self._move(sample, 1, self._everywhere, forward)
        members = int(paths.list_children(forward, begin, words[2 * nodes + 1 :]))
        return Blob.of((words[: compact_words(nodes, members)],), members, (members,))


def compact_maker_bytes(nodes: int, keep: bool) -> int:
    """Return the memory of one :class:`CompactMaker`, its blob, and the previous blob."""
    return 4 * nodes + 8 * compact_words(nodes, nodes)
