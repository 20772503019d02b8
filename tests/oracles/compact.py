"""Compacted SimRank by its definition: over all choices of one in-neighbor per node (000, 3).

The mean of decay**tau over every function that sends each node to one of its in-neighbors. Their
number is the product of the in-degrees, so graphs must be tiny.
"""

from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

GRAPHS = {
    "clique": [(a, b) for a in range(5) for b in range(5) if a != b],
    "mutual links and tails": [
        *((a, b) for a in range(4) for b in range(4) if a != b),
        *((a, 4) for a in range(4)),
        *((a, 5) for a in (0, 4)),
    ],
    "ring with chords": [(i, (i + d) % 6) for i in range(6) for d in (1, 2, 5)],
}
"""Graphs with few functions, and enough cycles to differ from SimRank."""


def choices(neighbors: list[list[int]]) -> int:
    """The number of functions."""
    return prod(len(row) for row in neighbors if row)


def compact_simrank(neighbors: list[list[int]], decay: float, length: int) -> NDArray[np.float64]:
    """The n x n scores with walks of at most ``length`` steps."""
    n = len(neighbors)
    total = np.zeros((n, n))
    options: list[list[int | None]] = [[*row] or [None] for row in neighbors]
    for chosen in product(*options):
        total += _scores(chosen, decay, length)
    return total / choices(neighbors)


def _scores(step: tuple[int | None, ...], decay: float, length: int) -> NDArray[np.float64]:
    """decay**tau of all pairs for one function."""
    n = len(step)
    scores = np.eye(n)
    places: list[int | None] = list(range(n))
    for k in range(1, length + 1):
        places = [None if at is None else step[at] for at in places]
        for u in range(n):
            for v in range(n):
                if scores[u, v] == 0 and places[u] is not None and places[u] == places[v]:
                    scores[u, v] = decay**k
    return scores


def relatives(step: list[int | None], node: int, decay: float, length: int) -> dict[int, float]:
    """Algorithm 2 of 000 for one function: sets of nodes by level, first meetings only."""
    found: dict[int, float] = {}
    ancestor: int | None = node
    for k in range(1, length + 1):
        assert ancestor is not None
        ancestor = step[ancestor]
        if ancestor is None:
            break
        below = {ancestor}
        for _ in range(k):
            below = {v for v, neighbor in enumerate(step) if neighbor in below}
        for v in below - {node}:
            found.setdefault(v, decay**k)
    return found
