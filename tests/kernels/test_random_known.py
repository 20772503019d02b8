"""Draws: known answers, and statistics over nodes, samples, steps and seeds.

The answers hold on every machine and in every release: an index that was built elsewhere, or is
refreshed in years, draws the same. (They were worked out in whole numbers of Python, not by the
kernel.) A statistic's limit is exceeded by true random bits
once in 10⁹ times, over all comparisons that are made here.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from cocite.kernels import random
from tests.oracles.bounds import chi_square

KNOWN = {
    (0, 0, 1, 0): 0x5A40516145D46020,
    (0, 0, 1, 1): 0x5CF4BC879D7C5987,
    (0, 1, 1, 0): 0xEF5A02CF72B39576,
    (1, 0, 1, 0): 0x0ACD6F136F1DAE3B,
    (0, 0, 2, 0): 0xD1F3573243CD3DC6,
    (7, 99, 10, 4711): 0x35EBB3A1653BF2BF,
    (2**64 - 1, 65534, 15, 2**32 - 2): 0x59A015D9FE601A33,
}
"""By seed, sample, step and node."""

COUNT = 1 << 16
FAILURE = 1e-9


def draws(seed: object, sample: object, step: object, node: object) -> NDArray[np.uint64]:
    """One for each place of what is given, numbers and arrays, in their common shape: uint64."""
    given = np.broadcast_arrays(
        *(np.asarray(each, np.uint64) for each in (seed, sample, step, node))
    )
    drawn = (
        random.draw(random.draw_key(*each[:3]), each[3])
        for each in zip(*(one.ravel().tolist() for one in given), strict=True)
    )
    return np.fromiter(drawn, np.uint64, given[0].size).reshape(given[0].shape)


N = np.arange(COUNT, dtype=np.uint64)
ALONG: dict[str, Callable[[], NDArray[np.uint64]]] = {
    "nodes": lambda: draws(0, 0, 1, N),
    "nodes far apart": lambda: draws(0, 0, 1, N << np.uint64(16)),
    "samples": lambda: draws(0, N, 1, 0),
    "samples of a far node": lambda: draws(3, N, 9, 2**32 - 2),
    "steps": lambda: draws(0, 0, N, 0),
    "seeds": lambda: draws(N, 0, 1, 0),
    "high seeds": lambda: draws(N << np.uint64(48), 0, 1, 0),
    "nodes and samples": lambda: draws(0, N >> np.uint64(8), 1, N & np.uint64(255)),
    "steps and nodes": lambda: draws(5, 2, N & np.uint64(15), N >> np.uint64(4)),
}
"""Neighbors in these are draws that a walk, or two walks, put side by side."""


def limit(cells: int, comparisons: int) -> float:
    """What a chi-square statistic of so many cells exceeds with ``FAILURE`` in all comparisons.

    Laurent and Massart 2000, lemma 1.
    """
    k, x = cells - 1, np.log(comparisons / FAILURE)
    return float(k + 2 * np.sqrt(k * x) + 2 * x)


def differs(bits: NDArray[np.uint64], comparisons: int) -> float:
    """How far the share of ones may be from a half (Hoeffding)."""
    return float(np.sqrt(np.log(2 * comparisons / FAILURE) / (2 * bits.size)))


@pytest.mark.parametrize("which", KNOWN)
def test_draws_are_what_they_have_always_been(which: tuple[int, int, int, int]) -> None:
    assert int(draws(*which)) == KNOWN[which]


@pytest.mark.parametrize("along", ALONG)
def test_every_bit_is_one_half_of_the_time(along: str) -> None:
    drawn = ALONG[along]()
    for bit in range(64):
        ones = (drawn >> np.uint64(bit)) & np.uint64(1)
        assert abs(ones.mean() - 0.5) < differs(ones, 64 * len(ALONG)), bit


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("shift", [0, 24, 56])
def test_bytes_are_uniform(along: str, shift: int) -> None:
    counts = np.bincount(
        ((ALONG[along]() >> np.uint64(shift)) & np.uint64(255)).astype(int), minlength=256
    )
    assert chi_square(counts) < limit(256, 3 * len(ALONG))


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("lag", [1, 2, 16, 256])
def test_neighbors_are_independent(along: str, lag: int) -> None:
    """Pairs of four bits, the highest of one and the lowest of the other, and highest of both."""
    drawn = ALONG[along]()
    high, low = (drawn >> np.uint64(60)).astype(int), (drawn & np.uint64(15)).astype(int)
    first = np.flatnonzero(np.arange(COUNT) // lag % 2 == 0)  # no draw is in two pairs
    for one, other in ((high, high), (high, low), (low, low)):
        counts = np.bincount(one[first] * 16 + other[first + lag], minlength=256)
        assert chi_square(counts) < limit(256, 3 * 4 * len(ALONG))


PAIRS = list(itertools.combinations(("seed", "sample", "step", "node"), 2))


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_is_next_to_each_other_in_two_ways_is_not_alike(one: str, other: str) -> None:
    """The differences of draws along one axis, along the other: no grid shows."""
    side = np.arange(256, dtype=np.uint64)
    given: dict[str, object] = {"seed": 1, "sample": 1, "step": 1, "node": 1}
    given |= {one: side[:, None], other: side[None, :]}
    grid = draws(**given)
    crossed = grid[1::2, 1::2] ^ grid[::2, 1::2] ^ grid[1::2, ::2] ^ grid[::2, ::2]
    assert np.unique(grid).size == grid.size
    for bit in range(64):
        ones = (crossed >> np.uint64(bit)) & np.uint64(1)
        assert abs(ones.mean() - 0.5) < differs(ones, 64 * len(PAIRS)), bit


@pytest.mark.parametrize("axis", range(4))
def test_one_bit_of_the_question_changes_half_of_the_answer(axis: int) -> None:
    rng = np.random.default_rng(4)
    asked = [rng.integers(0, 2**32 - 1, 4000, dtype=np.uint64) for _ in range(4)]
    before = draws(*asked)
    for bit in range(32):
        changed = list(asked)
        changed[axis] = asked[axis] ^ np.uint64(1 << bit)
        turned = before ^ draws(*changed)
        for place in range(64):
            ones = (turned >> np.uint64(place)) & np.uint64(1)
            assert abs(ones.mean() - 0.5) < differs(ones, 4 * 32 * 64), (bit, place)
