"""Queries on fingerprint trees: when a node first meets some others, and all relatives of one.

Samples are rows of ``table``, uint64[samples, 4], whichever files they lie in: the addresses of a
sample's positions, members and labels, uint32 all, and how many members it has. Labels are eight to
a word, low half-byte first. A question is one call: what it reads first of each sample is fetched
for many samples at once.

* tau(u, v) is the largest label between their positions; a 0 between them is a tree's edge. Others
  are found on one walk to either side of u, which notes where the largest label so far is another;
  words of labels without such a place are passed in one step.
* the relatives of u are its tree: outwards from u's position with a running maximum.

Scores are sums of fixed-point weights (2**48 is 1), so that a sum does not depend on its order:
equal meeting times give equal scores, to the bit, whoever added them up.

Cost: some pairs read a position each and the labels up to the furthest one, a sample; relatives
read u's tree.

Fingerprint graph to fingerprint trees in dendrogram order.

Every tree of a sample's fingerprint graph is laid out depth first, children by ascending
(label, node), and each member keeps the label that joins it to the member before it (0 at
a tree's start). Then the first meeting time is a range maximum:

    tau(u, v) = max label[i]  for  position(u) < i <= position(v),   none if it crosses a 0

because a subtree attached with label t is complete before t: every label inside it, and
inside the part of its parent's subtree before it, is below or equal to t.

``extent`` (from ``walk.meet``) says how far into its parent's subtree each node's own
subtree begins, and a parent is always smaller than its child, so one ascending pass gives
all positions: linear time, no sort, no recursion. Nodes that met nobody take no room.

``carry_over`` takes nodes out of a layout: what is left meets when it did, as the label between two
that were next but for them is the largest on the way.

    member  a b c d      label  0 2 1 3        without c:   a b d,  0 2 3

``select`` does the same for most nodes at once, when a sample is made: those that stay are marked
among the labels, which have four bits of eight, and one pass in place leaves the others out.

Source: 001, section 2.1.1 (fingerprint graph); the order is this project's, after the suffix
array and its array of longest common prefixes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import NEVER, NOWHERE
from cocite.kernels._kernel import helper, kernel, prefetch_at, word_at
from cocite.kernels._types import *

DAMAGED = -1
_ZERO32, _ONE32, _TWO32, _THREE32 = np.uint32(0), np.uint32(1), np.uint32(2), np.uint32(3)
_LOW3, _LOW4 = np.uint32(7), np.uint32(15)
_FOUR8, _LOW4_8 = np.uint8(4), np.uint8(15)
MARK = 16
"""Of the label of a node that is wanted."""
_MARK = np.uint8(MARK)


@kernel
def lay_out(
    parent: U32s, label: U8s, extent: U32s, position: OutU32s, member: OutU32s, joined: OutU8s
) -> U32:
    """Fill ``position`` (uint32[nodes]), ``member`` and ``joined`` (first p entries).

    ``position[v]`` is NOWHERE for a node that met nobody. Returns p, the number of members.
    """
    cursor = np.uint32(0)
    for node in range(parent.size):
        above = parent[node]
        if above != NOWHERE:
            place = np.uint32(position[above] + extent[node])
        elif extent[node] > _ONE32:
            place = cursor
            cursor = np.uint32(cursor + extent[node])
        else:
            position[node] = NOWHERE
            continue
        position[node] = place
        member[place] = np.uint32(node)
        joined[place] = label[node]
    return cursor


@kernel
def mark(wanted: U32s, position: U32s, member: OutU32s, joined: OutU8s) -> None:
    """Mark the places of the nodes ``wanted`` in what ``lay_out`` has filled, and name them there
    by their number among these.
    """
    for i in range(wanted.size):
        place = position[wanted[i]]
        if place != NOWHERE:
            member[place] = np.uint32(i)
            joined[place] |= _MARK


@kernel
def select(
    member: U32s, joined: U8s, state: OutI64s, out_member: OutU32s, out_joined: OutU8s
) -> I64:
    """The places of ``member`` and ``joined`` that are marked, without the others between them.

    They are a stretch of a sample; ``state`` int64[4], zeros at first, goes on from one stretch to
    the next: whether a tree goes on (1), the largest label since its last node that stays, whether
    a node waits that may be alone in its tree (1), and which. Trees of a single node are left out,
    so a node waits for the next one of its tree. ``out_member`` and ``out_joined`` have room for
    one place more; they may be the same arrays if there is one stretch. Returns how many places are
    filled.
    """
    size = 0
    torn, largest = state[0] == 0, np.uint8(state[1])
    for at in range(member.size):
        label, node = joined[at], member[at]
        if label & _LOW4_8 == 0:
            torn = True
        largest = max(largest, np.uint8(label & _LOW4_8))
        if label & _MARK == 0:
            continue
        if torn:
            state[2], state[3] = 1, np.int64(node)
        else:
            if state[2] == 1:
                out_member[size], out_joined[size] = np.uint32(state[3]), np.uint8(0)
                state[2] = 0
                size += 1
            out_member[size], out_joined[size] = node, largest
            size += 1
        torn, largest = False, np.uint8(0)
    state[0], state[1] = 0 if torn else 1, np.int64(largest)
    return size


@kernel
def pack_labels(joined: U8s, out: OutU8s) -> None:
    """Two labels a byte, the first in the low half; ``out``: uint8[(joined.size + 1) // 2]."""
    size = joined.size
    for i in range(size // 2):
        out[i] = joined[2 * i] | np.uint8(joined[2 * i + 1] << _FOUR8)
    if size % 2:
        out[size // 2] = joined[size - 1] & _LOW4_8


@kernel
def carry_over(
    words: U32s, blob: U64s, ids: U32s, position: OutU32s, member: OutU32s, joined: OutU8s
) -> I64:
    """A sample's layout in other ids, without the nodes that are gone.

    ``words`` and ``blob``, a row, are those of ``kernels/trees.py``; ``ids`` uint32[old
    nodes] is where each node has gone, NOWHERE if it is gone. Fills the others as ``lay_out`` does;
    trees of a single node are left out. Returns the number of members, or DAMAGED if the sample
    points outside of itself.
    """
    position[:] = NOWHERE
    size, torn = 0, True
    largest = np.uint8(0)
    for at in range(blob[3]):
        place = np.uint32(at)
        word = words[blob[2] + np.uint64(place >> _THREE32)]
        label = np.uint8((word >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4)
        if label == 0:
            torn = True
        else:
            largest = max(largest, label)
        old = words[blob[1] + np.uint64(place)]
        if old >= ids.size:
            return DAMAGED
        node = ids[old]
        if node == NOWHERE:
            continue
        if torn:
            if size > 0 and joined[size - 1] == 0:
                size -= 1  # nobody is left in the tree before
            largest = np.uint8(0)
        if size >= member.size:
            return DAMAGED
        member[size] = node
        joined[size] = largest
        size += 1
        torn, largest = False, np.uint8(0)
    if size > 0 and joined[size - 1] == 0:
        size -= 1
    for place in range(size):
        position[member[place]] = np.uint32(place)
    return size


# -- trees lookup ------------------------------------------------------------------------


SOUND = -1
AT_ONCE = 64
"""Samples whose beginnings are fetched at a time."""
_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)
_FOUR32, _EIGHT32, _MOST7 = np.uint32(4), np.uint32(8), np.uint32(127)
_EVEN, _ONES, _TOPS = np.uint32(0x0F0F0F0F), np.uint32(0x01010101), np.uint32(0x80808080)


@helper
def label_at(labels: Any, place: Any) -> Any:
    """The label of the member at ``place``: four bits of a word."""
    word = word_at(labels, np.uint64(place >> _THREE32))
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
def _turns_right(labels: Any, here: Any, far: Any, turns: Any) -> Any:
    """Walk from place ``here`` to the right, up to place ``far`` or the edge of the tree.

    A row of ``turns`` uint32[16, 2] is a place from which on the largest label is another, and that
    label. Returns how many there are, and the last place.
    """
    at, largest, count = here, _ZERO32, 0
    while at < far:
        place = np.uint32(at + _ONE32)
        if largest != _ZERO32 and place & _LOW3 == _ZERO32 and far - at >= _EIGHT32:
            if _plain(word_at(labels, np.uint64(place >> _THREE32)), largest):
                at = np.uint32(at + _EIGHT32)
                continue
        label = label_at(labels, place)
        if label == _ZERO32:
            break
        if label > largest:
            largest = label
            turns[count, 0], turns[count, 1] = place, label
            count += 1
        at = place
    return count, at


@helper
def _turns_left(labels: Any, here: Any, far: Any, turns: Any) -> Any:
    """The same to the left; a label joins its place to the one before it."""
    at, largest, count = here, _ZERO32, 0
    while at > far:
        if largest != _ZERO32 and at & _LOW3 == _LOW3 and at - far >= _EIGHT32:
            if _plain(word_at(labels, np.uint64(at >> _THREE32)), largest):
                at = np.uint32(at - _EIGHT32)
                continue
        label = label_at(labels, at)
        if label == _ZERO32:
            break
        at = np.uint32(at - _ONE32)
        if label > largest:
            largest = label
            turns[count, 0], turns[count, 1] = at, label
            count += 1
    return count, at


@kernel
def meeting_times(table: U64s2, node: U32, others: U32s, out: OutU8s2) -> I64:
    """tau(node, other) in every sample, NEVER if none.

    ``others`` uint32[h]; ``out`` uint8[samples, h]. Returns SOUND, or the number of a sample that
    points outside of itself.
    """
    samples = table.shape[0]
    places = np.empty(others.size, np.uint32)
    right, left = np.empty((16, 2), np.uint32), np.empty((16, 2), np.uint32)
    for sample in range(samples):
        positions, labels, end = table[sample, 0], table[sample, 2], np.uint32(table[sample, 3])
        if sample + 1 < samples:
            for i in range(others.size):
                prefetch_at(table[sample + 1, 0], np.uint64(others[i]))
        here = word_at(positions, np.uint64(node))
        first = last = here
        for i in range(others.size):
            place = word_at(positions, np.uint64(others[i]))
            places[i] = place
            out[sample, i] = NEVER
            if place != NOWHERE:
                if place >= end:
                    return sample
                first, last = min(first, place), max(last, place)
        if here == NOWHERE:
            continue
        if here >= end:
            return sample
        rights, last = _turns_right(labels, here, last, right)
        lefts, first = _turns_left(labels, here, first, left)
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
    return SOUND


@helper
def _add(member: Any, value: Any, square: Any, sums: Any, used: Any, count: Any) -> Any:
    """Add one meeting; returns how many nodes have a sum. No branch: none could be foreseen."""
    at = np.uint64(member) << _ONE64
    before = sums[at]
    used[count] = member
    sums[at] = before + value
    sums[at | _ONE64] += square
    return count + (_ONE64 if before == _ZERO64 else _ZERO64)


@helper
def fetch_places(table: Any, begin: Any, end: Any, node: Any) -> None:
    """Ask for the places of ``node`` in some samples."""
    for sample in range(begin, end):
        prefetch_at(table[sample, 0], np.uint64(node))


@kernel
def gather(
    table: U64s2, node: U32, weights: U64s2, sums: OutU64s, used: OutU32s, count: I64
) -> I64:
    """Add up the weights of all relatives of ``node`` over the samples of ``table``.

    ``weights`` uint64[16, 2] holds the weight of each meeting time, never 0, and of its square.
    ``sums`` uint64[2 nodes] receives the sums of both, side by side; ``used`` uint32[2 nodes + 1]
    lists the nodes with one, ``count`` is how many there are so far. Returns the new count, or, if
    a sample points outside of itself, -1 - its number: what samples hold is not verified at
    opening, so it is on the way.
    """
    nodes, count = np.uint32(sums.size >> 1), np.uint64(count)
    samples, value, square = table.shape[0], _ZERO64, _ZERO64
    fetch_places(table, 0, min(AT_ONCE, samples), node)
    for begin in range(0, samples, AT_ONCE):
        stop = min(begin + AT_ONCE, samples)
        for sample in range(begin, stop):
            place = word_at(table[sample, 0], np.uint64(node))
            if place != NOWHERE:
                prefetch_at(table[sample, 1], np.uint64(place))
                prefetch_at(table[sample, 2], np.uint64(place >> _THREE32))
        fetch_places(table, stop, min(stop + AT_ONCE, samples), node)
        for sample in range(begin, stop):
            place = word_at(table[sample, 0], np.uint64(node))
            if place == NOWHERE:
                continue
            members, labels = table[sample, 1], table[sample, 2]
            end = np.uint32(table[sample, 3])
            if place >= end or end > nodes or count > np.uint64(nodes):
                return np.int64(-1 - sample)
            largest = _ZERO32
            at = place
            while True:
                label = label_at(labels, at)
                if label == _ZERO32:
                    break
                if at == _ZERO32:
                    return np.int64(-1 - sample)
                if label > largest:
                    largest = label
                    value, square = weights[label, 0], weights[label, 1]
                at = np.uint32(at - _ONE32)
                member = word_at(members, np.uint64(at))
                if member >= nodes:
                    return np.int64(-1 - sample)
                count = _add(member, value, square, sums, used, count)
            largest = _ZERO32
            at = np.uint32(place + _ONE32)
            while at < end:
                label = label_at(labels, at)
                if label == _ZERO32:
                    break
                if label > largest:
                    largest = label
                    value, square = weights[label, 0], weights[label, 1]
                member = word_at(members, np.uint64(at))
                if member >= nodes:
                    return np.int64(-1 - sample)
                count = _add(member, value, square, sums, used, count)
                at = np.uint32(at + _ONE32)
    return np.int64(count)
