"""Common Crawl's web graphs: vertices with reversed names, and edges between their ids."""

import gzip
from pathlib import Path

import pytest

import cocite
from cocite.errors import InputError, MalformedRow
from tests.io.plain import links, nothing_left

VERTICES = ["0\tcom.example\t3", "1\torg.wiki\t1", "2\tuk.co.bbc\t2", "9\tcom.alone\t1"]
EDGES = ["0\t1", "0\t2", "1\t0", "2\t2"]


def written(folder: Path, vertices: list[str], edges: list[str], end: str = ".txt.gz") -> Path:
    for name, rows in (("vertices", vertices), ("edges", edges)):
        data = "".join(row + "\n" for row in rows).encode()
        path = folder / f"cc-main-domain-{name}{end}"
        path.write_bytes(gzip.compress(data) if end.endswith(".gz") else data)
    return folder / f"cc-main-domain-edges{end}"


@pytest.mark.parametrize("end", [".txt.gz", ".txt"])
@pytest.mark.parametrize("hosts", [True, False])
def test_names_are_as_people_write_them(tmp_path: Path, end: str, hosts: bool) -> None:
    vertices = VERTICES if not hosts else [row.rpartition("\t")[0] for row in VERTICES]
    edges = written(tmp_path, vertices, EDGES, end)
    graph = cocite.ingest(edges, tmp_path / "g")
    example, wiki = "example.com", "wiki.org"
    assert set(links(graph)) == {(example, wiki), (example, "bbc.co.uk"), (wiki, example)}
    assert sorted(graph.names) == ["alone.com", "bbc.co.uk", "example.com", "wiki.org"]
    assert (graph.info().rows, graph.info().self_loops) == (4, 1)
    both = cocite.ingest(str(tmp_path / "cc-*"), tmp_path / "h")
    assert links(both) == links(graph)


def test_vertices_and_edges_may_be_several_files(tmp_path: Path) -> None:
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
def test_what_does_not_fit_is_named(
    tmp_path: Path, vertices: list[str], edges: list[str], message: str
) -> None:
    path = written(tmp_path, vertices, edges)
    with pytest.raises((MalformedRow, InputError), match=message):
        cocite.ingest(path, tmp_path / "out.graph", input_format="common-crawl")
    assert nothing_left(tmp_path)


def test_vertices_are_needed(tmp_path: Path) -> None:
    edges = written(tmp_path, VERTICES, EDGES)
    (tmp_path / "cc-main-domain-vertices.txt.gz").unlink()
    with pytest.raises(InputError, match=r"there is no vertices file next to .*\. Pass both"):
        cocite.ingest(edges, tmp_path / "out.graph", input_format="common-crawl")
