"""P-Rank by iterating the dense matrix (Zhao, Han, Sun 2009, 3), and its walks one by one.

``inlinks`` is a dense 0/1 matrix, ``inlinks[v, u] = 1`` if u links to v.
"""

import numpy as np
from numpy.typing import NDArray

from tests.oracles.walks import choose, draw, key_of

Matrix = NDArray[np.float64]


def prank(inlinks: Matrix, decay: float, rounds: int, in_share: float) -> Matrix:
    """s(u, v) = decay times the mean of s over I(u) x I(v), weighted by ``in_share``, and over
    O(u) x O(v), weighted by the rest; s(u, u) = 1.
    """
    n = len(inlinks)
    scores = np.eye(n)
    for _ in range(rounds):
        after = np.zeros((n, n))
        for links, share in ((inlinks, in_share), (inlinks.T, 1 - in_share)):
            degrees = np.maximum(links.sum(axis=1), 1)[:, None]
            after += share * decay * (links / degrees) @ scores @ (links / degrees).T
        np.fill_diagonal(after, 1)
        scores = after
    return scores


def paths(
    ins: list[list[int]], outs: list[list[int]], seed: int, sample: int, length: int, share: float
) -> list[list[int]]:
    """The path of every node, itself first; shorter than length + 1 if the walk ended."""
    found = []
    for node in range(len(ins)):
        path = [node]
        for step in range(1, length + 1):
            key = key_of(seed, sample, step)
            rows = ins if draw(key, 2**32 - 1) / 2**64 < share else outs
            if not rows[path[-1]]:
                break
            path.append(choose("uniform", key, path[-1], rows[path[-1]], len(ins)))
        found.append(path)
    return found
