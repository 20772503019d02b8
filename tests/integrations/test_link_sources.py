"""Calls on any source of links answer like an index built by hand."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pandas
import polars
import pyarrow.ipc
import pyarrow.parquet
import pytest
import scipy.sparse

import cocite
from cocite import Graph
from cocite.errors import InputError, OutputExists, UnknownNode, UsageError
from cocite.extras import MissingLibrary
from cocite.ranking import hits

PAIRS = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("c", "y"), ("c", "z"), ("z", "a")]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "links.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    return path


def test_related_accepts_every_link_source(tmp_path: Path, file: Path) -> None:
    graph = cocite.ingest(PAIRS)
    index = cocite.build(graph, tmp_path / "index")
    expected = index.related("x", 3)
    assert len(expected) == 3
    objects: list[Any] = [pandas.DataFrame(PAIRS), np.array(PAIRS), networkx.DiGraph(PAIRS)]
    stored = [file, str(file), tmp_path / "index", cocite.ingest(PAIRS, tmp_path / "graph").path]
    for links in (PAIRS, iter(PAIRS), *objects, graph, index, *stored):
        assert cocite.related(links, "x", 3) == expected
    for links in (PAIRS, graph, index, file):
        assert cocite.similarity(links, "x", "y") == index.similarity("x", "y")
        assert cocite.why(links, "x", "y", 2) == index.why("x", "y", 2)
    names = list(graph.names)
    matrix = scipy.sparse.csr_array(graph.to_scipy())
    numbers = cocite.related(matrix, names.index("x"), 3)
    assert [names[hit.node] for hit in numbers] == [hit.node for hit in expected]


@pytest.mark.long
def test_public_functions_accept_every_link_source(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They raised AttributeError or TypeError; ``related`` did not."""
    monkeypatch.setattr("cocite.evaluation.run.link_measures", lambda: ["cocitation"])
    graph = cocite.ingest(PAIRS, tmp_path / "g")
    labels = tmp_path / "labels.tsv"
    labels.write_text("a\tone\nb\tone\nc\ttwo\nz\ttwo\nx\ttwo\ny\tone\n")
    ranks, scores = cocite.pagerank(graph), cocite.exact_simrank(graph)
    hits = cocite.build(graph).related("x", 3)

    def estimates(links: object) -> list[Any]:
        rows = cocite.evaluate(links, labels=labels).to_json()["figures"]
        names = ("hits", "answered", "gamma", "precision@1")
        return [each["estimate"] for each in rows if each["figure"] in names]

    figures = estimates(graph)
    assert len(figures) >= 4
    objects: list[Any] = [PAIRS, pandas.DataFrame(PAIRS), networkx.DiGraph(PAIRS)]
    for links in (*objects, file, str(graph.path)):
        opened = cocite.open_graph(links)
        assert (type(opened), opened.digest) == (Graph, graph.digest)
    for links in (PAIRS, str(file)):
        assert cocite.pagerank(links).top(9) == ranks.top(9)
        assert cocite.exact_simrank(links).top("x", 3) == scores.top("x", 3)
        assert cocite.build(links).related("x", 3) == hits
        assert estimates(links) == figures
    for path in (tmp_path / "g", file, str(file)):
        index = cocite.open(path)
        assert (type(index), index.related("x", 3)) == (cocite.Index, hits)
    with pytest.raises(UsageError, match="do not apply to a stored graph; omit columns"):
        cocite.open_graph(graph, columns=(1, 2))


def test_ingest_warns_about_ignored_weight_column(caplog: pytest.LogCaptureFixture) -> None:
    frame = pandas.DataFrame(PAIRS, columns=["from", "to"]).assign(weight=2.5)
    assert cocite.ingest(frame).in_weights is None
    assert "column 'weight' is ignored, and links have no weights; to use it" in caplog.text
    caplog.clear()
    assert cocite.ingest(frame, weight_column="weight").in_weights is not None
    assert "ignored" not in caplog.text


def test_related_accepts_query_and_ingest_options() -> None:
    frame = pandas.DataFrame(PAIRS, columns=["from", "to"]).assign(w=range(1, 8))
    weighted = cocite.ingest(frame, weight_column="w", undirected=True)
    index = cocite.build(weighted, measure="psimrank")
    options: dict[str, Any] = {"measure": "psimrank", "weight_column": "w", "undirected": True}
    hits = cocite.related(frame, "x", 5, prefix="y", **options)
    assert hits == index.related("x", 5, prefix="y")
    pair = cocite.similarity(frame, "x", "y", confidence=0.5, **options)
    assert pair == index.similarity("x", "y", confidence=0.5)
    assert cocite.why(frame, "x", "y", **options) == index.why("x", "y")
    with pytest.raises(UsageError, match="do not apply to a stored graph"):
        cocite.why(weighted, "x", "y", undirected=True)
    with pytest.raises(UnknownNode, match="'q'"):
        cocite.related(PAIRS, "q")
    for query in (cocite.similarity, cocite.why):
        with pytest.raises(UnknownNode, match="'q'"):
            query(PAIRS, "x", "q")
    with pytest.raises(UsageError, match="an index has a measure of its own"):
        cocite.related(index, "x", measure="psimrank")
    with pytest.raises(UsageError, match="do not apply to a stored graph"):
        cocite.related(weighted, "x", undirected=True)
    with pytest.raises(InputError):
        cocite.related("none.tsv", "x")


MISSING = """
import sys
for name in ("pandas", "polars", "pyarrow", "networkx", "igraph", "scipy", "sklearn"):
    sys.modules[name] = None
import cocite
graph = cocite.ingest([(1, 2), (3, 2)])
hits = cocite.related(graph, 1)
for call in (graph.to_pandas, graph.to_polars, graph.to_arrow, graph.to_scipy, graph.to_networkx,
             graph.to_igraph, hits.to_pandas, hits.to_polars, hits.to_arrow):
    try:
        call()
    except cocite.CociteError as error:
        print(error)
try:
    import cocite.integrations.sklearn
except cocite.CociteError as error:
    print(error)
"""


@pytest.mark.process
def test_missing_library_names_install_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", MISSING], check=True, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    groups = ["pandas", "polars", "arrow", "scipy", "networkx", "igraph"]
    groups += ["pandas", "polars", "arrow", "sklearn"]
    assert [line.rpartition("[")[2].partition("]")[0] for line in lines] == groups
    assert all(": pip install " in line for line in lines)
    assert "a pandas table needs pandas, which is not installed" in lines[0]
    assert done.stderr == ""
    assert issubclass(MissingLibrary, UsageError)


# -- written answers -------------------------------------------------------------------


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
def test_hits_write_roundtrips(index: cocite.Index, tmp_path: Path, ending: str) -> None:
    found = index.related(0, 5)
    path = found.write(tmp_path / f"x{ending}")
    assert read(path) == [(rank, *hit) for rank, hit in enumerate(found, 1)]
    with pytest.raises(OutputExists):
        found.write(path)
    lists = index.related_many([0, 33, 5], 3)
    rows = [
        (node, rank, *hit)
        for node, row_hits in zip(lists.nodes, lists, strict=True)
        for rank, hit in enumerate(row_hits, 1)
    ]
    assert read(lists.write(path, overwrite=True)) == rows
    lists.write(tmp_path / "x", kind=ending[1:])
    assert (tmp_path / "x").read_bytes() == path.read_bytes()


def test_hits_write_empty_table(index: cocite.Index, tmp_path: Path) -> None:
    empty = index.related(0, 5, min_score=0.99)
    assert not empty
    found = pyarrow.parquet.read_table(empty.write(tmp_path / "x.parquet"))
    assert found.column_names == ["rank", "node", "score", "stderr", "low", "high"]
    assert found.num_rows == 0


def test_hits_to_markdown_formats_rows(index: cocite.Index) -> None:
    found = index.related(0, 2)
    lines = found.to_markdown().split("\n")
    assert lines[0] == "| rank | node | score | stderr | low | high |"
    assert lines[2] == (
        f"| 1 | {found[0].node} | " + " | ".join(f"{value:.4g}" for value in found[0][1:]) + " |"
    )
    assert len(index.related_many([0, 1], 2).to_markdown().split("\n")) == 6


def test_ranks_write_roundtrips(graph: cocite.Graph, tmp_path: Path) -> None:
    ranks = cocite.pagerank(graph)
    pairs = [(str(n), r) for n, r in zip(graph.names, ranks.values.tolist(), strict=True)]
    assert read(ranks.write(tmp_path / "r.parquet")) == pairs
    assert np.load(ranks.write(tmp_path / "r.npy")).tolist() == ranks.values.tolist()
    ranks.write_to(f"duckdb:///{tmp_path}/x.duckdb#ranks")
    found = hits(graph, weighted=False)
    rows = read(found.write(tmp_path / "h.arrow"))
    expected = zip(graph.names, found.authorities.tolist(), found.hubs.tolist(), strict=True)
    assert rows == [(str(node), a, h) for node, a, h in expected]


def test_hits_write_refuses_npy_and_writes_csv(index: cocite.Index, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ends in '\.npy'; it must end in one of \.parquet, "):
        index.related(0).write(tmp_path / "x.npy")
    path = index.related(0, 3).write(tmp_path / "x.csv")
    with path.open() as file:
        assert next(csv.reader(file)) == ["rank", "node", "score", "stderr", "low", "high"]
    assert polars.read_csv(path)["rank"].to_list() == [1, 2, 3]
