"""Queries on fingerprint trees: when a node first meets some others, and all relatives of one.

A shard is one uint32 array, ``words``; sample s of it has its positions from word ``blobs[s, 0]``
on, its members from ``blobs[s, 1]``, and its labels, eight to a word, low half-byte
first, from ``blobs[s, 2]``; ``blobs[s, 3]`` is the number of members.

* tau(u, v) is the largest label between their positions; a 0 between them is a tree's edge. Others
  are found on one walk to either side of u, which notes where the largest label so far is another;
  words of labels without such a place are passed in one step.
* the relatives of u are its tree: outwards from u's position with a running maximum.

Scores are sums of fixed-point weights (2**48 is 1), so that a sum does not depend on its order:
equal meeting times give equal scores, to the bit, whoever added them up.

Cost: some pairs read a position each and the labels up to the furthest one, a sample; relatives
read u's tree.
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
_FOUR32, _EIGHT32, _MOST7 = np.uint32(4), np.uint32(8), np.uint32(127)
_EVEN, _ONES, _TOPS = np.uint32(0x0F0F0F0F), np.uint32(0x01010101), np.uint32(0x80808080)


@helper
def _label(words: Any, labels: Any, place: Any) -> Any:
    word = words[labels + np.uint64(place >> _THREE32)]
    return (word >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4


@helper
def _plain(word: Any, largest: Any) -> Any:
    """Whether none of the eight labels of a word is 0 or above ``largest``, from 1 on.

    Even and odd half-bytes become bytes, whose highest bit says whether a sum has reached 128.
    """
    even, odd = word & _EVEN, (word >> _FOUR32) & _EVEN
    there = (even + _ONES * _MOST7) & (odd + _ONES * _MOST7) & _TOPS
    over = _ONES * np.uint32(_MOST7 - largest)
    above = ((even + over) | (odd + over)) & _TOPS
    return there == _TOPS and above == _ZERO32


@helper
def _turns_right(words: Any, labels: Any, here: Any, far: Any, turns: Any) -> Any:
    """Walk from place ``here`` to the right, up to place ``far`` or the edge of the tree.

    A row of ``turns`` uint32[16, 2] is a place from which on the largest label is another, and that
    label. Returns how many there are, and the last place.
    """
    at, largest, count = here, _ZERO32, 0
    while at < far:
        place = np.uint32(at + _ONE32)
        if largest != _ZERO32 and place & _LOW3 == _ZERO32 and far - at >= _EIGHT32:
            if _plain(words[labels + np.uint64(place >> _THREE32)], largest):
                at = np.uint32(at + _EIGHT32)
                continue
        label = _label(words, labels, place)
        if label == _ZERO32:
            break
        if label > largest:
            largest = label
            turns[count, 0], turns[count, 1] = place, label
            count += 1
        at = place
    return count, at


@helper
def _turns_left(words: Any, labels: Any, here: Any, far: Any, turns: Any) -> Any:
    """The same to the left; a label joins its place to the one before it."""
    at, largest, count = here, _ZERO32, 0
    while at > far:
        if largest != _ZERO32 and at & _LOW3 == _LOW3 and at - far >= _EIGHT32:
            if _plain(words[labels + np.uint64(at >> _THREE32)], largest):
                at = np.uint32(at - _EIGHT32)
                continue
        label = _label(words, labels, at)
        if label == _ZERO32:
            break
        at = np.uint32(at - _ONE32)
        if label > largest:
            largest = label
            turns[count, 0], turns[count, 1] = at, label
            count += 1
    return count, at


@kernel
def meeting_times(words: Any, blobs: Any, node: Any, others: Any, out: Any) -> Any:
    """tau(node, other) in every sample of a shard, NEVER if none.

    ``others`` uint32[h]; ``out`` uint8[samples, h]. Returns whether the shard is sound.
    """
    places = np.empty(others.size, np.uint32)
    right, left = np.empty((16, 2), np.uint32), np.empty((16, 2), np.uint32)
    for sample in range(blobs.shape[0]):
        positions, labels, end = blobs[sample, 0], blobs[sample, 2], np.uint32(blobs[sample, 3])
        if sample + 1 < blobs.shape[0]:
            for i in range(others.size):
                prefetch(words, blobs[sample + 1, 0] + np.uint64(others[i]))
        here = words[positions + np.uint64(node)]
        first = last = here
        for i in range(others.size):
            place = words[positions + np.uint64(others[i])]
            places[i] = place
            out[sample, i] = NEVER
            if place != NOWHERE:
                if place >= end:
                    return False
                first, last = min(first, place), max(last, place)
        if here == NOWHERE:
            continue
        if here >= end:
            return False
        rights, last = _turns_right(words, labels, here, last, right)
        lefts, first = _turns_left(words, labels, here, first, left)
        for i in range(others.size):
            place = places[i]
            if place < first or place > last:
                continue
            tau, turn = _ZERO32, 0
            if place > here:
                while turn < rights and right[turn, 0] <= place:
                    tau = right[turn, 1]
                    turn += 1
            else:
                while turn < lefts and left[turn, 0] >= place:
                    tau = left[turn, 1]
                    turn += 1
            out[sample, i] = np.uint8(tau)
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
    ``sums`` uint64[nodes, 2] receives the sums; ``used`` uint32[2 nodes + 1] lists the nodes with
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
        if place >= end or end > nodes or count > nodes:
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
