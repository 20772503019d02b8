"""The links' weights on their way to the disk: those of duplicates added, those of loops dropped.

Weights come sorted by link and, within one, ascending. They are added one after the other in
float64 and stored as float32, so that the bytes depend on the input alone: not on threads, on
memory, or on where the stream is cut.

Memory: one piece of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError
from cocite.graph.rows import WEIGHTS
from cocite.store import ArrayWriter, Entry

__all__ = ["WeightFacts", "write_weights"]

Pair = tuple[NDArray[np.uint64], NDArray[np.float64]]
_LARGEST = float(np.finfo(np.float32).max)


def write_weights(
    directory: Path, pairs: Iterator[Pair], keep_self_loops: bool
) -> tuple[dict[str, float], dict[str, Entry]]:
    """Write one weight a link, from ascending (keys, weights); returns facts and entries.

    A key is destination * 2**32 + source.
    """
    facts = WeightFacts()
    with ArrayWriter(directory / WEIGHTS, np.float32) as out:
        for keys, added in _merged(pairs):
            loop = keys >> np.uint64(32) == keys & np.uint64(0xFFFFFFFF)
            sums = added if keep_self_loops else added[~loop]
            if not sums.size:
                continue
            if sums.max() > _LARGEST:
                raise InputError(
                    f"the weights of one link's duplicates add up to {sums.max():g}; {_LARGEST:g} "
                    "is the most that can be stored. Make all weights smaller"
                )
            stored = sums.astype(np.float32)
            out.write(stored)
            facts.add(stored)
    return facts.to_json(), {WEIGHTS: out.finished}


class WeightFacts:
    """What a manifest says of weights, which are added one after the other."""

    def __init__(self) -> None:
        self._smallest, self._largest, self._total = np.inf, 0.0, 0.0

    def add(self, values: NDArray[np.float32]) -> None:
        """The next ones, as they are stored."""
        from cocite.kernels.links import sum_runs

        if values.size:
            found = np.empty(1)
            sum_runs(np.zeros(1, np.int64), np.concatenate([[self._total], values]), found)
            self._smallest = min(self._smallest, float(values.min()))
            self._largest = max(self._largest, float(values.max()))
            self._total = float(found[0])

    def to_json(self) -> dict[str, float]:
        """Of no weights there is a sum only."""
        if not self._largest:
            return {"sum": 0.0}
        return {"smallest": self._smallest, "largest": self._largest, "sum": self._total}


def _merged(pairs: Iterator[Pair]) -> Iterator[Pair]:
    """Each key once, with the sum of its weights; the last of a piece waits for the next."""
    from cocite.kernels.links import sum_runs

    last_key, last_sum = np.empty(0, np.uint64), np.empty(0, np.float64)
    for piece, values in pairs:
        keys, weights = np.concatenate([last_key, piece]), np.concatenate([last_sum, values])
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        sums = np.empty(starts.size)
        sum_runs(starts, weights, sums)
        yield keys[starts[:-1]], sums[:-1]
        last_key, last_sum = keys[-1:], sums[-1:]
    yield last_key, last_sum
