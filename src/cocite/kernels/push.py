"""Personalized PageRank by forward push: how much time a restarting walk spends at each node.

Every node has an *estimate* p and a *residual* r, the part of the walk that is not yet distributed;
initially r(source) = 1. A *push* of v distributes r(v), with share(v, w) = 1 / degree(v), or the
weight of the link over the sum of v's weights:

    p(v) += (1 - damping) r(v);    r(w) += damping r(v) share(v, w);    r(v) = 0

A node without neighbors passes its residual to the source, which is pushed once. Residual that
returns to the source restarts the walk, which gives a geometric series. With r = r(source), and
``open`` the sum of all other residuals,

    p(v) / (1 - r)  <=  share(v)  <=  (p(v) + open) / (1 - r)

Sweeps push the nodes reached, in the order in which they were first reached, except those whose
residual per link is below 9/10 of the mean. So each sweep pushes at least a tenth of ``open``.
``values`` float64[nodes, 2] are p and r, ``used`` uint32[nodes + 1] the nodes reached, in order,
and ``state`` float64[6] the progress.

Costs about 3 ns per link pushed, and log(1 / tolerance) sweeps over the nodes reached. Source:
Andersen, Chung, Lang 2006, *Local graph partitioning using PageRank vectors*, section 3; sweeps as
in Wu, Gan, Wei, Zhang 2021, *Unifying the global and local approaches*, section 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.constants import GRAINS
from cocite.kernels._kernel import helper, kernel
from cocite.kernels._types import *
from cocite.kernels.links import row_of

DAMAGED, DONE, MORE = -1, 0, 1
"""Outcomes of a call: an offset or a node id is out of range, the push has ended, or there is more
to do.
"""
STATE = 6
"""Size of ``state``."""
_AT, REACHED, _THRESHOLD, _COST, _DAMPING, _TOLERANCE = range(STATE)
_BELOW_MEAN = 0.9


@kernel
def start(
    source: I64, damping: F64, tolerance: F64, values: OutF64s2, used: OutU32s, state: OutF64s
) -> None:
    """Assign the whole residual to ``source`` (int64), and prepare the first sweep."""
    values[source, 1] = 1.0
    used[0] = np.uint32(source)
    state[_AT], state[REACHED], state[_THRESHOLD], state[_COST] = 0.0, 1.0, 0.0, 0.0
    state[_DAMPING], state[_TOLERANCE] = damping, tolerance


@helper
def _open(values: Any, used: Any, reached: Any) -> Any:
    """Return the sum of all residuals except that of the source, the first node reached."""
    total = 0.0
    for i in range(1, reached):
        total += values[used[i], 1]
    return total


@helper
def _total(weights: Any, begin: Any, end: Any) -> Any:
    """Return the sum of a row's weights, NaN if one is not positive and finite."""
    total, fine = 0.0, True
    for link in range(begin, end):
        weight = np.float64(weights[link])
        fine = fine and 0.0 < weight < np.inf
        total += weight
    return total if fine else np.nan


@helper
def _push_node(
    neighbors: Any,
    weights: Any,
    row: Any,
    damping: Any,
    node: Any,
    values: Any,
    used: Any,
    reached: Any,
) -> Any:
    """Push a node with links ``row`` (begin, end); return the number reached, -1 if invalid."""
    begin, end = row
    amount = damping * values[node, 1]
    values[node, 0] += (1.0 - damping) * values[node, 1]
    values[node, 1] = 0.0
    if begin == end:
        values[np.int64(used[0]), 1] += amount
        return np.int64(reached)
    weighted = weights.size > 0
    total = _total(weights, begin, end) if weighted else np.float64(end - begin)
    if not total > 0.0:
        return np.int64(-1)
    share = amount / total
    for link in range(begin, end):
        other = np.int64(neighbors[link])
        if other >= values.shape[0]:
            return np.int64(-1)
        given = share * np.float64(weights[link]) if weighted else share
        before = values[other, 1]
        used[reached] = np.uint32(other)  # no branch: it would be unpredictable
        values[other, 1] = before + given
        reached += 1 if (before == 0.0) & (values[other, 0] == 0.0) else 0
    return reached


@kernel
def spread(
    offsets: U64s,
    neighbors: U32s,
    weights: F32s,
    reach: I64,
    values: OutF64s2,
    used: OutU32s,
    state: OutF64s,
) -> I64:
    """Push each unpushed node once, in the order reached; return DONE or DAMAGED. Stops when more
    than ``reach`` (int64) nodes are reached, or all have been pushed.
    """
    damping, at, reached = state[_DAMPING], 1, np.int64(state[REACHED])
    while at < reached <= reach:
        node = np.int64(used[at])
        at += 1
        begin, end = row_of(offsets, node)
        if not (0 <= begin <= end <= neighbors.size):
            return DAMAGED
        if values[node, 0] > 0.0 or values[node, 1] == 0.0:
            continue
        row = begin, end
        reached = _push_node(neighbors, weights, row, damping, node, values, used, reached)
        if reached < 0:
            return DAMAGED
    state[REACHED] = np.float64(reached)
    return DONE


@kernel
def push(
    offsets: U64s,
    neighbors: U32s,
    weights: F32s,
    limit: I64,
    values: OutF64s2,
    used: OutU32s,
    state: OutF64s,
) -> I64:
    """Push until the error is within the tolerance, or about ``limit`` links have been read.
    ``weights`` is float32[links], or empty for equal weights. Returns DONE, MORE or DAMAGED.
    """
    source = np.int64(used[0])
    at, reached = np.int64(state[_AT]), np.int64(state[REACHED])
    threshold, cost = state[_THRESHOLD], state[_COST]
    damping, work, result = state[_DAMPING], 0, MORE
    while work < limit:
        if at == reached:
            left = _open(values, used, reached)
            if left <= state[_TOLERANCE] * (1.0 - values[source, 1]):
                result = DONE
                break
            threshold, cost = _BELOW_MEAN * left / cost, 0.0
            work += reached
            at = 1
        node = np.int64(used[at])
        at += 1
        begin, end = row_of(offsets, node)
        if not (0 <= begin <= end <= neighbors.size):
            return DAMAGED
        size = np.float64(1 + end - begin)
        residual = values[node, 1]
        if node == source:
            threshold = residual / (2.0 * size)  # for the first sweep, which has no mean yet
        else:
            cost += size
        if residual < threshold * size or residual == 0.0:
            continue
        work += 1 + end - begin
        row = begin, end
        reached = _push_node(neighbors, weights, row, damping, node, values, used, reached)
        if reached < 0:
            return DAMAGED
    state[_AT], state[REACHED] = np.float64(at), np.float64(reached)
    state[_THRESHOLD], state[_COST] = threshold, cost
    return result


@kernel
def finish(values: OutF64s2, used: U32s, state: F64s) -> F64:
    """Turn the estimates into grains, and reset the residuals; return the error bound."""
    reached, source = np.int64(state[REACHED]), used[0]
    rest = 1.0 - values[source, 1]
    bound = _open(values, used, reached) / rest
    for i in range(reached):
        node = used[i]
        values[node, 0] = np.rint(values[node, 0] / rest * GRAINS)
        values[node, 1] = 0.0
    return bound


# -- ppr-symmetric -----------------------------------------------------------------------

# From a push along links in both directions, with d the degree, scores are
#
#     sqrt(d(u) / d(v)) / (1 - damping) * (p(v) + (1 - damping) r(v)) / (1 - r),    at most 1
#
# because part of the residual stays at v. d(w) share(w, v) = d(v) share(v, w), so a score is too
# low by at most sqrt(d(u) d(v)) / (1 - damping) * e / (1 - r), with e the largest r(w) / d(w) over
# w other than u. Source: see ``measures/ppr.py``.


@kernel
def finish_symmetric(
    damping: F64, degrees: F64s, values: OutF64s2, used: U32s, reached: I64
) -> F64:
    """Turn the estimates of ``used[:reached]`` into grains, and reset residuals.

    ``values`` float64[nodes, 2] are estimates and residuals; ``degrees`` is float64[nodes]. Returns
    the error bound of v divided by sqrt(d(v)), or NaN if a degree is not positive.
    """
    source = used[0]
    rest = 1.0 - values[source, 1]
    scale = np.sqrt(degrees[source]) / (1.0 - damping) / rest
    largest, sound = 0.0, degrees[source] > 0.0
    for i in range(reached):
        node = used[i]
        degree = degrees[node]
        residual = values[node, 1]
        sound = sound and degree > 0.0
        if i > 0:
            largest = max(largest, residual / degree)
        share = values[node, 0] + (1.0 - damping) * residual
        values[node, 0] = min(np.rint(scale / np.sqrt(degree) * share * GRAINS), GRAINS)
        values[node, 1] = 0.0
    return scale * largest if sound else np.nan


# -- neighborhoods -----------------------------------------------------------------------

# A breadth-first search marks each node with its distance plus 1. A node at distances d from u and
# e from v is in both neighborhoods for k >= max(d, e), so one pass counts shared nodes for every k.
# Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.3 (Definition 3).


TOO_MANY = -1
"""Returned if the limit on links was exceeded."""


@kernel
def reachable(
    offsets: U64s,
    neighbors: U32s,
    node: I64,
    other: U8s,
    distances: OutU8s,
    found: OutU32s,
    most: I64,
    out: OutI64s2,
) -> I64:
    """Count the nodes in the neighborhoods of ``node`` (int64) for k = 1, ..., length.

    ``distances`` uint8[nodes], all 0, receives the marks, and keeps them if ``other`` is empty.
    Otherwise, ``other`` uint8[nodes] has the marks of another node, and ``distances`` is reset.
    ``found`` uint32[nodes] is scratch. ``out`` int64[length, 2] receives the size of each
    neighborhood, and of its intersection with that of the other node for the same k. Returns the
    number of links read, at most ``most``, or TOO_MANY.
    """
    found[0] = np.uint32(node)
    distances[node] = 1
    count, first, read = 1, 0, 0
    out[:] = 0
    for step in range(out.shape[0]):
        last = count
        for i in range(first, last):
            at = np.int64(found[i])
            begin, end = row_of(offsets, at)
            read += end - begin
            if read > most:
                break
            for link in range(begin, end):
                to = neighbors[link]
                if distances[to] == 0:
                    distances[to] = np.uint8(step + 2)
                    found[count] = to
                    count += 1
        if read > most:
            break
        first = last
        out[step, 0] = count
    if other.size > 0:
        for i in range(count):
            at = np.int64(found[i])
            if other[at] != 0:
                ring = max(np.int64(other[at]), np.int64(distances[at])) - 1
                out[max(ring, 1) - 1, 1] += 1
            distances[at] = 0
        for step in range(1, out.shape[0]):
            out[step, 1] += out[step - 1, 1]
    return TOO_MANY if read > most else read
