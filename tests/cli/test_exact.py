"""``cocite all-pairs`` and ``cocite rank``, and the files that they write."""

import json
import re
from pathlib import Path

import duckdb
import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.cli import console
from cocite.cli.main import main
from tests.conftest import MakeGraph, Shell

LINKS = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("c", "y"), ("x", "ü\"'z"), ("y", "w")]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(LINKS)


@pytest.mark.parametrize("extension", ["parquet", "csv", "tsv"])
def test_all_pairs_writes_each_pair_once(graph: Graph, tmp_path: Path, extension: str) -> None:
    path = tmp_path / "out" / f"scores.{extension}"
    assert main(["all-pairs", str(graph.path), "-o", str(path), "--min-score", "0.05"]) == 0
    rows = duckdb.execute(f"SELECT node, other, score FROM '{path}'").fetchall()
    scores = cocite.exact_simrank(graph)
    n, names = graph.nodes, graph.names
    expected = {
        (names.name(u), names.name(v)): float(scores.row(u)[v])
        for u in range(n)
        for v in range(u + 1, n)
        if scores.row(u)[v] >= 0.05
    }
    assert len(rows) == len(expected) == 2
    for a, b, score in rows:
        assert abs(score - expected[a, b]) < 1e-7
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_all_pairs_writes_array(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "scores.npy"
    assert main(["all-pairs", str(graph.path), "-o", str(path), "--precision", "double"]) == 0
    expected = cocite.exact_simrank(graph, precision="double").array()
    assert np.load(path).tobytes() == expected.tobytes()


def test_all_pairs_top_writes_best_per_node(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "best.csv"
    assert main(["all-pairs", str(graph.path), "-o", str(path), "--top", "1"]) == 0
    rows = duckdb.execute(f"SELECT node, other FROM '{path}'").fetchall()
    assert set(rows) == {("x", "y"), ("y", "x"), ("ü\"'z", "w"), ("w", "ü\"'z")}


def test_all_pairs_reports_cost_and_convergence(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    arguments = ["all-pairs", str(graph.path), "-o", str(tmp_path / "s.npy"), "--format", "json"]
    printed = shell([*arguments, "--method", "plain"])
    assert "4 rows for 7 nodes" in printed.err
    assert "of memory on" in printed.err
    value = json.loads(printed.out)
    assert value["converged"] is True
    assert value["method"] == "plain"
    assert value["error_bound"] <= 1e-3
    reply = shell([*arguments, "--overwrite", "--max-sweeps", "1", "--epsilon", "1e-6"])
    assert "not converged: increase --max-sweeps" in reply.err
    printed = shell([*arguments, "--overwrite", "--prune", "0.35", "--epsilon", "1e-6"])
    assert "not converged: use a smaller --prune" in printed.err
    value = json.loads(printed.out)
    assert (value["converged"], value["error_bound"] > 0.1) == (False, True)


def test_all_pairs_summary_fits_terminal(
    graph: Graph, tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reply = shell(["all-pairs", graph.path, "-o", "s.npy", "--measure", "psimrank"])
    lines = reply.out.splitlines()
    assert [line.split()[0] for line in lines] == ["output", "method", "rows", "ended", "error"]
    assert all(len(line) <= 100 for line in lines)


def test_stages_log_error_with_sweeps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_LOG_SECONDS", 0)
    monkeypatch.setattr(console, "_FIRST_LINE", 0)
    with console.Stages({"sweeping": "sweeps"}) as stages:
        stages("sweeping", 3, 0, "error 2e-02")
        stages("sweeping", 4, 9)
    first, second = capsys.readouterr().err.splitlines()
    assert first == "sweeping (0.0 s): 3 sweeps, error 2e-02"
    assert re.fullmatch(r"sweeping \(0.0 s\): 4 of 9 sweeps, about \d.\d s left", second)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "sor", "--omega", "1.9"], "diverges with omega 1.9"),
        (["--method", "svd", "--rank", "1", "--decay", "0.99"], "truncated to rank 1"),
    ],
)
def test_all_pairs_divergence_exits_1_without_file(
    make_graph: MakeGraph, tmp_path: Path, shell: Shell, options: list[str], message: str
) -> None:
    cycles = [(c + i, c + (i + 1) % 9) for c in (0, 9) for i in range(9)]
    web = make_graph([*cycles, (18, 0), (18, 9)])
    path = tmp_path / "out" / "s.npy"
    path.parent.mkdir()
    reply = shell(["all-pairs", web.path, "-o", path, "--decay", "0.9", *options], 1)
    assert message in reply.err
    assert list(path.parent.iterdir()) == []


# -- ranks -----------------------------------------------------------------------------


@pytest.fixture
def star(make_graph: MakeGraph) -> Graph:
    return make_graph([("a", "hub"), ("b", "hub"), ("c", "hub"), ("hub", "a"), ("hub", "ü\"'x")])


def test_rank_prints_top_and_convergence(star: Graph, shell: Shell) -> None:
    printed = shell(["rank", star.path, "-k", "1", "--format", "json"])
    value = json.loads(printed.out)
    ranks = cocite.pagerank(star)
    assert value["top"] == [{"node": "hub", "rank": ranks.top(1)[0][1]}]
    assert value["converged"] is True
    assert "L1 error at most" in printed.err
    assert "of memory, which holds the graph and the ranks" in printed.err


def test_rank_warns_without_convergence(star: Graph, shell: Shell) -> None:
    assert "not converged" in shell(["rank", star.path, "--max-sweeps", "1"]).err


@pytest.mark.parametrize("extension", ["parquet", "csv", "tsv"])
def test_rank_writes_table(star: Graph, tmp_path: Path, extension: str) -> None:
    path = tmp_path / "out" / f"ranks.{extension}"
    assert main(["rank", str(star.path), "-o", str(path)]) == 0
    rows = duckdb.execute(f"SELECT node, rank FROM '{path}'").fetchall()
    ranks = cocite.pagerank(star)
    assert [row[0] for row in rows] == list(star.names)
    assert np.allclose([row[1] for row in rows], ranks.values, rtol=1e-15)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_rank_writes_array(star: Graph, tmp_path: Path) -> None:
    path = tmp_path / "ranks.npy"
    assert main(["rank", str(star.path), "-o", str(path)]) == 0
    assert (np.load(path) == cocite.pagerank(star).values).all()
    path.write_bytes(b"other")
    assert main(["rank", str(star.path), "-o", str(path), "--overwrite"]) == 0
    assert np.load(path).size == star.nodes
