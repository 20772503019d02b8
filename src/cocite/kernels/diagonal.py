"""The diagonal of linearised SimRank: how far it is from right, and what walks can have in common.

With any diagonal D' in place of D, let S' = sum over l of c**l Q**l D' (Q')**l and r = diag(S') - 1
its *residual*. As S' = c Q S' Q' + D', off the diagonal S' - S obeys SimRank's own recursion with
r on the diagonal, so with T the first meeting of two walks from u and v, at the node X,

    S'(u, v) = E[c**T (1 + r(X))],  so  S'(u, v) / (1 + max r) <= s(u, v) <= S'(u, v) / (1 + min r)

for u != v, whichever way D' was come by. ``residuals`` finds S'(v, v) between two bounds, by
pushing from v (``linear.py``):  S'(v, v) = sum over l of c**l sum over w of x[l](w)**2 D'(w).

What is not pushed is bounded by *limits*. Let peak(j, w) = max over v of (Q**j)(v, w), how likely
any walk is to be at w after j steps, which never grows with j. For D' <= 1

    H(j, w) = max over v of (Q**j S')(v, w) <= c mean of H(j + 1, a) + peak(j, w)
    limit(l, w) = c mean of H(l + 1, a)

with means over the in-neighbours a of w. A limit bounds what w's neighbours and any walk of l + 1
steps have in common. Where walks spread, peaks fall fast, and so do limits.

Source: this project's; the linearised form as in ``linear.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper, kernel
from cocite.kernels.linear import MOST_LEVELS, bounds, in_vain, spread

__all__ = ["average", "peaks", "residuals"]

_SHARPER = 8.0


@kernel
def average(rows: Any, values: Any, decay: Any, out: Any) -> None:
    """out[v] = decay * mean of ``values`` over the row of v, 0 for an empty one (all float64)."""
    for node in range(out.size):
        begin, end = bounds(rows, node)
        total = 0.0
        for link in range(begin, end):
            total += values[rows.neighbours[link]]
        out[node] = decay * total / (end - begin) if end > begin else 0.0


@kernel
def peaks(rows: Any, columns: Any, first: Any, floor: Any, space: Any, out: Any) -> None:
    """Bounds of peak(1, w), peak(2, w), ... for w = first, first + 1, ...

    ``out`` float64[nodes, J] receives them. Runs backward from w, leaving out entries up to
    ``floor``, which it adds instead.
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
                begin, end = bounds(columns, at)
                for link in range(begin, end):
                    node = columns.neighbours[link]
                    low, high = bounds(rows, node)
                    before = new[node]
                    found[have] = node
                    new[node] = before + amount / (high - low)
                    have += 1 if before == 0.0 else 0
            base += lost
            for i in range(have):
                most = max(most, new[found[i]])
            out[k, step] = min(1.0, most + base)
            here, count = 1 - here, have
        for i in range(count):
            space.values[here, space.lists[here, i]] = 0.0


@helper
def _square(rows: Any, table: Any, node: Any, tune: Any, space: Any, levels: Any, out: Any) -> Any:
    """S'(node, node): ``out`` gets what is found, the bound on what is missing, and a guess at it.

    ``tune`` is (decay, threshold). The guess: what was pushed on from a level came to a share of
    its bound; what was not is taken to come to the same share. ``levels`` is scratch,
    float64[3, MOST_LEVELS + 2].
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
            begin, end = bounds(rows, at)
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
def residuals(rows: Any, table: Any, nodes: Any, tune: Any, space: Any, out: Any) -> None:
    """S'(v, v) for v in ``nodes`` (uint32): ``out`` float64[nodes, 3] gets what is found, the most
    that is missing, and a guess at it; zeros for a node with an empty row.

    ``tune`` float64[4] is decay, threshold, target and the most links to read: the threshold falls
    until no more than the target is missing, or the next run would read more links than that, or
    only what lies behind MOST_LEVELS is: much, where the decay is near 1.
    """
    levels = np.zeros((3, MOST_LEVELS + 2))
    for k in range(out.shape[0]):
        begin, end = bounds(rows, nodes[k])
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
