"""The layouts of paths, compacted walks and min-hashes: their size and their memory."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cocite import Graph
from cocite.index.build import IndexBuild
from cocite.index.plan import BuildOptions
from cocite.resources import Resources
from tests.conftest import MakeGraph

KINDS = [
    ("simrank", "paths"),
    ("psimrank", "paths"),
    ("compact-simrank", "compact"),
    ("compact-simrank", "paths"),
    ("xjaccard", "minhash"),
    ("xjaccard", "sketch"),
]
kinds = pytest.mark.parametrize("kind", KINDS, ids="-".join)
SETTINGS: dict[str, Any] = {"samples": 20, "length": 6, "seed": 5}


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(3)
    return make_graph([(f"p{a}", f"p{b}") for a, b in rng.integers(0, 300, (1500, 2)).tolist()])


@kinds
def test_the_size_is_known(graph: Graph, tmp_path: Path, kind: tuple[str, str]) -> None:
    """From the first sample of each thread: two, however many cores there are."""
    options = BuildOptions.checked(kind[0], "in", kind[1], SETTINGS)
    with IndexBuild(graph, tmp_path / "x", options, Resources.checked(threads=2)) as work:
        estimate = work.estimate()
        report = work.run()
    assert abs(estimate.bytes / report.bytes - 1) < 0.05
