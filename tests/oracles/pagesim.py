"""PageSim by listing every simple path, one by one (002, Definitions 1 to 6).

``edges`` are (source, target) pairs without duplicates, ``scores`` the PageRank to propagate.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def simple_paths(n: int, edges: list[tuple[int, int]], radius: int) -> Iterator[tuple[int, ...]]:
    """Every path of distinct nodes with at most ``radius`` hops, including none."""
    following = {u: [b for a, b in edges if a == u] for u in range(n)}
    found: list[tuple[int, ...]] = [(u,) for u in range(n)]
    for _ in range(radius + 1):
        yield from found
        found = [(*p, w) for p in found for w in following[p[-1]] if w not in p]


def propagated(
    n: int,
    edges: list[tuple[int, int]],
    scores: NDArray[np.float64],
    decay: float,
    radius: int,
    threshold: float = 0,
    per: str = "hop",
) -> tuple[Matrix, Matrix]:
    """PG[u, v] over paths that carry ``threshold`` or more, and over those that carry less. The
    decay counts once per hop, or once per path as in equation 2.
    """
    degree = [sum(a == u for a, _ in edges) for u in range(n)]
    kept, cut = np.zeros((n, n)), np.zeros((n, n))
    for path in simple_paths(n, edges, radius):
        value = scores[path[0]] * decay ** (len(path) - 1 if per == "hop" else len(path) > 1)
        for node in path[:-1]:
            value /= degree[node]
        target = kept if value >= threshold or len(path) == 1 else cut
        target[path[0], path[-1]] += value
    return kept, cut


def pagesim(given: Matrix) -> Matrix:
    """The scores of all pairs from PG."""
    n = len(given)
    found = np.zeros((n, n))
    for u in range(n):
        for v in range(n):
            for a, b in zip(given[:, u], given[:, v], strict=True):
                if a > 0 and b > 0:
                    found[u, v] += min(a, b) ** 2 / max(a, b)
    return found


def normalized(scores: Matrix) -> Matrix:
    """Scores divided by the geometric mean of both pages' scores with themselves."""
    own = np.sqrt(np.diag(scores))
    found: Matrix = scores / np.outer(own, own)
    return found
