"""Compacted walks: one in-link a node and sample, taken at every step, and its transpose.

A sample is the function ``forward``: the node that a walk at v steps to, NOWHERE if it ends there.
Walks follow it; the children of a node are the nodes that step to it. The walks of u and of y first
meet at step k where y is k steps below the k-th point of u's walk, but not through the point before
it, since what is below that has met u's walk already. Cycles are fine: steps are counted.

A sample's row of ``blobs`` says where in ``words`` forward begins; from [1] on, where each
node's children begin (one more than nodes); from [2] on, the children, ascending; [3] how many
there are in all; [4] is the length of walks.

Cost: a pair reads two words a step; relatives visit every node less than k steps below the k-th
point, and all that are exactly k steps below are hits.
Source: 000, section 3, Algorithm 2. As printed it counts two walks again at every step after they
have met; here the first meeting counts only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import NEVER, NOWHERE
from cocite.kernels._jit import helper, kernel, prefetch

__all__ = ["DAMAGED", "follow", "gather", "list_children", "meeting_times"]

DAMAGED = -1
_DEEPEST = 16
_ZERO32, _ONE32 = np.uint32(0), np.uint32(1)
_ZERO64, _ONE64 = np.uint64(0), np.uint64(1)


@kernel
def list_children(forward: Any, begin: Any, child: Any) -> Any:
    """Fill ``begin`` (uint32[nodes + 1]) and ``child`` (uint32[nodes] at most) from ``forward``.

    Returns how many children there are: the nodes with an in-link.
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
    for node in range(nodes, 0, -1):  # each has moved to where the next one begins
        begin[node] = begin[node - 1]
    begin[0] = _ZERO32
    return begin[nodes]


@helper
def _move(words: Any, blob: Any, node: Any) -> Any:
    return words[blob[0] + np.uint64(node)]


@kernel
def meeting_times(words: Any, blobs: Any, nodes: Any, node: Any, others: Any, out: Any) -> Any:
    """The step at which the walk of ``node`` first meets that of each of ``others`` uint32[h], 255
    if never; ``out`` uint8[samples, h]. ``nodes`` is how many there are.

    Returns whether the shard is sound.
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
def follow(words: Any, blobs: Any, nodes: Any, node: Any, out: Any) -> Any:
    """The walk of ``node`` in every sample of a shard: ``out`` uint32[samples, length], NOWHERE
    behind its end. Returns whether the shard is sound.
    """
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
    """Add one meeting; returns how many nodes have a sum."""
    before = sums[node, 0]
    used[count] = node
    sums[node, 0] = before + weight[0]
    sums[node, 1] += weight[1]
    return count + (1 if before == _ZERO64 else 0)


@kernel
def gather(
    words: Any, blobs: Any, node: Any, weights: Any, sums: Any, used: Any, count: Any
) -> Any:
    """Add up the weights of all relatives of ``node`` over the samples of a shard.

    Arguments and result as for ``trees_lookup.gather``. A sound sample has a node at most once on
    each level below another, which bounds the work that a damaged one can make.
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
            # As deep as step, depth first; not by the child that the walk itself came through.
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
