"""Weights: read, added up, and stored beside their links; errors name bad rows."""

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite import Graph
from cocite.errors import Damaged, InputError, MalformedRow, UsageError
from cocite.graph.links import in_links, links_of
from cocite.io import tables
from cocite.kernels import text as kernel
from tests.conftest import MakeGraph, Shell
from tests.io.plain import cleaned, nothing_left, read, read_parquet, weights_of
from tests.kernels.test_text import normalize
from tests.oracles.graphs import WEIGHTS

WEIGHTED: dict[str, Any] = {"weight_column": 3}
PAIR = "SELECT 1 AS a, 2 AS b"
Rows = list[tuple[int, int, float]]


def summed(rows: Rows, undirected: bool, loops: bool) -> dict[tuple[str, str], float]:
    """The oracle: sums in ascending order of weight, in float64, rounded once."""
    found: dict[tuple[str, str], list[float]] = {}
    for a, b, w in rows:
        for end in {(a, b), (b, a)} if undirected else {(a, b)}:
            if loops or a != b:
                found.setdefault((str(end[0]), str(end[1])), []).append(w)
    sums = {}
    for ends, values in found.items():
        total = 0.0
        for value in sorted(values):
            total += value
        sums[ends] = float(np.float32(total))
    return sums


NODE = st.integers(0, 5)


@settings(max_examples=10)
@given(
    rows=st.lists(st.tuples(NODE, NODE, WEIGHTS), min_size=1, max_size=30),
    undirected=st.booleans(),
    loops=st.booleans(),
    piece=st.sampled_from([1, 2, 5, 1 << 21]),
    text=st.booleans(),
)
def test_weight_column_equals_plain_sums(
    tmp_path: Path, rows: Rows, undirected: bool, loops: bool, piece: int, text: bool
) -> None:
    prefix = "x" if text else ""
    content = "".join(f"{prefix}{a}\t{prefix}{b}\t{w!r}\n" for a, b, w in rows)
    options: dict[str, Any] = {"delimiter": "tab", "header": "no", "keep_self_loops": loops}
    options |= {"undirected": undirected}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_PIECE", piece)
        graph = read(tmp_path, content, **options, **WEIGHTED)
    expected = {
        (prefix + a, prefix + b): w for (a, b), w in summed(rows, undirected, loops).items()
    }
    assert weights_of(graph) == expected
    graph.check()
    counts = graph.info().duplicates, graph.info().self_loops
    sources = graph.in_sources.tolist()
    info = graph.info()
    if expected:
        extremes = min(expected.values()), max(expected.values())
        assert (info.smallest_weight, info.largest_weight) == extremes
    assert info.total_weight == pytest.approx(sum(expected.values()))
    plain = read(tmp_path, content, columns=(1, 2), **options)
    assert plain.in_weights is None
    assert plain.in_sources.tolist() == sources
    assert (plain.info().duplicates, plain.info().self_loops) == counts


def test_weight_sum_ignores_row_order(tmp_path: Path) -> None:
    """Float64 keeps the ones only in ascending order: the sum lies just above half-way between two
    float32, or on it.
    """
    rows = ["a\tb\t1", f"a\tb\t{2**53 + 2**29}", "a\tb\t1"]
    found: list[float] = []
    for order in ([0, 1, 2], [1, 0, 2], [0, 2, 1]):
        for threads in (1, 2):
            content = "\n".join(rows[i] for i in order)
            found += weights_of(read(tmp_path, content, threads=threads, **WEIGHTED)).values()
    assert found == [2.0**53 + 2**30] * 6


@settings(max_examples=10)
@given(
    ends=st.lists(st.tuples(NODE, NODE), min_size=1, max_size=40),
    undirected=st.booleans(),
    loops=st.booleans(),
    piece=st.sampled_from([1, 3, 1 << 21]),
    text=st.booleans(),
)
def test_count_duplicates_equals_weights_of_one(
    tmp_path: Path,
    ends: list[tuple[int, int]],
    undirected: bool,
    loops: bool,
    piece: int,
    text: bool,
) -> None:
    """Weights equal the oracle, and files those of a column of ones, to the byte."""
    prefix = "x" if text else ""
    rows = [f"{prefix}{a}\t{prefix}{b}" for a, b in ends]
    options: dict[str, Any] = {"delimiter": "tab", "header": "no", "keep_self_loops": loops}
    options |= {"undirected": undirected}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_PIECE", piece)
        graph = read(tmp_path, "\n".join(rows), count_duplicates=True, **options)
    expected = summed([(a, b, 1.0) for a, b in ends], undirected, loops)
    assert weights_of(graph) == {(prefix + a, prefix + b): w for (a, b), w in expected.items()}
    graph.check()
    contents = {name: (graph.path / name).read_bytes() for name in graph.store.manifest.files}
    facts = graph.store.facts["weights"], graph.store.facts["dropped"]
    ones = read(tmp_path, "\n".join(f"{row}\t1" for row in rows), **options, **WEIGHTED)
    assert {name: (ones.path / name).read_bytes() for name in ones.store.manifest.files} == contents
    assert (ones.store.facts["weights"], ones.store.facts["dropped"]) == facts


def test_count_duplicates_refuses_weight_column(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--count-duplicates .* and --weight-column"):
        read(tmp_path, "a\tb\t1\n", count_duplicates=True, **WEIGHTED)
    assert nothing_left(tmp_path)


def test_digest_depends_on_weights(tmp_path: Path) -> None:
    one = read(tmp_path, "a\tb\t1\n", **WEIGHTED).digest
    two = read(tmp_path, "a\tb\t2\n", **WEIGHTED).digest
    none = read(tmp_path, "a\tb\t2\n").digest
    assert len({one, two, none}) == 3
    assert read(tmp_path, "a\tb\n").digest == none


@pytest.mark.parametrize(
    ("content", "file", "options"),
    [
        ("source,target,weight\na,b,2.5\n", "l.csv", {"weight_column": "weight"}),
        ("source,target,weight\na,b,2.5\n", "l.csv", {"weight_column": 3}),
        ("w,from,to\n2.5,a,b\n", "l.csv", {"columns": "from,to", "weight_column": "W"}),
        ("w,from,to\n2.5,a,b\n", "l.csv", {"columns": (2, 3), "weight_column": "w"}),
        ("2.5 a b\n", "l.txt", {"columns": (2, 3), "weight_column": 1}),
        ('a,b,"2.5"\n', "l.csv", {"weight_column": 3}),
        ("a\tx\tb\t+25e-1\n", "l.tsv", {"columns": (1, 3), "weight_column": 4}),
    ],
)
def test_weight_column_takes_name_or_number(
    tmp_path: Path, content: str, file: str, options: dict[str, Any]
) -> None:
    ((source, target, weight),), _ = cleaned(tmp_path, content, file, **options)
    assert (source, target, float(weight)) == ("a", "b", 2.5)


def test_read_as_names_weight_column(tmp_path: Path) -> None:
    _, found = cleaned(tmp_path, "from\tto\tweight\n1\t2\t3\n", **WEIGHTED)
    assert found.describe().endswith(
        "links.tsv: tab-separated, a header ('from', 'to'; if these are a link: --header no), 3 "
        "columns, with links from column 1 to column 2 and weights in column 3"
    )


@pytest.mark.parametrize("weight", ["-1", "nan", ""])
def test_invalid_weight_is_malformed_row(tmp_path: Path, weight: str) -> None:
    content = f"a\tb\t1\nc\td\t{weight}\n"
    options: dict[str, Any] = {"delimiter": "tab", "header": "no"} | WEIGHTED
    with pytest.raises(MalformedRow) as caught:
        read(tmp_path, content, **options)
    row, file = f"c\td\t{weight}", tmp_path / "links.tsv"
    assert str(caught.value).startswith(
        f"{file}:2: a weight that is not a number from 1e-30 to below 1e30: {row!r}. Fix the row"
    )
    assert nothing_left(tmp_path)
    graph = read(tmp_path, content, bad_rows="few", **options)
    (source,) = graph.store.facts["sources"]
    assert weights_of(graph) == {("a", "b"): 1.0}
    assert source["bad_rows"] == {"weight": 1}


def test_missing_weight_is_malformed_row(tmp_path: Path) -> None:
    with pytest.raises(MalformedRow, match=r"links\.tsv:2: not 3 tab-separated columns"):
        cleaned(tmp_path, "a\tb\t1\nc\td\n", **WEIGHTED)


NUMBER = st.one_of(
    st.text("0123456789.eE+-", max_size=9),
    st.from_regex(r"[+]?[0-9]{0,4}\.?[0-9]{0,3}([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.floats(1e-40, 1e40).map(repr),
)


@pytest.mark.parametrize(
    "text", ["0", "0.0e5", "-1", "nan", "inf", "-inf", "1e30", "9e-31", "1_0", "0x1", "1e", ""]
)
def test_normalize_refuses_weights_outside_range(text: str) -> None:
    _, bad, _ = normalize(f"a\tb\t{text}\n".encode(), expected=3, weight=2)
    assert bad[:, 3].tolist() == [kernel.NO_WEIGHT]


@settings(max_examples=300)
@given(NUMBER)
def test_normalize_accepts_weights_as_float_does(text: str) -> None:
    """Python's ``float`` accepts the same numbers; the range has decimal, not binary, ends."""
    _, bad, _ = normalize(f"a\tb\t{text}\n".encode(), expected=3, weight=2)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    valid = 1e-30 <= value < 1e30 and not text.startswith("-")
    assert bad[:, 3].tolist() == ([] if valid else [kernel.NO_WEIGHT])


@pytest.mark.parametrize("kind", ["INTEGER", "DOUBLE", "DECIMAL(5, 1)", "HUGEINT"])
def test_parquet_weights_take_any_number_type(tmp_path: Path, kind: str) -> None:
    graph = read_parquet(tmp_path, f"SELECT 'a' AS a, 'b' AS b, 4::{kind} AS w", weight_column="w")
    assert weights_of(graph) == {("a", "b"): 4.0}
    (source,) = graph.store.facts["sources"]
    assert source["read_as"] == "links.parquet: Parquet, columns 'a' and 'b' with the weight in 'w'"


def test_parquet_reports_invalid_weights(tmp_path: Path) -> None:
    bad = ["0", "-1", "'nan'", "'inf'", "NULL", "1e30", "1e-31"]
    weights = ", ".join(f"{weight}::DOUBLE" for weight in ("1.5", *bad))
    query = f"SELECT unnest(range(1, 9)) AS a, 9 AS b, unnest([{weights}]) AS w"
    with pytest.raises(
        MalformedRow, match=r"links\.parquet:2: .* or a weight that is not a number"
    ):
        read_parquet(tmp_path, query, **WEIGHTED)
    graph = read_parquet(tmp_path, query, bad_rows="all", **WEIGHTED)
    assert weights_of(graph) == {("1", "9"): 1.5}
    assert graph.info().bad_rows == len(bad)


def test_decimal_comma_error_gives_advice(tmp_path: Path) -> None:
    for sign in (";", "\t", "|"):
        with pytest.raises(MalformedRow, match=r":2: a weight that .*decimal point, as in 0\.5$"):
            cleaned(tmp_path, f"a{sign}b{sign}2\nb{sign}c{sign}0,5\n", **WEIGHTED)
    with pytest.raises(MalformedRow, match=r"a weight that .*Fix the row"):
        cleaned(tmp_path, "a,b,1\nb,c,x\n", **WEIGHTED)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("a\tb\t1\n", {"weight_column": 2}, r"twice\. Links are read from '1' and '2' unless"),
        (
            "a\tb\t1\n",
            {"columns": "1,2", "weight_column": 1},
            "columns 1,2,1 contains the same column twice",
        ),
        ("a\tb\t1\n", {"weight_column": 4}, "has no column '4'; its columns are '1', '2', '3'"),
        ("a\tb\n", {"weight_column": "w"}, "has no column 'w'; its columns are 'a', 'b'"),
        ("a\tb\n", {"weight_column": " "}, "weight_column is empty"),
        ("a\tb\n", {"weight_column": "w", "header": "no"}, "w are column names, but header is no"),
        (PAIR, {"weight_column": "b"}, r"twice\. Links are read from 'a' and 'b' unless"),
        (PAIR, {"weight_column": "x"}, "has no column 'x'; its columns are 'a', 'b'"),
        (f"{PAIR}, '3' AS w", {"weight_column": "w"}, "'w' is VARCHAR; weights must be numbers"),
    ],
)
def test_weight_column_refuses_invalid_choice(
    tmp_path: Path, content: str, options: dict[str, Any], message: str
) -> None:
    reading = read_parquet if content.startswith("SELECT") else read
    with pytest.raises(InputError if "VARCHAR" in message else UsageError, match=message):
        reading(tmp_path, content, **options)
    assert nothing_left(tmp_path)


def test_ingest_adds_weights_of_text_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("a,b,0.5\nb,c,1\n")
    (tmp_path / "nodes.txt").write_text("d\n")
    duckdb.execute(
        f"COPY (SELECT 'a' AS a, 'b' AS b, 2 AS w) TO '{tmp_path / 'x.parquet'}' (FORMAT parquet)"
    )
    inputs = [tmp_path / "more.csv", tmp_path / "x.parquet"]
    graph = cocite.ingest(inputs, tmp_path / "g", nodes=tmp_path / "nodes.txt", **WEIGHTED)
    assert weights_of(graph) == {("a", "b"): 2.5, ("b", "c"): 1.0}
    assert list(graph.names) == ["a", "b", "c", "d"]


def test_links_of_out_carries_weights(make_graph: MakeGraph) -> None:
    graph = make_graph([(0, 1, 2), (2, 1, 3), (2, 0, 4)], **WEIGHTED)
    out_links = links_of(graph, "out", weighted=True)
    assert out_links.neighbors.tolist() == [1, 0, 1]
    assert out_links.weights is not None
    assert out_links.weights.tolist() == [2, 4, 3]
    assert links_of(graph, "out").weights is None
    assert in_links(graph).weights is None
    assert in_links(graph, weighted=True).weights is graph.in_weights


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_check_reports_nonpositive_weights(make_graph: MakeGraph, value: float) -> None:
    graph = make_graph([(0, 1, 2), (1, 0, 3)], **WEIGHTED)
    np.array([2.0, value], np.float32).tofile(graph.path / "in_weights")
    with pytest.raises(Damaged, match="some weights are not positive"):
        Graph.open(graph.path, verify=False).check()


def test_graph_reports_weights_of_wrong_length(make_graph: MakeGraph) -> None:
    """The manifest is intact, but gives a wrong length."""
    graph = make_graph([(0, 1, 2), (1, 0, 3)], **WEIGHTED)
    store = graph.store
    entry = store.manifest.files["in_weights"]
    store.manifest.files["in_weights"] = type(entry)(entry.dtype, (1,), entry.xxh3_128)
    with pytest.raises(Damaged, match=r"the manifest says in_weights is <f4\[1\]"):
        Graph(store)


def test_commands_show_and_verify_weights(tmp_path: Path, shell: Shell) -> None:
    graph = tmp_path / "g"
    (tmp_path / "links.tsv").write_text("a\tb\t0.5\na\tb\t1\nb\tc\t1200\n")
    out, err = shell(["ingest", tmp_path / "links.tsv", "-o", graph, "--weight-column", "3"])
    assert "3 columns, with links from column 1 to column 2 and weights in column 3" in err
    assert "weights            1.5 to 1200, 1,201.5 in total" in out.splitlines()
    info = json.loads(shell(["info", graph, "--format", "json"]).out)
    assert (info["smallest_weight"], info["largest_weight"]) == (1.5, 1200)
    assert info["total_weight"] == 1201.5
    assert "all intact" in shell(["verify", graph]).out
    content = bytearray((graph / "in_weights").read_bytes())
    content[0] ^= 1
    (graph / "in_weights").write_bytes(content)
    assert "in_weights" in shell(["verify", graph], 1).err


@pytest.mark.parametrize(
    ("suffix", "weight"),
    [("graphml", "strong"), ("graphml", ""), ("jsonl", "strong"), ("jsonl", "")],
)
def test_invalid_weight_error_names_link(tmp_path: Path, suffix: str, weight: str) -> None:
    """The error gives file, line, link and weight, and no advice about delimiters."""
    file, links = tmp_path / f"w.{suffix}", [("a", "b", "2"), ("b", "c", "1"), ("c", "a", weight)]
    file.write_text(formatted_links(suffix, links))
    with pytest.raises(MalformedRow) as error:
        cocite.ingest(file, tmp_path / "g", weight_column="w")
    message = str(error.value)
    reason = "the weight of a link, 'w', is missing, or is not a number from"
    assert re.match(rf"{re.escape(str(file))}:\d+: {reason}", message)
    assert f"'c\\ta\\t{weight}'" in message
    assert "--bad-rows few" in message
    assert "If weights have another name: --weight-column NAME" in message
    assert "--delimiter" not in message
    graph = cocite.ingest(file, tmp_path / "g", weight_column="w", bad_rows="few")
    assert graph.edges == 2
    with pytest.raises((MalformedRow, UsageError)) as other:
        cocite.ingest(file, tmp_path / "h", weight_column="other")
    assert "--delimiter" not in str(other.value)


def formatted_links(suffix: str, links: list[tuple[str, str, str]]) -> str:
    """Links in a format; empty weights are omitted."""
    if suffix == "jsonl":
        rows = [{"source": a, "target": b} | ({"w": w} if w else {}) for a, b, w in links]
        return "".join(json.dumps(row) + "\n" for row in rows)
    data = '<data key="k">{}</data>'
    edges = "".join(
        f'<edge source="{a}" target="{b}">{data.format(w) if w else ""}</edge>\n'
        for a, b, w in links
    )
    nodes = "".join(f'<node id="{n}"/>\n' for n in "abc")
    key = '<key id="k" for="edge" attr.name="w" attr.type="string"/>'
    return f'<graphml>{key}<graph edgedefault="directed">\n{nodes}{edges}</graph></graphml>\n'
