"""One step of coalescing reversed walks on weighted links; ``walk.py`` has the others.

* ``step_weighted``: a token at v moves to in-neighbour u with probability w(u, v) / sum of w(., v),
  drawn anew at every node. ``share`` makes the running shares of each node's links once, in units
  of 2**-32; a step looks the draw up in them, O(log d). A probability is off by at most 2**-32.
* ``step_clock``: every node u has a clock that rings at an exponential time E(u), drawn anew for
  every step and shared by all tokens; a token at v moves to the in-neighbour with the smallest
  E(u) / w(u, v), the smaller id if two ring at once. Two tokens whose links weigh x and y meet with

      J(x, y) = sum over i of 1 / sum over j of max(x[j] / x[i], y[j] / y[i])

  over the i that are in both, the probability Jaccard coefficient: the Jaccard coefficient where
  all weights are equal, and the largest that any sampling shared by all can have.

A weight is a link's own, or its in-neighbour's (``by_node``: then the array is indexed by node).

E(u) = -log(1 - x), with x the upper 52 bits of draw(key, u) and a half, times 2**-52. It is at
least x, so x / w tells that a link cannot win before any logarithm is taken: of d in-links about
log d are. The logarithm is a series of IEEE operations in a fixed order, so that no library and no
instruction set has a say in which link wins.

Source: Moulton, Jiang 2018, *Maximally consistent sampling and the Jaccard index of probability
distributions*; the exponential race is older.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cocite.codes import NOWHERE
from cocite.kernels._jit import helper, kernel, prefetch
from cocite.kernels.random import draw

__all__ = ["share", "step_clock", "step_weighted"]

_BATCH = 64
_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)
_S12, _S32 = np.uint64(12), np.uint64(32)
_ENDED = np.uint64(0xFFFFFFFFFFFFFFFF)
_WHOLE, _LARGEST = 2.0**32, 2.0**32 - 1
_UNIT, _ODD = 2.0**-52, np.int64(2**53 - 1)
_LN2, _HALF_ROOT = math.log(2.0), math.sqrt(0.5)
_SLACK = 1.0 + 2.0**-40
"""More than all roundings of a time together: what it rules out could not have won."""


@kernel
def share(offsets: Any, neighbours: Any, weights: Any, by_node: Any, out: Any) -> None:
    """Fill ``out`` (uint32[links]) with the running shares of the links of each row."""
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[np.uint64(i) + _ONE64]
        total = 0.0
        for link in range(begin, end):
            total += np.float64(weights[neighbours[link]] if by_node else weights[link])
        running = 0.0
        for link in range(begin, end):
            running += np.float64(weights[neighbours[link]] if by_node else weights[link])
            out[link] = np.uint32(np.int64(min(running / total * _WHOLE, _LARGEST)))


@helper
def _at_share(shares: Any, begin: Any, end: Any, value: Any) -> Any:
    """The first of the links whose running share is above ``value``, else the last."""
    low, high = begin, end - _ONE64
    while low < high:
        middle = (low + high) >> _ONE64
        if np.uint64(shares[middle]) > value:
            high = middle
        else:
            low = middle + _ONE64
    return low


@kernel
def step_weighted(
    in_offsets: Any,
    in_sources: Any,
    shares: Any,
    at: Any,
    key: Any,
    out: Any,
    first: Any,
    last: Any,
) -> None:
    """Move each token at a node of the block [first, last) to an in-neighbour drawn by weight.

    ``out`` uint32[at.size] is written for the tokens of the block only.
    """
    size, width = at.size, np.uint32(last - first)
    batch, link = np.empty(_BATCH, np.int64), np.empty(_BATCH, np.uint64)
    count = 0
    for i in range(size):
        if np.uint32(at[i] - first) < width:
            batch[count] = i
            count += 1
            prefetch(in_offsets, np.uint64(at[i]))
        if count < _BATCH and i + 1 < size:
            continue
        for j in range(count):
            node = np.uint64(at[batch[j]])
            prefetch(shares, (in_offsets[node] + in_offsets[node + _ONE64]) >> _ONE64)
        for j in range(count):
            node = np.uint64(at[batch[j]])
            begin, end = in_offsets[node], in_offsets[node + _ONE64]
            if begin == end:
                link[j] = _ENDED
            else:
                link[j] = _at_share(shares, begin, end, draw(key, node) >> _S32)
                prefetch(in_sources, link[j])
        for j in range(count):
            out[batch[j]] = NOWHERE if link[j] == _ENDED else in_sources[link[j]]
        count = 0


@helper
def _exponential(word: Any) -> Any:
    """-log(1 - x), x = (word + 1/2) * 2**-52, for a word of 52 bits.

    With 1 - x = m * 2**e and m about 1: log m = 2 artanh((m - 1) / (m + 1)), its series to s**21.
    """
    mantissa, exponent = math.frexp(np.float64(_ODD - np.int64(2) * np.int64(word)))
    if mantissa < _HALF_ROOT:
        mantissa *= 2.0
        exponent -= 1
    s = (mantissa - 1.0) / (mantissa + 1.0)
    square = s * s
    series = 0.0
    for i in range(10, -1, -1):
        series = series * square + 1.0 / (2.0 * i + 1.0)
    return (53 - exponent) * _LN2 - 2.0 * s * series


@helper
def _first_to_ring(
    in_sources: Any, weights: Any, by_node: Any, begin: Any, end: Any, key: Any
) -> Any:
    best, limit, winner = np.inf, np.inf, in_sources[begin]
    for link in range(begin, end):
        source = in_sources[link]
        weight = np.float64(weights[source] if by_node else weights[link])
        word = draw(key, source) >> _S12
        if (np.float64(np.int64(word)) + 0.5) * _UNIT < limit * weight:
            time = _exponential(word) / weight
            if time < best:
                best, limit, winner = time, time * _SLACK, source
    return winner


@kernel
def step_clock(
    in_offsets: Any,
    in_sources: Any,
    weights: Any,
    by_node: Any,
    at: Any,
    key: Any,
    out: Any,
    block: Any,
) -> None:
    """Move each token at a node of ``block`` (uint32[2]: first, end) to the in-neighbour whose
    clock rings first; ``out`` as for ``step_weighted``.
    """
    size, begin_node, width = at.size, block[0], np.uint32(block[1] - block[0])
    batch = np.empty(_BATCH, np.int64)
    count = 0
    for i in range(size):
        if np.uint32(at[i] - begin_node) < width:
            batch[count] = i
            count += 1
            prefetch(in_offsets, np.uint64(at[i]))
        if count < _BATCH and i + 1 < size:
            continue
        for j in range(count):
            begin = in_offsets[np.uint64(at[batch[j]])]
            prefetch(in_sources, begin)
            if not by_node:
                prefetch(weights, begin)
        for j in range(count):
            node = np.uint64(at[batch[j]])
            begin, end = in_offsets[node], in_offsets[node + _ONE64]
            if begin == end:
                out[batch[j]] = NOWHERE
            elif end - begin == _ONE64:
                out[batch[j]] = in_sources[begin]
            elif by_node:
                out[batch[j]] = _first_to_ring(in_sources, weights, True, begin, end, key)
            else:
                out[batch[j]] = _first_to_ring(in_sources, weights, False, begin, end, key)
        count = 0
