"""The walk and its trees as rows of three words, for walks whose state exceeds the memory.

Rows are uint32[:, 3], dealt into buckets, one for each destination block:

    token      its node, head, members               goes to the block of its node
    record     node, its parent, offset in it        goes to the block of the parent
               root, NOWHERE, members                goes to the block of the root
    message    node, position, label                 goes to the block of the node
    place      position, node, label                 goes to the range of the position

Blocks send tokens in ascending order of head, and ``merge`` preserves it. So the first token to
arrive at a node survives, and offsets equal those of the walk in memory. A parent is smaller than
its children, so one ascending pass over the blocks lays out all trees. Merging costs O(log blocks)
per token. Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.1.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import NOWHERE
from cocite.kernels._kernel import helper, kernel, prefetch
from cocite.kernels._types import *
from cocite.kernels.walk import fetch_owners

_BATCH = 64
_AHEAD = 16
_LOW32, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_END = np.uint64(0xFFFFFFFFFFFFFFFF)
_ONE32 = np.uint32(1)


# -- which bucket -----------------------------------------------------------------------


@kernel
def make_home(cuts: U32s, home: OutU32s) -> None:
    """Fill ``home`` (uint32) with a shift, then a bucket for every value of number >> shift.

    ``cuts`` uint32[buckets + 1] ascends from 0; bucket b is [cuts[b], cuts[b + 1]). ``home`` has
    the bucket of the first number with these upper bits.
    """
    shift = np.uint32(0)
    while (np.uint64(cuts[-1]) >> np.uint64(shift)) + np.uint64(2) > np.uint64(home.size):
        shift = np.uint32(shift + _ONE32)
    home[0] = shift
    bucket = 0
    for i in range(1, home.size):
        number = np.uint64(i - 1) << np.uint64(shift)
        while bucket + 2 < cuts.size and np.uint64(cuts[bucket + 1]) <= number:
            bucket += 1
        home[i] = np.uint32(bucket)


@helper
def _bucket_of(cuts: Any, home: Any, number: Any) -> Any:
    found = np.int64(home[np.int64(number >> home[0]) + 1])
    while number >= cuts[found + 1]:
        found += 1
    return found


@helper
def _bucket_of_row(cuts: Any, home: Any, row: Any, records: Any) -> Any:
    """Return a row's bucket. Records within a block go to the first of the block's two buckets."""
    node = _bucket_of(cuts, home, row[0])
    if not records:
        return node
    if row[1] == NOWHERE:
        return 2 * node
    parent = _bucket_of(cuts, home, row[1])
    return 2 * parent + (parent != node)


@helper
def _write(out: Any, at: Any, first: Any, second: Any, third: Any) -> None:
    out[at, 0], out[at, 1], out[at, 2] = first, second, third


@helper
def _begins(starts: Any) -> None:
    """Turn counts, each stored one position later, into where each bucket begins."""
    for b in range(1, starts.size):
        starts[b] += starts[b - 1]


@helper
def _rewind(starts: Any) -> None:
    """Turn where each bucket ends back into where it begins."""
    for b in range(starts.size - 1, 0, -1):
        starts[b] = starts[b - 1]
    starts[0] = np.uint32(0)


@kernel
def deal(
    rows: U32s2, cuts: U32s, home: U32s, records: Bool, starts: OutU32s, out: OutU32s2
) -> None:
    """Sort ``rows`` stably by bucket: of their first word or, for ``records``, of the parent (or
    root). ``starts`` is uint32[buckets + 1], with two buckets per block for records.
    """
    starts[:] = 0
    for i in range(rows.shape[0]):
        starts[_bucket_of_row(cuts, home, rows[i], records) + 1] += _ONE32
    _begins(starts)
    for i in range(rows.shape[0]):
        bucket = _bucket_of_row(cuts, home, rows[i], records)
        _write(out, starts[bucket], rows[i, 0], rows[i, 1], rows[i, 2])
        starts[bucket] += _ONE32
    _rewind(starts)


# -- the walk ---------------------------------------------------------------------------


@kernel
def merge(
    rows: U32s2, cursor: OutI64s, ends: I64s, more: Bools, tree: OutU64s, out: OutU32s2
) -> I64:
    """Merge runs of tokens into ``out`` by ascending head; return their number.

    Run r has ``rows[cursor[r] : ends[r]]`` (both int64; cursors advance) in memory, and more to
    come if ``more[r]``. Stops when ``out`` is full, when all runs have ended, or when a run with
    more to come is exhausted. ``tree`` uint64[2 * leaves] is a tournament: each entry is the
    smaller of the two below. The number of leaves is a power of two, at least the number of runs.
    """
    leaves = tree.size // 2
    for run in range(leaves):
        key = _END
        if run < cursor.size and cursor[run] < ends[run]:
            key = (np.uint64(rows[cursor[run], 1]) << _S32) | np.uint64(run)
        tree[leaves + run] = key
    for i in range(leaves - 1, 0, -1):
        tree[i] = min(tree[2 * i], tree[2 * i + 1])
    count = 0
    while count < out.shape[0] and tree[1] != _END:
        run = np.int64(tree[1] & _LOW32)
        row = cursor[run]
        _write(out, count, rows[row, 0], rows[row, 1], rows[row, 2])
        count += 1
        row += 1
        cursor[run] = row
        key = _END
        if row < ends[run]:
            key = (np.uint64(rows[row, 1]) << _S32) | np.uint64(run)
        elif more[run]:
            break
        i = leaves + run
        tree[i] = key
        while i > 1:
            key = min(key, tree[i ^ 1])
            i >>= 1
            tree[i] = key
    return count


@kernel
def meet(
    rows: U32s2, first: U32, standing: OutU32s2, at: OutU32s, live: I64, records: OutU32s2
) -> tuple[I64, I64]:
    """Process arriving tokens by ascending head; return (number of live tokens, number of records).

    ``standing`` uint32[nodes of the block, 2] is the head and the members of the token at each
    node, NOWHERE for none; ``at`` lists the nodes with a token, ``live`` so far. A token that
    meets another writes a record: its head, and the head and previous members of the other token.
    """
    count, size = 0, rows.shape[0]
    for low in range(0, size, _BATCH):
        high = min(low + _BATCH, size)
        for i in range(low, high):
            prefetch(standing, np.uint64(2) * np.uint64(rows[i, 0] - first))
        for i in range(low, high):
            node = np.int64(rows[i, 0] - first)
            if standing[node, 0] == NOWHERE:
                standing[node, 0] = rows[i, 1]
                standing[node, 1] = rows[i, 2]
                at[live] = rows[i, 0]
                live += 1
            else:
                _write(records, count, rows[i, 1], standing[node, 0], standing[node, 1])
                count += 1
                standing[node, 1] += rows[i, 2]
    return live, count


@kernel
def leave(
    at: U32s, moved: U32s, first: U32, standing: OutU32s2, rows: OutU32s2, roots: OutU32s2
) -> tuple[I64, I64]:
    """Remove the tokens at ``at`` from their nodes; return (how many continue, how many roots).

    A token that continues to ``moved`` becomes a row. One that moved NOWHERE has ended; if it has
    met another, it is the root of a tree, and becomes a record.
    """
    gone, ended, size = 0, 0, at.size
    for i in range(size):
        if i + _AHEAD < size:
            prefetch(standing, np.uint64(2) * np.uint64(at[i + _AHEAD] - first))
        node = np.int64(at[i] - first)
        head, members = standing[node, 0], standing[node, 1]
        standing[node, 0] = NOWHERE
        if moved[i] != NOWHERE:
            _write(rows, gone, moved[i], head, members)
            gone += 1
        elif members > _ONE32:
            _write(roots, ended, head, NOWHERE, members)
            ended += 1
    return gone, ended


# -- the trees --------------------------------------------------------------------------


@kernel
def settle(
    rows: U32s2, first: U32, step: U8, parent: OutU32s, extent: OutU32s, label: OutU8s
) -> None:
    """Store records of the block's nodes, and of roots, as input for ``trees.lay_out``."""
    for i in range(rows.shape[0]):
        node = np.int64(rows[i, 0] - first)
        parent[node] = rows[i, 1]
        extent[node] = rows[i, 2]
        if rows[i, 1] != NOWHERE:
            label[node] = step


@kernel
def receive(rows: U32s2, first: U32, parent: OutU32s, extent: OutU32s, label: OutU8s) -> None:
    """Store messages: a node becomes its own parent, and its position is stored as its extent."""
    for i in range(rows.shape[0]):
        node = np.int64(rows[i, 0] - first)
        parent[node] = rows[i, 0]
        extent[node] = rows[i, 1]
        label[node] = np.uint8(rows[i, 2])


@kernel
def place(first: U32, cursor: U32, parent: U32s, extent: U32s, position: OutU32s) -> U32:
    """Fill ``position`` (uint32) of the block's nodes; ``cursor`` is where the next tree begins.

    A node that never met another has parent NOWHERE and extent 1. Returns the cursor after the
    block. ``position`` may be ``extent``: the extent of a node with a position is not used again.
    """
    for node in range(position.size):
        above = parent[node]
        if above == NOWHERE:
            if extent[node] > _ONE32:
                members = extent[node]
                position[node] = cursor
                cursor = np.uint32(cursor + members)
            else:
                position[node] = NOWHERE
        elif np.uint32(above - first) == np.uint32(node):
            position[node] = extent[node]
        else:
            position[node] = np.uint32(position[np.int64(above - first)] + extent[node])
    return cursor


@kernel
def reply(rows: OutU32s2, first: U32, step: U8, position: U32s) -> None:
    """Turn records whose parents are in this block into messages to their nodes, in place."""
    for i in range(rows.shape[0]):
        rows[i, 1] = np.uint32(position[np.int64(rows[i, 1] - first)] + rows[i, 2])
        rows[i, 2] = np.uint32(step)


@kernel
def places(first: U32, node: I64, position: U32s, label: U8s, rows: OutU32s2) -> tuple[I64, I64]:
    """Write the places of the block's nodes from index ``node`` on; return (rows, next node)."""
    count = 0
    while node < position.size and count < rows.shape[0]:
        if position[node] != NOWHERE:
            node_id, step = np.uint32(first + np.uint32(node)), np.uint32(label[node])
            _write(rows, count, position[node], node_id, step)
            count += 1
        node += 1
    return count, node


@kernel
def collect(rows: U32s2, first: U32, member: OutU32s, label: OutU8s) -> None:
    """Store places in the range of positions that begins with ``first``."""
    size = rows.shape[0]
    for i in range(size):
        if i + _AHEAD < size:
            prefetch(member, np.uint64(rows[i + _AHEAD, 0] - first))
        where = np.int64(rows[i, 0] - first)
        member[where] = rows[i, 1]
        label[where] = np.uint8(rows[i, 2])


# -- batches of samples ------------------------------------------------------------------

# Between steps, a sample is on disk, with its live tokens in two orders: by block, to move while
# the block's links are in memory, and by head, to meet. ``index`` maps the first order to the
# second. Meetings become records instead of arrays over all nodes.


@kernel
def deal_batch(
    at: U32s, cuts: U32s, home: U32s, starts: OutU32s, standing: OutU32s, index: OutU32s
) -> None:
    """Sort nodes by their block, stably: ``standing[i]`` is ``at[index[i]]``. Block b has the
    nodes from ``starts[b]`` to ``starts[b + 1]``. ``cuts`` and ``home`` are as for ``deal``.
    """
    starts[:] = 0
    for i in range(at.size):
        starts[_bucket_of(cuts, home, at[i]) + 1] += _ONE32
    _begins(starts)
    for i in range(at.size):
        block = _bucket_of(cuts, home, at[i])
        place = starts[block]
        standing[place] = at[i]
        index[place] = np.uint32(i)
        starts[block] = np.uint32(place + _ONE32)
    _rewind(starts)


@kernel
def gather(moved: U32s, index: U32s, arrived: OutU32s) -> None:
    """Restore the order of heads from the order of blocks."""
    for i in range(moved.size):
        arrived[index[i]] = moved[i]


@kernel
def meet_batch(
    arrived: U32s,
    at: OutU32s,
    head: OutU32s,
    members: OutU32s,
    owner: OutU32s,
    records: OutU32s2,
    first: I64,
    live: I64,
) -> tuple[I64, I64]:
    """Merge tokens that arrived at one node; return (number of survivors, number of records).

    Processes tokens ``first`` to ``first + records.shape[0]`` of those that moved to ``arrived``.
    Of the earlier tokens, ``live`` have survived; their ``at``, ``head`` and ``members`` are at the
    front. A token that moved NOWHERE has ended; if it has met another, it is the root of a tree.
    ``owner`` (uint32[nodes]) need not be initialized, as for ``walk.meet``.
    """
    count, living = 0, np.uint32(live)
    stop = min(first + records.shape[0], arrived.size)
    for low in range(first, stop, _BATCH):
        high = min(low + _BATCH, stop)
        fetch_owners(arrived, low, high, owner, at, living)
        for i in range(low, high):
            node = arrived[i]
            if node == NOWHERE:
                if members[i] > _ONE32:
                    _write(records, count, head[i], NOWHERE, members[i])
                    count += 1
                continue
            token = owner[node]
            if token < living and at[token] == node:
                _write(records, count, head[i], head[token], members[token])
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
def end(head: U32s, members: U32s, records: OutU32s2) -> I64:
    """Write a record for every root after the last step; return their number."""
    count = 0
    for i in range(head.size):
        if members[i] > _ONE32:
            _write(records, count, head[i], NOWHERE, members[i])
            count += 1
    return count
