"""PageRank's kernels: the graph without its dangling nodes, and Gauss-Seidel sweeps on it.

Nodes without out-links (*dangling*) pass nothing on, so no other rank depends on theirs: the
iteration runs on the *core*, the nodes with out-links, and dangling nodes are computed once, at
the end. A node's rank is shared among its out-links in proportion to their weights w; without
weights w = 1. With W[u] the sum of the weights of u's out-links (its *strength*) and
z[u] = y[u] / W[u], a sweep solves row after row of

    y[v] = damping * sum of w(u, v) z[u] over in-neighbors u != v  +  damping * w(v, v) z[v]
           + base[v]

for y[v], using each new value at once (Gauss-Seidel); the link of v to itself is solved for and
not iterated: it is in ``scale`` and not among the core's links.

The order of a sum is: what comes from nodes above v, then what comes from those below, both in
order of id. When v's turn comes, the former are as the last sweep left them and the latter are
new, so this order can be kept wherever the core is cut into blocks (``kernels/rank_blocks.py``).

Links are tuples of arrays (offsets or rows, nodes, weights float32). Without weights, those of
stored links are empty, and where links are only read they are None, for which kernels are compiled
anew; all operations have the operands and the result that weights of 1 give, to the bit. Sums are
float64, and carried from call to call, so that where a caller cuts does not change a bit of them.

Cost: a pass over the core's links a sweep, about a nanosecond a link where ids have locality.
Source: block sweeps after Haveliwala, *Efficient computation of PageRank*, 3; lumping of dangling
nodes after Lee, Golub, Zenios 2003.

Reduced rank extrapolation: the limit that several sweeps in a row point to.

Six iterates x0 ... x5 of a linear iteration have five steps u[j] = x[j + 1] - x[j]. With the
numbers c of sum 1 that make the combination of the steps, sum of c[j] u[j], least, the same
combination of x1 ... x5 is where the iteration would come to if it had no more components than
steps. Least is meant of y, each row's step times its strength.

Sums are float64, of the rows of one call; the caller adds up calls of the same rows.

Cost: a pass over six vectors each.
Source: Eddy 1979, Mesina 1977 (reduced rank extrapolation).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *

NO_NODE = np.uint32(0xFFFFFFFF)
"""The core number of a node that is not in the core."""
GONE = np.uint32(0xFFFFFFFF)
"""The out-degree of a node that was removed."""

BASE, SCALE, MASS, REACH = range(4)
FACTS = 4
"""float64 words of a core row: what it gets besides its in-links; what turns y into z; and its
weights in the balance of the mass and in the sum of all y."""

_ZERO32, _ONE32 = np.uint32(0), np.uint32(1)
_ONE64 = np.uint64(1)

STRIP = np.uint64(1023)
"""Rows of a strip, less one: sums are made strip by strip."""


@helper
def _counted(weights: Any, link: Any) -> Any:
    if weights is None:
        return _ONE32
    return np.float64(weights[link])


@kernel({"W": "F32s", "D": "F64"}, {"W": "None", "D": "U32"})
def add_links(
    in_links: tuple[U64s, U32s, W], begin: U64, end: U64, taken: U8s, first: U64, out: OutDs
) -> None:
    """Count links number ``begin`` to ``end`` into ``out``, if their row is ``taken`` (uint8), for
    the sources from ``first`` on.

    ``in_links`` has the offsets of these rows, all links, and their weights, which are added to
    ``out`` (float64) in order of destination; with None for the weights, links are counted in
    ``out`` (uint32).
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
    """Number the nodes that link to any and are not GONE, from ``count`` on; returns the next."""
    for node in range(number.size):
        if degrees[node] == _ZERO32 or degrees[node] == GONE:
            number[node] = NO_NODE
        else:
            number[node] = count
            count = np.uint32(count + _ONE32)
    return count


@kernel(T=("F32", "U8"))
def compact(
    in_links: tuple[U64s, U32s, F32s],
    number: U32s,
    core: tuple[OutU64s, OutU32s, OutF32s],
    loops: OutTs,
) -> U64:
    """Write the core's links, renumbered and in the order of their sums.

    ``core`` is (rows uint64[rows + 1], which begin with 0, links uint32, weights); ``loops`` (of a
    row of the core: uint8, or float32) is the weight of its link to itself. Returns how many links
    come from nodes outside the core: none, if degrees are those of the links.
    """
    in_offsets, in_sources, in_weights = in_links
    rows, links, weights = core
    weighted = in_weights.size > 0
    row = count = lost = np.uint64(0)
    for i in range(number.size):
        if number[i] == NO_NODE:
            continue
        node, begin, end = np.uint64(i), in_offsets[i], in_offsets[np.uint64(i) + _ONE64]
        below = begin
        while below < end and in_sources[below] < node:
            below += _ONE64
        above = below
        loops[row] = 0
        if above < end and in_sources[above] == node:
            loops[row] = in_weights[above] if weighted else 1
            above += _ONE64
        behind = count + (end - above)
        for link in range(above, end):
            source = number[in_sources[link]]
            lost += np.uint64(source == NO_NODE)
            links[count] = source
            if weighted:
                weights[count] = in_weights[link]
            count += _ONE64
        for link in range(begin, below):
            source = number[in_sources[link]]
            lost += np.uint64(source == NO_NODE)
            links[behind] = source
            if weighted:
                weights[behind] = in_weights[link]
            behind += _ONE64
        count = behind
        row += _ONE64
        rows[row] = count
    return lost


@kernel
def compact_tails(
    in_links: tuple[U64s, U32s, F32s],
    degrees: U32s,
    number: U32s,
    tails: tuple[OutU64s, OutU32s, OutF32s],
) -> U64:
    """The same for links from the core to dangling nodes (*tails*), in order of id."""
    in_offsets, in_sources, in_weights = in_links
    rows, links, weights = tails
    weighted = in_weights.size > 0
    row = count = lost = np.uint64(0)
    for i in range(number.size):
        if degrees[i] == _ZERO32:
            for link in range(in_offsets[i], in_offsets[np.uint64(i) + _ONE64]):
                source = number[in_sources[link]]
                lost += np.uint64(source == NO_NODE)
                links[count] = source
                if weighted:
                    weights[count] = in_weights[link]
                count += _ONE64
            row += _ONE64
            rows[row] = count
    return lost


@kernel({"D": "F64", "C": "F32"}, {"D": "U32", "C": "U8"})
def describe(
    number: U32s, strengths: Ds, leaving: Ds, loops: Cs, where: F64s, damping: F64, facts: OutF64s2
) -> None:
    """Fill ``facts`` (float64[core, FACTS]) for some nodes, whose part the first three and
    ``where`` are; ``leaving`` is what of their strength goes to dangling nodes.
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
    """z = factor * value / strength for those of some nodes that are in the core."""
    for node in range(number.size):
        if number[node] != NO_NODE:
            z[number[node]] = factor * values[node] / np.float64(strengths[node])


@kernel(T=("F32", "F64"))
def weigh(z: Ts, facts: F64s2, first: U64, sums: OutF64s2) -> None:
    """Add the mass of some rows of the core, ``first`` and on, and their teleport, to ``sums``
    float64[2, 2].

    Sums of a strip of rows, then of strips: what is lost to rounding would be the floor of the
    residual. ``sums[1]`` is what the strip under way has so far.
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


@kernel(W=("None", "F32s"), T=("F32", "F64"))
def sweep(
    core: tuple[U64s, U32s, W],
    at: tuple[U64, U64, U64],
    so_far: F64s,
    z: OutTs,
    facts: F64s2,
    damping: F64,
    sums: OutF64s,
) -> None:
    """Gauss-Seidel over some rows of the core, ``z`` (float32 or 64) in place.

    ``core`` has the ends of these rows behind the begin of the first; ``at`` is the number of the
    first link that is still to be added, of their first row in ``z``, and of that in the core.
    ``so_far`` (float64) is what was added to each row before. Adds to ``sums`` float64[4]: what the
    changes pass on to other rows, at most; z * reach; z * mass, and what of it the strip under way
    has so far.
    """
    rows, links, weights = core
    begin, here, first = at
    change, reach, mass = sums[0], sums[1], sums[3]
    for i in range(facts.shape[0]):
        end = rows[np.uint64(i) + _ONE64]
        gathered = _added(so_far[i], links, weights, begin, end, z)
        begin = end
        place = np.uint64(i) + here
        new = (damping * gathered + facts[i, BASE]) * facts[i, SCALE]
        passed = 1.0 / facts[i, SCALE] - facts[i, MASS]  # damping * what links to other rows have
        change += abs((new - np.float64(z[place])) * passed)
        mass += new * facts[i, MASS]
        reach += new * facts[i, REACH]
        z[place] = new
        if (np.uint64(i) + first) & STRIP == STRIP:
            sums[2] += mass
            mass = 0.0
    sums[0], sums[1], sums[3] = change, reach, mass


@kernel(W=("None", "F32s"), T=("F32", "F64"))
def collect(core: tuple[U64s, U32s, W], begin: U64, end: U64, z: Ts, sums: OutF64s) -> None:
    """Add links number ``begin`` to ``end`` to the ``sums`` (float64) of their rows."""
    rows, links, weights = core
    for i in range(sums.size):
        stop = rows[np.uint64(i) + _ONE64]
        stop = end if stop > end else stop
        sums[i] = _added(sums[i], links, weights, begin, stop, z)
        begin = stop


@kernel(W=("None", "F32s"), T=("F32", "F64"))
def gather_tails(tails: tuple[U64s, U32s, W], degrees: U32s, z: Ts, sums: OutF64s) -> None:
    """``sums`` (float64[nodes]): what dangling nodes get by ``z``, 0 for all others."""
    rows, links, weights = tails
    begin = tail = np.uint64(0)
    for i in range(sums.size):
        gathered = 0.0
        if degrees[i] == _ZERO32:
            tail += _ONE64
            end = rows[tail]
            gathered = _added(0.0, links, weights, begin, end, z)
            begin = end
        sums[i] = gathered


@kernel({"W": "F32s", "C": "F32"}, {"W": "None", "C": "U8"})
def gather_rows(
    core: tuple[U64s, U32s, W], number: U32s, loops: Cs, z: F64s, sums: OutF64s
) -> None:
    """``sums`` (float64[nodes]): what the nodes of the core get by ``z``; others are left alone."""
    rows, links, weights = core
    begin = row = np.uint64(0)
    for i in range(sums.size):
        if number[i] != NO_NODE:
            own = np.float64(loops[row]) * np.float64(z[row])
            row += _ONE64
            end = rows[row]
            sums[i] = _added(0.0, links, weights, begin, end, z) + own
            begin = end


@kernel(D=("U32", "F64"), T=("F32", "F64"))
def expand(
    number: U32s, strengths: Ds, degrees: U32s, z: Ts, sums: F64s, damping: F64, y: OutF64s
) -> None:
    """y of some nodes from the core's z and what dangling nodes get: ``y`` (float64) holds their
    teleport and receives the result.
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
    """Add |sums + rest| over those of some nodes that are not GONE to ``total[0]``.

    With z = damping * x / strength and rest = teleport - x that is the L1 residual of x.
    """
    added = total[0]
    for i in range(rest.size):
        if degrees[i] != GONE:
            added += abs(sums[i] + rest[i])
    total[0] = added


# -- rank extrapolate --------------------------------------------------------------------


BEFORE = 5
"""Iterates that are looked at besides the last one."""


@kernel(T=("F32", "F64"))
def products(before: tuple[Ts, Ts, Ts, Ts, Ts], z: Ts, facts: F64s2, found: OutF64s2) -> None:
    """Write the products of the steps of some rows, each with each, to ``found`` float64[BEFORE,
    BEFORE], below the diagonal and on it. ``before`` has the iterates before ``z``, oldest first.
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
    """Replace some rows of ``z`` by the combination of the iterates after the first, in these
    ``shares`` (float64[BEFORE]). What would be negative is 0, to which the truth is nearer.
    """
    _, x1, x2, x3, x4 = before
    s1, s2, s3, s4, s5 = shares[0], shares[1], shares[2], shares[3], shares[4]
    for i in range(z.size):
        ahead = s1 * np.float64(x1[i]) + s2 * np.float64(x2[i]) + s3 * np.float64(x3[i])
        ahead += s4 * np.float64(x4[i]) + s5 * np.float64(z[i])
        z[i] = ahead if ahead > 0.0 else 0.0
