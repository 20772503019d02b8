"""Measures by weights, of links and of pages: exact twins, one result in all forms, refusals."""

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
from tests.conftest import MakeGraph, of_texts
from tests.oracles import neighbors as exact
from tests.oracles import simrank as recursions
from tests.oracles.bounds import bernstein
from tests.search.exact import assert_related_is_similarity_sorted, scores

TWINS = {"simrank": recursions.simrank, "psimrank": recursions.psimrank_by_clocks}
DEAF = [name for name, m in MEASURES.items() if not m.weighted and not m.texts]


def random_links(seed: int, n: int = 12, links: int = 50) -> list[tuple[int, int, float]]:
    rng = np.random.default_rng(seed)
    edges = sorted({(int(a), int(b)) for a, b in rng.integers(0, n, (links, 2)) if a != b})
    weights = np.exp(rng.normal(0, 1.5, len(edges))).astype(np.float32)
    return [(a, b, float(w)) for (a, b), w in zip(edges, weights, strict=True)]


def matrix(n: int, edges: list[tuple[int, int, float]], weighted: bool) -> np.ndarray:
    """``found[v, u]``: the weight of the link from u to v."""
    found = np.zeros((n, n))
    for a, b, w in edges:
        found[b, a] = w if weighted else 1
    return found


def by_page(links: np.ndarray, hubs: str) -> np.ndarray:
    """Weights times what a link of the page that a walk steps to tells."""
    degrees = np.maximum((links > 0).sum(axis=0), 1)
    telling = {"plain": np.ones(len(links)), "rare": 1 / degrees}
    telling["idf"] = np.log((len(links) + 1) / degrees)
    found: np.ndarray = links * telling[hubs][None, :]
    return found


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("weighted", "hubs", "direction"),
    [
        *((True, "plain", "in"), (True, "plain", "out"), (False, "idf", "out")),
        *((True, "idf", "in"), (False, "rare", "in"), (True, "rare", "out")),
    ],
)
@pytest.mark.parametrize("measure", TWINS)
def test_scores_converge_to_the_exact_recursion(
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
    links = by_page(plain, hubs)
    order = [int(name) for name in index.nodes]
    truth = TWINS[measure](links, decay, length)[np.ix_(order, order)]
    allowed = bernstein(truth, samples, decay, truth.size)
    np.fill_diagonal(allowed, 1e-9)
    found = scores(index, decay=decay, interval="bernstein")  # not compared; takes no time
    assert (np.abs(found - truth) <= allowed).all()
    # It can fail: these are not the scores without weights.
    other = TWINS[measure]((plain > 0).astype(float), decay, length)[np.ix_(order, order)]
    assert (np.abs(found - other) > allowed).any()


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ppr_by_weights(make_graph: MakeGraph, tmp_path: Path, seed: int, direction: str) -> None:
    n, tolerance = 14, 1e-9
    edges = random_links(seed, n, 40)
    graph = make_graph(edges, range(n), weight_column="3")
    index = cocite.build(graph, tmp_path / "i", measure="ppr", direction=direction)
    links = matrix(n, edges, True)
    ways = {"out": [links.T], "in": [links], "both": [links.T, links]}[direction]
    order = [int(name) for name in index.nodes]
    truth = np.mean([exact.ppr(way, 0.85) for way in ways], axis=0)[np.ix_(order, order)]
    asked = {"damping": 0.85, "tolerance": tolerance}
    found = scores(index, **asked)
    assert (found <= truth + 1e-11).all()
    assert (found >= truth - tolerance - 1e-11).all()
    assert_related_is_similarity_sorted(index, found, **asked)
    aside = cocite.build(graph, tmp_path / "j", measure="ppr", direction=direction, unweighted=True)
    assert np.abs(scores(aside, **asked) - truth).max() > 1e-3


def test_a_weight_that_is_not_positive_is_damage(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b", 1.0), ("a", "c", 2.0)], weight_column="3")
    index = cocite.build(graph, tmp_path / "i", measure="ppr")
    file = tmp_path / "i" / "out.out_weights"
    for value in (0.0, -1.0, np.nan, np.inf):
        file.write_bytes(np.array([1.0, value], np.float32).tobytes())
        with pytest.raises(cocite.CociteError, match=r"out.out_(weights|neighbours) is damaged"):
            cocite.open(index.stored.store.path, verify=False).related("a")


# -- weights that are left aside --------------------------------------------------------


def tangled(make_graph: MakeGraph) -> Graph:
    """400 nodes, a hub with many in-links, weights over some orders of magnitude."""
    rng = np.random.default_rng(2)
    pairs = {(int(a), int(b)) for a, b in rng.integers(0, 400, (2500, 2)) if a != b}
    pairs |= {(a, 17) for a in range(0, 400, 2) if a != 17}
    weights = np.exp(rng.normal(0, 2, len(pairs)))
    rows = [(a, b, f"{w:.6g}") for (a, b), w in zip(sorted(pairs), weights, strict=True)]
    return make_graph(rows, range(400), weight_column="3")


def test_ignored_weights_leave_samples_alone(make_graph: MakeGraph, tmp_path: Path) -> None:
    edges = random_links(5)
    weighted = make_graph(edges, range(12), weight_column="3")
    bare = make_graph([edge[:2] for edge in edges], range(12))
    for measure in MEASURES:
        chosen: dict[str, Any] = {"measure": measure, **of_texts(bare, measure)}
        aside = cocite.build(weighted, tmp_path / f"{measure}1", unweighted=True, **chosen)
        plain = cocite.build(bare, tmp_path / f"{measure}2", **chosen)
        assert not aside.stored.weighted
        assert aside.stored.digest == plain.stored.digest
        assert aside.stored.graph["weighted"]
        assert not plain.stored.graph["weighted"]


# -- no weight is dropped in silence -----------------------------------------------------


@pytest.mark.parametrize("measure", [*DEAF, "blend:psimrank+cocitation"])
def test_weightless_measure_says_so(make_graph: MakeGraph, tmp_path: Path, measure: str) -> None:
    graph = make_graph([("a", "b", 2.0), ("c", "b", 1.0)], weight_column="3")
    name = measure.rpartition("+")[2]
    with pytest.raises(
        UsageError, match=rf"weights, which {name} cannot use. Ignore the weights with --unw"
    ):
        cocite.build(graph, tmp_path / "i", measure=measure)
    assert not (tmp_path / "i").exists()
    cocite.build(graph, tmp_path / "i", measure=measure, unweighted=True)


# -- memory --------------------------------------------------------------------------------


def test_a_build_counts_them(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = tangled(make_graph)
    n, m = graph.nodes, graph.edges

    def memory(measure: str, hubs: str, unweighted: bool) -> int:
        options = BuildOptions.checked(measure, settings={"hubs": hubs}, unweighted=unweighted)
        work = IndexBuild(graph, tmp_path / "x", options, Resources.checked(1))
        (part,) = work.parts
        assert isinstance(part, ShardedPart)
        return part.work.fit(part.work.links()).memory

    for measure, shares in (("psimrank", 0), ("simrank", 4)):
        plain = memory(measure, "plain", True)
        assert memory(measure, "plain", False) == plain + 4 * m + shares * m
        assert memory(measure, "rare", True) == plain + 4 * n + shares * m
        assert memory(measure, "rare", False) == plain + 4 * n + 8 * m + shares * m
