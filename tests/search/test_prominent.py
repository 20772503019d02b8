"""Pages to begin with: those that most link to, each of another kind."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.deadline import limited
from cocite.search import resolver as module
from cocite.search.resolver import prominent

KINDS, HUBS = 5, 12
LINKS = [
    (f"hub {kind} {hub}", f"kind {kind} page {page}")
    for kind in range(KINDS)
    for hub in range(HUBS - kind)
    for page in range(4)
    if hub >= page  # page 0 has most links of its kind
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("prominent")
    (place / "links.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in LINKS))
    graph = cocite.ingest(place / "links.tsv", place / "graph", delimiter="tab", header="no")
    cocite.build(graph, place / "near", measure="neighborhood")
    cocite.build(graph, place / "walks", measure="psimrank", samples=200)
    return place


@pytest.mark.parametrize("name", ["near", "walks"])
def test_the_most_linked_page_of_each_kind_comes_first(folder: Path, name: str) -> None:
    found = prominent(cocite.open(folder / name), KINDS)
    assert found == [(f"kind {kind} page 0", None) for kind in range(KINDS)]


def test_without_the_graph_the_index_tells(folder: Path, tmp_path: Path) -> None:
    for name in ("near", "walks"):
        shutil.copytree(folder / name, tmp_path / name)
    links = prominent(cocite.open(tmp_path / "near"), KINDS)
    assert links == [(f"kind {kind} page 0", None) for kind in range(KINDS)]
    samples = [name for name, _ in prominent(cocite.open(tmp_path / "walks"), KINDS)]
    assert {name[:6] for name in samples} == {f"kind {kind}" for kind in range(KINDS)}


def test_pages_with_titles_come_first(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "titles.tsv").write_text("name\ttitle\nkind 4 page 1\tThe titled one\n")
    graph = cocite.ingest(
        folder / "links.tsv",
        tmp_path / "g",
        delimiter="tab",
        header="no",
        titles=tmp_path / "titles.tsv",
    )
    index = cocite.build(graph, tmp_path / "index")
    found = prominent(index, 3)
    assert found[0] == ("kind 4 page 1", "The titled one")
    assert found[1:] == [("kind 0 page 0", None), ("kind 1 page 0", None)]


def test_an_index_of_some_pages_has_none_of_the_others(folder: Path, tmp_path: Path) -> None:
    graph = cocite.Graph.open(folder / "graph")
    options: dict[str, Any] = {"measure": "psimrank", "samples": 100}
    index = cocite.build(graph, tmp_path / "index", only_prefix="kind 3", **options)
    assert prominent(index, 5)[0] == ("kind 3 page 0", None)


def test_slow_search_ends_with_its_best(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST", 0.0)
    with limited(5):
        assert prominent(cocite.open(folder / "near"), 5) == []
