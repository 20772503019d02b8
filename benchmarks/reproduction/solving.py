"""Exact SimRank: what ``benchmarks/sor.py`` and ``benchmarks/exact_figures.py`` measure, kept.

Cost: two minutes of processor time; figures 7a and 7b ten more, and up to 12 GB.
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
    """The rows of one of the experiments of ``benchmarks.sor``, in seconds of processor time, which
    others on the machine change least.
    """
    return list(EXPERIMENTS[name](Shop(work, False, [], time.process_time)))


def figure(name: str, data: Path, work: Path) -> list[dict[str, Any]]:
    """The rows of one of the figures of ``benchmarks.exact_figures``."""
    return list(FIGURES[name](Shop(work, False, [])))


def beforehand(data: Path, work: Path) -> dict[str, int]:
    """The sweeps that partial sums make for an accuracy, c = 0.8."""
    return {f"{e:.0e}": sweeps_for(e, DECAY) for e in (1e-1, 5e-2, 1e-2, 1e-6)}


def example(data: Path, work: Path) -> list[int]:
    """Table 2: the order of the six nodes of its example, by our reverse Cuthill-McKee."""
    pairs = [(2, 6), (6, 4), (6, 1), (4, 3), (1, 5), (1, 3)]
    both = sorted({(a - 1, b - 1) for a, b in pairs} | {(b - 1, a - 1) for a, b in pairs})
    offsets = np.searchsorted([a for a, _ in both], np.arange(7)).astype(np.int64)
    columns = np.array([b for _, b in both], np.uint32)
    return [int(v) + 1 for v in reordered(offsets, columns)]
