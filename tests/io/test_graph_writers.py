"""Graphs as GraphML, GEXF and DOT: read by NetworkX and cocite, and drawn by Graphviz."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cocite
from cocite.io.writers import GRAPHS
from cocite.io.writers.graphs import GraphPiece, GraphShape, graph_text

HOSTILE = [
    *('a "quoted" & <b>tag</b> ]]> -->', "\\N \\G \\ ends in a backslash\\", " blanks ", "n0"),
    *("&lt;script&gt; &amp; &#65;", "tab\tand\nline\rbreak", "'; DROP TABLE pages; -- }"),
    *("control \x00\x01\x1b\x7f\x85 \ufffe\uffff", "half a pair \udcff", "é 漢 𝄞 \u202e"),
]
SHAPE = GraphShape(
    {"title": "string", "asked": "boolean"}, {"rank": "int", "err": "double"}, "a & b\n"
)


def piece(names: list[str], links: list[tuple[int, int, float]], start: int = 0) -> GraphPiece:
    count = len(names)
    return GraphPiece(
        np.arange(start, start + count),
        names,
        {
            "title": [name if i % 2 else None for i, name in enumerate(names)],
            "asked": [True] * count,
        },
        np.array([a for a, *_ in links], np.int64),
        np.array([b for _, b, _ in links], np.int64),
        np.array([w for *_, w in links], np.float64),
        {"rank": np.arange(len(links)), "err": np.full(len(links), np.nan)},
    )


def text(kind: str, pieces: list[GraphPiece]) -> str:
    return graph_text(GRAPHS[f".{kind}"].form(SHAPE), pieces)


def escaped(name: str) -> str:
    """A name with a six-character escape for each character that XML cannot hold."""
    forbidden = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
    return forbidden.sub(lambda match: f"\\u{ord(match[0]):04x}", name)


def read_by_networkx(kind: str, content: str, path: Path) -> networkx.DiGraph:
    path.write_text(content, "utf-8")
    reader = {"graphml": networkx.read_graphml, "gexf": networkx.read_gexf}[kind]
    return reader(path)


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_graph_text_is_read_by_networkx(kind: str, tmp_path: Path) -> None:
    links = [(0, 1, 0.1), (1, 0, 1 / 3), (9, 4, 1e-12)]
    found = read_by_networkx(kind, text(kind, [piece(HOSTILE, links)]), tmp_path / "x")
    assert found.is_directed()
    assert [found.nodes[f"n{i}"]["label"] for i in range(10)] == list(map(escaped, HOSTILE))
    assert all(found.nodes[f"n{i}"]["asked"] is True for i in range(10))
    titles = [found.nodes[f"n{i}"].get("title") for i in range(10)]
    assert titles == [escaped(name) if i % 2 else None for i, name in enumerate(HOSTILE)]
    edges = {(a, b): data for a, b, data in found.edges(data=True)}
    for rank, (a, b, weight) in enumerate(links):
        data = edges[f"n{a}", f"n{b}"]
        assert (data["weight"], data["rank"]) == (weight, rank)
        assert "err" not in data
    assert len(edges) == 3


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
@given(st.lists(st.text(st.characters()), max_size=4))
def test_graph_text_is_well_formed_for_any_name(kind: str, names: list[str]) -> None:
    links = [(i, 0, 0.5) for i in range(len(names))]
    root = ET.fromstring(text(kind, [piece(names, links)]))
    if kind == "gexf":
        found = [node.get("label") for node in root.iter("{http://www.gexf.net/1.2draft}node")]
    else:
        data = root.iter("{http://graphml.graphdrawing.org/xmlns}data")
        found = [each.text or "" for each in data if each.get("key") == "n.label"]
    assert found == list(map(escaped, names))


@pytest.mark.parametrize("kind", ["graphml", "gexf"])
def test_graph_text_is_read_by_ingest(kind: str, tmp_path: Path) -> None:
    names = [name for name in HOSTILE if not set("\t\n\r") & set(name)]
    dropped = "[\x7f-\x9f\u202a-\u202e\u2066-\u2069]"  # by readers
    names = [re.sub(dropped, "", name).strip() for name in names]
    links = [(i, (i + 1) % len(names), 0.25 + i) for i in range(len(names))]
    path = tmp_path / f"x.{kind}"
    path.write_text(text(kind, [piece(names, links)]), "utf-8")
    graph = cocite.ingest(path, weight_column="weight")
    assert sorted(graph.names) == sorted(map(escaped, names))
    assert graph.in_weights is not None
    for a, b, weight in links:
        node = graph.names.id(escaped(names[b]))
        assert [graph.names[i] for i in graph.in_neighbors(node).tolist()] == [escaped(names[a])]
        where = slice(int(graph.in_offsets[node]), int(graph.in_offsets[node + 1]))
        assert graph.in_weights[where].tolist() == [weight]


def test_graph_text_writes_nodes_once_before_links(tmp_path: Path) -> None:
    """In a file as in memory."""
    pieces = [
        piece(["a", "b"], [(0, 1, 0.5)]),
        piece(["b", "c"], [(1, 2, 0.25)], start=1),
        piece(["far"], [(5000, 0, 0.5)], start=5000),
    ]
    for kind in ("graphml", "gexf", "dot"):
        content = text(kind, pieces)
        assert content.count("n5000") == 2
        path = tmp_path / kind
        with path.open("wb"):
            GRAPHS[f".{kind}"].write(path, pieces, SHAPE)
        assert path.read_text("utf-8") == content
        if kind != "dot":
            found = read_by_networkx(kind, content, tmp_path / "x")
            assert [found.nodes[n]["label"] for n in found] == ["a", "b", "c", "far"]
            assert found.number_of_edges() == 3
        last_node = max(m.start() for m in re.finditer(r"<node |^n\d+ \[", content, re.M))
        first_link = min(m.start() for m in re.finditer(r"<edge |->", content))
        assert last_node < first_link


@pytest.fixture
def graphviz() -> Any:
    """A function that renders DOT with Graphviz, by default to JSON."""
    program = shutil.which("dot")
    if program is None:
        pytest.skip("needs Graphviz (Debian: graphviz)")

    def render(content: str, output_format: str = "json") -> str:
        command = [program, f"-T{output_format}"]
        done = subprocess.run(command, input=content.encode(), capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
        return done.stdout.decode()

    return render


@pytest.mark.process
def test_dot_is_drawn_by_graphviz(graphviz: Any) -> None:
    names = [name for name in HOSTILE if "\ufffe" not in name]
    drawn = graphviz(text("dot", [piece(names, [(0, 1, 0.5), (3, 3, 1.0)])]), "svg")
    root = ET.fromstring(drawn)
    nodes = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "node"]
    labels = [
        "".join(t.text or "" for t in g.iter("{http://www.w3.org/2000/svg}text")) for g in nodes
    ]
    blanks = str.maketrans({"\xa0": " ", "\n": ""})
    actual = {each.translate(blanks).strip() for each in labels}
    expected = {
        escaped(name).replace("\n", "").replace("\r", "\\u000d").replace("\t", "\\u0009").strip()
        for name in names
    }
    assert actual == expected
    edges = [g for g in root.iter("{http://www.w3.org/2000/svg}g") if g.get("class") == "edge"]
    assert len(edges) == 2


@pytest.mark.process
def test_dot_has_urls_and_tooltips(graphviz: Any) -> None:
    names = ["http://a.org/?x=1&lt=2", "http://b.org/"]
    found = json.loads(graphviz(text("dot", [piece(names, [(0, 1, 0.5)])])))
    first, second = found["objects"]
    assert [first[key].replace("&amp;", "&") for key in ("label", "URL")] == names[:1] * 2
    assert (second["label"], second["page"], second["tooltip"]) == (names[1],) * 3
    assert found["edges"][0]["weight"] == "0.5"
