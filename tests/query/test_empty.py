"""An empty list says why: what the node's links are, beside those that the index looks at."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cocite
from cocite import Graph
from cocite.cli.main import main
from tests.conftest import MakeGraph


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph([("a", "b"), ("a", "c"), ("d", "e")], nodes=["alone"])


@pytest.fixture
def index(graph: Graph, tmp_path: Path) -> str:
    cocite.build(graph, tmp_path / "web.index", measure="psimrank", samples=5)
    return str(tmp_path / "web.index")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["related", *arguments]) == 0
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize("of_a_graph", [False, True])
def test_a_node_without_the_links_that_are_looked_at(
    graph: Graph, index: str, capsys: pytest.CaptureFixture[str], of_a_graph: bool
) -> None:
    asked = str(graph.path) if of_a_graph else index
    assert said(capsys, asked, "a") == (
        "no node is related to a by psimrank. It has no in-links, which the index looks at, but "
        "2 out-links: build the index by neighbourhood, or with --direction any"
    )
    assert said(capsys, asked, "alone").endswith(". It has no links at all")
    assert said(capsys, asked, "e").endswith(
        ". It has 1 in-link and no out-links; by neighbourhood every page that it is connected "
        "with is related"
    )


def test_what_was_asked_for_is_no_fault_of_the_links(
    index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(capsys, index, "b", "--prefix", "q") == (
        "none of the nodes that are asked for is related to b by psimrank"
    )


def test_the_default_reaches_all_and_says_so_of_what_has_nothing(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cocite.build(graph, tmp_path / "default.index")
    path = str(tmp_path / "default.index")
    assert said(capsys, path, "alone").endswith("by neighbourhood. It has no links at all")
    assert "a" in said(capsys, path, "b")


def test_without_the_graph_nothing_is_made_up(
    graph: Graph, index: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(graph.path)
    assert said(capsys, index, "a") == "no node is related to a by psimrank"
