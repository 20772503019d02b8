"""Find the degree at which a search for the argmin over a hub's in-links is faster than a scan.

    python -m benchmarks.hubs

Times the two methods of ``kernels/walk.py`` on random in-neighborhoods of a hub. Prints the factor
f of the crossover, degree**2 = f * 2**bits, which ``_SEARCH_FACTOR`` should equal.
"""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np

from cocite.kernels import random, walk

ORDERS = 400


@numba.njit(nogil=True)
def _scan(sources: Any, orders: Any) -> Any:
    total = np.uint64(0)
    for i in range(orders.shape[0]):
        total += np.uint64(walk._argmin_by_scan(sources, 0, sources.size, orders[i]))
    return total


@numba.njit(nogil=True)
def _search(sources: Any, orders: Any) -> Any:
    total = np.uint64(0)
    first, last = np.uint64(0), np.uint64(sources.size)
    for i in range(orders.shape[0]):
        total += np.uint64(walk._argmin_by_search(sources, first, last, orders[i]))
    return total


def seconds(run: Any, sources: Any, orders: Any) -> float:
    """The best of five, an order."""
    run(sources, orders)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        run(sources, orders)
        times.append(time.perf_counter() - begin)
    return min(times) / len(orders)


def main() -> None:
    """A table of nodes and degrees, and the crossing."""
    print("| nodes | degree | degree² / 2^bits | scan | search |\n| --- | --- | --- | --- | --- |")
    rng = np.random.default_rng(1)
    for nodes in (60_000, 500_000, 16_000_000):
        bits = random.order_bits(nodes)
        orders = np.zeros((ORDERS, random.ORDER_WORDS), np.uint32)
        for i in range(ORDERS):
            key = random.draw_key(np.uint64(1), np.uint64(i), np.uint64(1))
            random.make_order(np.uint64(key), np.uint64(bits), orders[i])
        for factor in (2, 4, 8, 16, 32, 64, 128):
            degree = int((factor * 2**bits) ** 0.5)
            sources = np.sort(rng.choice(nodes, min(degree, nodes // 2), replace=False))
            sources = sources.astype(np.uint32)
            scan, search = (1e6 * seconds(run, sources, orders) for run in (_scan, _search))
            print(f"| {nodes:,} | {degree:,} | {factor} | {scan:.1f} µs | {search:.1f} µs |")


if __name__ == "__main__":
    main()
