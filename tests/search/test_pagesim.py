"""PageSim: against an enumeration of all simple paths; bounds, builds and queries."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import cocite
from cocite import Graph, Index
from cocite.errors import Damaged, ResourceError
from cocite.graph.blocks import Links
from cocite.graph.links import in_links, transpose
from cocite.index.layouts.rows.reader import FeatureReader
from cocite.kernels import features as kernels
from cocite.measures import PartSettings
from cocite.ranking.hits import power_scores
from tests.conftest import MakeGraph
from tests.engine.test_scan import scan_of
from tests.oracles import pagerank as rank_oracle
from tests.oracles import pagesim as oracle
from tests.oracles.graphs import Edges, graphs
from tests.search.exact import contents

SINGLE_EPSILON = 2.0**-24
DECAYS = st.sampled_from([0.2, 0.5, 0.8, 1.0])
DECAY_PER = st.sampled_from(["hop", "path"])
THRESHOLDS = st.sampled_from([0.0031, 0.0173, 0.071, 0.29])


def build(graph: Graph, folder: Path | None = None, **options: Any) -> Index:
    return cocite.build(graph, folder, measure="pagesim", **options)


def reader_of(index: Index, part: int = 0) -> FeatureReader:
    found = index.scorer.readers[part]
    assert isinstance(found, FeatureReader)
    return found


def certified(reader: FeatureReader, u: int, v: int) -> tuple[float, float]:
    """The certified errors of a score: how far the truth may be below and above it."""
    below, above = reader.certified(u, np.array([v], np.uint32), PartSettings())[0].tolist()
    return below, above


def features_of(index: Index) -> NDArray[np.float64]:
    """The stored features PG[u, v]."""
    reader, n = reader_of(index), len(index.nodes)
    found = np.zeros((n, n))
    for v in range(n):
        sources, values = reader.listed(v)
        assert (np.diff(sources.astype(int)) > 0).all()
        found[sources, v] = values
    return found


def buffers_for(radius: int, marked: int = 0) -> tuple[NDArray[Any], ...]:
    """The buffers in which the kernel follows paths, with marks for so many nodes."""
    return (
        np.zeros(radius + 1, np.uint32),
        np.zeros(radius, np.uint64),
        np.zeros(radius, np.uint64),
        np.zeros(radius + 1),
        np.zeros(marked, np.bool_),
    )


def spread(
    links: Links,
    scores: NDArray[np.float64],
    decay: float,
    radius: int,
    threshold: float,
    per: str = "hop",
    marked: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """PG[u, v] and what was cut, computed by the kernel in float64."""
    n = links.nodes
    unit = 2.0**40
    hop, path = (decay, 1.0) if per == "hop" else (1.0, decay)
    rates = np.array([hop, threshold, unit, np.inf, path, np.inf])
    buffers = buffers_for(radius, n if marked else 0)
    sums, cut = (np.zeros(n), np.zeros(n + 1, np.uint32)), np.zeros((radius, n), np.uint64)
    out = np.zeros(n, np.uint64), np.zeros(n * n, np.uint32), np.zeros(n * n)
    nodes_done, used = kernels.spread(
        (links.offsets, links.neighbors), np.uint64(0), scores, rates, buffers, sums, cut, out
    )
    assert nodes_done == n
    assert not buffers[4].any()
    found = np.zeros((n, n))
    found[np.repeat(np.arange(n), out[0].astype(int)), out[1][:used]] = out[2][:used]
    return found, cut / unit


def out_links(n: int, edges: Edges) -> Links:
    """The out-links of each node."""
    offsets = np.searchsorted(sorted(a for a, _ in edges), np.arange(n + 1)).astype(np.uint64)
    return Links(offsets, np.array([b for _, b in sorted(edges)], np.uint32))


def scaled_pagerank(n: int, edges: Edges, damping: float = 0.85) -> NDArray[np.float64]:
    return n * rank_oracle.pagerank(n, edges, damping)


# -- the definition ------------------------------------------------------------------------


@pytest.mark.parametrize(("per", "both_ways"), [("hop", 0.72), ("path", 0.8)])
def test_pagesim_matches_worked_example(make_graph: MakeGraph, per: str, both_ways: float) -> None:
    """Paper 002, 4.3: v0 has 1, and gives 0.4 to v1 and 0.4 + 0.32 to v2. By the printed equation
    2, with 0.8 once per path, v2 gets 0.4 directly, and 0.8 / (2 * 1) through v1.
    """
    graph = make_graph([("v0", "v1"), ("v0", "v2"), ("v1", "v2"), ("v2", "v0")])
    features = features_of(build(graph, decay=0.8, threshold=0, decay_per=per))
    row = features[0] / features[0, 0]
    assert row == pytest.approx([1, 0.4, both_ways], rel=4 * SINGLE_EPSILON)


@settings(max_examples=120)
@given(
    graphs(max_nodes=9),
    st.integers(1, 4),
    DECAYS,
    st.one_of(st.just(0.0), THRESHOLDS),
    DECAY_PER,
    st.booleans(),
)
def test_spread_cuts_paths_below_threshold(
    graph: tuple[int, Edges], radius: int, decay: float, threshold: float, per: str, marked: bool
) -> None:
    """With a threshold of 0, all simple paths count, and only these."""
    n, edges = graph
    links, scores = out_links(n, edges), scaled_pagerank(n, edges)
    found, cut = spread(links, scores, decay, radius, threshold, per, marked)
    exact, _ = oracle.propagated(n, edges, scores, decay, radius, threshold, per)
    np.testing.assert_allclose(found, exact, rtol=1e-12, atol=0)
    assert threshold or not cut.any()


@settings(max_examples=40)
@given(
    graphs(max_nodes=9),
    st.fixed_dictionaries(
        {
            "radius": st.sampled_from([1, 2, 3, 4, 7, 10**9]),
            "decay": DECAYS,
            "threshold": st.one_of(st.just(0.0), THRESHOLDS),
            "direction": st.sampled_from(["in", "out"]),
            "decay_per": DECAY_PER,
        }
    ),
    st.sampled_from([3, 8]),
)
def test_pagesim_scores_are_within_certified_bound(
    make_graph: MakeGraph, graph: tuple[int, Edges], options: dict[str, Any], rows: int
) -> None:
    """Also where the cut is stored in few rows, the last of which covers many hops."""
    n, edges = graph
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cocite.index.layouts.rows.pagesim._ROWS", rows)
        index = build(make_graph(edges, range(n)), **options)
    radius, decay, threshold, direction, per = (
        options[key] for key in ("radius", "decay", "threshold", "direction", "decay_per")
    )
    if direction == "out":
        edges = sorted((b, a) for a, b in edges)
    radius = min(radius, n)
    features, cut = oracle.propagated(
        n, edges, scaled_pagerank(n, edges), decay, radius, threshold, per
    )
    np.testing.assert_allclose(features_of(index), features, rtol=1.01 * SINGLE_EPSILON, atol=0)
    truth, reader = oracle.pagesim(features + cut), reader_of(index)
    assert (reader.part.array("cut") >= cut.sum(axis=0)).all()
    for u in range(n):
        for v in range(n):
            score = index.similarity(u, v).score
            error = truth[u, v] - score
            below, above = certified(reader, u, v)
            assert -below <= error <= above
            assert index.similarity(u, v).low <= truth[u, v] <= index.similarity(u, v).high
            assert score == index.similarity(v, u).score
            assert score <= index.similarity(u, u).score * (1 + 1e-6)
            if threshold == 0:  # three roundings to float32, and one to 1e-12
                assert abs(error) <= 3.01 * SINGLE_EPSILON * score + 1e-12


@settings(max_examples=40)
@given(graphs(max_nodes=8), DECAYS, st.one_of(st.just(0.0), THRESHOLDS), DECAY_PER)
def test_pagesim_normalized_scores_are_within_interval(
    make_graph: MakeGraph, graph: tuple[int, Edges], decay: float, threshold: float, per: str
) -> None:
    n, edges = graph
    options: dict[str, Any] = {"decay": decay, "threshold": threshold, "decay_per": per}
    index = build(make_graph(edges, range(n)), radius=5, normalized=True, **options)
    features, cut = oracle.propagated(n, edges, scaled_pagerank(n, edges), decay, 5, threshold, per)
    found = oracle.normalized(oracle.pagesim(features))
    truth = oracle.normalized(oracle.pagesim(features + cut))
    for u in range(n):
        for v in range(n):
            hit = index.similarity(u, v)
            assert abs(hit.score - found[u, v]) <= 6 * SINGLE_EPSILON
            assert hit.low - 1e-12 <= truth[u, v] <= hit.high + 1e-12
            assert 0 <= hit.low <= hit.score <= hit.high <= 1
            assert hit == index.similarity(v, u)
        assert index.similarity(u, u).score == 1


def test_pagesim_radius_spans_ring(make_graph: MakeGraph, tmp_path: Path) -> None:
    """From each page one path leads through all other pages."""
    n = 300
    graph = make_graph([(v, (v + 1) % n) for v in range(n)])
    options: dict[str, Any] = {"decay": 0.99, "threshold": 0}
    index = build(graph, tmp_path / "i", radius=n - 1, **options)
    found = features_of(index)
    expected = 0.99 ** ((np.arange(n) - np.arange(n)[:, None]) % n)
    ids = [index.nodes.id(v) for v in range(n)]
    np.testing.assert_allclose(found[np.ix_(ids, ids)], expected, rtol=2 * SINGLE_EPSILON)
    assert not reader_of(index).part.array("cut").any()
    larger_radius = build(graph, tmp_path / "j", radius=10**12, **options)
    assert features_of(larger_radius).tobytes() == found.tobytes()


def test_pagesim_reports_too_many_paths(make_graph: MakeGraph, tmp_path: Path) -> None:
    """All pages link to each other, so there are more than 10! paths."""
    graph = make_graph([(a, b) for a in range(11) for b in range(11) if a != b])
    options: dict[str, Any] = {"threshold": 0, "most_steps": 1_000_000}
    with pytest.raises(
        ResourceError,
        match=r"the paths of '\d+' read more than 1,000,000 links, with a radius of 10 and a "
        r"threshold of 0. Choose a smaller --radius \(radius=...\) or a larger --threshold "
        r"\(threshold=...\), or allow more with --most-steps \(most_steps=...\)",
    ):
        build(graph, tmp_path / "i", radius=10, **options)
    # The failed build leaves nothing behind.
    index = build(graph, tmp_path / "i", radius=5, **options)
    assert index.settings == {
        "radius": 5, "decay": 0.5, "threshold": 0.0, "damping": 0.85, "most_steps": 1_000_000
    }  # fmt: skip
    build(graph, tmp_path / "k", radius=10, threshold=1e-6)


# -- the cut and its bound ------------------------------------------------------------------


def test_pagesim_cut_is_exact_without_cycles(make_graph: MakeGraph) -> None:
    """Without cycles every walk is a simple path, so the bound is exact."""
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, 40, (160, 2))
    edges = sorted({(int(min(p)), int(max(p))) for p in pairs if p[0] != p[1]})
    scores = scaled_pagerank(40, edges)
    for radius, threshold in ((1, 0.05), (3, 0.02), (4, 0.006)):
        _, cut = oracle.propagated(40, edges, scores, 0.5, radius, threshold)
        graph = make_graph(edges, range(40))
        index = build(graph, graph.path.with_suffix(".i"), radius=radius, threshold=threshold)
        assert cut.sum() > 0.2
        np.testing.assert_allclose(
            reader_of(index).part.array("cut"), cut.sum(axis=0), rtol=3e-6, atol=1e-9
        )


def test_pagesim_bound_is_tight_up_to_factor(make_graph: MakeGraph, tmp_path: Path) -> None:
    """All that two pages share is cut: the score is too low by c(u) = c(v), a quarter of the bound.

    If one feature is cut slightly below an equal one, the error is half of the bound.
    """
    graph = make_graph([("f", x) for x in ("u", "v", "w")])
    index = build(graph, tmp_path / "i", threshold=0.2)
    u, v = index.nodes.id("u"), index.nodes.id("v")
    error = index.similarity("f", "f").score * 0.5 / 3
    assert index.similarity("u", "v").score == 0
    assert certified(reader_of(index), u, v) == pytest.approx((2 * error, 4 * error), rel=1e-5)
    assert certified(reader_of(index), u, u)[0] < 1e-6
    assert certified(reader_of(index), u, u)[1] == pytest.approx(error, rel=1e-5)


def test_pagesim_bound_is_useful_by_default(make_graph: MakeGraph, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    graph = make_graph(rng.integers(0, 300, (1500, 2)).tolist())
    index, exact = build(graph, tmp_path / "i"), build(graph, tmp_path / "w", threshold=0)
    reader, relative = reader_of(index), []
    for node in index.nodes.names(np.arange(0, graph.nodes, 10)):
        hit = index.related(node, 1)[0]
        a, b = index.nodes.id(node), index.nodes.id(hit.node)
        _, bound = certified(reader, a, b)
        assert abs(exact.similarity(node, hit.node).score - hit.score) <= bound
        relative.append(bound / hit.score)
    assert np.median(relative) < 0.1


# -- initial scores --------------------------------------------------------------------------


def test_power_scores_equal_pagerank(make_graph: MakeGraph) -> None:
    graph = make_graph(np.random.default_rng(2).integers(0, 400, (1500, 2)).tolist())
    expected = cocite.pagerank(graph, tolerance=1e-14).values * graph.nodes
    found = power_scores(scan_of(in_links(graph)), graph.out_degrees, 0.85)
    assert np.abs(found - expected).mean() <= 2e-12
    for options in ({"blocks": 3}, {"threads": 1}):
        repeated = power_scores(scan_of(in_links(graph), **options), graph.out_degrees, 0.85)
        assert repeated.tobytes() == found.tobytes()


# -- queries -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    """400 nodes in communities, some of them dangling, and an isolated node."""
    rng = np.random.default_rng(8)
    site = rng.integers(0, 400, (2400, 1)) // 20 * 20
    edges = (site + rng.integers(0, 25, (2400, 2))).tolist()
    return module_graph([(f"n{a}", f"n{b}") for a, b in edges], ["alone"])


def test_pagesim_isolated_node_keeps_own_score(graph: Graph, tmp_path: Path) -> None:
    index = build(graph, tmp_path / "i")
    scores = power_scores(scan_of(in_links(graph)), graph.out_degrees, 0.85)
    assert index.related("alone") == []
    assert index.similarity("alone", "n3")[:2] == (0, 0)
    expected = scores[graph.names.id("alone")]
    assert index.similarity("alone", "alone").score == pytest.approx(
        expected, rel=4 * SINGLE_EPSILON
    )


# -- builds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["in", pytest.param("out", marks=pytest.mark.long)])
def test_pagesim_build_ignores_threads_and_memory(
    make_graph: MakeGraph, tmp_path: Path, direction: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With little memory, links are in scratch files, and features are transposed in blocks."""
    rng = np.random.default_rng(7)
    graph = make_graph(rng.integers(0, 300, (3_000, 2)).tolist())
    options: dict[str, Any] = {"threshold": 0, "direction": direction}
    build(graph, tmp_path / "a", threads=1, **options)
    expected = contents(tmp_path / "a")
    assert len(expected[f"{direction}.features.nodes"]) > 0.33e6
    build(graph, tmp_path / "b", threads=3, **options)
    assert contents(tmp_path / "b") == expected
    monkeypatch.setattr("cocite.index.layouts.rows.pagesim._LEAST_LINKS", 1 << 16)
    monkeypatch.setattr("cocite.index.layouts.rows.pagesim._SPARE", 0)
    monkeypatch.setattr("cocite.graph.links._LEAST_BLOCK", 1 << 14)
    monkeypatch.setattr("cocite.graph.links._PIECE", 1 << 14)
    calls: list[tuple[bool, bool]] = []

    def spy(links: Links, degrees: NDArray[np.uint32], memory: int, folder: Path) -> Links:
        transposed = transpose(links, degrees, memory, folder)
        calls.append((memory < 8 * links.edges, isinstance(transposed.neighbors.base, np.ndarray)))
        return transposed

    monkeypatch.setattr("cocite.index.layouts.rows.build.transpose", spy)
    build(graph, tmp_path / "c", threads=3, memory="180kB", **options)
    assert contents(tmp_path / "c") == expected
    assert calls == [(True, True)]


def test_pagesim_build_reports_required_memory(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match=r"features of .* nodes need .*; the limit is 5 kB"):
        build(graph, tmp_path / "x", memory="5kB")


def test_pagesim_reports_damaged_sums(graph: Graph, tmp_path: Path) -> None:
    build(graph, tmp_path / "i", normalized=True)
    file = tmp_path / "i" / "in.own"
    for value in (0.0, -1.0, np.nan, np.inf):
        file.write_bytes(np.full(graph.nodes, value).tobytes())
        index = cocite.open(tmp_path / "i", verify=False)
        with pytest.raises(Damaged, match="verify"):
            index.similarity("n77", "n2")
        with pytest.raises(Damaged, match="verify"):
            index.related("n77")
