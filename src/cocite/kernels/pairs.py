"""Meeting times of many pairs on fingerprint trees, sample by sample.

With each label reduced by one modulo 16, a maximum gives the meeting time and shows tree edges:

    most = max over places p in (low, high] of (label[p] - 1) mod 16,    tau = most + 1, NEVER if 15

Each sample is reduced to the maxima of blocks of 16 places and, from each block on, of 2, 4, 8, ...
blocks. Two such maxima cover the whole blocks between two places. Packed trees are unpacked first.

Costs 0.5 ns per member per sample (packed: 3 ns and a random access), and two random accesses,
about 30 ns, per pair per sample. Uses 2 bytes per node (packed: 11), and 128 bytes per pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import NEVER, NOWHERE
from cocite.kernels._kernel import helper, kernel, leading_zeros
from cocite.kernels._types import *
from cocite.kernels.runs import DAMAGED, unpack
from cocite.kernels.totals import estimate
from cocite.kernels.trees import fetch_position, labels_at, position_at

SOUND = -1
_PACKED = 6
"""Size of a row of a packed sample."""
_BLOCK = 16
_AHEAD = 16
_AT_ONCE = 16
"""Samples whose places are read together: a node's places in them fill one or two cache lines."""
_EDGE = np.uint8(15)
_ZERO64, _ONE64, _FOUR64 = np.uint64(0), np.uint64(1), np.uint64(4)
_LOW4, _SIXTY_THREE = np.uint64(15), np.uint64(63)
_THREE64, _LOW3 = np.uint64(3), np.uint64(7)
_FIFTEENS, _SIXTEENS = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x1010101010101010)


@helper
def _unpack_labels(trees: Any, end: Any, less: Any) -> None:
    """Write the labels of the first ``end`` places, minus one, to ``less``, eight per uint64."""
    for i in range((end + np.uint64(7)) >> _THREE64):
        word = np.uint64(labels_at(trees, np.uint64(i) << _THREE64))
        word = (word | (word << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
        word = (word | (word << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
        word = (word | (word << _FOUR64)) & _FIFTEENS
        less[i] = (word + _FIFTEENS) & _FIFTEENS


@helper
def _larger(one: Any, other: Any) -> Any:
    """Return the larger of each pair of bytes, which are at most 15."""
    there = ((one | _SIXTEENS) - other) & _SIXTEENS
    mask = there - (there >> _FOUR64)
    return (one & mask) | (other & ~mask)


@helper
def _raise(less: Any, end: Any, tops: Any) -> None:
    """Fill ``tops`` uint8[levels, blocks] with maxima of 1, 2, 4, ... blocks; pad with edges."""
    blocks = np.int64((end + _LOW4) >> _FOUR64)
    for place in range(end, np.uint64(blocks) << _FOUR64):
        byte = (np.uint64(place) & _LOW3) << _THREE64
        less[np.uint64(place) >> _THREE64] |= _LOW4 << byte
    row = tops[0]
    for block in range(blocks):
        top = _larger(less[2 * block], less[2 * block + 1])
        top = _larger(top, top >> np.uint64(32))
        top = _larger(top, top >> np.uint64(16))
        row[block] = np.uint8(_larger(top, top >> np.uint64(8)) & _LOW4)
    level, reach = 1, 1
    while 2 * reach <= blocks:
        below, row = tops[level - 1], tops[level]
        ahead = below[reach:]
        for block in range(blocks - 2 * reach + 1):
            row[block] = max(below[block], ahead[block])
        level, reach = level + 1, 2 * reach


@helper
def _room_for(places: Any) -> Any:
    blocks, levels = places // _BLOCK + 1, 1
    while 2**levels <= blocks:
        levels += 1
    return np.empty((levels, blocks), np.uint8)


@helper
def _between(low: Any, high: Any, less: Any, tops: Any) -> Any:
    """Return the maximum of ``less`` from place ``low`` to ``high``, both uint64 and inclusive."""
    first, last = low >> _FOUR64, high >> _FOUR64
    top = np.uint8(0)
    if last - first > _ONE64 and last > first:
        reach = last - first - _ONE64
        level = _SIXTY_THREE - leading_zeros(reach)
        top = max(tops[level, first + _ONE64], tops[level, last - (_ONE64 << level)])
        if top == _EDGE:
            return top
    stop = min(high, low | _LOW4)
    at = low
    while at <= stop:
        top = max(top, less[at])
        at += _ONE64
    if first != last:
        at = last << _FOUR64
        while at <= high:
            top = max(top, less[at])
            at += _ONE64
    return top


@helper
def _tau(one: Any, other: Any, less: Any, tops: Any) -> Any:
    if one == other:
        return np.uint8(0)
    low, high = np.uint64(min(one, other)), np.uint64(max(one, other))
    top = _between(low + _ONE64, high, less, tops)
    return np.uint8(NEVER) if top == _EDGE else np.uint8(top + np.uint8(1))


@helper
def _unpack_sample(row: Any, member: Any, joined: Any, places: Any, less: Any) -> Any:
    """Unpack a packed sample into each node's place and ``less``; return whether it is valid."""
    if unpack(row, member, joined) == DAMAGED:
        return False
    places[:] = NOWHERE
    for place in range(member.size):
        places[member[place]] = np.uint32(place)
        less[place] = np.uint8((joined[place] + _EDGE) & _EDGE)
    return True


@helper
def _read_places(table: Any, begin: Any, nodes: Any, places: Any) -> None:
    rows = min(places.shape[0], table.shape[0] - begin)
    for i in range(nodes.size):
        if i + _AHEAD < nodes.size:
            fetch_position(table, begin, nodes[i + _AHEAD])
            fetch_position(table, begin + rows - 1, nodes[i + _AHEAD])
        for row in range(rows):
            places[row, i] = position_at(table, begin + row, nodes[i])


@kernel
def meeting_times(table: U64s2, nodes: I64, first: U32s, second: U32s, out: OutU8s2) -> I64:
    """Compute tau of each pair in every sample, or NEVER if there is no meeting.

    ``table`` has rows of 4 words (``kernels/trees.py``) or, if packed, of 6 words
    (``kernels/runs.py``), for ``nodes`` nodes. ``first`` and ``second`` are uint32[pairs], ``out``
    is uint8[samples, pairs]. Returns SOUND, or the index of a sample with values out of range.
    """
    samples, packed = table.shape[0], table.shape[1] == _PACKED
    room = nodes if packed else 0
    member, joined = np.empty(room, np.uint32), np.empty(room, np.uint8)
    places, most = np.empty(room, np.uint32), room
    if not packed:
        for sample in range(samples):
            most = max(most, np.int64(table[sample, 3]))
    words, tops = np.empty(most // 8 + 3, np.uint64), _room_for(most)
    less = words.view(np.uint8)
    ones = np.empty((1 if packed else _AT_ONCE, first.size), np.uint32)
    others = np.empty_like(ones)
    for sample in range(samples):
        end, row = np.uint32(nodes if packed else table[sample, 3]), 0
        if packed:
            if not _unpack_sample(table[sample], member, joined, places, less):
                return sample
            for i in range(first.size):
                ones[0, i], others[0, i] = places[first[i]], places[second[i]]
        else:
            row = sample % _AT_ONCE
            if row == 0:
                _read_places(table, sample, first, ones)
                _read_places(table, sample, second, others)
            _unpack_labels(table[sample, 1], np.uint64(end), words)
        _raise(words, np.uint64(end), tops)
        for i in range(first.size):
            one, other = ones[row, i], others[row, i]
            out[sample, i] = NEVER
            if (one >= end and one != NOWHERE) or (other >= end and other != NOWHERE):
                return sample
            if one != NOWHERE and other != NOWHERE:
                out[sample, i] = _tau(one, other, less, tops)
    return SOUND


@kernel
def estimates(times: U8s2, weights: U64s2, known: I64s, out: OutF64s2) -> None:
    """Compute the scores in grains and the variances, ``out`` float64[pairs, 2].

    ``times`` is uint8[samples, pairs], ``weights`` uint64[256, 2] the weight of each time and its
    square in fixed point, ``known`` int64[pairs] the number of samples of each estimate.
    """
    samples, pairs = times.shape
    sums = np.zeros((pairs, 2), np.uint64)
    for sample in range(samples):
        for i in range(pairs):
            time = np.uint64(times[sample, i])
            sums[i, 0] += weights[time, 0]
            sums[i, 1] += weights[time, 1]
    for i in range(pairs):
        out[i, 0], out[i, 1] = estimate(sums[i, 0], sums[i, 1], np.float64(known[i]))
