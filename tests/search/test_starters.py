"""Starter nodes: those with a moderate number of in-links, titled ones first."""

from pathlib import Path

import numpy as np
import pytest

import cocite
from cocite.search.resolver import starters

NODES = 40
LINKS = [(f"source {n}", f"page {page:02}") for page in range(NODES) for n in range(page)]
"""Page n has n in-links; sources have none, and page 00 does not exist."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starters")
    (folder / "titles.tsv").write_text("name\ttitle\npage 30\tThe titled one\npage 02\tNone such\n")
    graph = cocite.ingest(LINKS, folder / "graph")
    cocite.build(graph, folder / "walks", measure="psimrank", samples=20)
    titled = cocite.ingest(LINKS, folder / "titled.graph", titles=folder / "titles.tsv")
    cocite.build(titled, folder / "titled")
    return folder


def test_starters_are_neither_obscure_nor_hubs(folder: Path) -> None:
    found = starters(cocite.open(folder / "walks"), 14)
    low, high = np.percentile(range(1, NODES), (60, 95))
    assert sorted(found) == [f"page {n}" for n in range(NODES) if low <= n <= high]
    assert found != sorted(found)
    assert set(starters(cocite.open(folder / "walks"), 30)) > set(found)  # there are too few


def test_starters_list_titled_pages_first(folder: Path) -> None:
    assert starters(cocite.open(folder / "titled"), 5)[0] == "page 30"


def test_starters_stay_within_selected_nodes(folder: Path, tmp_path: Path) -> None:
    graph = cocite.Graph.open(folder / "graph")
    cocite.build(graph, tmp_path / "index", measure="psimrank", samples=20, only_prefix="page 1")
    found = starters(cocite.open(tmp_path / "index"), 20)
    assert {name[:6] for name in found} == {"page 1"}


def test_starters_without_graph_use_any_node(folder: Path, tmp_path: Path) -> None:
    (folder / "walks").rename(tmp_path / "walks")
    (folder / "graph").rename(tmp_path / "moved graph")
    assert len(starters(cocite.open(tmp_path / "walks"), 64)) == 64
