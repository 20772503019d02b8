"""Indexes of ranges of nodes: each answers alone, and joined they are one build, to the byte."""

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
    return f"http://s{number % 7}.org/p{number}"  # ids are not in the order of names


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("ranges")
    pairs = np.random.default_rng(3).zipf(1.5, (2500, 2)) % 900
    rows = [f"{site(a)}\t{site(b)}\t{1 + a % 3}\n" for a, b in pairs.tolist()]
    (folder / "links.tsv").write_text("".join([*rows, "alone\talone\t1\n"]))
    (folder / "titles.tsv").write_text(f"{site(1)}\tOne\n{site(2)}\tTwo\n")
    how: dict[str, Any] = {"delimiter": "tab", "header": "no", "weight_column": 3}
    return cocite.ingest(
        folder / "links.tsv",
        folder / "g",
        titles=folder / "titles.tsv",
        keep_self_loops=True,
        **how,
    )


def ranges(graph: Graph, folder: Path, count: int, **options: Any) -> list[Path]:
    """The indexes of all ranges, the last one first."""
    found = [folder / f"r{number}" for number in range(count, 0, -1)]
    for number, path in zip(range(count, 0, -1), found, strict=True):
        cocite.build(graph, path, only_range=f"{number}/{count}", **options)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_merged_ranges_are_one_build_to_the_byte(graph: Graph, tmp_path: Path, kind: str) -> None:
    whole = cocite.build(graph, tmp_path / "whole", **KINDS[kind])
    pieces = ranges(graph, tmp_path, 3, **KINDS[kind])
    joined = cocite.merge(pieces, tmp_path / "joined", memory="200MB")
    assert files(tmp_path / "joined") == files(tmp_path / "whole")
    assert cocite.verify(pieces[1]).faults == []
    asked: dict[str, Any] = {"mutual": True} if kind == "snn" else {}
    names = list(cocite.open(pieces[1]).nodes)
    assert names == list(joined.nodes)[graph.nodes // 3 : 2 * graph.nodes // 3]
    for name in names[::40]:
        hits = cocite.open(pieces[1]).related(name, 10**6, **asked)
        expected = whole.related(name, 10**6, only=names, **asked)
        assert {(hit.node, hit.score) for hit in hits} == {(h.node, h.score) for h in expected}


@pytest.mark.parametrize("measure", ["fusion", "snn"])
def test_range_by_scratch_files(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measure: str
) -> None:
    """Lists and pushes in files: the same bytes."""
    given: dict[str, Any] = {"measure": measure, "unweighted": True, "only_range": "2/3"}
    usual = cocite.build(graph, tmp_path / "usual", **given)
    monkeypatch.setattr(RowsBuilder, "streaming", True)
    monkeypatch.setattr(NearestBuilder, "lean", True)
    monkeypatch.setattr(NearestBuilder, "streaming", True)
    monkeypatch.setattr(NearestBuilder, "fits", False)
    assert cocite.build(graph, tmp_path / "x", **given).stored.digest == usual.stored.digest


def test_range_killed_goes_on(graph: Graph, tmp_path: Path) -> None:
    whole = cocite.build(graph, tmp_path / "whole", measure="fusion", only_range="1/2")

    def stop(done: int, total: int) -> None:
        if done > 0.6 * total:
            raise KeyboardInterrupt

    given: dict[str, Any] = {"measure": "fusion", "only_range": "1/2"}
    with pytest.raises(KeyboardInterrupt):
        cocite.build(graph, tmp_path / "x", progress=stop, **given)
    logs = {log.name for log in (tmp_path / "x.building").glob("*.log")}
    assert logs == {"both.lists.log", "both.pushed.log"}
    assert cocite.build(graph, tmp_path / "x", **given).stored.digest == whole.stored.digest
    assert not [*(tmp_path / "x").glob("*.log")]


def test_pieces_that_do_not_fit_are_refused(
    graph: Graph, make_graph: MakeGraph, tmp_path: Path
) -> None:
    one, *more = reversed(ranges(graph, tmp_path, 3, measure="ppr-pmi"))
    others = {"size": "small", "only_range": "2/2"}
    cocite.build(graph, tmp_path / "small", measure="ppr-pmi", **others)
    cocite.build(graph, tmp_path / "half", measure="ppr-pmi", only_range="2/2")
    keep = [graph.names.name(node) for node in (0, 1, 5)]
    cocite.build(graph, tmp_path / "some", measure="ppr-pmi", only_nodes=keep)
    foreign = make_graph([("a", "b"), ("b", "c")], ["a", "b", "c"])
    cocite.build(foreign, tmp_path / "foreign", measure="ppr-pmi", only_range="2/3")
    third, last = graph.nodes // 3, 2 * graph.nodes // 3 - 1
    for pieces, message in [
        ((one, more[1]), f"nodes {third:,} to {last:,} of the graph are missing from"),
        ((one, more[0]), f"to {graph.nodes - 1:,} of the graph are missing from"),
        ((one, *more, more[0]), "are in more than one of"),
        ((one, *more, tmp_path / "half"), "are in more than one of"),
        ((one, tmp_path / "small"), "only indexes with the same settings can be merged"),
        ((one, tmp_path / "some"), "contains pages that are not consecutive"),
        ((one, tmp_path / "foreign"), "were built from different graphs"),
    ]:
        with pytest.raises(UsageError, match=re.escape(message)):
            cocite.merge(pieces, tmp_path / "joined")
    with pytest.raises(UsageError, match="its build cannot be split"):
        cocite.merge((one, *more), tmp_path / "joined", shard=3)
    assert not (tmp_path / "joined").exists()


@pytest.mark.parametrize("name", ["any.rows.codes", "any.rows.ids", "any.norms", "any.scales"])
def test_damaged_range_is_not_joined(graph: Graph, tmp_path: Path, name: str) -> None:
    pieces = ranges(graph, tmp_path, 2, measure="ppr-pmi")
    flip(pieces[0] / name, -1)
    with pytest.raises(Damaged, match=re.escape(name)):
        cocite.merge(pieces, tmp_path / "joined")


def test_ranges_that_no_build_wrote_are_not_joined(graph: Graph, tmp_path: Path) -> None:
    """Their checksums are right."""
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


def test_graph_gone(graph: Graph, tmp_path: Path) -> None:
    copy = shutil.copytree(graph.path, tmp_path / "g")
    pieces = ranges(Graph.open(copy), tmp_path, 2, measure="ppr-pmi")
    shutil.rmtree(copy)
    with pytest.raises(UsageError, match="needs the graph's names: restore the graph"):
        cocite.merge(pieces, tmp_path / "joined")
