"""Fusion and PPR-PMI by dense matrices, as ``measures/fusion.py`` defines them: pushes by node,
and rows compared entry by entry.
"""

from collections import deque

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
MASK, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
RESTART, STAGES = 0.15, (1e-3, 3e-4, 1e-4, 3e-5, 1e-5)


def order(node: int) -> int:
    """The rank of a node among equal values: the finalizer of MurmurHash3."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        node = ((node ^ node >> shift) * factor) & MASK
    return node ^ node >> 16


def pushed(
    either: Matrix, keep: int, odd: float, stages: tuple[float, ...] | None = None
) -> Matrix:
    """Row u holds the values P(u); ``either[u, v]`` is the weight of links between u and v."""
    degrees, found = either.sum(axis=1), np.zeros_like(either)
    if stages is None:
        stages = STAGES if degrees.sum() < 1e5 else STAGES[:-1]
    for source in np.flatnonzero(degrees).tolist():
        settled, residual = np.zeros(len(either)), np.zeros((2, len(either)))
        residual[0, source] = 1.0
        reached = [source]
        for eps in stages:
            queue = deque(v for v in reached if residual[:, v].sum() >= eps * degrees[v])
            while queue:
                node = queue.popleft()
                settled[node] += RESTART * (residual[0, node] + odd * residual[1, node])
                share = (1 - RESTART) / degrees[node] * residual[::-1, node]
                residual[:, node] = 0.0
                for other in np.flatnonzero(either[node]).tolist():
                    before = residual[:, other].sum()
                    residual[:, other] += share * either[node, other]
                    if other not in reached:
                        reached.append(other)
                    if before < eps * degrees[other] <= residual[:, other].sum():
                        queue.append(other)
            if (settled >= eps * degrees).sum() >= keep:
                break
        ratio = np.divide(settled, degrees, where=degrees > 0, out=np.zeros_like(settled))
        ratio *= degrees.sum() / ((1 + 0.85 * odd) / 1.85)
        best = sorted(np.flatnonzero(ratio > 1).tolist(), key=lambda v: (-ratio[v], order(v)))
        found[source, best[:keep]] = np.log(ratio[best[:keep]])
    return found


def hashed(word: int) -> int:
    """The draw of a link: the finalizer of SplitMix64 of the word and the golden ratio."""
    word = (word + 0x9E3779B97F4A7C15) & MASK64
    word = ((word ^ word >> 30) * 0xBF58476D1CE4E5B9) & MASK64
    word = ((word ^ word >> 27) * 0x94D049BB133111EB) & MASK64
    return word ^ word >> 31


def odd_weight(either: Matrix) -> float:
    """The weight of walks with an odd number of steps."""
    links = [
        (u, v)
        for u, row in enumerate(either)
        for v in np.flatnonzero(row).tolist()
        for _ in range(int(row[v]))
    ]
    if not links:
        return 0.25
    similarities = jaccard(encoded(pushed(either, 100, 0.0, STAGES[:3]), 100, scale(either)))
    linked = unlinked = 0.0
    for probe in range(400):
        u, v = links[hashed(probe) % len(links)]
        _, w = links[hashed(400 + probe) % len(links)]
        if u not in (v, w):
            linked += float(similarities[u, v])
            unlinked += float(similarities[u, w])
    return 0.25 if linked > unlinked else 0.0


def scale(either: Matrix) -> float:
    """The value of the code 255 of pushed rows."""
    degrees = either.sum(axis=1)
    linked = degrees[degrees > 0]
    return float(np.log(linked.sum() / linked.min())) if linked.size else 1.0


def encoded(rows: Matrix, keep: int, scale: float) -> Matrix:
    """The codes of the largest values of each row."""
    codes = np.zeros_like(rows)
    for node, row in enumerate(rows):
        best = sorted(np.flatnonzero(row > 0).tolist(), key=lambda v: (-row[v], order(v)))[:keep]
        codes[node, best] = np.rint(255 * np.sqrt(row[best] / scale))
    return codes


def jaccard(codes: Matrix) -> Matrix:
    """The scores of all pairs of rows of codes."""
    squares = codes**2
    common = np.minimum(squares[:, None, :], squares[None, :, :]).sum(axis=2)
    union = np.maximum(squares[:, None, :], squares[None, :, :]).sum(axis=2)
    found: Matrix = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return found
