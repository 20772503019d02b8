"""Intervals of ``related-all`` are those of ``related``, in every kind of output."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import cocite
from cocite.cli.main import main
from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.measures.ppr import MAX_EDGES, MIN_RESULTS
from cocite.search import Index
from tests.conftest import MakeGraph
from tests.search.test_batch import interrupted, read

TITLES = ["node", "rank", "related", "score", "stderr", "low", "high"]


@pytest.fixture(scope="module")
def graph(module_graph: MakeGraph) -> Graph:
    pairs = np.random.default_rng(2).integers(0, 60, (300, 2)).tolist()
    return module_graph([(f"n{a}", f"n{b}") for a, b in pairs])


@pytest.fixture(scope="module")
def index(graph: Graph) -> Index:
    return cocite.build(graph, samples=16, measure="psimrank")


@pytest.fixture(scope="module")
def certified(graph: Graph) -> Index:
    """Of a measure whose intervals take no samples."""
    return cocite.build(graph, measure="neighborhood")


def expected(index: Index, k: int = 4, **options: Any) -> list[tuple[Any, ...]]:
    return [
        (node, rank, *hit)
        for node in index.nodes
        for rank, hit in enumerate(index.related(node, k, **options), 1)
    ]


def test_where_they_take_no_samples_they_are_there(certified: Index, tmp_path: Path) -> None:
    asked: dict[str, Any] = {MAX_EDGES.name: 20, MIN_RESULTS.name: 5}
    certified.related_all(tmp_path / "all.parquet", 4, **asked)
    found = read(tmp_path / "all.parquet")
    assert found == expected(certified, **asked)
    assert any(high > score for _, _, _, score, _, _, high in found)
    certified.related_all(tmp_path / "all.csv", 4, **asked)
    rows = list(csv.reader(io.StringIO((tmp_path / "all.csv").read_text())))
    assert rows[0] == TITLES
    assert [[*map(float, row[3:])] for row in rows[1:]] == [[*row[3:]] for row in found]
    certified.related_all(tmp_path / "all.jsonl", 4, **asked)
    lines = map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())
    hits = [tuple(hit.values()) for line in lines for hit in line["hits"]]
    assert hits == [row[2:] for row in found]
    certified.related_all(tmp_path / "bare.parquet", 4, intervals=False, **asked)
    assert read(tmp_path / "bare.parquet") == [row[:5] for row in found]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"confidence": 0.5, "interval": "bernstein"},
        {"min_confidence": 0.6},
        {"refine": True, "target_error": 0.01},
        {"order": "score*pagerank"},
    ],
    ids=str,
)
def test_of_samples_they_are_there_if_wanted(
    index: Index, tmp_path: Path, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cocite.search.refine.candidates.MOST_SAMPLES", 32)
    index.related_all(tmp_path / "all.parquet", 4, intervals=True, **options)
    assert read(tmp_path / "all.parquet") == expected(index, **options)
    refined = "refine" in options
    index.related_all(tmp_path / "usual.parquet", 4, **options)
    titles = duckdb.execute(f"DESCRIBE SELECT * FROM '{tmp_path / 'usual.parquet'}'").fetchall()
    assert [title for title, *_ in titles] == TITLES[: 7 if refined else 5]


def test_an_unfinished_batch_with_others_does_not_go_on(index: Index, tmp_path: Path) -> None:
    path = tmp_path / "all.parquet"
    interrupted(index, path, "writing", 0, k=4, intervals=True)
    with pytest.raises(UsageError, match="intervals"):
        index.related_all(path, 4)
    index.related_all(path, 4, intervals=True)
    assert read(path) == expected(index)
    with pytest.raises(UsageError, match="confidence is 2"):
        index.related_all(tmp_path / "x.csv", 4, confidence=2)


def test_on_command(index: Index, certified: Index, capsys: pytest.CaptureFixture[str]) -> None:
    sampled, exact = (str(each.stored.store.path) for each in (index, certified))

    def titles(*more: str) -> list[str]:
        assert main(["related-all", *more, "-o", "-", "--output-format", "csv", "-k", "1"]) == 0
        out, err = capsys.readouterr()
        assert "up to 1 hit for each of 60 nodes" in err
        return out.splitlines()[0].split(",")

    assert titles(exact) == TITLES
    assert titles(exact, "--intervals", "no") == TITLES[:5]
    assert titles(sampled) == TITLES[:5]
    assert titles(sampled, "--intervals", "0.9") == TITLES
    for wrong in ("yes", "1.5"):
        assert main(["related-all", sampled, "-o", "-", "--intervals", wrong]) == 2
        assert "a number between 0 and 1" in capsys.readouterr().err
