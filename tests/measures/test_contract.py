"""One contract, run for every measure, layout and direction that there is.

What is particular to a measure, its exact twin above all, is tested in a file of its own.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable
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
from tests.conftest import MakeGraph, of_texts
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
"""Blends with a component of each layout, that have settings of their own, built and asked."""
PLAIN = [
    pytest.param(measure, layout, direction, id=f"{measure.name}-{layout}-{direction}")
    for measure in MEASURES.values()
    for layout in measure.layouts
    for direction in measure.directions
    if direction != "any" or layout == measure.layouts[0]
]
MIXED = [
    pytest.param(blend, blend.components[0].measure.layouts[0], direction, id=f"{i}-{direction}")
    for i, blend in enumerate(BLENDS)
    for direction in ("in", "both")
]
MIXED += [
    pytest.param(blend, None, direction, id=f"fixed-{i}-{direction}")
    for i, (blend, direction) in enumerate(
        zip(FIXED, ("in", "out", "in", "both", "both"), strict=True)
    )
]
CASES = PLAIN + MIXED
every = pytest.mark.parametrize(("measure", "layout", "direction"), CASES, scope="module")
"""All tests of a case follow each other, so that a process builds its index once."""

SAMPLES = 12


def test_blends_fix_settings_of_each_layout() -> None:
    """Of its index and of its questions, wherever its measure has some."""
    components = [component for blend in FIXED for component in blend.components]
    layouts = [component.choose(None, {})[0] for component in components]
    assert set(layouts) == {layout for measure in MEASURES.values() for layout in measure.layouts}
    links = [c.measure.name for c, name in zip(components, layouts, strict=True) if name == "links"]
    assert links == ["cocitation", "ppr"]
    for component in components:
        for takes in filter(None, (component.measure.build, component.measure.ask)):
            assert any(setting in component.fixed for setting in takes), component


def sampled(name: str) -> set[str]:
    """The settings that an index by a measure is built with."""
    return {setting.name for setting in find_measure(name).build}


def build(
    graph: Graph,
    output: Path,
    measure: Measure,
    layout: str | None,
    direction: str,
    texts: Graph | None = None,
) -> Index:
    """A small index: few samples, other settings by default; with the ``texts`` of this graph, or
    of another one, for a measure that compares them.
    """
    chosen: dict[str, Any] = {"layout": layout, "direction": direction}
    chosen |= of_texts(texts or graph, measure.name)
    if "samples" in {s.name for s in measure.build}:
        chosen["samples"] = SAMPLES
    return cocite.build(graph, output, measure=measure.name, **chosen)


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
    """An index of ``graph`` by each case, built once."""
    folder = tmp_path_factory.mktemp("indexes")
    found: dict[tuple[str, str | None, str], Index] = {}

    def get(measure: Measure, layout: str | None, direction: str) -> Index:
        key = (measure.name, layout, direction)
        if key not in found:
            found[key] = build(graph, folder / str(len(found)), measure, layout, direction)
        return found[key]

    return get


@pytest.fixture
def index(built: Built, measure: Measure, layout: str | None, direction: str) -> Index:
    """That of the case."""
    return built(measure, layout, direction)


def scatters(index: Index) -> bool:
    """Whether scores of unlike nodes scatter about 0."""
    return any(part.layout in part.measure.noisy for part in index.stored.parts)


Built = Callable[[Measure, str | None, str], Index]
SOME = ("n3", "n7", "n8", "n77", "n62", "n100")
Row = list[Score]


@functools.lru_cache(maxsize=9)
def row_of(index: Index, node: str) -> Row:
    """The similarity of a node with every one, by their ids: as of each pair alone, which
    ``test_batch_answers_as_single_questions`` compares.
    """
    return list(index.similarities([(node, name) for name in index.nodes]))


def scores_of(index: Index, node: str, **chosen: Any) -> list[float]:
    """The same as numbers, with other settings."""
    pairs = [(node, name) for name in index.nodes]
    return [each.score for each in index.similarities(pairs, **chosen)]


def by_similarity(index: Index, node: str, row: Row) -> list[Hit]:
    """What ``related`` must return, from ``similarity`` with every node."""
    everyone = [Hit(name, *score) for name, score in zip(index.nodes, row, strict=True)]
    ranked = sorted(enumerate(everyone), key=lambda pair: (-pair[1].score, order(pair[0])))
    return [hit for _, hit in ranked if hit.score > 0 and hit.node != node]


@every
def test_related_is_similarity_sorted(index: Index) -> None:
    for node in SOME[::2]:
        expected = by_similarity(index, node, row_of(index, node))
        assert index.related(node, 10**6) == expected
        for k in (1, 2, 7, 20):
            assert index.related(node, k) == expected[:k]


WEIGHTED_BLEND = find_measure("blend:0.7*psimrank(hubs=rare)+0.2*simrank+0.1*ppr")
BY_WEIGHT = [
    pytest.param(
        measure.name, layout, direction, hubs, id=f"{measure.name}-{layout}-{direction}-{hubs}"
    )
    for measure in (*(each for each in MEASURES.values() if each.weighted), WEIGHTED_BLEND)
    for layout in (measure.layouts if len(measure.components) == 1 else (None,))
    for direction in measure.directions
    for hubs in (("plain", "rare") if HUBS in measure.build and measure.name in MEASURES else ("",))
]


@pytest.mark.parametrize(("name", "layout", "direction", "hubs"), BY_WEIGHT)
def test_related_is_similarity_sorted_by_weights(
    weighted: Graph, tmp_path: Path, name: str, layout: str | None, direction: str, hubs: str
) -> None:
    chosen: dict[str, Any] = {"measure": name, "layout": layout, "direction": direction}
    chosen |= {"hubs": hubs} if hubs else {}
    chosen |= {"samples": SAMPLES} if "samples" in sampled(name) else {}
    index = cocite.build(weighted, tmp_path / "i", **chosen)
    for node in SOME[:3]:
        expected = by_similarity(index, node, row_of(index, node))
        assert index.related(node, 10**6) == expected
        assert index.related(node, 3) == expected[:3]
        assert expected
    once = cocite.build(weighted, tmp_path / "once", threads=1, **chosen)
    assert once.stored.digest == index.stored.digest
    aside = cocite.build(weighted, tmp_path / "aside", unweighted=True, **chosen)
    assert aside.stored.digest != index.stored.digest


@every
def test_intervals_contain_scores_and_widen_with_confidence(index: Index) -> None:
    exact = index.samples is None
    for node, bound in itertools.product(SOME[:3], INTERVALS):
        found = [index.related(node, 30, confidence=c, interval=bound) for c in (0.5, 0.95, 0.999)]
        for hits in zip(*found, strict=True):
            assert len({hit[:3] for hit in hits}) == 1
            for hit in hits:
                assert 0 <= hit.low <= hit.score <= hit.high
            for narrow, wide in itertools.pairwise(hits):
                assert wide.low <= narrow.low <= narrow.high <= wide.high
                assert wide == narrow or not exact
        places = [hits.certain_ranks for hits in found]
        assert places == sorted(places, reverse=True)
        sure = index.related(node, 30, confidence=0.95, min_confidence=0.95, interval=bound)
        assert sure == [hit for hit in found[1] if hit.low > 0]
        for other in SOME[3:]:
            found_pair = index.similarity(node, other, interval=bound)
            assert found_pair.low <= max(0, found_pair.score) <= found_pair.high


@every
def test_certain_ranks_do_not_depend_on_k(index: Index) -> None:
    """And where nothing is estimated, what is without ties is certain as a whole."""
    for node in SOME[:3]:
        everyone = index.related(node, 10**6)
        whole = everyone.certain_ranks
        for k in (1, 2, 5, max(1, len(everyone) - 1), len(everyone) + 1):
            assert index.related(node, k).certain_ranks == min(k, whole)
            assert everyone[:k].certain_ranks == min(k, whole)
        if all(hit.low == hit.high for hit in everyone):
            scores = [*(hit.score for hit in everyone), 0.0]
            steps = [a > b for a, b in itertools.pairwise(scores)]
            assert whole == (steps.index(False) if False in steps else len(everyone))


@every
def test_aggregate_is_mean_or_minimum_of_scores(index: Index) -> None:
    """With every node, by ``similarity``; an interval has room for the pairs' own mean or least."""
    found = 0
    for nodes in (list(SOME[:3:2]), list(SOME[:5:2])):
        scores = np.array([[pair.score for pair in row_of(index, node)] for node in nodes])
        found += check_together(index, nodes, "mean", scores.mean(axis=0))
        check_together(index, nodes, "min", scores.min(axis=0))
    assert found
    for aggregate in ("mean", "min"):
        assert index.related(["n3"], 5, aggregate=aggregate) == index.related("n3", 5)


def check_together(
    index: Index, nodes: list[str], aggregate: str, joined: NDArray[np.float64]
) -> int:
    """See that a list of ``nodes`` is what ``joined``, float64[n], says; how many hits it has."""
    expected = {
        name: score
        for name, score in zip(index.nodes, joined.tolist(), strict=True)
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
    for one, two in zip(hits[:3], wide, strict=True):
        assert two.low <= one.low <= one.high <= two.high
    sure = index.related(nodes, 30, aggregate=aggregate, min_confidence=0.95)
    assert sure == [hit for hit in hits[:30] if hit.low > 0]
    for k in (1, 2, 9, max(1, len(hits))):
        few = index.related(nodes, k, aggregate=aggregate)
        assert few.certain_ranks == hits[:k].certain_ranks == min(k, hits.certain_ranks)
    return len(hits)


@every
def test_some_node_has_relatives(index: Index) -> None:
    assert sum(len(index.related(node)) for node in SOME) >= 30


@every
@settings(max_examples=5)
@given(drawn=graphs())
def test_scores_symmetric_and_related_agrees_on_any_graph(
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
        here, there = rows[a][b], rows[b][a]
        assert here == there or not measure.symmetric
        assert math.isfinite(here.score)
        assert here.stderr >= 0
        if measure.unit:
            assert here.score <= 1
            assert here.score >= 0 or scatters(index)
        assert 0 <= here.low <= here.high
    for name, row in zip(names, rows, strict=True):
        assert index.related(name, n) == by_similarity(index, name, row)


@every
def test_node_is_most_similar_to_itself_and_no_hit(index: Index, measure: Measure) -> None:
    for node in SOME:
        hits = index.related(node, 10**6)
        assert node not in [hit.node for hit in hits]
        if measure.symmetric and hits:
            assert index.similarity(node, node).score >= hits[0].score


@every
def test_isolated_nodes_have_no_relatives(index: Index) -> None:
    for node in ("alone", "also alone"):
        if scatters(index):  # to nobody for certain
            assert all(hit.low == 0 for hit in index.related(node, 10**6))
            assert index.similarity(node, "n3").low == 0
        else:
            assert index.related(node) == []
            assert index.similarity(node, "n3")[:2] == (0, 0)
    alike = index.similarity("alone", "also alone")
    assert (alike.low if scatters(index) else alike.score) == 0


@every
def test_batch_answers_as_single_questions(index: Index) -> None:
    assert index.related_many(SOME, 9) == [index.related(node, 9) for node in SOME]
    pairs = [(SOME[0], other) for other in index.nodes]
    assert list(index.similarities(pairs)) == [index.similarity(*pair) for pair in pairs]


@every
def test_related_all_equals_single_questions(index: Index, tmp_path: Path) -> None:
    rows = all_rows(index, tmp_path / "all", 9, threads=2)
    wide = 3 if index.samples else 5  # intervals cost a look at all samples: not unless asked for
    assert rows == [
        (node, rank, *hit[:wide])
        for node in index.nodes
        for rank, hit in enumerate(index.related(node, 9), 1)
    ]


@every
def test_larger_decay_never_lowers_a_score(
    graph: Graph, built: Built, tmp_path: Path, measure: Measure, layout: str | None, direction: str
) -> None:
    decays = (0.2, 0.4, 0.6, 0.8)
    if "decay" in {s.name for s in measure.ask}:
        index = built(measure, layout, direction)
        columns = [scores_of(index, "n77", decay=d) for d in decays]
    elif "decay" in {s.name for s in measure.build}:
        made = [
            cocite.build(
                graph,
                tmp_path / str(d),
                measure=measure.name,
                layout=layout,
                direction=direction,
                decay=d,
            )
            for d in decays
        ]
        columns = [scores_of(index, "n77") for index in made]
    else:
        pytest.skip(f"{measure.name} has no decay")
    rows = [list(row) for row in zip(*columns, strict=True)]
    if measure.monotone:
        assert all(row == sorted(row) for row in rows)
    assert any(row[0] < row[-1] for row in rows)


@every
def test_larger_meeting_weight_never_lowers_a_score(
    index: Index, measure: Measure, tmp_path: Path
) -> None:
    """And any is asked alike: of pairs, in lists, in batches, with reasons that add up."""
    if MEETING_WEIGHT not in measure.ask:
        pytest.skip(f"{measure.name} does not take by")
    worth = ("t == 2", "t <= 2", "max(t <= 2, 1 / t)", "1")
    columns = [scores_of(index, "n77", meeting_weight=by) for by in worth]
    rows = [list(row) for row in zip(*columns, strict=True)]
    assert all(row == sorted(row) for row in rows)
    assert any(row[0] < row[1] for row in rows)
    assert index.related("n77", meeting_weight="t <= 2") == index.related(
        "n77", meeting_weight=lambda t: t < 3
    )
    assert index.related("n77", meeting_weight="decay ** t") == index.related("n77")
    by: dict[str, Any] = {"meeting_weight": lambda t: (0.1, 0, 0.6, 0.2)[min(t, 4) - 1]}
    row = list(index.similarities([("n77", name) for name in index.nodes], **by))
    hits = index.related("n77", 10**6, **by)
    assert hits == by_similarity(index, "n77", row)
    assert all(0 <= hit.low <= hit.score <= hit.high <= 1 for hit in hits)
    why = index.why("n77", hits[0].node, 1000, **by)
    shares = sum(reason.contribution for reason in why.reasons) + why.remaining + why.unattributed
    assert why.score == hits[0].score == pytest.approx(shares, abs=1e-9)
    written = [row[2:4] for row in all_rows(index, tmp_path / "all", 4, **by) if row[0] == "n77"]
    assert written == [hit[:2] for hit in hits[:4]]


@every
def test_unknown_node_or_setting_names_what_there_is(index: Index, measure: Measure) -> None:
    with pytest.raises(UnknownNode, match="the nearest"):
        index.related("n7777")
    with pytest.raises(UnknownNode):
        index.similarity("n3", "nobody")
    with pytest.raises(
        UsageError, match=rf"{re.escape(measure.name)} has no setting 'color' when asking"
    ):
        index.related("n3", color="red")


@every
def test_reopened_same(built: Built, measure: Measure, layout: str | None, direction: str) -> None:
    index = built(measure, layout, direction)
    again = cocite.open(index.stored.store.path)
    assert (again.measure, again.direction) == (measure.name, direction)
    assert again.settings == index.settings
    for node in SOME:
        assert again.related(node) == index.related(node)


@every
def test_threads_and_rebuild_give_the_same_digest(
    graph: Graph, built: Built, tmp_path: Path, measure: Measure, layout: str | None, direction: str
) -> None:
    index = built(measure, layout, direction)
    chosen: dict[str, Any] = {"layout": layout, "direction": direction, "threads": 1}
    chosen |= of_texts(graph, measure.name) | index.settings
    once = cocite.build(graph, tmp_path / "once", measure=measure.name, **chosen)
    assert once.stored.digest == index.stored.digest


@every
def test_interrupted_build_resumes_to_the_same_files(
    graph: Graph, built: Built, tmp_path: Path, measure: Measure, layout: str | None, direction: str
) -> None:
    """Interrupted in the last part, so that a part before it must be kept."""
    index = built(measure, layout, direction)
    calls = []

    def stop(done: int, total: int) -> None:
        calls.append(done)
        if done >= total:
            raise KeyboardInterrupt

    chosen: dict[str, Any] = {"layout": layout, "direction": direction, "measure": measure.name}
    chosen |= of_texts(graph, measure.name) | index.settings
    with pytest.raises(KeyboardInterrupt):
        cocite.build(graph, tmp_path / "x", progress=stop, **chosen)
    assert not (tmp_path / "x").exists()
    resumed: list[int] = []
    again = cocite.build(
        graph,
        tmp_path / "x",
        progress=lambda done, total: resumed.append(done),
        **chosen,
    )
    assert again.stored.digest == index.stored.digest
    if direction == "both" and len(index.stored.parts) > 1:
        assert resumed[0] >= calls[-1] // 2


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_unknown_setting_is_refused(graph: Graph, tmp_path: Path, measure: Measure) -> None:
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
def test_settings_keep_their_bounds(measure: Measure) -> None:
    for setting in measure.build + measure.ask:
        assert setting.checked(setting.default) == setting.default
        wrong: object = "no such word"
        with pytest.raises(UsageError, match=rf"{setting.name} is 'no such word'; it must be "):
            setting.checked(wrong)
        assert setting.text
        assert setting.text[-1] != "."
