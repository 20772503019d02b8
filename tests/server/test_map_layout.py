"""Groups and positions on the map: compared with NetworkX, and their guarantees."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from cocite.server.pages import map_layout

ROUNDING = 1e-9
"""Joins equal those of NetworkX where gains differ, and moves only raise the modularity."""


def similarities(seed: int, count: int, share: float) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    near = np.triu(rng.random((count, count)) * (rng.random((count, count)) < share), 1)
    planted = rng.integers(0, 4, count)
    near *= np.where(planted[:, None] == planted[None, :], 1.0, 0.3)
    return near + near.T


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("count", [2, 5, 12, 20])
def test_communities_reach_networkx_modularity(count: int, share: float) -> None:
    for seed in range(8):
        near = similarities(seed, count, share)
        if not near.any():
            continue
        groups = map_layout.communities(near)
        graph = networkx.from_numpy_array(near)
        communities = [set(np.flatnonzero(groups == name).tolist()) for name in np.unique(groups)]
        score = networkx.community.modularity(graph, communities)
        assert map_layout.modularity(near, groups) == pytest.approx(score, abs=1e-12)
        reference = networkx.community.greedy_modularity_communities(graph, weight="weight")
        assert score >= networkx.community.modularity(graph, reference) - ROUNDING


@given(st.integers(0, 10**6), st.integers(1, 20), st.floats(0, 1))
def test_groups_of_is_bounded_and_ordered_by_rank(seed: int, count: int, share: float) -> None:
    near = similarities(seed, count, share)
    groups = map_layout.groups_of(near)
    assert groups.tolist() == map_layout.groups_of(near.copy()).tolist()
    names, first, sizes = np.unique(groups[groups >= 0], return_index=True, return_counts=True)
    assert names.tolist() == list(range(len(names)))
    assert len(names) != 1
    assert len(names) <= map_layout.MOST_GROUPS
    assert (np.diff(first) > 0).all()
    assert (sizes > 1).all()
    for group, center in enumerate(map_layout.centers(near, groups, None)):
        assert groups[center] == group


def test_groups_of_finds_none_among_equal_similarities() -> None:
    near = np.ones((12, 12)) - np.eye(12)
    assert map_layout.groups_of(near).tolist() == [-1] * 12


def test_centers_picks_most_linked_node() -> None:
    near = np.ones((4, 4)) - np.eye(4)
    groups = np.zeros(4, np.int64)
    assert map_layout.centers(near, groups, np.array([1, 0, 9, 2])) == [2]


def test_arrange_distances_follow_dissimilarities() -> None:
    rng = np.random.default_rng(3)
    correlations = []
    for _ in range(5):
        points = rng.normal(size=(20, 2))
        points = points[np.argsort(np.hypot(*points.T))]
        radii = 84 + 128 * np.sqrt(np.linspace(0.0, 1.0, 20))
        distances = np.hypot(*(points[:, None] - points[None, :]).transpose(2, 0, 1))
        near = np.exp(-distances) * (1 - np.eye(20))
        groups = map_layout.groups_of(near)
        places = map_layout.arrange(near, radii, groups, 26.5)
        again = map_layout.arrange(near, radii, groups, 26.5)
        assert places.tolist() == again.tolist()
        map_distances = np.hypot(*(places[:, None] - places[None, :]).transpose(2, 0, 1))
        pairs = np.triu_indices(20, 1)
        assert map_distances[pairs].min() >= 26.5 - 1e-9
        assert (np.diff(np.hypot(*places.T)) > -1e-9).all()
        ranks = [
            np.argsort(np.argsort(each[pairs])).astype(float) for each in (distances, map_distances)
        ]
        correlations.append(float(np.corrcoef(ranks[0], ranks[1])[0, 1]))
    assert np.median(correlations) >= 0.75  # 0.79; majorization without sectors had 0.94
