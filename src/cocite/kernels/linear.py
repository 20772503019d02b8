"""Pushing along links: what one node sends forward, and what comes back to all others.

Linearised, SimRank is S = sum over l of c**l Q**l D (Q')**l, where row v of Q spreads evenly over
the in-neighbours of v and D is diagonal. One row of it is two runs of sparse products:

    forward    x[0] = the node,    x[l + 1] = Q' x[l]                 (``forward``)
    backward   y[L] = D x[L],      y[l] = c Q y[l + 1] + D x[l]       (``backward``); y[0] the row

What is not worth its cost is not pushed on, and what that may cost is added up:

* forward, x[l](w) not pushed from w takes at most c**l x[l](w) limit(w, l) from any score, where
  the limit (``diagonal.py``) bounds what w can have in common with any l-step walk, and is pushed
  if that is above ``threshold`` for each link of w;
* backward, entries y[l] left out take at most c**l times the largest of them from any score, as Q
  averages.

Both only ever take away, so a true score is between what is found and that plus the bound.

A *table* float64[nodes, 1 + J] holds D in column 0 and the limits of levels 1, 2, ..., J and beyond
in the others. *Rows* are links by node: the in-neighbours of each for the measure that looks at
in-links.

Cost: the links of what is pushed, some 4 ns each.
Source: Maehara, Kusumi, Kawarabayashi 2014, *Efficient SimRank computation via linearization*;
Wang et al. 2020 (ExactSim). The limits are this project's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.kernels._jit import helper, kernel, shared

__all__ = [
    "MOST_LEVELS",
    "OVERFLOW",
    "Rows",
    "RunSpace",
    "backward",
    "deposit",
    "forward",
    "in_vain",
]

MOST_LEVELS = 128
"""Steps forward at most; what is left there is in the bound as well."""
OVERFLOW = -1


class Rows(NamedTuple):
    """``offsets`` uint64[nodes + 1] and ``neighbours`` uint32[links]."""

    offsets: NDArray[np.uint64]
    neighbours: NDArray[np.uint32]


class RunSpace(NamedTuple):
    """Scratch: ``values`` float64[2, nodes], all zero between two calls; ``lists``
    uint32[2, nodes + 1].

    The levels of a forward run lie one behind the other in ``nodes`` uint32[any] and ``amounts``
    float64[any], level l from ``starts[l]`` to ``starts[l + 1]`` (int64[MOST_LEVELS + 2]).
    """

    values: NDArray[np.float64]
    lists: NDArray[np.uint32]
    nodes: NDArray[np.uint32]
    amounts: NDArray[np.float64]
    starts: NDArray[np.int64]


@helper
def bounds(rows: Any, node: Any) -> Any:
    """Where the row of ``node`` begins and ends."""
    at = np.int64(node)
    return np.int64(rows.offsets[at]), np.int64(rows.offsets[at + 1])


@shared
def in_vain(rows: Any, threshold: Any, target: Any) -> Any:
    """Whether a lower threshold brings a bound no nearer to its target: if each link of each level
    leaves out the threshold, that is little of it, and the rest lies behind the last level.
    """
    return 16.0 * threshold * MOST_LEVELS * rows.neighbours.size < target


@helper
def spread(rows: Any, begin: Any, end: Any, share: Any, values: Any, found: Any, count: Any) -> Any:
    """Add ``share`` to all neighbours in a row; returns how many nodes ``found`` lists then."""
    for link in range(begin, end):
        node = rows.neighbours[link]
        before = values[node]
        found[count] = node
        values[node] = before + share
        count += 1 if before == 0.0 else 0
    return count


@kernel
def forward(rows: Any, table: Any, node: Any, decay: Any, threshold: Any, space: Any) -> Any:
    """Fill the levels of ``space``; returns (last level, bound, links read), or OVERFLOW as the
    level if the space is too small.
    """
    values, found = space.values[0], space.lists[0]
    space.nodes[0], space.amounts[0] = np.uint32(node), 1.0
    space.starts[0], space.starts[1] = 0, 1
    last = table.shape[1] - 1
    level, bound, worth, work = 0, 0.0, 1.0, 0
    while True:
        column, lost, count = min(level, last), 0.0, 0
        for i in range(space.starts[level], space.starts[level + 1]):
            at, amount = space.nodes[i], space.amounts[i]
            begin, end = bounds(rows, at)
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
def _pull(rows: Any, decay: Any, old: Any, new: Any, found: Any) -> Any:
    """new = decay Q old, row by row; returns how many nodes ``found`` lists."""
    count = 0
    for node in range(rows.offsets.size - 1):
        begin, end = bounds(rows, node)
        total = 0.0
        for link in range(begin, end):
            total += old[rows.neighbours[link]]
        if total != 0.0:
            new[node] = decay * total / (end - begin)
            found[count] = np.uint32(node)
            count += 1
    return count


@kernel
def backward(
    rows: Any, columns: Any, table: Any, level: Any, decay: Any, floor: Any, space: Any
) -> Any:
    """The row of scores from the levels up to ``level``; entries that cost up to ``floor`` are left
    out. ``columns`` are the same links as ``rows`` by their other end.

    Returns (which of the two lists and values holds the row, its length, bound, links read).
    """
    here, count, bound, work = 0, 0, 0.0, 0
    worth = decay**level
    links = rows.neighbours.size
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
            begin, end = bounds(columns, listed[i])
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
                begin, end = bounds(columns, at)
                if begin == end:
                    continue
                if worth * amount <= floor:
                    lost = max(lost, amount)
                    continue
                for link in range(begin, end):
                    node = columns.neighbours[link]
                    first, stop = bounds(rows, node)
                    before = new[node]
                    found[have] = node
                    new[node] = before + decay * amount / (stop - first)
                    have += 1 if before == 0.0 else 0
            bound += worth * lost
            work += ahead
        here, count = 1 - here, have
        worth /= decay
        level -= 1


@kernel
def deposit(
    space: Any, here: Any, size: Any, grains: Any, node: Any, totals: Any, touched: Any, count: Any
) -> Any:
    """Add the row that ``backward`` left to a query's totals, but for ``node`` itself, in grains
    (``grains`` is what a score of 1 counts here), and set the space back to 0.

    ``totals`` float64[nodes, 2], of which the nodes ``touched[:count]`` are not 0. Returns the new
    ``count``.
    """
    values, listed = space.values[here], space.lists[here]
    for i in range(size):
        at = listed[i]
        amount = np.rint(values[at] * grains)
        values[at] = 0.0
        if at == node or amount == 0.0:
            continue
        if totals[at, 0] == 0.0 and totals[at, 1] == 0.0:
            touched[count] = at
            count += 1
        totals[at, 0] += amount
    return count
