"""Measures with weights of links and pages, compared with exact recursions; and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import UsageError
from cocite.index.build import IndexBuild
from cocite.index.parts import ShardedPart
from cocite.index.plan import BuildOptions
from cocite.measures import MEASURES
from cocite.resources import Resources
from tests.conftest import MakeGraph, measure_texts
from tests.oracles import neighbors as exact
from tests.oracles import simrank as recursions
from tests.oracles.bounds import bernstein
from tests.search.exact import assert_related_is_similarity_sorted, scores

TWINS = {"simrank": recursions.simrank, "psimrank": recursions.psimrank_by_clocks}
WEIGHTLESS = [name for name, m in MEASURES.items() if not m.weighted and not m.texts]


def random_links(seed: int, n: int = 12, links: int = 50) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(seed)
    edges = sorted({(int(a), int(b)) for a, b in rng.integers(0, n, (links, 2)) if a != b})
    weights = np.exp(rng.normal(0, 1.5, len(edges))).astype(np.float32)
    return [(a, b, float(w)) for (a, b), w in zip(edges, weights, strict=True)]


def matrix(n: int, edges: list[tuple[int, int, float]], weighted: bool) -> np.ndarray:
    """Return at [v, u] the weight of the link from u to v."""
    weights = np.zeros((n, n))
    for a, b, w in edges:
        weights[b, a] = w if weighted else 1
    return weights


def weigh_pages(links: np.ndarray, hubs: str) -> np.ndarray:
    """Multiply weights by the information of a link from the page that a walk steps to."""
    degrees = np.maximum((links > 0).sum(axis=0), 1)
    information = {"plain": np.ones(len(links)), "rare": 1 / degrees}
    information["idf"] = np.log((len(links) + 1) / degrees)
    weights: np.ndarray = links * information[hubs][None, :]
    return weights


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("weighted", "hubs", "direction"),
    [
        *((True, "plain", "in"), (True, "plain", "out"), (False, "idf", "out")),
        *((True, "idf", "in"), (False, "rare", "in"), (True, "rare", "out")),
    ],
)
@pytest.mark.parametrize("measure", TWINS)
def test_weighted_simrank_converges_to_exact_recursion(
    make_graph: MakeGraph, tmp_path: Path, measure: str, weighted: bool, hubs: str, direction: str
) -> None:
    n, samples, decay, length = 12, 10_000, 0.6, 5
    edges = random_links(3)
    graph = make_graph(edges, range(n), weight_column="3")
    index = cocite.build(
        graph,
        tmp_path / "i",
        measure=measure,
        direction=direction,
        hubs=hubs,
        unweighted=not weighted,
        samples=samples,
        length=length,
        shard=2000,
        threads=1,
    )
    assert index.stored.weighted == weighted
    plain = matrix(n, edges, weighted)
    plain = plain if direction == "in" else plain.T
    links = weigh_pages(plain, hubs)
    order = [int(name) for name in index.nodes]
    truth = TWINS[measure](links, decay, length)[np.ix_(order, order)]
    allowed = bernstein(truth, samples, decay, truth.size)
    np.fill_diagonal(allowed, 1e-9)
    estimated = scores(index, decay=decay, interval="bernstein")  # a fast interval, not compared
    assert (np.abs(estimated - truth) <= allowed).all()
    # The test can fail: scores without weights differ.
    other = TWINS[measure]((plain > 0).astype(float), decay, length)[np.ix_(order, order)]
    assert (np.abs(estimated - other) > allowed).any()


@pytest.mark.parametrize(("seed", "direction"), [(1, "in"), (2, "out"), (3, "both")])
def test_weighted_ppr_matches_exact_scores(
    make_graph: MakeGraph, tmp_path: Path, seed: int, direction: str
) -> None:
    n, tolerance = 14, 1e-9
    edges = random_links(seed, n, 40)
    graph = make_graph(edges, range(n), weight_column="3")
    index = cocite.build(graph, tmp_path / "i", measure="ppr", direction=direction)
    links = matrix(n, edges, True)
    ways = {"out": [links.T], "in": [links], "both": [links.T, links]}[direction]
    order = [int(name) for name in index.nodes]
    truth = np.mean([exact.ppr(way, 0.85) for way in ways], axis=0)[np.ix_(order, order)]
    query = {"damping": 0.85, "tolerance": tolerance}
    actual = scores(index, **query)
    assert (actual <= truth + 1e-11).all()
    assert (actual >= truth - tolerance - 1e-11).all()
    assert_related_is_similarity_sorted(index, actual, **query)
    unweighted = cocite.build(
        graph, tmp_path / "j", measure="ppr", direction=direction, unweighted=True
    )
    assert np.abs(scores(unweighted, **query) - truth).max() > 1e-3


def test_ppr_refuses_nonpositive_weight(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b", 1.0), ("a", "c", 2.0)], weight_column="3")
    index = cocite.build(graph, tmp_path / "i", measure="ppr")
    file = tmp_path / "i" / "out.out_weights"
    for value in (0.0, -1.0, np.nan, np.inf):
        file.write_bytes(np.array([1.0, value], np.float32).tobytes())
        with pytest.raises(cocite.CociteError, match=r"out.out_(weights|neighbours) is damaged"):
            cocite.open(index.stored.store.path, verify=False).related("a")


# -- ignored weights -------------------------------------------------------------------


def tangled(make_graph: MakeGraph) -> Graph:
    """400 nodes, a hub with many in-links, weights over several orders of magnitude."""
    rng = np.random.default_rng(2)
    pairs = {(int(a), int(b)) for a, b in rng.integers(0, 400, (2500, 2)) if a != b}
    pairs |= {(a, 17) for a in range(0, 400, 2) if a != 17}
    weights = np.exp(rng.normal(0, 2, len(pairs)))
    rows = [(a, b, f"{w:.6g}") for (a, b), w in zip(sorted(pairs), weights, strict=True)]
    return make_graph(rows, range(400), weight_column="3")


def test_unweighted_option_equals_graph_without_weights(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    edges = random_links(5)
    weighted = make_graph(edges, range(12), weight_column="3")
    unweighted = make_graph([edge[:2] for edge in edges], range(12))
    for measure in MEASURES:
        options: dict[str, Any] = {"measure": measure, **measure_texts(unweighted, measure)}
        ignored = cocite.build(weighted, tmp_path / f"{measure}1", unweighted=True, **options)
        plain = cocite.build(unweighted, tmp_path / f"{measure}2", **options)
        assert not ignored.stored.weighted
        assert ignored.stored.digest == plain.stored.digest
        assert ignored.stored.graph["weighted"]
        assert not plain.stored.graph["weighted"]


# -- refused weights ---------------------------------------------------------------------


@pytest.mark.parametrize("measure", [*WEIGHTLESS, "blend:psimrank+cocitation"])
def test_build_refuses_weights_for_unweighted_measure(
    make_graph: MakeGraph, tmp_path: Path, measure: str
) -> None:
    graph = make_graph([("a", "b", 2.0), ("c", "b", 1.0)], weight_column="3")
    name = measure.rpartition("+")[2]
    with pytest.raises(
        UsageError, match=rf"weights, which {name} cannot use. Ignore the weights with --unw"
    ):
        cocite.build(graph, tmp_path / "i", measure=measure)
    assert not (tmp_path / "i").exists()
    cocite.build(graph, tmp_path / "i", measure=measure, unweighted=True)


# -- memory --------------------------------------------------------------------------------


def test_index_build_memory_counts_weights(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = tangled(make_graph)
    n, m = graph.nodes, graph.edges

    def planned_memory(measure: str, hubs: str, unweighted: bool) -> int:
        options = BuildOptions.checked(measure, settings={"hubs": hubs}, unweighted=unweighted)
        work = IndexBuild(graph, tmp_path / "x", options, Resources.checked(1))
        (part,) = work.parts
        assert isinstance(part, ShardedPart)
        return part.work.fit(part.work.links()).memory

    for measure, shares in (("psimrank", 0), ("simrank", 4)):
        plain = planned_memory(measure, "plain", True)
        assert planned_memory(measure, "plain", False) == plain + 4 * m + shares * m
        assert planned_memory(measure, "rare", True) == plain + 4 * n + shares * m
        assert planned_memory(measure, "rare", False) == plain + 4 * n + 8 * m + shares * m
