"""GraphML, GEXF, GML and node-link JSON: nodes with ids and labels, and links."""

import bz2
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import InputError, MalformedRow, UsageError
from tests.io.plain import links, read, refused, source_of, titles_of, weights_of


def write_node_link(graph: Any, path: Path) -> None:
    path.write_text(json.dumps(nx.node_link_data(graph, edges="links"), indent=1))


WRITERS: dict[str, Callable[[Any, Path], None]] = {
    "graphml": nx.write_graphml,
    "gexf": nx.write_gexf,
    "gml": nx.write_gml,
    "node-link": write_node_link,
}
NAMES = st.text(
    st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=5
)


@pytest.mark.long
@settings(max_examples=20)
@given(
    form=st.sampled_from([*WRITERS]),
    names=st.lists(NAMES, min_size=1, max_size=6, unique=True),
    draws=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=9
    ),
    directed=st.booleans(),
)
def test_graph_readers_match_networkx(
    tmp_path: Path, form: str, names: list[str], draws: list[tuple[int, int, int]], directed: bool
) -> None:
    """Isolated nodes and weights included; undirected links are stored both ways."""
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(names)
    for a, b, weight in draws:
        graph.add_edge(names[a % len(names)], names[b % len(names)], weight=weight)
    path = tmp_path / "x"
    WRITERS[form](graph, path)
    stored = cocite.ingest(
        path, tmp_path / "g", weight_column="weight", keep_self_loops=True, overwrite=True
    )
    digraph = nx.DiGraph(graph)
    expected = {(a, b): float(digraph[a][b]["weight"]) for a, b in digraph.edges}
    assert weights_of(stored) == expected
    assert set(stored.names) == set(names)
    assert stored.info().rows == source_of(stored)["rows"] == len(expected)
    symmetric = cocite.ingest(path, tmp_path / "g", undirected=True, overwrite=True)
    pairs = {(a, b) for a, b in digraph.edges if a != b}
    assert set(links(symmetric)) == pairs | {(b, a) for a, b in pairs}


GRAPHML = """<?xml version="1.0"?>
<g:graphml xmlns:g="http://graphml.graphdrawing.org/xmlns">
<g:key id="d0" for="node" attr.name="name" attr.type="string"/>
<g:key id="d1" for="edge" attr.name="w" attr.type="double"><g:default>2.5</g:default></g:key>
<g:graph edgedefault="undirected">
<g:node id="n0"><g:data key="d0"> Lion
 &amp; Co </g:data></g:node>
<g:node id="n1"><g:data key="d0">Zebra</g:data><g:graph edgedefault="directed">
  <g:node id="n1::0"><g:data key="d0">Foal</g:data></g:node>
  <g:edge source="n1::0" target="n1"/></g:graph></g:node>
<g:edge source="n0" target="n1"><g:data key="d1">4</g:data></g:edge>
<g:edge source="n1" target="n0" directed="true"><g:data key="d1">0.5</g:data></g:edge>
</g:graph></g:graphml>
"""
GEXF = """<gexf version="1.3"><graph defaultedgetype="directed">
<attributes class="edge">
<attribute id="0" title="hits"><default>7</default></attribute></attributes>
<nodes><node id="0" label="Lion"/><node id="1" label="Zebra"/><node id="2" label="Foal"/></nodes>
<edges>
<edge id="0" source="0" target="1"><attvalues><attvalue for="0" value="3"/></attvalues></edge>
<edge id="1" source="1" target="2" type="undirected" weight="2"/>
<edge id="2" source="2" target="0" type="mutual"/>
</edges></graph></gexf>
"""
GML = """Creator "me" Version 1
graph [ comment "a ] b" directed 1
  node [ id 1 label "Lion &amp; Co" graphics [ id 9 label "no" x 1.5 ] ] # said
  node [ id 2 label "Zebra
big" ]
  edge [ source 1 target 2 value 2 label "eats" ]
  edge [ source 2 target 1 value 0.5 ]
]
"""
D3 = {
    "links": [{"source": 0, "target": 1, "value": 3}, [1, 2, 2]],
    "nodes": [{"name": "Lion"}, {"name": "Zebra"}, {"name": "Foal"}],
}
CASES: list[tuple[str, str, str, dict[str, str], dict[tuple[str, str], float]]] = [
    (
        "graphml",
        GRAPHML,
        "labels; links without direction are stored both ways",
        {"weight_column": "w"},
        {("Lion & Co", "Zebra"): 4, ("Zebra", "Lion & Co"): 4.5, ("Foal", "Zebra"): 2.5},
    ),
    (
        "gexf",
        GEXF,
        "labels; links without direction are stored both ways",
        {"weight_column": "weight"},
        {
            ("Lion", "Zebra"): 1,
            ("Zebra", "Foal"): 2,
            ("Foal", "Zebra"): 2,
            ("Foal", "Lion"): 1,
            ("Lion", "Foal"): 1,
        },
    ),
    (
        "gexf",
        GEXF.replace('"undirected"', '"directed"').replace("mutual", "directed"),
        "labels",
        {"weight_column": "hits"},
        {("Lion", "Zebra"): 3, ("Zebra", "Foal"): 7, ("Foal", "Lion"): 7},
    ),
    (
        "gml",
        GML,
        "labels",
        {"weight_column": "value"},
        {("Lion & Co", "Zebra big"): 2, ("Zebra big", "Lion & Co"): 0.5},
    ),
    (
        "node-link",
        json.dumps(D3),
        "labels",
        {"weight_column": "value"},
        {("Lion", "Zebra"): 3, ("Zebra", "Foal"): 2},
    ),
]


@pytest.mark.parametrize(("form", "content", "note", "options", "expected"), CASES)
def test_graph_readers_use_labels_and_weights(
    tmp_path: Path,
    form: str,
    content: str,
    note: str,
    options: dict[str, str],
    expected: dict[tuple[str, str], float],
) -> None:
    graph = read(tmp_path, bz2.compress(content.encode()), "any.txt", **options)
    assert weights_of(graph) == expected
    assert source_of(graph)["read_as"].endswith(f", nodes are named by their {note}")
    graph = read(tmp_path, content, "any.txt", input_format=form)
    assert graph.in_weights is None
    assert set(links(graph)) == set(expected)


@pytest.mark.parametrize(
    ("labels", "names", "reason"),
    [
        (['label "x"', 'label "x"', 'label "y"'], "1 2 3", "several have the same label, such"),
        (['label "x"', "", 'label "y"'], "1 2 3", "labels are missing (1)"),
        (["", "", ""], "1 2 3", ""),
        (['label "7"', 'label "8"', 'label "9"'], "7 8 9", ""),
        ([f'label "{"z" * 66_000}"', "label 1", "label 2"], "1 2 3", "labels are too long (1)"),
    ],
)
def test_gml_uses_unique_labels_as_names(
    tmp_path: Path, labels: list[str], names: str, reason: str
) -> None:
    nodes = " ".join(f"node [ id {i} {label} ]" for i, label in enumerate(labels, 1))
    graph = read(tmp_path, f"graph [ {nodes} edge [ source 1 target 2 ] ]")
    assert list(graph.names) == names.split()
    assert graph.info().names == "integers"
    assert f"because {reason}" in source_of(graph)["read_as"] or not reason
    titles = [label.removeprefix("label ").strip('"') for label in labels]
    expected = [title if 0 < len(title) < 66_000 else None for title in titles]
    assert titles_of(graph) == expected if reason else graph.titles is None


NODE = "node [ id 1 ] node [ id 2 ] "
BAD = [
    (
        "graphml",
        GRAPHML.replace('n1::0" target', 'none" target'),
        10,
        "a link to or from a missing",
    ),
    ("graphml", GRAPHML.replace('id="n1">', 'id="n0">'), 8, "a repeated node: 'n0'"),
    ("graphml", GRAPHML.replace(' id="n0"', ""), 6, "an empty name"),
    ("graphml", GRAPHML.replace(">4<", ">-4<"), 11, "not a number from"),
    ("gexf", GEXF.replace('target="2"', 'target="5"'), 7, "missing node: '1 -> 5'"),
    ("gml", "graph [\n" + NODE + "\nedge [ source 1 target 3 ]\n]", 3, "missing node: '1 -> 3'"),
    ("gml", "graph [\n" + NODE + "\nedge [ source 1 ]\n]", 3, "an empty name"),
    (
        "node-link",
        '{"nodes": [{"id": "a"},\n{"id": [1]}],\n"links": []}',
        2,
        "a node whose id is neither",
    ),
    (
        "node-link",
        '{"nodes": ["a", "b"],\n"links": [\n["a", "b"], {"source": "a"}]}',
        2,
        "not a link with",
    ),
]


@pytest.mark.parametrize(("form", "content", "line", "problem"), BAD)
def test_graph_readers_report_line_of_bad_row(
    tmp_path: Path, form: str, content: str, line: int, problem: str
) -> None:
    weight = {"weight_column": "w"} if "-4<" in content else {}
    error = refused(tmp_path, MalformedRow, content, "x", **weight)
    assert str(error).startswith(f"{tmp_path}/x:{line}: ")
    assert problem in str(error)
    assert error.exit_code == 1
    (tmp_path / "more.tsv").write_text("y\tz\t1\n")
    files = [tmp_path / "x", tmp_path / "more.tsv"] if not weight else [tmp_path / "x"]
    graph = cocite.ingest(files, tmp_path / "g", bad_rows="all", **weight)
    assert graph.info().bad_rows >= 1
    assert f"line {line}: " in graph.store.facts["sources"][0]["examples"][0]


BROKEN = [
    ("graphml", GRAPHML[:-20], 13, "unclosed token, at column 1: this is not well-formed XML"),
    ("graphml", GRAPHML.replace("</g:node>\n<g:edge", "</g:nod>\n<g:edge"), 10, "mismatched tag"),
    ("gexf", GEXF.replace('label="Zebra"', "label=Zebra"), 4, "not well-formed (invalid token)"),
    (
        "graphml",
        GRAPHML.replace("edge>\n</g:graph>", "edge><g:hyperedge/></g:graph>"),
        12,
        "a hyper",
    ),
    ("gml", GML[:-3], 7, "it ends within brackets: this is not GML"),
    ("gml", GML.replace('"Zebra\nbig"', "Zebra big"), 4, "']' in place of a key"),
    ("gml", GML + "]", 9, "']' in place of a key"),
    ("gml", GML + 'x "open', 9, "an unclosed string"),
    (
        "node-link",
        '{"nodes": [{"id": 1}],\n"links": [{"source": 1 1}]}',
        2,
        "Expecting ',' delimiter",
    ),
    ("node-link", '{"nodes": [{"id": 1}],\n"links": [{"source": 1, "target": 1}', 2, "Expecting"),
    ("node-link", '{"nodes": [{"id": 1}],\n\n"links": [] "x": 1}', 3, "Expecting ',' delimiter"),
    ("node-link", '{"nodes": [1], "links": []}\n{}', 2, "Extra data, at column 1"),
]


@pytest.mark.parametrize(("form", "content", "line", "problem"), BROKEN)
def test_graph_readers_report_line_of_syntax_error(
    tmp_path: Path, form: str, content: str, line: int, problem: str
) -> None:
    error = refused(tmp_path, InputError, content, "x", input_format=form)
    assert str(error).startswith(f"{tmp_path}/x:{line}: ")
    assert problem in str(error)


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">',
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;',
        "<!ATTLIST a b CDATA 'xx'>",  # each <a/> could expand to a default of a megabyte
    ],
)
@pytest.mark.parametrize("content", [GRAPHML, GEXF])
def test_xml_refuses_entities_and_defaults(tmp_path: Path, declared: str, content: str) -> None:
    root = "g:graphml" if content == GRAPHML else "gexf"
    content = content.removeprefix('<?xml version="1.0"?>\n')
    hostile = f"<!DOCTYPE {root} [\n{declared}]>\n" + content.replace("Zebra", "&a;")
    form = "graphml" if root != "gexf" else "gexf"
    with pytest.raises(InputError, match=r"x:2: the document has entities or default"):
        read(tmp_path, hostile, "x", input_format=form)
    with pytest.raises(InputError, match=r"x:\d+: (the document|undefined entity)"):
        read(tmp_path, content.replace("Zebra", "&b;"), "x", input_format=form)


@pytest.mark.parametrize(("content", "attributes"), [(GRAPHML, "'w'"), (GEXF, "'weight', 'hits'")])
def test_weight_column_reports_missing_attribute(
    tmp_path: Path, content: str, attributes: str
) -> None:
    message = f"no link attribute 'mass'; it has {attributes}"
    refused(tmp_path, UsageError, content, weight_column="mass", match=message)


@pytest.mark.parametrize("form", ["graphml", "gexf", "gml"])
def test_graph_readers_refuse_file_beyond_memory(tmp_path: Path, form: str) -> None:
    content = next(content for kind, content, *_ in CASES if kind == form)
    large = content + " " * (18 << 20)
    message = r"x has more than 17\.5 MB; reading it"
    refused(tmp_path, InputError, large, "x", memory="350MB", match=message)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("graphml", "<graphml></graphml>"),
        ("gexf", '<gexf xmlns="http://gexf.net/1.3"><graph><nodes/><edges/></graph></gexf>'),
        ("node-link", '{"nodes": [], "links": []}'),
        ("gml", "graph [ ]"),
        ("gml", "a\tb\nc\td\n"),
    ],
)
def test_graph_readers_refuse_empty_graph(tmp_path: Path, kind: str, content: str) -> None:
    refused(tmp_path, InputError, content, input_format=kind, match="there are no links")


LARGE = b"x" * (1 << 24)


@pytest.mark.parametrize(
    ("begin", "block"),
    [(b"<graphml><!--", LARGE), (b"<graphml>", b"<a>" * (1 << 22)), (b"<graphml><a b='", LARGE)],
    ids=["comment", "deep", "attribute"],
)
def test_graphml_refuses_xml_bomb(tmp_path: Path, begin: bytes, block: bytes) -> None:
    """The size is checked before parsing."""
    one = gzip.compress(block, 6)
    content = gzip.compress(begin) + one * 128
    options = {"input_format": "graphml", "memory": "500MB"}
    refused(tmp_path, InputError, content, "x.gz", match="has more than 25", **options)


@pytest.mark.parametrize("encoding", ["hex", "idna", "utf-7", "none-such", "undefined", "big5"])
def test_graphml_reports_unreadable_encoding(tmp_path: Path, encoding: str) -> None:
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    content = f"{head}<graphml><graph><node id='\xe9'/></graph></graphml>"
    message = r"x\.graphml: its encoding cannot be read \(.*UTF-8"
    refused(tmp_path, InputError, content, "x.graphml", match=message)
