"""The study of convergence against dense power iteration and orders compared node by node."""

import tarfile
from pathlib import Path

import numpy as np
import pytest
from benchmarks.convergence import Iteration, queries_of_words, query_of_words, study
from benchmarks.convergence.orders import position_histogram, top_similarity
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph
from cocite.errors import InputError, UsageError
from cocite.ranking import pagerank
from tests.conftest import MakeGraph
from tests.oracles.graphs import Edges, graphs
from tests.oracles.pagerank import google_matrix

ROUNDING = 1e-13
"""Sums of up to 14 values, in another order, some hundred times."""


@settings(max_examples=15)
@given(graphs())
def test_study_residuals_equal_dense_matrix(
    make_graph: MakeGraph, graph: tuple[int, Edges]
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    found = study(stored, sweeps=[1], reference=6)
    matrix = google_matrix(n, edges, 0.85)
    x = np.full(n, 1 / n)
    for sweep in range(6):
        x = matrix @ x
        truth = np.abs(matrix @ x - x).sum()
        assert abs(found.residuals[Iteration.POWER][sweep] - truth) < ROUNDING
        ours = pagerank(stored, tolerance=1e-300, max_sweeps=sweep + 1).values
        truth = np.abs(matrix @ ours - ours).sum()
        assert abs(found.residuals[Iteration.GAUSS_SEIDEL][sweep] - truth) < ROUNDING


orders = st.integers(1, 12).flatmap(
    lambda n: st.tuples(st.permutations(range(n)), st.permutations(range(n)), st.integers(1, n))
)


@given(orders)
def test_top_similarity_matches_sets(case: tuple[list[int], list[int], int]) -> None:
    a, b, top = case
    found = top_similarity(np.array(a[:top], np.uint32), np.array(b[:top], np.uint32), len(a))
    for n in range(1, top + 1):
        one, other = set(a[:n]), set(b[:n])
        assert found[n - 1] == len(one & other) / len(one | other)


@given(orders, st.integers(1, 5))
def test_position_histogram_counts_all_nodes(
    case: tuple[list[int], list[int], int], bucket: int
) -> None:
    a, b, top = case
    places, others = np.argsort(a).astype(np.uint32), np.argsort(b).astype(np.uint32)
    found = position_histogram(places, others, top, bucket)
    truth: dict[int, int] = {}
    for node in set(a[:top]) | set(b[:top]):
        difference = a.index(node) - b.index(node)
        distance = int(abs(difference) / bucket + 0.5) * bucket
        middle = distance if difference > 0 else -distance
        truth[middle] = truth.get(middle, 0) + 1
    assert dict(zip(found.middle.tolist(), found.nodes.tolist(), strict=True)) == truth


@pytest.fixture
def web(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(5)
    return make_graph([(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400])


def test_study_settled_is_first_stable_sweep(web: Graph) -> None:
    found = study(web, sweeps=range(1, 60), top=20)
    for agreement in found.agreements:
        for settled in agreement.settled:
            assert settled.members is not None
            assert settled.order is not None
            assert settled.members <= settled.order
            equal = [agreement.similarity[s][settled.n - 1] == 1 for s in range(1, 60)]
            assert all(equal[settled.members - 1 :])
            assert settled.members == 1 or not equal[settled.members - 2]


def test_study_ignores_order_of_ties(make_graph: MakeGraph) -> None:
    """Ten leaves of one hub stay equal forever, in any order."""
    leaves = [("hub", f"leaf{i}") for i in range(10)]
    back = [(f"leaf{i}", "hub") for i in range(10)]
    found = study(make_graph(leaves + back), sweeps=[3], reference=200)
    for agreement in found.agreements:
        assert agreement.similarity[3].tolist() == [1] * 11
        assert agreement.positions[3].middle.tolist() == [0]


@pytest.mark.parametrize("kind", ["folder", "tar", "table"])
def test_queries_of_words_match_whole_words(
    make_graph: MakeGraph, tmp_path: Path, kind: str
) -> None:
    """All words, whole, in any case; a page without text is not found by its name."""
    texts = {
        "a": "Music, and LITERATURE; of music",
        "b": "musical literature",
        "c": "literature\nmusic",
        "d": "Games: role playing, action",
        "stranger": "music literature",
    }
    graph = make_graph([(name, "hub") for name in [*"abcd", "music_literature"]])
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.txt").write_text(text)
    path = folder
    if kind == "tar":
        path = tmp_path / "texts.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(folder, "texts")
    elif kind == "table":
        path = tmp_path / "texts.csv"
        path.write_text("".join(f'{name},"{text}"\n' for name, text in texts.items()))
    queries = queries_of_words(graph, ["music literature", "PLAYING role action"], path)
    assert [query.label for query in queries] == ["music literature", "PLAYING role action"]
    assert [set(graph.names.names(query.nodes)) for query in queries] == [{"a", "c"}, {"d"}]
    assert query_of_words(graph, "musical", path).nodes.tolist() == [graph.names.id("b")]
    assert queries_of_words(graph, [], path) == []
    with pytest.raises(UsageError, match=r"no text in .*texts.* has all of the words 'games music"):
        query_of_words(graph, "music games", path)
    with pytest.raises(
        InputError, match="does not exist; texts must be a folder, a tar archive or a"
    ):
        query_of_words(graph, "music", tmp_path / "nothing")
