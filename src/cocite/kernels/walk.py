"""Steps of coalescing reversed walks, and their meetings.

A *token* represents walks that have met: ``at`` is its node, ``head`` the smallest node whose walk
it carries. Tokens are sorted by head. A ``step_*`` kernel chooses the in-neighbor that each token
moves to, or NOWHERE if there is none. ``meet`` merges the tokens that arrived at one node: the one
with the smallest head survives, and each other head h gets its only edge in the fingerprint graph,

    parent[h] = the surviving head,   label[h] = the step

Steps process batches of 64 tokens in stages, and prefetch the cache lines of the next stage. They
may process destination blocks in any order. The cost is one step for each live token. Source:
Fogaras, Racz, *Scaling link-based similarity search*, sections 2.1.1, 2.1.3 (Algorithm 2) and
2.2.3.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cocite.constants import NOWHERE
from cocite.kernels._kernel import helper, kernel, prefetch
from cocite.kernels._types import *
from cocite.kernels.random import draw, node_at, pick, place_of

_BATCH = 64
_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)
_ONE32, _LAST32 = np.uint32(1), np.uint32(0xFFFFFFFF)
_S12, _S32 = np.uint64(12), np.uint64(32)
_ENDED = np.uint64(0xFFFFFFFFFFFFFFFF)

_SEARCH_FACTOR = np.uint64(128)
"""A node of in-degree d is searched if d**2 exceeds this factor times the size of the order: a
membership test costs as much as scanning about 128 links (``python -m benchmarks.hubs``).
"""


@helper
def _next_batch(in_offsets: Any, at: Any, i: Any, first: Any, last: Any, batch: Any) -> Any:
    """List in ``batch`` the next tokens at nodes of the block [first, last), from token ``i`` on.
    Returns their number, and the next token to examine.
    """
    width, count = np.uint32(last - first), 0
    while i < at.size and count < _BATCH:
        if np.uint32(at[i] - first) < width:
            batch[count] = i
            count += 1
            prefetch(in_offsets, np.uint64(at[i]))
        i += 1
    return count, i


@helper
def _at_share(shares: Any, begin: Any, end: Any, value: Any) -> Any:
    """Return the first link whose running share exceeds ``value``, or the last link."""
    low, high = begin, end - _ONE64
    while low < high:
        middle = (low + high) >> _ONE64
        if np.uint64(shares[middle]) > value:
            high = middle
        else:
            low = middle + _ONE64
    return low


@kernel(W=("None", "U32s"))
def step_random(
    in_offsets: U64s,
    in_sources: U32s,
    shares: W,
    at: U32s,
    key: U64,
    out: OutU32s,
    first: U32,
    last: U32,
) -> None:
    """Move each token at a node of the block [first, last) to an in-neighbor drawn for the node.

    Draws uniformly, or in O(log d) by the running ``shares`` of the links (``share``). Writes
    ``out`` uint32[at.size] for the block's tokens only.
    """
    batch, link = np.empty(_BATCH, np.int64), np.empty(_BATCH, np.uint64)
    i = 0
    while i < at.size:
        count, i = _next_batch(in_offsets, at, i, first, last, batch)
        if shares is not None:
            for j in range(count):
                node = np.uint64(at[batch[j]])
                prefetch(shares, (in_offsets[node] + in_offsets[node + _ONE64]) >> _ONE64)
        for j in range(count):
            node = np.uint64(at[batch[j]])
            begin, end = in_offsets[node], in_offsets[node + _ONE64]
            if begin == end:
                link[j] = _ENDED
            elif shares is None:
                link[j] = begin + pick(draw(key, node), end - begin)
                prefetch(in_sources, link[j])
            else:
                link[j] = _at_share(shares, begin, end, draw(key, node) >> _S32)
                prefetch(in_sources, link[j])
        for j in range(count):
            out[batch[j]] = NOWHERE if link[j] == _ENDED else in_sources[link[j]]


@helper
def _has(in_sources: Any, first: Any, last: Any, node: Any) -> Any:
    """Return the position of ``node``, or the next larger one, in ``in_sources[first:last]``."""
    while first < last:
        middle = (first + last) >> _ONE64
        if in_sources[middle] < node:
            first = middle + _ONE64
        else:
            last = middle
    return first


@helper
def _argmin_by_search(in_sources: Any, first: Any, last: Any, order: Any) -> Any:
    smallest, largest = in_sources[first], in_sources[last - _ONE64]
    place = np.uint32(0)
    while True:
        node = node_at(order, place)
        if node >= smallest and node <= largest:
            found = _has(in_sources, first, last, node)
            if in_sources[found] == node:
                return node
        place = np.uint32(place + _ONE32)


@helper
def _argmin_by_scan(in_sources: Any, first: Any, last: Any, order: Any) -> Any:
    best = _LAST32
    for link in range(first, last):
        best = min(best, place_of(order, in_sources[link]))
    return node_at(order, best)


@kernel
def step_argmin(
    in_offsets: U64s, in_sources: U32s, at: U32s, order: U32s, out: OutU32s, first: U32, last: U32
) -> None:
    """Move each token at a node of the block [first, last) to the in-neighbor first in ``order``.

    ``out`` is as for ``step_random``. Scans the in-links, O(d), or for large d walks the order from
    its smallest place and tests membership, O(2**bits / d * log d), with the same result.
    """
    words = np.uint64(order[0]) + _ONE64
    batch = np.empty(_BATCH, np.int64)
    i = 0
    while i < at.size:
        count, i = _next_batch(in_offsets, at, i, first, last, batch)
        for j in range(count):
            prefetch(in_sources, in_offsets[np.uint64(at[batch[j]])])
        for j in range(count):
            node = np.uint64(at[batch[j]])
            begin, end = in_offsets[node], in_offsets[node + _ONE64]
            degree = end - begin
            if degree == _ZERO64:
                out[batch[j]] = NOWHERE
            elif degree == _ONE64:
                out[batch[j]] = in_sources[begin]
            elif degree * degree > _SEARCH_FACTOR * words:
                out[batch[j]] = _argmin_by_search(in_sources, begin, end, order)
            else:
                out[batch[j]] = _argmin_by_scan(in_sources, begin, end, order)


@helper
def fetch_owners(arrived: Any, low: Any, high: Any, owner: Any, at: Any, live: Any) -> None:
    """Prefetch what ``meet`` reads for the tokens ``low`` to ``high``."""
    for i in range(low, high):
        if arrived[i] != NOWHERE:
            prefetch(owner, np.uint64(arrived[i]))
    for i in range(low, high):
        if arrived[i] != NOWHERE:
            token = owner[arrived[i]]
            if token < live:
                prefetch(at, np.uint64(token))


@kernel
def meet(
    arrived: U32s,
    at: OutU32s,
    head: OutU32s,
    owner: OutU32s,
    parent: OutU32s,
    label: OutU8s,
    extent: OutU32s,
    step: U8,
) -> U32:
    """Merge the tokens that arrived at one node; return how many survive.

    ``arrived`` uint32[t] are the nodes that tokens 0..t-1 moved to; the first entries of ``at`` and
    ``head`` become the survivors, still in ascending order of head. ``extent[h]`` is the size of
    head h's group while it survives, then the number of members that its survivor had before the
    meeting: its offset in the survivor's subtree.

    ``owner`` (uint32[nodes]) need not be initialized: ``owner[v]`` counts only if it is the index
    of a survivor at v (Briggs and Torczon's sparse set).
    """
    live = np.uint32(0)
    size = arrived.size
    for lo in range(0, size, _BATCH):
        hi = min(lo + _BATCH, size)
        fetch_owners(arrived, lo, hi, owner, at, live)
        for i in range(lo, hi):
            node = arrived[i]
            if node == NOWHERE:
                continue
            token = owner[node]
            if token < live and at[token] == node:
                survivor, loser = head[token], head[i]
                parent[loser] = survivor
                label[loser] = step
                members = extent[survivor]
                extent[survivor] = members + extent[loser]
                extent[loser] = members
            else:
                owner[node] = live
                at[live] = node
                head[live] = head[i]
                live = np.uint32(live + _ONE32)
    return live


@kernel
def leave(arrived: U32s, at: OutU32s, who: OutU32s, times: OutU8s, step: U8) -> U32:
    """Record in ``times`` the walks that ``arrived`` at the node of the first walk.

    Moves the walks that continue, including the first, to the front of ``at`` and ``who``. Returns
    their number, or 0 if the first has ended.
    """
    first, left = arrived[0], np.uint32(0)
    if first == NOWHERE:
        return left
    for i in range(arrived.size):
        if i and arrived[i] == first:
            times[who[i]] = step
        elif arrived[i] != NOWHERE:
            at[left], who[left] = arrived[i], who[i]
            left = np.uint32(left + _ONE32)
    return left


# -- weighted steps ----------------------------------------------------------------------

# A weight belongs to the link, or to its in-neighbor (``by_node``: the array is indexed by node).
#
# ``step_clock``: every node u has a clock that rings at an exponential time E(u), drawn for every
# step and shared by all tokens. A token at v moves to the in-neighbor with the smallest
# E(u) / w(u, v); ties go to the smaller id. Two tokens whose links have weights x and y meet with
# probability
#
#     J(x, y) = sum over i of 1 / sum over j of max(x[j] / x[i], y[j] / y[i])
#
# over the i in both rows: the probability Jaccard coefficient. It equals the Jaccard coefficient if
# all weights are equal, and no shared sampling can exceed it for all pairs.
#
# E(u) = -log(1 - x), with x = (the upper 52 bits of draw(key, u) + 1/2) * 2**-52. Because
# E(u) >= x, the bound x / w rules out most links: of d in-links, only about log d need a logarithm.
# The logarithm is a series of IEEE operations in a fixed order, so its result does not depend on
# the library or the instruction set.
#
# Source: Moulton, Jiang 2018, *Maximally consistent sampling and the Jaccard index of probability
# distributions*; the exponential race is older.

_WHOLE, _LARGEST = 2.0**32, 2.0**32 - 1
_UNIT, _ODD = 2.0**-52, np.int64(2**53 - 1)
_LN2, _HALF_ROOT = math.log(2.0), math.sqrt(0.5)
_SLACK = 1.0 + 2.0**-40
"""Factor that covers all rounding errors of a time, so the bound never rules out the winner."""


@kernel
def share(offsets: U64s, neighbors: U32s, weights: F32s, by_node: Bool, out: OutU32s) -> None:
    """Fill ``out`` with the running shares of each row's links, in units of 2**-32."""
    for i in range(offsets.size - 1):
        begin, end = offsets[i], offsets[np.uint64(i) + _ONE64]
        total = 0.0
        for link in range(begin, end):
            total += np.float64(weights[neighbors[link]] if by_node else weights[link])
        running = 0.0
        for link in range(begin, end):
            running += np.float64(weights[neighbors[link]] if by_node else weights[link])
            out[link] = np.uint32(np.int64(min(running / total * _WHOLE, _LARGEST)))


@helper
def _exponential(word: Any) -> Any:
    """Return -log(1 - x), x = (word + 1/2) * 2**-52, for a word of 52 bits. With 1 - x = m * 2**e
    and m about 1: log m = 2 artanh((m - 1) / (m + 1)), its series to s**21.
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
    in_offsets: U64s,
    in_sources: U32s,
    weights: F32s,
    by_node: Bool,
    at: U32s,
    key: U64,
    out: OutU32s,
    block: U32s,
) -> None:
    """Like ``step_random``, but by the first clock to ring; ``block`` is uint32[2] (first, end)."""
    batch = np.empty(_BATCH, np.int64)
    i = 0
    while i < at.size:
        count, i = _next_batch(in_offsets, at, i, block[0], block[1], batch)
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
            elif by_node:  # two calls with a constant, so that no link tests ``by_node``
                out[batch[j]] = _first_to_ring(in_sources, weights, True, begin, end, key)
            else:
                out[batch[j]] = _first_to_ring(in_sources, weights, False, begin, end, key)
