"""What the layouts of min-hashes share: samples made 16 at a time, and how that fits the memory.

A pass over the rings gives the winners of 16 samples (``engine/rings.py``) at the price of one;
they are kept, and laid out one after another as they are asked for, a sample a thread. A sample is
a function of its number, so a build that is resumed makes 16 from there (``layouts/together.py``).

    in memory    links + rows of the scan + winners of 16 samples + blobs <= budget
    on disk      2 blobs + a scan in what is left of the budget (``engine/scan_plan.py``); winners
                 lie in a scratch file, and are written and read in sequence

Memory, for n nodes: 128 n bytes for the rows, 64 n a ring for the winners.
Source: 001, section 2.3.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.engine.rings import LANES, Rings, plan_ring_scan
from cocite.engine.scan_plan import ROW_BYTES, ScanPlan, Way
from cocite.errors import UsageError
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob, Maker
from cocite.layouts.memory_plan import MemoryPlan, too_little
from cocite.layouts.plan import PartPlan
from cocite.layouts.together import TogetherMaker
from cocite.means import Means
from cocite.measures import LENGTH, SEED
from cocite.memory import format_size, own_memory
from cocite.store import Scratch, forget

__all__ = ["Layer", "RingMaker", "RingPlan", "plan_rings", "wanted_bytes", "wanted_of"]

_LEAST_SCAN = 4 << 20


@dataclass(frozen=True)
class RingPlan(MemoryPlan):
    """What a build may use: ``memory`` and ``threads`` in all, of them ``layers`` threads that lay
    out; ``plan`` is that of the scan, made here and nowhere else; ``winners`` their bytes on disk.
    """

    together: int = LANES
    layers: int = 1
    plan: ScanPlan | None = None
    winners: int = 0

    @property
    def on_disk(self) -> bool:
        """Whether the winners lie on disk."""
        return self.winners > 0

    def __str__(self) -> str:
        text = f"{format_size(self.memory + own_memory())} of memory on {self.threads} thread"
        text += "s" * (self.threads > 1)
        if self.threads < self.wanted:
            text += f" (of {self.wanted}: the memory given holds no more)"
        text += f", {LANES} samples at once"
        plan = self.plan
        if plan is not None and self.on_disk:
            text += f", {format_size(plan.scratch + self.winners)} of scratch on disk"
            if plan.way is not Way.MEMORY:
                text += ", the links read from there"
            if plan.way is Way.BLOCKS:
                text += f" in {plan.blocks} block" + "s" * (plan.blocks > 1)
        return text


def plan_rings(links: Links, part: PartPlan, means: Means, blob: int) -> RingPlan:
    """How a build fits its memory: all in it, with as many threads as that allows; else on disk.

    ``blob`` is the size of the largest blob, with the scratch that laying it out takes.

    Raises :class:`ResourceError` if not even that fits.
    """
    if means.external:
        raise UsageError(
            f"external: the layout {part.layout} goes to disk by itself where memory is short; "
            "leave the option out, or give less --memory"
        )
    threads, memory, blocks = means.threads, means.memory, means.blocks
    nodes = links.nodes
    winners = 4 * LANES * part.settings[LENGTH] * nodes

    for layers in range(threads, 0, -1) if blocks is None else ():
        # Those at work, one that waits for its turn, and one that is being written.
        need = winners + (layers + 2 * (layers > 1) + (layers == 1)) * blob
        if need + links.nbytes + 2 * ROW_BYTES * nodes <= memory:
            plan = plan_ring_scan(links, replace(means, memory=memory - need))
            return RingPlan(need + plan.memory, threads, (), threads, layers=layers, plan=plan)
    least = 2 * blob
    if blocks is None and memory < least + _LEAST_SCAN:
        raise too_little(part.layout, nodes, least + _LEAST_SCAN, memory, "with one thread")
    plan = plan_ring_scan(links, replace(means, memory=max(memory - least, _LEAST_SCAN)))
    need = least + plan.memory
    wanted = threads if blocks is None else plan.threads
    return RingPlan(need, plan.threads, (), wanted, plan=plan, winners=winners)


def wanted_bytes(part: PartPlan) -> int:
    """What the nodes that are wanted take in memory, if not all are: their list, and their winners
    in a ring.
    """
    return 0 if part.wanted is None else 8 * part.wanted.count


def wanted_of(winners: NDArray[np.uint32], wanted: NDArray[np.uint32] | None) -> NDArray[np.uint32]:
    """The winners of the nodes that are wanted, None for all."""
    return winners if wanted is None else winners[wanted]


class Layer(ABC):
    """Lays a sample out; owns scratch memory, so one for each thread."""

    @abstractmethod
    def __call__(self, sample: int, rings: Sequence[NDArray[np.uint32]]) -> Blob:
        """The blob of a sample from the winners of its rings, uint32[nodes] each."""


class RingMaker(TogetherMaker):
    """Makes blobs of min-hashes."""

    def __init__(
        self,
        links: Links,
        part: PartPlan,
        fit: MemoryPlan,
        folder: Path,
        numbers: range,
        layer: Callable[[], Layer],
    ) -> None:
        super().__init__(numbers, LANES)
        assert isinstance(fit, RingPlan)
        assert fit.plan is not None
        settings = part.settings
        length = settings[LENGTH]
        seed = settings[SEED]
        self._rings = Rings(links, fit.plan, length, seed, turn=part.turn, folder=folder)
        scratch = Scratch.beside(folder) if fit.on_disk else Scratch(None)
        self._winners = scratch.zeros((length, LANES, links.nodes), np.uint32)
        self._first = 0
        self._each = [self._lay_out(layer()) for _ in range(fit.layers)]

    def _make(self, samples: range) -> None:
        """Their winners."""
        self._first = samples.start
        for ring in self._rings(samples):
            found = self._winners[ring.step - 1, : len(samples)]
            ring.winners(found)
            forget(found)

    def _layers(self) -> list[Maker]:
        return self._each

    def _lay_out(self, layer: Layer) -> Maker:
        def work(sample: int) -> Blob:
            rings = self._winners[:, sample - self._first]
            blob = layer(sample, list(rings))
            for ring in rings:
                forget(ring)
            return blob

        return work
