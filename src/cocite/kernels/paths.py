"""Stored walks that share points, and compact walks, one in-link for each node.

A walk stores its own points up to its first meeting with the walk of a smaller node, whose points
it shares from there on. With a label for each place in dendrogram order (``kernels/trees.py``)

    path_t(v) = own point t of the nearest place, at or before that of v, whose label is 0 or > t

A compact sample consists of ``forward``, the next node of a walk at v, and its transpose. Walks
from u and y first meet at step k if y is k steps below the k-th point of u's walk, but not through
the point before it. Source: Fogaras, Racz, *A scalable randomized method to compute link-based
similarity rank on the web graph*, Algorithms 1 and 2, with first meetings only; storing points once
is our own addition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import NEVER, NOWHERE
from cocite.kernels._kernel import helper, kernel, prefetch
from cocite.kernels._types import *

_DAMAGED = np.int64(-1)
_ENDED = np.int64(0xFFFFFFFF)
_PATHS_ZERO32, _PATHS_ONE32, _TWO32, _THREE32 = (
    np.uint32(0),
    np.uint32(1),
    np.uint32(2),
    np.uint32(3),
)
_LOW3, _LOW4 = np.uint32(7), np.uint32(15)
_ONE64, _THREE64, _LOW6 = np.uint64(1), np.uint64(3), np.uint64(63)


# -- writing ---------------------------------------------------------------------------


@kernel
def note_step(head: U32s, at: U32s, step: U8, steps: OutU8s, out: OutU32s) -> None:
    """Record that walks of ``head`` reach the points ``at`` (both uint32[tokens]) as step ``step``.

    Writes the points to ``out``, and to ``steps`` (uint8[nodes]) the step, which is the walks'
    number of own points so far.
    """
    for i in range(at.size):
        steps[head[i]] = step
        out[i] = at[i]


@kernel
def seat_others(position: OutU32s, member: OutU32s, joined: OutU8s, place: U32) -> None:
    """Give nodes without a position the places from ``place`` on, each as a tree of its own."""
    for node in range(position.size):
        if position[node] == NOWHERE:
            position[node] = place
            member[place] = np.uint32(node)
            joined[place] = np.uint8(0)
            place = np.uint32(place + _PATHS_ONE32)


@kernel
def lay_steps(member: U32s, steps: U8s, first: OutU32s, seated: OutU8s, begin: OutU32s) -> None:
    """Compute where each walk's own points go, in the order of places.

    Fills ``first`` uint32[nodes], by node; ``seated`` uint8[nodes], the number of own points by
    place; ``begin`` uint32[places / 8], where the points of every eighth place begin.
    """
    total = _PATHS_ZERO32
    for place in range(member.size):
        node = member[place]
        first[node] = total
        seated[place] = steps[node]
        if place % 8 == 0:
            begin[place // 8] = total
        total = np.uint32(total + np.uint32(steps[node]))


@kernel
def lay_points(steps: U8s, first: U32s, noted: U32s, cursors: OutI64s, out: OutU32s) -> None:
    """Move the points ``noted``, sorted by (step, node), to their places. ``cursors`` int64[length]
    are where each step begins in ``noted``, and advance.
    """
    for node in range(steps.size):
        begin = first[node]
        for t in range(np.int64(steps[node])):
            out[begin + np.uint32(t)] = noted[cursors[t]]
            cursors[t] += 1


# -- reading ---------------------------------------------------------------------------


@helper
def _nibble(words: Any, base: Any, place: Any) -> Any:
    word = words[base + np.uint64(place >> _THREE32)]
    return (word >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4


@helper
def _label(words: Any, base: Any, place: Any) -> Any:
    at = np.uint64(place)
    word = words[base + (at | _LOW6) + _ONE64 + (at >> _THREE64)]
    return (word >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4


@helper
def _owner(words: Any, blob: Any, place: Any, step: Any) -> Any:
    """Return the place that owns point ``step`` of the walk at ``place``, or DAMAGED."""
    while True:
        label = _label(words, blob[1], place)
        if label == _PATHS_ZERO32 or label > step:
            return np.int64(place)
        if place == _PATHS_ZERO32:
            return _DAMAGED
        place = np.uint32(place - _PATHS_ONE32)


@helper
def _own_point(words: Any, blob: Any, place: Any, step: Any) -> Any:
    """Return own point ``step`` of the walk at ``place``: a node, ENDED, or DAMAGED."""
    if _nibble(words, blob[4], place) < step:
        return _ENDED
    at = np.uint64(words[blob[5] + np.uint64(place >> _THREE32)]) + np.uint64(step - _PATHS_ONE32)
    for before in range(place & ~_LOW3, place):
        at += np.uint64(_nibble(words, blob[4], np.uint32(before)))
    if at >= blob[7]:
        return _DAMAGED
    node = words[blob[6] + at]
    return _DAMAGED if np.uint64(node) >= blob[3] else np.int64(node)


@kernel
def follow_paths(words: U32s, blobs: U64s2, node: U32, out: OutU32s2) -> Bool:
    """Write the walk of ``node`` in each sample to ``out``; return whether the shard is valid.
    ``out`` is uint32[samples, length], NOWHERE after the end of the walk.
    """
    for sample in range(blobs.shape[0]):
        blob = blobs[sample]
        place = np.int64(words[blob[0] + np.uint64(node)])
        if place >= np.int64(blob[3]):
            return False
        for t in range(out.shape[1]):
            step = np.uint32(t + 1)
            place = _owner(words, blob, np.uint32(place), step)
            if place < 0:
                return False
            point = _own_point(words, blob, np.uint32(place), step)
            if point < 0:
                return False
            out[sample, t] = np.uint32(point)
    return True


# -- compact -----------------------------------------------------------------------------


DAMAGED = -1
_DEEPEST = 16
_ZERO32, _ONE32 = np.uint32(0), np.uint32(1)
_ZERO64 = np.uint64(0)


@kernel
def list_children(forward: U32s, begin: OutU32s, child: OutU32s) -> U32:
    """Fill ``begin`` (uint32[nodes + 1]) and ``child`` (uint32[nodes] or less) from ``forward``.
    Returns the number of children: the nodes with an in-link.
    """
    nodes = forward.size
    begin[:] = _ZERO32
    for node in range(nodes):
        if forward[node] != NOWHERE:
            begin[np.uint64(forward[node]) + _ONE64] += _ONE32
    for node in range(nodes):
        begin[node + 1] += begin[node]
    for node in range(nodes):
        above = forward[node]
        if above != NOWHERE:
            child[begin[above]] = np.uint32(node)
            begin[above] += _ONE32
    for node in range(nodes, 0, -1):  # each entry has advanced to the next one's start
        begin[node] = begin[node - 1]
    begin[0] = _ZERO32
    return begin[nodes]


@helper
def _move(words: Any, blob: Any, node: Any) -> Any:
    return words[blob[0] + np.uint64(node)]


@kernel
def meeting_times(
    words: U32s, blobs: U64s2, nodes: U32, node: U32, others: U32s, out: OutU8s2
) -> Bool:
    """Compute the step at which walks of ``node`` and each of ``others`` first meet, 255 if never.

    ``others`` is uint32[h], ``out`` uint8[samples, h], ``nodes`` the number of nodes. Returns
    whether the shard is valid.
    """
    for sample in range(blobs.shape[0]):
        blob = blobs[sample]
        for i in range(others.size):
            one, other = np.uint32(node), others[i]
            out[sample, i] = np.uint8(0) if one == other else NEVER
            for step in range(1, np.int64(blob[4]) + 1):
                if one == other:
                    break
                one, other = _move(words, blob, one), _move(words, blob, other)
                if one == NOWHERE or other == NOWHERE:
                    break
                if one >= nodes or other >= nodes:
                    return False
                if one == other:
                    out[sample, i] = np.uint8(step)
    return True


@kernel
def follow(words: U32s, blobs: U64s2, nodes: U32, node: U32, out: OutU32s2) -> Bool:
    """Like ``follow_paths``, but for compact walks."""
    for sample in range(blobs.shape[0]):
        here = np.uint32(node)
        for t in range(out.shape[1]):
            if here != NOWHERE:
                here = _move(words, blobs[sample], here)
                if here != NOWHERE and here >= nodes:
                    return False
            out[sample, t] = here
    return True


@helper
def _add(node: Any, weight: Any, sums: Any, used: Any, count: Any) -> Any:
    before = sums[node, 0]
    used[count] = node
    sums[node, 0] = before + weight[0]
    sums[node, 1] += weight[1]
    return count + (1 if before == _ZERO64 else 0)


@kernel
def gather(
    words: U32s, blobs: U64s2, node: U32, weights: U64s2, sums: OutU64s2, used: OutU32s, count: I64
) -> I64:
    """Sum the weights of meetings with all relatives of ``node`` in a shard; see ``trees.gather``.

    In a valid sample, a node occurs at most once per level below another one, which bounds the work
    on damaged samples.
    """
    nodes = np.uint32(sums.shape[0])
    at, end = np.empty(_DEEPEST, np.uint32), np.empty(_DEEPEST, np.uint32)
    for sample in range(blobs.shape[0]):
        prefetch(words, blobs[sample, 0] + np.uint64(node))
    for sample in range(blobs.shape[0]):
        forward, begin, children = blobs[sample, 0], blobs[sample, 1], blobs[sample, 2]
        here = np.uint32(node)
        for step in range(1, np.int64(blobs[sample, 4]) + 1):
            came = here
            here = words[forward + np.uint64(came)]
            if here == NOWHERE:
                break
            if here >= nodes:
                return DAMAGED
            # Depth first, down to depth ``step``, without the child that the walk came through.
            left = np.int64(nodes) * step + 1
            level = 1
            at[1] = words[begin + np.uint64(here)]
            end[1] = words[begin + np.uint64(here) + _ONE64]
            while level > 0:
                if at[level] >= end[level]:
                    level -= 1
                    continue
                place = np.uint64(at[level])
                at[level] += _ONE32
                if place >= blobs[sample, 3]:
                    return DAMAGED
                child = words[children + place]
                left -= 1
                if child >= nodes or left < 0 or count >= nodes:
                    return DAMAGED
                if level == 1 and child == came:
                    continue
                if level == step:
                    count = _add(child, weights[step], sums, used, count)
                else:
                    level += 1
                    at[level] = words[begin + np.uint64(child)]
                    end[level] = words[begin + np.uint64(child) + _ONE64]
    return count
