"""Fusion and PPR-PMI by dense matrices, as ``measures/fusion.py`` defines them: the push one node
at a time, expansion as a product, and rows compared entry by entry.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
MASK = 0xFFFFFFFF
RESTART, STAGES = 0.15, (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)


def order(node: int) -> int:
    """What ranks nodes of equal value: the finalizer of MurmurHash3."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        node = ((node ^ node >> shift) * factor) & MASK
    return node ^ node >> 16


def pushed(either: Matrix, keep: int) -> Matrix:
    """Row u: the values P(u); ``either[u, v]`` is the weight of the links between u and v."""
    degrees, found = either.sum(axis=1), np.zeros_like(either)
    stages = STAGES if degrees.sum() < 1e5 else STAGES[:-1]
    for source in np.flatnonzero(degrees).tolist():
        settled, residual = np.zeros(len(either)), np.zeros(len(either))
        residual[source] = 1.0
        reached = [source]
        for eps in stages:
            queue = deque(v for v in reached if residual[v] >= eps * degrees[v])
            while queue:
                node = queue.popleft()
                share = (1 - RESTART) * residual[node] / degrees[node]
                settled[node] += RESTART * residual[node]
                residual[node] = 0.0
                for other in np.flatnonzero(either[node]).tolist():
                    before = residual[other]
                    residual[other] += share * either[node, other]
                    if other not in reached:
                        reached.append(other)
                    if before < eps * degrees[other] <= residual[other]:
                        queue.append(other)
            if (settled >= eps * degrees).sum() >= keep:
                break
        ratio = np.divide(settled, degrees, where=degrees > 0, out=np.zeros_like(settled))
        ratio *= degrees.sum()
        best = sorted(np.flatnonzero(ratio > 1).tolist(), key=lambda v: (-ratio[v], order(v)))
        found[source, best[:keep]] = np.log(ratio[best[:keep]])
    return found


def scale(either: Matrix) -> float:
    """The value of the code 255 of pushed rows."""
    degrees = either.sum(axis=1)
    linked = degrees[degrees > 0]
    return float(np.log(linked.sum() / linked.min())) if linked.size else 1.0


def expanded(rows: Matrix, lists: Matrix | None, keep: int, others: int, scale: float) -> Matrix:
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
        found[node, best] = np.rint(255 * np.sqrt(row[best] / scale))
    return found


def jaccard(codes: Matrix) -> Matrix:
    """The scores of all pairs of rows of codes."""
    squares = codes**2
    common = np.minimum(squares[:, None, :], squares[None, :, :]).sum(axis=2)
    union = np.maximum(squares[:, None, :], squares[None, :, :]).sum(axis=2)
    found: Matrix = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return found
