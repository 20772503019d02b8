"""Linearized SimRank, one row or one diagonal entry at a time, with bounds on omitted terms.

    S = sum over l of c**l Q**l D (Q')**l          Q(v, w) = 1 / d(v) for each link of v's row to w

    forward    x[0] = u,         x[l + 1] = Q' x[l]
    backward   y[L] = D x[L],    y[l] = c Q y[l + 1] + D x[l];     y[0] is the row of S

*Rows* are the links of a node: in-neighbors for the measure on in-links. Small terms are omitted:
the exact score is at least the computed score, and exceeds it by at most the sum of two bounds:

* forward: not pushing x[l](w) from w lowers a score by at most c**l x[l](w) limit(l, w). The limit
  bounds (Q**l (S - D))(v, w) for all v: the mean of S - D for w and the end of l steps from v.
* backward: omitting entries of y[l] lowers a score by at most c**l times the largest of them,
  because Q averages.

A *table*, float32[nodes, 1 + J], has D in column 0, then the limits of levels 1, 2, ..., J - 1, and
of all levels from J on. Costs about 4 ns per link of pushed nodes. Source: Maehara, Kusumi,
Kawarabayashi 2014; Wang et al. 2020 (ExactSim). The limits are our own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cocite.kernels._kernel import helper, kernel, shared
from cocite.kernels._types import *
from cocite.kernels.links import add_to, row_of
from cocite.kernels.totals import enter

MOST_LEVELS = 128
"""Maximum number of steps forward; the bound includes what remains after them."""
OVERFLOW = -1


class Rows(NamedTuple):
    """``offsets`` uint64[nodes + 1] and ``neighbors`` uint32[links]."""

    offsets: U64s
    neighbors: U32s


class RunSpace(NamedTuple):
    """Scratch: ``values`` float64[2, nodes], zero between calls; ``lists`` uint32[2, nodes + 1].

    ``nodes`` uint32[any] and ``amounts`` float64[any] receive the levels of a forward run; level l
    is from ``starts[l]`` to ``starts[l + 1]`` (int64[MOST_LEVELS + 2]).
    """

    values: OutF64s2
    lists: OutU32s2
    nodes: OutU32s
    amounts: OutF64s
    starts: OutI64s


@shared
def in_vain(rows: Rows, threshold: F64, target: F64) -> Bool:
    """Return whether a lower threshold cannot improve the bound.

    This holds if omitting the threshold at every link and level adds only a small part of the
    bound; the rest comes from levels that are not computed.
    """
    return 16.0 * threshold * MOST_LEVELS * rows.neighbors.size < target


@helper
def spread(rows: Any, begin: Any, end: Any, share: Any, values: Any, found: Any, count: Any) -> Any:
    """Add ``share`` to all neighbors in a row; return the new length of ``found``."""
    for link in range(begin, end):
        count = add_to(values, found, count, rows.neighbors[link], share)
    return count


@kernel
def forward(
    rows: Rows, table: F32s2, node: I64, decay: F64, threshold: F64, space: RunSpace
) -> tuple[I64, F64, I64]:
    """Fill the levels of ``space``; return (last level or OVERFLOW, bound, links read)."""
    values, found = space.values[0], space.lists[0]
    space.nodes[0], space.amounts[0] = np.uint32(node), 1.0
    space.starts[0], space.starts[1] = 0, 1
    last = table.shape[1] - 1
    level, bound, worth, work = 0, 0.0, 1.0, 0
    while True:
        column, lost, count = min(level, last), 0.0, 0
        for i in range(space.starts[level], space.starts[level + 1]):
            at, amount = space.nodes[i], space.amounts[i]
            begin, end = row_of(rows.offsets, at)
            if begin == end:
                continue
            risk = amount * table[at, column] if level > 0 else np.inf
            if level == MOST_LEVELS or worth * risk <= threshold * (end - begin):
                lost += risk
                continue
            work += end - begin
            count = spread(rows, begin, end, amount / (end - begin), values, found, count)
        bound += worth * lost
        first = space.starts[level + 1]
        fits = first + count <= space.nodes.size
        for i in range(count):
            at = found[i]
            if fits:
                space.nodes[first + i], space.amounts[first + i] = at, values[at]
            values[at] = 0.0
        if not fits:
            return OVERFLOW, bound, work
        if count == 0:
            return level, bound, work
        worth *= decay
        level += 1
        space.starts[level + 1] = first + count


@helper
def _push_back(
    rows: Any, columns: Any, begin: Any, end: Any, amount: Any, values: Any, found: Any, count: Any
) -> Any:
    """Add ``amount`` / its degree to each node in a column; return the new length of ``found``."""
    for link in range(begin, end):
        node = columns.neighbors[link]
        first, stop = row_of(rows.offsets, node)
        count = add_to(values, found, count, node, amount / (stop - first))
    return count


@helper
def _pull(rows: Any, decay: Any, old: Any, new: Any, found: Any) -> Any:
    """Set new = decay Q old, row by row; return the new length of ``found``."""
    count = 0
    for node in range(rows.offsets.size - 1):
        begin, end = row_of(rows.offsets, node)
        total = 0.0
        for link in range(begin, end):
            total += old[rows.neighbors[link]]
        if total != 0.0:
            new[node] = decay * total / (end - begin)
            found[count] = np.uint32(node)
            count += 1
    return count


@kernel
def backward(
    rows: Rows, columns: Rows, table: F32s2, level: I64, decay: F64, floor: F64, space: RunSpace
) -> tuple[I64, I64, F64, I64]:
    """Compute the row of scores from the levels up to ``level``.

    Omits entries that cost up to ``floor``. ``columns`` has the links of ``rows`` by their other
    end. Returns (index of the list and values that hold the row, its length, bound, links
    read).
    """
    here, count, bound, work = 0, 0, 0.0, 0
    worth = decay**level
    links = rows.neighbors.size
    while True:
        old, listed = space.values[here], space.lists[here]
        for i in range(space.starts[level], space.starts[level + 1]):
            at = space.nodes[i]
            if old[at] == 0.0:
                listed[count] = at
                count += 1
            old[at] += table[at, 0] * space.amounts[i]
        if level == 0:
            return here, count, bound, work
        new, found = space.values[1 - here], space.lists[1 - here]
        ahead = 0
        for i in range(count):
            begin, end = row_of(columns.offsets, listed[i])
            if worth * old[listed[i]] > floor:
                ahead += end - begin
        if 2 * ahead > links:
            have = _pull(rows, decay, old, new, found)
            work += links
            for i in range(count):
                old[listed[i]] = 0.0
        else:
            have, lost = 0, 0.0
            for i in range(count):
                at = listed[i]
                amount = old[at]
                old[at] = 0.0
                begin, end = row_of(columns.offsets, at)
                if begin == end:
                    continue
                if worth * amount <= floor:
                    lost = max(lost, amount)
                    continue
                have = _push_back(rows, columns, begin, end, decay * amount, new, found, have)
            bound += worth * lost
            work += ahead
        here, count = 1 - here, have
        worth /= decay
        level -= 1


@kernel
def deposit(
    space: RunSpace,
    here: I64,
    size: I64,
    grains: F64,
    node: I64,
    totals: OutF64s2,
    touched: OutU32s,
    count: I64,
) -> I64:
    """Add the row from ``backward``, except the entry of ``node``, to the totals; clear the space.

    ``grains`` is the number of grains in a score of 1; ``totals`` float64[nodes, 2] is nonzero for
    the nodes ``touched[:count]``. Returns the new ``count``.
    """
    values, listed = space.values[here], space.lists[here]
    for i in range(size):
        at = listed[i]
        amount = np.rint(values[at] * grains)
        values[at] = 0.0
        if at != node and amount != 0.0:
            count = enter(at, amount, 0.0, totals, touched, count)
    return count


# -- diagonal ----------------------------------------------------------------------------

# The error of the diagonal, and bounds on omitted terms. For any diagonal D' instead of D, let
# S' = sum over l of c**l Q**l D' (Q')**l, and let r = diag(S') - 1 be its *residual*. Because
# S' = c Q S' Q' + D', S' - S obeys SimRank's own recursion off the diagonal, and is r on it.
# If walks from u and v first meet at time T at node X, this gives
#
#     S'(u, v) = E[c**T (1 + r(X))]
#     S'(u, v) / (1 + max r) <= s(u, v) <= S'(u, v) / (1 + min r)
#
# for u != v and any D'. ``residuals`` bounds S'(v, v) from both sides by pushing from v, using
# S'(v, v) = sum over l of c**l sum over w of x[l](w)**2 D'(w).
#
# *Limits* bound what is not pushed. Let peak(j, w) = max over v of (Q**j)(v, w), the largest
# probability that a walk is at w after j steps, which never grows with j. For D' <= 1
#
#     H(j, w) = max over v of (Q**j S')(v, w) <= c mean of H(j + 1, a) + peak(j, w)
#     limit(l, w) = c mean of H(l + 1, a)
#
# with means over the in-neighbors a of w: limits bound c times the mean score of w's neighbors with
# the end of l + 1 steps from any node. Where walks spread, peaks fall fast, and so do limits. They
# are our own.


_SHARPER = 8.0


@kernel
def average(rows: Rows, values: F64s, decay: F64, out: OutF64s) -> None:
    """Set out[v] = decay * mean of ``values`` over the row of v, 0 if empty (all float64)."""
    for node in range(out.size):
        begin, end = row_of(rows.offsets, node)
        total = 0.0
        for link in range(begin, end):
            total += values[rows.neighbors[link]]
        out[node] = decay * total / (end - begin) if end > begin else 0.0


@kernel
def peaks(
    rows: Rows, columns: Rows, first: I64, floor: F64, space: RunSpace, out: OutF64s2
) -> None:
    """Compute bounds on peak(1, w), peak(2, w), ... for w = first, first + 1, ... into ``out``.

    ``out`` is float64[nodes, J]. Runs backward from w, omitting entries up to ``floor``; the
    largest omitted entry is added to the bound.
    """
    for k in range(out.shape[0]):
        here, count, base = 0, 1, 0.0
        space.values[0, first + k] = 1.0
        space.lists[0, 0] = np.uint32(first + k)
        for step in range(out.shape[1]):
            old, listed = space.values[here], space.lists[here]
            new, found = space.values[1 - here], space.lists[1 - here]
            have, lost, most = 0, 0.0, 0.0
            for i in range(count):
                at = listed[i]
                amount = old[at]
                old[at] = 0.0
                if amount <= floor:
                    lost = max(lost, amount)
                    continue
                begin, end = row_of(columns.offsets, at)
                have = _push_back(rows, columns, begin, end, amount, new, found, have)
            base += lost
            for i in range(have):
                most = max(most, new[found[i]])
            out[k, step] = min(1.0, most + base)
            here, count = 1 - here, have
        for i in range(count):
            space.values[here, space.lists[here, i]] = 0.0


@helper
def _square(rows: Any, table: Any, node: Any, tune: Any, space: Any, levels: Any, out: Any) -> Any:
    """Compute S'(node, node) into ``out``: the computed part, a bound on the missing part, and a
    guess at it. ``tune`` is (decay, threshold); ``levels`` is scratch, float64[3, MOST_LEVELS + 2].
    The guess is, for each level, the bound on the missing part times the ratio of value to bound in
    the pushed part.
    """
    decay, threshold = tune
    values, found, amounts = space.values[0], space.lists[0], space.values[1]
    last = table.shape[1] - 1
    count, worth, work, level = 1, 1.0, 0, 0
    found[0], amounts[0] = np.uint32(node), 1.0
    while True:
        column, here, have = min(level, last), space.lists[level % 2], 0
        ahead = space.lists[1 - level % 2]
        inside, lost, kept = 0.0, 0.0, 0.0
        for i in range(count):
            at, amount = here[i], amounts[i]
            inside += table[at, 0] * amount * amount
            begin, end = row_of(rows.offsets, at)
            if begin == end:
                continue
            risk = amount * table[at, column] if level > 0 else 1.0
            if level == MOST_LEVELS or (level > 0 and worth * risk <= threshold * (end - begin)):
                lost += risk
                continue
            kept += risk
            work += end - begin
            have = spread(rows, begin, end, amount / (end - begin), values, ahead, have)
        levels[0, level] = worth * inside
        levels[1, level] = worth * kept
        levels[2, level] = worth * lost * (2.0 if kept > 0.0 else 1.0)
        for i in range(count):
            amounts[i] = 0.0
        for i in range(have):
            amounts[i] = values[ahead[i]]
            values[ahead[i]] = 0.0
        if have == 0:
            break
        count = have
        worth *= decay
        level += 1
    later, share, missing, guess = 0.0, 0.0, 0.0, 0.0
    for at in range(level, -1, -1):
        if levels[1, at] > 0.0:
            share = min(1.0, later / levels[1, at])
        later += levels[0, at]
        missing += levels[2, at]
        guess += share * levels[2, at]
    out[0], out[1], out[2] = later, missing, guess
    return work


@kernel
def residuals(
    rows: Rows, table: F32s2, nodes: U32s, tune: F64s, space: RunSpace, out: OutF64s2
) -> None:
    """Compute S'(v, v) for v in ``nodes`` (uint32) into ``out`` float64[nodes, 3].

    A row of ``out`` is the computed part, a bound on the missing part, and a guess at it; zeros for
    an empty row. ``tune`` float64[4] is (decay, threshold, target, limit of links to read). The
    threshold falls until at most the target is missing, the next run would exceed the limit, or
    only levels after MOST_LEVELS are missing (a large part if the decay is near 1).
    """
    levels = np.zeros((3, MOST_LEVELS + 2))
    for k in range(out.shape[0]):
        begin, end = row_of(rows.offsets, nodes[k])
        threshold = tune[1]
        out[k, 0] = out[k, 1] = out[k, 2] = 0.0
        while end > begin:
            chosen = tune[0], threshold
            work = _square(rows, table, nodes[k], chosen, space, levels, out[k])
            if out[k, 1] <= tune[2] or work * (_SHARPER / 2.0) > tune[3]:
                break
            if in_vain(rows, threshold, tune[2]):
                break
            threshold /= _SHARPER
