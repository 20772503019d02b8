"""Draws and orders: as specified, uniform, independent, and orders are invertible.

Known values hold on every machine and in every release, so that indexes built elsewhere, or
refreshed in years, draw the same. They were computed with Python integers, not by the kernel. True
random bits exceed a limit of the second half once in 10**9 times, over all of its comparisons.
Statistics use oracles in NumPy, which draw many at once; the kernels are compared with them first.
"""

import numpy as np
import pytest
from numpy.typing import NDArray

from cocite.kernels import random
from tests.oracles.bounds import bernstein, chi_square, chi_square_limit

ORDERS = 20_000
Words = NDArray[np.uint64]


# -- oracles in NumPy ----------------------------------------------------------------------

GOLDEN, ONE = np.uint64(0x9E3779B97F4A7C15), np.uint64(1)
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def mixed(words: Words) -> Words:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def keys(seed: object, sample: object, step: object) -> Words:
    """Keys of numbers or arrays, broadcast to their common shape."""
    words = mixed(np.atleast_1d(np.asarray(seed, np.uint64)) + GOLDEN)
    for each in (sample, step):
        words = mixed(words ^ (np.asarray(each, np.uint64) * GOLDEN + ONE))
    return words


def draws(seed: object, sample: object, step: object, node: object) -> Words:
    """Draws of numbers or arrays, broadcast likewise."""
    return mixed(keys(seed, sample, step) + np.asarray(node, np.uint64) * GOLDEN)


def picks(words: Words, count: int) -> Words:
    size = np.uint64(count)
    return ((words >> HALF) * size + (((words & LOW) * size) >> HALF)) >> HALF


def places(keys: Words, members: list[int], nodes: int) -> Words:
    """The place of each of ``members`` in the order of each key: uint64[keys, members]."""
    bits = random.order_bits(nodes)
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    values = np.tile(np.array(members, np.uint64), (keys.size, 1))
    for i in range(4):
        words = mixed(keys + np.asarray(i, np.uint64) * GOLDEN)[:, None]
        if i:
            values ^= values >> shift
        values = ((values ^ (words & LOW & mask)) * (words >> HALF | ONE)) & mask
    return values


def argmins(sets: list[list[int]], nodes: int, orders: int = ORDERS) -> NDArray[np.int64]:
    """The index of the argmin of each set, in many orders: int64[orders, sets]."""
    samples = np.arange(orders)
    order_keys = keys(5, samples, 1 + samples % 3)
    indexes = [places(order_keys, members, nodes).argmin(axis=1) for members in sets]
    return np.stack(indexes, axis=1)


def key(seed: int, sample: int, step: int) -> np.uint64:
    return np.uint64(random.draw_key(np.uint64(seed), np.uint64(sample), np.uint64(step)))


def order(seed: int, sample: int, step: int, nodes: int) -> NDArray[np.uint32]:
    out = random.empty_order()
    random.make_order(key(seed, sample, step), np.uint64(random.order_bits(nodes)), out)
    return out


@pytest.mark.parametrize("nodes", [100, 65_536, 300_000, 2**32 - 1])
def test_place_of_equals_oracle(nodes: int) -> None:
    members = [0, 1, 7, nodes // 3, nodes - 1]
    for sample in range(50):
        actual = order(9, sample, 3, nodes)
        found = [int(random.place_of(actual, np.uint32(u))) for u in members]
        assert places(keys(9, sample, 3), members, nodes)[0].tolist() == found


def test_draw_steps_equals_single_draws() -> None:
    found, orders = np.empty(15, np.uint64), np.empty((15, random.ORDER_WORDS), np.uint32)
    bits = np.uint64(random.order_bits(300_000))
    random.draw_steps(np.uint64(7), np.uint64(5), np.uint64(16), bits, found, orders)
    assert found.tolist() == [int(key(7, 5, 16 + step)) for step in range(1, 16)]
    assert orders.tolist() == [order(7, 5, 16 + step, 300_000).tolist() for step in range(1, 16)]


@pytest.mark.parametrize("nodes", [65_536, 65_537, 1_000_000])
def test_node_at_inverts_place_of(nodes: int) -> None:
    inverted = order(1, 2, 3, nodes)
    everything = range(2 ** random.order_bits(nodes)) if nodes < 70_000 else range(0, 2**20, 97)
    places = [int(random.place_of(inverted, np.uint32(u))) for u in everything]
    assert len(set(places)) == len(places)
    assert [int(random.node_at(inverted, np.uint32(p))) for p in places[:5000]] == list(everything)[
        :5000
    ]


def test_node_at_inverts_32_bit_order_at_both_ends() -> None:
    inverted = order(1, 2, 3, 2**32 - 1)
    for node in (0, 1, 2**31, 2**32 - 2):
        place = random.place_of(inverted, np.uint32(node))
        assert int(random.node_at(inverted, np.uint32(place))) == node


@pytest.mark.parametrize("count", [1, 2, 3, 10, 1000])
def test_pick_is_uniform(count: int) -> None:
    drawn = draws(1, 1, 1, np.arange(40_000))
    picked = picks(drawn, count)
    expected = [int(random.pick(word, np.uint64(count))) for word in drawn[::97]]
    assert picked[::97].tolist() == expected
    counts = np.bincount(picked.astype(int), minlength=count)
    assert counts.size == count
    assert chi_square(counts) < chi_square_limit(count)


SETS = {
    "neighbours": list(range(8)),
    "three": [0, 1, 2],  # no subgroup of xor, so uniform by quality, not by symmetry
    "seven": list(range(7)),
    "stride": [i * 1024 for i in range(8)],
    "high bits": [i << 13 for i in range(8)],
    "spread": [3, 17, 290, 4444, 5000, 31_000, 47_123, 60_001],
}


@pytest.mark.parametrize("members", SETS.values(), ids=SETS.keys())
def test_order_argmin_is_uniform_over_any_set(members: list[int]) -> None:
    found = argmins([members], 65_536)[:, 0]
    counts = np.bincount(found, minlength=len(members))
    assert chi_square(counts) < chi_square_limit(len(members))


def test_orders_of_four_nodes_are_equally_likely() -> None:
    """A linear map modulo a prime is pairwise independent only, and fails this."""
    ranks = np.argsort(places(keys(11, np.arange(ORDERS), 1), [4, 5, 6, 7], 100), axis=1)
    codes = ranks @ np.array([64, 16, 4, 1])
    counts = np.unique(codes, return_counts=True)[1]
    assert counts.size == 24
    assert chi_square(counts) < chi_square_limit(24)


@pytest.mark.parametrize(("common", "own", "other"), [(1, 1, 1), (3, 2, 7), (1, 20, 20), (6, 0, 3)])
def test_order_argmins_meet_with_jaccard_probability(common: int, own: int, other: int) -> None:
    a = list(range(100, 100 + common + own))
    b = a[:common] + list(range(500, 500 + other))
    exact = common / (common + own + other)
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
"""Draws by seed, sample, step and node."""

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
"""Sequences of draws whose neighbors one walk, or two, use together."""


def chi_square_bound(cells: int, comparisons: int) -> float:
    """The limit of chi-square of ``cells`` cells, exceeded with ``FAILURE`` over all comparisons.

    Laurent and Massart 2000, lemma 1.
    """
    k, x = cells - 1, np.log(comparisons / FAILURE)
    return float(k + 2 * np.sqrt(k * x) + 2 * x)


def tolerance(bits: NDArray[np.uint64], comparisons: int) -> float:
    """The largest distance of the share of ones from a half (Hoeffding)."""
    return float(np.sqrt(np.log(2 * comparisons / FAILURE) / (2 * bits.size)))


@pytest.mark.parametrize("inputs", KNOWN)
def test_draw_keeps_known_values(inputs: tuple[int, int, int, int]) -> None:
    assert int(random.draw(random.draw_key(*inputs[:3]), inputs[3])) == KNOWN[inputs]
    assert draws(*inputs).tolist() == [KNOWN[inputs]]


@pytest.mark.parametrize("along", ALONG)
def test_draw_equals_oracle(along: str) -> None:
    inputs = [
        np.broadcast_to(np.asarray(values, np.uint64), COUNT)[::61] for values in ALONG[along]
    ]
    found = [
        random.draw(random.draw_key(*values[:3]), values[3])
        for values in zip(*(array.tolist() for array in inputs), strict=True)
    ]
    assert draws(*ALONG[along])[::61].tolist() == found


@pytest.mark.parametrize("along", ALONG)
def test_draw_bits_are_unbiased(along: str) -> None:
    drawn = draws(*ALONG[along])
    for bit in range(64):
        ones = (drawn >> np.uint64(bit)) & np.uint64(1)
        assert abs(ones.mean() - 0.5) < tolerance(ones, 64 * len(ALONG)), bit


@pytest.mark.parametrize("along", ALONG)
@pytest.mark.parametrize("lag", [1, 2, 16, 256])
def test_draws_of_neighbors_are_independent(along: str, lag: int) -> None:
    """Pairs of four bits: highest and highest, highest and lowest, lowest and lowest."""
    drawn = draws(*ALONG[along])
    high, low = (drawn >> np.uint64(60)).astype(int), (drawn & np.uint64(15)).astype(int)
    first = np.flatnonzero(np.arange(COUNT) // lag % 2 == 0)  # no draw is in two pairs
    for one, other in ((high, high), (high, low), (low, low)):
        counts = np.bincount(one[first] * 16 + other[first + lag], minlength=256)
        assert chi_square(counts) < chi_square_bound(256, 3 * 4 * len(ALONG))


@pytest.mark.parametrize("axis", range(4))
def test_draw_flips_half_of_bits_for_one_input_bit(axis: int) -> None:
    rng = np.random.default_rng(4)
    inputs = [rng.integers(0, 2**32 - 1, 4000, dtype=np.uint64) for _ in range(4)]
    before = draws(*inputs)
    for bit in range(32):
        changed = list(inputs)
        changed[axis] = inputs[axis] ^ np.uint64(1 << bit)
        flipped = before ^ draws(*changed)
        for output in range(64):
            ones = (flipped >> np.uint64(output)) & np.uint64(1)
            assert abs(ones.mean() - 0.5) < tolerance(ones, 4 * 32 * 64), (bit, output)
