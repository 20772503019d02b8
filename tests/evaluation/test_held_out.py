"""Hidden links, and the coneighbors to be found, against plain sets of pairs."""

import math
from pathlib import Path

import numpy as np
import pytest
from benchmarks.studies.rankers import RowRanker
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph
from cocite.errors import UsageError
from cocite.evaluation.held_out import CUTOFFS, CoNeighborGain, Hidden, hidden_pairs, hide_links
from tests.conftest import MakeGraph

Links = set[tuple[int, int]]


def links_in(graph: Graph) -> Links:
    return {(int(u), v) for v in range(graph.nodes) for u in graph.in_neighbors(v)}


def random_links(nodes: int, count: int, seed: int) -> Links:
    rng = np.random.default_rng(seed)
    return {(int(a), int(b)) for a, b in rng.integers(0, nodes, (count, 2))}


@settings(max_examples=30)
@given(
    nodes=st.integers(2, 30),
    count=st.integers(1, 120),
    seed=st.integers(0, 50),
    share=st.floats(0.01, 0.5),
)
def test_hide_links_keeps_link_per_page_and_hides_both_ways(
    make_graph: MakeGraph, tmp_path: Path, nodes: int, count: int, seed: int, share: float
) -> None:
    graph = make_graph(random_links(nodes, count, seed), keep_self_loops=True)
    all_links = links_in(graph)
    loopless = {(a, b) for a, b in all_links if a != b}
    try:
        pairs = hidden_pairs(graph, share, seed)
    except UsageError:
        degree = {v: sum(v in link for link in loopless) for v in range(graph.nodes)}
        for a, b in loopless:
            both = 1 + ((b, a) in loopless)
            assert min(degree[a], degree[b]) <= both
        return
    folder = tmp_path / f"shown-{len(list(tmp_path.iterdir()))}"
    shown = hide_links(graph, folder, pairs)
    shown.check()
    remaining = links_in(shown)
    assert remaining < all_links
    assert {
        (b, a) for a, b in all_links - remaining if (b, a) in all_links
    } <= all_links - remaining
    for page in {page for link in loopless for page in link}:
        assert any(page in link for link in remaining if link[0] != link[1])
    expected = max(1, round(share * len(loopless)))
    assert len(all_links) - len(remaining) <= expected + 1
    assert list(shown.names) == list(graph.names)
    assert np.array_equal(
        shown.out_degrees, [sum(a == v for a, _ in remaining) for v in range(graph.nodes)]
    )


def test_hidden_pairs_match_requested_share(make_graph: MakeGraph) -> None:
    graph = make_graph(random_links(60, 900, 1))
    total = graph.edges
    pairs = hidden_pairs(graph, 0.2, 0)
    hidden = Hidden.of(pairs)
    links = links_in(graph)
    count = sum(((int(a), int(b)) in links) + ((int(b), int(a)) in links) for a, b in _ends(hidden))
    assert abs(count - 0.2 * total) <= 1.5
    assert np.array_equal(pairs, hidden_pairs(graph, 0.2, 0))
    assert not np.array_equal(pairs, hidden_pairs(graph, 0.2, 1))
    assert set(pairs.tolist()) < set(hidden_pairs(graph, 0.4, 0).tolist())


def _ends(hidden: Hidden) -> list[tuple[int, int]]:
    return list(zip(hidden.low.tolist(), hidden.high.tolist(), strict=True))


def test_hide_links_keeps_weights(make_graph: MakeGraph, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weights = {link: float(rng.integers(1, 9)) for link in random_links(20, 120, 4)}
    graph = make_graph([(a, b, w) for (a, b), w in weights.items()], weight_column=3)
    shown = hide_links(graph, tmp_path / "shown", hidden_pairs(graph, 0.3, 0))
    assert shown.in_weights is not None
    names, position = list(graph.names), 0
    for v in range(shown.nodes):
        for u in shown.in_neighbors(v):
            assert shown.in_weights[position] == weights[int(names[int(u)]), int(names[v])]
            position += 1
    assert shown.info().total_weight == pytest.approx(float(shown.in_weights.sum()))


def test_hidden_pairs_refuses_graph_of_pairs(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("c", "d"), ("d", "c")])
    with pytest.raises(UsageError, match=r"no link of .* can be hidden: each .* by labels"):
        hidden_pairs(graph, 0.5, 0)


def test_coneighbor_gain_matches_plain_sets(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(random_links(40, 300, 7))
    pairs = hidden_pairs(graph, 0.2, 0)
    shown, hidden = hide_links(graph, tmp_path / "shown", pairs), Hidden.of(pairs)
    scores = np.random.default_rng(1).random((graph.nodes, graph.nodes))
    ranker = RowRanker(lambda node: scores[node], graph.nodes)
    judge = CoNeighborGain(graph, shown, hidden, hidden.pages, 1 << 30)
    judged = judge(ranker, threads=2)
    all_links, remaining = links_in(graph), links_in(shown)
    degree = {
        v: sum(v == a for a, _ in remaining) + sum(v == b for _, b in remaining) for v in range(40)
    }
    gain = {v: 1 / math.sqrt(1 + d) for v, d in degree.items()}
    queries = []
    for page in range(graph.nodes):
        lost = {link for link in all_links - remaining if page in link}
        coneighbors = {a for a, b in remaining if (page, b) in lost}
        coneighbors |= {b for a, b in remaining if (a, page) in lost}
        coneighbors -= {page}
        if not coneighbors:
            continue
        queries.append(page)
        ends = {a if b == page else b for a, b in lost}
        order = sorted((v for v in range(40) if v != page), key=lambda v: -scores[page][v])
        row = judge.queries.tolist().index(page)
        for k in CUTOFFS:
            best = sum(sorted((gain[x] for x in coneighbors), reverse=True)[:k])
            found = sum(gain[x] for x in order[:k] if x in coneighbors) / best
            assert judged.column(f"coneighbors@{k}")[row] == pytest.approx(found)
            share = len(ends & set(order[:k])) / min(k, len(ends))
            assert judged.column(f"links@{k}")[row] == pytest.approx(share)
    assert judge.queries.tolist() == queries
    rows = np.arange(len(queries)) % 2 == 0
    assert np.array_equal(judge.of(rows)(ranker).parts, judged.of(rows).parts)
