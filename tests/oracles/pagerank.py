"""PageRank by solving the dense equations in float64.

    x = d P' x + (1 - d) p + d (sum of x over dangling nodes) q

is a linear system in x with a unique solution of sum 1, which ``numpy.linalg.solve`` finds.
"""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def pagerank(
    nodes: int,
    edges: list[tuple[int, int]],
    damping: float,
    teleport: Vector | None = None,
    share: Vector | None = None,
    weights: list[float] | None = None,
) -> Vector:
    """``share`` receives the rank of dangling nodes; it and ``teleport`` are uniform by default.
    ``weights``, one per edge, divide the rank of a node; they are equal by default.
    """
    p = np.full(nodes, 1 / nodes) if teleport is None else teleport / teleport.sum()
    q = p if share is None else share
    matrix = np.zeros((nodes, nodes))
    for i, (source, target) in enumerate(edges):
        matrix[target, source] = 1 if weights is None else weights[i]
    out = matrix.sum(axis=0)
    matrix[:, out == 0] = q[:, None]
    matrix /= np.where(out == 0, 1, out)
    solution: Vector = np.linalg.solve(np.eye(nodes) - damping * matrix, (1 - damping) * p)
    return solution


def spam_mass(
    nodes: int,
    edges: list[tuple[int, int]],
    damping: float,
    seeds: Vector,
    good_fraction: float,
    weights: list[float] | None = None,
) -> Vector:
    """1 - p'[v] / p[v] by the definition: p and p' solve p = d P' p + (1 - d) v, in which dangling
    nodes pass nothing on, for v = 1/n each and for seeds of sum ``good_fraction``.
    """
    matrix = np.zeros((nodes, nodes))
    for i, (source, target) in enumerate(edges):
        matrix[target, source] = 1 if weights is None else weights[i]
    matrix /= np.maximum(matrix.sum(axis=0), 1e-300)
    jumps = np.stack([np.full(nodes, 1 / nodes), good_fraction * seeds / seeds.sum()])
    ranks = np.linalg.solve(np.eye(nodes) - damping * matrix, (1 - damping) * jumps.T)
    mass: Vector = 1 - ranks[:, 1] / ranks[:, 0]
    return mass


def removed(nodes: int, edges: list[tuple[int, int]], times: int) -> set[int]:
    """The nodes that repeated removal of dangling nodes removes."""
    gone: set[int] = set()
    for _ in range(times):
        alive = set(range(nodes)) - gone
        linking = {a for a, b in edges if a in alive and b in alive}
        gone |= alive - linking
    return gone


def google_matrix(nodes: int, edges: list[tuple[int, int]], damping: float) -> Vector:
    """G, dense, float64[nodes, nodes]: uniform teleport, dangling nodes link to all."""
    matrix = np.zeros((nodes, nodes))
    for source, target in edges:
        matrix[target, source] = 1
    matrix[:, matrix.sum(axis=0) == 0] = 1
    dense: Vector = damping * matrix / matrix.sum(axis=0) + (1 - damping) / nodes
    return dense
