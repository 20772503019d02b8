"""JSON lines and lists of links, with the same options as tables."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from tests.io.plain import links, read, refused, source_of, weights_of

OBJECTS = [{"id": 1, "source": "a", "target": "b", "n": 2}, {"source": "b", "target": 7, "n": 0.5}]


def lines(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (lines(OBJECTS), {}, "a>b b>7"),
        ("\ufeff\n" + lines(OBJECTS).replace("\n", "\r\n\n"), {}, "a>b b>7"),
        (json.dumps(OBJECTS), {}, "a>b b>7"),
        (json.dumps(OBJECTS, indent=2), {}, "a>b b>7"),
        (lines(OBJECTS), {"columns": "target,source"}, "b>a 7>b"),
        (lines([["a", "b", 1], ["b", "c", 2]]), {}, "a>b b>c"),
        (json.dumps([["a", "b", 1], ["b", "c", 2]]), {"columns": (2, 1)}, "b>a c>b"),
        (lines([{"x": "a", "y": "b"}, {"y": "c", "x": "d"}]), {}, "a>b d>c"),
        (lines([{"to": "a", "by": "q", "from": "b"}] * 2), {}, "b>a"),
        (lines([["\u00e9", "\ud83d\ude00"]] * 2), {}, "\u00e9>\U0001f600"),
    ],
)
def test_json_lines_finds_links(
    tmp_path: Path, content: str, options: dict[str, Any], expected: str
) -> None:
    graph = read(tmp_path, content, **options)
    assert sorted(f"{a}>{b}" for a, b in links(graph)) == sorted(expected.split())


def test_json_lines_reads_weight_column(tmp_path: Path) -> None:
    graph = read(tmp_path, lines(OBJECTS), weight_column="n")
    assert weights_of(graph) == {("a", "b"): 2, ("b", "7"): 0.5}
    expected = "links.tsv: JSON lines, links from 'source' to 'target', with the weight 'n'"
    assert source_of(graph)["read_as"] == expected


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ('{"source": "a"', "not a JSON value"),
        ('{"source": "a"}', "no text or whole number as 'source' or 'target'"),
        ('{"source": "a", "target": null}', "no text or whole number as"),
        ('{"source": "a", "target": 1.5}', "no text or whole number as"),
        ('{"source": true, "target": "b"}', "no text or whole number as"),
        ('{"source": "", "target": "b"}', "an empty name"),
        ('{"source": "a\\u0000", "target": "b"}', "a control character in a name"),
        ('{"source": "a\\nb", "target": "b"}', "a control character in a name"),
        ('{"source": "\\ud800", "target": "b"}', "bytes that are not UTF-8"),
        ("17", "neither an object nor a list"),
        ("[" * 9000, "not a JSON value"),
    ],
)
def test_json_lines_reports_or_skips_bad_line(tmp_path: Path, bad: str, problem: str) -> None:
    content = lines(OBJECTS) + "\n" + bad + "\n" + lines(OBJECTS[:1])
    error = refused(tmp_path, MalformedRow, content)
    assert str(error).startswith(f"{tmp_path}/links.tsv:4: {problem}")
    graph = read(tmp_path, content, bad_rows="few")
    assert (graph.edges, graph.info().rows, graph.info().bad_rows) == (2, 3, 1)
    (example,) = graph.store.facts["sources"][0]["examples"]
    assert example.startswith(f"line 4: {problem}")


def test_json_lines_refuses_ambiguous_members(tmp_path: Path) -> None:
    content = lines([{"a": "x", "b": "y", "c": "z"}] * 2)
    assert links(read(tmp_path, content, columns="a,c")) == [("x", "z")]
    pairs = lines([["x", "y"]] * 2)
    unclear = "objects with 'a', 'b', 'c'; it is unclear which are source"
    for text, columns, error, message in (
        (content, (), UnrecognizedInput, unclear),
        (content, "a,d", UsageError, "no member 'd'; the first object has 'a', 'b', 'c'"),
        (pairs, "a,b", UsageError, "by number, from 1; 'a' is not a number"),
        ('[{"source": "a"},\n oops]', (), InputError, r"links\.tsv:2: Expecting value"),
        ('[["a", "b"]]\n[["b", "c"]]', (), InputError, r"links\.tsv:2: Extra data"),
    ):
        refused(tmp_path, error, text, columns=columns, match=message)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.jsonl", '{"source": "a", "target": "b"}'),
        ("l.jsonl", '{"x": "a", "y": "b"}\n'),
        ("l.ndjson", '["a", "b"]\n'),
        ("l.jsonl.gz", '["a", "b"]\n'),
        ("l", '{"page": "a", "link_to": 7, "target": "b", "source": "a"}\n\n'),
    ],
)
def test_json_lines_accepts_single_line(tmp_path: Path, name: str, content: str) -> None:
    packed = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
    (tmp_path / name).write_bytes(packed)
    assert links(cocite.ingest(tmp_path / name, tmp_path / "g")) == [("a", "b")]


@pytest.mark.parametrize(
    "content", ['["a", "b"]', '{"a": 1, "b": 2}', '{"source": "a",\n"target": "b"}']
)
def test_json_value_is_not_json_lines(tmp_path: Path, content: str) -> None:
    refused(tmp_path, UnrecognizedInput, content, "l.json", match=r"l\.json is JSON")


def test_nodes_option_reads_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "nodes.jsonl"
    path.write_text('{"n": 5, "title": "x"}\n{"title": "y"}\n')
    assert list(read(tmp_path, "x\tz\n", nodes=path).names) == ["x", "y", "z"]
