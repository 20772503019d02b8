"""Links sorted by source within destination blocks, for out-of-core scans and PageRank.

A pass computes one block: it reads the rows of the sources sequentially, and writes at random only
to the rows of the block, which fit in memory. The links are sorted once, in *strips* that fit in
memory, and written to scratch. A pass merges all strips of a block, one window of sources at a
time. A strip may end between two in-links of a node. In-links are in ascending order, so a node's
terms are still added in ascending order of source.

A strip is a stream of 32-bit words: each source, followed by its targets in the block, with a mark
on the last target (``kernels/scan.py``). This takes 4 bytes per link, and 4 per source in each
strip. Sorting takes 50 to 80 ns per link, and 24 bytes of memory per link in a strip.
Source: Haveliwala, *Efficient computation of PageRank*, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.kernels import rank_blocks, scan
from cocite.storage import evict

Values = NDArray[Any]
Weights = NDArray[np.float32]
Strip = tuple[int, int]
"""Positions (begin, end) of a strip's words."""
NO_WEIGHTS: Weights = np.empty(0, np.float32)


def sorted_links(
    keys: NDArray[np.uint64], weights: Weights = NO_WEIGHTS
) -> tuple[NDArray[np.uint64], Weights]:
    """Return links and weights sorted by source, then target; may sort ``keys`` in place."""
    if not weights.size:
        keys.sort()
        return keys, weights
    order = np.argsort(keys)
    return keys[order], weights[order]


def words_of(
    keys: NDArray[np.uint64], weights: Weights = NO_WEIGHTS
) -> tuple[NDArray[np.uint32], Weights]:
    """Encode sorted links as words; return the words, and a weight per word."""
    words = np.empty(2 * keys.size, np.uint32)
    beside = np.empty(2 * weights.size, np.float32)
    count = int(scan.arrange(keys, weights, words, beside))
    return words[:count], beside[:count]


@dataclass(frozen=True)
class SourceWords:
    """The words of all strips, uint32, and a weight per word, float32, if links are weighted."""

    words: NDArray[np.uint32]
    weights: Weights = field(default_factory=lambda: NO_WEIGHTS)

    def push(
        self,
        strips: Sequence[Strip],
        sources: slice,
        window: int,
        x: Values,
        into: Values,
        combination: tuple[Any, tuple[Any, ...]] | None = None,
    ) -> None:
        """Combine the rows of x for ``sources`` into ``into``, the rows of a block's nodes.

        ``window`` rows of x are in memory at a time. ``combination`` comes from
        :meth:`~cocite.engine.scan.Fold.combination`; the default, which weighted links require, is
        the sum of a single lane.
        """
        code, identity = combination or _one_sum()
        lanes, at = len(identity), [begin for begin, _ in strips]
        for low in range(sources.start, sources.stop, window) if strips else ():
            stop = min(low + window, sources.stop)
            for i, (_, end) in enumerate(strips):
                begin, at[i] = at[i], self._pushed(at[i], end, stop, x, into, (code, identity))
                self.evict(begin, at[i])
            evict(x[low * lanes : stop * lanes])
        for begin, end in strips:  # a pass also loads words that it does not use
            self.evict(begin, end)

    def _pushed(
        self, begin: int, end: int, stop: int, x: Values, into: Values, combination: Any
    ) -> int:
        words, here, last = self.words[:end], np.uint64(begin), np.uint64(stop)
        if self.weights.size:
            return int(rank_blocks.push_weighted(words, self.weights, here, x, last, into))
        return int(scan.push(words, here, x, last, *combination, into))

    def evict(self, begin: int, end: int) -> None:
        """Release the memory of words ``begin`` to ``end``."""
        evict(self.words[begin:end], self.weights[begin:end])


def _one_sum() -> tuple[Any, tuple[float]]:
    return scan.SUM, (0.0,)
