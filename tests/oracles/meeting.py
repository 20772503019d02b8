"""The distribution of first meetings: Pr(tau = t) for all pairs, and E f(tau) for any f.

Pairs of nodes form a Markov chain. Two walks at (u, v) that have not met step to (x, y) with the
probability of ``PairStep``; a pair at one node has met and stops:

    law[0] = identity,      law[t](u, v) = sum over x, y of step(u, v; x, y) law[t-1](x, y), u != v

There are no powers of a decay, iterations or samples. For graphs of a dozen nodes.

Source: 001, Definition 1; the steps of simrank (1.3) and psimrank (2.2.2) as printed.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
PairStep = Callable[[set[int], set[int]], dict[tuple[int, int], float]]


def apart(first: set[int], second: set[int]) -> dict[tuple[int, int], float]:
    """SimRank: both walks choose uniformly and independently."""
    return {(x, y): 1 / (len(first) * len(second)) for x in first for y in second}


def together(first: set[int], second: set[int]) -> dict[tuple[int, int], float]:
    """PSimRank: the first node in a random order of first | second. If only one walk has it, the
    other chooses among all of its own.
    """
    union = first | second
    found = {(x, x): 1 / len(union) for x in first & second}
    for x in first - second:
        for y in second:
            found[x, y] = found.get((x, y), 0) + 1 / len(union) / len(second)
    for y in second - first:
        for x in first:
            found[x, y] = found.get((x, y), 0) + 1 / len(union) / len(first)
    return found


STEPS: dict[str, PairStep] = {"simrank": apart, "psimrank": together}


def law(neighbors: list[list[int]], step: PairStep, length: int) -> Matrix:
    """float64[length + 1, n, n]: the probability that walks of u and v first meet at step t."""
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
