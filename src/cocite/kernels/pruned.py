"""Sparse all-pairs kernels: rows of scores with their small values left out.

A row of S lies at ``begin[v]`` in a pool of columns (ascending) and values, ``count[v]`` of them.
A block of rows of the next S is made in dense rows, one block at a time:

    sums    = W[block] S               gather, sparse rows added up
    values  = sums W'                  scatter, by W's columns, where sums are not 0
    kept    = relaxed values >= threshold                          settle, pack

Cost: a step for every non-zero of ``sums`` and link of its column; ``width * n`` values of scratch.
Source: Yu et al. 2011, 4.1.4 (eq. 9) and Algorithm 3, line 21.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import kernel

__all__ = ["add_loose", "gather", "pack", "scatter", "settle_pruned"]


@kernel
def gather(
    offsets: Any,
    sources: Any,
    weights: Any,
    begin: Any,
    count: Any,
    columns: Any,
    values: Any,
    out: Any,
) -> None:
    """out[i] = the weighted sum of the pool's rows that row i links to."""
    for i in range(out.shape[0]):
        out[i, :] = 0
        for link in range(offsets[i], offsets[i + 1]):
            source, weight = sources[link], weights[link]
            for place in range(begin[source], begin[source] + count[source]):
                out[i, columns[place]] += weight * values[place]


@kernel
def scatter(sums: Any, offsets: Any, rows: Any, weights: Any, out: Any) -> None:
    """out[i, l] = sum over a of sums[i, a] W[l, a]; W is given by columns."""
    for i in range(out.shape[0]):
        out[i, :] = 0
        for a in range(sums.shape[1]):
            value = sums[i, a]
            if value != 0:
                for place in range(offsets[a], offsets[a + 1]):
                    out[i, rows[place]] += value * weights[place]


@kernel
def add_loose(
    row_offsets: Any,
    row_nodes: Any,
    row_weights: Any,
    column_offsets: Any,
    columns: Any,
    column_weights: Any,
    excess: Any,
    out: Any,
) -> None:
    """out[i, l] += sum of excess[v] w_i[v] w_l[v] over the loose nodes v that row i links to."""
    for i in range(out.shape[0]):
        for link in range(row_offsets[i], row_offsets[i + 1]):
            node = row_nodes[link]
            weight = row_weights[link] * excess[node]
            for place in range(column_offsets[node], column_offsets[node + 1]):
                out[i, columns[place]] += weight * column_weights[place]


@kernel
def settle_pruned(
    rows: Any,
    first: Any,
    begin: Any,
    count: Any,
    columns: Any,
    values: Any,
    single: Any,
    factors: Any,
) -> Any:
    """rows = (1 - omega) old + omega decay rows, or 0 where decay rows is below the threshold.

    ``factors`` is (decay, omega, 1, threshold). Returns (largest change, largest value dropped,
    values kept).
    """
    decay, omega, threshold = factors[0], factors[1], factors[3]
    stay = factors[2] - omega
    change, dropped, kept = 0.0, 0.0, 0
    for i in range(rows.shape[0]):
        k = first + i
        place, last = begin[k], begin[k] + count[k]
        for l in range(rows.shape[1]):  # noqa: E741 - the paper's letter
            old = factors[2] - factors[2]
            if place < last and columns[place] == l:
                old = values[place]
                place += 1
            if l == k and single[k]:
                rows[i, l] = factors[2]
                kept += 1
                continue
            fresh = decay * rows[i, l]
            after = stay * old + omega * fresh
            if fresh < threshold:
                dropped = max(dropped, np.float64(fresh))
                after = old - old
            elif after != 0:
                kept += 1
            change = max(change, np.float64(abs(after - old)))
            rows[i, l] = after
    return change, dropped, kept


@kernel
def pack(rows: Any, low: Any, begin: Any, count: Any, columns: Any, values: Any) -> None:
    """Append the non-zeros of a block's ``rows`` to a pool at ``low``, and say where they are."""
    at = low
    for i in range(rows.shape[0]):
        begin[i] = at
        for l in range(rows.shape[1]):  # noqa: E741 - the paper's letter
            if rows[i, l] != 0:
                columns[at] = l
                values[at] = rows[i, l]
                at += 1
        count[i] = at - begin[i]
