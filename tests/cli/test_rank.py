"""The command line of rank, and the files it writes."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from tests.conftest import MakeGraph, Shell


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph([("a", "hub"), ("b", "hub"), ("c", "hub"), ("hub", "a"), ("hub", "ü\"'x")])


def test_the_top_is_printed_and_how_it_ended_is_said(graph: Graph, shell: Shell) -> None:
    printed = shell(["rank", str(graph.path), "-k", "1", "--format", "json"])
    value = json.loads(printed.out)
    ranks = cocite.pagerank(graph)
    assert value["top"] == [{"node": "hub", "rank": ranks.top(1)[0][1]}]
    assert value["converged"] is True
    assert "L1 error at most" in printed.err
    assert "of memory, which holds the graph and the ranks" in printed.err


def test_not_converged_is_said(graph: Graph, shell: Shell) -> None:
    assert "not converged" in shell(["rank", str(graph.path), "--max-sweeps", "1"]).err


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv"])
def test_all_ranks_go_to_a_table(graph: Graph, tmp_path: Path, ending: str) -> None:
    path = tmp_path / "out" / f"ranks.{ending}"
    assert main(["rank", str(graph.path), "-o", str(path)]) == 0
    rows = duckdb.execute(f"SELECT node, rank FROM '{path}'").fetchall()
    ranks = cocite.pagerank(graph)
    assert [row[0] for row in rows] == list(graph.names)
    assert np.allclose([row[1] for row in rows], ranks.values, rtol=1e-15)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_ranks_by_id_go_to_an_array(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "ranks.npy"
    assert main(["rank", str(graph.path), "-o", str(path)]) == 0
    assert (np.load(path) == cocite.pagerank(graph).values).all()


def test_an_output_is_refused_before_any_work(graph: Graph, tmp_path: Path, shell: Shell) -> None:
    reply = shell(["rank", str(graph.path), "-o", str(tmp_path / "r.xlsx")], 2)
    assert "ends in '.xlsx'; it ends in one of .parquet" in reply.err
    (tmp_path / "r.npy").write_bytes(b"mine")
    assert main(["rank", str(graph.path), "-o", str(tmp_path / "r.npy")]) == 1
    assert (tmp_path / "r.npy").read_bytes() == b"mine"
    assert main(["rank", str(graph.path), "-o", str(tmp_path / "r.npy"), "--overwrite"]) == 0
    assert np.load(tmp_path / "r.npy").size == graph.nodes
