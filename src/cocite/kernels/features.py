"""Scores propagated along simple paths (PageSim), and comparisons of lists.

``spread`` follows every simple path of at most r hops from each source. A path passes value * decay
/ degree to each neighbor of its last node. If this value is below ``threshold``, the path ends
before the neighbors are read, so hubs cost nothing; the cut value is recorded for the node and the
remaining hops, in integer units, so that sums do not depend on the order of addition. For long
paths, a mark on each node replaces the search along the path, and the steps of each source are
limited.

``gather_rows`` and ``pair_rows`` compare lists of features, words or nearest pages by products,
minima or min**2 / max. Both add in ascending order of ids, so their sums are bit-identical.
``mark`` negates a nearest page's value if that page does not list the page in return.

A path costs 1 to 2 ns; a source has at most (1 + decay + ... + decay**r) * value / threshold paths.
A query takes about 2 ns per list entry read. Source: Lin, King, Lyu, *PageSim*, sections 4.2 and
5.1; for nearest pages see ``measures/snn.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.links import add_to, row_of, sort_ids
from cocite.kernels.neighbors import COSINE, PAGESIM, score

DAMAGED = -1
TOO_MANY = -1

_ONE64 = np.uint64(1)
_PAUSE = 1e8
"""Steps after which a call ends, about 0.3 s, so that a build can be interrupted."""
_DENSE = 24
"""Rows with more than 1 / _DENSE of all nodes are found by a full scan instead of a sort."""


@helper
def _on_path(node: Any, path: Any, hops: Any, marks: Any) -> Any:
    if marks.size > 0:
        return marks[node]
    for i in range(hops + 1):
        if path[i] == node:
            return True
    return False


@helper
def _follow(
    rows: Any,
    source: Any,
    score: Any,
    rates: Any,
    room: Any,
    sums: Any,
    touched: Any,
    cut: Any,
) -> Any:
    """Follow all paths from one source. Return (nodes reached, including the source; steps). Above
    the step limit, some paths are missing.
    """
    offsets, neighbors = rows
    path, links, ends, values, marks = room
    decay, threshold, unit, most = rates[0], rates[1], rates[2], rates[5]
    radius = path.size - 1
    count = add_to(sums, touched, 0, source, score)
    path[0], values[0] = source, score * rates[4]
    hops, entering, steps = 0, True, 0.0
    while hops >= 0:
        node = path[hops]
        if entering:
            entering = False
            begin, end = offsets[node], offsets[np.uint64(node) + _ONE64]
            value = values[hops] * (decay / np.float64(end - begin))
            if begin < end and value < threshold:
                left = min(radius - hops, cut.shape[0]) - 1
                cut[left, node] += np.uint64(value * unit) + _ONE64
                begin = end
            steps += np.float64(end - begin)
            if steps > most:
                return count, steps
            if hops == radius - 1:
                for link in range(begin, end):
                    if not _on_path(neighbors[link], path, hops, marks):
                        count = add_to(sums, touched, count, neighbors[link], value)
                begin = end
            links[hops], ends[hops], values[hops + 1] = begin, end, value
            if marks.size > 0:
                marks[node] = True
        link = links[hops]
        if link == ends[hops]:
            if marks.size > 0:
                marks[node] = False
            hops -= 1
            continue
        links[hops] = link + _ONE64
        if not _on_path(neighbors[link], path, hops, marks):
            count = add_to(sums, touched, count, neighbors[link], values[hops + 1])
            path[hops + 1] = neighbors[link]
            hops, entering = hops + 1, True
    return count, steps


@helper
def _read_off(sums: Any, touched: Any, count: Any, nodes: Any, values: Any, used: Any) -> None:
    """Write the sums in ascending order of nodes, and reset them to 0."""
    if count * _DENSE > sums.size:
        for node in range(sums.size):
            if sums[node] != 0.0:
                nodes[used], values[used] = node, sums[node]
                sums[node] = 0.0
                used += 1
        return
    sort_ids(touched[:count])
    for i in range(count):
        nodes[used], values[used] = touched[i], sums[touched[i]]
        sums[touched[i]] = 0.0
        used += 1


@kernel(T=("F32", "F64"))
def spread(
    links: tuple[U64s, U32s],
    first: U64,
    scores: F64s,
    rates: F64s,
    room: tuple[OutU32s, OutU64s, OutU64s, OutF64s, OutBools],
    sums: tuple[OutF64s, OutU32s],
    cut: OutU64s2,
    out: tuple[OutU64s, OutU32s, OutTs],
) -> tuple[I64, I64]:
    """Compute the scores that the sources ``first``, ``first + 1``, ... pass to each node.

    ``links`` is (offsets, neighbors), from each node to those that receive its scores; ``scores``
    is float64[nodes]; ``rates`` float64[6] is (decay per hop, threshold, units per 1, maximum
    number of paths for a score of 1, decay per path, step limit per source). ``room`` is (path
    uint32[r + 1], links uint64[r], ends uint64[r], values float64[r + 1], marks bool[nodes], all
    False, or bool[0] to search along the path instead); ``sums`` is (sums float64[nodes], all 0,
    touched uint32[nodes + 1]). ``cut`` uint64[r or less, nodes] collects cut values: row j is what
    each neighbor of a node missed when j further hops remained (the last row: j or more). Without a
    threshold, it has no rows. ``out`` is (counts uint64[sources], nodes uint32[size], values
    float32[size]).

    Returns (complete sources, their entries), with fewer sources if ``out`` might overflow or after
    many steps; or (TOO_MANY, the source that exceeds the step limit).
    """
    counts, nodes, values = out
    used, spent = 0, 0.0
    for i in range(counts.size):
        source = np.uint32(np.uint64(first) + np.uint64(i))
        score = scores[source]
        most = min(np.float64(scores.size), 2.0 + score * rates[3])
        if np.float64(used) + most > np.float64(nodes.size) or spent > _PAUSE:
            return i, used
        count, steps = _follow(links, source, score, rates, room, sums[0], sums[1], cut)
        if steps > rates[5]:
            return TOO_MANY, i
        spent += steps
        _read_off(sums[0], sums[1], count, nodes, values, used)
        counts[i] = np.uint64(count)
        used += count
    return counts.size, used


@kernel
def totals(offsets: U64s, values: F32s, out: OutF64s) -> None:
    """Set out[i] to the sum of row i of ``values``, in order."""
    for i in range(out.size):
        found = 0.0
        begin, end = row_of(offsets, i)
        for at in range(begin, end):
            found += np.float64(values[at])
        out[i] = found


# -- comparing lists ---------------------------------------------------------------------


@kernel
def mark(
    offsets: U64s,
    nodes: U32s,
    values: OutF32s,
    starts: U64s,
    holders: U32s,
    held: OutF32s,
    whole: OutF64s2,
    mutual: OutF64s2,
) -> None:
    """Negate the values of one-sided entries, and sum up every list.

    The list of v is ``nodes[offsets[v] : offsets[v + 1]]``; ``holders``, indexed by ``starts``, are
    the nodes whose lists contain v. ``whole`` and ``mutual`` float64[pages, 2] receive the sums of
    values and of squares, over all entries and over mutual ones.
    """
    for v in range(whole.shape[0]):
        (i, end), (j, last) = row_of(offsets, v), row_of(starts, v)
        while i < end or j < last:
            if j == last or (i < end and nodes[i] < holders[j]):
                value = np.float64(values[i])
                values[i] = -values[i]
                i += 1
            elif i == end or holders[j] < nodes[i]:
                held[j] = -held[j]
                j += 1
                continue
            else:
                value = np.float64(values[i])
                mutual[v, 0] += value
                mutual[v, 1] += value * value
                i += 1
                j += 1
            whole[v, 0] += value
            whole[v, 1] += value * value


@helper
def _shares(first: Any, second: Any, form: Any, mutual: Any) -> Any:
    if mutual and (first < 0 or second < 0):
        return 0.0
    a, b = abs(np.float64(first)), abs(np.float64(second))
    low, high = (a, b) if a < b else (b, a)
    if form == COSINE:
        term = a * b
    elif form == PAGESIM:
        term = low * low / high
    else:
        term = low
    return term if term > 0.0 else 0.0  # damaged or tiny values may give NaN


@kernel
def gather_rows(
    listed: U32s,
    values: F32s,
    holders: tuple[U64s, U32s, F32s],
    form: I64,
    mutual: Bool,
    sums: OutF64s2,
    used: OutU32s,
) -> I64:
    """Sum what one list shares with the list of each node, its own node included.

    ``listed`` and ``values`` are the list; ``holders`` is (offsets, nodes, values): for each page,
    the lists that contain it. ``form`` is an index into ``neighbors.FORMS``, or PAGESIM. ``sums``
    float64[nodes, 2], all 0, receives the sums in its first column; ``used`` uint32[nodes + 1]
    lists the nodes with a nonzero sum. Returns their number, or DAMAGED.
    """
    offsets, owners, held = holders
    pages, nodes = np.uint64(offsets.size - 1), np.uint64(sums.shape[0])
    count = 0
    for i in range(listed.size):
        page = np.uint64(listed[i])
        if page >= pages:
            return DAMAGED
        begin, end = offsets[page], offsets[page + _ONE64]
        if begin > end or end > np.uint64(owners.size):
            return DAMAGED
        if mutual and values[i] < 0:
            continue
        for place in range(begin, end):
            owner = np.uint64(owners[place])
            if owner >= nodes:
                return DAMAGED
            before = sums[owner, 0]
            term = _shares(values[i], held[place], form, mutual)
            used[count] = np.uint32(owner)
            sums[owner, 0] = before + term
            count += 1 if before == 0.0 and term > 0.0 else 0
    return count


@kernel
def pair_rows(
    first: U32s,
    first_values: F32s,
    second: U32s,
    second_values: F32s,
    first_norm: F64,
    second_norm: F64,
    form: I64,
    mutual: Bool,
) -> F64:
    """Return the score of two ascending lists, in grains."""
    common = 0.0
    i = j = 0
    while i < first.size and j < second.size:
        if first[i] < second[j]:
            i += 1
        elif first[i] > second[j]:
            j += 1
        else:
            common += _shares(first_values[i], second_values[j], form, mutual)
            i += 1
            j += 1
    return score(common, first_norm, second_norm, form)
