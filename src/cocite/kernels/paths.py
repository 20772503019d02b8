"""Walks kept whole: the points of every walk, each stored once however many walks go through it.

Walks that have met go on together, so of a walk only the points before it meets a smaller one are
its own: ``label - 1`` of them, or as many as it has steps if it never does. The rest is the walk it
met. In dendrogram order the walks that are one at step t stand side by side, and the first of them
is the one whose own point that is. So with a label for each place, as ``kernels/trees.py`` has it,

    path_t(v) = own point t of the nearest place at or before v's whose label is above t, or 0

A sample's row of ``blobs`` says where in ``words`` its arrays begin: position, member, labels (as
in ``kernels/trees_lookup.py``), then in [3] the number of places (all nodes have one), from [4] on
how many own points each place has, eight to a word, from [5] on where those of every eighth place
begin, from [6] on the points; [7] is how many points there are.

Cost: a live step of a walk is a word. A point is found by reading labels to the left.
Source: 000, Algorithm 1 (paths); the arrangement is this project's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import NOWHERE
from cocite.kernels._jit import helper, kernel

__all__ = ["follow", "lay_points", "lay_steps", "note_step", "seat_others"]

_DAMAGED = np.int64(-1)
_ENDED = np.int64(0xFFFFFFFF)
_ZERO32, _ONE32, _TWO32, _THREE32 = np.uint32(0), np.uint32(1), np.uint32(2), np.uint32(3)
_LOW3, _LOW4 = np.uint32(7), np.uint32(15)


# -- making ----------------------------------------------------------------------------


@kernel
def note_step(head: Any, at: Any, step: Any, steps: Any, out: Any) -> None:
    """Note the points ``at`` that the walks of ``head`` have reached (uint32[tokens] both) in
    ``out``, and in ``steps`` (uint8[nodes]) that those walks have made ``step`` of their own.
    """
    for i in range(at.size):
        steps[head[i]] = step
        out[i] = at[i]


@kernel
def seat_others(position: Any, member: Any, joined: Any, place: Any) -> None:
    """Give the nodes without a position the places from ``place`` on, each a tree of its own."""
    for node in range(position.size):
        if position[node] == NOWHERE:
            position[node] = place
            member[place] = np.uint32(node)
            joined[place] = np.uint8(0)
            place = np.uint32(place + _ONE32)


@kernel
def lay_steps(member: Any, steps: Any, first: Any, seated: Any, begin: Any) -> None:
    """Say where each walk's own points go, place after place.

    Fills ``first`` uint32[nodes], by node; ``seated`` uint8[nodes], the steps by place; ``begin``
    uint32[places / 8], where those of every eighth place begin.
    """
    total = _ZERO32
    for place in range(member.size):
        node = member[place]
        first[node] = total
        seated[place] = steps[node]
        if place % 8 == 0:
            begin[place // 8] = total
        total = np.uint32(total + np.uint32(steps[node]))


@kernel
def lay_points(steps: Any, first: Any, noted: Any, cursors: Any, out: Any) -> None:
    """Move the points ``noted`` step after step, each step by ascending node, to their places.

    ``cursors`` int64[length] says where in ``noted`` each step begins, and moves on.
    """
    for node in range(steps.size):
        begin = first[node]
        for t in range(np.int64(steps[node])):
            out[begin + np.uint32(t)] = noted[cursors[t]]
            cursors[t] += 1


# -- asking ----------------------------------------------------------------------------


@helper
def _nibble(words: Any, base: Any, place: Any) -> Any:
    word = words[base + np.uint64(place >> _THREE32)]
    return (word >> np.uint32((place & _LOW3) << _TWO32)) & _LOW4


@helper
def _owner(words: Any, blob: Any, place: Any, step: Any) -> Any:
    """The place whose own point ``step`` the walk at ``place`` goes through, or DAMAGED."""
    while True:
        label = _nibble(words, blob[2], place)
        if label == _ZERO32 or label > step:
            return np.int64(place)
        if place == _ZERO32:
            return _DAMAGED
        place = np.uint32(place - _ONE32)


@helper
def _own_point(words: Any, blob: Any, place: Any, step: Any) -> Any:
    """Own point ``step`` of the walk at ``place``: a node, ENDED, or DAMAGED."""
    if _nibble(words, blob[4], place) < step:
        return _ENDED
    at = np.uint64(words[blob[5] + np.uint64(place >> _THREE32)]) + np.uint64(step - _ONE32)
    for before in range(place & ~_LOW3, place):
        at += np.uint64(_nibble(words, blob[4], np.uint32(before)))
    if at >= blob[7]:
        return _DAMAGED
    node = words[blob[6] + at]
    return _DAMAGED if np.uint64(node) >= blob[3] else np.int64(node)


@kernel
def follow(words: Any, blobs: Any, node: Any, out: Any) -> Any:
    """The walk of ``node`` in every sample of a shard: ``out`` uint32[samples, length], NOWHERE
    behind its end. Returns whether the shard is sound.
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
