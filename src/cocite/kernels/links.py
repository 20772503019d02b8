"""Small kernels over lists of links."""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import kernel

__all__ = ["add_counts"]

_ONE32 = np.uint32(1)


@kernel
def add_counts(nodes: Any, counts: Any) -> None:
    """Add one to ``counts[v]`` (uint32) for every occurrence of v in ``nodes`` (uint32)."""
    for i in range(nodes.size):
        counts[nodes[i]] += _ONE32
