"""Queries of an index: scores of brute-force walks, forked processes and threads."""

import math
import os
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Index
from cocite.search.hits import Hits
from tests.conftest import MakeGraph
from tests.oracles import walks
from tests.oracles.graphs import Edges, graphs, in_neighbors

STEPS = {"simrank": "uniform", "psimrank": "argmin"}


@settings(max_examples=10)
@given(
    graphs(),
    st.sampled_from(sorted(STEPS)),
    st.integers(1, 12),
    st.integers(1, 15),
    st.floats(0.05, 0.95),
)
def test_similarity_equals_mean_over_brute_force_walks(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    measure: str,
    samples: int,
    length: int,
    decay: float,
) -> None:
    n, edges = graph
    options: dict[str, Any] = {"measure": measure, "samples": samples, "length": length}
    index = cocite.build(make_graph(edges, range(n)), shard=5, **options)
    neighbors = in_neighbors(n, edges)
    values = np.zeros((samples, n, n))
    for sample in range(samples):
        times = walks.meeting_times(walks.paths(neighbors, STEPS[measure], 0, sample, length))
        values[sample] = np.where(times == walks.NEVER, 0, decay ** times.astype(float))
    means = values.mean(axis=0)
    errors = values.std(axis=0, ddof=1) / math.sqrt(samples) if samples > 1 else means * math.nan
    for u in range(n):
        for v in range(n):
            found = index.similarity(u, v, decay=decay)
            assert abs(found.score - means[u, v]) < 1e-12
            assert found.score == index.similarity(v, u, decay=decay).score
            if samples > 1:
                assert abs(found.stderr - errors[u, v]) < 1e-6
            else:
                assert math.isnan(found.stderr)
        hits = index.related(u, n, decay=decay)
        assert {h.node for h in hits} == {
            str(v) for v in range(n) if v != u and means[u, v] > 0.5e-12
        }


@pytest.fixture(scope="module")
def index(module_graph: MakeGraph) -> Index:
    """500 nodes in communities, named out of numeric order."""
    rng = np.random.default_rng(8)
    site = rng.integers(0, 500, (4000, 1)) // 20 * 20
    edges = (site + rng.integers(0, 25, (4000, 2))).tolist()
    graph = module_graph([(f"n{a}", f"n{b}") for a, b in edges])
    return cocite.build(graph, samples=50, length=8, seed=2, shard=7, measure="psimrank")


Expected = dict[str, Hits]


@pytest.fixture(scope="module")
def expected(index: Index) -> Expected:
    nodes = [f"n{i}" for i in range(0, 500, 9) if f"n{i}" in index.nodes]
    return {node: index.related(node, 15) for node in nodes}


def test_related_min_score_is_inclusive(index: Index) -> None:
    hits = index.related("n77", 1000)
    found = index.related("n77", 1000, min_score=hits[9].score)
    assert found == [h for h in hits if h.score >= hits[9].score]
    assert index.related("n77", 1000, min_score=1) == []
    for node in list(index.nodes)[::25]:
        for hit in index.related(node, 100):
            assert hit in index.related(node, 100, min_score=hit.score)


@pytest.mark.process
def test_related_works_in_forked_processes(index: Index, expected: Expected) -> None:
    """As in prefork servers: scratch memory must not be shared."""
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            equal = all(index.related(n, 15) == expected[n] for n in [*expected] * 5)
            os._exit(0 if equal else 1)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]


def test_related_is_thread_safe(index: Index, expected: Expected) -> None:
    mismatches: list[str] = []

    def query() -> None:
        for _ in range(5):
            mismatches.extend(n for n in expected if index.related(n, 15) != expected[n])

    threads = [threading.Thread(target=query) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert mismatches == []


def test_related_accepts_integer_names(make_graph: MakeGraph) -> None:
    index = cocite.build(make_graph([(1, 20), (1, 300)]), samples=3, measure="psimrank")
    assert index.related(20)[0].node == "300"
    assert index.similarity(20, "300").score == pytest.approx(0.6)
