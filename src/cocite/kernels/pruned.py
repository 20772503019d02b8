"""Sparse all-pairs kernels: rows of scores without small values.

A sweep computes a symmetric matrix from the previous one, a block of rows at a time. Each pair is
computed once, in the row of its larger node, and appended to the *chain* of the other row.

    row a of S, seen from a block    the lower part, if its block is done     columns up to a
                                     its chain: links, one per block          columns beyond a, done
                                     the old row from ``cursor[a]`` on        columns not yet done

    sums    = W[block] S               gather, sums of sparse rows
    values  = sums W'                  scatter, by W's columns, where sums are not 0
    kept    = relaxed values >= threshold                      settle_pruned, pack, hang, advance

At the end, each row's lower part and chain are joined (``unite``). All columns are ascending. For
each nonzero of ``sums``, the cost is one step per link of its column. Source: Yu et al. 2011,
section 4.1.4 (eq. 9).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *


class PrunedRows(NamedTuple):
    """Row v: ``count[v]`` entries from ``begin[v]`` on (int64); ``columns`` (uint32) ascend."""

    begin: OutI64s
    count: OutI64s
    columns: OutU32s
    values: OutTs


class Chains(NamedTuple):
    """Chains of links from ``first[v]`` to ``last[v]`` for each row v, -1 if there are none.

    Link i has ``count[i]`` columns and values from ``begin[i]`` on; ``following[i]`` is the next
    link, or -1. ``columns`` is uint32, ``values`` of the matrix type, all others int64.
    """

    first: OutI64s
    last: OutI64s
    following: OutI64s
    begin: OutI64s
    count: OutI64s
    columns: OutU32s
    values: OutTs


@helper
def _add(columns: Any, values: Any, low: Any, high: Any, weight: Any, out: Any) -> None:
    for place in range(low, high):
        out[columns[place]] += weight * values[place]


@kernel(T=("F32", "F64"))
def gather(
    offsets: I64s,
    sources: U32s,
    weights: Ts,
    old: PrunedRows,
    cursor: I64s,
    lower: PrunedRows,
    chains: Chains,
    out: OutTs2,
) -> None:
    """Set out[i] to the weighted sum of the current rows of S that row i links to. ``cursor``
    int64[n] are the positions in ``old`` of the first columns that are not yet done.
    """
    for i in range(out.shape[0]):
        out[i, :] = 0
        for link in range(offsets[i], offsets[i + 1]):
            a, weight = sources[link], weights[link]
            low = lower.begin[a]
            _add(lower.columns, lower.values, low, low + lower.count[a], weight, out[i])
            part = chains.first[a]
            while part >= 0:
                low = chains.begin[part]
                _add(chains.columns, chains.values, low, low + chains.count[part], weight, out[i])
                part = chains.following[part]
            high = old.begin[a] + old.count[a]
            _add(old.columns, old.values, cursor[a], high, weight, out[i])


@kernel(T=("F32", "F64"))
def scatter(sums: Ts2, offsets: I64s, rows: U32s, weights: Ts, out: OutTs2) -> None:
    """Set out[i, l] to the sum over a of sums[i, a] W[l, a], with W by columns, rows ascending."""
    size = out.shape[1]
    for i in range(out.shape[0]):
        out[i, :] = 0
        for a in range(sums.shape[1]):
            value = sums[i, a]
            if value != 0:
                for place in range(offsets[a], offsets[a + 1]):
                    row = rows[place]
                    if row >= size:
                        break
                    out[i, row] += value * weights[place]


@kernel(T=("F32", "F64"))
def settle_pruned(
    rows: OutTs2, first: I64, old: PrunedRows, single: U8s, factors: Ts
) -> tuple[F64, F64, I64]:
    """Set rows to (1 - omega) old + omega decay rows, or 0 if decay rows is below the threshold.

    Entries beyond the diagonal become 0. ``factors`` is (decay, omega, 1, threshold). Returns
    (largest change, largest value dropped, number of nonzero values).
    """
    decay, omega, threshold = factors[0], factors[1], factors[3]
    stay = factors[2] - omega
    change, dropped, kept = 0.0, 0.0, 0
    for i in range(rows.shape[0]):
        k = first + i
        place, last = old.begin[k], old.begin[k] + old.count[k]
        for l in range(k + 1):  # noqa: E741 - the paper's letter
            before = factors[2] - factors[2]
            if place < last and old.columns[place] == l:
                before = old.values[place]
                place += 1
            if l == k and single[k]:
                rows[i, l] = factors[2]
                kept += 1
                continue
            fresh = decay * rows[i, l]
            after = stay * before + omega * fresh
            if fresh < threshold:
                dropped = max(dropped, np.float64(abs(fresh)))
                after = before - before
            elif after != 0:
                kept += 1
            change = max(change, np.float64(abs(after - before)))
            rows[i, l] = after
        rows[i, k + 1 :] = 0
    return change, dropped, kept


@kernel(T=("F32", "F64"))
def pack(rows: Ts2, first: I64, low: I64, lower: PrunedRows) -> I64:
    """Append the nonzeros of a block's ``rows`` to ``lower`` from ``low`` on; return the end."""
    at = low
    for i in range(rows.shape[0]):
        lower.begin[first + i] = at
        for l in range(first + i + 1):  # noqa: E741 - the paper's letter
            if rows[i, l] != 0:
                lower.columns[at] = l
                lower.values[at] = rows[i, l]
                at += 1
        lower.count[first + i] = at - lower.begin[first + i]
    return at


@kernel(T=("F32", "F64"))
def hang(rows: Ts2, first: I64, low: I64, links: I64, chains: Chains) -> tuple[I64, I64]:
    """Append the block's values below the diagonal to the chains of their columns. Writes from
    position ``low`` and link ``links`` on; returns the next position and link.
    """
    at, link = low, links
    for l in range(rows.shape[1]):  # noqa: E741 - the paper's letter
        begin = at
        for i in range(max(0, l + 1 - first), rows.shape[0]):
            if rows[i, l] != 0:
                chains.columns[at] = first + i
                chains.values[at] = rows[i, l]
                at += 1
        if at > begin:
            chains.begin[link], chains.count[link] = begin, at - begin
            chains.following[link] = -1
            if chains.first[l] < 0:
                chains.first[l] = link
            else:
                chains.following[chains.last[l]] = link
            chains.last[l] = link
            link += 1
    return at, link


@kernel(T=("F32", "F64"))
def advance(old: PrunedRows, end: I64, cursor: OutI64s) -> None:
    """Advance the cursors of the rows below ``end`` to their first column from ``end`` on."""
    for a in range(end):
        last = old.begin[a] + old.count[a]
        while cursor[a] < last and old.columns[cursor[a]] < end:
            cursor[a] += 1


@kernel(T=("F32", "F64"))
def unite(lower: PrunedRows, chains: Chains, out: PrunedRows) -> None:
    """Write the rows of the whole matrix, each from its lower part and its chain."""
    at = 0
    for row in range(out.begin.size):
        out.begin[row] = at
        for place in range(lower.begin[row], lower.begin[row] + lower.count[row]):
            out.columns[at], out.values[at] = lower.columns[place], lower.values[place]
            at += 1
        link = chains.first[row]
        while link >= 0:
            for place in range(chains.begin[link], chains.begin[link] + chains.count[link]):
                out.columns[at], out.values[at] = chains.columns[place], chains.values[place]
                at += 1
            link = chains.following[link]
        out.count[row] = at - out.begin[row]
