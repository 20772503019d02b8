"""PageRank's kernels for a core in blocks; ``kernels/rank.py`` has the algorithm and its order.

The links to a block's rows are of four kinds, by the location of their source:

    inner, from rows above or below    by row, as in memory, sources numbered from the block's first
    outer, from rows above or below    by source, as words (``kernels/scan.py``)

A row's sum has four parts, in this order: inner above, outer above, outer below, inner below; the
last is the Gauss-Seidel sweep itself. Links to dangling nodes (*tails*) are separate; their sums
are in order of source. Dealing costs 2 to 5 ns per link, once; a sweep costs 2 ns per outer link.
Source: Haveliwala, *Efficient computation of PageRank*, section 3.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.rank import NO_NODE

TAIL, LEFT_OUT = np.uint32(0xFFFFFFFE), np.uint32(0xFFFFFFFF)
"""Codes in place of a row's number in its block: for dangling nodes, and for removed nodes."""

UPPER, LOWER, INNER_TAILS, OUTER, OUTER_TAILS, LOST = range(6)
COUNTS = 9
"""Number of counters: the links of each kind in the current buffers, and the lost links; then the
links of the first three kinds in earlier buffers.
"""
_EARLIER = 6

_ONE64 = np.uint64(1)
_SHIFT, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_LAST = np.uint32(1 << 31)


@helper
def _put(links: Any, weights: Any, at: Any, link: Any, weight: Any) -> Any:
    links[at] = link
    if weights.size > 0:
        weights[at] = weight
    return at + _ONE64


@kernel(T=("F32", "U8"))
def deal(
    in_links: tuple[U64s, U32s, F32s],
    at: tuple[U64, U64, U64, U64],
    codes: U32s,
    counts: OutU64s,
    inner: tuple[tuple[OutU64s, OutU32s, OutF32s], tuple[OutU64s, OutU32s, OutF32s]],
    tails: tuple[OutU64s, OutU32s, OutF32s],
    outer: tuple[OutU64s, OutF32s, OutU64s, OutF32s],
    loops: OutTs,
) -> None:
    """Deal some of a block's in-links by kind.

    ``in_links`` has the offsets of the nodes that these links lead to. ``at`` is (first link, end
    of the links, first of these nodes, first node of the block). ``codes`` (uint32) is each node's
    row in the block, TAIL or LEFT_OUT. ``inner`` is (rows of the block, links, weights) from above
    and from below; ``tails`` has one row per node; ``outer`` is (keys uint64, source and target;
    weights) to rows, then to tails. ``counts`` (uint64[COUNTS]) is how much each contains so far;
    LOST counts links from nodes that have no out-links according to their degrees.
    """
    in_offsets, in_sources, in_weights = in_links
    link, end, here, first = at
    (up_rows, up_links, up_weights), (low_rows, low_links, low_weights) = inner
    tail_rows, tail_links, tail_weights = tails
    keys, weights, tail_keys, tail_key_weights = outer
    ups, lows, ins = counts[UPPER], counts[LOWER], counts[INNER_TAILS]
    outs, tail_outs, lost = counts[OUTER], counts[OUTER_TAILS], counts[LOST]
    weighted, width = in_weights.size > 0, np.uint64(codes.size)
    for i in range(in_offsets.size - 1):
        stop = in_offsets[np.uint64(i) + _ONE64]
        stop = end if stop > end else stop
        place = np.uint64(i) + here - first
        row = codes[place]
        if row == LEFT_OUT:
            link = stop
        while link < stop:
            source = np.uint64(in_sources[link])
            inside = source - first
            weight = in_weights[link] if weighted else np.float32(1.0)
            if inside >= width and row == TAIL:
                key = (source << _SHIFT) | place
                tail_outs = _put(tail_keys, tail_key_weights, tail_outs, key, weight)
            elif inside >= width:
                key = (source << _SHIFT) | np.uint64(row)
                outs = _put(keys, weights, outs, key, weight)
            elif codes[inside] >= TAIL:
                lost += _ONE64
            elif row == TAIL:
                ins = _put(tail_links, tail_weights, ins, codes[inside], weight)
            elif inside > place:
                ups = _put(up_links, up_weights, ups, codes[inside], weight)
            elif inside < place:
                lows = _put(low_links, low_weights, lows, codes[inside], weight)
            else:
                loops[row] = weight
            link += _ONE64
        if row < TAIL:
            up_rows[np.uint64(row) + _ONE64] = counts[_EARLIER + UPPER] + ups
            low_rows[np.uint64(row) + _ONE64] = counts[_EARLIER + LOWER] + lows
        tail_rows[place + _ONE64] = counts[_EARLIER + INNER_TAILS] + ins
    counts[UPPER], counts[LOWER], counts[INNER_TAILS] = ups, lows, ins
    counts[OUTER], counts[OUTER_TAILS], counts[LOST] = outs, tail_outs, lost


@kernel
def rename(keys: OutU64s, begin: U64, stop: U64, number: U32s, lost: OutU64s) -> U64:
    """Replace the sources of sorted ``keys`` by their ``number``, from key ``begin`` to source
    ``stop``. Returns the next key. ``lost[0]`` counts sources without a number.
    """
    at = begin
    while at < np.uint64(keys.size):
        source = keys[at] >> _SHIFT
        if source >= stop:
            break
        lost[0] += np.uint64(number[source] == NO_NODE)
        keys[at] = (np.uint64(number[source]) << _SHIFT) | (keys[at] & _LOW)
        at += _ONE64
    return at


@kernel(T=("F32", "F64"))
def push_weighted(words: U32s, weights: F32s, begin: U64, x: Ts, stop: U64, into: OutF64s) -> U64:
    """Like ``scan.push`` for one lane of sums, but with a weight (float32) for each word."""
    at, size = begin, np.uint64(words.size)
    while at < size:
        source = np.uint64(words[at])
        if source >= stop:
            break
        value = np.float64(x[source])
        going = True
        while going:
            at += _ONE64
            going = words[at] < _LAST
            into[words[at] & ~_LAST] += np.float64(weights[at]) * value
        at += _ONE64
    return at


@kernel
def spread(number: U32s, first: U64, place: U64, sums: OutF64s) -> None:
    """Move the sums of a block's rows from its first entries to their nodes; set 0 for other nodes.

    ``number`` covers the nodes from ``place`` on; ``first`` is the number of the block's first row.
    Iterates downward, because no row has a larger position than its node.
    """
    for back in range(number.size):
        i = np.uint64(number.size) - _ONE64 - np.uint64(back)
        row = number[i]
        if row == NO_NODE:
            sums[place + i] = 0.0
        else:
            sums[place + i] = sums[np.uint64(row) - first]
