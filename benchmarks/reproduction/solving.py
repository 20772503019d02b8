"""Exact SimRank: the measurements of ``benchmarks/sor.py`` and ``benchmarks/exact_figures.py``.

Cost: two minutes of CPU time; figures 7a and 7b ten more, and up to 12 GB.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.exact_figures import FIGURES
from benchmarks.partial_sums import sweeps_for
from benchmarks.sor import DECAY, EXPERIMENTS, Shop
from cocite.allpairs.links import reordered

KEPT = ("omega", "sparse", "dense", "bandwidth")
"""The experiments that figure 6 needs."""


def experiment(name: str, data: Path, work: Path) -> list[dict[str, Any]]:
    """Run an experiment of ``benchmarks.sor``; return its rows, with CPU seconds."""
    return list(EXPERIMENTS[name](Shop(work, False, [], time.process_time)))


def figure(name: str, data: Path, work: Path) -> list[dict[str, Any]]:
    """Run a figure of ``benchmarks.exact_figures``; return its rows."""
    return list(FIGURES[name](Shop(work, False, [])))


def beforehand(data: Path, work: Path) -> dict[str, int]:
    """Return the predicted number of sweeps of partial sums by accuracy; c = 0.8."""
    return {f"{e:.0e}": sweeps_for(e, DECAY) for e in (1e-1, 5e-2, 1e-2, 1e-6)}


def example(data: Path, work: Path) -> list[int]:
    """Return our reverse Cuthill-McKee order of the six nodes of table 2."""
    pairs = [(2, 6), (6, 4), (6, 1), (4, 3), (1, 5), (1, 3)]
    both = sorted({(a - 1, b - 1) for a, b in pairs} | {(b - 1, a - 1) for a, b in pairs})
    offsets = np.searchsorted([a for a, _ in both], np.arange(7)).astype(np.int64)
    columns = np.array([b for _, b in both], np.uint32)
    return [int(v) + 1 for v in reordered(offsets, columns)]
