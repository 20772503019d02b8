"""What the layouts of min-hashes share: samples made 16 at a time, and how that fits the memory.

A pass over the rings gives the winners of 16 samples (``engine/rings.py``) at the price of one;
they are kept, and laid out one after another as they are asked for, a sample a thread. A sample is
a function of its number, so a build that is resumed in the middle of 16 makes them all again and
lays out those that it needs.

    in memory    links + rows of the scan + winners of 16 samples + blobs <= budget
    on disk      2 blobs + a scan in what is left of the budget (``engine/scan_plan.py``); winners
                 lie in a scratch file, and are written and read in sequence

Memory, for n nodes: 128 n bytes for the rows, 64 n a ring for the winners.
Source: 001, section 2.3.1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.engine.rings import LANES, Rings, plan_ring_scan
from cocite.engine.scan_plan import ROW_BYTES, ScanPlan, Way
from cocite.errors import ResourceError, UsageError
from cocite.graph.rows import Links
from cocite.layouts.blobs import Blob
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.plan import PartPlan
from cocite.means import Means
from cocite.measures import LENGTH, SAMPLES, SEED
from cocite.memory import OWN_MEMORY, format_size, short_of
from cocite.runner import in_order
from cocite.store import Scratch, forget

__all__ = ["Layer", "RingMaker", "RingPlan", "plan_rings"]

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
        text = f"{format_size(self.memory + OWN_MEMORY)} of memory on {self.threads} thread"
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
        raise ResourceError(
            f"a graph of {nodes:,} nodes needs {format_size(least + _LEAST_SCAN)} of memory to "
            f"index, in blocks and with one thread; {short_of(memory)}"
        )
    plan = plan_ring_scan(links, replace(means, memory=max(memory - least, _LEAST_SCAN)))
    need = least + plan.memory
    wanted = threads if blocks is None else plan.threads
    return RingPlan(need, plan.threads, (), wanted, plan=plan, winners=winners)


class Layer(ABC):
    """Lays a sample out; owns scratch memory, so one for each thread."""

    @abstractmethod
    def __call__(self, sample: int, rings: Sequence[NDArray[np.uint32]]) -> Blob:
        """The blob of a sample from the winners of its rings, uint32[nodes] each."""


class RingMaker:
    """Makes blobs on threads of its own, so one is enough."""

    def __init__(
        self,
        links: Links,
        part: PartPlan,
        fit: MemoryPlan,
        folder: Path,
        layer: Callable[[], Layer],
    ) -> None:
        assert isinstance(fit, RingPlan)
        assert fit.plan is not None
        settings = part.settings
        length = settings[LENGTH]
        self._samples = settings[SAMPLES]
        seed = settings[SEED]
        self._rings = Rings(links, fit.plan, length, seed, turn=part.turn, folder=folder)
        scratch = Scratch.beside(folder) if fit.on_disk else Scratch(None)
        self._winners = scratch.zeros((length, LANES, links.nodes), np.uint32)
        self._layers = [layer() for _ in range(fit.layers)]
        self._made = range(0)
        self._next = -1
        self._blobs: Iterator[Blob] = iter(())

    def __call__(self, sample: int) -> Blob:
        """The blob of sample number ``sample``; quickly, if they are asked for in order."""
        if sample not in self._made:
            self._stop()
            self._make(sample - sample % LANES, sample)
        if sample != self._next:
            self._stop()
            todo = range(sample, self._made.stop)
            self._blobs = in_order([self._lay_out(layer) for layer in self._layers], todo)
        blob = next(self._blobs)
        self._next = sample + 1
        return blob

    def _make(self, first: int, sample: int) -> None:
        """The winners of the samples from ``first`` on that are wanted, ``sample`` among them."""
        end = self._samples if sample < self._samples else first + LANES  # those of a refresh
        last = max(sample + 1, min(first + LANES, end))
        self._made = range(0)
        for ring in self._rings(range(first, last)):
            found = self._winners[ring.step - 1, : last - first]
            ring.winners(found)
            forget(found)
        self._made = range(first, last)

    def _lay_out(self, layer: Layer) -> Callable[[int], Blob]:
        def work(sample: int) -> Blob:
            rings = self._winners[:, sample - self._made.start]
            blob = layer(sample, list(rings))
            for ring in rings:
                forget(ring)
            return blob

        return work

    def _stop(self) -> None:
        """Let threads that are ahead end, before what they read is written over."""
        close: Any = getattr(self._blobs, "close", None)
        if close is not None:
            close()
        self._blobs, self._next = iter(()), -1
