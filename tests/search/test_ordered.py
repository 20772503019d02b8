"""Other orders of a list: by PageRank, and by the score times it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph, Hit, Index
from cocite.cli.main import main
from cocite.errors import InputError, NotAStore, UsageError
from cocite.search.results import RelatedDocument
from tests.conftest import MakeGraph

PRODUCT, RANK = "score*pagerank", "pagerank"


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    """60 pages, some of them much linked to."""
    rng = np.random.default_rng(5)
    far = (60 * rng.random((420, 2)) ** 2).astype(int)
    return make_graph(far.tolist(), range(60))


@pytest.fixture
def index(graph: Graph) -> Index:
    return cocite.build(graph, samples=60, measure="psimrank")


def expected(index: Index, ranks: dict[str, float], by: str, hits: list[Hit]) -> list[Hit]:
    """By the definition, from the candidates in the order of scores; sorting is stable."""

    def key(hit: Hit) -> float:
        return -ranks[hit.node] * (hit.score if by == PRODUCT else 1)

    return sorted(hits, key=key)


@pytest.mark.parametrize("by", [PRODUCT, RANK])
def test_candidates_are_put_in_another_order(graph: Graph, index: Index, by: str) -> None:
    ranks = dict(cocite.pagerank(graph).top(60))
    for node in ("0", "7", "30"):
        for asked in (node, [node, "12"]):
            everyone = index.related(asked, 60)
            whole = expected(index, ranks, by, everyone)
            assert index.related(asked, 60, order=by) == whole
            assert index.related(asked, 4, order=by) == whole[:4]  # all 100 best are candidates
            assert index.related(asked, 4, offset=2, order=by) == whole[2:6]
            counted = index.related(asked, 4, offset=2, order=by, candidates=3, total=True)
            assert (len(counted), counted.total) == (1, 3)
            few = expected(index, ranks, by, everyone[:9])
            assert index.related(asked, 5, order=by, candidates=9) == few[:5]
            assert index.related(asked, 60, order=by, candidates=9) == few
    assert index.related("7", 60, order="score") == index.related("7", 60)


def test_pageranks_are_those_of_the_graph(graph: Graph, index: Index) -> None:
    found = cocite.pagerank(graph)
    assert index.pageranks(index.nodes) == found.values.tolist()
    assert index.pageranks(["3"], found.values) == [found.values[index.nodes.id("3")]]


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet"])
def test_ranks_are_read_back(graph: Graph, index: Index, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"ranks.{ending}"
    assert main(["rank", str(graph.path), "-o", str(path), "-k", "1"]) == 0
    assert index.pageranks(index.nodes, path) == pytest.approx(index.pageranks(index.nodes))
    assert index.related("7", 9, order=RANK, ranks=path) == index.related("7", 9, order=RANK)


def test_filters_and_refined_answers_can_be_ordered(graph: Graph) -> None:
    index = cocite.build(graph, measure="simrank", samples=60)
    ranks = dict(cocite.pagerank(graph).top(60))
    hits = index.related("7", 100, refine=True)
    found = index.related("7", 5, refine=True, order=PRODUCT)
    assert found == expected(index, ranks, PRODUCT, hits)[:5]
    among = index.related("7", 9, only=["3", "5", "9"], order=RANK, min_score=0.001)
    assert [hit.node for hit in among] == sorted(
        (hit.node for hit in among), key=lambda node: -ranks[node]
    )
    assert {hit.node for hit in among} <= {"3", "5", "9"}


def test_certain_product_order_is_that_of_intervals(graph: Graph) -> None:
    index, found = cocite.build(graph, samples=3000, measure="psimrank"), 0
    for node in map(str, range(0, 60, 5)):
        hits = index.related(node, 60, order=PRODUCT)
        ranks = index.pageranks([hit.node for hit in hits])
        certain = hits.certain_ranks
        found += certain
        lows = [hit.low * rank for hit, rank in zip(hits, ranks, strict=True)]
        highs = [hit.high * rank for hit, rank in zip(hits, ranks, strict=True)]
        apart = [low > max(highs[at:]) for at, low in enumerate(lows[:-1], 1)]
        apart.append(lows[-1] > 0)
        assert certain == (apart.index(False) if False in apart else len(apart))
        assert index.related(node, 3, order=PRODUCT).certain_ranks == min(3, certain)
        hits = index.related(node, 8, order=RANK)
        assert hits.certain_ranks == len(hits)
    assert found > 3


def test_shown_product_order_is_certain_among_candidates(graph: Graph) -> None:
    """A page that is not shown may stand above the first, as little is known of it."""
    index = cocite.build(graph, samples=1000, measure="psimrank")
    for node in ("0", "7", "30"):
        by_width = sorted(index.related(node, 60), key=lambda hit: (hit.high - hit.low) / hit.score)
        ranks = np.zeros(60)
        for hit, product in zip((*by_width[:2], by_width[-1]), (1.0, 0.82, 0.815), strict=True):
            ranks[index.nodes.id(hit.node)] = product / hit.score
        found = {k: RelatedDocument.of(index, node, k, order=PRODUCT, ranks=ranks) for k in (2, 3)}
        assert [hit.node for hit in found[2].hits] == [hit.node for hit in by_width[:2]]
        assert found[3].hits[:2] == found[2].hits
        assert [document.certain_ranks for document in found.values()] == [0, 0]
        few = RelatedDocument.of(index, node, 2, order=PRODUCT, ranks=ranks, candidates=2)
        assert few.hits == index.related(node, 2, order=PRODUCT, ranks=ranks, candidates=2)
        assert not few.complete


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "rank"}, "order is 'rank'; it must be score or score.pagerank or pagerank"),
        ({"candidates": 9}, "candidates apply only to orders by PageRank"),
        ({"ranks": "r.npy"}, "ranks apply only to orders by PageRank"),
        ({"order": RANK, "candidates": 0}, "candidates is 0; it must be a whole number, 1 or more"),
    ],
)
def test_what_does_not_fit_is_refused(index: Index, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        index.related("7", **options)


def test_ranks_of_something_else_are_refused(index: Index, tmp_path: Path) -> None:
    def refused(path: Path, message: str) -> None:
        with pytest.raises(InputError, match=message):
            index.related("7", order=RANK, ranks=path)

    np.save(tmp_path / "short.npy", np.ones(59))
    refused(tmp_path / "short.npy", "a number for each of 60 nodes")
    np.save(tmp_path / "nan.npy", np.full(60, np.nan))
    refused(tmp_path / "nan.npy", "a rank is a finite number, 0 or more")
    (tmp_path / "text.npy").write_text("no array")
    refused(tmp_path / "text.npy", "cannot be read")
    (tmp_path / "some.csv").write_text("node,rank\n3,0.5\n")
    refused(tmp_path / "some.csv", "has no ranks for 59 nodes, such as '0'")
    with pytest.raises(InputError, match="a number for each"):
        index.pageranks(["3"], np.ones(3))


def test_without_a_graph_ranks_are_asked_for(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph([("h", "a"), ("h", "b"), ("h", "c"), ("a", "b")])
    cocite.build(graph, tmp_path / "i", samples=9, measure="psimrank")
    graph.path.rename(tmp_path / "away")
    index = cocite.open(tmp_path / "i")
    with pytest.raises(NotAStore, match="--graph"):
        index.related("a", order=RANK)
    given = cocite.open(tmp_path / "i", graph=tmp_path / "away")
    values = cocite.pagerank(Graph.open(tmp_path / "away")).values
    assert given.related("a", order=RANK) == index.related("a", order=RANK, ranks=values)


def test_selected_index_has_ranks_of_the_whole_graph(graph: Graph, tmp_path: Path) -> None:
    kept = [str(v) for v in range(1, 60, 3)]
    index = cocite.build(graph, tmp_path / "k", samples=60, only_nodes=kept, measure="psimrank")
    ranks = dict(cocite.pagerank(graph).top(60))
    assert index.pageranks(kept) == [ranks[name] for name in kept]
    whole = expected(index, ranks, PRODUCT, index.related("7", 60))
    assert index.related("7", 60, order=PRODUCT) == whole
    for ending in ("npy", "csv"):
        path = tmp_path / f"ranks.{ending}"
        assert main(["rank", str(graph.path), "-o", str(path), "-k", "1"]) == 0
        assert index.related("7", 60, order=PRODUCT, ranks=path) == whole
