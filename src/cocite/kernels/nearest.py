"""Lists of nearest pages: marked where they are mutual, and compared.

``mark`` gives a value its sign: below 0 if the page it is of has not the list's page in its own.

``gather``, ``pair`` and ``compare`` compare lists in ascending order of the pages that they share.
``near.py`` makes them.

Cost: 2 ns an entry read.
Source: see ``measures/shared_nearest.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import helper, kernel
from cocite.kernels.neighbours import score

__all__ = ["DAMAGED", "compare", "gather", "mark", "pair"]

DAMAGED = -1
_ONE64 = np.uint64(1)


@helper
def _row(offsets: Any, node: Any) -> Any:
    return np.int64(offsets[node]), np.int64(offsets[node + 1])


@kernel
def mark(
    offsets: Any,
    nodes: Any,
    values: Any,
    starts: Any,
    holders: Any,
    held: Any,
    whole: Any,
    mutual: Any,
) -> None:
    """Turn the values of one-sided entries negative, and sum up every list.

    The list of v is ``nodes[offsets[v] : offsets[v + 1]]``, and ``holders`` by ``starts`` those who
    have v in theirs. ``whole`` and ``mutual`` float64[pages, 2] receive the sums of values and of
    squares, of all entries and of the mutual ones.
    """
    for v in range(whole.shape[0]):
        i, end = _row(offsets, v)
        j, last = _row(starts, v)
        while i < end or j < last:
            if j == last or (i < end and nodes[i] < holders[j]):
                value = np.float64(values[i])
                values[i] = -values[i]
                i += 1
            elif i == end or holders[j] < nodes[i]:
                held[j] = -held[j]
                j += 1
                continue
            else:
                value = np.float64(values[i])
                mutual[v, 0] += value
                mutual[v, 1] += value * value
                i += 1
                j += 1
            whole[v, 0] += value
            whole[v, 1] += value * value


@helper
def _shares(first: Any, second: Any, form: Any, mutual: Any) -> Any:
    """What two lists have in common in one page, by its values in both."""
    if mutual and (first < 0 or second < 0):
        return 0.0
    a, b = abs(np.float64(first)), abs(np.float64(second))
    if form == 0:
        return a * b
    return a if a < b else b


@kernel
def gather(
    listed: Any, values: Any, holders: Any, form: Any, mutual: Any, sums: Any, used: Any
) -> Any:
    """Add up what everybody's list has in common with one, itself included.

    ``listed`` and ``values`` are the list; ``holders`` (offsets, nodes, values) says in whose lists
    each page is. ``form`` is its place in ``neighbours.FORMS``. ``sums`` float64[nodes, 2], all 0,
    receives the sums in its first column; ``used`` uint32[nodes + 1] lists the nodes with one.
    Returns how many those are, or DAMAGED.
    """
    offsets, owners, held = holders
    pages, nodes = np.uint64(offsets.size - 1), np.uint64(sums.shape[0])
    count = 0
    for i in range(listed.size):
        page = np.uint64(listed[i])
        if page >= pages:
            return DAMAGED
        begin, end = offsets[page], offsets[page + _ONE64]
        if begin > end or end > np.uint64(owners.size):
            return DAMAGED
        if mutual and values[i] < 0:
            continue
        for place in range(begin, end):
            owner = np.uint64(owners[place])
            if owner >= nodes:
                return DAMAGED
            before = sums[owner, 0]
            term = _shares(values[i], held[place], form, mutual)
            term = term if term > 0.0 else 0.0  # nan, of damaged values
            used[count] = np.uint32(owner)
            sums[owner, 0] = before + term
            count += 1 if before == 0.0 and term > 0.0 else 0
    return count


@kernel
def pair(
    first: Any,
    first_values: Any,
    second: Any,
    second_values: Any,
    first_norm: Any,
    second_norm: Any,
    form: Any,
    mutual: Any,
) -> Any:
    """The score in grains of two ascending lists and their norms, by minima or products."""
    common = 0.0
    i = j = 0
    while i < first.size and j < second.size:
        if first[i] < second[j]:
            i += 1
        elif first[i] > second[j]:
            j += 1
        else:
            common += _shares(first_values[i], second_values[j], form, mutual)
            i += 1
            j += 1
    return score(common, first_norm, second_norm, form)


@kernel
def compare(listed: Any, values: Any, lists: Any, form: Any, mutual: Any, out: Any) -> None:
    """The scores in grains of one list with some others: ``out`` float64[lists].

    ``lists`` is (offsets int64[lists + 1], nodes, values, norms float64[lists + 1]), the last norm
    that of the one.
    """
    offsets, nodes, theirs, whole = lists
    for i in range(out.size):
        begin, end = offsets[i], offsets[i + 1]
        other = nodes[begin:end], theirs[begin:end]
        out[i] = pair(listed, values, *other, whole[out.size], whole[i], form, mutual)
