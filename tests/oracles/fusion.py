"""Fusion and PPR-PMI by dense matrices, as ``measures/fusion.py`` defines them: the push one node
at a time, expansion as a product, and rows compared entry by entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
RESTART, STAGES = 0.15, (1e-3, 3e-4, 1e-4, 3e-5)


def pushed(either: Matrix, keep: int, order: Callable[[int], int]) -> Matrix:
    """Row u: the values P(u); ``either[u, v]`` is the weight of the links between u and v, and
    ``order`` ranks nodes of equal value.
    """
    closed = either + np.eye(len(either))
    degrees, found = closed.sum(axis=1), np.zeros_like(closed)
    for source in range(len(closed)):
        settled, residual = np.zeros(len(closed)), np.zeros(len(closed))
        residual[source] = 1.0
        reached = [source]
        for eps in STAGES:
            queue = deque(v for v in reached if residual[v] >= eps * degrees[v])
            while queue:
                node = queue.popleft()
                share = (1 - RESTART) * residual[node] / degrees[node]
                settled[node] += RESTART * residual[node]
                residual[node] = 0.0
                others = [node, *(v for v in np.flatnonzero(either[node]).tolist() if v != node)]
                for other in others:
                    before = residual[other]
                    residual[other] += share * closed[node, other]
                    if other not in reached:
                        reached.append(other)
                    if before < eps * degrees[other] <= residual[other]:
                        queue.append(other)
            if (settled >= eps * degrees).sum() >= keep:
                break
        ratio = settled / degrees * degrees.sum()
        best = sorted(np.flatnonzero(ratio > 1).tolist(), key=lambda v: (-ratio[v], order(v)))
        found[source, best[:keep]] = np.log(ratio[best[:keep]])
    return found


def expanded(
    rows: Matrix, lists: Matrix | None, keep: int, others: int, order: Callable[[int], int]
) -> Matrix:
    """The codes of rows, each with the mean of those of the ``others`` nearest to it."""
    made = rows.copy()
    if lists is not None:
        for node, row in enumerate(lists):
            near = [v for v in np.flatnonzero(row).tolist() if v != node]
            near = sorted(near, key=lambda v: (-row[v], order(v)))[:others]
            if near:
                weights = row[near] / row[near].sum()
                made[node] = 0.5 * rows[node] + 0.5 * weights @ rows[near]
    found = np.zeros_like(made)
    for node, row in enumerate(made):
        best = sorted(np.flatnonzero(row > 0).tolist(), key=lambda v: (-row[v], order(v)))[:keep]
        found[node, best] = np.rint(255 * np.sqrt(row[best] / rows.max()))
    return found


def jaccard(codes: Matrix) -> Matrix:
    """The scores of all pairs of rows of codes."""
    squares = codes**2
    common = np.minimum(squares[:, None, :], squares[None, :, :]).sum(axis=2)
    union = np.maximum(squares[:, None, :], squares[None, :, :]).sum(axis=2)
    found: Matrix = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return found
