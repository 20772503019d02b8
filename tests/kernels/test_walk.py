"""Kernels of the walk: the two ways to find an argmin, and packed labels."""

import numpy as np
import pytest

from cocite.kernels import random, trees, walk
from tests.kernels.arrays import compressed


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9])
def test_pack_labels_puts_low_half_first(size: int) -> None:
    joined = (np.arange(size) % 15 + 1).astype(np.uint8)
    out = np.zeros((size + 1) // 2, np.uint8)
    trees.pack_labels(joined, out)
    assert [(out[i // 2] >> (4 * (i % 2))) & 15 for i in range(size)] == joined.tolist()


@pytest.mark.parametrize("degree", [1, 2, 100, 5000, 30_000])
def test_step_argmin_equals_for_search_and_scan(degree: int) -> None:
    """From about 2,900 in-links and 65,536 words on, the kernel walks the order, not the links."""
    nodes = 60_000
    rng = np.random.default_rng(degree)
    hub = sorted(rng.choice(nodes - 1, degree, replace=False).tolist())
    neighbors: list[list[int]] = [[] for _ in range(nodes)]
    neighbors[nodes - 1] = hub
    links = compressed(neighbors)
    out, current = np.empty(1, np.uint32), np.array([nodes - 1], np.uint32)
    for sample in range(50 if degree < 5000 else 3):
        key = random.draw_key(np.uint64(9), np.uint64(sample), np.uint64(1))
        order = random.empty_order()
        random.make_order(np.uint64(key), np.uint64(random.order_bits(nodes)), order)
        walk.step_argmin(*links, current, order, out, np.uint32(0), np.uint32(nodes))
        places = [int(random.place_of(order, np.uint32(u))) for u in hub]
        assert int(out[0]) == hub[int(np.argmin(places))]


def test_step_argmin_threshold_lies_between_tested_degrees() -> None:
    """Keeps the test above meaningful: the threshold lies between its degrees."""
    words = 2**16
    assert 100**2 < int(walk._SEARCH_FACTOR) * words < 5000**2
