"""``cocite nodes``: matches, their order and their links."""

import shutil
from pathlib import Path

import pytest

import cocite
from cocite import Graph
from cocite.search.resolver import NodesDocument
from tests.conftest import CliJson, MakeGraph, Shell

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


def test_nodes_search_ignores_case(index: str, cli_json: CliJson) -> None:
    answer = cli_json("nodes", index, "--search", "HACK")
    names = [row["node"] for row in answer["nodes"]]
    assert names == ["hack", "Hacker", "H/hacker.html", "H/hacker-ethic.html"]
    assert (answer["found"], answer["of"]) == (4, 7)
    assert answer["nodes"][2] == {"node": "H/hacker.html", "in_links": 2, "out_links": 2}
    assert [row["node"] for row in cli_json("nodes", index, "été")["nodes"]] == ["ÉTÉ"]
    assert cli_json("nodes", index, "HACK") == answer


def test_nodes_without_text_sorts_by_links(graph: Graph, shell: Shell) -> None:
    printed = shell(["nodes", graph.path, "-k", "2"])
    rows = printed.out.splitlines()[2:]
    assert [row.split() for row in rows] == [["2", "2", "H/hacker.html"], ["2", "0", "hack"]]
    assert printed.err == "2 of 7 nodes; -k shows more\n"


def test_nodes_links_prints_text_and_csv(index: str, shell: Shell) -> None:
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


def test_nodes_lists_only_selected_nodes(graph: Graph, tmp_path: Path, cli_json: CliJson) -> None:
    path = tmp_path / "some.index"
    cocite.build(graph, path, measure="psimrank", samples=2, only_nodes=["H/hacker.html", "hack"])
    answer = cli_json("nodes", path)
    assert [(row["node"], row["in_links"]) for row in answer["nodes"]] == [
        ("H/hacker.html", 2),
        ("hack", 2),
    ]


def test_nodes_reads_index_without_graph(
    graph: Graph, index: str, tmp_path: Path, shell: Shell, cli_json: CliJson
) -> None:
    moved = tmp_path / "elsewhere.graph"
    shutil.move(graph.path, moved)
    printed = shell(["nodes", index, "--search", "hacker."])
    assert printed.out == "H/hacker.html\n"
    assert "links are not counted: see --graph" in printed.err
    assert "--graph" in shell(["nodes", index, "--search", "hacker.", "--links"], 1).err
    answer = cli_json("nodes", index, "--search", "hacker.", "--graph", str(moved))
    assert answer["nodes"][0]["in_links"] == 2


def test_nodes_reports_no_match(index: str, shell: Shell) -> None:
    printed = shell(["nodes", index, "--search", "cracker"])
    assert printed.out == ""
    assert f"no name in {index} contains 'cracker'" in printed.err


def test_related_unknown_name_suggests_matches(index: str, shell: Shell) -> None:
    assert "'H/hacker.html'" in shell(["related", index, "hacke"], 2).err


SPELLINGS = [
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
def test_nodes_document_matches_equal_spellings(
    make_graph: MakeGraph, text: str, names: list[str]
) -> None:
    found = NodesDocument.of_path(make_graph(SPELLINGS).path, text).nodes
    assert sorted(row.node for row in found if row.node in names) == sorted(names)
    if text not in ("%c3%a3", "Ö"):  # these also match as "a" and "o"
        assert len(found) == len(names)


@pytest.mark.long
def test_nodes_document_searches_all_blocks(make_graph: MakeGraph) -> None:
    """A name is found anywhere in a block, and in blocks after the first."""
    count = (1 << 16) + 40
    graph = make_graph([(f"page_{i}%C3%A9", "hub") for i in range(count)])
    for number in (0, 65_534, 65_535, count - 1):
        found = NodesDocument.of_path(graph.path, f"Page {number}É").nodes
        assert [row.node for row in found] == [f"page_{number}%C3%A9"]
