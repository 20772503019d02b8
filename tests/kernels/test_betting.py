"""Bets against plain oracles, and their guarantees, summed over all outcomes."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from cocite.kernels import totals
from tests.oracles import betting as plain

Values = list[float]

values = st.lists(st.sampled_from([0.0, 0.01, 0.216, 0.36, 0.6, 1.0]), min_size=1, max_size=60)
levels = st.floats(1.5, 1e7)


def ordered(columns: Any, level: float) -> Any:
    """Ends by bets in order; a column for each sequence."""
    table = np.ascontiguousarray(np.array(columns, float).T)
    ends, means = np.empty(table.shape[1]), np.empty(table.shape[1])
    totals.ordered_ends(table, 0.0, 1.0, level, ends, means)
    assert means == pytest.approx(table.mean(axis=0))
    return ends


def mixed(columns: Any, level: float) -> Any:
    """Ends by equal bets."""
    support = np.unique(np.concatenate(columns).astype(float))
    counts = np.array([[list(c).count(v) for v in support.tolist()] for c in columns], float)
    ends, means = np.empty(len(columns)), np.empty(len(columns))
    totals.mixed_ends(support, counts, 0.0, 1.0, level, ends, means)
    assert means == pytest.approx(np.mean(columns, axis=1))
    return ends


WAYS = {"ordered": (ordered, plain.most_wealth), "mixed": (mixed, plain.mixed_wealth)}
both_ways = pytest.mark.parametrize("way", WAYS)


@pytest.mark.statistical
@both_ways
@settings(max_examples=200)
@given(values, levels)
def test_betting_ends_equal_oracle_within_one_step(way: str, values: Values, level: float) -> None:
    kernel, wealth = WAYS[way]
    (found,) = kernel([values], level)
    exact = plain.lower_end(values, level, wealth)
    step = np.mean(values) / 2**totals.HALVINGS
    assert exact - step * (1 + 1e-6) <= found <= exact * (1 + 1e-6)


def chances(size: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Probabilities of ``size`` values."""
    return (
        st.lists(st.integers(0, 50), min_size=size, max_size=size)
        .filter(any)
        .map(lambda shares: np.array(shares) / sum(shares))
    )


@pytest.mark.statistical
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([(0.0, 1.0), (0.0, 0.2, 1.0), (0.0, 0.05, 0.6, 1.0)]),
    st.data(),
    st.floats(1.2, 40),
)
def test_betting_ends_exceed_mean_rarely(
    support: tuple[float, ...], data: st.DataObject, level: float
) -> None:
    """Over all sequences, the end exceeds the mean with probability 1 / ``level`` at most."""
    share = data.draw(chances(len(support)))
    length = {2: 10, 3: 7, 4: 5}[len(support)]
    places = np.array(list(itertools.product(range(len(support)), repeat=length)))
    probability, mean = share[places].prod(axis=1), float(share @ np.array(support))
    for kernel, _ in WAYS.values():
        above = kernel(np.array(support)[places], level) > mean
        assert probability[above].sum() <= 1 / level + 1e-12


@pytest.mark.statistical
@settings(max_examples=40, deadline=None)
@given(st.data(), st.floats(1.2, 40))
def test_mixed_ends_hold_for_different_means(data: st.DataObject, level: float) -> None:
    """Each of six values has its own distribution; the end bounds the mean of their means."""
    support = np.array([0.0, 0.3, 1.0])
    share = np.array([data.draw(chances(3)) for _ in range(6)])
    places = np.array(list(itertools.product(range(3), repeat=6)))
    probability = share[np.arange(6), places].prod(axis=1)
    above = mixed(support[places], level) > float((share @ support).mean())
    assert probability[above].sum() <= 1 / level + 1e-12


def test_betting_ends_stay_finite_on_long_runs() -> None:
    """65,535 ones, the largest number of samples, and as many zeros."""
    for kernel, _ in WAYS.values():
        ones, zeros = kernel([np.ones(65_535), np.zeros(65_535)], 40.0)
        assert 0.999 < ones <= 1
        assert zeros == 0
        assert math.isfinite(ones)
