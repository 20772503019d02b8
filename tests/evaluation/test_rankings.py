"""Rankers: the contract, indexes with only their first samples, blends, embeddings."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.studies.checks import embed
from benchmarks.studies.rankers import BlendedRanking, RowRanker, Scale, VectorRanker

import cocite
from cocite import Graph
from cocite.errors import UsageError
from cocite.evaluation import IndexRanker, Judge, Labels, Ranker
from cocite.measures import MEASURES
from cocite.storage import Store
from tests.oracles.fusion import order

SAMPLED = [name for name, m in MEASURES.items() if "samples" in {s.name for s in m.build}]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("rankings")
    return cocite.generate_web(folder / "g", nodes=300, links=2400, seed=2)


@pytest.fixture(scope="module")
def rankers(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ranker]:
    folder = tmp_path_factory.mktemp("rankers")
    index = cocite.build(graph, folder / "i", measure="psimrank", samples=10)
    even = np.arange(0, 300, 2, dtype=np.uint32)
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (300, 300)) / 4  # with many ties
    row = RowRanker(lambda node: scores[node], 300)
    return {
        "index": IndexRanker(index),
        "some": IndexRanker(index, even, decay=0.2),
        "rows": row,
        "vectors": VectorRanker(rng.normal(size=(300, 5)), even),
        "blend": BlendedRanking([IndexRanker(index), row], [1, 0.5]),
        "ranks": BlendedRanking([IndexRanker(index), row], scale=Scale.RANK, depth=20),
    }


@pytest.mark.parametrize("name", ["index", "some", "rows", "vectors", "blend", "ranks"])
def test_rankers_return_sorted_unique_nodes(rankers: dict[str, Ranker], name: str) -> None:
    ranker = rankers[name]
    for node in range(0, 300, 37):
        ids, scores = ranker.related(node, 300)
        assert ids.dtype == np.uint32
        assert node not in ids
        assert (scores > 0).all()
        keys = list(zip(-scores, map(order, ids.tolist()), strict=True))
        assert keys == sorted(keys)
        assert len(set(ids.tolist())) == ids.size
        if name in ("some", "vectors"):
            assert (ids % 2 == 0).all()
        few, best = ranker.related(node, 7)
        assert few.tolist() == ids[:7].tolist()
        assert best.tolist() == scores[:7].tolist()


def test_index_ranker_equals_related(graph: Graph, tmp_path: Path) -> None:
    index = cocite.build(graph, tmp_path / "i", samples=10, measure="psimrank")
    ids, scores = IndexRanker(index, decay=0.3).related(5, 12)
    hits = index.related(graph.names.name(5), 12, decay=0.3)
    assert graph.names.names(ids) == [hit.node for hit in hits]
    assert scores.tolist() == [hit.score for hit in hits]


@pytest.mark.parametrize("measure", SAMPLED)
def test_with_samples_equals_index_of_fewer_samples(
    graph: Graph, tmp_path: Path, measure: str
) -> None:
    whole = cocite.build(
        graph, tmp_path / "whole", measure=measure, samples=20, direction="both", shard=8
    )
    for samples in (1, 7, 8, 9, 20):
        few = cocite.build(
            graph, tmp_path / f"{samples}", measure=measure, samples=samples, direction="both"
        )
        view = whole.with_samples(samples)
        assert view.samples == samples
        for node in list(graph.names)[::60]:
            viewed, built = view.related(node, 50), few.related(node, 50)
            assert [hit[:2] for hit in viewed] == [hit[:2] for hit in built]
            assert repr(viewed) == repr(built)  # nan errors of a single sample are equal here
    assert whole.samples == 20
    assert len(whole.scorer.readers[0].part.shards) == 3


def test_with_samples_refuses_too_many_samples(graph: Graph, tmp_path: Path) -> None:
    index = cocite.build(graph, tmp_path / "i", samples=5, measure="psimrank")
    with pytest.raises(UsageError, match="samples is 6; the index has 5: choose 1 to 5"):
        index.with_samples(6)
    exact = cocite.build(graph, tmp_path / "c", measure="cocitation")
    with pytest.raises(UsageError, match="cocitation has no samples"):
        exact.with_samples(1)


def test_judge_is_independent_of_threads(rankers: dict[str, Ranker]) -> None:
    nodes = np.arange(300, dtype=np.uint32)
    labels = Labels(tuple((str(i),) for i in range(7)), nodes, np.arange(300) % 7)
    judge = Judge(nodes, familial=labels.collapsed(), relevance=labels.collapsed())
    one, three = (judge(rankers["blend"], threads=threads) for threads in (1, 3))
    assert (one.parts == three.parts).all()
    assert (one.wholes == three.wholes).all()


def test_blended_ranking_matches_hand_computation() -> None:
    one = np.array([[0, 4, 2, 0]] * 4, float)
    two = np.array([[0, 0, 1, 1]] * 4, float)
    rankers = [RowRanker(lambda node: one[node], 4), RowRanker(lambda node: two[node], 4)]
    assert BlendedRanking(rankers, scale=Scale.SCORE).related(0, 3).scores.tolist() == [4, 3, 1]
    best = BlendedRanking(rankers, [1, 2]).related(0, 3)
    assert (best.ids.tolist(), best.scores.tolist()) == ([2, 3, 1], [2.5, 2, 1])
    ranks = BlendedRanking(rankers, scale=Scale.RANK).related(0, 3)
    assert ranks.ids.tolist() == [2, 1, 3]
    assert ranks.scores.tolist() == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


def test_blended_ranking_refuses_mismatched_rankers() -> None:
    row = RowRanker(lambda node: np.ones(3), 3)
    with pytest.raises(UsageError, match="2 weights"):
        BlendedRanking([row], [1, 2])
    with pytest.raises(UsageError, match="other nodes"):
        BlendedRanking([row, RowRanker(lambda node: np.ones(4), 4)])


@pytest.mark.parametrize("kind", ["spectral", "walks"])
def test_embed_finds_communities(kind: str, make_graph: Callable[..., Graph]) -> None:
    """Two cliques with one link between them: nearest neighbors share a clique."""
    pytest.importorskip("sklearn" if kind == "spectral" else "gensim")
    cliques = [
        (a, b) for base in (0, 8) for a in range(base, base + 8) for b in range(base, a) if a != b
    ]
    graph = make_graph([*cliques, (0, 8)], nodes=["alone"])
    vectors = embed(graph, kind, dimensions=4, seed=1)
    again = embed(graph, kind, dimensions=4, seed=1)
    assert (vectors == again).all()
    ranker = VectorRanker(vectors)
    ids = graph.names.ids(list(range(16)))
    clique = {int(i): position // 8 for position, i in enumerate(ids)}
    near = {i: [clique[j] for j in ranker.related(i, 5).ids.tolist()] for i in clique}
    if kind == "spectral":  # the other clique is orthogonal, but for the one link
        assert all(set(found) == {clique[i]} for i, found in near.items())
    else:  # skip-gram on few words is rough; strangers are 8 of 15
        shares = [found.count(clique[i]) / max(1, len(found)) for i, found in near.items()]
        assert np.mean(shares) > 0.75
    assert ranker.related(graph.names.id("alone"), 5).ids.size == 0


@pytest.mark.parametrize(("memory", "evictions"), [("1kB", 2), ("1GB", 0)])
def test_index_ranker_evicts_large_index_after_each_query(
    graph: Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    memory: str,
    evictions: int,
) -> None:
    built = cocite.build(graph, tmp_path / "i", measure="psimrank", samples=10)
    index = cocite.open(tmp_path / "i", memory=memory)
    ranker, default = IndexRanker(index), IndexRanker(built)
    calls: list[bool] = []
    evict = type(index.stored.store).evict

    def counted(store: Store) -> None:
        calls.append(True)
        evict(store)

    monkeypatch.setattr(Store, "evict", counted)
    for node in (5, 6):
        assert ranker.related(node, 9).ids.tolist() == default.related(node, 9).ids.tolist()
    assert len(calls) == evictions
