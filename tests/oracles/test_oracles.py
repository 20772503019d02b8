"""The oracles against each other, and against published scores."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import compact, walks
from tests.oracles import simrank as exact
from tests.oracles.graphs import Edges, graphs, in_neighbors


@given(graphs(8), st.integers(0, 6))
def test_psimrank_equals_definition(graph: tuple[int, Edges], rounds: int) -> None:
    inlinks = exact.dense(*graph)
    assert np.allclose(
        exact.psimrank(inlinks, 0.6, rounds), exact.psimrank_by_definition(inlinks, 0.6, rounds)
    )


@given(graphs(6), st.integers(0, 4))
def test_psimrank_by_clocks_equals_definition(graph: tuple[int, Edges], rounds: int) -> None:
    inlinks = exact.dense(*graph)
    assert np.allclose(
        exact.psimrank_by_clocks(inlinks, 0.6, rounds),
        exact.psimrank_by_definition(inlinks, 0.6, rounds),
    )


PACES = st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, 0.1, 7.5]), min_size=5, max_size=5)


@given(PACES, PACES)
def test_clock_choices_have_expected_marginals(x: list[float], y: list[float]) -> None:
    if any(x) and any(y):
        chances = exact.clock_choices(np.array(x), np.array(y))
        assert np.allclose(chances.sum(axis=1), np.array(x) / sum(x))
        assert np.allclose(chances.sum(axis=0), np.array(y) / sum(y))
        assert np.isclose(np.trace(chances), exact.probability_jaccard(np.array(x), np.array(y)))


@given(graphs(8))
def test_simrank_satisfies_equations(graph: tuple[int, Edges]) -> None:
    n, edges = graph
    scores = exact.simrank(exact.dense(n, edges), 0.5, 60)
    sets = in_neighbors(n, edges)
    for u in range(n):
        for v in range(n):
            if u == v:
                expected = 1.0
            elif not sets[u] or not sets[v]:
                expected = 0.0
            else:
                expected = 0.5 * float(scores[np.ix_(sets[u], sets[v])].mean())
            assert abs(scores[u, v] - expected) < 1e-12


@given(graphs(10), st.sampled_from(["uniform", "argmin"]), st.integers(0, 99))
def test_paths_stay_together_after_meeting(graph: tuple[int, Edges], step: str, seed: int) -> None:
    walked = walks.paths(in_neighbors(*graph), step, seed, 0, 8)
    times = walks.meeting_times(walked)
    for u, v in np.argwhere(times != walks.NEVER).tolist():
        assert walked[u][times[u, v] :] == walked[v][times[u, v] :]


@pytest.mark.parametrize("edges", compact.GRAPHS.values(), ids=compact.GRAPHS.keys())
def test_compact_simrank_of_one_step_equals_simrank(edges: Edges) -> None:
    nodes = 1 + max(max(edge) for edge in edges)
    found = compact.compact_simrank(in_neighbors(nodes, edges), 0.6, 1)
    assert np.allclose(found, exact.simrank(exact.dense(nodes, edges), 0.6, 1))


def test_compact_simrank_equals_simrank_on_levels() -> None:
    """Three levels, with links only to the next: walks reach a node at one time only."""
    edges = [(a, b) for a in (0, 1) for b in (2, 3, 4)] + [(2, 5), (3, 5), (3, 6), (4, 6), (4, 7)]
    found = compact.compact_simrank(in_neighbors(8, edges), 0.6, 5)
    assert np.allclose(found, exact.simrank(exact.dense(8, edges), 0.6, 5))


def test_compact_simrank_of_two_mutual_links() -> None:
    """u and v have in-links from a and b, which link to each other: as in SimRank, walks meet at
    the first step or never, as they only change places.
    """
    edges = [(0, 1), (1, 0), (0, 2), (1, 2), (0, 3), (1, 3)]
    scores = compact.compact_simrank(in_neighbors(4, edges), 0.6, 9)
    assert scores[2, 3] == pytest.approx(0.3)
    # node 2 goes to 0 or 1, and the walk from 0 is at 1 then
    assert scores[0, 2] == pytest.approx(0.3)


@given(graphs(max_nodes=8), st.integers(1, 6))
def test_relatives_equals_compact_simrank_of_function(
    graph: tuple[int, Edges], length: int
) -> None:
    n, edges = graph
    step = [row[0] if row else None for row in in_neighbors(n, edges)]
    single = [[] if neighbor is None else [neighbor] for neighbor in step]
    scores = compact.compact_simrank(single, 0.5, length)
    for u in range(n):
        expected = {v: scores[u, v] for v in range(n) if v != u and scores[u, v] > 0}
        assert compact.relatives(step, u, 0.5, length) == expected


@pytest.mark.long
def test_simrank_reproduces_published_scores(data: Callable[[str], Path]) -> None:
    """simrank-crime: edges both ways, decay 0.6, 20 iterations, the top 20 of every node."""
    folder = data("simrank-crime")
    lines = (folder / "crime.txt").read_text().splitlines()
    pairs = [(int(a), int(b)) for a, b in map(str.split, lines)]
    n = 1 + max(map(max, pairs))
    symmetric = {(a, b) for a, b in pairs} | {(b, a) for a, b in pairs}
    scores = exact.simrank(exact.dense(n, sorted(symmetric)), 0.6, 20)
    compared, worst = 0, 0.0
    for line in (folder / "crime_simrank_naive_top20.txt").read_text().splitlines():
        node, *hits = line.split()
        for hit in hits:
            other, score = hit.split(":")
            worst = max(worst, abs(scores[int(node), int(other)] - float(score)))
            compared += 1
    assert compared > 20_000
    assert worst < 2e-6
