"""Queries of bipartite graphs compare nodes of one side only."""

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


def make_links(seed: int = 3) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    return sorted({(a, b) for a, b in rng.integers(0, (USERS, ITEMS), (45, 2)).tolist()})


def rows_of(pairs: list[tuple[int, int]]) -> np.ndarray[Any, np.dtype[np.float64]]:
    """float64[users, items]: 1 where there is a link."""
    found = np.zeros((USERS, ITEMS))
    found[tuple(np.array(pairs).T)] = 1
    return found


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return cocite.ingest(make_links(), tmp_path_factory.mktemp("sides") / "g", bipartite=True)


def scores(index: Index, node: object) -> dict[str, float]:
    return {str(hit.node): hit.score for hit in index.related(node, 10**6)}


def test_bipartite_cocitation_matches_cosine(graph: Graph, tmp_path: Path) -> None:
    links = rows_of(make_links())
    items, users = [str(i) for i in range(ITEMS)], [f"user:{i}" for i in range(USERS)]
    for measure, names, rows in (("cocitation", items, links.T), ("coupling", users, links)):
        index = cocite.build(graph, tmp_path / measure, measure=measure)
        lengths = np.sqrt(rows.sum(axis=1))
        expected = rows @ rows.T / np.maximum(1, np.outer(lengths, lengths))
        present = [i for i, name in enumerate(names) if name in index.nodes]
        assert len(present) > 5
        for i in present:
            found = {str(h.node): h.score for h in index.related(names[i], 10**6, form="cosine")}
            assert set(found) == {names[j] for j in present if j != i and expected[i, j] > 0}
            for j in present:
                if j != i:
                    assert found.get(names[j], 0.0) == pytest.approx(expected[i, j], abs=1e-9)


def test_bipartite_psimrank_matches_oracle(graph: Graph) -> None:
    pairs = [(a, USERS + b) for a, b in make_links()]
    exact = simrank.psimrank(simrank.dense(USERS + ITEMS, pairs), 0.6, 5)[USERS:, USERS:]
    index = cocite.build(graph, measure="psimrank", samples=2000, length=5)
    names = [str(i) for i in range(ITEMS)]
    for i, name in enumerate(names):
        hits = index.related(name, 10**6, decay=0.6)
        assert all(isinstance(hit.node, int) for hit in hits)
        found = {str(hit.node): hit.score for hit in hits}
        for j, other in enumerate(names):
            if i != j:  # samples are 0.6 or 0, with a deviation of at most 0.3
                assert found.get(other, 0.0) == pytest.approx(exact[i, j], abs=5 * 0.3 / 2000**0.5)
    assert index.related("user:1") == []  # no in-links: nothing to compare


def test_bipartite_related_lists_only_same_side(graph: Graph, tmp_path: Path) -> None:
    ordinary_graph = cocite.ingest(
        [(f"user:{a}", str(b)) for a, b in make_links()], tmp_path / "plain"
    )
    bipartite, ordinary = cocite.build(graph), cocite.build(ordinary_graph)
    assert [hit for hit in ordinary.related("3", 99) if hit.node.startswith("user:")]
    for node in map(str, range(ITEMS)):
        expected = [(h.node, h.score) for h in ordinary.related(node, 99, exclude_prefix="user:")]
        assert [(str(h.node), h.score) for h in bipartite.related(node, 99)] == expected
    for node in (f"user:{i}" for i in range(USERS)):
        if node in bipartite.nodes:
            expected = [(h.node, h.score) for h in ordinary.related(node, 99, prefix="user:")]
            assert [(h.node, h.score) for h in bipartite.related(node, 99)] == expected


def test_bipartite_rejects_pairs_across_sides(graph: Graph, tmp_path: Path) -> None:
    index = cocite.build(graph)
    for query in (
        lambda: index.similarity(1, "user:1"),
        lambda: index.why("user:1", 1),
        lambda: index.related([1, "user:1"]),
        lambda: index.why_together([1, 2], "user:1"),
        lambda: index.related_all(tmp_path / "o.tsv", nodes=[1, "user:1"]),
    ):
        with pytest.raises(UsageError, match="only nodes on the same side"):
            query()
    with pytest.raises(UsageError, match="drafts need a graph"):
        index.with_draft(["1"])
    assert index.similarity("user:1", "user:1").score == 1
    assert {hit.node for hit in index.related([1, 2])} <= set(range(ITEMS)) - {1, 2}


@pytest.mark.parametrize("options", [{}, {"measure": "psimrank", "samples": 50}])
@pytest.mark.parametrize("side", [None, "item", "user"])
def test_related_all_side_selects_nodes(
    graph: Graph, tmp_path: Path, options: dict[str, Any], side: str | None
) -> None:
    index = cocite.build(graph, direction="both", **options)
    index.related_all(tmp_path / "all.tsv", 4, side=side)
    found = pd.read_csv(tmp_path / "all.tsv", sep="\t", dtype={"node": str, "related": str})
    names = [str(name) for name in index.nodes]
    selected = [name for name in names if name.startswith("user:") == (side == "user")]
    expected = [(n, str(h.node), h.score) for n in selected for h in index.related(n, 4)]
    assert len(expected) > 20
    assert list(zip(found["node"], found["related"], found["score"], strict=True)) == [
        (node, other, pytest.approx(score)) for node, other, score in expected
    ]
    with pytest.raises(UsageError, match="side is 'book'; it must be user or item"):
        index.related_all(tmp_path / "no.tsv", side="book")


def test_bipartite_sides_survive_select_merge_and_refresh(graph: Graph, tmp_path: Path) -> None:
    options: dict[str, Any] = {"measure": "psimrank", "length": 3}
    full = cocite.build(graph, tmp_path / "w", samples=20, **options)
    selected = cocite.build(
        graph, tmp_path / "s", samples=20, only_nodes=["1", "4", "6"], **options
    )
    assert [h for h in full.related("1", 99) if h.node in (4, 6)] == selected.related("1", 99)
    sides = selected.nodes.sides
    assert sides is not None
    assert (sides.left, sides.right) == (0, 3)

    for low in (0, 10):
        cocite.build(graph, tmp_path / f"p{low}", numbers=range(low, low + 10), **options)
    merged = cocite.merge([tmp_path / "p0", tmp_path / "p10"], tmp_path / "m")
    assert scores(merged, "2") == scores(full, "2")
    manifests = [json.loads((tmp_path / i / "manifest.json").read_text()) for i in ("w", "m")]
    assert manifests[0]["facts"]["sides"] == manifests[1]["facts"]["sides"]

    newer = cocite.ingest([*make_links(4), (50, 50)], tmp_path / "n", bipartite=True)
    refreshed = cocite.refresh(tmp_path / "w", newer, fraction=0.5, force=True)
    assert refreshed.nodes.sides == newer.sides
    assert {str(h.node) for h in refreshed.related(1, 99)} <= {str(i) for i in range(51)}
    ordinary = cocite.ingest([(f"user:{a}", b) for a, b in make_links()], tmp_path / "plain")
    for other, message in (
        (ordinary, "is not bipartite"),
        (_ingest_reader_book(tmp_path), "reader:NAME"),
    ):
        with pytest.raises(UsageError, match=message):
            cocite.refresh(tmp_path / "w", other, force=True)
    assert cocite.verify(tmp_path / "w").faults == []


def _ingest_reader_book(folder: Path) -> Graph:
    return cocite.ingest(make_links(), folder / "r", bipartite=True, sides="reader,book")


def test_side_flag_selects_side_on_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str) -> Any:
        assert main([*arguments, "--format", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    file = str(tmp_path / "t.csv")
    pd.DataFrame(make_links(), columns=["user", "item"]).to_csv(file, index=False)
    items = run("related", file, "1", "--bipartite")
    assert {hit["node"] for hit in items["hits"]} == {str(i) for i in range(ITEMS)} - {"1"}
    graph, index = map(str, cached_stores(file, True))
    assert Graph.open(graph).sides
    users = run("related", file, "1", "--bipartite", "--side", "user")
    assert users["node"] == "user:1"
    assert users == run("related", file, "user:1", "--bipartite")
    assert "user:1" not in {hit["node"] for hit in run("related", file, "1")["hits"]}
    user_scores = [run("similarity", index, "1", "2", "--side", "user")["score"]]
    user_scores.append(next(h["score"] for h in users["hits"] if h["node"] == "user:2"))
    assert user_scores[0] == user_scores[1]
    assert run("why", index, "1", "2", "--side", "user")["a"] == "user:1"
    for path in (index, graph):
        sides = run("info", path)["sides"]
        assert (sides["mark"], sides["right"]) == ("user:", ITEMS)
        assert all(n["node"].isdecimal() for n in run("nodes", path, "--side", "item")["nodes"])
    assert {e["node"] for e in run("rank", graph, "--side", "item")["top"]} == {
        str(i) for i in range(ITEMS)
    }
    out = tmp_path / "all.tsv"
    run("related-all", index, "-o", str(out), "--side", "user")
    assert out.read_text().splitlines()[1].startswith("user:0\t1\tuser:")


def test_side_errors_give_advice(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = cocite.build(graph)
    with pytest.raises(UnknownNode, match="write a user as user:NAME, or use --side user"):
        index.related("11")
    with pytest.raises(UnknownNode, match="the nearest names are 'user:11'"):
        index.related("11")
    ordinary = cocite.ingest(make_links(), tmp_path / "plain")
    for command in (["related", "1"], ["nodes"], ["rank"]):
        command[1:1] = [str(ordinary.path)]
        assert main([*command, "--side", "user"]) == 2
        assert "is not bipartite" in capsys.readouterr().err
        assert main([*command, "--bipartite"]) == 2
        assert "is not an edge list: omit --bipartite" in capsys.readouterr().err


def test_bipartite_why_lists_own_pair_last(graph: Graph) -> None:
    """``1 ~ 1`` used to be listed before most users."""
    index = cocite.build(graph, measure="neighborhood")
    checked = 0
    for hit in index.related("1", 5):
        reasons = [str(reason.node) for reason in index.why("1", hit.node, 10**6).reasons]
        is_own = [name in ("1", str(hit.node)) for name in reasons]
        assert is_own == sorted(is_own)
        checked += any(is_own) and reasons[0].startswith("user:")
    assert checked


def test_side_option_selects_side_in_python() -> None:
    frame = pd.DataFrame(make_links(), columns=["user", "item"])
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
