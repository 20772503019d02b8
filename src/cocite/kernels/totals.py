"""From what a query gathered to its hits: sums of samples to scores, parts to totals, the best k.

A part's samples are added up as fixed-point numbers (2**48 is 1), so that a sum does not depend on
its order. ``settle`` turns each sum into a score in whole *grains* (10**-12), what differs by less
being equal, and its variance, and adds both to the query's totals with the part's weight:

    grains   += weight * rint(mean * 10**12)
    variance += weight**2 * (mean of squares - mean**2) / (samples - 1)       nan for one sample

``settle_scaled`` does so with a factor for each node, the grains rounded again. ``settle_exact``
does so for parts that are not sampled: their scores are in grains already.
``top`` picks the best by grains, ties by ascending node, with a heap of k.

Cost: O(nodes touched), and O(touched log k) at worst for the heap, near O(touched) mostly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import GRAINS, ONE
from cocite.kernels._jit import helper, kernel, shared

__all__ = ["estimate", "settle", "settle_exact", "settle_scaled", "top"]

_ROUNDING = 2.0**-45
"""A variance below this is the rounding of the weights."""
_ZERO64 = np.uint64(0)


@shared
def estimate(total: Any, squares: Any, samples: Any) -> Any:
    """(grains, variance of the mean) from the fixed-point sums of one node."""
    scale = samples * ONE
    grains = np.rint(np.float64(total) * (GRAINS / scale))
    mean = grains / GRAINS
    if samples == 1.0:
        return grains, np.nan
    variance = np.float64(squares) / scale - mean * mean
    if variance < _ROUNDING:
        return grains, 0.0  # every sample the same
    return grains, variance / (samples - 1.0)


@kernel
def settle(
    sums: Any,
    used: Any,
    count: Any,
    samples: Any,
    weight: Any,
    totals: Any,
    touched: Any,
    have: Any,
) -> Any:
    """Add the estimates of a part to the totals, and set its sums back to 0.

    ``sums`` uint64[nodes, 2], of which the nodes ``used[:count]`` are not 0; ``samples`` and
    ``weight`` are float64. ``totals`` float64[nodes, 2] (grains, variance), of which the nodes
    ``touched[:have]`` are not 0. Returns the new ``have``.
    """
    for i in range(count):
        node = used[i]
        grains, variance = estimate(sums[node, 0], sums[node, 1], samples)
        sums[node, 0] = sums[node, 1] = _ZERO64
        if grains == 0.0:
            continue
        if totals[node, 0] == 0.0 and totals[node, 1] == 0.0:
            touched[have] = node
            have += 1
        totals[node, 0] += weight * grains
        totals[node, 1] += weight * weight * variance
    return have


@kernel
def settle_scaled(
    sums: Any,
    used: Any,
    factors: Any,
    samples: Any,
    weight: Any,
    totals: Any,
    touched: Any,
    have: Any,
) -> Any:
    """As ``settle``, each estimate times the factor of its node; ``factors``: float64[count]."""
    for i in range(factors.size):
        node, factor = used[i], factors[i]
        grains, variance = estimate(sums[node, 0], sums[node, 1], samples)
        sums[node, 0] = sums[node, 1] = _ZERO64
        grains = np.rint(grains * factor)
        if grains == 0.0:
            continue
        if totals[node, 0] == 0.0 and totals[node, 1] == 0.0:
            touched[have] = node
            have += 1
        totals[node, 0] += weight * grains
        totals[node, 1] += weight * weight * (variance * factor * factor)
    return have


@kernel
def settle_exact(
    values: Any, used: Any, count: Any, weight: Any, totals: Any, touched: Any, have: Any
) -> Any:
    """Add the scores of a part that have no variance to the totals, and set them back to 0.

    ``values`` float64[nodes, 2] has them in grains in its first column, for the nodes
    ``used[:count]``; the rest as for ``settle``. Returns the new ``have``.
    """
    for i in range(count):
        node = used[i]
        grains = values[node, 0]
        values[node, 0] = values[node, 1] = 0.0
        if grains == 0.0:
            continue
        if totals[node, 0] == 0.0 and totals[node, 1] == 0.0:
            touched[have] = node
            have += 1
        totals[node, 0] += weight * grains
    return have


@helper
def _below(totals: Any, first: Any, second: Any) -> Any:
    """Whether node ``first`` comes after node ``second``: lower score, or equal and higher id."""
    if totals[first, 0] != totals[second, 0]:
        return totals[first, 0] < totals[second, 0]
    return first > second


@helper
def _sift_down(heap: Any, size: Any, totals: Any) -> None:
    """Restore the heap, last hit on top, after its top was replaced."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            return
        if child + 1 < size and _below(totals, heap[child + 1], heap[child]):
            child += 1
        if not _below(totals, heap[child], heap[at]):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


@kernel
def top(totals: Any, touched: Any, count: Any, floor: Any, nodes: Any, best: Any) -> Any:
    """The best hits of at least ``floor`` grains, best first; sets the totals back to 0.

    ``nodes`` uint32[k] and ``best`` float64[k, 2] (grains, variance) receive them. Returns how
    many there are.
    """
    size = 0
    for i in range(count):
        node = touched[i]
        totals[node, 0] = np.rint(totals[node, 0])
        if totals[node, 0] < floor:
            continue
        if size < nodes.size:
            at = size
            nodes[at] = node
            size += 1
            while at > 0 and _below(totals, nodes[at], nodes[(at - 1) // 2]):
                nodes[at], nodes[(at - 1) // 2] = nodes[(at - 1) // 2], nodes[at]
                at = (at - 1) // 2
        elif size and _below(totals, nodes[0], node):
            nodes[0] = node
            _sift_down(nodes, size, totals)
    for left in range(size - 1, 0, -1):
        nodes[0], nodes[left] = nodes[left], nodes[0]
        _sift_down(nodes, left, totals)
    for i in range(size):
        best[i, 0], best[i, 1] = totals[nodes[i], 0], totals[nodes[i], 1]
    for i in range(count):
        totals[touched[i], 0] = totals[touched[i], 1] = 0.0
    return size
