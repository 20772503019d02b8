"""PageRank's kernels for a core in blocks; ``kernels/rank.py`` has the algorithm and the order of
sums.

The links of a block of rows come apart into four kinds, by where their source is:

    inner, from rows above or below    by row, as in memory, sources numbered from the block's first
    outer, from rows above or below    by source, as words (``kernels/scan.py``); targets numbered
    likewise

A row's sum is then made in four goes: inner above, outer above, outer below, inner below. The
first three are of values that stand still; the last is the Gauss-Seidel sweep itself.

Links to dangling nodes are kept apart, and their targets numbered from the block's first node;
their sums are in order of source: outer below, inner, outer above.

Cost: 2 to 5 ns a link, once; 2 ns an outer link a sweep.
Source: Haveliwala, *Efficient computation of PageRank*, 3.2.
"""

from __future__ import annotations

import numpy as np

from cocite.kernels._kernel import kernel
from cocite.kernels._types import *
from cocite.kernels.rank import NO_NODE

TAIL, LEFT_OUT = np.uint32(0xFFFFFFFE), np.uint32(0xFFFFFFFF)
"""In place of a row's number in its block: a dangling node; a node that was removed."""

UPPER, LOWER, INNER_TAILS, OUTER, OUTER_TAILS, LOST = range(6)
COUNTS = 9
"""Counters of links dealt: of each kind in its buffer, lost ones; then those of the first three
kinds in earlier buffers."""
_EARLIER = 6

_ONE64 = np.uint64(1)
_SHIFT, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_LAST = np.uint32(1 << 31)


@kernel(T=("F32", "U8"))
def deal_rows(
    in_links: tuple[U64s, U32s, F32s],
    at: tuple[U64, U64, U64, U64],
    codes: U32s,
    counts: OutU64s,
    above: tuple[OutU64s, OutU32s, OutF32s],
    below: tuple[OutU64s, OutU32s, OutF32s],
    outer: tuple[OutU64s, OutF32s],
    loops: OutTs,
) -> None:
    """Deal the links that lead to rows of a block, of some links, to the four kinds.

    ``in_links`` has the offsets of the nodes that these links lead to; ``at`` is the number of the
    first link and of that behind the last, and of the first of these nodes and of the block's.
    ``codes`` (uint32) holds for each node of the block its row there, TAIL or LEFT_OUT. ``above``
    and ``below`` are (rows, of the block, links, weights), ``outer`` is (keys: uint64, source and
    target; weights). ``counts`` (uint64[COUNTS]) says how much is in each already; LOST are links
    from nodes that have none, by their degrees.
    """
    in_offsets, in_sources, in_weights = in_links
    link, end, here, first = at
    up_rows, up_links, up_weights = above
    low_rows, low_links, low_weights = below
    keys, weights = outer
    ups, lows, outs, lost = counts[UPPER], counts[LOWER], counts[OUTER], counts[LOST]
    weighted, width = in_weights.size > 0, np.uint64(codes.size)
    for i in range(in_offsets.size - 1):
        stop = in_offsets[np.uint64(i) + _ONE64]
        stop = end if stop > end else stop
        place = np.uint64(i) + here - first
        row = codes[place]
        if row >= TAIL:
            link = stop
            continue
        while link < stop:
            source = np.uint64(in_sources[link])
            inside = source - first
            if inside >= width:
                keys[outs] = (source << _SHIFT) | np.uint64(row)
                if weighted:
                    weights[outs] = in_weights[link]
                outs += _ONE64
            elif codes[inside] >= TAIL:
                lost += _ONE64
            elif inside > place:
                up_links[ups] = codes[inside]
                if weighted:
                    up_weights[ups] = in_weights[link]
                ups += _ONE64
            elif inside < place:
                low_links[lows] = codes[inside]
                if weighted:
                    low_weights[lows] = in_weights[link]
                lows += _ONE64
            else:
                loops[row] = in_weights[link] if weighted else 1
            link += _ONE64
        up_rows[np.uint64(row) + _ONE64] = counts[_EARLIER + UPPER] + ups
        low_rows[np.uint64(row) + _ONE64] = counts[_EARLIER + LOWER] + lows
    counts[UPPER], counts[LOWER], counts[OUTER], counts[LOST] = ups, lows, outs, lost


@kernel
def deal_tails(
    in_links: tuple[U64s, U32s, F32s],
    at: tuple[U64, U64, U64, U64],
    codes: U32s,
    counts: OutU64s,
    inner: tuple[OutU64s, OutU32s, OutF32s],
    outer: tuple[OutU64s, OutF32s],
) -> None:
    """``deal_rows`` for links that lead to dangling nodes; ``inner`` has a row for each node."""
    in_offsets, in_sources, in_weights = in_links
    link, end, here, first = at
    rows, links, link_weights = inner
    keys, weights = outer
    ins, outs, lost = counts[INNER_TAILS], counts[OUTER_TAILS], counts[LOST]
    weighted, width = in_weights.size > 0, np.uint64(codes.size)
    for i in range(in_offsets.size - 1):
        stop = in_offsets[np.uint64(i) + _ONE64]
        stop = end if stop > end else stop
        place = np.uint64(i) + here - first
        while link < stop and codes[place] == TAIL:
            source = np.uint64(in_sources[link])
            inside = source - first
            if inside >= width:
                keys[outs] = (source << _SHIFT) | place
                if weighted:
                    weights[outs] = in_weights[link]
                outs += _ONE64
            elif codes[inside] >= TAIL:
                lost += _ONE64
            else:
                links[ins] = codes[inside]
                if weighted:
                    link_weights[ins] = in_weights[link]
                ins += _ONE64
            link += _ONE64
        link = stop
        rows[place + _ONE64] = counts[_EARLIER + INNER_TAILS] + ins
    counts[INNER_TAILS], counts[OUTER_TAILS], counts[LOST] = ins, outs, lost


@kernel
def rename(keys: OutU64s, begin: U64, stop: U64, number: U32s, lost: OutU64s) -> U64:
    """Give the sources of sorted ``keys`` their ``number``, from key ``begin`` on and below
    ``stop``; returns the key to go on with. ``lost[0]`` counts those that have none.
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


@kernel
def arrange_weights(keys: U64s, weights: F32s, out: OutF32s) -> None:
    """The ``weights`` of sorted ``keys`` where ``scan.arrange`` puts their targets."""
    at, source = np.uint64(0), np.uint64(0)
    for i in range(keys.size):
        mine = keys[i] >> _SHIFT
        if i == 0 or mine != source:
            source = mine
            at += _ONE64
        out[at] = weights[i]
        at += _ONE64


@kernel(T=("F32", "F64"))
def push_weighted(words: U32s, weights: F32s, begin: U64, x: Ts, stop: U64, into: OutF64s) -> U64:
    """``scan.push`` with ``weights`` (float32) beside the words; sums of one lane."""
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
    """Move the sums of a block's rows, which lie in its first entries, to their nodes', for
    some nodes (``number`` is their part, ``place`` the first of them); 0 for all others.

    ``first`` is the number of the block's first row. Later nodes go first: no row lies behind its
    node.
    """
    for back in range(number.size):
        i = np.uint64(number.size) - _ONE64 - np.uint64(back)
        row = number[i]
        if row == NO_NODE:
            sums[place + i] = 0.0
        else:
            sums[place + i] = sums[np.uint64(row) - first]
