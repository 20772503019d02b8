"""Fingerprint trees: laid out in dendrogram order, and queried for the first meetings of nodes.

A tree is laid out in depth-first order, children by ascending (label, node). Each member has the
label that joins it to the previous one, 0 at the start of a tree. The first meeting is a range
maximum:

    tau(u, v) = max label[i]  for  position(u) < i <= position(v),   none if a label there is 0

A row of ``table`` uint64[samples, 4] is (address of the position of node 0, address of the trees,
words between the positions of adjacent nodes, number of members). A node's positions in all
samples are adjacent. Trees are groups of 72 words: 64 members, then their labels, eight to a word,
low half-byte first. Scores are sums of fixed-point weights (2**48 is 1), in any order. Source:
Fogaras, Racz, *Scaling link-based similarity search*, section 2.1.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS, NEVER, NOWHERE, ONE
from cocite.kernels._kernel import helper, kernel, prefetch_at, word_at
from cocite.kernels._types import *
from cocite.kernels.totals import consider, sort

DAMAGED = -1
_ZERO32, _ONE32, _TWO32 = np.uint32(0), np.uint32(1), np.uint32(2)
_ONE64, _THREE64, _SIX64, _LOW6 = np.uint64(1), np.uint64(3), np.uint64(6), np.uint64(63)
_LOW3, _LOW4 = np.uint32(7), np.uint32(15)
_FOUR8, _LOW4_8 = np.uint8(4), np.uint8(15)
MARK = 16
"""Bit of a label that marks its node as wanted."""
_MARK = np.uint8(MARK)


@kernel
def lay_out(
    parent: U32s, label: U8s, extent: U32s, position: OutU32s, member: OutU32s, joined: OutU8s
) -> U32:
    """Lay out the trees of a sample in dendrogram order; return p, the number of members.

    Fills ``position`` (uint32[nodes]), NOWHERE for nodes that never met another, and the first p
    entries of ``member`` and ``joined``.
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
    """Mark the places of ``wanted`` nodes; ``member`` becomes their indexes in ``wanted``."""
    for i in range(wanted.size):
        place = position[wanted[i]]
        if place != NOWHERE:
            member[place] = np.uint32(i)
            joined[place] |= _MARK


@kernel
def select(
    member: U32s, joined: U8s, state: OutI64s, out_member: OutU32s, out_joined: OutU8s
) -> I64:
    """Copy the marked places, each with the largest label since the previous one.

    ``member`` and ``joined`` cover a range of a sample. ``state`` int64[4], initially zeros,
    carries over to the next range: whether the current tree continues (1), the largest label since
    its last marked node, whether a node waits for another one of its tree (1), and the waiting
    node. Nodes wait because trees of a single node are omitted. ``out_member`` and ``out_joined``
    need one more place; they may be the input arrays if there is only one range. Returns the number
    of places written.
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
    """Pack two labels per byte, low half first, into ``out``: uint8[(joined.size + 1) // 2]."""
    size = joined.size
    for i in range(size // 2):
        out[i] = joined[2 * i] | np.uint8(joined[2 * i + 1] << _FOUR8)
    if size % 2:
        out[size // 2] = joined[size - 1] & _LOW4_8


@helper
def member_at(trees: Any, place: Any) -> Any:
    """Return the member at ``place`` of the trees at an address."""
    at = np.uint64(place)
    return word_at(trees, at + (at >> _SIX64 << _THREE64))


@helper
def labels_at(trees: Any, place: Any) -> Any:
    """Return the word with the label of the member at ``place`` and seven others."""
    at = np.uint64(place)
    return word_at(trees, (at | _LOW6) + _ONE64 + (at >> _THREE64))


@helper
def label_at(trees: Any, place: Any) -> Any:
    """Return the four-bit label of the member at ``place``."""
    return (labels_at(trees, place) >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4


@kernel
def seat(trees: U64, members: I64, first: U32, position: OutU32s) -> None:
    """Fill ``position`` with the places of the nodes from ``first`` on, or NOWHERE."""
    position[:] = NOWHERE
    for place in range(members):
        node = member_at(trees, place)
        if node >= first and node - first < position.size:
            position[node - first] = np.uint32(place)


@kernel
def carry_over(trees: U64, members: I64, ids: U32s, member: OutU32s, joined: OutU8s) -> I64:
    """Convert the layout of a sample to other ids; omit removed nodes.

    Meeting times of the remaining nodes are preserved: the label between two new neighbors is the
    largest label between them. ``trees`` is the sample's address; ``ids`` uint32[old nodes] is the
    new id of each node, NOWHERE if it was removed. Fills the other arrays like ``lay_out``,
    omitting trees of a single node. Returns the number of members, or DAMAGED if the sample has
    values out of range.
    """
    size, torn = 0, True
    largest = np.uint8(0)
    for at in range(members):
        place = np.uint32(at)
        label = np.uint8(label_at(trees, place))
        if label == 0:
            torn = True
        else:
            largest = max(largest, label)
        old = member_at(trees, place)
        if old >= ids.size:
            return DAMAGED
        node = ids[old]
        if node == NOWHERE:
            continue
        if torn:
            if size > 0 and joined[size - 1] == 0:
                size -= 1  # a single node is left of the previous tree
            largest = np.uint8(0)
        if size >= member.size:
            return DAMAGED
        member[size] = node
        joined[size] = largest
        size += 1
        torn, largest = False, np.uint8(0)
    if size > 0 and joined[size - 1] == 0:
        size -= 1
    return size


# -- trees lookup ------------------------------------------------------------------------


SOUND = -1
AT_ONCE, _FEW = 64, 8
"""Maximum and minimum number of samples whose beginnings are fetched at a time."""
UNMET = 16
"""A step larger than all labels."""
_ZERO64, _UNMET64 = np.uint64(0), np.uint64(UNMET)
_FOUR32, _EIGHT32, _MOST7 = np.uint32(4), np.uint32(8), np.uint32(127)
_EVEN, _ONES, _TOPS = np.uint32(0x0F0F0F0F), np.uint32(0x01010101), np.uint32(0x80808080)


@helper
def position_at(table: Any, sample: Any, node: Any) -> Any:
    """Return the place of ``node`` in a sample, or NOWHERE if it has none."""
    return word_at(table[sample, 0], np.uint64(node) * table[sample, 2])


@helper
def fetch_position(table: Any, sample: Any, node: Any) -> None:
    """Prefetch what ``position_at`` reads."""
    prefetch_at(table[sample, 0], np.uint64(node) * table[sample, 2])


@helper
def _plain(word: Any, largest: Any) -> Any:
    """Return whether all eight labels of a word are from 1 to ``largest``. Even and odd half-bytes
    become bytes, whose highest bit shows whether a sum has reached 128.
    """
    even, odd = word & _EVEN, (word >> _FOUR32) & _EVEN
    there = (even + _ONES * _MOST7) & (odd + _ONES * _MOST7) & _TOPS
    over = _ONES * np.uint32(_MOST7 - largest)
    above = ((even + over) | (odd + over)) & _TOPS
    return there == _TOPS and above == _ZERO32


@helper
def _turns(trees: Any, here: Any, far: Any, turns: Any, right: Any) -> Any:
    """Walk right or left from place ``here``, up to place ``far`` or the edge of the tree; a label
    joins its place to the previous one. Each row of ``turns`` uint32[16, 2] is a place where the
    largest label changes, and the new label. Returns the number of rows, and the last place.
    """
    at, largest, count = here, _ZERO32, 0
    while at != far:
        place, left = (np.uint32(at + _ONE32), far - at) if right else (at, at - far)
        whole = place & _LOW3 == (_ZERO32 if right else _LOW3) and left >= _EIGHT32
        if largest != _ZERO32 and whole and _plain(labels_at(trees, place), largest):
            at = np.uint32(at + _EIGHT32) if right else np.uint32(at - _EIGHT32)
            continue
        label = label_at(trees, place)
        if label == _ZERO32:
            break
        at = place if right else np.uint32(at - _ONE32)
        if label > largest:
            largest = label
            turns[count, 0], turns[count, 1] = at, label
            count += 1
    return count, at


@kernel
def meeting_times(table: U64s2, node: U32, others: U32s, out: OutU8s2) -> I64:
    """Compute tau(node, other) or NEVER in every sample. ``others`` is uint32[h], ``out``
    uint8[samples, h]. Returns SOUND, or the index of a sample with values out of range.
    """
    samples = table.shape[0]
    places = np.empty(others.size, np.uint32)
    right, left = np.empty((16, 2), np.uint32), np.empty((16, 2), np.uint32)
    for sample in range(samples):
        trees, end = table[sample, 1], np.uint32(table[sample, 3])
        if sample + 1 < samples:
            for i in range(others.size):
                fetch_position(table, sample + 1, others[i])
        here = position_at(table, sample, node)
        first = last = here
        for i in range(others.size):
            place = position_at(table, sample, others[i])
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
        rights, last = _turns(trees, here, last, right, True)
        lefts, first = _turns(trees, here, first, left, False)
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
    """Add one meeting, without an unpredictable branch; return how many nodes have a sum."""
    used[count] = member
    if sums.ndim == 1:
        before = sums[member]
        sums[member] = before + value
    else:
        before = sums[member, 0]
        sums[member, 0] = before + value
        sums[member, 1] += square
    return count + (_ONE64 if before == _ZERO64 else _ZERO64)


@helper
def _fetch_places(table: Any, begin: Any, end: Any, node: Any) -> None:
    for sample in range(begin, end):
        fetch_position(table, sample, node)


@helper
def limit_of(carried: Any, sample: Any) -> Any:
    """Return the step before which meetings count, or UNMET if all do."""
    if carried is None:
        return _UNMET64
    return min(np.uint64(carried[0][sample, 0]), _UNMET64)


@helper
def meeting_weight(weights: Any, limit: Any, label: Any) -> Any:
    """Return the weight of a meeting time and its square, which may depend on ``limit``."""
    if weights.ndim == 2:
        return weights[label, 0], weights[label, 1]
    return weights[limit, label, 0], weights[limit, label, 1]


@helper
def _towards(
    trees: Any, ends: Any, limit: Any, weights: Any, sums: Any, used: Any, count: Any, right: Any
) -> Any:
    """Add up the members right or left of the first of two ``ends``; the second is the end of the
    sample. Labels join places to the previous ones. Adds eight members at once if none of their
    labels exceeds the largest so far. Returns where the tree ends, whether the sample is valid, and
    how many nodes have a sum.
    """
    nodes, largest, (at, end) = np.uint32(sums.shape[0]), _ZERO32, ends
    value = square = _ZERO64
    while not right or at < end:
        if right:
            whole = at & _LOW3 == _ZERO32 and end - at >= _EIGHT32
        else:
            whole = at & _LOW3 == _LOW3 and at > _LOW3
        some = 8 if largest != _ZERO32 and whole and _plain(labels_at(trees, at), largest) else 1
        if some == 1:
            label = label_at(trees, at)
            if label == _ZERO32 or label >= limit:
                break
            if not right and at == _ZERO32:
                return np.int64(at), False, count
            if label > largest:
                largest = label
                value, square = meeting_weight(weights, limit, label)
        for _ in range(some):
            if not right:
                at = np.uint32(at - _ONE32)
            member = member_at(trees, at)
            if member >= nodes:
                return np.int64(at), False, count
            count = _add(member, value, square, sums, used, count)
            if right:
                at = np.uint32(at + _ONE32)
    return np.int64(at), True, count


@helper
def outwards(
    table: Any, node: Any, weights: Any, sums: Any, used: Any, progress: Any, carried: Any
) -> Any:
    """Like ``gather``, but without squares if ``sums`` is uint64[nodes].

    ``carried`` is None, or (the steps before which meetings count, uint8[samples, 1];
    int64[samples] for the number of places read), for ``kernels/trees_batch.py``. Then ``weights``
    is uint64[17, 16, 2], indexed by that step.
    """
    nodes, samples = np.uint32(sums.shape[0]), table.shape[0]
    first, count, left = np.int64(progress[0]), progress[1], np.int64(progress[2])
    step: Any = min(AT_ONCE, max(_FEW, left // np.int64(nodes)))
    _fetch_places(table, first, min(first + step, samples), node)
    for begin in range(first, samples, step):
        if left <= 0:
            progress[0], progress[1] = np.uint64(begin), count
            return np.int64(SOUND)
        stop = min(begin + step, samples)
        for sample in range(begin, stop):
            place = position_at(table, sample, node)
            if place != NOWHERE:
                wide = np.uint64(place)
                prefetch_at(table[sample, 1], wide + (wide >> _SIX64 << _THREE64))
                prefetch_at(table[sample, 1], (wide | _LOW6) + _ONE64 + (wide >> _THREE64))
        _fetch_places(table, stop, min(stop + step, samples), node)
        for sample in range(begin, stop):
            place, limit = position_at(table, sample, node), limit_of(carried, sample)
            if place == NOWHERE or limit == _ONE64:
                continue
            trees, end = table[sample, 1], np.uint32(table[sample, 3])
            if place >= end or end > nodes or count > np.uint64(nodes):
                return np.int64(sample)
            ends = place, end
            first_place, sound, count = _towards(
                trees, ends, limit, weights, sums, used, count, False
            )
            if not sound:
                return np.int64(sample)
            ends = np.uint32(place + _ONE32), end
            last_place, sound, count = _towards(
                trees, ends, limit, weights, sums, used, count, True
            )
            if not sound:
                return np.int64(sample)
            left -= last_place - first_place
            if carried is not None:
                carried[1][sample] = last_place - first_place
    progress[0], progress[1] = np.uint64(samples), count
    return np.int64(SOUND)


@kernel
def gather(
    table: U64s2, node: U32, weights: U64s2, sums: OutU64s2, used: OutU32s, progress: OutU64s
) -> I64:
    """Sum the weights of meetings with each relative of ``node`` over the samples of ``table``.

    ``weights`` uint64[16, 2] is the weight of each meeting time, never 0, and its square;
    ``sums`` uint64[nodes, 2] receives both, and ``used`` uint32[2 nodes + 1] the nodes with a sum.
    ``progress`` uint64[3] is (samples read, nodes with a sum, both initially 0; about how many
    members to read per call). Call until all samples are read. Returns SOUND, or the index of a
    sample with values out of range: files are opened unverified.
    """
    return outwards(table, node, weights, sums, used, progress, None)


@kernel
def best(
    sums: OutU64s, used: U32s, count: I64, samples: F64, floor: F64, ids: OutU32s, grains: OutF64s
) -> I64:
    """Find the best sums, best first, as ``settle`` and ``top`` do; reset the sums to 0.

    Fills ``ids`` uint32[k] and ``grains`` float64[k]; returns the number of hits.
    """
    scale = samples * ONE
    size, least = 0, (floor - 1.0) * (scale / GRAINS)
    for i in range(count):
        node = used[i]
        total = np.float64(sums[node])
        sums[node] = _ZERO64
        if total >= least:
            size, least = consider((node, total), scale, floor, grains, ids, size, least)
    sort(grains, ids, size)
    return size
