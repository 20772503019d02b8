"""The tasks, the libraries that can solve each, and the packages that these need.

To add a library, add its line to ``PACKAGES``, a function that reads a text to ``loads.py``, a
function for each task that it can solve, and its line to ``TASKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import loads, pairs, ranking, walks

OURS = "cocite"
PACKAGES = {
    "cocite": (),
    "igraph": ("igraph",),
    "scipy": ("scipy", "polars"),
    "graphblas": ("graphblas", "polars"),
    "networkit": ("networkit",),
    "scikit-network": ("sknetwork",),
    "networkx": ("networkx", "scipy"),
    "usearch": ("sklearn", "usearch"),
    "hnswlib": ("sklearn", "hnswlib"),
}
"""Libraries, and the modules that they need, as they are imported."""
INSTALLED_AS = {
    "graphblas": "python-graphblas",
    "sknetwork": "scikit-network",
    "sklearn": "scikit-learn",
}


def missing(library: str) -> str:
    """The command that installs what a library needs and is not there; empty if all is."""
    lacking = [module for module in PACKAGES[library] if find_spec(module) is None]
    if not lacking:
        return ""
    return "pip install " + " ".join(INSTALLED_AS.get(module, module) for module in lacking)


@dataclass(frozen=True)
class Solver:
    """How a library does it: ``load`` a text into what ``solve`` takes with the error asked for."""

    load: Callable[[Path], Any]
    solve: Callable[[Any, float], NDArray[np.float64]]


@dataclass(frozen=True)
class Task:
    """``exactly`` gives the reference of what cocite, or ``truth``, has loaded; ``apart`` is the
    error of an answer. ``error`` is what is asked for, 0 where all are exact; what is ``unlike``
    computes something else and is not compared.
    """

    title: str
    error: float
    error_is: str
    exactly: Callable[[Any], NDArray[np.float64]]
    apart: Callable[[NDArray[np.float64], NDArray[np.float64]], float]
    solvers: Mapping[str, Solver]
    graphs: tuple[str, ...]
    truth: str = OURS
    unlike: float = 1e-2
    without: Mapping[str, str] = field(default_factory=dict)


def _sum(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.abs(found - truth).sum())


def _largest(found: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
    return float(np.abs(found - truth).max())


WEBS = ("web-100k", "web-NotreDame", "cnr-2000")
SMALL = ("cora", "wikispeedia")
NO_SIMRANK = dict.fromkeys(("igraph", "networkit", "scikit-network"), "has no SimRank")

TASKS = {
    "pagerank": Task(
        "PageRank",
        1e-8,
        "L1 distance to our result at a residual of 1e-14",
        ranking.exactly,
        _sum,
        {
            "cocite": Solver(loads.load_cocite, ranking.by_cocite),
            "igraph": Solver(loads.load_igraph, ranking.by_igraph),
            "scipy": Solver(loads.load_scipy, ranking.by_scipy),
            "graphblas": Solver(loads.load_graphblas, ranking.by_graphblas),
            "networkit": Solver(loads.load_networkit, ranking.by_networkit),
            "scikit-network": Solver(loads.load_scikit_network, ranking.by_scikit_network),
            "networkx": Solver(loads.load_networkx, ranking.by_networkx),
        },
        WEBS,
    ),
    "simrank-all": Task(
        "SimRank of all pairs",
        1e-3,
        "largest difference from our result at 1e-9",
        walks.all_exactly,
        _largest,
        {
            "cocite": Solver(loads.load_cocite, walks.all_by_cocite),
            "scipy": Solver(loads.load_scipy, walks.all_by_scipy),
            "graphblas": Solver(loads.load_graphblas, walks.all_by_graphblas),
            "networkx": Solver(loads.load_networkx, walks.all_by_networkx),
        },
        SMALL,
        without=NO_SIMRANK,
    ),
    "simrank-source": Task(
        "Single-source SimRank",
        1e-3,
        "largest difference from our all-pairs result at 1e-9",
        walks.source_exactly,
        _largest,
        {
            "cocite": Solver(walks.load_index, walks.source_by_cocite),
            "scipy": Solver(loads.load_scipy, walks.source_by_scipy),
            "graphblas": Solver(loads.load_graphblas, walks.source_by_graphblas),
            "networkx": Solver(loads.load_networkx, walks.source_by_networkx),
        },
        SMALL,
        without=NO_SIMRANK,
    ),
    "jaccard": Task(
        "Jaccard coefficients of 100,000 pairs",
        0.0,
        "largest difference from Python's sets",
        pairs.exactly,
        _largest,
        {
            "cocite": Solver(pairs.load_cocite, pairs.by_cocite),
            "igraph": Solver(pairs.load_igraph, pairs.by_igraph),
            "scipy": Solver(pairs.load_scipy_pairs, pairs.by_scipy),
            "graphblas": Solver(pairs.load_graphblas_pairs, pairs.by_graphblas),
            "networkit": Solver(pairs.load_networkit, pairs.by_networkit),
            "networkx": Solver(pairs.load_networkx, pairs.by_networkx),
        },
        WEBS,
        truth="networkx",
        unlike=1e-6,
        without={"scikit-network": "has no function for Jaccard coefficients"},
    ),
}
