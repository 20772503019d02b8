"""Queries on fingerprint trees: the first meeting time of two nodes, and all relatives of one.

A shard is one uint32 array, ``words``; sample s of it has its positions from word ``blobs[s, 0]``
on, its members from ``blobs[s, 1]``, and its labels, eight to a word, low half-byte
first, from ``blobs[s, 2]``; ``blobs[s, 3]`` is the number of members.

* tau(u, v) is the largest label between their positions; a 0 between them is a tree's edge.
* the relatives of u are its tree: outwards from u's position with a running maximum.

Scores are sums of fixed-point weights (2**48 is 1), so that a sum does not depend on its order:
equal meeting times give equal scores, to the bit, whoever added them up.

Cost: a pair reads one position and the labels between, a sample; relatives read u's tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import NEVER, NOWHERE
from cocite.kernels._jit import helper, kernel, prefetch

__all__ = ["DAMAGED", "gather", "meeting_times"]

DAMAGED = -1
"""The meeting time of walks that do not meet."""

_ZERO32, _ONE32, _LOW3, _LOW4 = np.uint32(0), np.uint32(1), np.uint32(7), np.uint32(15)
_TWO32, _THREE32 = np.uint32(2), np.uint32(3)
_ZERO64 = np.uint64(0)


@helper
def _label(words: Any, labels: Any, place: Any) -> Any:
    word = words[labels + np.uint64(place >> _THREE32)]
    return (word >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4


@kernel
def meeting_times(words: Any, blobs: Any, first: Any, second: Any, out: Any) -> Any:
    """tau(first, second) in every sample of a shard, NEVER if none; ``out``: uint8[samples].

    Returns whether the shard is sound.
    """
    for sample in range(blobs.shape[0]):
        positions, labels = blobs[sample, 0], blobs[sample, 2]
        low = words[positions + np.uint64(first)]
        high = words[positions + np.uint64(second)]
        out[sample] = NEVER
        if low == NOWHERE or high == NOWHERE:
            continue
        if low > high:
            low, high = high, low
        if high >= np.uint32(blobs[sample, 3]):
            return False
        largest = _ZERO32
        place = np.uint32(low + _ONE32)
        while place <= high:
            label = _label(words, labels, place)
            if label == _ZERO32:
                break
            largest = max(largest, label)
            place = np.uint32(place + _ONE32)
        if place > high:
            out[sample] = np.uint8(largest)
    return True


@helper
def _add(member: Any, label: Any, weights: Any, sums: Any, used: Any, count: Any) -> Any:
    """Add one meeting; returns how many nodes have a sum. No branch: none could be foreseen."""
    before = sums[member, 0]
    used[count] = member
    sums[member, 0] = before + weights[label, 0]
    sums[member, 1] += weights[label, 1]
    return count + (1 if before == _ZERO64 else 0)


@kernel
def gather(
    words: Any, blobs: Any, node: Any, weights: Any, sums: Any, used: Any, count: Any
) -> Any:
    """Add up the weights of all relatives of ``node`` over the samples of a shard.

    ``weights`` uint64[16, 2] holds the weight of each meeting time, never 0, and of its square.
    ``sums`` uint64[nodes, 2] receives the sums; ``used`` uint32[nodes + 1] lists the nodes with
    one, ``count`` is how many there are so far. Returns the new count, or DAMAGED if the shard
    points outside of itself: its content is not verified at opening, so it is on the way.
    """
    nodes = np.uint32(sums.shape[0])
    for sample in range(blobs.shape[0]):
        prefetch(words, blobs[sample, 0] + np.uint64(node))
    for sample in range(blobs.shape[0]):
        place = words[blobs[sample, 0] + np.uint64(node)]
        if place != NOWHERE:
            prefetch(words, blobs[sample, 1] + np.uint64(place))
            prefetch(words, blobs[sample, 2] + np.uint64(place >> _THREE32))
    for sample in range(blobs.shape[0]):
        place = words[blobs[sample, 0] + np.uint64(node)]
        if place == NOWHERE:
            continue
        members, labels = blobs[sample, 1], blobs[sample, 2]
        end = np.uint32(blobs[sample, 3])
        if place >= end:
            return DAMAGED
        largest = _ZERO32
        at = place
        while True:
            label = _label(words, labels, at)
            if label == _ZERO32:
                break
            if at == _ZERO32:
                return DAMAGED
            largest = max(largest, label)
            at = np.uint32(at - _ONE32)
            member = words[members + np.uint64(at)]
            if member >= nodes:
                return DAMAGED
            count = _add(member, largest, weights, sums, used, count)
        largest = _ZERO32
        at = np.uint32(place + _ONE32)
        while at < end:
            label = _label(words, labels, at)
            if label == _ZERO32:
                break
            largest = max(largest, label)
            member = words[members + np.uint64(at)]
            if member >= nodes:
                return DAMAGED
            count = _add(member, largest, weights, sums, used, count)
            at = np.uint32(at + _ONE32)
    return count
