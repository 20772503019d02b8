"""What a batch asks of a packed sample: when two nodes meet, and whom one meets before some step.

Pieces of ``kernels/trees_batch.py``, which tells why this is all that it takes. Sums are changed
node by node here, as they are looked at between one node and the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper
from cocite.kernels.runs import inner_of, label_of, number_of, rank_of, run_at, size_of, starts_at

_DAMAGED = -1
_ZERO64, _ONE64, _UNMET64 = np.uint64(0), np.uint64(1), np.uint64(16)
_ONE = np.uint32(1)


@helper
def _run_of(row: Any, node: Any) -> Any:
    """The number of the run that a node is in; how many there are if that is damaged."""
    rank = rank_of(row[0], node)
    if rank >= row[3]:
        return row[3]
    run = number_of(row, rank)
    return run if run < row[3] else row[3]


@helper
def meet_packed(row: Any, first: Any, second: Any) -> Any:
    """tau(first, second) in a sample, 16 if none, 255 if the sample is damaged."""
    low, high = np.uint64(first), np.uint64(second)
    run, last = _run_of(row, low), _run_of(row, high)
    if run >= row[3] or last >= row[3]:
        return np.uint8(255)
    if run == last:
        own = inner_of(run_at(row, run)[1])
        return np.uint8(_UNMET64 if own == _ZERO64 else own)
    if run > last:
        low, high, run, last = high, low, last, run
    largest = _ZERO64
    if starts_at(row[0], low + _ONE64) == _ZERO64:
        largest = inner_of(run_at(row, run)[1])
    while run < last:
        run += _ONE64
        _, rest = run_at(row, run)
        if label_of(rest) == _ZERO64:
            return np.uint8(_UNMET64)
        largest = max(largest, label_of(rest))
        if run < last or starts_at(row[0], high) == _ZERO64:
            largest = max(largest, inner_of(rest))
    return np.uint8(largest)


@helper
def _add(first: Any, end: Any, label: Any, change: Any, sums: Any, used: Any, count: Any) -> Any:
    """Change the sums from ``first`` on, before ``end``, whom walks meet at step ``label``; returns
    how many are listed. ``change`` is the weights, what is taken off them, and the sign.
    """
    weights, limit, sign = change
    more = sign * (weights[label, 0] - weights[limit, 0])
    squares = sign * (weights[label, 1] - weights[limit, 1])
    for step in range(end - first):
        node = first + np.uint64(step)
        before = sums[node, 0]
        used[count] = np.uint32(node)
        sums[node, 0] = before + more
        sums[node, 1] += squares
        count += 1 if before == _ZERO64 else 0
    return count


@helper
def _right(row: Any, node: Any, here: Any, change: Any, sums: Any, used: Any, count: Any) -> Any:
    """To the right of ``node`` in run ``here``; returns how many are listed, -1 if the sample is
    damaged, and how many those were.
    """
    _, limit, _ = change
    nodes, at, met = np.uint64(sums.shape[0]), here, 0
    first, rest = run_at(row, here)
    end, largest = first + size_of(rest), _ZERO64
    if node + _ONE64 < end:
        largest = inner_of(rest)
        if largest == _ZERO64 or largest >= limit:
            return count, met
        count = _add(node + _ONE64, end, largest, change, sums, used, count)
        met = np.int64(end - node) - 1
    while at + _ONE64 < row[3]:
        at += _ONE64
        first, rest = run_at(row, at)
        end, label, inner = first + size_of(rest), label_of(rest), inner_of(rest)
        if label == _ZERO64 or label >= limit:
            break
        if end > nodes or count > np.int64(nodes):
            return np.int64(_DAMAGED), met
        largest = max(largest, label)
        if inner > largest:
            count = _add(first, first + _ONE64, largest, change, sums, used, count)
            met, first, largest = met + 1, first + _ONE64, inner
            if inner >= limit:
                break
        count = _add(first, end, largest, change, sums, used, count)
        met += np.int64(end - first)
    return count, met


@helper
def _left(row: Any, node: Any, here: Any, change: Any, sums: Any, used: Any, count: Any) -> Any:
    """The same to the left: a label joins its place to the one before it."""
    _, limit, _ = change
    nodes, at, met = np.uint64(sums.shape[0]), here, 0
    first, rest = run_at(row, here)
    label, largest = label_of(rest), _ZERO64
    if node > first:
        if count > np.int64(nodes):
            return np.int64(_DAMAGED), met
        largest = inner_of(rest)
        if largest == _ZERO64 or largest >= limit:
            return count, met
        count = _add(first, node, largest, change, sums, used, count)
        met = np.int64(node - first)
    while label != _ZERO64 and label < limit:
        if at == _ZERO64:
            return np.int64(_DAMAGED), met
        at -= _ONE64
        first, rest = run_at(row, at)
        end, inner = first + size_of(rest), inner_of(rest)
        if end > nodes or count > np.int64(nodes):
            return np.int64(_DAMAGED), met
        largest = max(largest, label)
        if inner > largest:
            count = _add(end - _ONE64, end, largest, change, sums, used, count)
            met, end, largest = met + 1, end - _ONE64, inner
            if inner >= limit:
                break
        count = _add(first, end, largest, change, sums, used, count)
        met += np.int64(end - first)
        label = label_of(rest)
    return count, met


@helper
def change_packed(
    row: Any, node: Any, limit: Any, sign: Any, weights: Any, sums: Any, used: Any, count: Any
) -> Any:
    """Add ``sign`` * (w(tau) - w(limit)) to all whom ``node`` meets before step ``limit``.

    Returns how many are listed, or -1 if the sample is damaged, and how many those were.
    """
    if limit == _ONE:
        return count, 0
    node, nodes = np.uint64(node), np.uint64(sums.shape[0])
    here = _run_of(row, node)
    if here >= row[3]:
        return np.int64(_DAMAGED), 0
    first, rest = run_at(row, here)
    end = first + size_of(rest)
    if node < first or node >= end or end > nodes or count > np.int64(nodes):
        return np.int64(_DAMAGED), 0
    change = weights, np.uint64(limit), sign
    count, met = _right(row, node, here, change, sums, used, count)
    if count == _DAMAGED:
        return count, met
    count, more = _left(row, node, here, change, sums, used, count)
    return count, met + more
