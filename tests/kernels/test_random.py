"""Draws and orders: as specified, uniform, independent, and orders are invertible.

Known answers hold on every machine and in every release: an index that was built elsewhere, or is
refreshed in years, draws the same. (They were worked out in whole numbers of Python, not by the
kernel.) True random bits exceed a limit of the second half once in 10**9 times, over all of its
comparisons. Statistics are of the twins in NumPy, which draw many at once; the kernels are
held to them first.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from cocite.kernels import random
from tests.oracles.bounds import bernstein, chi_square, chi_square_limit

ORDERS = 20_000
Words = NDArray[np.uint64]


# -- twins in NumPy ------------------------------------------------------------------------

GOLDEN, ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def keys(seed: object, sample: object, step: object) -> Words:
    """One for each place of what is given, numbers and arrays, in their common shape."""
    words = mixed(np.atleast_1d(np.asarray(seed, np.uint64)) + GOLDEN)
    for each in (sample, step):
        words = mixed(words ^ (np.asarray(each, np.uint64) * GOLDEN + ONE))
    return words


def draws(seed: object, sample: object, step: object, node: object) -> Words:
    """The same with nodes."""
    return mixed(keys(seed, sample, step) + np.asarray(node, np.uint64) * GOLDEN)


def picks(words: Words, count: int) -> Words:
    of = np.uint64(count)
    return ((words >> HALF) * of + (((words & LOW) * of) >> HALF)) >> HALF


def places(found: Words, members: list[int], nodes: int) -> Words:
    """Where each of ``members`` stands in the order of each key: uint64[keys, members]."""
    bits = random.order_bits(nodes)
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    values = np.tile(np.array(members, np.uint64), (found.size, 1))
    for i in range(4):
        words = mixed(found + np.asarray(i, np.uint64) * GOLDEN)[:, None]
        if i:
            values ^= values >> shift
        values = ((values ^ (words & LOW & mask)) * (words >> HALF | ONE)) & mask
    return values


def argmins(sets: list[list[int]], nodes: int, orders: int = ORDERS) -> NDArray[np.int64]:
    """The index of the argmin of each set, in many orders: int64[orders, sets]."""
    number = np.arange(orders)
    found = keys(5, number, 1 + number % 3)
    each = [places(found, members, nodes).argmin(axis=1) for members in sets]
    return np.stack(each, axis=1)


def key(seed: int, sample: int, step: int) -> np.uint64:
    return np.uint64(random.draw_key(np.uint64(seed), np.uint64(sample), np.uint64(step)))


def order(seed: int, sample: int, step: int, nodes: int) -> NDArray[np.uint32]:
    out = random.empty_order()
    random.make_order(key(seed, sample, step), np.uint64(random.order_bits(nodes)), out)
    return out


@pytest.mark.parametrize("nodes", [100, 65_536, 300_000, 2**32 - 1])
def test_orders_are_those_of_the_twin(nodes: int) -> None:
    members = [0, 1, 7, nodes // 3, nodes - 1]
    for sample in range(50):
        mine = order(9, sample, 3, nodes)
        found = [int(random.place_of(mine, np.uint32(u))) for u in members]
        assert places(keys(9, sample, 3), members, nodes)[0].tolist() == found


def test_steps_of_a_sample_are_drawn_together() -> None:
    found, orders = np.empty(15, np.uint64), np.empty((15, random.ORDER_WORDS), np.uint32)
    bits = np.uint64(random.order_bits(300_000))
    random.draw_steps(np.uint64(7), np.uint64(5), np.uint64(16), bits, found, orders)
    assert found.tolist() == [int(key(7, 5, 16 + step)) for step in range(1, 16)]
    assert orders.tolist() == [order(7, 5, 16 + step, 300_000).tolist() for step in range(1, 16)]


@pytest.mark.parametrize("nodes", [10, 65_536, 65_537, 1_000_000])
def test_an_order_is_a_bijection_and_node_at_inverts_it(nodes: int) -> None:
    mine = order(1, 2, 3, nodes)
    everything = range(2 ** random.order_bits(nodes)) if nodes < 70_000 else range(0, 2**20, 97)
    places = [int(random.place_of(mine, np.uint32(u))) for u in everything]
    assert len(set(places)) == len(places)
    assert [int(random.node_at(mine, np.uint32(p))) for p in places[:5000]] == list(everything)[
        :5000
    ]


def test_orders_of_32_bits_are_invertible_at_both_ends() -> None:
    mine = order(1, 2, 3, 2**32 - 1)
    for node in (0, 1, 2**31, 2**32 - 2):
        place = random.place_of(mine, np.uint32(node))
        assert int(random.node_at(mine, np.uint32(place))) == node


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000])
def test_pick_is_uniform(count: int) -> None:
    drawn = draws(1, 1, 1, np.arange(40_000))
    picked = picks(drawn, count)
    some = [int(random.pick(word, np.uint64(count))) for word in drawn[::97]]
    assert picked[::97].tolist() == some
    counts = np.bincount(picked.astype(int), minlength=count)
    assert counts.size == count
    assert chi_square(counts) < chi_square_limit(count)


SETS = {
    "neighbours": list(range(8)),
    "three": [0, 1, 2],  # no subgroup of xor: uniform by quality, not by symmetry
    "seven": list(range(7)),
    "stride": [i * 1024 for i in range(8)],
    "high bits": [i << 13 for i in range(8)],
    "spread": [3, 17, 290, 4444, 5000, 31_000, 47_123, 60_001],
}


@pytest.mark.parametrize("members", SETS.values(), ids=SETS.keys())
def test_the_argmin_is_uniform_over_any_set(members: list[int]) -> None:
    found = argmins([members], 65_536)[:, 0]
    counts = np.bincount(found, minlength=len(members))
    assert chi_square(counts) < chi_square_limit(len(members))


def test_all_orders_of_four_nodes_are_equally_likely() -> None:
    """A linear map modulo a prime is pairwise independent only, and fails this."""
    ranks = np.argsort(places(keys(11, np.arange(ORDERS), 1), [4, 5, 6, 7], 100), axis=1)
    codes = ranks @ np.array([64, 16, 4, 1])
    counts = np.unique(codes, return_counts=True)[1]
    assert counts.size == 24
    assert chi_square(counts) < chi_square_limit(24)


@pytest.mark.parametrize(
    ("common", "mine", "other"), [(1, 1, 1), (3, 2, 7), (1, 20, 20), (6, 0, 3)]
)
def test_argmins_meet_with_the_jaccard_coefficient(common: int, mine: int, other: int) -> None:
    a = list(range(100, 100 + common + mine))
    b = a[:common] + list(range(500, 500 + other))
    exact = common / (common + mine + other)
    found = argmins([a, b], 5000)
    met = np.mean([a[i] == b[j] for i, j in found.tolist()])
    assert abs(met - exact) < bernstein(exact, ORDERS, 1.0, 4)


# -- over nodes, samples, steps and seeds --------------------------------------------------

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


N = np.arange(COUNT, dtype=np.uint64)
ALONG: dict[str, tuple[object, object, object, object]] = {
    "nodes": (0, 0, 1, N),
    "nodes far apart": (0, 0, 1, N << np.uint64(16)),
    "samples": (0, N, 1, 0),
    "samples of a far node": (3, N, 9, 2**32 - 2),
    "steps": (0, 0, N, 0),
    "seeds": (N, 0, 1, 0),
    "high seeds": (N << np.uint64(48), 0, 1, 0),
    "nodes and samples": (0, N >> np.uint64(8), 1, N & np.uint64(255)),
    "steps and nodes": (5, 2, N & np.uint64(15), N >> np.uint64(4)),
}
"""Neighbors in these are draws that a walk, or two walks, put side by side."""


def chi_square_bound(cells: int, comparisons: int) -> float:
    """What a chi-square statistic of so many cells exceeds with ``FAILURE`` in all comparisons.

    Laurent and Massart 2000, lemma 1.
    """
    k, x = cells - 1, np.log(comparisons / FAILURE)
    return float(k + 2 * np.sqrt(k * x) + 2 * x)


def differs(bits: NDArray[np.uint64], comparisons: int) -> float:
    """How far the share of ones may be from a half (Hoeffding)."""
    return float(np.sqrt(np.log(2 * comparisons / FAILURE) / (2 * bits.size)))


@pytest.mark.parametrize("which", KNOWN)
def test_draw_is_what_it_has_always_been(which: tuple[int, int, int, int]) -> None:
    assert int(random.draw(random.draw_key(*which[:3]), which[3])) == KNOWN[which]
    assert draws(*which).tolist() == [KNOWN[which]]


@pytest.mark.parametrize("along", ALONG)
def test_draws_are_those_of_the_twin(along: str) -> None:
    given = [np.broadcast_to(np.asarray(each, np.uint64), COUNT)[::61] for each in ALONG[along]]
    found = [
        random.draw(random.draw_key(*each[:3]), each[3])
        for each in zip(*(one.tolist() for one in given), strict=True)
    ]
    assert draws(*ALONG[along])[::61].tolist() == found


@pytest.mark.parametrize("along", ALONG)
def test_every_bit_is_one_half_of_the_time(along: str) -> None:
    drawn = draws(*ALONG[along])
    for bit in range(64):
        ones = (drawn >> np.uint64(bit)) & np.uint64(1)
        assert abs(ones.mean() - 0.5) < differs(ones, 64 * len(ALONG)), bit


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("lag", [1, 2, 16, 256])
def test_neighbors_are_independent(along: str, lag: int) -> None:
    """Pairs of four bits, the highest of one and the lowest of the other, and highest of both."""
    drawn = draws(*ALONG[along])
    high, low = (drawn >> np.uint64(60)).astype(int), (drawn & np.uint64(15)).astype(int)
    first = np.flatnonzero(np.arange(COUNT) // lag % 2 == 0)  # no draw is in two pairs
    for one, other in ((high, high), (high, low), (low, low)):
        counts = np.bincount(one[first] * 16 + other[first + lag], minlength=256)
        assert chi_square(counts) < chi_square_bound(256, 3 * 4 * len(ALONG))


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
