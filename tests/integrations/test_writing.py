"""Answers in Python that are written: hits, ranks, pairs, to files and to databases."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import polars
import pyarrow.ipc
import pyarrow.parquet
import pytest

import cocite
from cocite.errors import OutputExists, UsageError
from cocite.ranking import hits


@pytest.fixture(scope="module")
def graph() -> cocite.Graph:
    return cocite.ingest(networkx.karate_club_graph())


@pytest.fixture(scope="module")
def index(graph: cocite.Graph) -> cocite.Index:
    return cocite.build(graph, measure="psimrank", samples=20, seed=1, unweighted=True)


def read(path: Path) -> list[tuple[Any, ...]]:
    if path.suffix == ".jsonl":
        return [tuple(json.loads(line).values()) for line in path.read_text().splitlines()]
    if path.suffix == ".parquet":
        return [tuple(row.values()) for row in pyarrow.parquet.read_table(path).to_pylist()]
    table = pyarrow.ipc.open_file(path).read_all()
    return [tuple(row.values()) for row in table.to_pylist()]


@pytest.mark.parametrize("ending", [".jsonl", ".parquet", ".arrow"])
def test_hits_are_written_as_they_are(index: cocite.Index, tmp_path: Path, ending: str) -> None:
    found = index.related(0, 5)
    path = found.write(tmp_path / f"x{ending}")
    assert read(path) == [(rank, *hit) for rank, hit in enumerate(found, 1)]
    with pytest.raises(OutputExists):
        found.write(path)
    lists = index.related_many([0, 33, 5], 3)
    rows = [
        (node, rank, *hit)
        for node, some in zip(lists.nodes, lists, strict=True)
        for rank, hit in enumerate(some, 1)
    ]
    assert read(lists.write(path, overwrite=True)) == rows
    lists.write(tmp_path / "x", kind=ending[1:])
    assert (tmp_path / "x").read_bytes() == path.read_bytes()


def test_hits_go_to_a_database(index: cocite.Index, tmp_path: Path) -> None:
    to = f"sqlite:///{tmp_path}/x.db#near"
    lists = index.related_many([0, 33], 3)
    lists.write_to(to)
    with pytest.raises(OutputExists):
        lists.write_to(to)
    lists.write_to(to, append=True)
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        found = database.execute("SELECT * FROM near").fetchall()
        types = [row[2] for row in database.execute("PRAGMA table_info(near)")]
    once = list(zip(*lists._columns().values(), strict=True))
    assert found == once * 2
    assert types == ["INTEGER"] * 3 + ["REAL"] * 4


def test_no_hits_are_a_table_without_rows(index: cocite.Index, tmp_path: Path) -> None:
    none = index.related(0, 5, min_score=0.99)
    assert not none
    found = pyarrow.parquet.read_table(none.write(tmp_path / "x.parquet"))
    assert found.column_names == ["rank", "node", "score", "stderr", "low", "high"]
    assert found.num_rows == 0


def test_hits_as_markdown(index: cocite.Index) -> None:
    found = index.related(0, 2)
    lines = found.to_markdown().split("\n")
    assert lines[0] == "| rank | node | score | stderr | low | high |"
    assert lines[2] == (
        f"| 1 | {found[0].node} | " + " | ".join(f"{value:.4g}" for value in found[0][1:]) + " |"
    )
    assert len(index.related_many([0, 1], 2).to_markdown().split("\n")) == 6


def test_ranks_are_written(graph: cocite.Graph, tmp_path: Path) -> None:
    ranks = cocite.pagerank(graph)
    pairs = [(str(n), r) for n, r in zip(graph.names, ranks.values.tolist(), strict=True)]
    assert read(ranks.write(tmp_path / "r.parquet")) == pairs
    assert np.load(ranks.write(tmp_path / "r.npy")).tolist() == ranks.values.tolist()
    ranks.write_to(f"duckdb:///{tmp_path}/x.duckdb#ranks")
    found = hits(graph, weighted=False)
    rows = read(found.write(tmp_path / "h.arrow"))
    wanted = zip(graph.names, found.authorities.tolist(), found.hubs.tolist(), strict=True)
    assert rows == [(str(node), a, h) for node, a, h in wanted]


def test_pairs_are_written(graph: cocite.Graph, tmp_path: Path) -> None:
    scores = cocite.exact_simrank(graph, weighted=False, precision="double")
    path = scores.write(tmp_path / "s.parquet", least=0.2)
    rows = [(int(a), int(b), score) for a, b, score in read(path)]
    matrix = scores.array()
    wanted = [
        (a, b, matrix[a, b]) for a in range(34) for b in range(a + 1, 34) if matrix[a, b] >= 0.2
    ]
    assert rows == wanted
    assert len(rows) > 20
    assert np.array_equal(np.load(scores.write(tmp_path / "s.npy")), matrix)
    scores.write_to(f"sqlite:///{tmp_path}/x.db#pairs", top=1)
    with closing(sqlite3.connect(tmp_path / "x.db")) as database:
        found = database.execute("SELECT node, other, score FROM pairs").fetchall()
    best = [(n, *scores.top(n, 1)[0]) for n in graph.names]
    assert found == [(str(node), str(other), score) for node, other, score in best]


def test_a_table_of_hits_is_no_array(index: cocite.Index, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in '\.npy'; it ends in one of \.parquet, "):
        index.related(0).write(tmp_path / "x.npy")
    path = index.related(0, 3).write(tmp_path / "x.csv")
    with path.open() as file:
        assert next(csv.reader(file)) == ["rank", "node", "score", "stderr", "low", "high"]
    assert polars.read_csv(path)["rank"].to_list() == [1, 2, 3]
