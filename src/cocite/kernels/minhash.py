"""Groups of nodes with the same min-hash: building and querying them.

In each ring k = 1, ..., length of a sample, nodes are grouped by their min-hash value, the
*winner*. A group is stored as its winner, its size, and its nodes. A row of ``blobs`` is (start of
the cells in ``words``, start of the groups, number p of their words, length). Each node has
``length`` cells, one per ring: where its group starts, or NOWHERE if it is alone.

The mask of two nodes has bit k - 1 set if they share a group in ring k. ``table``
uint64[2**length, 2] is the weight of each mask and its square, in fixed point.

Building takes five passes over the nodes per ring; a query reads the node's groups, at about 4 ns
per member. Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import NOWHERE
from cocite.kernels._kernel import helper, kernel, prefetch
from cocite.kernels._types import *
from cocite.kernels.links import first_from
from cocite.kernels.random import node_at, place_of

DAMAGED = -1
_ZERO32, _ONE32 = np.uint32(0), np.uint32(1)
_ZERO64, _ONE64, _TWO64 = np.uint64(0), np.uint64(1), np.uint64(2)
_SHIFT, _LOW = np.uint32(16), np.uint32(0xFFFF)


@kernel
def list_groups(
    winners: U32s, nodes: U32s, ring: I64, begins: OutU32s, cells: OutU32s2, group: OutU32s, at: U64
) -> U64:
    """List the groups of one ring from word ``at`` of ``group`` on; return where they end.

    ``winners`` uint32[k] belong to ``nodes``, ascending, or to nodes 0, 1, ... if ``nodes`` is
    empty. ``begins`` is scratch, uint32 with one word per possible winner. Column ``ring`` of
    ``cells`` uint32[k, length] receives the start of each node's group, or NOWHERE if it is alone.
    """
    begins[:] = _ZERO32
    for i in range(winners.size):
        begins[winners[i]] += _ONE32
    for winner in range(begins.size):
        size = begins[winner]
        begins[winner] = NOWHERE
        if size > _ONE32:
            begins[winner] = np.uint32(at)
            group[at] = np.uint32(winner)
            group[at + _ONE64] = _ZERO32  # counts up as nodes are added
            at += np.uint64(size) + _TWO64
    for i in range(winners.size):
        begin = begins[winners[i]]
        cells[i, ring] = begin
        if begin != NOWHERE:
            size = group[np.uint64(begin) + _ONE64]
            node = nodes[i] if nodes.size else np.uint32(i)
            group[np.uint64(begin) + _TWO64 + np.uint64(size)] = node
            group[np.uint64(begin) + _ONE64] = np.uint32(size + _ONE32)
    return at


@kernel
def name_from(group: OutU32s, first: U32) -> None:
    """Add ``first`` to the winners of groups, so that ids start at the graph's first node."""
    at = _ZERO64
    while at < group.size:
        group[at] = np.uint32(group[at] + first)
        at += _TWO64 + np.uint64(group[at + _ONE64])


@kernel
def name_winners(group: OutU32s, wanted: U32s) -> None:
    """Replace each group's winner by its index in ``wanted`` (uint32, ascending), or by NOWHERE."""
    at = 0
    while at < group.size:
        winner = group[at]
        place = first_from(wanted, 0, wanted.size, winner)
        found = place < wanted.size and wanted[place] == winner
        group[at] = np.uint32(place) if found else NOWHERE
        at += 2 + np.int64(group[at + 1])


@helper
def _cell(words: Any, blob: Any, node: Any, ring: Any) -> Any:
    return words[blob[0] + np.uint64(node) * blob[3] + ring]


@kernel
def carry_over(words: U32s, blob: U64s, ids: U32s, cells: OutU32s2, group: OutU32s) -> I64:
    """Convert a sample's groups to other ids; omit removed nodes.

    ``ids`` uint32[old nodes] is the new id of each node and winner, NOWHERE if it was removed.
    Fills ``cells`` uint32[nodes, length] and ``group`` uint32[p], preserving the order of groups.
    Returns the words of the groups, or DAMAGED if the sample contains an index out of range.
    """
    cells[:] = NOWHERE
    at, out, ring = _ZERO64, 0, _ZERO64
    while at + _TWO64 <= blob[2]:
        begin = blob[1] + at
        winner, size = words[begin], np.uint64(words[begin + _ONE64])
        if size == _ZERO64 or size > blob[2] - at - _TWO64:
            return DAMAGED
        kept = 0
        for place in range(begin + _TWO64, begin + _TWO64 + size):
            old = words[place]
            if old >= ids.size:
                return DAMAGED
            if place == begin + _TWO64:
                while ring < blob[3] and _cell(words, blob, old, ring) != at:
                    ring += _ONE64
                if ring == blob[3]:
                    return DAMAGED
            if ids[old] != NOWHERE:
                group[out + 2 + kept] = ids[old]
                kept += 1
        if kept > 1:
            if winner != NOWHERE and winner >= ids.size:
                return DAMAGED
            group[out] = NOWHERE if winner == NOWHERE else ids[winner]
            group[out + 1] = np.uint32(kept)
            for i in range(kept):
                cells[group[out + 2 + i], ring] = np.uint32(out)
            out += 2 + kept
        at += _TWO64 + size
    return out


@kernel
def masks(words: U32s, blobs: U64s2, node: U64, others: U32s, out: OutU16s2) -> Bool:
    """Compute the mask of ``node`` with each of ``others`` uint32[h] in each sample of a shard.
    ``out`` is uint16[samples, h]. Returns whether the shard is valid.
    """
    for sample in range(blobs.shape[0]):
        prefetch(words, blobs[sample, 0] + np.uint64(node) * blobs[sample, 3])
        for i in range(others.size):
            prefetch(words, blobs[sample, 0] + np.uint64(others[i]) * blobs[sample, 3])
    for sample in range(blobs.shape[0]):
        blob = blobs[sample]
        for i in range(others.size):
            mask = _ZERO32
            for ring in range(blob[3]):
                one, other = _cell(words, blob, node, ring), _cell(words, blob, others[i], ring)
                if (one != NOWHERE and one >= blob[2]) or (other != NOWHERE and other >= blob[2]):
                    return False
                if one == other and one != NOWHERE:
                    mask |= np.uint32(_ONE32 << np.uint32(ring))
            out[sample, i] = np.uint16(mask)
    return True


@kernel
def common(words: U32s, blobs: U64s2, nodes: U32, first: U64, second: U64, out: OutU32s2) -> Bool:
    """Find the winners of the groups that contain both nodes; return whether the shard is valid.
    ``out`` is uint32[samples, length], NOWHERE if no group does, ``nodes`` for a removed winner.
    """
    for sample in range(blobs.shape[0]):
        blob = blobs[sample]
        for ring in range(blob[3]):
            one = _cell(words, blob, first, ring)
            out[sample, ring] = NOWHERE
            if one == NOWHERE or one != _cell(words, blob, second, ring):
                continue
            if one >= blob[2]:
                return False
            winner = words[blob[1] + np.uint64(one)]
            if winner >= nodes and winner != NOWHERE:
                return False
            out[sample, ring] = min(winner, nodes)
    return True


@kernel
def gather(
    words: U32s,
    blobs: U64s2,
    whom: U32s,
    table: U64s2,
    sums: OutU64s2,
    marks: OutU32s,
    used: OutU32s,
    count: I64,
) -> I64:
    """Sum the weights of the rings that a node shares with each other node in a shard's samples.

    ``whom`` uint32[2] is the node and the number of the shard's first sample, counted from 1.
    ``sums`` uint64[nodes, 2] receives the sums, and ``used`` uint32[nodes + 1] the nodes with a
    sum, after the first ``count``; ``marks`` is initially all zero. Returns the new count, or
    DAMAGED if the shard has an offset or id out of range.
    """
    nodes, me = np.uint32(sums.shape[0]), whom[0]
    for sample in range(blobs.shape[0]):
        prefetch(words, blobs[sample, 0] + np.uint64(me) * blobs[sample, 3])
    for sample in range(blobs.shape[0]):
        blob = blobs[sample]
        for ring in range(blob[3]):
            begin = _cell(words, blob, me, ring)
            if begin < blob[2]:
                prefetch(words, blob[1] + np.uint64(begin))
    for sample in range(blobs.shape[0]):
        blob = blobs[sample]
        here = np.uint32(whom[1] + np.uint32(sample))
        for ring in range(blob[3]):
            begin = _cell(words, blob, me, ring)
            if begin == NOWHERE:
                continue
            low = np.uint64(begin) + _TWO64
            if low > blob[2]:
                return DAMAGED
            size = np.uint64(words[blob[1] + low - _ONE64])
            if size > blob[2] - low:
                return DAMAGED
            bit = np.uint32(_ONE32 << np.uint32(ring))
            for at in range(blob[1] + low, blob[1] + low + size):
                node = words[at]
                if node >= nodes:
                    return DAMAGED
                if node == me:
                    continue
                mark = marks[node]
                old = mark & _LOW if mark >> _SHIFT == here else _ZERO32
                new = old | bit
                marks[node] = np.uint32((here << _SHIFT) | new)
                before = sums[node, 0]
                used[count] = node
                count += 1 if before == _ZERO64 else 0
                sums[node, 0] = before + (table[new, 0] - table[old, 0])
                sums[node, 1] += table[new, 1] - table[old, 1]
    return count


# -- results of shards -------------------------------------------------------------------


@kernel(T=("U8", "U16"))
def add(ids: U32s, codes: Ts2, table: U64s2, sums: OutU64s2, used: OutU32s, count: I64) -> I64:
    """Add up one shard's ``codes`` uint8 or uint16[h, samples] of the distinct ``ids`` uint32[h].

    ``table`` uint64[codes, 2] is the value of each code and its square; ``sums`` uint64[nodes, 2]
    receives the sums, and ``used`` the nodes with a sum, after the first ``count``. Returns their
    number.
    """
    for i in range(ids.size):
        value, square = _ZERO64, _ZERO64
        for sample in range(codes.shape[1]):
            code = codes[i, sample]
            value += table[code, 0]
            square += table[code, 1]
        if value == _ZERO64:
            continue
        node = ids[i]
        if sums[node, 0] == _ZERO64:
            used[count] = node
            count += 1
        sums[node, 0] += value
        sums[node, 1] += square
    return count


# -- winners -----------------------------------------------------------------------------

# A scan starts with rows[v, l] = place of node v in the random order of lane l. After k scans with
# MIN, a row contains the smallest place in v's k-step in-neighborhood, and ``winners`` turns it
# into the node at that place. Both kernels process tiles of nodes, buffered with one line per
# order, so that rows are accessed sequentially, at 2 to 3 ns per node per lane. Source: Fogaras,
# Racz, *Scaling link-based similarity search*, section 2.3.1 (Algorithm 3, line 3).

_TILE = 128
_PAD = 16
"""Padding between lines, without which a row's positions would share one set of the first-level
cache.
"""


@kernel
def places(orders: U32s2, nodes: U32s, rows: OutU32s2) -> None:
    """Fill ``rows`` (uint32[n, lanes]) for ``nodes`` (uint32[n]). ``orders`` is
    uint32[lanes, ORDER_WORDS].
    """
    lanes = np.uint64(orders.shape[0])
    tile = np.empty((orders.shape[0], _TILE + _PAD), np.uint32)
    for low in range(0, rows.shape[0], _TILE):
        size = min(_TILE, rows.shape[0] - low)
        for lane in range(lanes):
            order, line = orders[lane], tile[lane]
            for i in range(size):
                line[i] = place_of(order, nodes[low + i])
        for i in range(size):
            for lane in range(lanes):
                rows[low + i, lane] = tile[lane, i]


@kernel
def winners(orders: U32s2, rows: U32s2, first: U64, out: OutU32s2) -> None:
    """Write to ``out`` the nodes at the places in ``rows``; row i belongs to node ``first`` + i.

    ``out`` is uint32[lanes, nodes] for all nodes; ``orders`` is as for ``places``.
    """
    lanes = np.uint64(orders.shape[0])
    tile = np.empty((orders.shape[0], _TILE + _PAD), np.uint32)
    for low in range(0, rows.shape[0], _TILE):
        size = min(_TILE, rows.shape[0] - low)
        for i in range(size):
            for lane in range(lanes):
                tile[lane, i] = rows[low + i, lane]
        for lane in range(lanes):
            order, line = orders[lane], tile[lane]
            for i in range(size):
                out[lane, np.uint64(first) + np.uint64(low + i)] = node_at(order, line[i])
