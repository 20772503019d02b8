"""Extrapolation from eight sweeps: the same ranks in fewer sweeps."""

import numpy as np
import pytest

from cocite import Graph
from cocite.options.rank import RankOptions
from cocite.ranking import pagerank, plan_ranks
from cocite.ranking.core import Lumped
from cocite.ranking.solver import Extrapolation
from tests.conftest import MakeGraph

TIGHT = RankOptions(tolerance=1e-11)


@pytest.fixture
def web(make_graph: MakeGraph) -> Graph:
    """Closed pairs and rings, and pages that link to them."""
    pairs = [(a ^ swap, a ^ 1 ^ swap) for a in range(0, 40, 2) for swap in (0, 1)]
    rings = [(a + i, a + (i - 1) % 5) for a in range(40, 80, 5) for i in range(5)]
    rng = np.random.default_rng(5)
    others = [(80 + a, b) for a, b in rng.integers(0, 120, (400, 2)).tolist()]
    return make_graph(pairs + rings + others, range(200))


def test_extrapolation_halves_sweeps(web: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    found = pagerank(web, options=TIGHT)
    toward = pagerank(web, tolerance=1e-4, personalization=["7"])
    monkeypatch.setattr(Extrapolation, "wants", lambda self, number: False)
    plain = pagerank(web, options=TIGHT)
    assert found.convergence.sweeps < 0.5 * plain.convergence.sweeps
    bounds = found.convergence.error_bound + plain.convergence.error_bound
    assert np.abs(found.values - plain.values).sum() <= bounds
    assert (toward.values >= 0).all()


def test_extrapolation_stops_without_gain(web: Graph) -> None:
    lumped = Lumped(web, 0, False, plan_ranks(web, 1 << 30))
    extrapolation, rng = Extrapolation(lumped), np.random.default_rng(1)
    facts = np.ones((lumped.core, 4))
    z = np.ones(lumped.core)
    checked = []
    for number in range(1, 30):
        z += rng.random(z.size)
        if extrapolation.wants(number):
            checked.append(number)
            assert extrapolation.look(number, 1.0 if number < 9 else 0.6, z, facts) == (number == 8)
    assert checked == [3, 4, 5, 6, 7, 8, *range(11, 17)]
