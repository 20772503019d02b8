"""Adjacency lists: a node a row, then those it links to."""

import gzip
from pathlib import Path

import networkx as nx
import pytest

import cocite
from cocite.errors import MalformedRow
from tests.io.plain import links, nothing_left, read


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("a: b  c\nb: a\nc: a  b  d\n", "a>b a>c b>a c>a c>b c>d"),
        ("a, b, c\nb,a\nc,a,b,d,\n", "a>b a>c b>a c>a c>b c>d"),
        ("# made\r\n0 1 2\r\n\r\n1 2\r\n2 0 1 3\r\n3 0\r\n", "0>1 0>2 1>2 2>0 2>1 2>3 3>0"),
        ("x\ty z\tw\ny z\tx\nw\tx\ty z\tv\n", "x>y_z x>w y_z>x w>x w>y_z w>v"),
        (
            "Zebra: Lion Horse\nLion: Zebra\nHorse: Zebra Lion Ass\n",
            "Zebra>Lion Zebra>Horse Lion>Zebra Horse>Zebra Horse>Lion Horse>Ass",
        ),
    ],
)
def test_rows_link_first_node_to_others(tmp_path: Path, content: str, wanted: str) -> None:
    for data in (content.encode(), gzip.compress(content.encode())):
        graph = read(tmp_path, data)
        found = {f"{a}>{b}".replace(" ", "_") for a, b in links(graph)}
        assert found == set(wanted.split())
        assert ": an adjacency list, each row links" in graph.store.facts["sources"][0]["read_as"]
    named = read(tmp_path, content, input_format="adjacency")
    assert links(named) == links(graph)


def test_what_networkx_writes_is_read(tmp_path: Path) -> None:
    """Of a graph without direction each link is there once; a node alone is a node."""
    graph = nx.path_graph(5)
    graph.add_edges_from([(0, 2), (0, 3), (1, 4)])
    graph.add_node(9)
    nx.write_adjlist(graph, tmp_path / "x.adj")
    found = cocite.ingest(
        tmp_path / "x.adj", tmp_path / "g", undirected=True, input_format="adjacency"
    )
    both = nx.DiGraph(graph)
    assert set(links(found)) == {(str(a), str(b)) for a, b in both.edges}
    assert list(found.names) == ["0", "1", "2", "3", "4", "9"]


def test_bad_names_are_placed(tmp_path: Path) -> None:
    content = "a,b,c\nb,a\nc,a,,d\n\nd,a\x01\n"
    with pytest.raises(MalformedRow, match=r"links\.tsv:3: an empty name"):
        read(tmp_path, content, input_format="adjacency")
    assert nothing_left(tmp_path)
    graph = read(tmp_path, content, input_format="adjacency", bad_rows="few")
    assert set(links(graph)) == {("a", "b"), ("a", "c"), ("b", "a"), ("c", "a"), ("c", "d")}
    assert graph.info().bad_rows == 2
