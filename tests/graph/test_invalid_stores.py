"""Graphs whose files match their checksums but violate the format: reported as damage."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cocite
from cocite import Graph
from cocite.errors import Damaged
from cocite.graph.blocks import rows_fault
from cocite.index.results import verify
from tests.conftest import MakeGraph
from tests.storage.enemy import change_facts, change_file

NAMES = [f"page {i}" for i in range(40)]
EDGES = [(NAMES[a], NAMES[b], 1 + a % 3) for a in range(40) for b in range(a) if (a * b) % 7 == 1]


def with_changed_file(graph: Graph, name: str, change: Callable[[Any], Any]) -> Graph:
    """The graph with one file changed and its checksum updated."""
    change_file(graph.path, name, change(np.array(graph.store.array(name))))
    return Graph.open(graph.path)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sound")
    rows = "".join(f"{a}\t{b}\t{weight}\n" for a, b, weight in EDGES)
    (folder / "links.tsv").write_text(rows)
    (folder / "nodes.tsv").write_text("".join(f"{name}\n" for name in NAMES))
    plain: dict[str, Any] = {"delimiter": "tab", "header": "no", "weight_column": "3"}
    cocite.ingest(folder / "links.tsv", folder / "g", nodes=folder / "nodes.tsv", **plain)
    return folder / "g"


@pytest.fixture
def graph(source: Path, tmp_path: Path) -> Graph:
    """A copy to damage."""
    return Graph.open(shutil.copytree(source, tmp_path / "g"))


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("names.data", np.zeros_like),
        ("names.data", lambda data: np.where(data == ord("g"), ord("G"), data).astype("u1")),
        ("names.hashes", lambda hashes: hashes - 1),
        ("names.hashes", np.zeros_like),
        ("names.by_hash", lambda ids: ids[::-1]),
        ("names.by_hash", lambda ids: (ids + 1) % np.uint32(40)),
    ],
)
def test_names_report_changed_files(graph: Graph, file: str, change: Callable[[Any], Any]) -> None:
    other = with_changed_file(graph, file, change)
    for name in NAMES:
        with pytest.raises(Damaged, match="its names are damaged"):
            other.names.id(name)
    faults = verify(graph.path).faults
    assert len(faults) == 1
    assert "matches its checksum, but violates the format: " in faults[0]


@pytest.mark.parametrize("character", [b"\x1b", b"\0", b"\n", b"\x7f"])
def test_names_refuse_control_character(graph: Graph, character: bytes) -> None:
    other = with_changed_file(
        graph, "names.data", lambda data: np.where(data == 103, ord(character), data).astype("u1")
    )
    with pytest.raises(Damaged, match="its names are damaged"):
        list(other.names)
    with pytest.raises(Damaged, match="its names are damaged"):
        other.names.containing("a")


@pytest.mark.parametrize("character", ["\x9b", "\u202e", "\u2066"])
def test_names_refuse_direction_control(make_graph: MakeGraph, character: str) -> None:
    """``verify`` reports it, and ingest refuses such names."""
    graph = make_graph([("a", "b\xe9\u200fxy"), ("a", "c")])
    old, new = "\xe9\u200f"[-len(character.encode()) + 1 :].encode(), character.encode()
    content = bytes(np.asarray(graph.store.array("names.data"))).replace(old, new)
    other = with_changed_file(graph, "names.data", lambda data: np.frombuffer(content, np.uint8))
    with pytest.raises(Damaged, match="its names are damaged"):
        list(other.names)
    assert "names cannot be read" in verify(graph.path).faults[0]


def test_integer_names_report_unsorted_values(make_graph: MakeGraph) -> None:
    graph = make_graph([(3, 5), (7, 9), (11, 3)])
    with pytest.raises(cocite.UnknownNode):
        graph.names.id("4")
    other = with_changed_file(graph, "names.values", lambda values: values[::-1].copy())
    with pytest.raises(Damaged, match="its names are damaged"):
        other.names.id("3")
    assert "values do not ascend" in verify(graph.path).faults[0]


def test_unknown_node_is_not_damage(graph: Graph) -> None:
    with pytest.raises(cocite.UnknownNode, match="no node is named 'page 40'"):
        graph.names.id("page 40")


LINKS: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("in_offsets", "do not span the data", lambda offsets: offsets + np.uint64(1)),
    ("in_offsets", "do not ascend", lambda offsets: offsets[[0, *range(39, 0, -1), 40]]),
    ("in_offsets", "do not span the data", lambda offsets: np.full_like(offsets, 2**63 - 1)),
    ("in_sources", "not below 40", lambda sources: np.full_like(sources, 40)),
    ("in_sources", "repeats", np.zeros_like),
    ("in_sources", "repeats", lambda sources: sources[::-1]),
]


@pytest.mark.parametrize(("file", "fault", "change"), LINKS)
def test_graph_reports_invalid_links(
    graph: Graph, tmp_path: Path, file: str, fault: str, change: Callable[[Any], Any]
) -> None:
    dtype = np.array(graph.store.array(file)).dtype
    other = with_changed_file(
        graph, file, lambda array: np.ascontiguousarray(change(array).astype(dtype))
    )
    for use in (other.check, other.to_scipy, other.to_networkx, other.to_pandas):
        with pytest.raises(Damaged, match=fault):
            use()
    for build in (
        lambda: cocite.build(other, tmp_path / "x", samples=2, measure="simrank"),
        lambda: cocite.pagerank(other),
    ):
        with pytest.raises(Damaged):
            build()
    (reported,) = verify(graph.path).faults
    assert re.search(fault, reported)


def test_in_neighbors_reports_offsets_outside_file(graph: Graph) -> None:
    other = with_changed_file(graph, "in_offsets", lambda offsets: np.full_like(offsets, 2**63 - 1))
    assert other.in_neighbors(3).size == 0
    other = with_changed_file(
        graph, "in_offsets", lambda offsets: np.arange(41, dtype="u8")[::-1] * 2**40
    )
    with pytest.raises(Damaged, match="point outside"):
        other.in_neighbors(3)
    with pytest.raises(Damaged, match="point outside"):
        other.info()
    change_file(graph.path, "in_offsets", np.array(graph.store.array("in_offsets")))


def test_verify_checks_weights_and_degrees(graph: Graph) -> None:
    with_changed_file(graph, "in_weights", lambda weights: weights * np.float32(np.nan))
    with_changed_file(graph, "out_degrees", lambda degrees: degrees[::-1])
    weights, degrees = sorted(verify(graph.path).faults, reverse=True)
    assert "degrees do not match the links" in weights
    assert "some weights are not positive and finite" in degrees


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
def test_rows_fault_works_in_pieces(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """Equal to a loop over rows: rows that end with a piece, empty ones, and long ones."""
    monkeypatch.setattr("cocite.graph.blocks._PIECE", piece)
    rng = np.random.default_rng(piece)
    found = []
    for _ in range(300):
        rows = [np.sort(rng.integers(0, 5, rng.integers(0, 4))) for _ in range(rng.integers(1, 5))]
        offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
        values = np.concatenate(rows).astype(np.uint32)
        strict = all((np.diff(row) > 0).all() for row in rows)
        in_range = bool((values < 4).all())
        assert (rows_fault(offsets, values, 4) == "") == (strict and in_range), rows
        assert (rows_fault(offsets, values, 4, twice=True) == "") == in_range, rows
        found.append(strict and in_range)
    assert {True, False} == set(found)


_DEEP = json.loads("[" * 60 + "]" * 60)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 10**400, 2**64, -(2**63) - 1, _DEEP])
def test_manifest_refuses_nonfinite_or_deep_values(graph: Graph, value: Any) -> None:
    change_facts(graph.path, "taken", to=[2**64 - 1, -(2**63), 1e308, {"a": [[0]]}])
    assert Graph.open(graph.path).nodes == 40  # unused facts do not matter
    change_facts(graph.path, "taken", to=value)
    with pytest.raises(Damaged, match=r"manifest\.json cannot be read \(ValueError: "):
        Graph.open(graph.path)


def test_manifest_refuses_huge_numbers(graph: Graph) -> None:
    path = graph.path / "manifest.json"
    original = path.read_bytes()
    for digits in ("1" + "0" * 5000, "1" + "0" * 5000 + ".0", "1e999"):
        path.write_bytes(original)
        change_facts(graph.path, "taken", to="HERE")
        path.write_text(path.read_text("utf-8").replace('"HERE"', digits), "utf-8")
        with pytest.raises(Damaged, match=r"manifest\.json cannot be read \(ValueError: "):
            Graph.open(graph.path)
