"""Why two nodes are similar: shares add up for every measure and match brute force."""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index, Reason, UnknownNode, Why
from cocite.errors import Damaged, NotAStore, UsageError
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.measures import Measure
from tests.conftest import MakeGraph
from tests.measures.test_contract import build, some
from tests.oracles import neighbors as exact
from tests.oracles import pagesim, walks
from tests.oracles.graphs import Edges, graphs, in_neighbors
from tests.oracles.pagerank import pagerank
from tests.oracles.simrank import dense

SHARES = 1e-9
"""A few dozen shares, rounded to 12 decimals; scores are multiples of 1e-12."""
STEPS = {"simrank": "uniform", "psimrank": "argmin", "compact-simrank": "compact"}
LAYOUTS = [*itertools.product(STEPS, ("trees", "paths")), ("compact-simrank", "compact")]
DIRECTION_KEYS = {"in": 0, "out": 16}
ALL = 10**6


def neighbor_lists(n: int, edges: Edges, links: str) -> list[list[int]]:
    """The neighbors of each node by in-links or by out-links."""
    return in_neighbors(n, edges if links == "in" else [(b, a) for a, b in edges])


def pairs(index: Index) -> Iterator[tuple[str, str]]:
    names = list(index.nodes)
    return itertools.product(names, names)


def numbers(path: tuple[str, ...]) -> list[int]:
    return [int(name) for name in path]


# -- every measure, layout and direction -----------------------------------------------


@some
@settings(max_examples=4)
@given(drawn=graphs(7), k=st.integers(1, 3))
def test_why_shares_add_up_and_paths_are_valid(
    make_graph: MakeGraph,
    drawn: tuple[int, Edges],
    measure: Measure,
    layout: str | None,
    direction: str,
    k: int,
) -> None:
    n, edges = drawn
    graph = make_graph(edges, range(n))
    index = build(graph, graph.path.with_suffix(".index"), measure, layout, direction)
    if any(part.layout == "sketch" for part in index.stored.parts):
        for a, b in itertools.combinations(index.nodes, 2):
            with pytest.raises(UsageError, match="stores hash bits instead of pages"):
                index.why(a, b)
        return
    single = len(measure.components) == 1
    directions = {measure.looks_at(direction)} if single and direction != "both" else {"in", "out"}
    neighbors = {links: neighbor_lists(n, edges, links) for links in directions}
    sides = neighbor_lists(n, edges, "in"), neighbor_lists(n, edges, "out")
    neighbors["both"] = neighbors["any"] = [ins + outs for ins, outs in zip(*sides, strict=True)]
    for a, b in pairs(index):
        found = index.why(a, b, ALL, graph=graph)
        assert found.score == index.similarity(a, b).score
        assert abs(sum(reason.contribution for reason in found.reasons) - found.score) < SHARES
        assert (found.others, found.remaining) == (0, 0)
        assert bool(found.reasons) == (found.score > 0)
        limited = index.why(a, b, k, graph=graph)
        assert limited[:3] == (found.score, found.reasons[:k], len(found.reasons[k:]))
        rest = sum(reason.contribution for reason in found.reasons[k:])
        assert abs(limited.remaining - rest) < SHARES
        has_lists = measure.name in ("fusion", "ppr-pmi", "snn")
        own_pair = [has_lists and r.node in (a, b) for r in found.reasons]
        assert sum(own_pair) <= 1
        order = [
            (not own, -r.contribution, *sort_key(index, r))
            for own, r in zip(own_pair, found.reasons, strict=True)
        ]
        assert order == sorted(order)
        assert all(reason.contribution >= 0 for reason in found.reasons)
        places = [(r.node, r.links) for r in found.reasons]
        assert len(set(places)) == len(places) or not single
        if a == b:
            expected = [(a, 0, (a,), (a,))] * (found.score > 0)
            assert [r[:1] + r[4:] for r in found.reasons] == expected
            continue
        for reason in found.reasons if single else ():
            if reason.links == "none":  # a word
                assert (reason.path_a, reason.path_b, reason.steps) == ((), (), None)
                continue
            check_paths(reason, a, b, neighbors[reason.links], measure)


def test_why_has_reasons_only_for_positive_scores(make_graph: MakeGraph) -> None:
    graph = make_graph([(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 0), (2, 6)], range(7))
    index = cocite.build(graph, measure="companion", direction="both")
    found = [index.why(a, b) for a, b in pairs(index)]
    assert all(bool(why.reasons) == (why.score > 0) for why in found)
    assert {why.score > 0 for why in found} == {False, True}


def sort_key(index: Index, reason: Reason) -> tuple[bool, int | str]:
    """The order of equal shares: pages by id, and then words alphabetically."""
    word = reason.links == "none"
    return word, reason.node if word else index.nodes.id(reason.node)


def check_paths(
    reason: Reason, a: str, b: str, neighbors: list[list[int]], measure: Measure
) -> None:
    """Check that each path leads from its end to the page, by links and in the stated steps."""
    forward = not measure.symmetric  # the last step leads to b
    for end, path in ((a, reason.path_a), (b, reason.path_b)):
        if not path:
            without_paths = ("companion", "pagesim", "ppr", "ppr-symmetric", "snn", "xjaccard")
            assert measure.name in (*without_paths, "fusion", "ppr-pmi")
            assert reason.steps is None
            continue
        assert (path[0], path[-1]) == (end, reason.node)
        for current, following in itertools.pairwise(numbers(path)):
            assert current in neighbors[following] if forward else following in neighbors[current]
        assert reason.steps in (None, len(path) - 1)
    if reason.steps is not None:  # they meet only at the end
        steps = zip(reason.path_a, reason.path_b, strict=True)
        assert [x == y for x, y in steps] == [False] * reason.steps + [True]


# -- walks, against brute force --------------------------------------------------------


@settings(max_examples=40)
@given(
    graphs(),
    st.sampled_from(LAYOUTS),
    st.sampled_from(["in", "out", "both"]),
    st.fixed_dictionaries(
        {
            "samples": st.integers(1, 9),
            "length": st.integers(1, 15),
            "seed": st.integers(0, 2**64 - 1),
        }
    ),
    st.sampled_from([0.2, 0.6, 0.9]),
)
def test_why_walk_meetings_match_brute_force(
    make_graph: MakeGraph,
    drawn: tuple[int, Edges],
    kind: tuple[str, str],
    direction: str,
    options: dict[str, int],
    decay: float,
) -> None:
    n, edges = drawn
    measure, layout = kind
    graph = make_graph(edges, range(n))
    index = cocite.build(graph, measure=measure, layout=layout, direction=direction, **options)
    samples, length, seed = (options[key] for key in ("samples", "length", "seed"))
    paths_by_side = {
        side: [
            walks.paths(
                neighbor_lists(n, edges, side),
                STEPS[measure],
                seed,
                sample,
                length,
                DIRECTION_KEYS[side],
            )
            for sample in range(samples)
        ]
        for side in (("in", "out") if direction == "both" else (direction,))
    }
    for u, v in itertools.permutations(range(n), 2):
        expected = meetings(paths_by_side, u, v, decay)
        found = index.why(u, v, ALL, graph=graph, decay=decay).reasons
        assert {(r.links, int(r.node)) for r in found} == set(expected)
        for reason in found:
            values = expected[reason.links, int(reason.node)]
            assert abs(reason.contribution - sum(map(sum, values.values()))) < SHARES
            assert reason.samples == sum(map(len, values.values()))
            paths = tuple(numbers(reason.path_a)), tuple(numbers(reason.path_b))
            largest = max(map(sum, values.values()))
            assert sum(values[paths]) > largest - 1e-12


Carried = dict[tuple[tuple[int, ...], tuple[int, ...]], list[float]]


def meetings(
    paths_by_side: dict[str, list[list[list[int]]]], u: int, v: int, decay: float
) -> dict[tuple[str, int], Carried]:
    """(links, node) -> (path of u, path of v) -> values of the samples that meet at the node."""
    found: dict[tuple[str, int], Carried] = defaultdict(lambda: defaultdict(list))
    for side, samples in paths_by_side.items():
        for walk in samples:
            steps = list(zip(walk[u], walk[v], strict=False))
            time = next((t for t, (x, y) in enumerate(steps) if x == y), None)
            if time is not None:
                paths = tuple(walk[u][: time + 1]), tuple(walk[v][: time + 1])
                value = decay**time / len(samples) / len(paths_by_side)
                found[side, steps[time][0]][paths].append(value)
    return found


# -- the other measures, each against its definition -----------------------------------


@settings(max_examples=30)
@given(
    graphs(),
    st.sampled_from(["cocitation", "coupling"]),
    st.sampled_from(["in", "out"]),
    st.sampled_from(["cosine", "jaccard", "count"]),
    st.booleans(),
)
def test_why_cocitation_shares_follow_neighbor_weights(
    make_graph: MakeGraph,
    drawn: tuple[int, Edges],
    measure: str,
    direction: str,
    form: str,
    idf: bool,
) -> None:
    n, edges = drawn
    index = cocite.build(make_graph(edges, range(n)), measure=measure, direction=direction)
    ins = dense(n, edges)
    rows = ins if (measure == "cocitation") == (direction == "in") else ins.T
    options: dict[str, Any] = {"form": form, "idf": idf}
    scores = exact.common(rows, form, idf)
    sizes = rows.sum(axis=0)
    for u, v in itertools.permutations(range(n), 2):
        common = np.flatnonzero(rows[u] * rows[v])
        power = 0 if not idf else 2 if form == "cosine" else 1
        weights = np.log(n / sizes[common]) ** power
        found = {int(r.node): r.contribution for r in index.why(u, v, ALL, **options).reasons}
        assert set(found) == {int(x) for x, w in zip(common, weights, strict=True) if w > 0}
        for x, weight in zip(common, weights, strict=True):
            expected = scores[u, v] * weight / weights.sum() if weight else 0
            assert abs(found.get(int(x), 0.0) - expected) < SHARES


@settings(max_examples=20)
@given(graphs(), st.sampled_from(["in", "out"]), st.sampled_from([0.3, 0.85, 0.99]))
def test_why_ppr_last_steps_satisfy_equations(
    make_graph: MakeGraph, drawn: tuple[int, Edges], direction: str, damping: float
) -> None:
    """score(u, v) = damping * sum of score(u, x) / degree(x), each term within the tolerance."""
    n, edges = drawn
    index = cocite.build(make_graph(edges, range(n)), measure="ppr", direction=direction)
    steps = dense(n, edges).T if direction == "out" else dense(n, edges)
    truth = exact.ppr(steps, damping)
    options: dict[str, Any] = {"damping": damping, "tolerance": 1e-12}
    for u, v in itertools.permutations(range(n), 2):
        found = {int(r.node): r for r in index.why(u, v, ALL, **options).reasons}
        for x in range(n):
            expected = damping * truth[u, x] / steps[x].sum() if steps[x, v] else 0
            assert abs((found[x].contribution if x in found else 0.0) - expected) < SHARES
        assert all(r.path_b == (str(v), str(x)) for x, r in found.items())
        assert all(r.path_a == ((str(u),) if x == u else ()) for x, r in found.items())


@settings(max_examples=20)
@given(graphs(max_nodes=8), st.sampled_from(["in", "out"]))
def test_why_pagesim_shares_match_features(
    make_graph: MakeGraph, drawn: tuple[int, Edges], direction: str
) -> None:
    n, edges = drawn
    graph = make_graph(edges, range(n))
    index = cocite.build(graph, measure="pagesim", direction=direction, threshold=0)
    directed = edges if direction == "in" else [(b, a) for a, b in edges]
    scores = n * pagerank(n, directed, 0.85)
    features, _ = pagesim.propagated(n, directed, scores, 0.5, 3)
    # Features are float32, and PageRank is within 1e-10.
    tolerance = 4 * 2.0**-24 * scores.max() + SHARES
    for u, v in itertools.permutations(range(n), 2):
        found = {int(r.node): r.contribution for r in index.why(u, v, ALL).reasons}
        shared = np.flatnonzero((features[:, u] > 0) & (features[:, v] > 0))
        assert set(found) == set(shared.tolist())
        for f in shared.tolist():
            low, high = sorted((features[f, u], features[f, v]))
            assert abs(found[f] - low**2 / high) <= tolerance


SWAPPED = [(0, 1), (0, 3), (1, 3), (1, 4), (2, 1), (3, 2), (4, 0)]
"""Reversed, it is itself with 0 and 3, and 2 and 4 exchanged: both directions give the same shares,
except for the last digits of PageRank.
"""


def test_why_orders_equal_shares_by_id(make_graph: MakeGraph) -> None:
    index = cocite.build(make_graph(SWAPPED, range(5)), measure="pagesim", direction="both")
    order = [(-r.contribution, int(r.node)) for r in index.why(0, 3).reasons]
    assert len({share for share, _ in order}) < len(order)
    assert order == sorted(order)


# -- the graph that is needed ----------------------------------------------------------

LINKS = [("hub", "one"), ("hub", "two"), ("other", "one"), ("other", "two"), ("hub", "three")]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(LINKS)


def test_why_trees_layout_requires_graph(graph: Graph, tmp_path: Path) -> None:
    index = cocite.build(graph, tmp_path / "i", samples=20, measure="psimrank")
    found = index.why("one", "two")
    graph = Graph.open(graph.path.rename(tmp_path / "elsewhere"))
    with pytest.raises(NotAStore, match=r"is not at .*Pass its path with --graph \(graph="):
        cocite.open(tmp_path / "i").why("one", "two")
    # Without walks, no graph is needed.
    assert index.why("hub", "other") == Why(0.0, [], 0, 0.0)
    assert index.why("one", "one") == Why(
        1.0, [Reason("one", 1.0, "in", 20, 0, ("one",), ("one",))], 0, 0.0
    )
    by_path = index.why("one", "two", graph=str(graph.path))
    assert found == by_path == index.why("one", "two", graph=graph)
    assert found == cocite.open(tmp_path / "i", graph=graph).why("one", "two")
    assert {r.node for r in by_path.reasons} == {"hub", "other"}


@pytest.mark.parametrize("layout", ["trees", "paths"])
def test_why_rejects_other_graph(make_graph: MakeGraph, graph: Graph, layout: str) -> None:
    index = cocite.build(graph, samples=20, layout=layout, measure="psimrank")
    other = make_graph([*LINKS, ("one", "two")])
    with pytest.raises(UsageError, match=r"is not the graph that .* was built from"):
        index.why("one", "two", graph=other)


@pytest.mark.parametrize(
    "sources",
    [[0, 2, 2, 0, 2], [2, 0, 0, 0, 2], [9, 9, 9, 9, 9]],
    ids=["other", "order", "outside"],
)
def test_why_detects_changed_links(
    make_graph: MakeGraph, tmp_path: Path, sources: list[int]
) -> None:
    """The manifest is unchanged, so only the walks reveal it."""
    graph = make_graph([(0, 3), (2, 3), (0, 4), (2, 4), (0, 1)])
    index = cocite.build(graph, tmp_path / "i", measure="simrank", samples=40)
    assert index.why(3, 4, graph=graph).score > 0
    assert graph.in_sources.size == 5
    np.array(sources, np.uint32).tofile(graph.path / "in_sources")
    with pytest.raises(Damaged, match=r"one of the two is damaged. See: cocite verify"):
        cocite.open(tmp_path / "i").why(3, 4, graph=str(graph.path))


def test_why_paths_layout_drops_truncated_paths(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(LINKS)
    index = cocite.build(graph, tmp_path / "i", layout="paths", samples=20, measure="psimrank")
    assert index.why("one", "two").reasons
    words = np.fromfile(tmp_path / "i" / "in.samples-000000", np.uint32)
    steps, begin = index.scorer.readers[0].part.shards[0].blobs[0, 4:6].tolist()
    words[steps:begin] = 0
    words.tofile(tmp_path / "i" / "in.samples-000000")
    reopened = cocite.open(tmp_path / "i")
    reopened.why("one", "two")
    assert [lost.file for lost in reopened.missing_samples] == ["in.samples-000000"]


def test_why_transposes_graph_once(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def spy(*arguments: Any, **options: Any) -> Links:
        calls.append(arguments)
        return links_of(*arguments, **options)

    monkeypatch.setattr("cocite.index.layouts.trees.replay.links_of", spy)
    index = cocite.build(graph, direction="out", samples=20, measure="psimrank")
    first = index.why("hub", "other", graph=graph)
    assert first.reasons
    assert index.why("hub", "other", graph=graph) == first
    assert len(calls) == 1


def test_why_checks_names_and_settings(graph: Graph) -> None:
    index = cocite.build(graph, measure="cocitation")
    with pytest.raises(UnknownNode, match="no node is named 'tow'"):
        index.why("one", "tow")
    with pytest.raises(UsageError, match="cocitation has no setting 'decay' when asking"):
        index.why("one", "two", decay=0.5)
    assert index.why("one", "two", form="count").score == 2
