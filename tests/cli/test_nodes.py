"""``cocite nodes``: who is found, in which order, and with which links."""

import shutil
from pathlib import Path

import pytest

import cocite
from cocite import Graph
from cocite.search.resolver import NodesDocument
from tests.conftest import MakeGraph, Shell, Told

LINKS = [
    ("H/index.html", "H/hacker.html"),
    ("J/index.html", "H/hacker.html"),
    ("H/hacker.html", "H/hacker-ethic.html"),
    ("H/hacker.html", "Hacker"),
    ("H/index.html", "hack"),
    ("ÉTÉ", "hack"),
]


@pytest.fixture
def graph(make_graph: MakeGraph) -> Graph:
    return make_graph(LINKS)


@pytest.fixture
def index(graph: Graph, tmp_path: Path) -> str:
    cocite.build(graph, tmp_path / "web.index")
    return str(tmp_path / "web.index")


def test_part_of_name_matches_any_case(index: str, told: Told) -> None:
    answer = told("nodes", index, "--search", "HACK")
    names = [each["node"] for each in answer["nodes"]]
    assert names == ["hack", "Hacker", "H/hacker.html", "H/hacker-ethic.html"]
    assert (answer["found"], answer["of"]) == (4, 7)
    assert answer["nodes"][2] == {"node": "H/hacker.html", "in_links": 2, "out_links": 2}
    assert [each["node"] for each in told("nodes", index, "été")["nodes"]] == ["ÉTÉ"]
    assert told("nodes", index, "HACK") == answer


def test_without_a_text_the_most_linked_come_first(graph: Graph, shell: Shell) -> None:
    printed = shell(["nodes", graph.path, "-k", "2"])
    rows = printed.out.splitlines()[2:]
    assert [row.split() for row in rows] == [["2", "2", "H/hacker.html"], ["2", "0", "hack"]]
    assert printed.err == "2 of 7 nodes; -k shows more\n"


def test_links_are_shown_by_name_and_all_of_them_to_programs(index: str, shell: Shell) -> None:
    reply = shell(["nodes", index, "--search", "r.html", "--links"])
    assert reply.out.splitlines() == [
        "H/hacker.html",
        "  linked from 2:",
        "    H/index.html",
        "    J/index.html",
        "  links to 2:",
        "    H/hacker-ethic.html",
        "    Hacker",
    ]
    reply = shell(["nodes", index, "--search", "r.html", "--links", "--format", "csv"])
    assert reply.out.splitlines() == [
        "node,direction,other",
        "H/hacker.html,in,H/index.html",
        "H/hacker.html,in,J/index.html",
        "H/hacker.html,out,H/hacker-ethic.html",
        "H/hacker.html,out,Hacker",
    ]


def test_selected_pages(graph: Graph, tmp_path: Path, told: Told) -> None:
    some = tmp_path / "some.index"
    cocite.build(graph, some, measure="psimrank", samples=2, only_nodes=["H/hacker.html", "hack"])
    answer = told("nodes", some)
    assert [(each["node"], each["in_links"]) for each in answer["nodes"]] == [
        ("H/hacker.html", 2),
        ("hack", 2),
    ]


def test_an_index_without_its_graph_still_has_its_names(
    graph: Graph, index: str, tmp_path: Path, shell: Shell, told: Told
) -> None:
    moved = tmp_path / "elsewhere.graph"
    shutil.move(graph.path, moved)
    printed = shell(["nodes", index, "--search", "hacker."])
    assert printed.out == "H/hacker.html\n"
    assert "links are not counted: see --graph" in printed.err
    assert "--graph" in shell(["nodes", index, "--search", "hacker.", "--links"], 1).err
    answer = told("nodes", index, "--search", "hacker.", "--graph", str(moved))
    assert answer["nodes"][0]["in_links"] == 2


def test_nobody_is_found_is_said(index: str, shell: Shell) -> None:
    printed = shell(["nodes", index, "--search", "cracker"])
    assert printed.out == ""
    assert f"no name in {index} contains 'cracker'" in printed.err


def test_an_unknown_name_suggests_those_that_contain_it(index: str, shell: Shell) -> None:
    assert "'H/hacker.html'" in shell(["related", index, "hacke"], 2).err


SPELT = [
    ("S%C3%A3o_Paulo", "New_York"),
    ("São Paulo", "New York City"),
    ("ΣΊΣΥΦΟΣ", "%E6%9D%B1%E4%BA%AC"),
    ("100%", "a%2"),
    ("ö", "o\u0308x"),
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("são paulo", ["S%C3%A3o_Paulo", "São Paulo"]),
        ("Sao_Pau", ["S%C3%A3o_Paulo", "São Paulo"]),
        ("S%C3%A3o", ["S%C3%A3o_Paulo", "São Paulo"]),
        ("%c3%a3", ["S%C3%A3o_Paulo"]),
        ("new york", ["New_York", "New York City"]),
        ("σίσυφος", ["ΣΊΣΥΦΟΣ"]),
        ("東京", ["%E6%9D%B1%E4%BA%AC"]),
        ("0%", ["100%"]),
        ("a%2", ["a%2"]),
        ("Ö", ["ö", "o\u0308x"]),
        ("_c", ["New York City"]),
        ("paulonia", []),
    ],
)
def test_equal_spellings_are_found(make_graph: MakeGraph, text: str, names: list[str]) -> None:
    found = NodesDocument.of_path(make_graph(SPELT).path, text).nodes
    assert sorted(each.node for each in found if each.node in names) == sorted(names)
    if text not in ("%c3%a3", "Ö"):  # which are an "a" and an "o", too
        assert len(found) == len(names)


def test_many_names_are_looked_through_in_pieces(make_graph: MakeGraph) -> None:
    """A name is found wherever it stands in a piece, and in those behind the first."""
    count = (1 << 16) + 40
    graph = make_graph([(f"page_{i}%C3%A9", "hub") for i in range(count)])
    for number in (0, 65_534, 65_535, count - 1):
        found = NodesDocument.of_path(graph.path, f"Page {number}É").nodes
        assert [each.node for each in found] == [f"page_{number}%C3%A9"]
