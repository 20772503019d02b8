"""The walk in constant memory: tokens in files, one destination block of the graph at a time.

What ``engine/walk.py`` keeps for every node is here kept for the nodes of one block
(``engine/block.py`` has what a block does). At every step the blocks take turns in one process;
what they send each other goes through spools (``store/spool.py``), rows in scratch files. A token
is written and read once a step; the files take 12 bytes for each token of two steps and for each
record. The samples are the same as in memory, since draws are keyed and meetings are in the same
order.

Several samples walk together: while a block is in memory it serves the tokens of all of them, one
sample after another, so that a step of all reads the links once.

Cost of a sample: O(live steps * log(blocks)). Memory: 13 bytes for each node of the largest block,
its slice of the graph, 64 bytes for each of ``rows`` rows that are under way, and of each sample
that walks the tables of its spools (``tables``). A node with more
in-links than fit needs no more: the uniform step reads one of them, and the argmin step does not
scan the in-links of such a hub (``kernels/walk.py``). The clock step reads all of them, once a
step, as pages of the file that the system can take back.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.3 (sorting and merging in place
of arrays; tokens), 2.2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cocite.engine.block import BlockPart
from cocite.engine.step import MAX_LENGTH, Step
from cocite.engine.together import FEW
from cocite.engine.walk import Move
from cocite.engine.weights import StepWeights
from cocite.graph.rows import Links
from cocite.store import Spool, forget

__all__ = ["ExternalWalker", "Meetings", "tables"]

_BATCH = 256
"""Bytes that a spool keeps of a batch beside where its buckets begin, about."""


@dataclass(frozen=True)
class Meetings:
    """One sample's fingerprint graph, in records (node, parent, offset) tagged with the step.

    Bucket 2b of ``records`` has those whose node and parent lie in block b, and b's roots (node,
    NOWHERE, members); bucket 2b + 1 those whose node lies in a block behind. ``live`` counts the
    tokens that made each step.
    """

    records: Spool
    live: tuple[int, ...]


class _State:
    """A sample on its way: its tokens of this step and the next one, its records, how many moved at
    each step, how many have arrived at this one so far, and what moves them.
    """

    def __init__(self, directory: Path, blocks: int) -> None:
        self.arrived, self.going = Spool(directory, blocks), Spool(directory, blocks)
        self.records = Spool(directory, 2 * blocks)
        self.live: list[int] = []
        self.tokens = 0
        self.move: Move | None = None

    def begin(self, nodes: int) -> None:
        """Take up a sample anew."""
        self.records.clear()
        self.live, self.tokens = [], nodes


class ExternalWalker:
    """Makes samples of one graph with tokens in scratch files in ``directory``, up to ``together``
    at a time.
    """

    def __init__(
        self,
        links: Links,
        step: Step,
        length: int,
        seed: int,
        blocks: Sequence[int],
        directory: Path,
        rows: int,
        turn: int = 0,
        *,
        together: int = 1,
        weights: StepWeights | None = None,
        in_share: float = 1.0,
    ) -> None:
        """``blocks`` holds the first node of every block but the first; ``rows`` is how many rows
        are in memory at once; ``turn``, ``weights`` and ``in_share`` are as for ``Walker``.
        """
        self._links, self._weights, self._length = links, weights, length
        self.cuts = np.array([0, *blocks, links.nodes], np.uint32)
        self._part = BlockPart(
            *(links, step, length, seed, self.cuts, rows, turn), weights=weights, in_share=in_share
        )
        self.rooms, self.dealer = self._part.rooms, self._part.dealer
        self.together = together
        self._free = [_State(directory, self.cuts.size - 1) for _ in range(together)]
        self._states: dict[int, _State] = {}

    def __call__(self, sample: int) -> Meetings:
        """One of the samples that were walked last; its records are valid until others are."""
        state = self._states[sample]
        return Meetings(state.records, tuple(state.live))

    def walk(self, samples: range) -> None:
        """Walk these samples, up to ``together``; what was walked before is gone."""
        self._states = dict(zip(samples, self._free, strict=False))
        for state in self._states.values():
            state.begin(self._links.nodes)
        self._part.begin()
        for step in range(1, self._length + 2):
            living = {sample: state for sample, state in self._states.items() if state.tokens}
            tokens = sum(state.tokens for state in living.values())
            for sample, state in living.items():
                self._part.set_out(state, sample, step)
                state.going.clear()
                state.tokens = 0
            for block in range(self.cuts.size - 1 if living else 0):
                if step <= self._length and tokens * FEW > self._links.nodes:
                    self._links.fetch(int(self.cuts[block]), int(self.cuts[block + 1]))
                for state in living.values():
                    state.tokens += self._part.turn(state, block, step)
                self._links.forget()
                if self._weights is not None:
                    forget(self._weights.values)
            self._part.send_records(step)
            for state in living.values():
                state.arrived, state.going = state.going, state.arrived
                if state.tokens and step <= self._length:
                    state.live.append(state.tokens)


def tables(nodes: int, blocks: int, rows: int, together: int) -> int:
    """Bytes that the spools of so many samples take in memory, about, at most: records of all are
    written as often as ``rows`` of them wait, and behind every step.
    """
    batches = MAX_LENGTH + 1 + together * nodes // rows
    return together * (batches * (8 * blocks + _BATCH) + 16 * blocks * blocks)
