"""Explanations of empty lists: the node's links, compared with those that the index uses."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import cocite
from cocite import Graph
from tests.conftest import MakeGraph, Shell

Output = Callable[..., str]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph([("a", "b"), ("a", "c"), ("d", "e")], nodes=["alone"])


@pytest.fixture
def index(graph: Graph, tmp_path: Path) -> str:
    cocite.build(graph, tmp_path / "web.index", measure="psimrank", samples=5)
    return str(tmp_path / "web.index")


@pytest.fixture
def related_output(shell: Shell) -> Output:
    return lambda *arguments: shell(["related", *arguments]).out.strip()


@pytest.mark.parametrize("of_a_graph", [False, True])
def test_why_empty_names_missing_links(
    graph: Graph, index: str, related_output: Output, of_a_graph: bool
) -> None:
    query: tuple[str, ...] = (index,)
    subject, advice, samples = "the index", "build the index with --measure fusion", 5
    if of_a_graph:
        query = str(graph.path), "--measure", "psimrank"
        subject, advice, samples = "psimrank", "omit --measure", 100
    advice = f"{advice}, or use --direction any"
    explanation = f"It has no in-links, which {subject} uses, but 2 out-links: {advice}"
    assert related_output(*query, "a").startswith(
        f"no node is related to a by psimrank. {explanation}"
    )
    assert related_output(*query, "alone").endswith(". It has no links at all")
    assert related_output(*query, "e").endswith(
        ". It has 1 in-link and no out-links, and is connected only to d; its walks meet "
        f"no other walks in {samples} samples; fusion would list the pages linked with it"
    )


def test_why_empty_advice_works_as_command(tmp_path: Path, related_output: Output) -> None:
    (tmp_path / "links.tsv").write_text("a\tb\na\tc\nd\te\n")
    query = [str(tmp_path / "links.tsv"), "a", "--no-cache", "--measure"]
    for measure, advice in {
        "simrank": "omit --measure, or use --direction any",
        "cocitation": "omit --measure, or use --direction both",
    }.items():
        assert related_output(*query, measure).endswith(
            f"It has no in-links, which {measure} uses, but 2 out-links: {advice}"
        )
        assert related_output(*query, measure, *advice.split()[-2:])
    assert related_output(*query[:-1]).splitlines()[0].split()[:2] == ["rank", "score"]


def test_why_empty_advises_only_valid_directions(
    graph: Graph, tmp_path: Path, related_output: Output
) -> None:
    cocite.build(graph, tmp_path / "i", measure="cocitation")
    assert related_output(str(tmp_path / "i"), "a").endswith(
        "build the index with --measure fusion, or use --direction both"
    )


def test_why_empty_names_small_component(
    make_graph: MakeGraph, tmp_path: Path, related_output: Output
) -> None:
    chain = [("a", "b"), ("b", "c"), ("c", "d")]
    for extra, component in (
        ([], "a, c and d"),
        ([("d", "e")], None),
        ([("x", "y")], "a, c and d"),
    ):
        graph = make_graph(chain + extra)
        cocite.build(graph, tmp_path / "i", measure="cocitation", overwrite=True)
        message = related_output(str(tmp_path / "i"), "b")
        assert (f"and is connected only to {component};" in message) == (component is not None)


def test_why_empty_counts_excluded_pages(
    make_graph: MakeGraph, tmp_path: Path, related_output: Output
) -> None:
    graph = make_graph([("hub", "a"), ("hub", "b"), ("b", "c")], exclude_nodes=["hub"])
    cocite.build(graph, tmp_path / "i", measure="psimrank", samples=5)
    note = " (1 page was excluded from the graph)"
    assert related_output(str(tmp_path / "i"), "a").endswith("It has no links at all" + note)
    assert f"but 1 out-link{note}: build" in related_output(str(tmp_path / "i"), "b")


def test_why_filtered_names_best_unfiltered_hit(index: str, related_output: Output) -> None:
    best = "Without filters, the best hit is c, with a score of 0.6"
    assert related_output(index, "b", "--prefix", "q") == (
        f"none of the requested nodes is related to b by psimrank. {best}"
    )
    assert related_output(index, "b", "--min-score", "0.9") == (
        f"no node scores 0.9 or more with b. {best}"
    )
    assert related_output(index, "b", "--min-score", "0.9", "--decay", "0.5").endswith(
        "score of 0.5"
    )
    assert related_output(index, "a", "--prefix", "q").endswith(
        "Without filters, there would be no hits by psimrank either"
    )


def test_why_empty_counts_selected_pages(
    graph: Graph, tmp_path: Path, related_output: Output
) -> None:
    cocite.build(graph, tmp_path / "i", measure="psimrank", samples=5, only_nodes=["b", "d"])
    assert related_output(str(tmp_path / "i"), "b").endswith(
        "It has 1 in-link and no out-links; the index contains only 2 of 6 pages"
    )


def test_why_empty_omits_advice_for_default_measure(
    graph: Graph, tmp_path: Path, related_output: Output
) -> None:
    cocite.build(graph, tmp_path / "default.index")
    path = str(tmp_path / "default.index")
    assert related_output(path, "alone").endswith("by fusion. It has no links at all")
    assert "a" in related_output(path, "b")


def test_why_empty_omits_advice_without_graph(
    graph: Graph, index: str, related_output: Output
) -> None:
    shutil.rmtree(graph.path)
    assert related_output(index, "a") == "no node is related to a by psimrank"
