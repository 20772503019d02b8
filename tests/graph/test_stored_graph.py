"""The stored graph against a plain oracle, and the counts that it reports."""

import json
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocite import Graph
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.graph import graph
from cocite.graph.graph import LEAST, Hub, hubs_in_words, hubs_of
from cocite.graph.name_files import IntegerNames
from cocite.io import tables
from tests.conftest import MakeGraph, Shell
from tests.io.plain import TURNS, assert_stored, links, nothing_left, read, read_parquet
from tests.stored import can_store, store

PLAIN = {"delimiter": "tab", "header": "no"}
TEXT = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters=TURNS), min_size=1, max_size=5
).filter(lambda name: name == name.strip(" ") and not name.startswith("#"))
INTEGER = st.one_of(st.integers(0, 12), st.integers(0, 2**64 - 1)).map(str)
URL = st.builds(
    "{}://{}{}{}".format,
    st.sampled_from(["http", "HTTPS"]),
    st.sampled_from(["a.com", "www.a.com", "b.org", "A.com", "me:pw@b.org", "a", "[::1]", "a,com"]),
    st.sampled_from(["", ":80", ":8080"]),
    st.sampled_from(["", "/", "/x", "/x?q=.://", "?a@b", "#c", "/é"]),
)


def rows_of(names: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(st.tuples(names, names), max_size=25)


@settings(max_examples=12)
@given(
    rows=st.one_of(rows_of(TEXT), rows_of(INTEGER), rows_of(st.one_of(URL, TEXT, INTEGER))),
    piece=st.sampled_from([1, 3, 1 << 21]),
    nodes=st.lists(INTEGER, max_size=4),
)
def test_ingest_equals_plain_oracle(
    tmp_path: Path, rows: list[tuple[str, str]], piece: int, nodes: list[str]
) -> None:
    (tmp_path / "nodes.tsv").write_text("".join(f"{node}\n" for node in nodes))
    content = "".join(f"{a}\t{b}\n" for a, b in rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_PIECE", piece)
        if not rows and not nodes:
            with pytest.raises(UnrecognizedInput, match="there are no links"):
                read(tmp_path, content, nodes=tmp_path / "nodes.tsv", **PLAIN)
            return
        graph = read(tmp_path, content, nodes=tmp_path / "nodes.tsv", **PLAIN)
    assert_stored(graph, rows, nodes)


def test_integer_names_do_not_wrap_at_type_limits(make_graph: MakeGraph) -> None:
    limits = [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 0]
    rows = [(str(a), str(b)) for a in limits for b in limits]
    graph = make_graph(rows)
    assert graph.info().names == "integers"
    assert_stored(graph, rows)


@pytest.mark.parametrize("name", [str(2**64), "-1", "007", "7.0"])
def test_one_noninteger_name_makes_names_text(make_graph: MakeGraph, name: str) -> None:
    rows = [("7", name), ("10", "9")]
    graph = make_graph(rows)
    assert graph.info().names == "text"
    assert_stored(graph, rows)
    assert list(graph.names) == sorted(["7", name, "10", "9"])


def test_integer_names_from_zero_are_dense(make_graph: MakeGraph) -> None:
    graph = make_graph([(2, 0), (1, 0)])
    assert graph.info().names == "integers 0 to n - 1"
    assert not any(name.startswith("names.") for name in graph.store.manifest.files)
    assert_stored(graph, [("2", "0"), ("1", "0")])


def test_text_nodes_file_makes_names_text(tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("x\n")
    graph = read(tmp_path, "10\t9\n", nodes=tmp_path / "more.tsv", **PLAIN)
    assert list(graph.names) == ["10", "9", "x"]


def test_info_counts_duplicates_and_self_loops(make_graph: MakeGraph) -> None:
    info = make_graph([("a", "b"), ("a", "b"), ("b", "a"), ("c", "c"), ("c", "c")]).info()
    assert (info.rows, info.edges, info.duplicates, info.self_loops) == (5, 2, 1, 2)
    assert (info.nodes, info.isolated) == (3, 1)
    assert (info.without_in_links, info.without_out_links) == (1, 1)


def test_keep_self_loops_keeps_loops(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("c", "c"), ("c", "c")], keep_self_loops=True)
    assert links(graph) == [("a", "b"), ("c", "c")]
    info = graph.info()
    assert (info.rows, info.edges, info.duplicates, info.self_loops) == (3, 2, 1, 0)
    assert graph.store.facts["self_loops_kept"] is True


def test_undirected_stores_links_both_ways(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b"), ("b", "a"), ("b", "c"), ("c", "c")], undirected=True)
    assert links(graph) == [("b", "a"), ("a", "b"), ("c", "b"), ("b", "c")]
    info = graph.info()
    assert (info.rows, info.edges, info.duplicates, info.self_loops) == (4, 4, 2, 2)
    assert 2 * info.rows == info.edges + info.duplicates + info.self_loops


def test_info_names_largest_degrees(make_graph: MakeGraph) -> None:
    info = make_graph([("a", "hub"), ("b", "hub"), ("a", "b"), ("a", "c")]).info()
    assert (info.largest_in_degree, info.largest_in_degree_node) == (2, "hub")
    assert (info.largest_out_degree, info.largest_out_degree_node) == (3, "a")


def test_nodes_file_adds_isolated_nodes(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text('name,kind\n"z, z",1\na,2\n')
    graph = read(tmp_path, "a\tb\n", nodes=tmp_path / "nodes.csv")
    assert list(graph.names) == ["a", "b", "z, z"]
    assert graph.info().isolated == 1
    assert graph.info().rows == 1


def test_ingest_of_equal_input_gives_equal_bytes(tmp_path: Path) -> None:
    first = read(tmp_path, "a\tb\nc\td\n", threads=1)
    manifest = (first.path / "manifest.json").read_bytes()
    second = read(tmp_path, "a\tb\nc\td\n", threads=2)
    assert (second.path / "manifest.json").read_bytes() == manifest
    other = read(tmp_path, "c\td\na\tb\na\tb\n")
    assert other.digest == first.digest
    assert read(tmp_path, "a\tb\nc\te\n").digest != first.digest


def test_graph_repr_gives_path_and_size(make_graph: MakeGraph) -> None:
    graph = make_graph([("a", "b")])
    assert repr(graph) == f"Graph({str(graph.path)!r}, nodes=2, edges=1)"
    assert repr(Graph.open(graph.path)) == repr(graph)


@pytest.mark.parametrize(
    ("query", "expected", "names"),
    [
        ("SELECT 5 AS a, 7 AS b", [("5", "7")], "integers"),
        ("SELECT 18446744073709551615::UBIGINT, 1::UTINYINT", [(str(2**64 - 1), "1")], "integers"),
        ("SELECT -5 AS a, 7 AS b", [("-5", "7")], "text"),
        ("SELECT 'é b' AS a, '007' AS b", [("é b", "007")], "text"),
        ("SELECT 5 AS a, '007' AS b, 9 AS c", [("5", "007")], "text"),
        ("SELECT 5 AS a, 7 AS row, 8 AS file_row_number", [("5", "7")], "integers"),
    ],
)
def test_parquet_links_come_from_first_columns(
    tmp_path: Path, query: str, expected: list[tuple[str, str]], names: str
) -> None:
    graph = read_parquet(tmp_path, query)
    assert (links(graph), graph.info().names) == (expected, names)


@pytest.mark.parametrize("columns", [("c", "a"), (3, 1), ("c", "1")])
def test_parquet_columns_by_name_or_number(tmp_path: Path, columns: tuple[str | int, ...]) -> None:
    assert links(read_parquet(tmp_path, "SELECT 1 AS a, 2 AS b, 3 AS c", columns=columns)) == [
        ("3", "1")
    ]


@pytest.mark.parametrize(
    ("query", "columns", "error", "message"),
    [
        ("1 AS a, 2 AS b", ("a", "x"), UsageError, "has no column 'x'; its columns are 'a', 'b'"),
        ("1 AS a, 2 AS b", ("a", 1), UsageError, "one column is used twice"),
        ("1 AS a", (), InputError, "has 1 columns; a link needs two"),
        ("1 AS a, 2 AS b WHERE false", (), UnrecognizedInput, "there are no links: .* is empty"),
    ],
)
def test_parquet_without_links_is_refused(
    tmp_path: Path, query: str, columns: tuple[str | int, ...], error: Any, message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        read_parquet(tmp_path, f"SELECT {query}", columns=columns)
    assert "links.parquet" in str(raised.value)
    assert nothing_left(tmp_path)


def test_parquet_reports_bad_rows(tmp_path: Path) -> None:
    query = (
        "SELECT unnest(['a', 'b', '', 'd', 'e']) AS a, unnest(['x', NULL, 'y', 'z\t', 'q']) AS b"
    )
    with pytest.raises(MalformedRow, match=r"links\.parquet:2: a null, an empty name, ") as caught:
        read_parquet(tmp_path, query)
    assert caught.value.content == "['b', None]"
    with pytest.raises(InputError, match="has 3 bad rows and 2 good ones"):
        read_parquet(tmp_path, query, bad_rows="few")
    graph = read_parquet(tmp_path, query, bad_rows="all")
    assert links(graph) == [("e", "q"), ("a", "x")]
    (source,) = graph.store.facts["sources"]
    assert source["bad_rows"] == {"bad value": 3}
    assert [text.split(":")[0] for text in source["examples"]] == ["row 2", "row 3", "row 4"]


@pytest.mark.parametrize("file", ["b=7/links.parquet", "links[1].parquet", "it's.parquet"])
def test_parquet_path_is_no_pattern(tmp_path: Path, file: str) -> None:
    assert links(read_parquet(tmp_path, "SELECT 1 AS a, 2 AS b", file)) == [("1", "2")]


# -- graphs of tests, stored without ingest ------------------------------------------------

SIMPLE = st.one_of(
    st.integers(0, 6).map(str),
    st.sampled_from(["a", "B", "b", "page 3", "page 12", "007", "9x", "12345678901234567"]),
)


@settings(max_examples=15)
@given(
    rows=st.lists(
        st.tuples(SIMPLE, SIMPLE, st.sampled_from(["1", "0.1", "2.5", "3e7"])), max_size=9
    ),
    nodes=st.one_of(st.just([]), st.just([str(i) for i in range(7)]), st.lists(SIMPLE)),
    options=st.fixed_dictionaries(
        {},
        optional={
            "weight_column": st.sampled_from([3, "3"]),
            "undirected": st.booleans(),
            "keep_self_loops": st.booleans(),
        },
    ),
)
def test_store_equals_ingest(
    tmp_path: Path, rows: list[tuple[str, ...]], nodes: list[str], options: dict[str, Any]
) -> None:
    """Files are equal to the byte, and facts except for the sources of links."""
    if not rows and (not nodes or "weight_column" in options):
        return
    given_rows = rows if "weight_column" in options else [row[:2] for row in rows]
    assert can_store(given_rows, nodes, options)
    content = "".join("\t".join(row) + "\n" for row in given_rows)
    (tmp_path / "nodes.tsv").write_text("".join(f"{node}\n" for node in nodes))
    expected = read(tmp_path, content, nodes=tmp_path / "nodes.tsv", **PLAIN, **options)
    actual = store(Path(mkdtemp(dir=tmp_path)) / "g", given_rows, nodes, **options)
    assert actual.store.manifest.files == expected.store.manifest.files
    assert actual.store.facts == expected.store.facts | {"sources": []}
    assert {f.name: f.read_bytes() for f in actual.path.iterdir() if f.name != "manifest.json"} == {
        f.name: f.read_bytes() for f in expected.path.iterdir() if f.name != "manifest.json"
    }


@pytest.mark.parametrize(
    ("row", "options"),
    [
        (("a b ", "c"), {}),
        (("#a", "c"), {}),
        (("http://a.org/", "c"), {}),
        (("K\u00f6ln", "c"), {}),
        (("a", ""), {}),
        (("a", "c", "0"), {"weight_column": 3}),
        (("a", "c", "1"), {}),
        (("a", "c"), {"delimiter": "comma"}),
    ],
)
def test_can_store_refuses_other_input(row: tuple[str, ...], options: dict[str, Any]) -> None:
    assert not can_store([row], [], options)


# -- hubs ------------------------------------------------------------------------------


Edges = list[tuple[str, str]]


def site(pages: int = 300) -> Edges:
    """Pages in a ring, most linked by an index page; half of them link to a footer page."""
    ring = [(f"p{i}", f"p{(i + 1) % pages}") for i in range(pages)]
    contents = [("index", f"p{i}") for i in range(pages - 20)]
    return ring + contents + [(f"p{i}", "foot") for i in range(pages // 2)]


@settings(max_examples=60)
@given(
    sizes=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), max_size=90),
    piece=st.sampled_from([7, 1 << 20]),
)
def test_hubs_of_follows_rule(sizes: list[tuple[int, int]], piece: int) -> None:
    """Degrees need not form a graph."""
    ins = np.array([into for into, _ in sizes], np.int64)
    outs = np.array([out for _, out in sizes], np.int64)
    offsets = np.concatenate([[0], np.cumsum(ins)]).astype(np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "_PIECE", piece)
        found = hubs_of(offsets, outs.astype(np.uint32), IntegerNames(len(sizes), None))
    mean = ins.sum() / max(1, len(sizes))
    expected = sorted(
        (-max(into, out), node)
        for node, (into, out) in enumerate(sizes)
        if max(into, out) > len(sizes) / 5 and max(into, out) >= LEAST
        if max(into, out) >= 2 * mean
    )
    assert found == tuple(Hub(str(node), *sizes[node]) for _, node in expected)


def test_hubs_are_empty_for_small_or_dense_graphs(make_graph: MakeGraph) -> None:
    assert make_graph([("index", f"p{i}") for i in range(LEAST - 1)]).hubs == ()
    assert make_graph([("index", f"p{i}") for i in range(LEAST)]).hubs != ()
    nodes = range(60)
    assert make_graph([(a, b) for a in nodes for b in nodes if a != b]).hubs == ()


def test_hubs_in_words_names_few_and_counts_rest() -> None:
    hubs = [Hub(f"h{i}", 10 * i, 1000 - i) for i in range(5)]
    assert hubs_in_words(hubs[:1], 1200) == "h0 links to 1,000 of the 1,200 pages"
    assert hubs_in_words([Hub("x", 900, 800), hubs[1]], 1200) == (
        "900 of the 1,200 pages link to x, h1 links to 999"
    )
    rest = "linked with more than a fifth of all pages"
    assert hubs_in_words(hubs[:4], 1200).endswith(f"h2 links to 998, and 1 more page is {rest}")
    assert hubs_in_words(hubs, 1200).endswith(f", and 2 more pages are {rest}")


def test_ingest_and_info_name_hubs(tmp_path: Path, shell: Shell) -> None:
    links, graph = tmp_path / "links.tsv", str(tmp_path / "g")
    links.write_text("".join(f"{a}\t{b}\n" for a, b in site()))
    sentence = "index links to 280 of the 302 pages, 150 link to foot"
    out, err = shell(["ingest", links, "-o", graph, "--format", "json"])
    assert "exclude" not in err  # cocite index gives this advice
    assert json.loads(out)["hubs"] == [
        {"node": "index", "in_links": 0, "out_links": 280},
        {"node": "foot", "in_links": 150, "out_links": 0},
    ]
    assert sentence in " ".join(shell(["info", graph]).out.split())
    assert shell(["index", graph, "-o", tmp_path / "i"]).err.count(sentence) == 1


def test_ingest_prints_no_advice_if_degrees_are_small(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "links.tsv").write_text("".join(f"p{i}\tp{i + 1}\n" for i in range(300)))
    out, err = shell(["ingest", tmp_path / "links.tsv", "-o", tmp_path / "g"])
    assert "hubs" not in out
    assert "exclude" not in err
