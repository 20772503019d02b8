"""Refined answers against the exact scores, and how they find what they need."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.cli.main import main
from cocite.engine.walk import follow
from cocite.errors import Damaged, NotAStore, UsageError
from cocite.index.layouts.trees.reader import TreeReader
from cocite.search.refine.candidates import SampleRefiner
from cocite.search.results import RelatedDocument, SimilarityDocument
from cocite.storage import Journal
from tests.conftest import MakeGraph, by_walks
from tests.oracles import simrank as exact
from tests.oracles import xjaccard as rings
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.search.test_estimates import inlinks_of


def truth_of(graph: Graph, direction: str = "in", decay: float = 0.6) -> np.ndarray:
    """SimRank until it stands still to 1e-14."""
    links = inlinks_of(graph)
    ways = {"in": [links], "out": [links.T], "both": [links, links.T]}[direction]
    rounds = int(np.ceil(np.log(1e-14) / np.log(decay)))
    found: np.ndarray = np.mean([exact.simrank(way, decay, rounds) for way in ways], axis=0)
    return found


@settings(max_examples=12)
@given(
    graphs(),
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from([0.3, 0.6, 0.8]),
    st.sampled_from([1e-5, 0.001, 0.1]),
)
def test_every_score_is_within_its_interval(
    make_graph: MakeGraph, graph: tuple[int, Edges], direction: str, decay: float, target: float
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    options: dict[str, Any] = {"measure": "simrank", "direction": direction, "samples": 2}
    index = cocite.build(stored, refine=decay == 0.6, **options)
    truth = truth_of(stored, direction, decay)
    for u in range(n):
        hits = index.related(u, n, target_error=target, decay=decay)
        found = {int(h.node): h for h in hits}
        assert u not in found
        for v in set(range(n)) - {u}:
            pair = index.similarity(u, v, target_error=target, decay=decay)
            assert pair.low <= truth[u, v] <= pair.high
            assert pair.low <= pair.score <= pair.high
            if v in found:
                assert tuple(pair) == tuple(found[v])[1:]
            else:
                assert pair.score == 0
        assert hits == sorted(hits, key=lambda h: (-h.score, order(int(h.node))))
        assert index.similarity(u, u, refine=True)[:2] == (1, 0)


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    """400 nodes in communities and a few hubs."""
    rng = np.random.default_rng(8)
    site = rng.integers(0, 400, (4000, 1)) // 20 * 20
    edges = np.vstack([site + rng.integers(0, 25, (4000, 2)), rng.integers(0, 60, (300, 2))])
    return module_graph(edges.tolist())


@pytest.fixture(scope="module")
def index(graph: Graph) -> Index:
    return cocite.build(graph, measure="simrank", samples=10, refine=True)


def test_the_top_is_the_exact_top(graph: Graph, index: Index) -> None:
    """Ties within the certified error apart; the samples alone are far from it."""
    truth = truth_of(graph)
    np.fill_diagonal(truth, 0)
    ids = {name: i for i, name in enumerate(index.nodes)}
    refined, plain = 0, 0
    nodes = list(index.nodes)[::8]
    for node in nodes:
        row = truth[ids[node]]
        least = np.sort(row)[-20] - 1e-6
        refined += sum(row[ids[h.node]] >= least for h in index.related(node, 20, refine=True))
        plain += sum(row[ids[h.node]] >= least for h in index.related(node, 20))
    assert refined >= 0.99 * 20 * len(nodes)
    assert plain < 0.9 * 20 * len(nodes)


@pytest.mark.parametrize("target", [0.01, 0.001, 0.0001])
def test_the_error_aimed_at_is_reached(index: Index, target: float) -> None:
    """What may be missing is the target and a little that is left out on the way back; the rest of
    an interval is the diagonal's certificate, a part of the score.
    """
    for node in list(index.nodes)[::50]:
        for hit in index.related(node, 5, target_error=target):
            assert hit.high - hit.low <= 2 * target + 0.03 * hit.score


@pytest.mark.parametrize("decay", [0.95, 0.99])
def test_unreachable_target_ends(make_graph: MakeGraph, decay: float) -> None:
    """Walks on a cycle never spread: more of them is left behind level 128 than is asked for."""
    stored = make_graph([*((v, (v + 1) % 9) for v in range(9)), (0, 4)])
    truth = truth_of(stored, decay=decay)
    built = cocite.build(stored, measure="simrank", samples=1)
    for u in range(9):
        for hit in built.related(u, 9, target_error=1e-5, decay=decay):
            assert hit.low <= truth[u, int(hit.node)] <= hit.high
            assert hit.low <= hit.score <= hit.high <= decay


@pytest.mark.parametrize("decay", [0.9, 0.95, 0.99])
def test_near_scores_are_good(make_graph: MakeGraph, decay: float) -> None:
    """A dozen pages that link to each other, and a decay near 1: each entry of the diagonal depends
    on all others. Scores were off by 0.2 and more, cut at the decay; samples do better than that.
    """
    rng = np.random.default_rng(7)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, 12, (54, 2)) if a != b}
    stored = make_graph(sorted(edges), range(12))
    truth = truth_of(stored, decay=decay)
    built = cocite.build(stored, measure="simrank", samples=100)
    off, plain = [], []
    for u in range(12):
        for hit in built.related(u, 4, refine=True, decay=decay):
            exact = truth[u, int(hit.node)]
            assert hit.low <= exact <= hit.high
            assert hit.low <= hit.score <= hit.high
            off.append(abs(hit.score - exact))
            plain.append(abs(built.similarity(u, hit.node, decay=decay).score - exact))
    assert max(off) < (0.01 if decay < 0.99 else 0.1)
    assert np.mean(off) < np.mean(plain) / 5


def test_certain_order_is_the_order_of_the_exact_scores(graph: Graph, index: Index) -> None:
    truth = truth_of(graph)
    ids = {name: i for i, name in enumerate(index.nodes)}
    certain = 0
    for node in list(index.nodes)[::8]:
        hits = index.related(node, 20, refine=True)
        count = hits.certain_ranks
        scores = [truth[ids[node], ids[h.node]] for h in hits[: count + 1]]
        assert scores == sorted(scores, reverse=True)
        certain += count
    assert certain > 20


def test_pages_and_filters_apply_to_refined_answers(index: Index) -> None:
    hits = index.related("45", 30, refine=True)
    assert index.related("45", 10, offset=10, refine=True) == hits[10:20]
    names = [h.node for h in hits[3:9]]
    assert [h.node for h in index.related("45", 4, only=names, refine=True)] == names[:4]
    floor = hits[5].score
    assert index.related("45", 30, min_score=floor, refine=True) == hits[:6]
    sure = index.related("45", 10**6, refine=True, min_confidence=0.9)
    assert all(h.low > 0 for h in sure)


def test_filters_apply_to_refined_answers_of_some_nodes(graph: Graph) -> None:
    some = cocite.build(graph, measure="simrank", samples=10, only_nodes=list(graph.names)[40:])
    hits = some.related("45", 30, refine=True)
    floor = hits[5].score
    assert hits[6].score < floor
    assert some.related("45", 30, min_score=floor, refine=True) == hits[:6]
    rest = some.related("45", 30, only=[h.node for h in hits[3:9]], min_score=floor, refine=True)
    assert rest == hits[3:6]


def test_made_ready_equals_made_when_asked(graph: Graph, index: Index) -> None:
    bare = cocite.build(graph, measure="simrank", samples=3)
    assert bare.stored.refined == {}
    assert index.stored.refined["in.diagonal"]["decay"] == 0.6
    for node in ("0", "45", "300"):
        assert bare.related(node, refine=True) == index.related(node, refine=True)
    assert index.related("45", refine=True, decay=0.5) != index.related("45", refine=True)


def test_damage_is_not_certified(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "x"
    cocite.build(graph, path, measure="simrank", samples=1, refine=True)
    content = bytearray((path / "in.diagonal").read_bytes())
    content[-2] ^= 0x40
    (path / "in.diagonal").write_bytes(content)
    damaged = cocite.open(path, verify=False)
    assert damaged.similarity(7, 8).score >= 0
    with pytest.raises(Damaged, match=r"in\.diagonal has checksum .*Rebuild the index"):
        damaged.related(7, refine=True)


def test_graph_is_found_from_the_moved_index(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("a", "c"), ("b", "c")])
    (tmp_path / "deep").mkdir()
    cocite.build(graph, tmp_path / "deep" / "i", measure="simrank", samples=2)
    expected = cocite.open(tmp_path / "deep" / "i").related("b", refine=True)
    assert expected
    shutil.copytree(tmp_path, tmp_path.with_name(tmp_path.name + "-moved"))
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    shutil.rmtree(graph.path)
    assert cocite.open(moved / "deep" / "i").related("b", refine=True) == expected
    gone = cocite.open(tmp_path / "deep" / "i")
    with pytest.raises(NotAStore, match=r"is not at .*--graph"):
        gone.related("b", refine=True)
    assert gone.related("b") is not None  # samples need no graph
    told = cocite.open(tmp_path / "deep" / "i", graph=moved / graph.path.name)
    assert told.related("b", refine=True) == expected


def test_another_graph_is_refused(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph, other = make_graph([("a", "b"), ("a", "c")]), make_graph([("a", "b"), ("a", "d")])
    cocite.build(graph, tmp_path / "i", measure="simrank", samples=2)
    index = cocite.open(tmp_path / "i", graph=other.path)
    with pytest.raises(UsageError, match=r"is not the graph that .* checksums differ"):
        index.similarity("b", "c", refine=True)


@pytest.fixture(scope="module")
def sampled(graph: Graph) -> Index:
    return cocite.build(graph, graph.path.with_name("p"), measure="psimrank", samples=32, length=6)


@settings(max_examples=15)
@given(graphs(10), st.sampled_from(["in", "out", "both"]), st.integers(0, 99))
def test_walks_replayed_are_those_of_the_index(
    make_graph: MakeGraph, graph: tuple[int, Edges], direction: str, seed: int
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    options: dict[str, Any] = {"direction": direction, "seed": seed, "length": 5}
    index = cocite.build(stored, stored.path.with_suffix(".i"), samples=12, **by_walks(options))
    refiner = index.refiner
    assert isinstance(refiner, SampleRefiner)
    for reader, mover in zip(index.scorer.readers, refiner.movers, strict=True):
        assert isinstance(reader, TreeReader)
        for u in range(n):
            nodes = np.array([u, *(v for v in range(n) if v != u)], np.uint32)
            for sample in range(12):
                times = follow(mover, 5, sample, nodes)
                expected = [reader.meeting_times(u, int(v))[sample] for v in nodes[1:]]
                assert times.tolist() == [0, *expected]


def test_more_samples_find_more_of_the_exact_top(graph: Graph, sampled: Index) -> None:
    """PSimRank cut at the walks' length; and its scores are where the intervals say."""
    truth = exact.psimrank(inlinks_of(graph), 0.6, 6)
    np.fill_diagonal(truth, 0)
    ids = {name: i for i, name in enumerate(sampled.nodes)}
    refined, plain = 0, 0
    nodes = list(sampled.nodes)[::80]
    for node in nodes:
        row = truth[ids[node]]
        least = np.sort(row)[-10]
        hits = sampled.related(node, 10, refine=True, confidence=1 - 1e-9)
        assert all(h.low <= row[ids[h.node]] <= h.high for h in hits)
        refined += sum(row[ids[h.node]] >= least for h in hits)
        plain += sum(row[ids[h.node]] >= least for h in sampled.related(node, 10))
    assert refined > plain
    assert refined >= 0.85 * 10 * len(nodes)


def test_samples_stop_when_the_error_aimed_at_is_reached(sampled: Index) -> None:
    few = sampled.similarity("45", "46", target_error=0.5, confidence=0.5)
    assert few[:2] == sampled.similarity("45", "46")[:2]
    many = sampled.similarity("45", "46", target_error=0.02, confidence=0.5)
    assert (many.high - many.low) / 2 <= 0.02
    assert many[:2] != few[:2]


MIXED = "blend:0.7*psimrank(hubs=idf,direction=both)+0.3*cocitation(idf=true)"


def test_another_bound_is_refused(index: Index) -> None:
    for ask in (index.related, lambda a, **o: index.similarity(a, 8, **o)):
        with pytest.raises(
            UsageError, match=r"compute their own intervals, without hoeffding: omit"
        ):
            ask(7, refine=True, interval="hoeffding")


@pytest.mark.parametrize("by", ["psimrank", "xjaccard"])
def test_hits_are_above_zero_with_the_confidence_asked_for(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """And not with that of the intervals shown."""
    monkeypatch.setattr("cocite.search.refine.linear.MOST_LINKS", 0)
    asked = cocite.build(graph, measure=by, samples=300)
    counts = []
    for level in (0.1, 0.95, 1 - 1e-12):
        wanted: dict[str, Any] = {"k": 250, "target_error": 0.9, "confidence": level}
        sure = [hit.node for hit in asked.related(7, **wanted) if hit.low > 0]
        kept = asked.related(7, 250, target_error=0.9, min_confidence=level)
        assert [hit.node for hit in kept] == sure
        counts.append(len(kept))
    assert counts[0] >= counts[1] > counts[2]
    with pytest.raises(UsageError, match=r"confidence is 1\.5"):
        asked.related(7, refine=True, min_confidence=1.5)


def test_more_samples_of_a_blend_are_those_of_a_larger_one(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts with samples get more of them, the others add what they always do; to the bit."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 256)
    mixed, larger = (cocite.build(graph, measure=MIXED, samples=n, length=6) for n in (32, 256))
    for node in list(graph.names)[::80]:
        hits = mixed.related(node, 20, target_error=1e-6)
        assert len(hits) == 20
        for hit in hits:
            assert hit[1:3] == larger.similarity(node, hit.node)[:2]
            assert 0 <= hit.low <= hit.score <= hit.high <= 1


def test_exact_scores_have_nothing_to_refine(graph: Graph) -> None:
    index = cocite.build(graph, measure="cocitation")
    assert index.related("45", refine=True) == index.related("45")
    assert index.similarity("45", "46", target_error=0.01) == index.similarity("45", "46")


@settings(max_examples=25)
@given(graphs(), st.sampled_from(["in", "out", "both"]), st.sampled_from([0, 3]), st.integers(1, 4))
def test_xjaccard_is_compared_by_its_neighborhoods(
    make_graph: MakeGraph, graph: tuple[int, Edges], direction: str, bits: int, length: int
) -> None:
    n, edges = graph
    rows = {
        "in": [[u for u, v in edges if v == node] for node in range(n)],
        "out": [[v for u, v in edges if u == node] for node in range(n)],
    }
    ways = ["in", "out"] if direction == "both" else [direction]
    truth = np.mean([rings.xjaccard(rows[way], 0.6, length) for way in ways], axis=0)
    options: dict[str, Any] = {"direction": direction, "length": length, "bits": bits}
    index = cocite.build(make_graph(edges, range(n)), measure="xjaccard", samples=5, **options)
    for u in range(n):
        candidates = {hit.node for hit in index.related(u, n)}
        hits = index.related(u, n, refine=True)
        assert {hit.node for hit in hits} == {v for v in candidates if truth[u, int(v)] > 0}
        for hit in hits:
            assert hit.low <= truth[u, int(hit.node)] <= hit.high < hit.score + 1e-10
            assert hit.score == pytest.approx(truth[u, int(hit.node)], abs=1e-11)
            assert tuple(index.similarity(u, hit.node, refine=True)) == hit[1:]


def test_no_links_samples(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    index = cocite.build(graph, measure="xjaccard", samples=20, length=2)
    exactly = {hit.node: hit for hit in index.related("45", 400, refine=True)}
    monkeypatch.setattr("cocite.search.refine.linear.MOST_LINKS", 2_000)
    mixed = index.related("45", 400, refine=True)
    settled = [hit for hit in mixed if hit.high - hit.low < 1e-10]
    assert 0 < len(settled) < len(mixed)
    for hit in mixed:
        if hit in settled:
            assert hit == exactly[hit.node]
        else:
            assert hit[1:3] == index.similarity("45", hit.node)[:2]
            assert hit.low <= exactly[hit.node].score <= hit.high
    monkeypatch.setattr("cocite.search.refine.linear.MOST_LINKS", 1)
    nothing = index.related("45", 20, refine=True)
    assert [hit[:3] for hit in nothing] == [hit[:3] for hit in index.related("45", 20)]


def test_parts_refined_in_different_ways_are_not(graph: Graph) -> None:
    index = cocite.build(graph, measure="blend:psimrank+xjaccard", samples=4)
    with pytest.raises(UsageError, match=r"has no refined answers.*--samples"):
        index.related("45", refine=True)


@pytest.mark.parametrize("measure", ["psimrank", "cocitation", "simrank(hubs=idf)"])
def test_only_simrank_is_made_ready(graph: Graph, tmp_path: Path, measure: str) -> None:
    name = "blend:" + measure + "+simrank" if "(" in measure else measure
    with pytest.raises(UsageError, match=r"--refine \(refine=True\) stores data that only simrank"):
        cocite.build(graph, tmp_path / "i", measure=name, refine=True)
    assert not (tmp_path / "i").exists()


def test_a_blend_of_simranks_is_computed(graph: Graph) -> None:
    """Each part by its own decay, made ready for it."""
    name = "blend:0.75*simrank(decay=0.5)+0.25*simrank(direction=out,decay=0.8)"
    index = cocite.build(graph, measure=name, samples=2, refine=True)
    assert sorted(facts["decay"] for facts in index.stored.refined.values()) == [0.5, 0.8]
    truth = 0.75 * truth_of(graph, "in", 0.5) + 0.25 * truth_of(graph, "out", 0.8)
    ids = {name: i for i, name in enumerate(index.nodes)}
    for node in list(index.nodes)[::80]:
        for hit in index.related(node, 400, refine=True):
            assert hit.low <= truth[ids[node], ids[hit.node]] <= hit.high


def test_an_interrupted_build_goes_on_with_what_was_ready(
    graph: Graph, index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Stopped after every stage in turn; the bytes are those of a build that was not."""
    keep, options = Journal.append, {"measure": "simrank", "samples": 10, "refine": True}
    kept: list[int] = []

    def stop(journal: Any, piece: bytes) -> None:
        keep(journal, piece)
        kept.append(len(piece))
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "append", stop)
    for stage in range(4):
        with pytest.raises(KeyboardInterrupt):
            cocite.build(graph, tmp_path / "i", **by_walks(options))
        assert kept == [24 * graph.nodes] * (stage + 1)
    monkeypatch.setattr(Journal, "append", keep)
    again = cocite.build(graph, tmp_path / "i", **by_walks(options))
    assert again.stored.digest == index.stored.digest
    assert {file.name for file in (tmp_path / "i").iterdir()} == {
        file.name for file in index.stored.store.path.iterdir()
    }


def test_reached_error(graph: Graph, index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    """The diagonal of the index bounds it, however small the target."""
    truth, ids = truth_of(graph), {name: i for i, name in enumerate(index.nodes)}
    a, b = "3", index.related("3", 1)[0].node
    for target in (1e-6, 0.5):
        pair = SimilarityDocument.of(index, a, b, target_error=target).to_json()
        hits = RelatedDocument.of(index, a, 5, target_error=target).to_json()
        assert pair["target_error"] == hits["target_error"] == target
        assert abs(pair["score"] - truth[ids[a], ids[b]]) <= pair["error_bound"]
        found = index.similarity(a, b, target_error=target)
        assert pair["error_bound"] == pytest.approx(found.error_bound, abs=1e-12)
        assert (pair["error_bound"] > target) == (target == 1e-6)
        path, wanted = str(index.stored.store.path), ("--target-error", f"{target:g}")
        for command in (["similarity", path, a, b], ["related", path, a, "-k", "5"]):
            assert main([*command, *wanted]) == 0
            printed = f"--target-error {target:g} is not met: a score may be off by"
            assert (printed in capsys.readouterr().out) == (target == 1e-6)
        each = [max(hit["high"] - hit["score"], hit["score"] - hit["low"]) for hit in hits["hits"]]
        assert hits["error_bound"] == pytest.approx(max(each), abs=1e-12)
    assert "error_bound" not in SimilarityDocument.of(index, a, b).to_json()
