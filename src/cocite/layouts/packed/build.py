"""Making the packed layout (``format.py``): trees, laid out by ``layouts/trees/build.py``, packed.

Memory to make a sample: 28 bytes a node, and the sample itself, of up to 10 bytes a node, twice
where one waits to be written. There is no external form.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.engine.together import TOGETHER
from cocite.engine.walk import walker_bytes
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Carrier, Maker, SampledBuilder
from cocite.layouts.memory_plan import Demand, MemoryPlan, plan_fit
from cocite.layouts.packed.format import WIDTH, PackedFormat, bits_of, blob_words, parts_of
from cocite.layouts.plan import PartPlan
from cocite.layouts.trees.build import WANTED_NODE, TreeMaker, tree_makers
from cocite.layouts.walks.steps import step_bytes
from cocite.means import Means
from cocite.measures import PartSettings

__all__ = ["PackedBuilder", "PackedMaker", "maker_bytes", "packed_blob"]


class PackedBuilder(PackedFormat, SampledBuilder):
    """Of the layout ``packed``."""

    def fitted(self, links: Links, part: PartPlan, means: Means) -> MemoryPlan:
        """Threads as long as they fit beside the whole graph, else blocks."""
        step, stored = step_bytes(part), part.wanted
        if stored is not None:
            step = replace(step, fixed=WANTED_NODE * stored.count)
        need = partial(maker_bytes, None if stored is None else stored.count)
        return plan_fit(links, means, Demand(part.layout, need, step, together=TOGETHER))

    def makers(
        self, links: Links, part: PartPlan, fit: MemoryPlan, folder: Path, numbers: range
    ) -> list[Maker]:
        """A walker and its scratch a thread, or a group of samples on all threads."""
        return tree_makers(PackedMaker, links, part, fit, folder, numbers)

    def carrier(self, ids: NDArray[np.uint32], nodes: int, settings: PartSettings) -> Carrier:
        """Unpacked, carried over as trees are, and packed again."""
        from cocite.kernels import packed, trees

        def carry(words: NDArray[np.uint32], blob: NDArray[np.uint64]) -> Blob:
            row = blob[:WIDTH].astype(np.uint64)
            row[:3] = row[:3] * np.uint64(4) + np.uint64(words.ctypes.data)
            old, joined = np.empty(ids.size, np.uint32), np.empty(ids.size, np.uint8)
            count = int(packed.unpack(row, old, joined))
            if count == packed.DAMAGED:
                raise IndexError
            laid_out = np.zeros(count + -(-count // 8), np.uint32)
            laid_out[:count] = old[:count]
            trees.pack_labels(joined[:count], laid_out[count:].view(np.uint8))
            where = np.array([0, 0, count, count], np.uint64)
            position, member = np.empty(nodes, np.uint32), np.empty(nodes, np.uint32)
            joined = np.empty(nodes, np.uint8)
            members = int(trees.carry_over(laid_out, where, ids, position, member, joined))
            if members == trees.DAMAGED:
                raise IndexError
            return packed_blob(member[:members], joined[:members], position)

        return carry


class PackedMaker(TreeMaker):
    """Makes blobs as trees are made, and packs them."""

    def _blob(
        self,
        position: NDArray[np.uint32],
        member: NDArray[np.uint32],
        members: int,
        live: tuple[int, ...],
    ) -> Blob:
        return packed_blob(member[:members], self._joined[:members], position, live)


def packed_blob(
    member: NDArray[np.uint32],
    joined: NDArray[np.uint8],
    room: NDArray[np.uint32],
    live: tuple[int, ...] = (),
) -> Blob:
    """The blob of trees laid out, of as many nodes as there is ``room``, which is written over.
    Raises :class:`IndexError` if a node stands in them twice.
    """
    from cocite.kernels import packed

    nodes = room.size
    met = np.empty(nodes, np.uint8)
    runs = int(packed.count_runs(member, joined, met))
    if runs > nodes:
        raise IndexError
    words = np.zeros(blob_words(nodes, runs), np.uint32)
    directory, order, _ = parts_of(nodes, runs)
    bits = np.array([bits_of(nodes), bits_of(runs)], np.uint64)
    parts = words[:directory], words[directory : directory + order], words[directory + order :]
    packed.pack(member, joined, met, bits, *parts, room)
    return Blob.of((words,), runs, live)


def maker_bytes(wanted: int | None, nodes: int, keep: bool) -> int:
    """The memory that one :class:`PackedMaker` takes, with its blob, and one that waits if kept;
    where so many nodes are ``wanted``, None for all, their list is not in it.
    """
    stored = nodes if wanted is None else wanted
    blob = 4 * blob_words(stored, stored)
    selected = 0 if wanted is None else 4 * wanted
    return walker_bytes(nodes) + nodes + stored + selected + (1 + keep) * blob
