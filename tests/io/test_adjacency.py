"""Adjacency lists and the web graphs of Common Crawl."""

import gzip
from pathlib import Path

import networkx as nx
import pytest

import cocite
from cocite.errors import InputError, MalformedRow
from tests.io.plain import links, nothing_left, read, refused


@pytest.mark.parametrize(
    ("content", "expected"),
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
def test_adjacency_links_first_node_to_others(tmp_path: Path, content: str, expected: str) -> None:
    graph = read(tmp_path, gzip.compress(content.encode()))
    assert {f"{a}>{b}".replace(" ", "_") for a, b in links(graph)} == set(expected.split())
    assert ": an adjacency list, each row links" in graph.store.facts["sources"][0]["read_as"]


def test_adjacency_reads_networkx_adjlist(tmp_path: Path) -> None:
    """Undirected links appear once in the file; isolated nodes are kept."""
    graph = nx.path_graph(5)
    graph.add_edges_from([(0, 2), (0, 3), (1, 4)])
    graph.add_node(9)
    nx.write_adjlist(graph, tmp_path / "x.adj")
    stored = cocite.ingest(
        tmp_path / "x.adj", tmp_path / "g", undirected=True, input_format="adjacency"
    )
    directed = nx.DiGraph(graph)
    assert set(links(stored)) == {(str(a), str(b)) for a, b in directed.edges}
    assert list(stored.names) == ["0", "1", "2", "3", "4", "9"]


def test_adjacency_reports_bad_name_with_line(tmp_path: Path) -> None:
    content = "a,b,c\nb,a\nc,a,,d\n\nd,a\x01\n"
    message = r"links\.tsv:3: an empty name"
    refused(tmp_path, MalformedRow, content, input_format="adjacency", match=message)
    graph = read(tmp_path, content, input_format="adjacency", bad_rows="few")
    assert set(links(graph)) == {("a", "b"), ("a", "c"), ("b", "a"), ("c", "a"), ("c", "d")}
    assert graph.info().bad_rows == 2


# -- Common Crawl ------------------------------------------------------------------------

VERTICES = ["0\tcom.example\t3", "1\torg.wiki\t1", "2\tuk.co.bbc\t2", "9\tcom.alone\t1"]
EDGES = ["0\t1", "0\t2", "1\t0", "2\t2"]


def write_graph(folder: Path, vertices: list[str], edges: list[str], end: str = ".txt.gz") -> Path:
    for name, rows in (("vertices", vertices), ("edges", edges)):
        data = "".join(row + "\n" for row in rows).encode()
        path = folder / f"cc-main-domain-{name}{end}"
        path.write_bytes(gzip.compress(data) if end.endswith(".gz") else data)
    return folder / f"cc-main-domain-edges{end}"


@pytest.mark.parametrize(("end", "hosts"), [(".txt.gz", True), (".txt", False)])
def test_common_crawl_unreverses_host_names(tmp_path: Path, end: str, hosts: bool) -> None:
    vertices = VERTICES if not hosts else [row.rpartition("\t")[0] for row in VERTICES]
    edges = write_graph(tmp_path, vertices, EDGES, end)
    graph = cocite.ingest(edges, tmp_path / "g")
    example, wiki = "example.com", "wiki.org"
    assert set(links(graph)) == {(example, wiki), (example, "bbc.co.uk"), (wiki, example)}
    assert sorted(graph.names) == ["alone.com", "bbc.co.uk", "example.com", "wiki.org"]
    assert (graph.info().rows, graph.info().self_loops) == (4, 1)
    globbed = cocite.ingest(str(tmp_path / "cc-*"), tmp_path / "h")
    assert links(globbed) == links(graph)


def test_common_crawl_accepts_split_files(tmp_path: Path) -> None:
    for part, (vertices, edges) in enumerate(
        [(VERTICES[:2], EDGES[:1]), (VERTICES[2:], EDGES[1:])]
    ):
        (tmp_path / f"vertices-{part}.txt").write_text("\n".join(vertices))
        (tmp_path / f"edges-{part}.txt").write_text("\n".join(edges))
    graph = cocite.ingest(str(tmp_path / "*.txt"), tmp_path / "g", input_format="common-crawl")
    assert len(links(graph)) == 3
    assert graph.nodes == 4


@pytest.mark.parametrize(
    ("vertices", "edges", "message"),
    [
        (VERTICES, [*EDGES, "1\t7"], r"edges\.txt\.gz:5: a link to or from a missing vertex"),
        (VERTICES, [*EDGES, "1"], r"edges\.txt\.gz:5: not 2 tab-separated columns"),
        (VERTICES, [*EDGES, "1\tx"], "vertex ids that are not whole numbers"),
        ([*VERTICES, "0\tcom.twice\t1"], EDGES, "has vertex 0 more than once"),
        ([*VERTICES, "x\tcom.twice\t1"], EDGES, r"vertices\.txt\.gz:5: the id of a vertex is not"),
        ([*VERTICES, "3\t\t1"], EDGES, r"vertices\.txt\.gz:5: an empty name"),
    ],
)
def test_common_crawl_reports_malformed_row(
    tmp_path: Path, vertices: list[str], edges: list[str], message: str
) -> None:
    path = write_graph(tmp_path, vertices, edges)
    with pytest.raises((MalformedRow, InputError), match=message):
        cocite.ingest(path, tmp_path / "out.graph", input_format="common-crawl")
    assert nothing_left(tmp_path)


def test_common_crawl_requires_vertices_file(tmp_path: Path) -> None:
    edges = write_graph(tmp_path, VERTICES, EDGES)
    (tmp_path / "cc-main-domain-vertices.txt.gz").unlink()
    with pytest.raises(InputError, match=r"there is no vertices file next to .*\. Pass both"):
        cocite.ingest(edges, tmp_path / "out.graph", input_format="common-crawl")
