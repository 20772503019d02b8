"""Walk several samples together, with one pass over the links per step.

    step      for each block:         read its links once; move the tokens of all samples there
              for each sample:        merge tokens at the same node

If the graph exceeds memory, walks of single samples read the graph for every step of every sample.
Here, a scratch file stores a sample's tokens and records of meetings, 12 bytes each, so a sample
reads and writes 40 bytes per live token instead. Threads share a block. Samples are byte-identical
to those of single walks. On cnr-2000, the walk with all tokens in files (``engine/walk_blocks.py``)
takes 1.4 to 1.9 times as much CPU time. Memory is 25 bytes per node per thread, plus a block.
Source: Fogaras, Racz, *A scalable randomized method to compute link-based similarity rank on the
web graph*, section 2.2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.cluster import Team
from cocite.constants import NOWHERE
from cocite.engine.walk import FingerprintGraph, Move, Mover, count_up
from cocite.kernels import walk_blocks
from cocite.storage.spool import ScratchFile

TOGETHER = 16
"""The minimum number of samples per group; estimates assume this number."""
STATE_NODE = 28
"""Maximum bytes of scratch per node per sample."""

FEW = 64
"""Links are read on demand once fewer than one node in FEW has a token."""
_HOME_WORDS = 1 << 14
_LEAST_WORDS = 192
"""Minimum words of a buffer: 64 records."""


@dataclass
class _BatchState:
    """The state of a sample between steps.

    ``file`` has four regions of 4 bytes per node: the nodes of the tokens, by block; the position
    of each of these tokens by head; the heads; and the members. Records follow. Each block's tokens
    begin at ``starts`` uint32[blocks + 1]. ``ends`` counts the records before each step and, last,
    all records; ``live`` counts the tokens at each step.
    """

    file: ScratchFile
    starts: NDArray[np.uint32]
    ends: list[int] = field(default_factory=list)
    live: list[int] = field(default_factory=list)
    tokens: int = 0
    move: Move | None = None


class WalkerGroup:
    """Computes up to ``together`` samples at a time; its ``walkers`` return them."""

    def __init__(
        self, mover: Mover, length: int, *, together: int, threads: int, folder: Path
    ) -> None:
        """Prepare the walks. Scratch files go to ``folder``."""
        self._mover, self._links, self._cuts = mover, mover.links, mover.cuts
        self._length = length
        home = np.empty(_HOME_WORDS, np.uint32)
        walk_blocks.make_home(self._cuts, home)
        self._spare = [
            _BatchState(ScratchFile(folder), np.empty(self._cuts.size, np.uint32))
            for _ in range(together)
        ]
        self._states: dict[int, _BatchState] = {}
        self.walkers = [
            GroupWalker(self._states, self._links.nodes, self._cuts, home) for _ in range(threads)
        ]

    def __call__(self, samples: range) -> None:
        """Walk these samples; earlier samples become invalid."""
        self._states.clear()
        self._states.update(zip(samples, self._spare, strict=False))
        for state in self._states.values():
            state.ends, state.live, state.tokens = [0], [], self._links.nodes
            state.starts[:] = self._cuts
        with Team(len(self.walkers)) as team:
            for step in range(1, self._length + 1):
                self._step(team, step)

    def _step(self, team: Team, step: int) -> None:
        living = {sample: state for sample, state in self._states.items() if state.tokens}
        for sample, state in living.items():
            state.live.append(state.tokens)
            state.move = self._mover.kernel(sample, step)

        def each(what: Callable[[GroupWalker, _BatchState], None]) -> None:
            def work(first: int, last: int) -> None:
                for thread in range(first, last):
                    for state in [*living.values()][thread :: team.threads]:
                        what(self.walkers[thread], state)

            team.split(work, team.threads, aligned=1)

        for block in range(self._cuts.size - 1 if living else 0):
            first, last = int(self._cuts[block]), int(self._cuts[block + 1])
            tokens = sum(int(s.starts[block + 1] - s.starts[block]) for s in living.values())
            if tokens * FEW > last - first:
                self._links.fetch(first, last)
            each(partial(GroupWalker.leave, step=step, block=block))
            self._mover.evict()
        each(partial(GroupWalker.arrive, step=step, last=step == self._length))


class GroupWalker:
    """Moves and merges tokens, and returns fingerprint graphs like
    :class:`~cocite.engine.walk.Walker`. Not thread-safe, because of scratch memory.
    """

    def __init__(
        self,
        states: dict[int, _BatchState],
        nodes: int,
        cuts: NDArray[np.uint32],
        home: NDArray[np.uint32],
    ) -> None:
        self._states, self._nodes, self._cuts, self._home = states, nodes, cuts, home
        self._at, self._arrived, self._head, self._parent = (
            np.empty(nodes, np.uint32) for _ in range(4)
        )
        self._owner, self._extent = (
            np.empty(max(nodes, _LEAST_WORDS), np.uint32) for _ in range(2)
        )
        self._label = np.empty(nodes, np.uint8)

    def leave(self, state: _BatchState, step: int, block: int) -> None:
        """Move the tokens in a block; their targets overwrite their nodes."""
        low, high = int(state.starts[block]), int(state.starts[block + 1])
        if low == high:
            return
        assert state.move is not None
        at, moved = self._at[: high - low], self._arrived[: high - low]
        if step == 1:
            at[:] = np.arange(low, high, dtype=np.uint32)
        else:
            state.file.read(4 * low, at)
        state.move(at, moved, self._cuts[block], self._cuts[block + 1])
        state.file.write(4 * low, moved)

    def arrive(self, state: _BatchState, step: int, last: bool) -> None:
        """Merge tokens that meet; unless this is the last step, sort the live tokens by block."""
        tokens, file = state.tokens, state.file
        at, arrived, head, members, index = (
            array[:tokens]
            for array in (self._at, self._arrived, self._head, self._parent, self._extent)
        )
        if step == 1:
            count_up(head)
            members[:] = 1
            file.read(0, arrived)
        else:
            for number, array in enumerate((at, index, head, members)):
                file.read(self._region(number), array)
            walk_blocks.gather(at, index, arrived)
        records = _rows(self._extent)
        live, end = 0, state.ends[-1]
        for first in range(0, tokens, records.shape[0]):
            live, count = walk_blocks.meet_batch(
                arrived, at, head, members, self._owner, records, first, live
            )
            end = self._append(state, end, records[:count])
        if last:
            for first in range(0, live, records.shape[0]):
                part = slice(first, min(first + records.shape[0], live))
                count = walk_blocks.end(head[part], members[part], records)
                end = self._append(state, end, records[:count])
            live = 0
        else:
            walk_blocks.deal_batch(
                at[:live], self._cuts, self._home, state.starts, arrived[:live], index[:live]
            )
            for number, array in enumerate((arrived, index, head, members)):
                file.write(self._region(number), array[:live])
        state.ends.append(end)
        state.tokens = live

    def __call__(self, sample: int) -> FingerprintGraph:
        """Return a walked sample; the arrays are valid until the next call."""
        state = self._states[sample]
        parent, label, extent = self._parent, self._label, self._extent[: self._nodes]
        parent.fill(NOWHERE)
        label.fill(0)
        extent.fill(1)
        rows = _rows(self._owner)
        for step, (begin, end) in enumerate(pairwise(state.ends), 1):
            for low in range(begin, end, rows.shape[0]):
                piece = rows[: min(rows.shape[0], end - low)]
                state.file.read(self._region(4) + 12 * low, piece)
                walk_blocks.settle(piece, np.uint32(0), np.uint8(step), parent, extent, label)
        spare = self._arrived, self._owner[: self._nodes]
        return FingerprintGraph(parent, label, extent, tuple(state.live), spare)

    def _region(self, number: int) -> int:
        return 4 * self._nodes * number

    def _append(self, state: _BatchState, end: int, records: NDArray[np.uint32]) -> int:
        state.file.write(self._region(4) + 12 * end, records)
        return end + len(records)


def _rows(words: NDArray[np.uint32]) -> NDArray[np.uint32]:
    return words[: words.size // 3 * 3].reshape(-1, 3)
