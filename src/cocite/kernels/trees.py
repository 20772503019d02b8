"""Fingerprint graph to fingerprint trees in dendrogram order.

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

from cocite.codes import NOWHERE
from cocite.kernels._jit import kernel

__all__ = ["DAMAGED", "MARK", "carry_over", "lay_out", "mark", "pack_labels", "select"]

DAMAGED = -1
_ONE32, _LOW3, _LOW4_32 = np.uint32(1), np.uint32(7), np.uint32(15)
_TWO32, _THREE32 = np.uint32(2), np.uint32(3)
_FOUR8, _LOW4 = np.uint8(4), np.uint8(15)
MARK = 16
"""Of the label of a node that is wanted."""
_MARK = np.uint8(MARK)


@kernel
def lay_out(parent: Any, label: Any, extent: Any, position: Any, member: Any, joined: Any) -> Any:
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
def mark(wanted: Any, position: Any, member: Any, joined: Any) -> None:
    """Mark the places of the nodes ``wanted`` in what ``lay_out`` has filled, and name them there
    by their number among these.
    """
    for i in range(wanted.size):
        place = position[wanted[i]]
        if place != NOWHERE:
            member[place] = np.uint32(i)
            joined[place] |= _MARK


@kernel
def select(member: Any, joined: Any, state: Any, out_member: Any, out_joined: Any) -> Any:
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
        if label & _LOW4 == 0:
            torn = True
        largest = max(largest, np.uint8(label & _LOW4))
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
def pack_labels(joined: Any, out: Any) -> None:
    """Two labels a byte, the first in the low half; ``out``: uint8[(joined.size + 1) // 2]."""
    size = joined.size
    for i in range(size // 2):
        out[i] = joined[2 * i] | np.uint8(joined[2 * i + 1] << _FOUR8)
    if size % 2:
        out[size // 2] = joined[size - 1] & _LOW4


@kernel
def carry_over(words: Any, blob: Any, ids: Any, position: Any, member: Any, joined: Any) -> Any:
    """A sample's layout in other ids, without the nodes that are gone.

    ``words`` and ``blob``, a row, are those of ``kernels/trees_lookup.py``; ``ids`` uint32[old
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
        label = np.uint8((word >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4_32)
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
