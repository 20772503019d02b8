"""Nodes to begin with: of middling in-links, those with titles first."""

from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite.search.resolver import starters

NODES = 40
LINKS = [(f"source {n}", f"page {page:02}") for page in range(NODES) for n in range(page)]
"""Page n has n in-links; sources and page 00, which has no node, have none."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("starters")
    (place / "titles.tsv").write_text("name\ttitle\npage 30\tThe titled one\npage 02\tNone such\n")
    graph = cocite.ingest(LINKS, place / "graph")
    cocite.build(graph, place / "walks", measure="psimrank", samples=20)
    titled = cocite.ingest(LINKS, place / "titled.graph", titles=place / "titles.tsv")
    cocite.build(titled, place / "titled")
    return place


def test_starters_are_neither_obscure_nor_hubs(folder: Path) -> None:
    found = starters(cocite.open(folder / "walks"), 14)
    low, high = np.percentile(range(1, NODES), (60, 95))
    assert sorted(found) == [f"page {n}" for n in range(NODES) if low <= n <= high]
    assert found != sorted(found)
    assert set(starters(cocite.open(folder / "walks"), 30)) > set(found)  # too few are such


def test_starters_with_titles_come_first(folder: Path) -> None:
    assert starters(cocite.open(folder / "titled"), 5)[0] == "page 30"


def test_index_of_some_nodes_starts_with_these(folder: Path, tmp_path: Path) -> None:
    graph = cocite.Graph.open(folder / "graph")
    cocite.build(graph, tmp_path / "index", measure="psimrank", samples=20, only_prefix="page 1")
    found = starters(cocite.open(tmp_path / "index"), 20)
    assert {name[:6] for name in found} == {"page 1"}


def test_index_without_links_at_hand_starts_with_any(folder: Path, tmp_path: Path) -> None:
    (folder / "walks").rename(tmp_path / "walks")
    (folder / "graph").rename(tmp_path / "graph that was moved")
    assert len(starters(cocite.open(tmp_path / "walks"), 64)) == 64
