"""Related graphs and k-nearest graphs: contents, files and NetworkX."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import cocite
from cocite import Index
from cocite.cli.main import main
from cocite.errors import OutputExists, UsageError
from cocite.search.batch import estimate as batches
from cocite.search.batch.run import Batch
from tests.conftest import MakeGraph

NAMES = ['a "b" <c> & d\\', "http://x.org/?a=1&amp;b=2", "é/漢", *(f"page {i}" for i in range(57))]


def build(module_graph: MakeGraph, **options: Any) -> Index:
    pairs = np.random.default_rng(3).integers(0, 59, (300, 2)).tolist()
    graph = module_graph([(NAMES[a], NAMES[b]) for a, b in pairs], NAMES[59:], **options)
    return cocite.build(graph, samples=30, seed=5, measure="psimrank")


@pytest.fixture(scope="module")
def index(module_graph: MakeGraph) -> Index:
    """60 pages, one without links."""
    return build(module_graph)


@pytest.fixture(scope="module")
def titled(module_graph: MakeGraph, tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The same pages, half of them with titles."""
    titles = tmp_path_factory.mktemp("titled") / "titles.tsv"
    rows = (f"{name}\tThe title of {name}\n" for name in NAMES[:30])
    titles.write_text("name\ttitle\n" + "".join(rows), "utf-8")
    return build(module_graph, titles=titles)


def read(path: Path) -> tuple[dict[str, dict[str, Any]], dict[tuple[str, str], dict[str, Any]]]:
    """Read a file with NetworkX; return nodes by label, and links by labels."""
    reader = networkx.read_gexf if path.suffix == ".gexf" else networkx.read_graphml
    found = reader(path)
    assert found.is_directed()
    label = {node: data["label"] for node, data in found.nodes(data=True)}
    assert len(set(label.values())) == len(label)
    nodes = {label[node]: data for node, data in found.nodes(data=True)}
    return nodes, {(label[a], label[b]): data for a, b, data in found.edges(data=True)}


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_related_all_graph_files_equal_related(titled: Index, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"knn.{kind}"
    report = titled.related_all(path, 3)
    assert os.listdir(tmp_path) == [path.name]
    assert report.bytes == path.stat().st_size
    nodes, links = read(path)
    assert set(nodes) == set(NAMES)
    for name, data in nodes.items():
        title = f"The title of {name}" if name in NAMES[:30] else None
        assert data.get("title") == title
    expected = {
        (node, hit.node): (rank, hit.score, hit.stderr)
        for node in titled.nodes
        for rank, hit in enumerate(titled.related(node, 3), 1)
    }
    found = {ends: (data["rank"], data["weight"], data["stderr"]) for ends, data in links.items()}
    assert found == expected
    assert len(found) == report.rows > 100


@pytest.mark.parametrize("kind", ["graphml", "gexf", "dot"])
def test_related_all_graph_files_ignore_thread_count(
    index: Index, tmp_path: Path, kind: str
) -> None:
    """A batch resumes the work of its estimate."""
    index.related_all(tmp_path / f"one.{kind}", 3, threads=1)
    with Batch(index, tmp_path / f"two.{kind}", 3, threads=2) as batch:
        assert batch.estimate() is not None or batch.done
    index.related_all(tmp_path / f"two.{kind}", 3, threads=2)
    expected = (tmp_path / f"one.{kind}").read_bytes()
    assert (tmp_path / f"two.{kind}").read_bytes() == expected
    assert sorted(os.listdir(tmp_path)) == [f"one.{kind}", f"two.{kind}"]


def test_related_all_graph_files_include_hits_of_chosen_nodes(index: Index, tmp_path: Path) -> None:
    """Hits are nodes, even if they are not chosen; with ``ids`` labels are numbers."""
    chosen = list(index.nodes)[:2]
    index.related_all(tmp_path / "x.gexf", 3, nodes=chosen)
    nodes, links = read(tmp_path / "x.gexf")
    hits = {hit.node for name in chosen for hit in index.related(name, 3)}
    assert set(nodes) == {*chosen, *hits}
    assert {a for a, _ in links} <= set(chosen)
    index.related_all(tmp_path / "ids.gexf", 3, nodes=chosen, ids=True)
    nodes, _ = read(tmp_path / "ids.gexf")
    assert {index.nodes[int(label)] for label in nodes} == {*chosen, *hits}


def test_related_all_graph_files_ignore_piece_size(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.related_all(tmp_path / "x.graphml", 3)
    nodes, links = read(tmp_path / "x.graphml")
    monkeypatch.setattr(batches, "_OUT_ROWS", 30)
    index.related_all(tmp_path / "y.graphml", 3)
    assert read(tmp_path / "y.graphml") == (nodes, links)


def test_related_graph_links_equal_related(titled: Index, tmp_path: Path) -> None:
    node = NAMES[1]
    found = titled.related_graph(node, 6, decay=0.5)
    hits = titled.related(node, 6, decay=0.5)
    assert list(found.hits) == list(hits)
    assert found.nodes == [node, *(hit.node for hit in hits)]
    expected = {
        (a, hit.node): (rank, hit.score, hit.low, hit.high)
        for a in found.nodes
        for rank, hit in enumerate(titled.related(a, 6, decay=0.5), 1)
        if hit.node in found.nodes
    }
    assert len(expected) > 10
    for kind in ("gexf", "graphml"):
        path = found.write(tmp_path / f"x.{kind}")
        assert path.read_text("utf-8") == found.to_text(kind)
        nodes, links = read(path)
        columns = ("rank", "weight", "low", "high")
        assert {ends: tuple(d[c] for c in columns) for ends, d in links.items()} == expected
        assert [name for name, data in nodes.items() if data["asked"]] == [node]
        assert [nodes[hit.node]["score"] for hit in hits] == [hit.score for hit in hits]
        assert nodes[node]["title"] == f"The title of {node}"
        with pytest.raises(OutputExists):
            found.write(path)
        found.write(path, overwrite=True)
    graph = found.to_networkx()
    assert {(a, b): d["weight"] for a, b, d in graph.edges(data=True)} == {
        ends: score for ends, (_, score, *_) in expected.items()
    }
    assert graph.nodes[node] == {"title": f"The title of {node}", "asked": True}
    with pytest.raises(UsageError, match="kind is 'svg'; it must be one of graphml, gexf, dot"):
        found.write(tmp_path / "x.svg")


def test_related_graph_accepts_several_nodes(index: Index) -> None:
    query = NAMES[3:5]
    found = index.related_graph(query, 4)
    assert list(found.hits) == list(index.related(query, 4))
    for name in query:
        hits = [hit.node for hit in index.related(name, 4)]
        assert [b for a, b, *_ in found.links if a == name] == [n for n in hits if n in found.nodes]


def test_related_graph_applies_filters_and_keeps_names() -> None:
    graph = networkx.karate_club_graph()
    index = cocite.build(cocite.ingest(graph))
    selected = [1, 2, 3, 7, 13]
    found = index.related_graph(0, 4, only=iter(selected))
    assert found.asked == [0]
    assert {b for _, b, *_ in found.links} <= set(selected)
    assert set(found.to_networkx()) <= {0, *selected}
    assert index.related_graph("0", 4).nodes == index.related_graph(0, 4).nodes


@pytest.mark.parametrize("kind", ["graphml", "gexf", "dot"])
def test_related_command_prints_graph(
    index: Index, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = str(index.stored.store.path)
    filters = ["--min-score", "0.01", "--prefix", "page", "--decay", "0.5", "--offset", "1"]
    assert main(["related", path, NAMES[0], "-k", "5", *filters, "--format", kind]) == 0
    options = {"min_score": 0.01, "prefix": "page", "decay": 0.5, "offset": 1}
    assert capfd.readouterr().out == index.related_graph(NAMES[0], 5, **options).to_text(kind)
    assert main(["info", path, "--format", kind]) == 2
    assert "'--format'" in capfd.readouterr().err


@pytest.mark.process
def test_related_graph_dot_is_drawn_by_graphviz(titled: Index, tmp_path: Path) -> None:
    program = shutil.which("neato")
    if program is None:
        pytest.skip("needs Graphviz (Debian: graphviz)")
    path = titled.related_graph(NAMES[0], 8).write(tmp_path / "x.dot")
    command = [program, "-Tsvg", str(path)]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True)
    assert drawn.stderr == ""
    assert drawn.stdout.count('class="node"') == 9
    assert "The title of" in drawn.stdout
