"""PageRank's kernels: Gauss-Seidel sweeps over the graph without its dangling nodes.

*Dangling* nodes, those without out-links, pass nothing on. So the iteration runs on the *core*, the
nodes with out-links, and ranks of dangling nodes are computed once, at the end. Let W[u], the
*strength* of u, be the sum of the weights w of its out-links (all 1 without weights), and let
z[u] = y[u] / W[u]. A sweep solves each row of

    y[v] = damping * sum of w(u, v) z[u] over in-neighbors u != v  +  damping * w(v, v) z[v]
           + base[v]

for y[v], and uses each new value at once. The self-loop of v is part of the factor SCALE. A sum
first adds nodes above v, which have values of the previous sweep, then those below, which have new
ones, both in order of id, so the core can be cut into blocks (``rank_blocks.py``).

A sweep costs about 1 ns per link if linked nodes have nearby ids. Source: Haveliwala, *Efficient
computation of PageRank*, section 3; for dangling nodes Lee, Golub, Zenios 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *

# Links are tuples of arrays (where rows begin and end, nodes, weights float32). Without weights,
# the last array is empty for kernels that write links, and None for kernels that read them. The
# latter are compiled for both cases, and give the same bits without weights as with weights of 1.
# Sums are float64 and carried from call to call, so they do not depend on cuts.

NO_NODE = np.uint32(0xFFFFFFFF)
"""In place of a core number: the node is outside the core."""
GONE = np.uint32(0xFFFFFFFF)
"""In place of an out-degree: the node was removed."""

BASE, SCALE, MASS, REACH = range(4)
FACTS = 4
"""float64 words of a core row: its value without in-links; the factor from y to z; its weights in
the balance of the mass and in the sum of all y.
"""

_ZERO32, _ONE32 = np.uint32(0), np.uint32(1)
_ONE64 = np.uint64(1)

STRIP = np.uint64(1023)
"""Rows per strip, minus one. Sums are computed strip by strip."""


@helper
def _counted(weights: Any, link: Any) -> Any:
    if weights is None:
        return _ONE32
    return np.float64(weights[link])


@kernel({"W": "F32s", "D": "F64"}, {"W": "None", "D": "U32"})
def add_links(
    in_links: tuple[U64s, U32s, W], begin: U64, end: U64, taken: U8s, first: U64, out: OutDs
) -> None:
    """Count the links from ``begin`` to ``end`` into ``out``, indexed by source minus ``first``.

    ``in_links`` is (offsets of some rows, all sources, all weights). Links are counted only if
    their row is ``taken`` (uint8). Without weights (None), ``out`` (uint32) counts links; otherwise
    ``out`` (float64) sums their weights in order of destination.
    """
    in_offsets, in_sources, in_weights = in_links
    width = np.uint64(out.size)
    link = begin
    for row in range(taken.size):
        stop = in_offsets[np.uint64(row) + _ONE64]
        stop = end if stop > end else stop
        if taken[row]:
            for at in range(link, stop):
                slot = np.uint64(in_sources[at]) - first
                if slot < width:
                    out[slot] += _counted(in_weights, at)
        link = stop


@kernel
def number_core(degrees: U32s, count: U32, number: OutU32s) -> U32:
    """Assign numbers from ``count`` to non-GONE nodes with out-links; return the next number."""
    for node in range(number.size):
        if degrees[node] == _ZERO32 or degrees[node] == GONE:
            number[node] = NO_NODE
        else:
            number[node] = count
            count = np.uint32(count + _ONE32)
    return count


@helper
def _append(in_links: Any, begin: Any, end: Any, number: Any, out: Any, count: Any) -> Any:
    """Append some links, renumbered; return the next position, and how many have no number."""
    sources, weights = in_links[1], in_links[2]
    links, out_weights = out
    lost = np.uint64(0)
    for link in range(begin, end):
        source = number[sources[link]]
        lost += np.uint64(source == NO_NODE)
        links[count] = source
        if weights.size > 0:
            out_weights[count] = weights[link]
        count += _ONE64
    return count, lost


@kernel(T=("F32", "U8"))
def compact(
    in_links: tuple[U64s, U32s, F32s],
    degrees: U32s,
    number: U32s,
    core: tuple[OutU64s, OutU64s, OutU32s, OutF32s],
    tails: tuple[OutU64s, OutU32s, OutF32s],
    loops: OutTs,
) -> U64:
    """Write the core's links, renumbered, in the order in which sums add them, and the *tails*:
    links from the core to dangling nodes, in order of id.

    ``core`` is (rows uint64[rows + 1], starting with 0; where in each row the links from smaller
    nodes begin, uint64[rows]; links uint32; weights); ``tails`` is the same without the second
    array. ``loops`` (uint8 or float32 per core row) is the weight of the self-loop. Returns how
    many links come from nodes outside the core, 0 if the degrees are correct.
    """
    in_offsets, in_sources, in_weights = in_links
    rows, middles, links, weights = core
    tail_rows, tail_links, tail_weights = tails
    row = count = lost = tail = tail_count = np.uint64(0)
    for i in range(number.size):
        node, begin, end = np.uint64(i), in_offsets[i], in_offsets[np.uint64(i) + _ONE64]
        if number[i] != NO_NODE:
            below = begin
            while below < end and in_sources[below] < node:
                below += _ONE64
            above = below
            loops[row] = 0
            if above < end and in_sources[above] == node:
                loops[row] = in_weights[above] if in_weights.size > 0 else 1
                above += _ONE64
            count, missed = _append(in_links, above, end, number, (links, weights), count)
            lost += missed
            middles[row] = count
            count, missed = _append(in_links, begin, below, number, (links, weights), count)
            lost += missed
            row += _ONE64
            rows[row] = count
        elif degrees[i] == _ZERO32:
            out = tail_links, tail_weights
            tail_count, missed = _append(in_links, begin, end, number, out, tail_count)
            lost += missed
            tail += _ONE64
            tail_rows[tail] = tail_count
    return lost


@kernel({"D": "F64", "C": "F32"}, {"D": "U32", "C": "U8"})
def describe(
    number: U32s, strengths: Ds, leaving: Ds, loops: Cs, where: F64s, damping: F64, facts: OutF64s2
) -> None:
    """Fill ``facts`` (float64[core, FACTS]) for some nodes. The first three arguments and ``where``
    cover these nodes; ``leaving`` is the part of a node's strength that goes to dangling nodes.
    """
    for node in range(number.size):
        row = number[node]
        if row != NO_NODE:
            out, lost = np.float64(strengths[node]), damping * np.float64(leaving[node])
            facts[row, BASE] = where[node]
            facts[row, SCALE] = 1.0 / (out - damping * np.float64(loops[row]))
            facts[row, MASS] = (1.0 - damping) * out + lost
            facts[row, REACH] = out + lost


@kernel(D=("U32", "F64"), T=("F32", "F64"))
def contribute(number: U32s, strengths: Ds, values: F64s, factor: F64, z: OutTs) -> None:
    """Set z = factor * value / strength for each of these nodes that is in the core."""
    for node in range(number.size):
        if number[node] != NO_NODE:
            z[number[node]] = factor * values[node] / np.float64(strengths[node])


@kernel(T=("F32", "F64"))
def weigh(z: Ts, facts: F64s2, first: U64, sums: OutF64s2) -> None:
    """Add the mass of core rows from ``first`` on, and their teleport, to ``sums`` float64[2, 2].

    To keep rounding errors from limiting the residual, sums are formed per strip, then over strips.
    ``sums[1]`` is the sum of the current strip so far.
    """
    mass, owed = sums[1, 0], sums[1, 1]
    for i in range(facts.shape[0]):
        row = np.uint64(i) + first
        mass += np.float64(z[i]) * facts[i, MASS]
        owed += facts[i, BASE]
        if row & STRIP == STRIP:
            sums[0, 0] += mass
            sums[0, 1] += owed
            mass = owed = 0.0
    sums[1, 0], sums[1, 1] = mass, owed


@helper
def _added(start: Any, links: Any, weights: Any, begin: Any, end: Any, z: Any) -> Any:
    gathered = start
    if weights is None:
        for link in range(begin, end):
            gathered += np.float64(z[links[link]])
    else:
        for link in range(begin, end):
            gathered += np.float64(weights[link]) * np.float64(z[links[link]])
    return gathered


@helper
def _begin_of(begins: Any, row: Any, last_end: Any) -> Any:
    """Return where a row's links begin; without ``begins``, where the previous row's links end."""
    if begins is None:
        return last_end
    return begins[row]


@kernel(D=("None", "U64s"), W=("None", "F32s"), T=("F32", "F64"))
def sweep(
    core: tuple[D, U64s, U32s, W],
    at: tuple[U64, U64, U64],
    so_far: F64s,
    z: OutTs,
    facts: F64s2,
    damping: F64,
    sums: OutF64s,
) -> None:
    """Update ``z`` (float32 or 64) in place by Gauss-Seidel over some rows of the core.

    ``core`` is (where the links of these rows begin, or None if rows are contiguous; where they
    end; links; weights). ``at`` is (first link, first row's index in ``z``, its index in the core),
    and ``so_far`` (float64) the sum of each row so far. Adds to ``sums`` float64[4]: a bound on
    what the changes pass on to other rows; z * reach; z * mass; and z * mass of the current strip.
    """
    begins, ends, links, weights = core
    begin, here, first = at
    change, reach, mass = sums[0], sums[1], sums[3]
    for i in range(facts.shape[0]):
        begin, end = _begin_of(begins, i, begin), ends[i]
        gathered = _added(so_far[i], links, weights, begin, end, z)
        begin = end
        place = np.uint64(i) + here
        new = (damping * gathered + facts[i, BASE]) * facts[i, SCALE]
        passed = 1.0 / facts[i, SCALE] - facts[i, MASS]  # damping * weights of links to other rows
        change += abs((new - np.float64(z[place])) * passed)
        mass += new * facts[i, MASS]
        reach += new * facts[i, REACH]
        z[place] = new
        if (np.uint64(i) + first) & STRIP == STRIP:
            sums[2] += mass
            mass = 0.0
    sums[0], sums[1], sums[3] = change, reach, mass


@kernel(D=("None", "U64s"), W=("None", "F32s"), T=("F32", "F64"))
def collect(core: tuple[D, U64s, U32s, W], begin: U64, end: U64, z: Ts, sums: OutF64s) -> None:
    """Add the links from ``begin`` to ``end`` to the ``sums`` (float64) of their rows."""
    begins, ends, links, weights = core
    for i in range(sums.size):
        begin, stop = _begin_of(begins, i, begin), ends[i]
        stop = end if stop > end else stop
        sums[i] = _added(sums[i], links, weights, begin, stop, z)
        begin = stop


@kernel({"W": "F32s", "C": "F32"}, {"W": "None", "C": "U8"}, T=("F32", "F64"))
def gather(
    tails: tuple[U64s, U32s, W],
    core: tuple[U64s, U32s, W],
    loops: Cs,
    number: U32s,
    degrees: U32s,
    z: Ts,
    all_rows: Bool,
    sums: OutF64s,
) -> None:
    """Set ``sums`` (float64[nodes]) to what nodes receive from ``z``. Sums of core nodes are 0
    unless ``all_rows``; sums of removed nodes are always 0.
    """
    tail_rows, tail_links, tail_weights = tails
    rows, links, weights = core
    tail = row = np.uint64(0)
    for i in range(sums.size):
        gathered = 0.0
        if degrees[i] == _ZERO32:
            begin, end = tail_rows[tail], tail_rows[tail + _ONE64]
            gathered = _added(0.0, tail_links, tail_weights, begin, end, z)
            tail += _ONE64
        elif all_rows and number[i] != NO_NODE:
            own = np.float64(loops[row]) * np.float64(z[number[i]])
            gathered = _added(0.0, links, weights, rows[row], rows[row + _ONE64], z) + own
            row += _ONE64
        sums[i] = gathered


@kernel(D=("U32", "F64"), T=("F32", "F64"))
def expand(
    number: U32s, strengths: Ds, degrees: U32s, z: Ts, sums: F64s, damping: F64, y: OutF64s
) -> None:
    """Compute y of some nodes from the core's z and the sums of dangling nodes. ``y`` (float64)
    contains their teleport, and receives the result.
    """
    for i in range(y.size):
        if number[i] != NO_NODE:
            y[i] = np.float64(z[number[i]]) * np.float64(strengths[i])
        elif degrees[i] == _ZERO32:
            y[i] += damping * sums[i]
        else:
            y[i] = 0.0


@kernel
def residual(degrees: U32s, sums: F64s, rest: F64s, total: OutF64s) -> None:
    """Add |sums + rest| over some nodes that are not GONE to ``total[0]``. With z = damping * x /
    strength and rest = teleport - x, the total is the L1 residual of x.
    """
    added = total[0]
    for i in range(rest.size):
        if degrees[i] != GONE:
            added += abs(sums[i] + rest[i])
    total[0] = added


# -- extrapolation -----------------------------------------------------------------------

# Reduced rank extrapolation: estimates the limit of consecutive sweeps. Six iterates x0 ... x5 of a
# linear iteration have five steps u[j] = x[j + 1] - x[j]. Let c be the coefficients with sum 1 that
# minimize the norm of the sum of c[j] u[j]. The same combination of x1 ... x5 would be the limit if
# the iteration had no more components than steps. The norm is that of y, in which each row's step
# is multiplied by its strength. Each kernel costs one pass over six vectors. Source: Eddy 1979,
# Mesina 1977.

BEFORE = 5
"""Number of earlier iterates that are used in addition to the last one."""


@kernel(T=("F32", "F64"))
def products(before: tuple[Ts, Ts, Ts, Ts, Ts], z: Ts, facts: F64s2, found: OutF64s2) -> None:
    """Write the products of all steps of some rows to ``found`` float64[BEFORE, BEFORE]. Fills the
    lower triangle, with the diagonal. ``before`` are the iterates before ``z``, oldest first.
    """
    x0, x1, x2, x3, x4 = before
    p00 = p10 = p11 = p20 = p21 = p22 = p30 = p31 = p32 = p33 = 0.0
    p40 = p41 = p42 = p43 = p44 = 0.0
    for i in range(z.size):
        weight = 1.0 / facts[i, SCALE]
        a, b, c = np.float64(x1[i]), np.float64(x2[i]), np.float64(x3[i])
        d = np.float64(x4[i])
        u0, u1 = (a - np.float64(x0[i])) * weight, (b - a) * weight
        u2, u3 = (c - b) * weight, (d - c) * weight
        u4 = (np.float64(z[i]) - d) * weight
        p00 += u0 * u0
        p10 += u1 * u0
        p11 += u1 * u1
        p20 += u2 * u0
        p21 += u2 * u1
        p22 += u2 * u2
        p30 += u3 * u0
        p31 += u3 * u1
        p32 += u3 * u2
        p33 += u3 * u3
        p40 += u4 * u0
        p41 += u4 * u1
        p42 += u4 * u2
        p43 += u4 * u3
        p44 += u4 * u4
    found[0, 0], found[1, 0], found[1, 1] = p00, p10, p11
    found[2, 0], found[2, 1], found[2, 2] = p20, p21, p22
    found[3, 0], found[3, 1], found[3, 2], found[3, 3] = p30, p31, p32, p33
    found[4, 0], found[4, 1], found[4, 2], found[4, 3], found[4, 4] = p40, p41, p42, p43, p44


@kernel(T=("F32", "F64"))
def combine(before: tuple[Ts, Ts, Ts, Ts, Ts], z: OutTs, shares: F64s) -> None:
    """Replace some rows of ``z`` by a combination of all iterates except the first. The factors are
    ``shares`` (float64[BEFORE]). Negative values become 0, which is closer to the truth.
    """
    _, x1, x2, x3, x4 = before
    s1, s2, s3, s4, s5 = shares[0], shares[1], shares[2], shares[3], shares[4]
    for i in range(z.size):
        ahead = s1 * np.float64(x1[i]) + s2 * np.float64(x2[i]) + s3 * np.float64(x3[i])
        ahead += s4 * np.float64(x4[i]) + s5 * np.float64(z[i])
        z[i] = ahead if ahead > 0.0 else 0.0
