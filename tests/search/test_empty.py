"""An empty list says why: what the node's links are, beside those that the index looks at."""

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
    asked: tuple[str, ...] = (index,)
    looks, advice, samples = "the index", "build the index with --measure fusion", 5
    if of_a_graph:
        asked = str(graph.path), "--measure", "psimrank"
        looks, advice, samples = "psimrank", "omit --measure", 100
    advice = f"{advice}, or use --direction any"
    lacks = f"It has no in-links, which {looks} uses, but 2 out-links: {advice}"
    assert said(capsys, *asked, "a").startswith(f"no node is related to a by psimrank. {lacks}")
    assert said(capsys, *asked, "alone").endswith(". It has no links at all")
    assert said(capsys, *asked, "e").endswith(
        ". It has 1 in-link and no out-links, and is connected only to d; its walks meet "
        f"no other walks in {samples} samples; fusion would list the pages linked with it"
    )


def test_advice_can_be_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "links.tsv").write_text("a\tb\na\tc\nd\te\n")
    asked = [str(tmp_path / "links.tsv"), "a", "--no-cache", "--measure"]
    for measure, advice in {
        "simrank": "omit --measure, or use --direction any",
        "cocitation": "omit --measure, or use --direction both",
    }.items():
        assert said(capsys, *asked, measure).endswith(
            f"It has no in-links, which {measure} uses, but 2 out-links: {advice}"
        )
        assert said(capsys, *asked, measure, *advice.split()[-2:])
    assert said(capsys, *asked[:-1]).splitlines()[0].split()[:2] == ["rank", "score"]


def test_a_way_that_the_measure_has_not_is_not_advised(
    graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cocite.build(graph, tmp_path / "i", measure="cocitation")
    assert said(capsys, str(tmp_path / "i"), "a").endswith(
        "build the index with --measure fusion, or use --direction both"
    )


def test_the_few_that_a_page_is_connected_with_are_named(
    make_graph: MakeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = [("a", "b"), ("b", "c"), ("c", "d")]
    for more, alone in (([], "a, c and d"), ([("d", "e")], None), ([("x", "y")], "a, c and d")):
        graph = make_graph(chain + more)
        cocite.build(graph, tmp_path / "i", measure="cocitation", overwrite=True)
        text = said(capsys, str(tmp_path / "i"), "b")
        assert (f"and is connected only to {alone};" in text) == (alone is not None)


def test_pages_that_were_left_out_are_said_where_links_are_missing(
    make_graph: MakeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = make_graph([("hub", "a"), ("hub", "b"), ("b", "c")], exclude_nodes=["hub"])
    cocite.build(graph, tmp_path / "i", measure="psimrank", samples=5)
    out = " (1 page was excluded from the graph)"
    assert said(capsys, str(tmp_path / "i"), "a").endswith("It has no links at all" + out)
    assert f"but 1 out-link{out}: build" in said(capsys, str(tmp_path / "i"), "b")


def test_filters_are_no_fault_of_links(index: str, capsys: pytest.CaptureFixture[str]) -> None:
    best = "Without filters, the best hit is c, with a score of 0.6"
    assert said(capsys, index, "b", "--prefix", "q") == (
        f"none of the requested nodes is related to b by psimrank. {best}"
    )
    assert said(capsys, index, "b", "--min-score", "0.9") == (
        f"no node scores 0.9 or more with b. {best}"
    )
    assert said(capsys, index, "b", "--min-score", "0.9", "--decay", "0.5").endswith("score of 0.5")
    assert said(capsys, index, "a", "--prefix", "q").endswith(
        "Without filters, there would be no hits by psimrank either"
    )


def test_dropped_pages(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cocite.build(graph, tmp_path / "i", measure="psimrank", samples=5, only_nodes=["b", "d"])
    assert said(capsys, str(tmp_path / "i"), "b").endswith(
        "It has 1 in-link and no out-links; the index contains only 2 of 6 pages"
    )


def test_default_reach(graph: Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cocite.build(graph, tmp_path / "default.index")
    path = str(tmp_path / "default.index")
    assert said(capsys, path, "alone").endswith("by fusion. It has no links at all")
    assert "a" in said(capsys, path, "b")


def test_no_graph_no_advice(graph: Graph, index: str, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(graph.path)
    assert said(capsys, index, "a") == "no node is related to a by psimrank"
