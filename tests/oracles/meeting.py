"""When two walks first meet, as a law: Pr(tau = t) for all pairs, and E f(tau) for any f.

The pairs of nodes are a chain. Of two walks at (u, v) that have not met, ``pair_step`` says with
what chance they step to (x, y); a pair at one node has met and is counted no more:

    law[0] = identity,      law[t](u, v) = sum over x, y of step(u, v; x, y) law[t-1](x, y), u != v

Powers of a decay, an iteration, or a sample do not come into it. For graphs of a dozen nodes.

Source: 001, Definition 1; the steps of simrank (1.3) and psimrank (2.2.2) as printed.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
PairStep = Callable[[set[int], set[int]], dict[tuple[int, int], float]]


def apart(mine: set[int], other: set[int]) -> dict[tuple[int, int], float]:
    """SimRank: both choose uniformly, independently."""
    return {(x, y): 1 / (len(mine) * len(other)) for x in mine for y in other}


def together(mine: set[int], other: set[int]) -> dict[tuple[int, int], float]:
    """PSimRank: the first in one random order of mine | other. Where only one has that, the other
    chooses among all of its own.
    """
    union = mine | other
    found = {(x, x): 1 / len(union) for x in mine & other}
    for x in mine - other:
        for y in other:
            found[x, y] = found.get((x, y), 0) + 1 / len(union) / len(other)
    for y in other - mine:
        for x in mine:
            found[x, y] = found.get((x, y), 0) + 1 / len(union) / len(mine)
    return found


STEPS: dict[str, PairStep] = {"simrank": apart, "psimrank": together}


def law(neighbors: list[list[int]], step: PairStep, length: int) -> Matrix:
    """float64[length + 1, n, n]: the chance that the walks of u and v first meet at step t."""
    n = len(neighbors)
    found = np.zeros((length + 1, n, n))
    found[0] = np.eye(n)
    for u in range(n):
        for v in range(n):
            if u == v or not neighbors[u] or not neighbors[v]:
                continue
            chances = step(set(neighbors[u]), set(neighbors[v]))
            assert abs(sum(chances.values()) - 1) < 1e-12
    for t in range(1, length + 1):
        for u in range(n):
            for v in range(n):
                if u != v and neighbors[u] and neighbors[v]:
                    chances = step(set(neighbors[u]), set(neighbors[v]))
                    found[t, u, v] = sum(c * found[t - 1][pair] for pair, c in chances.items())
    return found


def expected(chances: Matrix, worth: Callable[[int], float]) -> Matrix:
    """E f(tau), f(0) = 1 and f(never) = 0."""
    values = [1.0, *(float(worth(t)) for t in range(1, len(chances)))]
    return np.tensordot(np.array(values), chances, 1).astype(np.float64)
