"""PageRank's kernels: the graph without its dangling nodes, and Gauss-Seidel sweeps on it.

Nodes without out-links (*dangling*) pass nothing on, so no other rank depends on theirs: the
iteration runs on the *core*, the nodes with out-links, and dangling nodes are computed once, at
the end. With z[u] = y[u] / out-degree(u), a sweep solves row after row of

    y[v] = damping * sum of z[u] over in-neighbours u != v  +  damping * z[v] if v links to itself
           + base[v]

for y[v], using each new value at once (Gauss-Seidel); the link of v to itself is solved for and
not iterated: it is in ``scale`` and not among the core's links.

Cost: a pass over the core's links a sweep, about a nanosecond a link where ids have locality.
Source: block sweeps after Haveliwala, *Efficient computation of PageRank*, 3; lumping of dangling
nodes after Lee, Golub, Zenios 2003.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import kernel

__all__ = ["NO_NODE", "compact", "lose_links", "pull", "sweep"]

NO_NODE = np.uint32(0xFFFFFFFF)
"""The core number of a node that is not in the core."""

_ONE32, _ONE64, _ONE8 = np.uint32(1), np.uint64(1), np.uint8(1)


@kernel
def lose_links(in_offsets: Any, in_sources: Any, gone: Any, out: Any) -> None:
    """Count into ``out`` (uint32[nodes]) each node's links to nodes that are ``gone`` (uint8)."""
    for node in range(gone.size):
        if gone[node]:
            for link in range(in_offsets[node], in_offsets[np.uint64(node) + _ONE64]):
                out[in_sources[link]] += _ONE32


@kernel
def compact(
    in_offsets: Any, in_sources: Any, number: Any, offsets: Any, sources: Any, loops: Any
) -> Any:
    """The core's links, renumbered: ``number`` uint32[nodes] is a node's core number or NO_NODE.

    Fills ``offsets`` uint64[core + 1], ``sources`` uint32[links of the core, or more] and ``loops``
    uint8[core], 1 where a node links to itself; such links are left out. Returns the links.
    """
    links = np.uint64(0)
    row = np.uint64(0)
    offsets[0] = links
    for node in range(number.size):
        if number[node] == NO_NODE:
            continue
        loops[row] = np.uint8(0)
        for link in range(in_offsets[node], in_offsets[np.uint64(node) + _ONE64]):
            source = in_sources[link]
            if source == node:
                loops[row] = _ONE8
            elif number[source] != NO_NODE:
                sources[links] = number[source]
                links += _ONE64
        row += _ONE64
        offsets[row] = links
    return links


@kernel
def sweep(
    offsets: Any, sources: Any, z: Any, base: Any, scale: Any, mass: Any, damping: Any
) -> Any:
    """One Gauss-Seidel pass over the core; returns (L1 change of y, sum of z * mass).

    ``z`` (float32 or float64, [core]) is updated in place, sums are double. ``base`` is what a row
    gets besides, ``scale`` what turns y into z: 1 / out-degree, or 1 / (out-degree - damping) for
    a node that links to itself.
    """
    change, total = 0.0, 0.0
    for row in range(scale.size):
        gathered = 0.0
        for link in range(offsets[row], offsets[np.uint64(row) + _ONE64]):
            gathered += np.float64(z[sources[link]])
        new = (damping * gathered + base[row]) * scale[row]
        change += abs(new - np.float64(z[row])) / scale[row]
        total += new * mass[row]
        z[row] = new
    return change, total


@kernel
def pull(in_offsets: Any, in_sources: Any, z: Any, wanted: Any, out: Any) -> None:
    """``out[v]`` = sum of ``z[u]`` over in-neighbours u, for the nodes v that are ``wanted``."""
    for node in range(wanted.size):
        if wanted[node]:
            gathered = 0.0
            for link in range(in_offsets[node], in_offsets[np.uint64(node) + _ONE64]):
                gathered += np.float64(z[in_sources[link]])
            out[node] = gathered
