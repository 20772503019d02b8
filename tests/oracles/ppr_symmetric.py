"""Proximity by inverting a dense matrix (Zhou and others 2004, 2), without search or walks.

``either[u, v]`` is the weight of the links between u and v in either direction.
"""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def ppr_symmetric(either: Matrix, damping: float) -> Matrix:
    """(I - damping N)**-1 - I with N = D**-1/2 A D**-1/2, 1 at most, and 1 on the diagonal."""
    degrees = either.sum(axis=1)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1))
    normal = either / roots[:, None] / roots[None, :]
    identity = np.eye(len(either))
    found = np.minimum(np.linalg.inv(identity - damping * normal) - identity, 1)
    np.fill_diagonal(found, 1)
    return found
