"""One contract for every measure, layout and direction.

What is specific to a measure, such as its exact scores, is tested in a file of its own.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

import cocite
from cocite import Graph, Hit, Index, Score, UnknownNode
from cocite.errors import UsageError
from cocite.measures import HUBS, MEASURES, MEETING_WEIGHT, Measure, find_measure
from cocite.options.query import INTERVALS
from tests.batches import all_rows
from tests.conftest import MakeGraph, measure_texts
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs

BLENDS = (
    find_measure("blend:psimrank+cocitation"),
    find_measure("blend:0.6*psimrank(hubs=rare)+0.3*simrank+0.1*coupling(idf=true)"),
    find_measure("blend:ppr+pagesim+simrank"),
    find_measure("blend:0.5*fusion(size=small)+0.3*tfidf(words=3)+0.2*tfidf"),
)
FIXED = tuple(
    find_measure("blend:" + text)
    for text in (
        "0.5*xjaccard(bits=8,length=3,decay=0.3)+0.5*cocitation(form=jaccard)",
        "0.7*psimrank(layout=paths,length=3,decay=0.8)+0.3*xjaccard(length=2,normalized=true)",
        "compact-simrank(seed=3,decay=0.2)+ppr(tolerance=0.05)+pagesim(radius=2)+simrank(layout=packed,length=3,decay=0.4)",
        "0.8*pagesim(radius=199,decay_per=path,threshold=0.001,normalized=true)+0.2*simrank(length=4,decay=0.5,evidence=geometric)",
        "simrank(hubs=idf,decay=0.3,evidence=exponential)+snn(neighbors=9,mutual=true,form=cosine)+tfidf(words=3)+fusion(size=small)",
    )
)
"""Blends with a component of each layout, with fixed settings of builds and queries."""
LAYOUTS = [(measure, layout) for measure in MEASURES.values() for layout in measure.layouts]
PLAIN = [
    (measure, layout, measure.directions[i % len(measure.directions)])
    for i, (measure, layout) in enumerate(LAYOUTS)
]
OTHERS = [
    (measure, layout, direction)
    for measure, layout in LAYOUTS
    for direction in measure.directions
    if direction != "any" or layout == measure.layouts[0]
]
MIXED = [
    *((blend, blend.components[0].measure.layouts[0]) for blend in BLENDS),
    *((blend, None) for blend in FIXED),
]
DIRECTIONS = ("in", "both", "in", "both", "in", "out", "in", "both", "both")


def named(cases: Iterable[tuple[Measure, str | None, str]]) -> list[Any]:
    """Return cases with readable ids."""
    return [pytest.param(*case, id=f"{case[0].name}-{case[1]}-{case[2]}") for case in cases]


SOME = named(PLAIN)
SOME += [
    pytest.param(blend, layout, direction, id=f"blend-{i}-{direction}")
    for i, ((blend, layout), direction) in enumerate(zip(MIXED, DIRECTIONS, strict=True))
]
"""Every layout of every measure once, in one direction after the other, and every blend."""
CASES = SOME + [
    pytest.param(*case.values, id=case.id, marks=pytest.mark.long)
    for case in named(case for case in OTHERS if case not in PLAIN)
]
"""Cases in ``SOME`` come first: tests of a case run in succession, and a process builds its index
once.
"""
some = pytest.mark.parametrize(("measure", "layout", "direction"), SOME, scope="module")
every = pytest.mark.parametrize(("measure", "layout", "direction"), CASES, scope="module")

SAMPLES = 12


def test_blend_cases_fix_settings_of_every_layout() -> None:
    """Each component fixes a setting of its index and one of its queries, if there are any."""
    components = [component for blend in FIXED for component in blend.components]
    layouts = [component.choose(None, {})[0] for component in components]
    assert set(layouts) == {layout for measure in MEASURES.values() for layout in measure.layouts}
    links = [c.measure.name for c, name in zip(components, layouts, strict=True) if name == "links"]
    assert links == ["cocitation", "ppr"]
    for component in components:
        for supported in filter(None, (component.measure.build, component.measure.ask)):
            assert any(setting in component.fixed for setting in supported), component


def sampled(name: str) -> set[str]:
    """Return the names of a measure's build settings."""
    return {setting.name for setting in find_measure(name).build}


def build(
    graph: Graph,
    output: Path,
    measure: Measure,
    layout: str | None,
    direction: str,
    texts: Graph | None = None,
) -> Index:
    """Build a small index, with few samples; text measures compare the texts of ``texts``, by
    default those of ``graph``.
    """
    options: dict[str, Any] = {"layout": layout, "direction": direction}
    options |= measure_texts(texts or graph, measure.name)
    if "samples" in {s.name for s in measure.build}:
        options["samples"] = SAMPLES
    return cocite.build(graph, output, measure=measure.name, **options)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """110 nodes in communities, a hub, a chain, nodes without in-links, isolated ones."""
    folder = tmp_path_factory.mktemp("contract")
    rng = np.random.default_rng(8)
    site = rng.integers(0, 90, (450, 1)) // 15 * 15
    edges = [tuple(pair) for pair in (site + rng.integers(0, 15, (450, 2))).tolist()]
    edges += [(7, v) for v in range(0, 90, 3)] + [(v, 8) for v in range(0, 90, 4)]
    edges += [(v, v + 1) for v in range(90, 107)]
    (folder / "links.tsv").write_text("".join(f"n{a}\tn{b}\n" for a, b in edges))
    (folder / "nodes.tsv").write_text("alone\nalso alone\n")
    return cocite.ingest(
        folder / "links.tsv", folder / "g", nodes=folder / "nodes.tsv", header="no", delimiter="tab"
    )


@pytest.fixture(scope="module")
def weighted(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """The same links, with weights over four orders of magnitude."""
    folder = tmp_path_factory.mktemp("weighted")
    rng = np.random.default_rng(9)
    names = list(graph.names)
    rows = [
        f"{names[u]}\t{names[v]}\t{np.exp(rng.normal(0, 2)):.6g}\n"
        for v in range(graph.nodes)
        for u in graph.in_neighbors(v)
    ]
    (folder / "links.tsv").write_text("".join(rows))
    return cocite.ingest(
        folder / "links.tsv", folder / "g", header="no", delimiter="tab", weight_column="3"
    )


@pytest.fixture(scope="module")
def built(
    graph: Graph, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Measure, str | None, str], Index]:
    """Return the index of a case, built once."""
    folder = tmp_path_factory.mktemp("indexes")
    cached: dict[tuple[str, str | None, str], Index] = {}

    def get(measure: Measure, layout: str | None, direction: str) -> Index:
        key = (measure.name, layout, direction)
        if key not in cached:
            cached[key] = build(graph, folder / str(len(cached)), measure, layout, direction)
        return cached[key]

    return get


@pytest.fixture
def index(built: Built, measure: Measure, layout: str | None, direction: str) -> Index:
    """Return the index of the test's case."""
    return built(measure, layout, direction)


def scatters(index: Index) -> bool:
    """Return whether scores of unrelated nodes scatter around 0."""
    return any(part.layout in part.measure.noisy for part in index.stored.parts)


Built = Callable[[Measure, str | None, str], Index]
NODES = ("n3", "n7", "n8", "n77", "n62", "n100")
Row = list[Score]


@functools.lru_cache(maxsize=9)
def row_of(index: Index, node: str) -> Row:
    """Return the similarity of a node to every node, by id. It equals that of single pairs:
    see ``test_related_many_equals_single_queries``.
    """
    return list(index.similarities([(node, name) for name in index.nodes]))


def scores_of(index: Index, node: str, **options: Any) -> list[float]:
    """Return the scores alone, for the given settings."""
    pairs = [(node, name) for name in index.nodes]
    return [each.score for each in index.similarities(pairs, **options)]


def by_similarity(index: Index, node: str, row: Row) -> list[Hit]:
    """Return what ``related`` must return, from the similarity to every node."""
    hits = [Hit(name, *score) for name, score in zip(index.nodes, row, strict=True)]
    ranked = sorted(enumerate(hits), key=lambda pair: (-pair[1].score, order(pair[0])))
    return [hit for _, hit in ranked if hit.score > 0 and hit.node != node]


@every
def test_related_equals_sorted_similarities(index: Index, measure: Measure) -> None:
    found = 0
    for node in NODES[::2]:
        row = row_of(index, node)
        expected = by_similarity(index, node, row)
        assert index.related(node, 10**6) == expected
        for k in (1, 2, 7, 20):
            assert index.related(node, k) == expected[:k]
        if measure.symmetric and expected:
            assert row[index.nodes.id(node)].score >= expected[0].score
        found += min(10, len(expected))
    assert found >= 10


WEIGHTED_BLEND = find_measure("blend:0.7*psimrank(hubs=rare)+0.2*simrank+0.1*ppr")
WITH_HUBS = [
    (measure, layout, hubs)
    for measure in MEASURES.values()
    if HUBS in measure.build
    for layout in measure.layouts
    for hubs in ("plain", "rare")
]
BY_WEIGHT: list[tuple[str, str | None, str, str]] = [
    (measure.name, layout, measure.directions[i % len(measure.directions)], hubs)
    for i, (measure, layout, hubs) in enumerate(WITH_HUBS)
]
BY_WEIGHT += [
    (measure.name, None, direction, "")
    for measure in MEASURES.values()
    if measure.weighted and HUBS not in measure.build
    for direction in measure.directions
]
BY_WEIGHT += [(WEIGHTED_BLEND.name, None, direction, "") for direction in ("in", "both")]


@pytest.mark.parametrize(("name", "layout", "direction", "hubs"), BY_WEIGHT)
def test_related_equals_sorted_similarities_with_weights(
    weighted: Graph, tmp_path: Path, name: str, layout: str | None, direction: str, hubs: str
) -> None:
    options: dict[str, Any] = {"measure": name, "layout": layout, "direction": direction}
    options |= {"hubs": hubs} if hubs else {}
    options |= {"samples": SAMPLES} if "samples" in sampled(name) else {}
    index = cocite.build(weighted, tmp_path / "i", **options)
    for node in NODES[:3]:
        expected = by_similarity(index, node, row_of(index, node))
        assert index.related(node, 10**6) == expected
        assert index.related(node, 3) == expected[:3]
        assert expected
    on_one_thread = cocite.build(weighted, tmp_path / "one-thread", threads=1, **options)
    assert on_one_thread.stored.digest == index.stored.digest
    unweighted = cocite.build(weighted, tmp_path / "unweighted", unweighted=True, **options)
    assert unweighted.stored.digest != index.stored.digest


@some
def test_intervals_contain_scores_and_widen_with_confidence(index: Index) -> None:
    exact = index.samples is None
    for node, bound in itertools.product(NODES[:3], INTERVALS):
        lists = [index.related(node, 30, confidence=c, interval=bound) for c in (0.5, 0.95, 0.999)]
        for hits in zip(*lists, strict=True):
            assert len({hit[:3] for hit in hits}) == 1
            for hit in hits:
                assert 0 <= hit.low <= hit.score <= hit.high
            for narrow, wide in itertools.pairwise(hits):
                assert wide.low <= narrow.low <= narrow.high <= wide.high
                assert wide == narrow or not exact
        ranks = [hits.certain_ranks for hits in lists]
        assert ranks == sorted(ranks, reverse=True)
        confident = index.related(node, 30, confidence=0.95, min_confidence=0.95, interval=bound)
        assert confident == [hit for hit in lists[1] if hit.low > 0]
        for other in NODES[3:]:
            pair = index.similarity(node, other, interval=bound)
            assert pair.low <= max(0, pair.score) <= pair.high


@some
def test_certain_ranks_do_not_depend_on_k(index: Index) -> None:
    """Exact scores have certain ranks down to the first tie."""
    for node in NODES[:3]:
        hits = index.related(node, 10**6)
        certain = hits.certain_ranks
        for k in (1, 2, 5, max(1, len(hits) - 1), len(hits) + 1):
            assert index.related(node, k).certain_ranks == min(k, certain)
            assert hits[:k].certain_ranks == min(k, certain)
        if all(hit.low == hit.high for hit in hits):
            scores = [*(hit.score for hit in hits), 0.0]
            steps = [a > b for a, b in itertools.pairwise(scores)]
            assert certain == (steps.index(False) if False in steps else len(hits))


@some
def test_aggregate_is_mean_or_minimum_of_scores(index: Index) -> None:
    """The expected scores come from the similarity to every node."""
    nodes = list(NODES[:5:2])
    scores = np.array([[pair.score for pair in row_of(index, node)] for node in nodes])
    assert check_aggregate(index, nodes, "mean", scores.mean(axis=0))
    check_aggregate(index, nodes[:2], "min", scores[:2].min(axis=0))
    for aggregate in ("mean", "min"):
        assert index.related(["n3"], 5, aggregate=aggregate) == index.related("n3", 5)


def check_aggregate(
    index: Index, nodes: list[str], aggregate: str, scores: NDArray[np.float64]
) -> int:
    """Check the hits of ``nodes`` against ``scores``, float64[n]; return their number."""
    expected = {
        name: score
        for name, score in zip(index.nodes, scores.tolist(), strict=True)
        if score >= 1e-12 and name not in nodes
    }
    hits = index.related(nodes, 10**6, aggregate=aggregate)
    assert {hit.node for hit in hits} == set(expected)
    ids = index.nodes.ids([hit.node for hit in hits]).tolist()
    keys = [(-hit.score, order(i)) for hit, i in zip(hits, ids, strict=True)]
    assert keys == sorted(keys)
    for hit in hits:
        assert hit.score == pytest.approx(expected[hit.node], abs=2e-12)
        assert 0 <= hit.low <= hit.score <= hit.high
        assert hit.stderr >= 0
        assert index.samples is not None or hit.stderr == 0
    counted = index.related(nodes, 3, aggregate=aggregate, total=True)
    assert counted == hits[:3]
    assert counted.total == len(hits)
    assert index.related([*nodes, nodes[0]], 3, offset=2, aggregate=aggregate) == hits[2:5]
    wide = index.related(nodes, 3, aggregate=aggregate, confidence=0.999)
    for narrow, broad in zip(hits[:3], wide, strict=True):
        assert broad.low <= narrow.low <= narrow.high <= broad.high
    confident = index.related(nodes, 30, aggregate=aggregate, min_confidence=0.95)
    assert confident == [hit for hit in hits[:30] if hit.low > 0]
    for k in (1, 2, 9, max(1, len(hits))):
        few = index.related(nodes, k, aggregate=aggregate)
        assert few.certain_ranks == hits[:k].certain_ranks == min(k, hits.certain_ranks)
    return len(hits)


@some
@settings(max_examples=5)
@given(drawn=graphs())
def test_similarity_is_symmetric_and_agrees_with_related(
    make_graph: MakeGraph,
    drawn: tuple[int, Edges],
    measure: Measure,
    layout: str | None,
    direction: str,
) -> None:
    n, edges = drawn
    stored = make_graph(edges, range(n))
    index = build(stored, stored.path.with_suffix(".index"), measure, layout, direction)
    names = list(index.nodes)
    rows = [row_of(index, name) for name in names]
    for a, b in itertools.product(range(n), range(n)):
        forward, backward = rows[a][b], rows[b][a]
        assert forward == backward or not measure.symmetric
        assert math.isfinite(forward.score)
        assert forward.stderr >= 0
        if measure.unit:
            assert forward.score <= 1
            assert forward.score >= 0 or scatters(index)
        assert 0 <= forward.low <= forward.high
    for name, row in zip(names, rows, strict=True):
        assert index.related(name, n) == by_similarity(index, name, row)


@some
def test_related_is_empty_for_isolated_nodes(index: Index) -> None:
    for node in ("alone", "also alone"):
        if scatters(index):  # no node is similar for certain
            assert all(hit.low == 0 for hit in index.related(node, 10**6))
            assert index.similarity(node, "n3").low == 0
        else:
            assert index.related(node) == []
            assert index.similarity(node, "n3")[:2] == (0, 0)
    pair = index.similarity("alone", "also alone")
    assert (pair.low if scatters(index) else pair.score) == 0


@some
def test_related_many_equals_single_queries(index: Index) -> None:
    assert index.related_many(NODES, 9) == [index.related(node, 9) for node in NODES]
    pairs = [(NODES[0], other) for other in index.nodes]
    assert list(index.similarities(pairs)) == [index.similarity(*pair) for pair in pairs]


@some
def test_related_all_equals_single_queries(index: Index, tmp_path: Path) -> None:
    rows = all_rows(index, tmp_path / "all", 9, threads=2)
    columns = 3 if index.samples else 5  # intervals read all samples: only on request
    assert rows == [
        (node, rank, *hit[:columns])
        for node in index.nodes
        for rank, hit in enumerate(index.related(node, 9), 1)
    ]


@some
def test_decay_raises_scores_monotonically(
    graph: Graph, built: Built, tmp_path: Path, measure: Measure, layout: str | None, direction: str
) -> None:
    decays = (0.2, 0.4, 0.6, 0.8)
    if "decay" in {s.name for s in measure.ask}:
        index = built(measure, layout, direction)
        columns = [scores_of(index, "n77", decay=d) for d in decays]
    elif "decay" in {s.name for s in measure.build}:
        options: dict[str, Any] = {
            "measure": measure.name,
            "layout": layout,
            "direction": direction,
        }
        indexes = [cocite.build(graph, tmp_path / str(d), decay=d, **options) for d in decays]
        columns = [scores_of(index, "n77") for index in indexes]
    else:
        pytest.skip(f"{measure.name} has no decay")
    rows = [list(row) for row in zip(*columns, strict=True)]
    if measure.monotone:
        assert all(row == sorted(row) for row in rows)
    assert any(row[0] < row[-1] for row in rows)


@some
def test_meeting_weight_raises_scores_monotonically(
    index: Index, measure: Measure, tmp_path: Path
) -> None:
    """Pairs, lists, batches and reasons agree for any weight."""
    if MEETING_WEIGHT not in measure.ask:
        pytest.skip(f"{measure.name} does not take by")
    weights = ("t == 2", "t <= 2", "max(t <= 2, 1 / t)", "1")
    columns = [scores_of(index, "n77", meeting_weight=weight) for weight in weights]
    rows = [list(row) for row in zip(*columns, strict=True)]
    assert all(row == sorted(row) for row in rows)
    assert any(row[0] < row[1] for row in rows)
    assert index.related("n77", meeting_weight="t <= 2") == index.related(
        "n77", meeting_weight=lambda t: t < 3
    )
    assert index.related("n77", meeting_weight="decay ** t") == index.related("n77")
    options: dict[str, Any] = {"meeting_weight": lambda t: (0.1, 0, 0.6, 0.2)[min(t, 4) - 1]}
    row = list(index.similarities([("n77", name) for name in index.nodes], **options))
    hits = index.related("n77", 10**6, **options)
    assert hits == by_similarity(index, "n77", row)
    assert all(0 <= hit.low <= hit.score <= hit.high <= 1 for hit in hits)
    why = index.why("n77", hits[0].node, 1000, **options)
    shares = sum(reason.contribution for reason in why.reasons) + why.remaining + why.unattributed
    assert why.score == hits[0].score == pytest.approx(shares, abs=1e-9)
    written = [
        row[2:4] for row in all_rows(index, tmp_path / "all", 4, **options) if row[0] == "n77"
    ]
    assert written == [hit[:2] for hit in hits[:4]]


@some
def test_query_refuses_unknown_node_or_setting(index: Index, measure: Measure) -> None:
    with pytest.raises(UnknownNode, match="the nearest"):
        index.related("n7777")
    with pytest.raises(UnknownNode):
        index.similarity("n3", "nobody")
    with pytest.raises(
        UsageError, match=rf"{re.escape(measure.name)} has no setting 'color' when asking"
    ):
        index.related("n3", color="red")


@some
def test_open_restores_built_index(
    built: Built, measure: Measure, layout: str | None, direction: str
) -> None:
    index = built(measure, layout, direction)
    again = cocite.open(index.stored.store.path)
    assert (again.measure, again.direction) == (measure.name, direction)
    assert again.settings == index.settings
    for node in NODES:
        assert again.related(node) == index.related(node)


@some
def test_build_on_one_thread_resumes_to_same_digest(
    graph: Graph, built: Built, tmp_path: Path, measure: Measure, layout: str | None, direction: str
) -> None:
    """The build stops in its last part, so that an earlier part must be kept."""
    index = built(measure, layout, direction)
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if done >= total:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"layout": layout, "direction": direction, "measure": measure.name}
    options |= measure_texts(graph, measure.name) | index.settings | {"threads": 1}
    with pytest.raises(KeyboardInterrupt):
        cocite.build(graph, tmp_path / "x", progress=stop, **options)
    assert not (tmp_path / "x").exists()
    resumed: list[int] = []
    again = cocite.build(
        graph, tmp_path / "x", progress=lambda done, total: resumed.append(done), **options
    )
    assert again.stored.digest == index.stored.digest
    if direction == "both" and len(index.stored.parts) > 1:
        assert resumed[0] >= calls[-1] // 2


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_build_refuses_unknown_setting(graph: Graph, tmp_path: Path, measure: Measure) -> None:
    with pytest.raises(UsageError, match="has no setting 'color' when building; it takes") as e:
        cocite.build(
            graph,
            tmp_path / "x",
            measure=measure.name,
            color="red",
            texts=graph.path if measure.texts else None,
        )
    for setting in measure.build:
        assert setting.name in str(e.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_setting_checked_refuses_invalid_value(measure: Measure) -> None:
    for setting in measure.build + measure.ask:
        assert setting.checked(setting.default) == setting.default
        wrong: object = "no such word"
        with pytest.raises(UsageError, match=rf"{setting.name} is 'no such word'; it must be "):
            setting.checked(wrong)
        assert setting.text
        assert setting.text[-1] != "."
