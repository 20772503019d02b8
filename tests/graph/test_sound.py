"""Graphs whose files are not what the format says, though all checksums fit: damage, in words."""

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


def changed(graph: Graph, name: str, change: Callable[[Any], Any]) -> Graph:
    """The graph with another file, signed."""
    change_file(graph.path, name, change(np.array(graph.store.array(name))))
    return Graph.open(graph.path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sound")
    rows = "".join(f"{a}\t{b}\t{weight}\n" for a, b, weight in EDGES)
    (place / "links.tsv").write_text(rows)
    (place / "nodes.tsv").write_text("".join(f"{name}\n" for name in NAMES))
    plain: dict[str, Any] = {"delimiter": "tab", "header": "no", "weight_column": "3"}
    cocite.ingest(place / "links.tsv", place / "g", nodes=place / "nodes.tsv", **plain)
    return place / "g"


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> Graph:
    """A copy, to be spoilt."""
    return Graph.open(shutil.copytree(made, tmp_path / "g"))


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
def test_unfound_name_is_damage(graph: Graph, file: str, change: Callable[[Any], Any]) -> None:
    other = changed(graph, file, change)
    for name in NAMES:
        with pytest.raises(Damaged, match="its names are damaged"):
            other.names.id(name)
    faults = verify(graph.path).faults
    assert len(faults) == 1
    assert "matches its checksum, but violates the format: " in faults[0]


@pytest.mark.parametrize("sign", [b"\x1b", b"\0", b"\n", b"\x7f"])
def test_a_control_character_in_a_name_is_damage(graph: Graph, sign: bytes) -> None:
    other = changed(
        graph, "names.data", lambda data: np.where(data == 103, ord(sign), data).astype("u1")
    )
    with pytest.raises(Damaged, match="its names are damaged"):
        list(other.names)
    with pytest.raises(Damaged, match="its names are damaged"):
        other.names.containing("a")


@pytest.mark.parametrize("sign", ["\x9b", "\u202e", "\u2066"])
def test_a_name_that_turns_what_is_shown_is_damage(make_graph: MakeGraph, sign: str) -> None:
    """As ingest refuses it; ``verify`` says so."""
    graph = make_graph([("a", "b\xe9\u200fxy"), ("a", "c")])
    old, new = "\xe9\u200f"[-len(sign.encode()) + 1 :].encode(), sign.encode()
    held = bytes(np.asarray(graph.store.array("names.data"))).replace(old, new)
    other = changed(graph, "names.data", lambda data: np.frombuffer(held, np.uint8))
    with pytest.raises(Damaged, match="its names are damaged"):
        list(other.names)
    assert "names cannot be read" in verify(graph.path).faults[0]


def test_numbers_out_of_order_are_damage_and_no_unknown_names(make_graph: MakeGraph) -> None:
    graph = make_graph([(3, 5), (7, 9), (11, 3)])
    with pytest.raises(cocite.UnknownNode):
        graph.names.id("4")
    other = changed(graph, "names.values", lambda values: values[::-1].copy())
    with pytest.raises(Damaged, match="its names are damaged"):
        other.names.id("3")
    assert "values do not ascend" in verify(graph.path).faults[0]


def test_a_name_that_is_not_there_is_no_damage(graph: Graph) -> None:
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
def test_links_that_are_not_rows_are_damage(
    graph: Graph, tmp_path: Path, file: str, fault: str, change: Callable[[Any], Any]
) -> None:
    kind = np.array(graph.store.array(file)).dtype
    other = changed(graph, file, lambda array: np.ascontiguousarray(change(array).astype(kind)))
    for question in (other.check, other.to_scipy, other.to_networkx, other.to_pandas):
        with pytest.raises(Damaged, match=fault):
            question()
    for build in (
        lambda: cocite.build(other, tmp_path / "x", samples=2, measure="simrank"),
        lambda: cocite.pagerank(other),
    ):
        with pytest.raises(Damaged):
            build()
    (told,) = verify(graph.path).faults
    assert re.search(fault, told)


def test_one_row_that_points_outside_is_damage(graph: Graph) -> None:
    other = changed(graph, "in_offsets", lambda offsets: np.full_like(offsets, 2**63 - 1))
    assert other.in_neighbors(3).size == 0
    other = changed(graph, "in_offsets", lambda offsets: np.arange(41, dtype="u8")[::-1] * 2**40)
    with pytest.raises(Damaged, match="point outside"):
        other.in_neighbors(3)
    with pytest.raises(Damaged, match="point outside"):
        other.info()
    change_file(graph.path, "in_offsets", np.array(graph.store.array("in_offsets")))


def test_weights_and_degrees_are_verified(graph: Graph) -> None:
    changed(graph, "in_weights", lambda weights: weights * np.float32(np.nan))
    changed(graph, "out_degrees", lambda degrees: degrees[::-1])
    weights, degrees = sorted(verify(graph.path).faults, reverse=True)
    assert "degrees do not match the links" in weights
    assert "some weights are not positive and finite" in degrees


@pytest.mark.parametrize("piece", [1, 2, 3, 1000])
def test_rows_are_looked_at_in_pieces(monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """Rows that end where a piece does, empty ones, and long ones: as a loop over rows finds."""
    monkeypatch.setattr("cocite.graph.blocks._PIECE", piece)
    rng = np.random.default_rng(piece)
    found = []
    for _ in range(300):
        rows = [np.sort(rng.integers(0, 5, rng.integers(0, 4))) for _ in range(rng.integers(1, 5))]
        offsets = np.cumsum([0, *map(len, rows)]).astype(np.uint64)
        whole = np.concatenate(rows).astype(np.uint32)
        strict = all((np.diff(row) > 0).all() for row in rows)
        below = bool((whole < 4).all())
        assert (rows_fault(offsets, whole, 4) == "") == (strict and below), rows
        assert (rows_fault(offsets, whole, 4, twice=True) == "") == below, rows
        found.append(strict and below)
    assert {True, False} == set(found)


_DEEP = json.loads("[" * 60 + "]" * 60)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 10**400, 2**64, -(2**63) - 1, _DEEP])
def test_what_is_no_number_or_too_deep_is_in_no_manifest(graph: Graph, value: Any) -> None:
    change_facts(graph.path, "taken", to=[2**64 - 1, -(2**63), 1e308, {"a": [[0]]}])
    assert Graph.open(graph.path).nodes == 40  # nobody asks for it
    change_facts(graph.path, "taken", to=value)
    with pytest.raises(Damaged, match=r"manifest\.json cannot be read \(ValueError: "):
        Graph.open(graph.path)


def test_a_number_without_end_is_in_no_manifest(graph: Graph) -> None:
    path = graph.path / "manifest.json"
    whole = path.read_bytes()
    for digits in ("1" + "0" * 5000, "1" + "0" * 5000 + ".0", "1e999"):
        path.write_bytes(whole)
        change_facts(graph.path, "taken", to="HERE")
        path.write_text(path.read_text("utf-8").replace('"HERE"', digits), "utf-8")
        with pytest.raises(Damaged, match=r"manifest\.json cannot be read \(ValueError: "):
            Graph.open(graph.path)
