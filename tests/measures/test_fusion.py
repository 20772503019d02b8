"""Fusion and PPR-PMI compared with dense matrices."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import cocite
from cocite import Graph
from cocite.cluster import in_order
from cocite.index.layouts.rows import build as row_build
from cocite.index.layouts.rows.fusion_reader import RowsReader
from cocite.kernels import rows as kernels
from cocite.measures.fusion import row_sizes
from tests.conftest import MakeGraph
from tests.oracles import fusion as oracle
from tests.oracles import nearest
from tests.oracles.graphs import Edges, graphs
from tests.search.exact import assert_related_is_similarity_sorted

Matrix = NDArray[np.float64]


def adjacency(graph: Graph) -> Matrix:
    """Return at [u, v] whether u links to v."""
    links = np.zeros((graph.nodes, graph.nodes))
    for node in range(graph.nodes):
        links[graph.in_neighbors(node), node] = 1
    return links


def expected(graph: Graph, measure: str, sizes: tuple[int, int]) -> Matrix:
    """Return the scores of all pairs by the definition."""
    links, (listed, walked) = adjacency(graph), sizes
    either = links + links.T
    scale = oracle.scale(either)
    pushed = oracle.pushed(either, walked, oracle.odd_weight(either))
    parts = [oracle.jaccard(oracle.encoded(pushed, walked, scale))]
    if measure == "fusion":
        lists = nearest.lists([links.T, links], listed - 1, 1000, 0.25)
        parts.append(oracle.jaccard(oracle.encoded(lists, listed, 1.0)))
    mean: Matrix = np.mean(parts, axis=0)
    return mean


def scores(index: cocite.Index, nodes: int) -> Matrix:
    """Return the scores of all pairs; a node and itself score 1."""
    names = list(index.nodes)
    pairs = itertools.product(names, names)
    return np.array([pair.score for pair in index.similarities(pairs)]).reshape(nodes, nodes)


@pytest.mark.parametrize("measure", ["fusion", "ppr-pmi"])
@settings(max_examples=12)
@given(drawn=graphs())
def test_fusion_matches_dense_oracle(
    make_graph: MakeGraph, drawn: tuple[int, Edges], measure: str
) -> None:
    n, edges = drawn
    graph = make_graph(edges, range(n))
    index = cocite.build(graph, graph.path.with_suffix(".index"), measure=measure)
    exact = expected(graph, measure, (50, 100))
    np.fill_diagonal(exact, 1)
    assert scores(index, n) == pytest.approx(exact, abs=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(("measure", "size"), [("fusion", "default"), ("ppr-pmi", "small")])
def test_fusion_size_limits_row_length(make_graph: MakeGraph, measure: str, size: str) -> None:
    """Rows of this graph are longer than any size."""
    rng = np.random.default_rng(4)
    edges = [(int(a), int(b)) for a, b in rng.integers(0, 2001, (14000, 2))]
    graph = make_graph(edges, range(2001))
    index = cocite.build(
        graph, graph.path.with_suffix(f".{measure}.{size}"), measure=measure, size=size
    )
    sizes = {"small": (60, 100), "default": (100, 200)}[size]
    (part,) = index.stored.parts
    longest = np.diff(part.array("rows.offsets").astype(np.int64))
    families = longest.reshape(-1, 2001).max(axis=1).tolist()
    assert families == list(sizes if measure == "fusion" else sizes[1:])


@pytest.mark.parametrize(
    ("size", "nodes", "values"),
    [
        ("default", 2_000, (200, 400)),
        ("default", 2_001, (100, 200)),
        ("default", 10_000, (100, 200)),
        ("default", 10_001, (50, 100)),
        ("small", 10_001, (30, 50)),
        ("large", 10_001, (100, 200)),
    ],
)
def test_row_sizes_grow_in_small_graphs(size: str, nodes: int, values: tuple[int, int]) -> None:
    assert row_sizes(size, nodes) == values


@pytest.mark.parametrize(
    ("measure", "far"), [("fusion", False), ("fusion", True), ("ppr-pmi", True)]
)
def test_fusion_related_equals_similarity(make_graph: MakeGraph, measure: str, far: bool) -> None:
    """Pages with neighboring ids share most or all links, or, if ``far``, few pages with distant
    ids share any.
    """
    rng = np.random.default_rng(5)
    links = [(page, 60 + page // 40 + hub) for page in range(60) for hub in range(0, 9, 2)]
    links += [(page, page + 1) for page in range(60) if page % 23]
    links += rng.integers(0, 70, (40, 2)).tolist()
    links = [(page, page + 35 + page % 2) for page in range(0, 34, 3)] if far else links
    graph = make_graph(links, range(70))
    index = cocite.build(graph, graph.path.with_suffix(".index"), measure=measure)
    assert_related_is_similarity_sorted(index, scores(index, 70))


@pytest.mark.long
def test_fusion_only_nodes_pushes_few_rows(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows equal those of the full index; besides them, only ends of 400 links are pushed."""
    rng, pushed, push = np.random.default_rng(8), list[int](), kernels.push
    graph = make_graph([(int(a), int(b)) for a, b in rng.integers(0, 2000, (6000, 2))], range(2000))
    whole = cocite.build(graph, graph.path.with_suffix(".whole"), measure="fusion")

    def counted(*args: Any) -> int:
        pushed.append(args[-1][0].size)
        return int(push(*args))

    monkeypatch.setattr(kernels, "push", counted)
    ids = [*range(700, 790), 5, 1999]
    names = list(map(str, ids))
    selected = cocite.build(graph, graph.path.with_suffix(".s"), measure="fusion", only_nodes=names)
    assert sum(pushed) <= len(ids) + 3 * 400
    readers = [RowsReader(index.stored.parts[0]) for index in (whole, selected)]
    for family in range(len(readers[0].weights)):
        for place, node in enumerate(sorted(ids)):
            selected_row, whole_row = readers[1].row(family, place), readers[0].row(family, node)
            assert np.array_equal(selected_row, whole_row)


def test_fusion_only_nodes_scores_equal_full_index(make_graph: MakeGraph) -> None:
    """Reasons that the selection lacks count as unattributed."""
    rng = np.random.default_rng(6)
    edges = [(int(a), int(b)) for a, b in rng.integers(0, 80, (400, 2))]
    graph = make_graph(edges, range(80))
    whole = cocite.build(graph, graph.path.with_suffix(".whole"), measure="fusion")
    names = [str(node) for node in range(0, 80, 3)]
    selected = cocite.build(
        graph, graph.path.with_suffix(".selected"), measure="fusion", only_nodes=names
    )
    for name in names[:5]:
        expected = whole.related(name, 80, only=names)
        assert selected.related(name, 80) == expected
        why = selected.why(name, expected[0].node, 100)
        assert why.unattributed > 0
        shares = sum(reason.contribution for reason in why.reasons)
        assert shares + why.remaining + why.unattributed == pytest.approx(why.score, abs=1e-9)


@pytest.mark.parametrize("measure", ["fusion", "snn"])
def test_rows_build_resumes_from_logs(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    """Rows in logs are not rebuilt, unless a byte is wrong."""
    rng = np.random.default_rng(7)
    graph = make_graph([(int(a), int(b)) for a, b in rng.integers(0, 3000, (5000, 2))], range(3000))
    whole = cocite.build(graph, graph.path.with_suffix(".whole"), measure=measure)
    output, built = graph.path.with_suffix(".index"), list[int]()

    def counted(*args: Any) -> Iterator[Any]:
        for rows in in_order(*args):
            built.append(rows[0].size)
            yield rows

    def stop(share: float, done: int, total: int) -> None:
        if done > share * total:
            raise KeyboardInterrupt

    monkeypatch.setattr(row_build, "in_order", counted)
    for share in (0.2, 0.6):
        with pytest.raises(KeyboardInterrupt) as stopped:
            cocite.build(graph, output, measure=measure, progress=partial(stop, share))
        assert " 0 of" not in stopped.value.__notes__[0]
    logs = sorted(output.with_name(f"{output.name}.building").glob("*.log"))
    assert len(logs) == (2 if measure == "fusion" else 1)
    torn = logs[-1].read_bytes()
    logs[-1].write_bytes(torn[:-100] + bytes(100))
    again = cocite.build(graph, output, measure=measure)
    assert again.stored.digest == whole.stored.digest
    assert not [*output.glob("*.log")]
    assert sum(built) <= len(logs) * 3000 + 2 * 3 * 256  # unsaved and torn rows are rebuilt
