"""Scratch of the pushing kernels: arrays over all nodes, of which only the touched pages exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cocite.store import Scratch

if TYPE_CHECKING:
    from cocite.kernels.linear import RunSpace

__all__ = ["make_space"]


def make_space(nodes: int, entries: int = 0) -> RunSpace:
    """Space for graphs of up to ``nodes`` nodes, and ``entries`` entries of a forward run."""
    from cocite.kernels.linear import MOST_LEVELS, RunSpace

    scratch = Scratch(None)
    return RunSpace(
        scratch.zeros(2 * nodes, np.float64).reshape(2, nodes),
        scratch.zeros(2 * (nodes + 1), np.uint32).reshape(2, nodes + 1),
        scratch.zeros(entries, np.uint32),
        scratch.zeros(entries, np.float64),
        np.zeros(MOST_LEVELS + 2, np.int64),
    )
