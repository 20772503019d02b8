"""The study of convergence against dense power iteration and orders compared node by node."""

import csv
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from benchmarks.convergence import (
    Iteration,
    Query,
    queries_of_words,
    query_of_nodes,
    query_of_words,
    study,
)
from benchmarks.convergence.__main__ import main
from benchmarks.convergence.orders import position_histogram, top_similarity
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph
from cocite.errors import InputError, OutputExists, ResourceError, UnknownNode, UsageError
from cocite.ranking import pagerank
from tests.conftest import MakeGraph
from tests.oracles.graphs import Edges, graphs
from tests.oracles.pagerank import google_matrix

ROUNDING = 1e-13
"""Sums of at most 14 values of sum 1, in another order, some hundred times."""


@settings(max_examples=30)
@given(graphs())
def test_residuals_equal_dense_matrix(make_graph: MakeGraph, graph: tuple[int, Edges]) -> None:
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
def test_similarity_is_that_of_the_sets(case: tuple[list[int], list[int], int]) -> None:
    a, b, top = case
    found = top_similarity(np.array(a[:top], np.uint32), np.array(b[:top], np.uint32), len(a))
    for n in range(1, top + 1):
        one, other = set(a[:n]), set(b[:n])
        assert found[n - 1] == len(one & other) / len(one | other)


@given(orders, st.integers(1, 5))
def test_histogram_counts_all_nodes(case: tuple[list[int], list[int], int], bucket: int) -> None:
    a, b, top = case
    places, others = np.argsort(a).astype(np.uint32), np.argsort(b).astype(np.uint32)
    found = position_histogram(places, others, top, bucket)
    truth: dict[int, int] = {}
    for node in set(a[:top]) | set(b[:top]):
        difference = a.index(node) - b.index(node)
        away = int(abs(difference) / bucket + 0.5) * bucket
        middle = away if difference > 0 else -away
        truth[middle] = truth.get(middle, 0) + 1
    assert dict(zip(found.middle.tolist(), found.nodes.tolist(), strict=True)) == truth


def test_positions_and_similarity_by_hand() -> None:
    """Order 0 1 2 3 against 1 0 3 2, the top two: each is one place away."""
    places, others = np.array([0, 1, 2, 3], np.uint32), np.array([1, 0, 3, 2], np.uint32)
    found = position_histogram(places, others, 2, 1)
    assert (found.middle.tolist(), found.nodes.tolist()) == ([-1, 1], [1, 1])
    similarity = top_similarity(np.array([0, 1, 2], np.uint32), np.array([1, 0, 3], np.uint32), 4)
    assert similarity.tolist() == [0, 1, 0.5]


@pytest.fixture
def web(make_graph: MakeGraph) -> Graph:
    rng = np.random.default_rng(5)
    return make_graph([(f"n{a}", f"n{b}") for a, b in rng.zipf(1.6, (3000, 2)).tolist() if b < 400])


def brute(graph: Graph, nodes: list[int], sweeps: int, top: int) -> tuple[list[float], list[int]]:
    """Similarities, and differences in position, of our sweeps against 100 of them.

    What the latter rank alike, to 1e-11, is put in the order of the former.
    """
    early, late = (pagerank(graph, tolerance=1e-300, max_sweeps=s).values for s in (sweeps, 100))
    a = sorted(nodes, key=lambda v: (-early[v], v))
    b = sorted(nodes, key=lambda v: (-late[v], v))
    start = 0
    for end in range(1, len(b) + 1):
        if end == len(b) or late[b[end - 1]] - late[b[end]] > 1e-11 * late[b[end]]:
            b[start:end] = sorted(b[start:end], key=a.index)
            start = end
    similarity = []
    for n in range(1, top + 1):
        one, other = set(a[:n]), set(b[:n])
        similarity.append(len(one & other) / len(one | other))
    among = set(a[:top]) | set(b[:top])
    return similarity, sorted(a.index(v) - b.index(v) for v in among)


def test_orders_of_all_nodes_and_of_a_query_are_those_compared_one_by_one(web: Graph) -> None:
    chosen = np.arange(3, web.nodes, 7, dtype=np.uint32)
    found = study(web, queries=[Query("some", chosen)], sweeps=[2, 5], top=60)
    sets: dict[str | None, list[int]] = {None: list(range(web.nodes)), "some": chosen.tolist()}
    ours = [a for a in found.agreements if a.iteration is Iteration.GAUSS_SEIDEL]
    assert [a.query for a in ours] == [None, "some"]
    for agreement in ours:
        nodes = sets[agreement.query]
        for sweeps in (2, 5):
            similarity, differences = brute(web, nodes, sweeps, min(60, len(nodes)))
            histogram = agreement.positions[sweeps]
            assert agreement.similarity[sweeps].tolist() == similarity
            assert np.repeat(histogram.middle, histogram.nodes).tolist() == differences


def test_settled_is_the_sweep_from_which_on_it_holds(web: Graph) -> None:
    found = study(web, sweeps=range(1, 60), top=20)
    for agreement in found.agreements:
        for settled in agreement.settled:
            assert settled.members is not None
            assert settled.order is not None
            assert settled.members <= settled.order
            alike = [agreement.similarity[s][settled.n - 1] == 1 for s in range(1, 60)]
            assert all(alike[settled.members - 1 :])
            assert settled.members == 1 or not alike[settled.members - 2]


def test_ties_are_no_disorder(make_graph: MakeGraph) -> None:
    """Ten nodes that only one page links to are equal for ever, whatever order they are in."""
    leaves = [("hub", f"leaf{i}") for i in range(10)]
    back = [(f"leaf{i}", "hub") for i in range(10)]
    found = study(make_graph(leaves + back), sweeps=[3], reference=200)
    for agreement in found.agreements:
        assert agreement.similarity[3].tolist() == [1] * 11
        assert agreement.positions[3].middle.tolist() == [0]


@pytest.mark.parametrize("kind", ["folder", "tar", "table"])
def test_words_are_found_in_texts(make_graph: MakeGraph, tmp_path: Path, kind: str) -> None:
    """Conjunctive, whole words, in any case; a page without a text is not found by its name."""
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


def test_words_are_whole_decoded_and_in_any_case(make_graph: MakeGraph, tmp_path: Path) -> None:
    names = ["War_and_Peace", "http://a.org/peace-war", "Warsaw_Peace", "Caf%C3%A9_war", "peace"]
    graph = make_graph([(name, "hub") for name in names])

    def found(words: str) -> set[str]:
        return set(graph.names.names(query_of_words(graph, words).nodes))

    assert found("WAR peace") == {"War_and_Peace", "http://a.org/peace-war"}
    assert found("café") == {"Caf%C3%A9_war"}
    with pytest.raises(UsageError, match="no name of 6 has all of the words 'saw war'"):
        query_of_words(graph, "war saw")
    with pytest.raises(UsageError, match="no words to look for"):
        query_of_words(graph, " _ ")
    file = tmp_path / "nodes.txt"
    file.write_text("peace\r\n\nhub\npeace\n")
    query = query_of_nodes(graph, file)
    assert (query.label, sorted(graph.names.names(query.nodes))) == ("nodes.txt", ["hub", "peace"])
    file.write_text("piece\n")
    with pytest.raises(UnknownNode, match="'piece'; the nearest name"):
        query_of_nodes(graph, file)
    file.write_text("\n")
    with pytest.raises(UsageError, match="names no nodes"):
        query_of_nodes(graph, file)
    file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="no text in UTF-8"):
        query_of_nodes(graph, file)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"sweeps": [100]}, UsageError, "sweeps 100 are compared with 100"),
        ({"sweeps": [0, 5]}, UsageError, "from 1 on"),
        ({"top": 0}, UsageError, "top is 0"),
        (
            {"dangling": "uniform", "personalization": ["n1"]},
            UsageError,
            "uniform dangling nodes",
        ),
        ({"memory": 1000}, ResourceError, "besides PageRank's; 1 kB may be used"),
    ],
)
def test_wrong_use_is_refused(
    web: Graph, options: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        study(web, **options)  # type: ignore[arg-type]


def test_study_command_writes_tables_and_pictures(
    web: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    out = tmp_path / "study"
    options = ["--max-sweeps", "1", "2", "--reference", "9", "--query-words", "n1"]
    monkeypatch.setattr(sys, "argv", ["", "study", str(web.path), "-o", str(out), *options])
    main()
    tables = ["positions.csv", "residual.csv", "settled.csv", "similarity.csv", "study.json"]
    pictures = ["positions-query1.png", "positions.png", "residual.png"]
    pictures += ["similarity-query1.png", "similarity.png"]
    assert sorted(file.name for file in out.iterdir()) == sorted(tables + pictures)
    found = study(web, sweeps=[1, 2], reference=9)
    with (out / "residual.csv").open() as file:
        rows = list(csv.DictReader(file))
    for iteration in Iteration:
        mine = [float(r["residual"]) for r in rows if r["iteration"] == iteration.value]
        assert mine == found.residuals[iteration].tolist()
    assert "L1 residual" in capsys.readouterr().out
    with pytest.raises(OutputExists, match="exists"):
        main()


def test_compare_command_prints_both_orders(
    web: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = tmp_path / "first.tsv", tmp_path / "other.tsv"
    first.write_text("n1\t2\n")
    other.write_text("n2\t1\nn3\t1\n")
    arguments = ["", "compare", str(web.path), str(first), str(other), "--top", "10"]
    monkeypatch.setattr(sys, "argv", arguments)
    main()
    printed = capsys.readouterr().out
    assert printed.startswith("all nodes: the first ")
    assert "  top 10: " in printed
