"""Indexes of node ranges: each answers queries, and merged they equal one build."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged, UsageError
from cocite.index.layouts.rows.fusion import RowsBuilder
from cocite.index.layouts.rows.neighbors import NearestBuilder
from tests.builds import files, flip
from tests.conftest import MakeGraph
from tests.storage.enemy import change_file

KINDS: dict[str, dict[str, Any]] = {
    "fusion": {"measure": "fusion"},
    "in": {"measure": "fusion", "direction": "in", "size": "small"},
    "ppr-pmi": {"measure": "ppr-pmi"},
    "snn": {"measure": "snn", "unweighted": True},
    "blend": {"measure": "blend:0.7*fusion+0.3*ppr-pmi(size=large)"},
}


def site(number: int) -> str:
    return f"http://s{number % 7}.org/p{number}"  # ids do not follow the order of names


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("ranges")
    pairs = np.random.default_rng(3).zipf(1.5, (2500, 2)) % 900
    rows = [f"{site(a)}\t{site(b)}\t{1 + a % 3}\n" for a, b in pairs.tolist()]
    (folder / "links.tsv").write_text("".join([*rows, "alone\talone\t1\n"]))
    (folder / "titles.tsv").write_text(f"{site(1)}\tOne\n{site(2)}\tTwo\n")
    options: dict[str, Any] = {"delimiter": "tab", "header": "no", "weight_column": 3}
    return cocite.ingest(
        folder / "links.tsv",
        folder / "g",
        titles=folder / "titles.tsv",
        keep_self_loops=True,
        **options,
    )


def ranges(graph: Graph, folder: Path, count: int, **options: Any) -> list[Path]:
    """Build the indexes of all ranges, the last one first."""
    paths = [folder / f"r{number}" for number in range(count, 0, -1)]
    for number, path in zip(range(count, 0, -1), paths, strict=True):
        cocite.build(graph, path, only_range=f"{number}/{count}", **options)
    return paths


@pytest.mark.parametrize("kind", KINDS)
def test_merge_ranges_equals_single_build(graph: Graph, tmp_path: Path, kind: str) -> None:
    whole = cocite.build(graph, tmp_path / "whole", **KINDS[kind])
    pieces = ranges(graph, tmp_path, 3, **KINDS[kind])
    joined = cocite.merge(pieces, tmp_path / "joined", memory="200MB")
    assert files(tmp_path / "joined") == files(tmp_path / "whole")
    assert cocite.verify(pieces[1]).faults == []
    query: dict[str, Any] = {"mutual": True} if kind == "snn" else {}
    names = list(cocite.open(pieces[1]).nodes)
    assert names == list(joined.nodes)[graph.nodes // 3 : 2 * graph.nodes // 3]
    for name in names[::40]:
        hits = cocite.open(pieces[1]).related(name, 10**6, **query)
        expected = whole.related(name, 10**6, only=names, **query)
        assert {(hit.node, hit.score) for hit in hits} == {(h.node, h.score) for h in expected}


@pytest.mark.parametrize("measure", ["fusion", "snn"])
def test_only_range_with_scratch_files_keeps_bytes(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    options: dict[str, Any] = {"measure": measure, "unweighted": True, "only_range": "2/3"}
    default = cocite.build(graph, tmp_path / "default", **options)
    monkeypatch.setattr(RowsBuilder, "streaming", True)
    monkeypatch.setattr(NearestBuilder, "lean", True)
    monkeypatch.setattr(NearestBuilder, "streaming", True)
    monkeypatch.setattr(NearestBuilder, "fits", False)
    assert cocite.build(graph, tmp_path / "x", **options).stored.digest == default.stored.digest


def test_only_range_resumes_after_interrupt(graph: Graph, tmp_path: Path) -> None:
    whole = cocite.build(graph, tmp_path / "whole", measure="fusion", only_range="1/2")

    def stop(done: int, total: int) -> None:
        if done > 0.6 * total:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"measure": "fusion", "only_range": "1/2"}
    with pytest.raises(KeyboardInterrupt):
        cocite.build(graph, tmp_path / "x", progress=stop, **options)
    logs = {log.name for log in (tmp_path / "x.building").glob("*.log")}
    assert logs == {"both.lists.log", "both.pushed.log"}
    assert cocite.build(graph, tmp_path / "x", **options).stored.digest == whole.stored.digest
    assert not [*(tmp_path / "x").glob("*.log")]


def test_merge_ranges_refuses_mismatched_pieces(
    graph: Graph, make_graph: MakeGraph, tmp_path: Path
) -> None:
    first, *rest = reversed(ranges(graph, tmp_path, 3, measure="ppr-pmi"))
    options = {"size": "small", "only_range": "2/2"}
    cocite.build(graph, tmp_path / "small", measure="ppr-pmi", **options)
    cocite.build(graph, tmp_path / "half", measure="ppr-pmi", only_range="2/2")
    selected = [graph.names.name(node) for node in (0, 1, 5)]
    cocite.build(graph, tmp_path / "selected", measure="ppr-pmi", only_nodes=selected)
    foreign = make_graph([("a", "b"), ("b", "c")], ["a", "b", "c"])
    cocite.build(foreign, tmp_path / "foreign", measure="ppr-pmi", only_range="2/3")
    third, last = graph.nodes // 3, 2 * graph.nodes // 3 - 1
    for pieces, message in [
        ((first, rest[1]), f"nodes {third:,} to {last:,} of the graph are missing from"),
        ((first, rest[0]), f"to {graph.nodes - 1:,} of the graph are missing from"),
        ((first, *rest, rest[0]), "are in more than one of"),
        ((first, *rest, tmp_path / "half"), "are in more than one of"),
        ((first, tmp_path / "small"), "only indexes with the same settings can be merged"),
        ((first, tmp_path / "selected"), "contains pages that are not consecutive"),
        ((first, tmp_path / "foreign"), "were built from different graphs"),
    ]:
        with pytest.raises(UsageError, match=re.escape(message)):
            cocite.merge(pieces, tmp_path / "joined")
    with pytest.raises(UsageError, match="its build cannot be split"):
        cocite.merge((first, *rest), tmp_path / "joined", shard=3)
    assert not (tmp_path / "joined").exists()


@pytest.mark.parametrize("name", ["any.rows.codes", "any.rows.ids", "any.norms", "any.scales"])
def test_merge_ranges_refuses_damaged_file(graph: Graph, tmp_path: Path, name: str) -> None:
    pieces = ranges(graph, tmp_path, 2, measure="ppr-pmi")
    flip(pieces[0] / name, -1)
    with pytest.raises(Damaged, match=re.escape(name)):
        cocite.merge(pieces, tmp_path / "joined")


def test_merge_ranges_refuses_malformed_array(graph: Graph, tmp_path: Path) -> None:
    """The checksums match the changed arrays."""
    pieces = ranges(graph, tmp_path, 2, measure="ppr-pmi")
    (part,) = cocite.open(pieces[0]).stored.parts
    ids = np.full(part.array("rows.ids").size, graph.nodes, np.uint32)
    changes = {
        "rows.offsets": part.array("rows.offsets")[::-1],
        "rows.ids": ids,
        "scales": part.array("scales") * 2,
    }
    for name, array in changes.items():
        shutil.copytree(pieces[0], tmp_path / "bad")
        change_file(tmp_path / "bad", f"any.{name}", array)
        with pytest.raises(Damaged, match=re.escape(name)):
            cocite.merge([pieces[1], tmp_path / "bad"], tmp_path / "joined")
        shutil.rmtree(tmp_path / "bad")


def test_merge_ranges_needs_graph_names(graph: Graph, tmp_path: Path) -> None:
    copy = shutil.copytree(graph.path, tmp_path / "g")
    pieces = ranges(Graph.open(copy), tmp_path, 2, measure="ppr-pmi")
    shutil.rmtree(copy)
    with pytest.raises(UsageError, match="needs the graph's names: restore the graph"):
        cocite.merge(pieces, tmp_path / "joined")
