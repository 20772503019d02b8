"""Exact scores along other links, and on one side of a bipartite graph."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

import cocite
from cocite import Graph
from cocite.errors import UsageError
from tests.conftest import Ask
from tests.oracles import simrank

Matrix = NDArray[np.float64]
USERS, ITEMS, SWEEPS = 9, 7, 60


def _links(seed: int, nodes: int, count: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, nodes, (count, 2)).tolist()
    return sorted({(a, b) for a, b in pairs if a != b} | {(i, (i + 1) % nodes) for i in range(4)})


def _graph(folder: Path, links: list[tuple[int, int]], nodes: int) -> Graph:
    names = [f"{i:02}" for i in range(nodes)]
    named = [(names[a], names[b]) for a, b in links]
    return cocite.ingest(named, folder / "g", nodes=names)


def _by_definition(rows: Matrix, decay: float) -> Matrix:
    """SimRank by its definition, where rows[v, u] is how often u is drawn at v."""
    share = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1e-300)
    found = np.eye(len(rows))
    for _ in range(SWEEPS):
        found = decay * share @ found @ share.T
        np.fill_diagonal(found, 1)
    return found


@pytest.mark.parametrize("method", ["gauss-seidel", "plain", "svd"])
@pytest.mark.parametrize("direction", ["in", "out", "any"])
def test_exact_simrank_direction_matches_definition(
    tmp_path: Path, direction: str, method: str
) -> None:
    nodes = 20
    links = _links(5, nodes, 90)
    assert {(b, a) for a, b in links} & {*links}  # links both ways are drawn twice as often
    graph = _graph(tmp_path, links, nodes)
    rows = np.zeros((nodes, nodes))
    for a, b in links:
        rows[b, a] += direction in ("in", "any")
        rows[a, b] += direction in ("out", "any")
    options: dict[str, Any] = {"direction": direction, "method": method, "epsilon": 1e-4}
    if method == "svd":
        options |= {"rank": nodes, "epsilon": 0.9}
    found = cocite.exact_simrank(graph, **options)
    error = found.convergence.error_bound + 0.6 ** (SWEEPS + 1)
    assert np.abs(found.array() - _by_definition(rows, 0.6)).max() <= error


@pytest.mark.parametrize("direction", ["out", "any"])
def test_exact_psimrank_direction_uses_link_sets(tmp_path: Path, direction: str) -> None:
    nodes = 14
    links = _links(6, nodes, 50)
    graph = _graph(tmp_path, links, nodes)
    backward = [(b, a) for a, b in links]
    pairs = backward if direction == "out" else sorted({*links, *backward})
    exact = simrank.psimrank(simrank.dense(nodes, pairs), 0.6, SWEEPS)
    found = cocite.exact_simrank(graph, measure="psimrank", direction=direction, epsilon=1e-4)
    error = found.convergence.error_bound + 0.6 ** (SWEEPS + 1)
    assert np.abs(found.array() - exact).max() <= error


def test_exact_simrank_direction_any_uses_weights(tmp_path: Path) -> None:
    links = _links(7, 12, 40)
    weighted = [(f"{a:02}", f"{b:02}", 1.0 + (a + b) % 3) for a, b in links]
    graph = cocite.ingest(weighted, tmp_path / "g", nodes=[f"{i:02}" for i in range(12)])
    rows = np.zeros((12, 12))
    for a, b in links:
        rows[a, b] += 1 + (a + b) % 3
        rows[b, a] += 1 + (a + b) % 3
    found = cocite.exact_simrank(graph, direction="any", epsilon=1e-4)
    error = found.convergence.error_bound + 0.6 ** (SWEEPS + 1)
    assert np.abs(found.array() - _by_definition(rows, 0.6)).max() <= error
    with pytest.raises(UsageError, match="weights apply to in-links only"):
        cocite.exact_simrank(graph, direction="out", weights=np.ones(graph.edges, np.float32))


def _user_item_links() -> list[tuple[int, int]]:
    rng = np.random.default_rng(8)
    drawn = rng.integers(0, (USERS, ITEMS), (34, 2)).tolist()
    return sorted({(a, b) for a, b in drawn} | {(i, i % ITEMS) for i in range(USERS)})


@pytest.mark.parametrize(("side", "own"), [(None, slice(USERS, None)), ("user", slice(0, USERS))])
def test_exact_simrank_bipartite_side_matches_definition(
    tmp_path: Path, side: str | None, own: slice
) -> None:
    """Jeh and Widom: users are as similar as their items, and items as their users."""
    graph = cocite.ingest(_user_item_links(), tmp_path / "g", bipartite=True)
    links = np.zeros((USERS, ITEMS))
    links[tuple(np.array(_user_item_links()).T)] = 1
    users, items = np.eye(USERS), np.eye(ITEMS)
    by_user = links / links.sum(axis=1, keepdims=True)
    by_item = links.T / links.T.sum(axis=1, keepdims=True)
    for _ in range(SWEEPS):
        users, items = 0.8 * by_user @ items @ by_user.T, 0.8 * by_item @ users @ by_item.T
        np.fill_diagonal(users, 1)
        np.fill_diagonal(items, 1)
    expected = users if side else items
    found = cocite.exact_simrank(graph, direction="any", decay=0.8, side=side, epsilon=1e-4)
    error = found.convergence.error_bound + 0.8**SWEEPS
    assert np.abs(found.array() - expected).max() <= error
    assert len(found.within) == len(expected)
    names = list(graph.names.stored)[own]
    file = found.write(tmp_path / "pairs.csv", least=0.05)
    rows = duckdb.execute(f"SELECT node, other, score FROM read_csv('{file}', all_varchar=true)")
    written = {(a, b): float(score) for a, b, score in rows.fetchall()}
    scores = found.array()
    assert written == {
        (names[u], names[v]): pytest.approx(scores[u, v], abs=1e-6)
        for u in range(len(names))
        for v in range(u + 1, len(names))
        if scores[u, v] >= 0.05
    }
    assert {a for a, _ in found.top(names[0], 99)} <= {*list(graph.names)[own]}
    assert np.load(found.write(tmp_path / "all.npy")).shape == (len(names), len(names))


def test_all_pairs_teleport_compares_one_side(tmp_path: Path, ask: Ask) -> None:
    graph = str(cocite.ingest(_user_item_links(), tmp_path / "g", bipartite=True).path)
    out = str(tmp_path / "o.jsonl")
    command = ["all-pairs", graph, "-o", out, "--overwrite"]
    teleport = ["--teleport", "0.8", "--min-score", "0"]
    assert ask(*command, *teleport)[0] == 0
    rows = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert len(rows) > 10
    assert not [row for row in rows if "user:" in row["node"] + row["other"]]
    assert ask(*command, *teleport, "--top", "3")[0] == 0
    assert "user:" not in Path(out).read_text()
    assert ask(*command, "--teleport", "0.8", "--side", "user", "--direction", "out")[0] == 0
    assert '"user:0"' in Path(out).read_text()
    for extra, message in (
        (["--side", "user"], "user nodes have no in-links, so all their scores are 0. Choose"),
        (["--direction", "out"], "item nodes have no out-links"),
        (["--side", "book"], "side is 'book'; it must be user or item"),
    ):
        code, _, err = ask(*command, *teleport, *extra)
        assert code == 2
        assert message in err
    found = cocite.exact_simrank(Graph.open(graph))
    with pytest.raises(UsageError, match="only nodes on the same side"):
        found.similarity("user:1", 1)
    plain = cocite.ingest(_user_item_links(), tmp_path / "plain")
    with pytest.raises(UsageError, match="is not bipartite: omit --side"):
        cocite.exact_simrank(plain, side="item")
