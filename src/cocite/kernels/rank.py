"""PageRank's kernels: the graph without its dangling nodes, and Gauss-Seidel sweeps on it.

Nodes without out-links (*dangling*) pass nothing on, so no other rank depends on theirs: the
iteration runs on the *core*, the nodes with out-links, and dangling nodes are computed once, at
the end. With z[u] = y[u] / out-degree(u), a sweep solves row after row of

    y[v] = damping * sum of z[u] over in-neighbours u != v  +  damping * z[v] if v links to itself
           + base[v]

for y[v], using each new value at once (Gauss-Seidel); the link of v to itself is solved for and
not iterated: it is in ``scale`` and not among the core's links.

A caller goes over the graph block by block: arrays by row are the block's part of them, offsets
are absolute, and ``first`` is the block's first row where a whole array is indexed too. Sums
are carried from call to call, so that where the blocks are cut does not change a bit of them.

Cost: a pass over the core's links a sweep, about a nanosecond a link where ids have locality.
Source: block sweeps after Haveliwala, *Efficient computation of PageRank*, 3; lumping of dangling
nodes after Lee, Golub, Zenios 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper, kernel

__all__ = [
    "FACTS",
    "GONE",
    "NO_NODE",
    "compact",
    "contribute",
    "describe",
    "expand",
    "lose_links",
    "number_core",
    "residual",
    "step",
    "sweep",
    "weigh",
]

NO_NODE = np.uint32(0xFFFFFFFF)
"""The core number of a node that is not in the core."""
GONE = np.uint32(0xFFFFFFFF)
"""The out-degree of a node that was removed."""

BASE, SCALE, MASS, REACH = range(4)
FACTS = 4
"""float64 words of a core row: what it gets besides its in-links; what turns y into z; and its
weights in the balance of the mass and in the sum of all y."""

_ONE32, _ONE64, _ONE8 = np.uint32(1), np.uint64(1), np.uint8(1)

STRIP = np.uint64(1023)
"""Rows of a strip, less one: sums are made strip by strip."""


@kernel
def lose_links(in_offsets: Any, in_sources: Any, gone: Any, out: Any) -> None:
    """Count into ``out`` (uint32[nodes]) each node's links to rows that are ``gone`` (uint8)."""
    for row in range(gone.size):
        if gone[row]:
            for link in range(in_offsets[row], in_offsets[np.uint64(row) + _ONE64]):
                out[in_sources[link]] += _ONE32


@kernel
def number_core(degrees: Any, number: Any) -> Any:
    """Number the nodes that link to any and are not GONE; returns how many there are."""
    count = np.uint32(0)
    for node in range(number.size):
        if degrees[node] == np.uint32(0) or degrees[node] == GONE:
            number[node] = NO_NODE
        else:
            number[node] = count
            count = np.uint32(count + _ONE32)
    return count


@kernel
def compact(
    in_offsets: Any,
    in_sources: Any,
    number: Any,
    first: Any,
    state: Any,
    rows: Any,
    links: Any,
    loops: Any,
) -> None:
    """Append the core's links of some rows, renumbered.

    ``state`` uint64[2] holds rows and links so far; ``rows`` uint64[core + 1] begins with 0,
    ``links`` uint32[links of the core, or more], ``loops`` uint8[core] is 1 where a node links to
    itself: such links are left out.
    """
    row, count = state[0], state[1]
    for i in range(in_offsets.size - 1):
        node = np.uint64(i) + np.uint64(first)
        if number[node] == NO_NODE:
            continue
        loops[row] = np.uint8(0)
        for link in range(in_offsets[i], in_offsets[np.uint64(i) + _ONE64]):
            source = in_sources[link]
            if source == node:
                loops[row] = _ONE8
            elif number[source] != NO_NODE:
                links[count] = number[source]
                count += _ONE64
        row += _ONE64
        rows[row] = count
    state[0], state[1] = row, count


@kernel
def describe(
    number: Any, degrees: Any, leaving: Any, loops: Any, where: Any, damping: Any, facts: Any
) -> None:
    """Fill ``facts`` (float64[core, FACTS]) for the nodes of one block, whose part the first three
    and ``where`` are; ``leaving`` counts links to dangling nodes.
    """
    for node in range(number.size):
        row = number[node]
        if row != NO_NODE:
            out, lost = np.float64(degrees[node]), damping * np.float64(leaving[node])
            facts[row, BASE] = where[node]
            facts[row, SCALE] = 1.0 / (out - damping * np.float64(loops[row]))
            facts[row, MASS] = (1.0 - damping) * out + lost
            facts[row, REACH] = out + lost


@kernel
def contribute(number: Any, degrees: Any, values: Any, factor: Any, z: Any) -> None:
    """z = factor * value / out-degree for the core nodes of one block."""
    for node in range(number.size):
        if number[node] != NO_NODE:
            z[number[node]] = factor * values[node] / np.float64(degrees[node])


@kernel
def weigh(z: Any, facts: Any, first: Any, sums: Any) -> None:
    """Add the mass of one block of the core's rows, and their teleport, to ``sums`` float64[2, 2].

    Sums of a strip of rows, then of strips: what is lost to rounding would be the floor of the
    residual. ``sums[1]`` is what the strip under way has so far.
    """
    mass, owed = sums[1, 0], sums[1, 1]
    for i in range(facts.shape[0]):
        row = np.uint64(i) + np.uint64(first)
        mass += np.float64(z[row]) * facts[i, MASS]
        owed += facts[i, BASE]
        if row & STRIP == STRIP:
            sums[0, 0] += mass
            sums[0, 1] += owed
            mass = owed = 0.0
    sums[1, 0], sums[1, 1] = mass, owed


@kernel
def sweep(rows: Any, links: Any, z: Any, facts: Any, first: Any, damping: Any, sums: Any) -> None:
    """Gauss-Seidel over the rows of one block of the core, ``z`` (float32 or 64) in place.

    Adds to ``sums`` float64[4]: the L1 change of y, z * reach, z * mass, and what of the latter the
    strip of rows under way has so far (``weigh``).
    """
    change, reach, mass = sums[0], sums[1], sums[3]
    for i in range(facts.shape[0]):
        gathered = 0.0
        for link in range(rows[i], rows[np.uint64(i) + _ONE64]):
            gathered += np.float64(z[links[link]])
        row = np.uint64(i) + np.uint64(first)
        new = (damping * gathered + facts[i, BASE]) * facts[i, SCALE]
        change += abs(new - np.float64(z[row])) / facts[i, SCALE]
        mass += new * facts[i, MASS]
        reach += new * facts[i, REACH]
        z[row] = new
        if row & STRIP == STRIP:
            sums[2] += mass
            mass = 0.0
    sums[0], sums[1], sums[3] = change, reach, mass


@helper
def _gather(in_sources: Any, begin: Any, end: Any, number: Any, z: Any) -> Any:
    gathered = 0.0
    for link in range(begin, end):
        source = number[in_sources[link]]
        if source != NO_NODE:
            gathered += np.float64(z[source])
    return gathered


@kernel
def expand(
    in_offsets: Any,
    in_sources: Any,
    number: Any,
    z: Any,
    degrees: Any,
    first: Any,
    damping: Any,
    y: Any,
) -> None:
    """All of y from the core's z, for the nodes of one block.

    ``y`` (float64[nodes of the block]) holds their teleport and receives the result.
    """
    for i in range(y.size):
        row = number[np.uint64(i) + np.uint64(first)]
        if row != NO_NODE:
            y[i] = np.float64(z[row]) * np.float64(degrees[i])
        elif degrees[i] == np.uint32(0):
            end = in_offsets[np.uint64(i) + _ONE64]
            y[i] += damping * _gather(in_sources, in_offsets[i], end, number, z)
        else:
            y[i] = 0.0


@kernel
def step(
    in_offsets: Any, in_sources: Any, number: Any, z: Any, degrees: Any, following: Any
) -> None:
    """Power iteration for the nodes of one block: adds gathered z to ``following`` (float64).

    It holds what comes from elsewhere; nodes that are GONE get 0. With z = damping * x / out-degree
    it receives G x.
    """
    for i in range(following.size):
        if degrees[i] == GONE:
            following[i] = 0.0
        else:
            end = in_offsets[np.uint64(i) + _ONE64]
            following[i] += _gather(in_sources, in_offsets[i], end, number, z)


@kernel
def residual(
    in_offsets: Any, in_sources: Any, number: Any, z: Any, degrees: Any, rest: Any, sums: Any
) -> None:
    """Add |gathered z + rest| over the nodes of one block that are not GONE to ``sums[0]``.

    With z = damping * x / out-degree and rest = teleport - x that is the L1 residual of x.
    """
    total = sums[0]
    for i in range(rest.size):
        if degrees[i] != GONE:
            end = in_offsets[np.uint64(i) + _ONE64]
            total += abs(_gather(in_sources, in_offsets[i], end, number, z) + rest[i])
    sums[0] = total
