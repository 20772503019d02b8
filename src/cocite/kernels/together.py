"""Tokens of one sample of several that walk together: dealt to blocks, and where they meet.

Between its turns a sample lies in a file, its live tokens in two orders: by block of where they
stand, to be moved while the block's links are in memory, and by head, to meet. ``index`` leads from
the first to the second. ``meet`` is that of ``walk.py``, but what it finds goes out as records
(node, parent, offset) in place of arrays over all nodes: a root's are (root, NOWHERE, members).

Cost: O(1) a token each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.codes import NOWHERE
from cocite.kernels._jit import kernel, prefetch
from cocite.kernels.external import bucket_of

__all__ = ["begin", "deal", "end", "gather", "meet"]

_BATCH = 64
_ONE32 = np.uint32(1)


@kernel
def begin(head: Any, members: Any) -> None:
    """A token for every node."""
    for node in range(head.size):
        head[node] = np.uint32(node)
        members[node] = _ONE32


@kernel
def deal(at: Any, cuts: Any, home: Any, starts: Any, standing: Any, index: Any) -> None:
    """Sort nodes by their block, stably: ``standing[i]`` is ``at[index[i]]``, block b's are those
    from ``starts[b]`` to ``starts[b + 1]``. ``cuts`` and ``home`` are as in ``external.py``.
    """
    starts[:] = 0
    for i in range(at.size):
        starts[bucket_of(cuts, home, at[i]) + 1] += _ONE32
    for b in range(1, starts.size):
        starts[b] += starts[b - 1]
    for i in range(at.size):
        block = bucket_of(cuts, home, at[i])
        place = starts[block]
        standing[place] = at[i]
        index[place] = np.uint32(i)
        starts[block] = np.uint32(place + _ONE32)
    for b in range(starts.size - 1, 0, -1):
        starts[b] = starts[b - 1]
    starts[0] = np.uint32(0)


@kernel
def gather(moved: Any, index: Any, arrived: Any) -> None:
    """Back from the order of blocks to that of heads."""
    for i in range(moved.size):
        arrived[index[i]] = moved[i]


@kernel
def meet(
    arrived: Any,
    at: Any,
    head: Any,
    members: Any,
    owner: Any,
    records: Any,
    first: Any,
    live: Any,
) -> Any:
    """Merge tokens that arrived at one node; returns (how many live on, how many records).

    Looks at tokens ``first`` to ``first + records.shape[0]`` of those that moved to ``arrived``;
    of those before, ``live`` have survived, their ``at``, ``head`` and ``members`` to the front. A
    token that moved NOWHERE has ended, as the root of a tree if it has met another. ``owner``
    (uint32[nodes]) need not be initialised, as for ``walk.meet``.
    """
    count, living = 0, np.uint32(live)
    stop = min(first + records.shape[0], arrived.size)
    for low in range(first, stop, _BATCH):
        high = min(low + _BATCH, stop)
        for i in range(low, high):
            if arrived[i] != NOWHERE:
                prefetch(owner, np.uint64(arrived[i]))
        for i in range(low, high):
            if arrived[i] != NOWHERE:
                token = owner[arrived[i]]
                if token < living:
                    prefetch(at, np.uint64(token))
        for i in range(low, high):
            node = arrived[i]
            if node == NOWHERE:
                if members[i] > _ONE32:
                    records[count, 0], records[count, 1] = head[i], NOWHERE
                    records[count, 2] = members[i]
                    count += 1
                continue
            token = owner[node]
            if token < living and at[token] == node:
                records[count, 0], records[count, 1] = head[i], head[token]
                records[count, 2] = members[token]
                count += 1
                members[token] += members[i]
            else:
                owner[node] = living
                at[living] = node
                head[living] = head[i]
                members[living] = members[i]
                living = np.uint32(living + _ONE32)
    return np.int64(living), count


@kernel
def end(head: Any, members: Any, records: Any) -> Any:
    """Behind the last step: a record for every root; returns how many."""
    count = 0
    for i in range(head.size):
        if members[i] > _ONE32:
            records[count, 0], records[count, 1], records[count, 2] = head[i], NOWHERE, members[i]
            count += 1
    return count
