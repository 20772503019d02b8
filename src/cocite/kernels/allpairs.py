"""All-pairs kernels: sparse times dense matrix, and the update of scores.

The score matrix S is symmetric. W S W' is computed in blocks of columns:

    rows   = W[block] S              float[width, n]      multiply
    turned = rows'                   float[n, width]      transpose
    panel  = W[: end] turned         float[end, width]    multiply, add_shared

Only the half above the diagonal is computed; ``settle`` writes it to both halves. Links are int64
offsets, uint32 sources, and weights of the matrix type. Values are summed in the order of links,
four rows at a time, so results are bit-identical for any number of threads, blocks and panels. Each
link costs one multiply-add per column: 10 to 14 billion per second per core while the panel fits
the cache. Source: Yu et al. 2011, section 4.1.2.
"""

from __future__ import annotations

import numpy as np

from cocite.kernels._kernel import kernel, prefetch
from cocite.kernels._types import *

TILE, LINE, AHEAD = 128, 16, 12
"""Rows to transpose at a time, values per cache line, and rows to prefetch ahead (measured)."""

FIRST, COLUMN, LOW, HIGH, SHIFT = range(5)
"""Entries of ``where`` for ``settle``: the block's first node, its column in ``upper``, the first
row and the end of the rows, and the node of column 0 in ``lower``."""


@kernel(T=("F32", "F64"))
def multiply(
    offsets: I64s, sources: U32s, weights: Ts, dense: Ts2, low: I64, high: I64, out: OutTs2
) -> None:
    """Set out[i, low:high] to the weighted sum of the rows of ``dense`` that row i links to."""
    width = high - low
    for i in range(out.shape[0]):
        total = out[i, low:high]
        for j in range(width):
            total[j] = 0
        link, end = offsets[i], offsets[i + 1]
        while link + 4 <= end:
            a, b = dense[sources[link], low:high], dense[sources[link + 1], low:high]
            c, d = dense[sources[link + 2], low:high], dense[sources[link + 3], low:high]
            wa, wb, wc, wd = weights[link], weights[link + 1], weights[link + 2], weights[link + 3]
            for j in range(width):
                total[j] += (wa * a[j] + wb * b[j]) + (wc * c[j] + wd * d[j])
            link += 4
        while link < end:
            a, wa = dense[sources[link], low:high], weights[link]
            for j in range(width):
                total[j] += wa * a[j]
            link += 1


@kernel(T=("F32", "F64"))
def transpose(rows: Ts2, low: I64, high: I64, out: OutTs2) -> None:
    """Set out[a, i] = rows[i, a] for the columns a from ``low`` to ``high``."""
    for begin in range(low, high, TILE):
        end = min(begin + TILE, high)
        for i in range(rows.shape[0]):
            for a in range(begin, end):
                out[a, i] = rows[i, a]


@kernel(T=("F32", "F64"))
def add_shared(
    rows: tuple[I64s, U32s, Ts],
    columns: tuple[I64s, U32s, Ts],
    excess: Ts,
    by_row: Bool,
    panel: OutTs2,
) -> None:
    """Add to panel[l, i] the sum of excess[v] w_i[v] w_l[v] over the loose nodes v in row i.

    Rows i are those of the block; column v lists the rows l that link to v, ascending. Skips rows
    beyond the panel. With ``by_row``, the panel is transposed.
    """
    row_offsets, row_nodes, row_weights = rows
    column_offsets, column_rows, column_weights = columns
    size = panel.shape[1 if by_row else 0]
    for i in range(row_offsets.size - 1):
        for link in range(row_offsets[i], row_offsets[i + 1]):
            node = row_nodes[link]
            weight = row_weights[link] * excess[node]
            for place in range(column_offsets[node], column_offsets[node + 1]):
                row = column_rows[place]
                if row >= size:
                    break
                if by_row:
                    panel[i, row] += weight * column_weights[place]
                else:
                    panel[row, i] += weight * column_weights[place]


@kernel(T=("F32", "F64"))
def settle(
    panel: OutTs2, old: Ts2, upper: OutTs2, lower: OutTs2, where: I64s, single: U8s, factors: Ts
) -> F64:
    """Set new = (1 - omega) old + omega decay panel, on and above the diagonal, and mirror it.

    ``old`` and ``upper`` contain the block's columns from COLUMN on, ``lower`` the block's rows;
    all three may be one matrix. The diagonal of a ``single`` class stays 1. ``factors`` is (decay,
    omega, 1). The panel receives the new values. Returns the largest change.
    """
    decay, omega = factors[0], factors[1]
    stay = factors[2] - omega
    first, column, shift = where[FIRST], where[COLUMN], where[SHIFT]
    width = panel.shape[1]
    changes = np.zeros(width, panel.dtype)
    for l in range(where[LOW], where[HIGH]):  # noqa: E741 - the paper's letter
        # The rows lie far apart: hardware does not prefetch the next one.
        for step in range(0, width, LINE):
            prefetch(old, np.uint64((l + AHEAD) * old.shape[1] + column + step))
            prefetch(upper, np.uint64((l + AHEAD) * upper.shape[1] + column + step))
        row, begin = panel[l], max(0, l - first)
        before, after = old[l, column : column + width], upper[l, column : column + width]
        if l >= first and single[l]:
            row[begin] = before[begin]
            after[begin] = before[begin]
            begin += 1
        for i in range(begin, width):
            value = stay * before[i] + omega * (decay * row[i])
            change = abs(value - before[i])
            changes[i] = change if change > changes[i] else changes[i]
            row[i] = value
        for i in range(begin, width):
            after[i] = row[i]
    for begin in range(where[LOW], where[HIGH], TILE):
        for i in range(width):
            for l in range(begin, min(begin + TILE, where[HIGH], first + i + 1)):  # noqa: E741
                lower[i, l - shift] = panel[l, i]
    largest = changes[0]
    for i in range(1, width):
        largest = max(largest, changes[i])
    return np.float64(largest)


@kernel(T=("F32", "F64"))
def subtract_shared(
    rows: tuple[I64s, U32s], spread: tuple[I64s, U32s], owners: I64s, turned: Ts2, panel: OutTs2
) -> None:
    """Subtract from panel[l, i] the sum of turned[owner of w, i] over common in-neighbors w."""
    (row_offsets, row_nodes), (column_offsets, columns) = rows, spread
    for i in range(panel.shape[1]):
        for link in range(row_offsets[i], row_offsets[i + 1]):
            node = row_nodes[link]
            if owners[node] >= 0:
                value = turned[owners[node], i]
                for place in range(column_offsets[node], column_offsets[node + 1]):
                    panel[columns[place], i] -= value


@kernel(T=("F32", "F64"))
def combine_shared(
    rows: tuple[I64s, U32s],
    spread: tuple[I64s, U32s, U8s],
    first: I64,
    sizes: Ts,
    parts: Ts2,
    decay: F64,
    scores: OutTs2,
) -> F64:
    """Compute the block's PSimRank scores on and above the diagonal, and mirror them.

        score = decay * (common + F[l, i] + F[i, l]) / (size_l + size_i - common)

    F is ``parts``; ``spread`` is (offsets, columns, single): the classes that each node's links
    lead to, and which classes have one node. The diagonal of these classes stays 1. Returns the
    largest change.
    """
    (row_offsets, row_nodes), (column_offsets, columns, single) = rows, spread
    common = np.zeros(scores.shape[0], np.int64)
    largest = 0.0
    for i in range(row_offsets.size - 1):
        k = first + i
        common[: k + 1] = 0
        for link in range(row_offsets[i], row_offsets[i + 1]):
            node = row_nodes[link]
            for place in range(column_offsets[node], column_offsets[node + 1]):
                common[columns[place]] += 1
        for l in range(k + 1):  # noqa: E741 - the letter of the formula
            if l == k and single[k]:
                continue
            both = common[l]
            value = decay * (both + parts[l, k] + parts[k, l]) / (sizes[l] + sizes[k] - both)
            largest = max(largest, abs(value - scores[k, l]))
            scores[k, l] = value
            scores[l, k] = value
    return largest


# -- order -------------------------------------------------------------------------------

# Reverse Cuthill-McKee gives linked nodes nearby ids. In each component, a breadth-first search
# over Q + Q' starts at a node of minimum degree and visits neighbors by ascending degree. The order
# is reversed at the end. Costs O(m log(largest degree)).
# Source: Yu et al. 2011, section 4.2.1, Algorithm 2; Cuthill, McKee 1969; Chan, George 1980.


@kernel
def reverse_cuthill_mckee(
    offsets: I64s, neighbors: I64s, starts: I64s, seen: OutU8s, out: OutI64s
) -> None:
    """Fill ``out`` (int64[n]) with the nodes in their new order. The ``neighbors`` of each
    node, and ``starts`` (all nodes), are sorted by ascending degree; ``seen`` is uint8[n], all 0.
    """
    n = out.size
    taken = 0
    for s in range(n):
        if seen[starts[s]]:
            continue
        seen[starts[s]] = 1
        out[taken] = starts[s]
        head, taken = taken, taken + 1
        while head < taken:
            node = out[head]
            head += 1
            for link in range(offsets[node], offsets[node + 1]):
                other = neighbors[link]
                if not seen[other]:
                    seen[other] = 1
                    out[taken] = other
                    taken += 1
    for i in range(n // 2):
        out[i], out[n - 1 - i] = out[n - 1 - i], out[i]
