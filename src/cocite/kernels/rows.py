"""Rows of what is near to each node: made by a push, expanded, quantized, compared.

``push`` makes rows by personalized PageRank along links taken either way, every node linked with
itself. With p the share of walks from u that end at v, and d(v) the degree of v, a row has

    value(u, v) = log(p(u, v) * volume / d(v))          volume: the sum of all degrees

of the ``keep`` nodes of the largest value above 0. Residuals r are pushed in stages, first in,
first out, where r(v) >= eps d(v); an error of p(v) / d(v) is at most eps then. The stages end as
soon as ``keep`` nodes have p(v) / d(v) >= eps.

``expand`` adds to half of a row half of the mean of the rows of some nodes near to it, weighted by
how near they are, keeps the largest values, and quantizes them: code = round(255 sqrt(value /
top)), so that small values keep their ratios. A code stands for the whole number code**2.

Rows are compared by the weighted Jaccard index of these numbers, family by family,

    score(u, v) = sum over families f of  weight_f * sum of minima / sum of maxima

Sums are whole numbers, so they do not depend on an order. A pair and a list divide and add up in
the same order: they agree to the bit.

Family f has the rows ``f * nodes`` to ``(f + 1) * nodes - 1`` and the columns ``bases[f]`` to
``bases[f + 1] - 1``. Ids and offsets are checked on the way, as files are not verified when they
are opened.

Cost: a push 3 ns a link read; a list 1 to 2 ns for each holder of each entry of the row.
Source: Andersen, Chung, Lang 2006 for the push; Levy, Goldberg 2014 for pointwise mutual
information in rows; Chum et al. 2007, *Total recall*, for the expansion.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS
from cocite.kernels._kernel import helper, kernel, prefetch
from cocite.kernels._types import *
from cocite.kernels.links import sort_ids
from cocite.kernels.listing import offer, sort
from cocite.kernels.totals import top

DAMAGED = -1
_ONE64 = np.uint64(1)
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)
_CODES = 255.0


# -- making rows -------------------------------------------------------------------------


@helper
def _by_id(values: Any, ids: Any, size: Any, keys: Any, out_ids: Any, out: Any, used: Any) -> None:
    """Write ``size`` entries to ``out`` from place ``used`` on, by ascending id."""
    for i in range(size):
        keys[i] = np.uint64(ids[i]) << _HALF | np.uint64(i)
    sort_ids(keys[:size])
    for i in range(size):
        out_ids[used + i] = np.uint32(keys[i] >> _HALF)
        out[used + i] = values[keys[i] & _LOWER]


@helper
def _push_stage(
    links: Any, degrees: Any, restart: Any, eps: Any, mass: Any, queue: Any, found: Any, count: Any
) -> Any:
    """Push what is ``eps`` times the degree or more; returns how many nodes are reached then."""
    offsets, neighbors, weights = links
    size = queue.size
    head = tail = waiting = 0
    for i in range(count):
        node = found[i]
        if mass[node, 1] >= eps * degrees[node]:
            queue[tail] = node
            tail += 1
            waiting += 1
    tail = 0 if tail == size else tail
    while waiting > 0:
        node = np.int64(queue[head])
        head = 0 if head + 1 == size else head + 1
        waiting -= 1
        residual = mass[node, 1]
        mass[node, 0] += restart * residual
        share = (1.0 - restart) * residual / degrees[node]
        mass[node, 1] = share  # every node is linked with itself
        if share >= eps * degrees[node]:
            queue[tail] = np.uint32(node)
            tail = 0 if tail + 1 == size else tail + 1
            waiting += 1
        for link in range(np.int64(offsets[node]), np.int64(offsets[node + 1])):
            other = np.int64(neighbors[link])
            given = share * np.float64(weights[link]) if weights.size > 0 else share
            before, least = mass[other, 1], eps * degrees[other]
            found[count] = np.uint32(other)
            count += 1 if (before == 0.0) & (mass[other, 0] == 0.0) else 0
            mass[other, 1] = before + given
            queue[tail] = np.uint32(other)
            if (before < least) & (before + given >= least):
                tail = 0 if tail + 1 == size else tail + 1
                waiting += 1
    return count


@helper
def _enough(mass: Any, degrees: Any, found: Any, count: Any, keep: Any, eps: Any) -> Any:
    """Whether ``keep`` nodes have ``eps`` times their degree or more."""
    for i in range(count):
        node = found[i]
        keep -= 1 if mass[node, 0] >= eps * degrees[node] else 0
    return keep <= 0


@kernel
def push(
    links: tuple[U64s, U32s, F32s],
    degrees: F64s,
    stages: F64s,
    restart: F64,
    first: I64,
    room: tuple[OutF64s2, OutU32s, OutU32s, OutF64s, OutU32s, OutU64s],
    out: tuple[OutU64s, OutU32s, OutF32s],
) -> I64:
    """The rows of nodes ``first``, ``first + 1``, ...; returns how many entries they have.

    ``links`` is (offsets, neighbors, weights), the last empty where all links are alike, with ids
    below the number of nodes; ``degrees`` float64[nodes], each with the link of the node with
    itself; ``stages`` are thresholds, the volume behind them. ``room`` is (mass float64[nodes, 2],
    all 0, queue and found uint32[nodes + 1], best float64[keep], ids uint32[keep], keys
    uint64[keep]). ``out`` is (counts uint64[rows], ids, values), with room for ``keep`` entries a
    row.
    """
    mass, queue, found, best, ids, keys = room
    counts, nodes, values = out
    keep, last = best.size, stages.size - 1
    used = 0
    for row in range(counts.size):
        source = first + row
        mass[source, 1] = 1.0
        found[0] = np.uint32(source)
        count = 1
        for stage in range(last):
            eps = stages[stage]
            count = _push_stage(links, degrees, restart, eps, mass, queue, found, count)
            if _enough(mass, degrees, found, count, keep, eps):
                break
        size = 0
        for i in range(count):
            node = found[i]
            ratio = mass[node, 0] / degrees[node] * stages[last]
            mass[node, 0] = mass[node, 1] = 0.0
            if ratio > 1.0:
                size = offer(best, ids, size, node, ratio)
        for i in range(size):
            best[i] = np.log(best[i])
        _by_id(best, ids, size, keys, nodes, values, used)
        counts[row] = np.uint64(size)
        used += size
    return used


@helper
def _add_row(rows: Any, row: Any, weight: Any, sums: Any, found: Any, count: Any) -> Any:
    """Add ``weight`` times a row; returns how many nodes have a sum."""
    offsets, ids, values = rows
    for i in range(np.int64(offsets[row]), np.int64(offsets[row + 1])):
        node, value = ids[i], weight * np.float64(values[i])
        found[count] = node
        count += 1 if (sums[node] == 0.0) & (value > 0.0) else 0
        sums[node] += value
    return count


@kernel
def expand(
    near: tuple[U64s, U32s, F32s],
    rows: tuple[U64s, U32s, F32s],
    scale: F64,
    pages: U32s,
    room: tuple[OutF64s, OutU32s, OutF64s, OutU32s, OutU64s, OutF64s, OutU32s],
    out: tuple[OutU64s, OutU32s, OutU8s, OutU32s],
) -> I64:
    """The codes of the expanded rows of some ``pages``; returns how many entries they have.

    ``near`` are the lists of nearest nodes, each with its own node, and ``rows`` what is expanded,
    both (offsets, ids, values); ``scale`` is the value of the code 255. ``room`` is (sums
    float64[columns], all 0, found uint32[columns + 1], best float64[keep], ids uint32[keep], keys
    uint64[keep], nearest float64[others], their ids uint32[others]): so many entries and so many
    others. ``out`` is (counts uint64[pages], ids, codes, norms uint32[pages]).
    """
    offsets, listed, nearness = near
    sums, found, best, ids, keys, nearest, others = room
    counts, out_ids, codes, norms = out
    used = 0
    for i in range(pages.size):
        page = np.int64(pages[i])
        many, total = 0, 0.0
        if nearest.size > 0:
            for at in range(np.int64(offsets[page]), np.int64(offsets[page + 1])):
                if np.int64(listed[at]) != page:
                    many = offer(nearest, others, many, listed[at], np.float64(nearness[at]))
            sort(nearest, others, many)
        for j in range(many):
            total += nearest[j]
        count = _add_row(rows, page, 0.5 if many > 0 else 1.0, sums, found, 0)
        for j in range(many):
            weight = 0.5 * nearest[j] / total
            count = _add_row(rows, np.int64(others[j]), weight, sums, found, count)
        size = 0
        for j in range(count):
            node = found[j]
            size = offer(best, ids, size, node, sums[node])
            sums[node] = 0.0
        for j in range(size):
            best[j] = np.rint(_CODES * np.sqrt(min(1.0, best[j] / scale)))
        _by_id(best, ids, size, keys, out_ids, codes, used)
        end, norm = used, np.uint32(0)
        for j in range(used, used + size):
            code = codes[j]
            if code > 0:
                out_ids[end], codes[end] = out_ids[j], code
                norm += np.uint32(code) * np.uint32(code)
                end += 1
        counts[i], norms[i] = np.uint64(end - used), norm
        used = end
    return used


# -- comparing rows ----------------------------------------------------------------------


@helper
def _ends(offsets: Any, row: Any, size: Any) -> Any:
    """Where a row begins and ends; (1, 0) if it is not inside."""
    begin, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
    return (begin, end) if 0 <= begin <= end <= size else (1, 0)


@helper
def _squared(first: Any, second: Any) -> Any:
    """What two codes have in common."""
    least = np.int64(min(first, second))
    return np.float64(least * least)


@helper
def _gather(
    rows: Any, columns: Any, norms: Any, families: Any, node: Any, sums: Any, used: Any
) -> Any:
    """Leave the scores of everybody in grains in ``sums[:, 0]``; returns how many of ``used`` have
    one, or DAMAGED.
    """
    offsets, ids, codes = rows
    starts, holders, held = columns
    weights, bases = families
    nodes, count = np.int64(sums.shape[0]), 0
    for family in range(weights.size):
        base, last = np.int64(bases[family]), np.int64(bases[family + 1])
        row = family * nodes
        begin, end = _ends(offsets, row + node, ids.size)
        if begin > end:
            return DAMAGED
        for at in range(begin, end):
            column, code = base + np.int64(ids[at]), codes[at]
            if column >= last:
                return DAMAGED
            low, high = _ends(starts, column, holders.size)
            if low > high:
                return DAMAGED
            if at + 1 < end and base + np.int64(ids[at + 1]) < last:
                prefetch(holders, starts[np.uint64(base + np.int64(ids[at + 1]))])
            for place in range(low, high):
                holder = np.int64(holders[place])
                if holder >= nodes:
                    return DAMAGED
                before, term = sums[holder, 0], _squared(code, held[place])
                used[count] = np.uint32(holder)  # no branch: none could be foreseen
                sums[holder, 0] = before + term
                new = (before == 0.0) & (sums[holder, 1] == 0.0) & (term > 0.0)
                count += 1 if new else 0
        mine = np.float64(norms[row + node])
        for i in range(count):
            other = np.int64(used[i])
            common = sums[other, 0]
            if common > 0.0:
                union = mine + np.float64(norms[row + other]) - common
                sums[other, 1] += weights[family] * (common / union)
                sums[other, 0] = 0.0
    for i in range(count):
        other = np.int64(used[i])
        sums[other, 0] = 0.0 if other == node else np.rint(sums[other, 1] * GRAINS)
        sums[other, 1] = 0.0
    return count


@kernel
def gather(
    rows: tuple[U64s, U32s, U8s],
    columns: tuple[U64s, U32s, U8s],
    norms: U32s,
    families: tuple[F64s, U64s],
    node: I64,
    sums: OutF64s2,
    used: OutU32s,
) -> I64:
    """Leave the scores of all others with ``node`` in grains in ``sums[:, 0]``.

    ``rows`` and ``columns`` are (offsets, ids, codes), ``norms`` uint32[rows] the sums of each
    row, ``families`` (weights float64[families], bases uint64[families + 1]). ``sums``
    float64[nodes, 2] is all 0; ``used`` uint32[2 nodes + 1] lists the nodes with a score. Returns
    how many those are, or DAMAGED.
    """
    return _gather(rows, columns, norms, families, node, sums, used)


@kernel
def answer(
    rows: tuple[U64s, U32s, U8s],
    columns: tuple[U64s, U32s, U8s],
    norms: U32s,
    families: tuple[F64s, U64s],
    nodes: U32s,
    rules: tuple[F64, Bools],
    room: tuple[OutF64s2, OutU32s],
    out: tuple[OutU32s, OutU32s2, OutF64s3],
) -> I64:
    """The best hits of some ``nodes``, best first; returns how many sums were touched, or DAMAGED.

    ``rules`` are (the least grains of a hit, which nodes may be hits: bool[nodes], or empty for
    all); ``room`` is (sums, used), as for ``gather``; the rest, too. ``out`` is (counts
    uint32[rows], ids uint32[rows, k], float64[rows, k, 2]: grains, variance).
    """
    floor, allowed = rules
    sums, used = room
    counts, ids, best = out
    touched = 0
    for i in range(nodes.size):
        count = _gather(rows, columns, norms, families, np.int64(nodes[i]), sums, used)
        if count < 0:
            return DAMAGED
        touched += count
        if allowed.size > 0:
            for j in range(count):
                if not allowed[used[j]]:
                    sums[used[j], 0] = 0.0
        counts[i] = np.uint32(top(sums, used, count, floor, ids[i], best[i]))
    return touched


@kernel
def pair(rows: tuple[U64s, U32s, U8s], norms: U32s, weights: F64s, first: I64, second: I64) -> F64:
    """The score of two nodes in grains, as ``gather`` finds it, or DAMAGED."""
    offsets, ids, codes = rows
    nodes, score = np.int64(norms.size) // weights.size, 0.0
    for family in range(weights.size):
        one, other = family * nodes + first, family * nodes + second
        i, end = _ends(offsets, one, ids.size)
        j, last = _ends(offsets, other, ids.size)
        if i > end or j > last:
            return np.float64(DAMAGED)
        common = 0.0
        while i < end and j < last:
            if ids[i] == ids[j]:
                common += _squared(codes[i], codes[j])
            step = ids[i] <= ids[j]
            j += 1 if ids[j] <= ids[i] else 0
            i += 1 if step else 0
        if common > 0.0:
            union = np.float64(norms[one]) + np.float64(norms[other]) - common
            score += weights[family] * (common / union)
    return np.rint(score * GRAINS)
