"""Links in memory: all objects round-trip, and invalid links are rejected."""

import datetime
import math
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import igraph
import networkx
import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.errors import InputError, OutputExists, UsageError
from cocite.io.objects import columns_of
from tests.io.plain import links as stored_links

TEXTS = st.text("ab é/", min_size=1, max_size=3).map(lambda text: text.strip(" ")).filter(bool)
IDS = st.integers(0, 9) | st.integers(2**63, 2**64 - 1)
SMALL = st.integers(0, 9)
MIXED = st.tuples(st.integers(-3, 3), TEXTS) | st.dates() | st.fractions() | st.integers(0, 5)
KINDS = st.sampled_from([TEXTS, IDS, MIXED])
WEIGHTS = st.integers(1, 64).map(lambda eighths: eighths / 8)
"""Exact in float32, and so are their sums."""
FEW = settings(max_examples=8)


def edges_of(names: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Any, Any]]]:
    return st.lists(st.tuples(names, names), min_size=1, max_size=12)


def distinct_as_text(links: list[tuple[Any, Any]]) -> bool:
    names = {name for link in links for name in link[:2]}
    return len({str(name) for name in names}) == len(names)


def names_of(graph: Graph) -> list[Any]:
    return list(graph.names)


def links_in(graph: Graph) -> dict[tuple[Any, Any], float]:
    """Links by name, with their weights or 1."""
    weights = np.ones(graph.edges) if graph.in_weights is None else graph.in_weights
    return dict(zip(stored_links(graph), weights.tolist(), strict=True))


@FEW
@given(st.data())
def test_ingest_round_trips_pairs(data: st.DataObject) -> None:
    names = data.draw(KINDS)
    links = data.draw(edges_of(names).filter(distinct_as_text))
    graph = cocite.ingest(links, keep_self_loops=True)
    assert set(links_in(graph)) == set(links)
    assert graph.nodes == len({name for link in links for name in link})
    assert {type(name) for name in graph.names} == {type(n) for link in links for n in link}
    for name in graph.names:
        assert graph.names[graph.names.id(name)] == name
        assert name in graph.names
    assert graph.store.facts["dropped"]["duplicates"] == len(links) - len(set(links))


TABLES: dict[str, Callable[[Any], Any]] = {
    "pandas": pandas.DataFrame,
    "polars": lambda columns: polars.DataFrame(columns, strict=False),
    "arrow": pyarrow.table,
}
EXPORTS: dict[str, Callable[[Graph], Any]] = {
    "pandas": lambda graph: graph.to_pandas().to_dict("list"),
    "polars": lambda graph: graph.to_polars().to_dict(as_series=False),
    "arrow": lambda graph: graph.to_arrow().to_pydict(),
}


@settings(max_examples=12)
@given(st.sampled_from(list(TABLES)), st.data())
def test_ingest_round_trips_tables(kind: str, data: st.DataObject) -> None:
    names = data.draw(st.sampled_from([TEXTS, SMALL]))
    links = data.draw(edges_of(names))
    weights = data.draw(st.lists(WEIGHTS, min_size=len(links), max_size=len(links)))
    sources, targets = ([link[side] for link in links] for side in (0, 1))
    table = TABLES[kind]({"w": weights, "from": sources, "to": targets})
    chosen: dict[str, Any] = {"columns": "from,to", "keep_self_loops": True}
    undirected = data.draw(st.booleans())
    graph = cocite.ingest(table, weight_column="w", undirected=undirected, **chosen)
    total: dict[tuple[Any, Any], float] = defaultdict(float)
    for link, weight in zip(links, weights, strict=True):
        total[tuple(sorted(link)) if undirected else link] += weight
    back = EXPORTS[kind](graph)
    assert list(back) == ["source", "target", "weight"]
    pairs = zip(back["source"], back["target"], strict=True)
    found = dict(zip(pairs, back["weight"], strict=True))
    assert len(found) == len(back["weight"])
    if undirected:
        found = {tuple(sorted(link)): weight for link, weight in found.items()}
    assert found == total
    plain = cocite.ingest(table, **chosen)
    assert plain.in_weights is None
    assert list(EXPORTS[kind](plain)) == ["source", "target"]
    assert set(links_in(plain)) == set(links)


@pytest.mark.long
@FEW
@given(st.integers(1, 6), st.data())
def test_ingest_round_trips_scipy_matrices(nodes: int, data: st.DataObject) -> None:
    indices = st.integers(0, nodes - 1)
    weights = data.draw(st.just(st.just(1.0)) | st.just(WEIGHTS))
    entries = data.draw(st.dictionaries(st.tuples(indices, indices), weights))
    dense = np.zeros((nodes, nodes))
    for cell, weight in entries.items():
        dense[cell] = weight
    kind = data.draw(st.sampled_from(["csr_array", "csc_matrix", "coo_array", "lil_matrix"]))
    matrix = getattr(scipy.sparse, kind)(dense)
    graph = cocite.ingest(matrix, keep_self_loops=True)
    assert graph.nodes == nodes
    assert (graph.in_weights is not None) == any(value != 1 for value in entries.values())
    back = graph.to_scipy()
    assert isinstance(back, scipy.sparse.csr_array)
    assert back.has_sorted_indices
    np.testing.assert_array_equal(back.toarray(), dense)
    names = [(node, "page") for node in range(nodes)]
    labeled = cocite.ingest(matrix, nodes=names, keep_self_loops=True)
    assert links_in(labeled) == {(names[a], names[b]): w for (a, b), w in entries.items()}


@pytest.mark.long
@FEW
@given(st.data())
def test_ingest_round_trips_networkx_graphs(data: st.DataObject) -> None:
    directed, multi, weighted = (data.draw(st.booleans()) for _ in range(3))
    classes = [networkx.Graph, networkx.DiGraph, networkx.MultiGraph, networkx.MultiDiGraph]
    original = classes[directed + 2 * multi]()
    names = data.draw(KINDS)
    links = data.draw(edges_of(names).filter(distinct_as_text))
    for a, b in links:
        original.add_edge(a, b, color="red", **({"weight": data.draw(WEIGHTS)} if weighted else {}))
    graph = cocite.ingest(original, keep_self_loops=True)
    back = graph.to_networkx()
    assert back.is_directed() == directed
    assert set(back.nodes) == set(original.nodes)
    total: Counter[Any] = Counter()
    for a, b, weight in original.edges(data="weight", default=1):
        total[(a, b) if directed else frozenset((a, b))] += weight
    found = {
        (a, b) if directed else frozenset((a, b)): weight
        for a, b, weight in back.edges(data="weight", default=1)
    }
    assert found == (total if weighted else dict.fromkeys(total, 1))
    assert "color" not in next(iter(back.edges(data=True)))[2]
    counted = cocite.ingest(original, count_duplicates=True, keep_self_loops=True)
    loops = sum(a == b for a, b in original.edges())
    directions = 1 if directed else 2
    assert counted.in_weights is not None
    assert counted.in_weights.sum() == directions * (original.number_of_edges() - loops) + loops


def edge_keys(graph: Any, directed: bool) -> list[tuple[int, int]]:
    return [link.tuple if directed else tuple(sorted(link.tuple)) for link in graph.es]


@FEW
@given(st.data())
def test_ingest_round_trips_igraph_graphs(data: st.DataObject) -> None:
    nodes = data.draw(st.integers(1, 6))
    directed, named, weighted = (data.draw(st.booleans()) for _ in range(3))
    indices = st.integers(0, nodes - 1)
    links = data.draw(st.lists(st.tuples(indices, indices), max_size=9))
    original = igraph.Graph(nodes, links, directed=directed)
    if named:
        original.vs["name"] = [f"page {node}" for node in range(nodes)]
    if weighted and links:
        original.es["weight"] = data.draw(
            st.lists(WEIGHTS, min_size=len(links), max_size=len(links))
        )
    back = cocite.ingest(original, keep_self_loops=True).to_igraph()
    assert back.vcount() == nodes
    assert back.is_directed() == directed
    assert ("name" in back.vs.attributes()) == named
    if named:
        assert back.vs["name"] == original.vs["name"]
    original.simplify(multiple=True, loops=False, combine_edges="sum")
    assert sorted(edge_keys(back, directed)) == sorted(edge_keys(original, directed))
    if "weight" in original.es.attributes() and original.ecount():
        weights = dict(zip(edge_keys(original, directed), original.es["weight"], strict=True))
        assert dict(zip(edge_keys(back, directed), back.es["weight"], strict=True)) == weights


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        (
            ["a", "b"],
            [
                *(pandas.Series(["a", "b"], dtype=kind) for kind in (None, object, "category")),
                *(polars.Series(["a", "b"], dtype=kind) for kind in (None, polars.Categorical)),
                pyarrow.array(["a", "b"]).dictionary_encode(),
                pyarrow.array(["a", "b"], pyarrow.large_string()),
            ],
        ),
        (
            [3, 5],
            [
                *(pandas.Series([3, 5], dtype=kind) for kind in ("Int64", "uint8", "category")),
                polars.Series([3, 5], dtype=polars.UInt16),
                pyarrow.array([3, 5], pyarrow.int8()),
            ],
        ),
    ],
)
def test_ingest_reads_names_from_any_column_type(names: list[Any], columns: list[Any]) -> None:
    for column in columns:
        library = type(column).__module__.split(".")[0].replace("pyarrow", "arrow")
        graph = cocite.ingest(TABLES[library]({"x": column, "y": column}), keep_self_loops=True)
        assert names_of(graph) == names


def test_ingest_accepts_arrays_batches_and_iterators() -> None:
    fields = np.array([(1, 2, 0.5)], [("a", "u4"), ("b", "u4"), ("w", "f4")])
    assert links_in(cocite.ingest(fields, weight_column="w")) == {(1, 2): 0.5}
    assert links_in(cocite.ingest(np.array([[1, 2, 0.5]]))) == {(1, 2): 0.5}
    assert links_in(cocite.ingest([("a", "b", 2)])) == {("a", "b"): 2.0}
    assert links_in(cocite.ingest(np.array([["a", "b"]]))) == {("a", "b"): 1.0}
    batches = pyarrow.table({"x": ["a"], "y": ["b"]}).to_reader()
    assert links_in(cocite.ingest(batches)) == {("a", "b"): 1.0}
    assert links_in(cocite.ingest(iter([("a", "b")]))) == {("a", "b"): 1.0}


def test_ingest_finds_columns_by_title(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "cocite")
    columns = {"id": ["7", "8"], "Target": ["b", "c"], "source": ["a", "a"], "weight": ["1", "2"]}
    frame = pandas.DataFrame(columns)
    array = frame.astype("U1").to_records(index=False)
    for links in (frame, polars.DataFrame(columns), pyarrow.table(columns), array):
        caplog.clear()
        assert set(links_in(cocite.ingest(links))) == {("a", "b"), ("a", "c")}
        assert "links go from 'source' to 'Target'" in caplog.text
    swapped = cocite.ingest(frame, columns=("Target", "source"))
    assert set(links_in(swapped)) == {("b", "a"), ("c", "a")}
    hits = cocite.related(frame, "b", columns=("Target", "source"))
    assert {hit.node for hit in hits} == {"a", "c"}


def test_ingest_nodes_adds_isolated_nodes() -> None:
    for nodes in (["z", "a"], np.array(["z"]), pandas.Series(["z"]), pyarrow.array(["z"])):
        graph = cocite.ingest([("a", "b")], nodes=nodes)
        assert names_of(graph) == ["a", "b", "z"]
    assert names_of(cocite.ingest([(1, 2)], nodes=[(0, 0)])) == [(0, 0), 1, 2]
    with pytest.raises(UsageError, match="nodes is 'z'; it must be a list"):
        cocite.ingest([("a", "b")], nodes="z")


def test_ingest_merges_equal_python_names() -> None:
    links = [
        ((1, np.int64(2)), "x"),
        ((1, 2), Fraction(1, 2)),
        ((1.0, 2), datetime.date(2026, 1, 1)),
    ]
    graph = cocite.ingest(links)
    assert graph.nodes == 4
    assert graph.names.id((1, 2)) == graph.names.id((1.0, 2.0)) == graph.names.id("(1, 2)")


NOT_LINKS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "mapping": (lambda: {"a": ["b"]}, UsageError, "dict contains no links"),
    "shape": (lambda: np.zeros((2, 5)), UsageError, r"a source and a target per row"),
    "one dimension": (lambda: np.zeros(5), UsageError, r"shape \(5,\)"),
    "one column": (lambda: pandas.DataFrame({"a": [1]}), InputError, "has 1 columns"),
    "one value": (lambda: [("a",)], UsageError, r"row 0 \(counting from 0\) has 1 values"),
    "texts": (lambda: [("a", "b"), "cd"], UsageError, r"row 1 \(counting from 0\) is 'cd'"),
    "not alike": (lambda: [("a", "b"), ("a", "b", 1)], UsageError, "the same length"),
    "list as name": (lambda: [(["a"], "b")], UsageError, r"\['a'\] is not a node name"),
    "bytes": (lambda: [(b"a", "b")], UsageError, "holds bytes"),
    "truth": (lambda: pandas.DataFrame({"a": [True], "b": [1]}), UsageError, "holds bool"),
    "floats": (
        lambda: pandas.DataFrame({"a": [1.5], "b": [1]}),
        UsageError,
        "whole numbers, 0 or more",
    ),
    "days": (lambda: np.array([["2020-01-01"] * 2], "M8[D]"), UsageError, "datetime64"),
    "half nodes": (lambda: np.array([[0.5, 1, 1]]), UsageError, "has the node 0.5"),
    "nothing": (list, UsageError, "there is no input: pass edge lists"),
    "missing": (lambda: [("a", "b"), (None, "b")], InputError, "row 1 .*source is missing"),
    "missing number": (
        lambda: pandas.DataFrame({"a": pandas.array([1, None], dtype="Int64"), "b": [1, 2]}),
        InputError,
        "row 1 .*source is missing",
    ),
    "nan": (lambda: [("a", math.nan)], InputError, "target is missing"),
    "empty": (lambda: [("", "b")], InputError, "source is empty"),
    "control": (lambda: [("a", "b\n")], InputError, "target has a control character"),
    "C1": (lambda: [("a", "b\x9b")], InputError, "target has a control character"),
    "turned": (
        lambda: [("a", "b\u202e")],
        InputError,
        r"row 0 .*target has U\+202E, which changes the text direction",
    ),
    "long": (lambda: [("a" * 65_536, "b")], InputError, "longer than 65,535 bytes"),
    "surrogate": (lambda: [("\udc80", "b")], InputError, "not Unicode"),
    "negative": (lambda: np.array([[1, -1]]), InputError, "target is a number below 0"),
    "negative pair": (lambda: [(1, 2), (1, -1)], InputError, "row 1 .*a number below 0"),
    "one text": (lambda: [(1, "1")], InputError, "are different names"),
    "no weight": (lambda: [("a", "b", math.nan)], InputError, "its weight is not a number"),
    "zero": (lambda: [("a", "b", 0)], InputError, "its weight is not a number"),
    "huge": (lambda: [("a", "b", 1e30)], InputError, "its weight is not a number"),
    "weight of text": (lambda: [("a", "b", "1")], UsageError, "weights must be numbers"),
}


@pytest.mark.parametrize("case", NOT_LINKS)
def test_ingest_rejects_invalid_links(case: str) -> None:
    make, error, message = NOT_LINKS[case]
    with pytest.raises(error, match=message):
        cocite.ingest(make())


def test_ingest_rejects_wrong_options(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]})
    square, pair = scipy.sparse.csr_array(np.ones((2, 2))), igraph.Graph(2, [(0, 1)])
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (frame, {"columns": "a,d"}, "has no column 'd'; its columns are 'a', 'b', 'c'"),
        (frame, {"columns": ["a"]}, "it must be two"),
        (frame, {"columns": ["a", "a"]}, "used twice"),
        (frame, {"weight_column": "c"}, "column 'c' contains text"),
        (frame, {"delimiter": "tab"}, "delimiter applies to files"),
        (5, {}, "int contains no links"),
        (square, {"weight_column": "w"}, "its values are the weights: omit columns and weight_c"),
        (pair, {"weight_column": "cost"}, "igraph graph have no attribute 'cost'"),
        (scipy.sparse.csr_array(np.ones((2, 3))), {}, r"shape \(2, 3\)"),
        (square, {"nodes": ["a"]}, "2 nodes, but 1 names"),
        (square, {"nodes": ["a", "a"]}, "two nodes have the same name"),
        ([("a", "b", 1.5)], {"count_duplicates": True}, "already has weights: omit count_dupl"),
        (networkx.Graph([(1, 2)]), {"nodes": [1]}, "it has its own nodes"),
    ]
    for links, options, message in cases:
        with pytest.raises(UsageError, match=message):
            cocite.ingest(links, **options)
    with pytest.raises(InputError, match="its weight is not a number"):
        cocite.ingest(-square)
    (tmp_path / "existing").mkdir()
    with pytest.raises(OutputExists):
        cocite.ingest([("a", "b")], tmp_path / "existing")


def test_ingest_bad_rows_skips_bad_rows() -> None:
    rows: list[tuple[Any, ...]] = [("a", "b", 1.0), ("b", "c", 2.0), (None, "c", 1.0)]
    graph = cocite.ingest(rows, bad_rows="few")
    assert links_in(graph) == {("a", "b"): 1.0, ("b", "c"): 2.0}
    info = graph.info()
    assert (info.rows, info.bad_rows) == (2, 1)
    mostly = [rows[2], ("a", "", 1.0), rows[0]]
    with pytest.raises(InputError, match="bad_rows='all'"):
        cocite.ingest(mostly, bad_rows="few")
    assert links_in(cocite.ingest(mostly, bad_rows="all")) == {("a", "b"): 1.0}


def test_graph_open_reads_names_as_text(tmp_path: Path) -> None:
    graph = cocite.ingest([((1, 2), (3, 4))], tmp_path / "g")
    assert names_of(graph) == [(1, 2), (3, 4)]
    assert names_of(Graph.open(tmp_path / "g")) == ["(1, 2)", "(3, 4)"]
    numbers = cocite.ingest([(1, 7)], tmp_path / "n")
    assert names_of(numbers) == [1, 7]
    opened = Graph.open(tmp_path / "n")
    assert names_of(opened) == ["1", "7"]
    assert opened.digest == numbers.digest
    assert opened.to_networkx().has_edge("1", "7")


def test_ingest_stores_objects_like_files(tmp_path: Path) -> None:
    path = tmp_path / "links.tsv"
    path.write_text("http://b.org/x\thttp://a.org/\t2\nhttp://a.org/\thttp://b.org/x\t0.5\n")
    stored = cocite.ingest(path, weight_column=3)
    rows = [("http://b.org/x", "http://a.org/", 2), ("http://a.org/", "http://b.org/x", 0.5)]
    assert cocite.ingest(rows).digest == stored.digest


def address_of(values: Any) -> int:
    """The address of a column's values, in NumPy or Arrow."""
    if isinstance(values, np.ndarray):
        return int(values.__array_interface__["data"][0])
    return int(values.chunk(0).buffers()[-1].address)


@pytest.mark.parametrize(
    "table",
    [
        pandas.DataFrame({"a": np.arange(1000)}),
        polars.DataFrame({"a": np.arange(1000)}),
        pyarrow.table({"a": np.arange(1000)}),
        polars.DataFrame({"a": [f"https://example.org/{i}" for i in range(1000)]}),
        pyarrow.table({"a": [f"https://example.org/{i}" for i in range(1000)]}),
    ],
    ids=["pandas", "polars", "arrow", "polars text", "arrow text"],
)
def test_columns_of_avoids_copies(table: Any) -> None:
    column = columns_of(table)[1](0)
    expected = pyarrow.table(table)["a"]
    assert address_of(column) == address_of(expected)
    assert not isinstance(column, np.ndarray) or column.dtype != object


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_ingest_reports_missing_text_in_frame(kind: str) -> None:
    names = ["é", None, "b"]
    table: Any = (
        polars.DataFrame({"source": names, "target": ["x", "y", "z"]})
        if kind == "polars"
        else pandas.DataFrame(
            {"source": pandas.array(names, "string[pyarrow]"), "target": ["x", "y", "z"]}
        )
    )
    with pytest.raises(InputError, match=r"row 1 \(counting from 0\).*its source is missing"):
        cocite.ingest(table)
    assert {*links_in(cocite.ingest(table, bad_rows="few"))} == {("b", "z"), ("é", "x")}
    assert list(cocite.ingest(table[:1]).names) == ["x", "é"]


@pytest.mark.parametrize("numbers", [True, False])
def test_ingest_reads_spark_and_cugraph_edges(tmp_path: Path, numbers: bool) -> None:
    """A Parquet folder as Spark writes it: ``src`` and ``dst``, as in GraphFrames, are longs or
    text; further columns are ignored.
    """
    folder = tmp_path / "edges.parquet"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    label = int if numbers else "page {}".format
    links = [(label(a), label(a // 2)) for a in range(1, 40)]
    for part, rows in enumerate((links[:20], links[20:])):
        columns = {"src": [a for a, _ in rows], "dst": [b for _, b in rows]}
        table = pyarrow.table(columns | {"relationship": ["cites"] * len(rows)})
        name = f"part-{part:05}-3f1c-c000.snappy.parquet"
        pyarrow.parquet.write_table(table, folder / name, compression="snappy")
    graph = cocite.ingest(str(folder / "*.parquet"))
    assert {(str(a), str(b)) for a, b in links_in(graph)} == {(str(a), str(b)) for a, b in links}
    back = graph.to_arrow().rename_columns(["src", "dst"])
    pyarrow.parquet.write_table(back, tmp_path / "back.parquet")
    assert links_in(cocite.ingest(tmp_path / "back.parquet")) == links_in(graph)
