"""Orders by two personalizations, compared node by node."""

from typing import Any

import numpy as np
import pytest
from benchmarks.convergence import Query, compare

import cocite
from cocite.errors import ResourceError, UsageError
from cocite.ranking import pagerank
from tests.conftest import MakeGraph


@pytest.fixture
def graph(make_graph: MakeGraph) -> cocite.Graph:
    rng = np.random.default_rng(5)
    return make_graph([(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400])


def brute_force(
    first: np.ndarray, second: np.ndarray, nodes: list[int], top: int
) -> tuple[list[float], int, list[int]]:
    """Similarities, length of the common prefix, and differences in position.

    Ties of the first, to 1e-11, take the order of the second.
    """
    b = sorted(nodes, key=lambda v: (-second[v], v))
    a = sorted(nodes, key=lambda v: (-first[v], v))
    start = 0
    for end in range(1, len(a) + 1):
        if end == len(a) or first[a[end - 1]] - first[a[end]] > 1e-11 * first[a[end - 1]]:
            a[start:end] = sorted(a[start:end], key=b.index)
            start = end
    top = min(top, len(nodes))
    similarity = [
        len(set(a[:n]) & set(b[:n])) / len(set(a[:n]) | set(b[:n])) for n in range(1, top + 1)
    ]
    same = next((i for i in range(top) if a[i] != b[i]), top)
    either = set(a[:top]) | set(b[:top])
    return similarity, same, sorted(b.index(v) - a.index(v) for v in either)


@pytest.mark.parametrize(
    "options", [{}, {"blocks": 3}, {"dangling": "remove", "tolerance": 1e-300, "max_sweeps": 9}]
)
def test_compare_matches_brute_force(graph: cocite.Graph, options: dict[str, Any]) -> None:
    chosen = np.arange(3, graph.nodes, 7, dtype=np.uint32)
    toward = ["n1", "n7", "n30"]
    queries = [Query("some", chosen)]
    found = compare(graph, None, toward, queries=queries, top=40, **options)
    one = pagerank(graph, **options)
    other = pagerank(graph, personalization=toward, **options)
    assert found.first.values.tobytes() == one.values.tobytes()
    assert found.second.values.tobytes() == other.values.tobytes()
    ranked = np.flatnonzero((one.values > 0) | (other.values > 0))
    sets = {None: ranked.tolist(), "some": np.intersect1d(chosen, ranked).tolist()}
    for difference in found.differences:
        nodes = sets[difference.query]
        similarity, same, shifts = brute_force(one.values, other.values, nodes, 40)
        assert difference.nodes == len(nodes)
        assert difference.similarity.tolist() == similarity
        assert difference.same_order == same
        positions = difference.positions
        assert np.repeat(positions.middle, positions.nodes).tolist() == shifts


def test_compare_finds_no_difference_for_equal_personalization(graph: cocite.Graph) -> None:
    found = compare(graph, ["n1"], {"n1": 7}, top=50).differences[0]
    assert found.similarity.tolist() == [1] * 50
    assert found.same_order == 50
    assert found.positions.middle.tolist() == [0]


def test_compare_refuses_invalid_options(graph: cocite.Graph) -> None:
    with pytest.raises(UsageError, match="top is 0, bucket is 1; both are 1 or more"):
        compare(graph, None, ["n1"], top=0)
    with pytest.raises(ResourceError, match="besides PageRank's; 9 kB may be used"):
        compare(graph, None, ["n1"], memory=9000)
