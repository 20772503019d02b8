"""Measures computed from stored links, each against its definition.

Cocitation, coupling, companion, ``ppr`` and ``ppr-symmetric``.
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Index
from cocite.errors import Damaged, UsageError
from cocite.index.layouts.links import push
from cocite.index.layouts.links.push import PushReader
from cocite.index.layouts.reader import borrowed
from cocite.measures import PartSettings
from cocite.measures.ppr import MAX_EDGES, MIN_RESULTS
from tests.conftest import MakeGraph
from tests.oracles import companion as hubs
from tests.oracles import neighbors as exact
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.oracles.ppr_symmetric import ppr_symmetric
from tests.oracles.simrank import dense
from tests.search.exact import assert_related_is_similarity_sorted, scores

FORMS = ("cosine", "jaccard", "count")
ROUNDING = 2e-12
"""Scores are multiples of 1e-12; sums of a few dozen numbers are off by far less."""
SOLVED = 1e-11
"""Solving and pushing are off by about 1e-15 per step."""


# -- cocitation and coupling ---------------------------------------------------------------


@settings(max_examples=20)
@given(
    graphs(),
    st.sampled_from(["cocitation", "coupling"]),
    st.sampled_from(["in", "out", "both"]),
    st.fixed_dictionaries({"form": st.sampled_from(FORMS), "idf": st.booleans()}),
)
def test_cocitation_scores_match_dense_products(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    measure: str,
    direction: str,
    options: dict[str, Any],
) -> None:
    n, edges = graph
    index = cocite.build(make_graph(edges, range(n)), measure=measure, direction=direction)
    ins = dense(n, edges) if measure == "cocitation" else dense(n, edges).T
    matrices = {"in": [ins], "out": [ins.T], "both": [ins, ins.T]}
    truth = np.mean([exact.common(rows, **options) for rows in matrices[direction]], axis=0)
    found = scores(cocite.open(index.stored.store.path), **options)
    assert np.abs(found - truth).max() < ROUNDING
    assert (found == found.T).all()
    assert_related_is_similarity_sorted(index, found, **options)


@pytest.mark.parametrize(("direction", "turned"), [("in", "out"), ("out", "in")])
def test_coupling_equals_cocitation_of_reversed_direction(
    make_graph: MakeGraph, direction: str, turned: str
) -> None:
    rng = np.random.default_rng(5)
    graph = make_graph(rng.integers(0, 60, (500, 2)).tolist())
    cocitation = cocite.build(graph, measure="cocitation", direction=direction)
    coupling = cocite.build(graph, measure="coupling", direction=turned)
    assert cocitation.related("1")
    for node in cocitation.nodes:
        for form in FORMS:
            for idf in (False, True):
                options = {"form": form, "idf": idf}
                assert cocitation.related(node, 99, **options) == coupling.related(
                    node, 99, **options
                )


def test_cocitation_matches_closed_forms(make_graph: MakeGraph) -> None:
    """u has 4 in-links, v has 9, 2 are common; x links to two of the 13 nodes, y to three."""
    edges = [(f"u{i}", "u") for i in range(2)] + [(f"v{i}", "v") for i in range(7)]
    edges += [(hub, node) for hub in "xy" for node in "uv"] + [("y", "v0")]
    index = cocite.build(make_graph(edges), measure="cocitation")
    assert len(index.nodes) == 13
    unweighted = {
        "cosine": round(2 / math.sqrt(4 * 9), 12),
        "jaccard": round(2 / 11, 12),
        "count": 2,
    }
    x, y, unshared = math.log(13 / 2), math.log(13 / 3), math.log(13)
    shared = x**2 + y**2
    weighted = {
        "cosine": shared / math.sqrt((2 * unshared**2 + shared) * (7 * unshared**2 + shared)),
        "jaccard": (x + y) / (9 * unshared + x + y),
        "count": x + y,
    }
    for form in FORMS:
        assert index.similarity("u", "v", form=form)[:2] == (unweighted[form], 0)
        score = index.similarity("u", "v", form=form, idf=True).score
        assert abs(score - weighted[form]) < ROUNDING


def test_cocitation_idf_ignores_page_linking_to_all(make_graph: MakeGraph) -> None:
    """It links to itself, too: log(1) is 0, in norms and in sums."""
    graph = make_graph([("a", node) for node in "abcd"], keep_self_loops=True)
    index = cocite.build(graph, measure="cocitation")
    assert index.related("b")
    for form in FORMS:
        assert index.related("b", form=form, idf=True) == []
        assert index.similarity("b", "c", form=form, idf=True).score == 0


# -- companion -----------------------------------------------------------------------------


@settings(max_examples=25)
@given(graphs(max_nodes=12), st.sampled_from([1, 2, 1000]), st.sampled_from(["in", "out"]))
def test_companion_authorities_match_eigenvector(
    make_graph: MakeGraph, graph: tuple[int, Edges], max_degree: int, direction: str
) -> None:
    n, edges = graph
    index = cocite.build(make_graph(edges, range(n)), measure="companion", direction=direction)
    edges = sorted({(a, b) if direction == "in" else (b, a) for a, b in edges if a != b})
    for u in range(n):
        truth, ratio = hubs.companions(edges, u, max_degree)
        found = {v: index.similarity(u, v, max_degree=max_degree).score for v in range(n)}
        assert {v for v in found if found[v] > 0} <= set(truth)
        assert sum(found.values()) == pytest.approx(1 if any(truth.values()) else 0, abs=1e-10)
        if ratio < 0.9:  # each iteration reduces the error by this ratio
            allowed = 2e-9 + 20 * ratio**100
            for v, score in truth.items():
                assert abs(found[v] - score) <= allowed


def test_companion_ranks_pages_by_common_hubs(make_graph: MakeGraph) -> None:
    """a and b have two common hubs, c has one of them: around a, a = b > c."""
    graph = make_graph([("h", "a"), ("h", "b"), ("g", "a"), ("g", "b"), ("h", "c"), ("far", "z")])
    index = cocite.build(graph, measure="companion")
    hits = index.related("a")
    assert [hit.node for hit in hits] == ["b", "c"]
    # authorities (2 h's worth): a = b, c = a * h / (h + g), of A'A = [[2,2,1],[2,2,1],[1,1,1]]
    values, vectors = np.linalg.eigh([[2, 2, 1], [2, 2, 1], [1, 1, 1]])
    best = np.abs(vectors[:, np.argmax(values)])
    expected = best / best.sum()
    assert [hit.score for hit in hits] == pytest.approx(expected[1:].tolist(), abs=1e-9)
    assert index.similarity("a", "a").score == pytest.approx(expected[0], abs=1e-9)
    assert index.similarity("a", "z").score == 0
    why = index.why("a", "b")
    assert {reason.node for reason in why.reasons} == {"h", "g"}
    assert sum(reason.contribution for reason in why.reasons) == pytest.approx(hits[0].score)
    assert why.reasons[0].node == "h"  # the better hub links to more of them


def test_companion_max_degree_skips_wide_pages(make_graph: MakeGraph) -> None:
    edges = [("wide", f"p{i}") for i in range(9)] + [("h", "p0"), ("h", "p1")]
    index = cocite.build(make_graph(edges, ["alone"]), measure="companion")
    assert {hit.node for hit in index.related("p0", max_degree=9)} == {f"p{i}" for i in range(1, 9)}
    assert {hit.node for hit in index.related("p0", max_degree=8)} == {"p1"}
    assert index.similarity("alone", "alone").score == 0


# -- personalized PageRank -----------------------------------------------------------------


@settings(max_examples=20)
@given(
    graphs(),
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from([0.001, 0.3, 0.85, 0.999]),
    st.sampled_from([1.0, 0.1, 1e-3, 1e-12]),
)
def test_ppr_scores_are_within_tolerance_below_truth(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    direction: str,
    damping: float,
    tolerance: float,
) -> None:
    n, edges = graph
    index = cocite.build(make_graph(edges, range(n)), measure="ppr", direction=direction)
    options = {"damping": damping, "tolerance": tolerance}
    steps = dense(n, edges).T
    matrices = {"out": [steps], "in": [steps.T], "both": [steps, steps.T]}[direction]
    truth = np.mean([exact.ppr(matrix, damping) for matrix in matrices], axis=0)
    assert np.allclose(truth.sum(axis=1), 1)
    found = scores(index, **options)
    assert (found <= truth + SOLVED).all()
    assert (found >= truth - tolerance - SOLVED).all()
    assert (1 - found.sum(axis=1) <= tolerance + n * SOLVED).all()
    assert_related_is_similarity_sorted(index, found, **options)
    assert (np.diag(found) >= (1 - damping) - SOLVED).all() or tolerance > 1e-12


@given(graphs(), st.sampled_from([0.3, 0.01]))
@settings(max_examples=20)
def test_ppr_push_certifies_error_bound(
    make_graph: MakeGraph, graph: tuple[int, Edges], tolerance: float
) -> None:
    n, edges = graph
    index = cocite.build(make_graph(edges, range(n)), measure="ppr")
    reader = index.scorer.readers[0]
    assert isinstance(reader, PushReader)
    options = {"damping": 0.85, "tolerance": tolerance}
    truth, found = exact.ppr(dense(n, edges).T, 0.85), scores(index, **options)
    for u in range(n):
        with borrowed(n) as scratch:
            count, bound = reader._push(u, PartSettings(options), scratch)
            scratch.scores[scratch.used[:count]] = 0.0
        assert 0 <= bound <= tolerance * (1 + 1e-9)
        assert (truth[u] - found[u] <= bound + SOLVED).all()
        # The missing mass is exactly the bound.
        assert abs(1 - found[u].sum() - bound) < n * SOLVED


def test_ppr_follows_out_links_by_default(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("b", "c")], ["alone"])
    forward = cocite.build(graph, measure="ppr")
    backward = cocite.build(graph, measure="ppr", direction="in")
    assert forward.direction == "out"
    assert [hit.node for hit in forward.related("a")] == ["b", "c"]
    assert [hit.node for hit in backward.related("c")] == ["b", "a"]
    assert forward.related("c") == backward.related("a") == []
    assert forward.similarity("a", "c").score > 0 == forward.similarity("c", "a").score
    assert forward.similarity("alone", "alone")[:2] == (1, 0)
    # Along a, b, c, each step survives with 0.5: shares of 4, 2 and 1 in 7.
    assert [hit[:3] for hit in forward.related("a", damping=0.5, tolerance=1e-12)] == [
        ("b", round(2 / 7, 12), 0),
        ("c", round(1 / 7, 12), 0),
    ]


def test_ppr_push_is_unaffected_by_slices(
    make_graph: MakeGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A push that pauses to check for interrupts resumes exactly."""
    rng = np.random.default_rng(5)
    index = cocite.build(make_graph(rng.integers(0, 100, (700, 2)).tolist()), measure="ppr")
    nodes = list(index.nodes)[::6]
    expected = [index.related(node, 100) for node in nodes]
    assert max(map(len, expected)) > 70
    for links in (1, 50, 5000):
        monkeypatch.setattr(push, "_SLICE", links)
        assert [index.related(node, 100) for node in nodes] == expected


# -- symmetric personalized PageRank -------------------------------------------------------


def symmetric(make_graph: MakeGraph, edges: Any, nodes: Any = (), **options: Any) -> Index:
    return cocite.build(make_graph(edges, nodes, **options), measure="ppr-symmetric")


@settings(max_examples=15)
@given(
    graphs(),
    st.sampled_from([0.1, 0.5, 0.85, 0.95]),
    st.sampled_from([1, 10, 10**6]),
    st.sampled_from([1, 5, 100]),
)
def test_ppr_symmetric_intervals_contain_truth(
    make_graph: MakeGraph,
    graph: tuple[int, Edges],
    damping: float,
    max_edges: int,
    min_results: int,
) -> None:
    n, edges = graph
    index = symmetric(make_graph, edges, range(n))
    options: dict[str, Any] = {"damping": damping, MAX_EDGES.name: max_edges}
    options[MIN_RESULTS.name] = min_results
    links = dense(n, edges)
    truth = ppr_symmetric(links + links.T, damping)
    linked = (links + links.T).any(axis=1)
    found = scores(index, **options)
    assert (found[linked] <= truth[linked] + SOLVED).all()
    high = np.ones((n, n))
    for u in range(n):
        for hit in index.related(index.nodes.name(u), n, **options):
            high[u, index.nodes.id(hit.node)] = hit.high
            assert hit.low == pytest.approx(hit.score, abs=1e-12)
        for v in range(n):
            pair = index.similarity(index.nodes.name(u), index.nodes.name(v), **options)
            assert pair.low - SOLVED <= truth[u, v] <= pair.high + SOLVED
    assert (truth <= high + SOLVED).all()
    if max_edges == 10**6:
        assert np.abs(found - truth)[linked].max(initial=0) <= SOLVED


@settings(max_examples=15)
@given(graphs(), st.integers(1, 40))
def test_ppr_symmetric_min_results_fills_component(
    make_graph: MakeGraph, graph: tuple[int, Edges], min_results: int
) -> None:
    """Even with a low edge limit, a list reaches the whole component or ``min_results`` pages."""
    n, edges = graph
    index = symmetric(make_graph, edges, range(n))
    links = dense(n, edges)
    reached = np.linalg.matrix_power(links + links.T + np.eye(n), n) > 0
    for u in range(n):
        reachable = int(reached[u].sum()) - 1
        hits = index.related(
            index.nodes.name(u), n, **{MAX_EDGES.name: 1, MIN_RESULTS.name: min_results}
        )
        assert min(reachable, min_results) <= len(hits) <= reachable


def test_ppr_symmetric_uses_weights(make_graph: MakeGraph) -> None:
    rng = np.random.default_rng(4)
    pairs = rng.integers(0, 30, (90, 2)).tolist()
    weights = np.exp(rng.normal(0, 1, 90)).astype(np.float32).tolist()
    rows = {(a, b): w for (a, b), w in zip(pairs, weights, strict=True) if a != b}
    graph = make_graph([(a, b, repr(w)) for (a, b), w in rows.items()], weight_column="3")
    index = cocite.build(graph, measure="ppr-symmetric")
    undirected = np.zeros((graph.nodes, graph.nodes))
    for (a, b), weight in rows.items():
        u, v = index.nodes.id(str(a)), index.nodes.id(str(b))
        undirected[u, v] += weight
        undirected[v, u] += weight
    truth = ppr_symmetric(undirected, 0.9)
    assert np.abs(scores(index, max_edges=10**7) - truth).max() < SOLVED
    unweighted = cocite.build(graph, measure="ppr-symmetric", unweighted=True)
    assert np.abs(scores(unweighted) - truth).max() > 0.01


def test_ppr_symmetric_isolated_pair_scores_1(make_graph: MakeGraph) -> None:
    edges = [("a", "b"), *(("h", f"x{i}") for i in range(50)), *(("k", f"x{i}") for i in range(50))]
    index = symmetric(make_graph, [*edges, ("h", "k")])
    assert index.similarity("a", "b").score == 1
    assert index.similarity("h", "x1", damping=0.1).score > 0.1 / np.sqrt(51 * 2)
    assert index.related("a") == [cocite.Hit("b", *index.similarity("a", "b"))]


def test_ppr_symmetric_accepts_only_direction_any(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("c", "b")])
    with pytest.raises(UsageError, match="direction is 'in'; for ppr-symmetric it must be any"):
        cocite.build(graph, measure="ppr-symmetric", direction="in")
    with pytest.raises(UsageError, match="for cocitation it must be in or out or both"):
        cocite.build(graph, measure="cocitation", direction="any")
    index = cocite.build(graph, measure="ppr-symmetric")
    assert index.direction == "any"
    hits = index.related("a")
    assert [hit.score for hit in hits] == [1.0, 1.0]
    assert [hit.node for hit in hits] == sorted("bc", key=lambda n: order(index.nodes.id(n)))
    reasons = index.why("a", "c").reasons
    assert [(r.node, r.links) for r in reasons] == [("b", "any")]


# -- damage --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["in_neighbours", "out_neighbours", "in_offsets", "out_offsets"])
def test_companion_reports_links_out_of_range(
    make_graph: MakeGraph, tmp_path: Path, name: str
) -> None:
    graph = make_graph(np.random.default_rng(2).integers(0, 60, (240, 2)).tolist())
    names = list(cocite.build(graph, tmp_path / "i", measure="companion").nodes)
    (file,) = (tmp_path / "i").glob(f"*{name}")
    file.write_bytes(b"\xff" * file.stat().st_size)
    with pytest.raises(Damaged, match="verify"):
        cocite.open(tmp_path / "i", verify=False).related(names[5])


def test_ppr_symmetric_reports_damaged_degrees(make_graph: MakeGraph) -> None:
    index = symmetric(make_graph, [("a", "b"), ("c", "b")])
    path = index.stored.store.path / "any.degrees"
    content = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(content[:-16] + np.array([-1.0, 1.0]).tobytes())
    with pytest.raises(Damaged, match="degrees"):
        cocite.open(path.parent).related("a")
