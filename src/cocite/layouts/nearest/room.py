"""Where the kernels of lists of nearest pages add up."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["room"]


def room(width: int, k: int) -> tuple[NDArray[Any], ...]:
    """The scratch memory of ``kernels/near.py``, all 0, for lists of ``k`` others, looked for in
    strips of ``width`` ids: 32 bytes an id.
    """
    return (
        np.zeros(width),
        np.zeros((width, 2)),
        np.zeros(width + 1, np.uint32),
        np.zeros(width + 1, np.uint32),
        np.zeros(k, np.uint32),
        np.zeros((k, 2)),
        np.zeros(2 * k, np.uint64),
        np.zeros(2 * k),
    )
