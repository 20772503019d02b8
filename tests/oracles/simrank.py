"""SimRank and PSimRank by iterating the dense matrix (001, 1.3 and 2.2.2).

``inlinks`` is a dense 0/1 matrix, ``inlinks[v, u] = 1`` if u links to v; for ``simrank`` links may
have any positive weights. Both return the n x n scores after ``rounds`` rounds. Nodes without
in-links are similar to themselves only, so their rows and columns are not iterated, which makes
graphs of thousands of nodes affordable.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def dense(nodes: int, edges: list[tuple[int, int]]) -> Matrix:
    """The matrix of (source, target) pairs."""
    matrix = np.zeros((nodes, nodes))
    for source, target in edges:
        matrix[target, source] = 1
    return matrix


def simrank(inlinks: Matrix, decay: float, rounds: int) -> Matrix:
    """s(u, v) = decay * mean of s over I(u) x I(v); s(u, u) = 1."""
    n = len(inlinks)
    active = np.flatnonzero(inlinks.any(axis=1))
    links = inlinks[active]
    links = links / links.sum(axis=1, keepdims=True)
    inner, outer = links[:, active], np.delete(links, active, axis=1)
    fixed = outer @ outer.T
    scores = np.eye(active.size)
    for _ in range(rounds):
        scores = decay * (inner @ scores @ inner.T + fixed)
        np.fill_diagonal(scores, 1)
    return _spread(scores, active, n)


def psimrank(inlinks: Matrix, decay: float, rounds: int) -> Matrix:
    """The recursion of 001, 2.2.2, with sums as matrix products.

    With M = P A', the sum over I(u) x I(v) is (A M)[u, v], and the part of it whose first node lies
    in I(u) & I(v) is (A (A' * M))[u, v], * elementwise.
    """
    n = len(inlinks)
    active = np.flatnonzero(inlinks.any(axis=1))
    links = inlinks[active]
    size = links.sum(axis=1)
    inner, outer = links[:, active], np.delete(links, active, axis=1)
    common = links @ links.T
    union = size[:, None] + size[None, :] - common
    scores = np.eye(active.size)
    for _ in range(rounds):
        sums = scores @ inner.T
        # The nodes without in-links contribute an identity block: M there is A' itself.
        total = inner @ sums + outer @ outer.T
        shared = inner @ (inner.T * sums) + outer @ outer.T
        first = (total - shared) / size[None, :]
        scores = decay * (common + first + first.T) / union
        np.fill_diagonal(scores, 1)
    return _spread(scores, active, n)


def evidence(rows: Matrix, form: str) -> Matrix:
    """SimRank++'s evidence of all pairs: the printed sum of 2**-i for i = 1, ..., n, or 1 - e**-n,
    n the neighbors shared; 1 for a node and itself. ``rows[v, x] = 1`` if x is a neighbor of v.
    """
    shared = (rows @ rows.T).astype(int)
    if form == "geometric":
        found = np.array([[sum(0.5**i for i in range(1, n + 1)) for n in row] for row in shared])
    else:
        found = 1 - np.exp(-shared.astype(float))
    np.fill_diagonal(found, 1)
    return found


def psimrank_by_definition(inlinks: Matrix, decay: float, rounds: int) -> Matrix:
    """The same recursion pair by pair, as published; for graphs of a dozen nodes."""
    n = len(inlinks)
    sets = [set(np.flatnonzero(row).tolist()) for row in inlinks]
    scores = np.eye(n)
    for _ in range(rounds):
        after = np.eye(n)
        for u in range(n):
            for v in range(n):
                if u == v or not sets[u] or not sets[v]:
                    continue
                union = len(sets[u] | sets[v])
                value = len(sets[u] & sets[v]) / union
                for own, other in ((sets[u], sets[v]), (sets[v], sets[u])):
                    only = own - other
                    if only:
                        total = sum(scores[x, y] for x in only for y in other)
                        value += len(only) / union * total / (len(only) * len(other))
                after[u, v] = decay * value
        scores = after
    return scores


def probability_jaccard(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Sum over i in both of 1 / sum over j of max(x[j] / x[i], y[j] / y[i]) (Moulton, Jiang)."""
    return float(
        sum(
            1 / sum(max(x[j] / x[i], y[j] / y[i]) for j in range(x.size))
            for i in range(x.size)
            if x[i] > 0 and y[i] > 0
        )
    )


def clock_choices(x: NDArray[np.float64], y: NDArray[np.float64]) -> Matrix:
    """P[i, j]: the chance that the first clock at pace x is i's and the first at pace y is j's.

    For i = j it is 1 / sum over k of max(x[k] / x[i], y[k] / y[i]). For i != j let the winners ring
    at s and t = r s. All others ring later: with c(r) = sum over k of max(x[k], y[k] r) the density
    is x[i] y[j] exp(-c s) s, and its integral over s is x[i] y[j] / c**2. That is integrated over r
    from x[j] / y[j] to x[i] / y[i], piece by piece, as c is linear between the ratios x[k] / y[k].
    """
    found = np.zeros((x.size, y.size))
    for i in np.flatnonzero(x):
        for j in np.flatnonzero(y):
            if i == j:
                found[i, j] = 1 / np.maximum(x / x[i], y / y[i]).sum()
                continue
            low, high = x[j] / y[j], x[i] / y[i] if y[i] else np.inf
            if low >= high:
                continue
            ratios = {float(x[k] / y[k]) for k in range(x.size) if y[k]}
            cuts = [low, *sorted(r for r in ratios if low < r < high), high]
            for a, b in itertools.pairwise(cuts):
                inner = 2 * a + 1 if np.isinf(b) else (a + b) / 2
                steeper = y * inner > x
                base, slope = float(x[~steeper].sum()), float(y[steeper].sum())
                if slope:
                    area = (1 / (base + slope * a) - 1 / (base + slope * b)) / slope
                else:
                    area = (b - a) / base**2
                found[i, j] += x[i] * y[j] * area
    return found


def psimrank_by_clocks(weights: Matrix, decay: float, rounds: int) -> Matrix:
    """PSimRank on weighted links: p(u, v) = decay * sum of clock_choices * p over in-neighbors.

    ``weights[v, u]`` is the weight of the link from u to v, 0 if there is none.
    """
    n = len(weights)
    chances = {
        (u, v): clock_choices(weights[u], weights[v]) for u in range(n) for v in range(n) if u != v
    }
    scores = np.eye(n)
    for _ in range(rounds):
        after = np.eye(n)
        for (u, v), chance in chances.items():
            after[u, v] = decay * float((chance * scores).sum())
        scores = after
    return scores


def _spread(scores: Matrix, active: NDArray[np.intp], n: int) -> Matrix:
    whole = np.eye(n)
    whole[np.ix_(active, active)] = scores
    return whole
