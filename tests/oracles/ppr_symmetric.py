"""Proximity by the inverse of a whole matrix (Zhou and others 2004, 2): no search, no walks.

``either`` is a dense matrix of weights, ``either[u, v]`` those of the links between u and v taken
either way.
"""

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


def ppr_symmetric(either: Matrix, damping: float) -> Matrix:
    """(I - damping N)**-1 - I with N = D**-1/2 A D**-1/2, 1 at most, and 1 on the diagonal."""
    degrees = either.sum(axis=1)
    roots = np.sqrt(np.where(degrees > 0, degrees, 1))
    normal = either / roots[:, None] / roots[None, :]
    everyone = np.eye(len(either))
    found = np.minimum(np.linalg.inv(everyone - damping * normal) - everyone, 1)
    np.fill_diagonal(found, 1)
    return found
