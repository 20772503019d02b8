"""Refined queries: against exact scores, and where they find their data."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph, Index
from cocite.engine.walk import follow
from cocite.errors import Damaged, NotAStore, UsageError
from cocite.index.layouts.trees.reader import TreeReader
from cocite.search.refine.candidates import SampleRefiner
from cocite.search.results import RelatedDocument, SimilarityDocument
from cocite.storage import Journal
from tests.conftest import MakeGraph, Shell, with_psimrank
from tests.oracles import simrank as exact
from tests.oracles import xjaccard as rings
from tests.oracles.fusion import order
from tests.oracles.graphs import Edges, graphs
from tests.search.test_estimates import inlinks_of


def exact_scores(graph: Graph, direction: str = "in", decay: float = 0.6) -> np.ndarray:
    """SimRank, iterated until it converges to 1e-14."""
    links = inlinks_of(graph)
    matrices = {"in": [links], "out": [links.T], "both": [links, links.T]}[direction]
    rounds = int(np.ceil(np.log(1e-14) / np.log(decay)))
    found: np.ndarray = np.mean(
        [exact.simrank(matrix, decay, rounds) for matrix in matrices], axis=0
    )
    return found


@settings(max_examples=12)
@given(
    graphs(),
    st.sampled_from(["in", "out", "both"]),
    st.sampled_from([0.3, 0.6, 0.8]),
    st.sampled_from([1e-5, 0.001, 0.1]),
)
def test_refine_intervals_contain_exact_scores(
    make_graph: MakeGraph, graph: tuple[int, Edges], direction: str, decay: float, target: float
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    options: dict[str, Any] = {"measure": "simrank", "direction": direction, "samples": 2}
    index = cocite.build(stored, refine=decay == 0.6, **options)
    truth = exact_scores(stored, direction, decay)
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
    """200 nodes in communities and a few hubs."""
    rng = np.random.default_rng(8)
    site = rng.integers(0, 200, (2000, 1)) // 20 * 20
    edges = np.vstack([site + rng.integers(0, 25, (2000, 2)), rng.integers(0, 60, (150, 2))])
    return module_graph(edges.tolist())


@pytest.fixture(scope="module")
def truth(graph: Graph) -> np.ndarray:
    """The exact SimRank of the graph, for its index."""
    return exact_scores(graph)


@pytest.fixture(scope="module")
def index(graph: Graph) -> Index:
    return cocite.build(graph, measure="simrank", samples=10, refine=True)


def test_refine_finds_exact_top(index: Index, truth: np.ndarray) -> None:
    """Except for ties within the certified error; the samples alone are far from it."""
    truth = truth - np.eye(len(truth))
    ids = {name: i for i, name in enumerate(index.nodes)}
    refined, unrefined = 0, 0
    nodes = list(index.nodes)[::10]
    for node in nodes:
        row = truth[ids[node]]
        threshold = np.sort(row)[-20] - 1e-6
        refined += sum(row[ids[h.node]] >= threshold for h in index.related(node, 20, refine=True))
        unrefined += sum(row[ids[h.node]] >= threshold for h in index.related(node, 20))
    assert refined >= 0.99 * 20 * len(nodes)
    assert unrefined < 0.9 * 20 * len(nodes)


@pytest.mark.parametrize("target", [0.01, 0.001, 0.0001])
def test_target_error_bounds_interval_width(index: Index, target: float) -> None:
    """An interval allows for the target error, a little that the backward pass omits, and the
    diagonal's certificate, which is proportional to the score.
    """
    for node in list(index.nodes)[::25]:
        for hit in index.related(node, 5, target_error=target):
            assert hit.high - hit.low <= 2 * target + 0.03 * hit.score


@pytest.mark.parametrize("decay", [0.95, 0.99])
def test_target_error_stops_when_unreachable(make_graph: MakeGraph, decay: float) -> None:
    """Walks on a cycle never spread: more than the target is left beyond level 128."""
    stored = make_graph([*((v, (v + 1) % 9) for v in range(9)), (0, 4)])
    truth = exact_scores(stored, decay=decay)
    index = cocite.build(stored, measure="simrank", samples=1)
    for u in range(9):
        for hit in index.related(u, 9, target_error=1e-5, decay=decay):
            assert hit.low <= truth[u, int(hit.node)] <= hit.high
            assert hit.low <= hit.score <= hit.high <= decay


@pytest.mark.parametrize("decay", [0.9, 0.95, 0.99])
def test_refine_is_accurate_for_large_decay(make_graph: MakeGraph, decay: float) -> None:
    """In a dozen linked pages, with a decay near 1, each diagonal entry depends on all others.
    Scores used to be off by 0.2 and more, worse than samples.
    """
    rng = np.random.default_rng(7)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, 12, (54, 2)) if a != b}
    stored = make_graph(sorted(edges), range(12))
    truth = exact_scores(stored, decay=decay)
    index = cocite.build(stored, measure="simrank", samples=100)
    errors, sample_errors = [], []
    for u in range(12):
        for hit in index.related(u, 4, refine=True, decay=decay):
            exact = truth[u, int(hit.node)]
            assert hit.low <= exact <= hit.high
            assert hit.low <= hit.score <= hit.high
            errors.append(abs(hit.score - exact))
            sample_errors.append(abs(index.similarity(u, hit.node, decay=decay).score - exact))
    assert max(errors) < (0.01 if decay < 0.99 else 0.1)
    assert np.mean(errors) < np.mean(sample_errors) / 5


def test_refine_certain_ranks_match_exact_order(index: Index, truth: np.ndarray) -> None:
    ids = {name: i for i, name in enumerate(index.nodes)}
    certain = 0
    for node in list(index.nodes)[::8]:
        hits = index.related(node, 20, refine=True)
        count = hits.certain_ranks
        scores = [truth[ids[node], ids[h.node]] for h in hits[: count + 1]]
        assert scores == sorted(scores, reverse=True)
        certain += count
    assert certain > 20


def test_refine_applies_offset_and_filters(index: Index) -> None:
    hits = index.related("45", 30, refine=True)
    assert index.related("45", 10, offset=10, refine=True) == hits[10:20]
    names = [h.node for h in hits[3:9]]
    assert [h.node for h in index.related("45", 4, only=names, refine=True)] == names[:4]
    floor = hits[5].score
    assert index.related("45", 30, min_score=floor, refine=True) == hits[:6]
    confident = index.related("45", 10**6, refine=True, min_confidence=0.9)
    assert all(h.low > 0 for h in confident)


def test_refine_applies_filters_to_selected_index(graph: Graph) -> None:
    selected = cocite.build(graph, measure="simrank", samples=10, only_nodes=list(graph.names)[40:])
    hits = selected.related("45", 30, refine=True)
    floor = hits[5].score
    assert hits[6].score < floor
    assert selected.related("45", 30, min_score=floor, refine=True) == hits[:6]
    filtered = selected.related(
        "45", 30, only=[h.node for h in hits[3:9]], min_score=floor, refine=True
    )
    assert filtered == hits[3:6]


def test_refine_data_stored_equals_computed(graph: Graph, index: Index) -> None:
    without_data = cocite.build(graph, measure="simrank", samples=3)
    assert without_data.stored.refined == {}
    assert index.stored.refined["in.diagonal"]["decay"] == 0.6
    for node in ("0", "45", "150"):
        assert without_data.related(node, refine=True) == index.related(node, refine=True)
    assert index.related("45", refine=True, decay=0.5) != index.related("45", refine=True)


def test_refine_reports_damaged_diagonal(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "x"
    cocite.build(graph, path, measure="simrank", samples=1, refine=True)
    content = bytearray((path / "in.diagonal").read_bytes())
    content[-2] ^= 0x40
    (path / "in.diagonal").write_bytes(content)
    damaged = cocite.open(path, verify=False)
    assert damaged.similarity(7, 8).score >= 0
    with pytest.raises(Damaged, match=r"in\.diagonal has checksum .*Rebuild the index"):
        damaged.related(7, refine=True)


def test_refine_finds_graph_of_moved_index(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("a", "b"), ("a", "c"), ("b", "c")])
    (tmp_path / "deep").mkdir()
    cocite.build(graph, tmp_path / "deep" / "i", measure="simrank", samples=2)
    expected = cocite.open(tmp_path / "deep" / "i").related("b", refine=True)
    assert expected
    shutil.copytree(tmp_path, tmp_path.with_name(tmp_path.name + "-moved"))
    moved = tmp_path.with_name(tmp_path.name + "-moved")
    shutil.rmtree(graph.path)
    assert cocite.open(moved / "deep" / "i").related("b", refine=True) == expected
    without_graph = cocite.open(tmp_path / "deep" / "i")
    with pytest.raises(NotAStore, match=r"is not at .*--graph"):
        without_graph.related("b", refine=True)
    # unrefined queries need no graph
    assert without_graph.related("b") == cocite.open(moved / "deep" / "i").related("b")
    with_graph = cocite.open(tmp_path / "deep" / "i", graph=moved / graph.path.name)
    assert with_graph.related("b", refine=True) == expected


def test_refine_rejects_other_graph(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph, other = make_graph([("a", "b"), ("a", "c")]), make_graph([("a", "b"), ("a", "d")])
    cocite.build(graph, tmp_path / "i", measure="simrank", samples=2)
    index = cocite.open(tmp_path / "i", graph=other.path)
    with pytest.raises(UsageError, match=r"is not the graph that .* checksums differ"):
        index.similarity("b", "c", refine=True)


@pytest.fixture(scope="module")
def sampled(graph: Graph) -> Index:
    return cocite.build(graph, graph.path.with_name("p"), measure="psimrank", samples=32, length=6)


@settings(max_examples=10)
@given(graphs(10), st.sampled_from(["in", "out", "both"]), st.integers(0, 99))
def test_sample_refiner_replays_index_walks(
    make_graph: MakeGraph, graph: tuple[int, Edges], direction: str, seed: int
) -> None:
    n, edges = graph
    stored = make_graph(edges, range(n))
    options: dict[str, Any] = {"direction": direction, "seed": seed, "length": 5}
    index = cocite.build(
        stored, stored.path.with_suffix(".i"), samples=12, **with_psimrank(options)
    )
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


@pytest.mark.statistical
def test_sample_refiner_finds_more_of_exact_top(
    graph: Graph, sampled: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PSimRank is cut at the walk length; the intervals contain its scores."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 1024)
    truth = exact.psimrank(inlinks_of(graph), 0.6, 6)
    np.fill_diagonal(truth, 0)
    ids = {name: i for i, name in enumerate(sampled.nodes)}
    refined, unrefined = 0, 0
    nodes = list(sampled.nodes)[::40]
    for node in nodes:
        row = truth[ids[node]]
        threshold = np.sort(row)[-10]
        hits = sampled.related(node, 10, refine=True, confidence=1 - 1e-9)
        assert all(h.low <= row[ids[h.node]] <= h.high for h in hits)
        refined += sum(row[ids[h.node]] >= threshold for h in hits)
        unrefined += sum(row[ids[h.node]] >= threshold for h in sampled.related(node, 10))
    assert refined > unrefined
    assert refined >= 0.85 * 10 * len(nodes)


def test_sample_refiner_stops_at_target_error(sampled: Index) -> None:
    loose = sampled.similarity("45", "46", target_error=0.5, confidence=0.5)
    assert loose[:2] == sampled.similarity("45", "46")[:2]
    tight = sampled.similarity("45", "46", target_error=0.02, confidence=0.5)
    assert (tight.high - tight.low) / 2 <= 0.02
    assert tight[:2] != loose[:2]


MIXED = "blend:0.7*psimrank(hubs=idf,direction=both)+0.3*cocitation(idf=true)"


def test_linear_refiner_rejects_other_interval(index: Index) -> None:
    for query in (index.related, lambda a, **options: index.similarity(a, 8, **options)):
        with pytest.raises(
            UsageError, match=r"compute their own intervals, so hoeffding has no effect: omit"
        ):
            query(7, refine=True, interval="hoeffding")


@pytest.mark.parametrize("measure", ["psimrank", "xjaccard"])
def test_refine_min_confidence_uses_own_level(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    """Not with the confidence of the intervals shown."""
    monkeypatch.setattr("cocite.search.refine.linear.MOST_LINKS", 0)
    index = cocite.build(graph, measure=measure, samples=300)
    counts = []
    for level in (0.1, 0.95, 1 - 1e-12):
        options: dict[str, Any] = {"k": 150, "target_error": 0.9, "confidence": level}
        positive = [hit.node for hit in index.related(7, **options) if hit.low > 0]
        hits = index.related(7, 150, target_error=0.9, min_confidence=level)
        assert [hit.node for hit in hits] == positive
        counts.append(len(hits))
    assert counts[0] >= counts[1] > counts[2]
    with pytest.raises(UsageError, match=r"confidence is 1\.5"):
        index.related(7, refine=True, min_confidence=1.5)


def test_sample_refiner_of_blend_equals_larger_index(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts with samples get more of them, other parts stay the same; to the bit."""
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 128)
    mixed, larger = (cocite.build(graph, measure=MIXED, samples=n, length=6) for n in (32, 128))
    for node in list(graph.names)[::40]:
        hits = mixed.related(node, 20, target_error=1e-6)
        assert len(hits) == 20
        for hit in hits:
            assert hit[1:3] == larger.similarity(node, hit.node)[:2]
            assert 0 <= hit.low <= hit.score <= hit.high <= 1


def test_refine_keeps_exact_scores(graph: Graph) -> None:
    index = cocite.build(graph, measure="cocitation")
    assert index.related("45", refine=True) == index.related("45")
    assert index.similarity("45", "46", target_error=0.01) == index.similarity("45", "46")


@settings(max_examples=12)
@given(graphs(), st.sampled_from(["in", "out", "both"]), st.sampled_from([0, 3]), st.integers(1, 4))
def test_neighborhood_refiner_matches_oracle(
    make_graph: MakeGraph, graph: tuple[int, Edges], direction: str, bits: int, length: int
) -> None:
    n, edges = graph
    rows = {
        "in": [[u for u, v in edges if v == node] for node in range(n)],
        "out": [[v for u, v in edges if u == node] for node in range(n)],
    }
    directions = ["in", "out"] if direction == "both" else [direction]
    truth = np.mean([rings.xjaccard(rows[way], 0.6, length) for way in directions], axis=0)
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


def test_neighborhood_refiner_falls_back_to_samples(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = cocite.build(graph, measure="xjaccard", samples=20, length=2)
    exact_hits = {hit.node: hit for hit in index.related("45", 400, refine=True)}
    monkeypatch.setattr("cocite.search.refine.linear.MOST_LINKS", 2_000)
    limited = index.related("45", 400, refine=True)
    refined = [hit for hit in limited if hit.high - hit.low < 1e-10]
    assert 0 < len(refined) < len(limited)
    for hit in limited:
        if hit in refined:
            assert hit == exact_hits[hit.node]
        else:
            assert hit[1:3] == index.similarity("45", hit.node)[:2]
            assert hit.low <= exact_hits[hit.node].score <= hit.high
    monkeypatch.setattr("cocite.search.refine.linear.MOST_LINKS", 1)
    unrefined = index.related("45", 20, refine=True)
    assert [hit[:3] for hit in unrefined] == [hit[:3] for hit in index.related("45", 20)]


def test_refine_rejects_mixed_blends(graph: Graph) -> None:
    index = cocite.build(graph, measure="blend:psimrank+xjaccard", samples=4)
    with pytest.raises(UsageError, match=r"has no refined answers.*--samples"):
        index.related("45", refine=True)


@pytest.mark.parametrize("measure", ["psimrank", "cocitation", "simrank(hubs=idf)"])
def test_build_refine_rejects_measures_without_simrank(
    graph: Graph, tmp_path: Path, measure: str
) -> None:
    name = "blend:" + measure + "+simrank" if "(" in measure else measure
    with pytest.raises(UsageError, match=r"--refine \(refine=True\) stores data for simrank"):
        cocite.build(graph, tmp_path / "i", measure=name, refine=True)
    assert not (tmp_path / "i").exists()


def test_refine_computes_blend_of_simranks(graph: Graph) -> None:
    """Each part has its own decay, and data prepared for it."""
    name = "blend:0.75*simrank(decay=0.3)+0.25*simrank(direction=out,decay=0.5)"
    index = cocite.build(graph, measure=name, samples=2, refine=True)
    assert sorted(facts["decay"] for facts in index.stored.refined.values()) == [0.3, 0.5]
    truth = 0.75 * exact_scores(graph, "in", 0.3) + 0.25 * exact_scores(graph, "out", 0.5)
    ids = {name: i for i, name in enumerate(index.nodes)}
    for node in list(index.nodes)[::100]:
        for hit in index.related(node, 50, target_error=0.01):
            assert hit.low <= truth[ids[node], ids[hit.node]] <= hit.high


def test_build_refine_resumes_after_interruption(
    graph: Graph, index: Index, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The build stops after every stage in turn; the final bytes are the same."""
    original, options = Journal.append, {"measure": "simrank", "samples": 10, "refine": True}
    pieces: list[int] = []

    def append_and_stop(journal: Any, piece: bytes) -> None:
        original(journal, piece)
        pieces.append(len(piece))
        raise KeyboardInterrupt

    monkeypatch.setattr(Journal, "append", append_and_stop)
    for stage in range(4):
        with pytest.raises(KeyboardInterrupt):
            cocite.build(graph, tmp_path / "i", **with_psimrank(options))
        assert pieces == [24 * graph.nodes] * (stage + 1)
    monkeypatch.setattr(Journal, "append", original)
    resumed = cocite.build(graph, tmp_path / "i", **with_psimrank(options))
    assert resumed.stored.digest == index.stored.digest
    assert {file.name for file in (tmp_path / "i").iterdir()} == {
        file.name for file in index.stored.store.path.iterdir()
    }


def test_error_bound_reports_reached_error(index: Index, truth: np.ndarray, shell: Shell) -> None:
    """The index's diagonal limits the error, however small the target."""
    ids = {name: i for i, name in enumerate(index.nodes)}
    a, b = "3", index.related("3", 1)[0].node
    for target in (1e-6, 0.5):
        pair = SimilarityDocument.of(index, a, b, target_error=target).to_json()
        hits = RelatedDocument.of(index, a, 5, target_error=target).to_json()
        assert pair["target_error"] == hits["target_error"] == target
        assert abs(pair["score"] - truth[ids[a], ids[b]]) <= pair["error_bound"]
        found = index.similarity(a, b, target_error=target)
        assert pair["error_bound"] == pytest.approx(found.error_bound, abs=1e-12)
        assert (pair["error_bound"] > target) == (target == 1e-6)
        path, flags = index.stored.store.path, ("--target-error", f"{target:g}")
        for command in (["similarity", path, a, b], ["related", path, a, "-k", "5"]):
            message = f"--target-error {target:g} is not met: a score may be off by"
            assert (message in shell([*command, *flags]).out) == (target == 1e-6)
        errors = [
            max(hit["high"] - hit["score"], hit["score"] - hit["low"]) for hit in hits["hits"]
        ]
        assert hits["error_bound"] == pytest.approx(max(errors), abs=1e-12)
    assert "error_bound" not in SimilarityDocument.of(index, a, b).to_json()
