"""Questions to bipartite graphs: nodes of one side are compared, by every way to ask."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cocite
from cocite import Graph, Index, UnknownNode
from cocite.cli.main import main
from cocite.errors import UsageError
from cocite.search.cache import cached_stores
from tests.oracles import simrank

USERS, ITEMS = 12, 9


def table(seed: int = 3) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    return sorted({(a, b) for a, b in rng.integers(0, (USERS, ITEMS), (45, 2)).tolist()})


def rows_of(pairs: list[tuple[int, int]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """float64[users, items]: 1 where there is a link."""
    found = np.zeros((USERS, ITEMS))
    found[tuple(np.array(pairs).T)] = 1
    return found


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return cocite.ingest(table(), tmp_path / "g", bipartite=True)


def scores(index: Index, node: object) -> dict[str, float]:
    return {str(hit.node): hit.score for hit in index.related(node, 10**6)}


def test_items_and_users_by_cosine_of_each_other(graph: Graph, tmp_path: Path) -> None:
    links = rows_of(table())
    items, users = [str(i) for i in range(ITEMS)], [f"user:{i}" for i in range(USERS)]
    for measure, names, rows in (("cocitation", items, links.T), ("coupling", users, links)):
        index = cocite.build(graph, tmp_path / measure, measure=measure)
        lengths = np.sqrt(rows.sum(axis=1))
        wanted = rows @ rows.T / np.maximum(1, np.outer(lengths, lengths))
        there = [i for i, name in enumerate(names) if name in index.nodes]
        assert len(there) > 5
        for i in there:
            told = {str(h.node): h.score for h in index.related(names[i], 10**6, form="cosine")}
            assert set(told) == {names[j] for j in there if j != i and wanted[i, j] > 0}
            for j in there:
                if j != i:
                    assert told.get(names[j], 0.0) == pytest.approx(wanted[i, j], abs=1e-9)


def test_psimrank_of_items_is_the_share_of_their_users(graph: Graph) -> None:
    pairs = [(a, USERS + b) for a, b in table()]
    exact = simrank.psimrank(simrank.dense(USERS + ITEMS, pairs), 0.6, 5)[USERS:, USERS:]
    index = cocite.build(graph, measure="psimrank", samples=2000, length=5)
    names = [str(i) for i in range(ITEMS)]
    for i, name in enumerate(names):
        found = index.related(name, 10**6, decay=0.6)
        assert all(isinstance(hit.node, int) for hit in found)
        told = {str(hit.node): hit.score for hit in found}
        for j, other in enumerate(names):
            if i != j:  # a sample is 0.6 or 0: its deviation is 0.3 at most
                assert told.get(other, 0.0) == pytest.approx(exact[i, j], abs=5 * 0.3 / 2000**0.5)
    assert index.related("user:1") == []  # no in-links: nothing to compare


def test_default_lists_are_those_of_one_sides_graph(graph: Graph, tmp_path: Path) -> None:
    plain = cocite.ingest([(f"user:{a}", str(b)) for a, b in table()], tmp_path / "plain")
    one, other = cocite.build(graph), cocite.build(plain)
    assert [hit for hit in other.related("3", 99) if hit.node.startswith("user:")]
    for node in map(str, range(ITEMS)):
        told = [(h.node, h.score) for h in other.related(node, 99, exclude_prefix="user:")]
        assert [(str(h.node), h.score) for h in one.related(node, 99)] == told
    for node in (f"user:{i}" for i in range(USERS)):
        if node in one.nodes:
            told = [(h.node, h.score) for h in other.related(node, 99, prefix="user:")]
            assert [(h.node, h.score) for h in one.related(node, 99)] == told


def test_nodes_of_two_sides_are_not_compared(graph: Graph, tmp_path: Path) -> None:
    index = cocite.build(graph)
    for ask in (
        lambda: index.similarity(1, "user:1"),
        lambda: index.why("user:1", 1),
        lambda: index.related([1, "user:1"]),
        lambda: index.why_together([1, 2], "user:1"),
        lambda: index.related_all(tmp_path / "o.tsv", nodes=[1, "user:1"]),
    ):
        with pytest.raises(UsageError, match="only nodes on the same side"):
            ask()
    with pytest.raises(UsageError, match="drafts need a graph"):
        index.with_draft(["1"])
    assert index.similarity("user:1", "user:1").score == 1
    assert {hit.node for hit in index.related([1, 2])} <= set(range(ITEMS)) - {1, 2}


@pytest.mark.parametrize("options", [{}, {"measure": "psimrank", "samples": 50}])
@pytest.mark.parametrize("side", [None, "item", "user"])
def test_related_all_is_of_one_side(
    graph: Graph, tmp_path: Path, options: dict[str, Any], side: str | None
) -> None:
    index = cocite.build(graph, direction="both", **options)
    index.related_all(tmp_path / "all.tsv", 4, side=side)
    found = pd.read_csv(tmp_path / "all.tsv", sep="\t", dtype={"node": str, "related": str})
    names = [str(name) for name in index.nodes]
    mine = [name for name in names if name.startswith("user:") == (side == "user")]
    wanted = [(n, str(h.node), h.score) for n in mine for h in index.related(n, 4)]
    assert len(wanted) > 20
    assert list(zip(found["node"], found["related"], found["score"], strict=True)) == [
        (node, other, pytest.approx(score)) for node, other, score in wanted
    ]
    with pytest.raises(UsageError, match="side is 'book'; it must be user or item"):
        index.related_all(tmp_path / "no.tsv", side="book")


def test_an_index_of_some_nodes_and_joined_and_refreshed_ones(graph: Graph, tmp_path: Path) -> None:
    build: dict[str, Any] = {"measure": "psimrank", "length": 3}
    whole = cocite.build(graph, tmp_path / "w", samples=20, **build)
    some = cocite.build(graph, tmp_path / "s", samples=20, only_nodes=["1", "4", "6"], **build)
    assert [h for h in whole.related("1", 99) if h.node in (4, 6)] == some.related("1", 99)
    sides = some.nodes.sides
    assert sides is not None
    assert (sides.left, sides.right) == (0, 3)

    for low in (0, 10):
        cocite.build(graph, tmp_path / f"p{low}", numbers=range(low, low + 10), **build)
    joined = cocite.merge([tmp_path / "p0", tmp_path / "p10"], tmp_path / "m")
    assert scores(joined, "2") == scores(whole, "2")
    manifests = [json.loads((tmp_path / i / "manifest.json").read_text()) for i in ("w", "m")]
    assert manifests[0]["facts"]["sides"] == manifests[1]["facts"]["sides"]

    newer = cocite.ingest([*table(4), (50, 50)], tmp_path / "n", bipartite=True)
    again = cocite.refresh(tmp_path / "w", newer, fraction=0.5, force=True)
    assert again.nodes.sides == newer.sides
    assert {str(h.node) for h in again.related(1, 99)} <= {str(i) for i in range(51)}
    plain = cocite.ingest([(f"user:{a}", b) for a, b in table()], tmp_path / "plain")
    for other, said in ((plain, "is not bipartite"), (_called(tmp_path), "reader:NAME")):
        with pytest.raises(UsageError, match=said):
            cocite.refresh(tmp_path / "w", other, force=True)
    assert cocite.verify(tmp_path / "w").faults == []


def _called(folder: Path) -> Graph:
    return cocite.ingest(table(), folder / "r", bipartite=True, sides="reader,book")


def test_the_command_line_asks_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(*arguments: str) -> Any:
        assert main([*arguments, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    file = str(tmp_path / "t.csv")
    pd.DataFrame(table(), columns=["user", "item"]).to_csv(file, index=False)
    items = told("related", file, "1", "--bipartite")
    assert {hit["node"] for hit in items["hits"]} == {str(i) for i in range(ITEMS)} - {"1"}
    graph, index = map(str, cached_stores(file, True))
    assert Graph.open(graph).sides
    users = told("related", file, "1", "--bipartite", "--side", "user")
    assert users["node"] == "user:1"
    assert users == told("related", file, "user:1", "--bipartite")
    assert "user:1" not in {hit["node"] for hit in told("related", file, "1")["hits"]}
    same = [told("similarity", index, "1", "2", "--side", "user")["score"]]
    same.append(next(h["score"] for h in users["hits"] if h["node"] == "user:2"))
    assert same[0] == same[1]
    assert told("why", index, "1", "2", "--side", "user")["a"] == "user:1"
    for path in (index, graph):
        sides = told("info", path)["sides"]
        assert (sides["mark"], sides["right"]) == ("user:", ITEMS)
        assert all(n["node"].isdecimal() for n in told("nodes", path, "--side", "item")["nodes"])
    assert {e["node"] for e in told("rank", graph, "--side", "item")["top"]} == {
        str(i) for i in range(ITEMS)
    }
    out = tmp_path / "all.tsv"
    told("related-all", index, "-o", str(out), "--side", "user")
    assert out.read_text().splitlines()[1].startswith("user:0\t1\tuser:")


def test_user_advice(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = cocite.build(graph)
    with pytest.raises(UnknownNode, match="write a user as user:NAME, or use --side user"):
        index.related("11")
    with pytest.raises(UnknownNode, match="the nearest names are 'user:11'"):
        index.related("11")
    plain = cocite.ingest(table(), tmp_path / "plain")
    for verb in (["related", "1"], ["nodes"], ["rank"]):
        verb[1:1] = [str(plain.path)]
        assert main([*verb, "--side", "user"]) == 2
        assert "is not bipartite" in capsys.readouterr().err
        assert main([*verb, "--bipartite"]) == 2
        assert "is not an edge list: omit --bipartite" in capsys.readouterr().err


def test_reasons_of_a_pair_do_not_begin_with_the_pair_itself(graph: Graph) -> None:
    """``1 ~ 1`` was a reason before most users."""
    index = cocite.build(graph, measure="neighborhood")
    seen = 0
    for hit in index.related("1", 5):
        reasons = [str(reason.node) for reason in index.why("1", hit.node, 10**6).reasons]
        own = [name in ("1", str(hit.node)) for name in reasons]
        assert own == sorted(own)
        seen += any(own) and reasons[0].startswith("user:")
    assert seen


def test_a_side_is_named_in_python() -> None:
    frame = pd.DataFrame(table(), columns=["user", "item"])
    found = cocite.related(frame, 1, bipartite=True, side="user")
    assert found == cocite.related(frame, "user:1", bipartite=True)
    assert all(str(hit.node).startswith("user:") for hit in found)
    items = cocite.related(frame, 1, bipartite=True, side="item")
    assert items == cocite.related(frame, 1, bipartite=True)
    pair = found[0].node
    score = cocite.similarity(frame, 1, pair, bipartite=True, side="user")
    assert score.score == found[0].score
    with pytest.raises(UsageError, match="not bipartite: omit side"):
        cocite.related(frame, 1, side="user")
