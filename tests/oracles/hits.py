"""HITS by the eigenvectors of the dense matrices A' A and A A'.

The iteration from equal hubs ends at the projection of A' 1 onto the eigenvectors of the largest
eigenvalue of A' A; hubs are A times that.
"""

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def hits(nodes: int, edges: list[tuple[int, int]]) -> tuple[Vector, Vector, float]:
    """(hubs, authorities, the second largest eigenvalue over the largest)."""
    matrix = np.zeros((nodes, nodes))
    for source, target in edges:
        matrix[source, target] = 1
    values, vectors = np.linalg.eigh(matrix.T @ matrix)
    largest = values > values[-1] * (1 - 1e-9)
    best = vectors[:, largest]
    authorities = best @ (best.T @ matrix.sum(axis=0))
    hubs = matrix @ authorities
    others = values[~largest]
    ratio = float(others[-1] / values[-1]) if others.size else 0.0
    return hubs / hubs.sum(), authorities / authorities.sum(), ratio
