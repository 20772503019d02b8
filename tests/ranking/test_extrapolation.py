"""What eight sweeps say of their end: fewer sweeps to the same ranks, the same bits anywhere."""

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
    """Pairs and rings that only link to themselves, and pages that lead there."""
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


def test_without_gain_it_is_over(web: Graph) -> None:
    lumped = Lumped(web, 0, False, plan_ranks(web, 1 << 30))
    ahead, rng = Extrapolation(lumped), np.random.default_rng(1)
    facts = np.ones((lumped.core, 4))
    z = np.ones(lumped.core)
    looked = []
    for number in range(1, 30):
        z += rng.random(z.size)
        if ahead.wants(number):
            looked.append(number)
            assert ahead.look(number, 1.0 if number < 9 else 0.6, z, facts) == (number == 8)
    assert looked == [3, 4, 5, 6, 7, 8, *range(11, 17)]
