"""Works and their citations: OpenAlex, Crossref, Semantic Scholar, DBLP-Citation, other lists.

The expected links come from the values themselves, without the reader's code.
"""

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cocite
from cocite.errors import InputError, MalformedRow, UsageError
from cocite.io.readers.graphs import works
from tests.io.plain import links, read, refused, source_of, titles_of, weights_of

RNG = random.Random(7)
OPENALEX: list[dict[str, Any]] = [
    {
        "id": f"https://openalex.org/W{i}",
        "doi": None,
        "display_name": f"On thing {i}" if i % 3 else None,
        "publication_year": 2000,
        "authorships": [{"author": {"id": "https://openalex.org/A1"}}],
        "referenced_works": [f"https://openalex.org/W{RNG.randrange(60)}" for _ in range(i % 7)],
        "related_works": ["https://openalex.org/W1"],
    }
    for i in range(50)
]
CROSSREF: list[dict[str, Any]] = [
    {"DOI": "10.1/a", "title": ["First"], "reference-count": 0},
    {"DOI": "10.1/b", "reference": [{"key": "1", "DOI": "10.1/A"}, {"key": "2", "year": "1999"}]},
    {"DOI": "10.1/C", "title": [], "reference": [{"DOI": "10.1/b"}, {"DOI": "10.1/x"}]},
]
CROSSREF_LINKS = [("10.1/b", "10.1/a"), ("10.1/c", "10.1/b"), ("10.1/c", "10.1/x")]
CROSSREF_RESPONSE = {"status": "ok", "message-type": "work-list", "message": {"items": CROSSREF}}
SCHOLAR = [
    {"paperId": "p1", "title": "One", "references": [{"paperId": "p2"}, {"paperId": None}]},
    {"paperId": "p2", "title": "Two", "references": []},
]
DBLP = [{"id": 1, "title": "One", "n_citation": 1}, {"id": 2, "title": "Two", "references": [1, 3]}]


def lines(values: list[Any]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


@pytest.fixture(params=["msgspec", "json"])
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the fast decoder."""
    if request.param == "json":
        monkeypatch.setattr(works, "find_spec", lambda name: None)


@pytest.mark.usefixtures("decoder")
def test_works_reader_reads_openalex_snapshot(tmp_path: Path) -> None:
    """As in a snapshot: a folder per date, gzip parts and a manifest."""
    for part in range(3):
        folder = tmp_path / "works" / f"updated_date=2024-01-0{part + 1}"
        folder.mkdir(parents=True)
        text = lines(OPENALEX[part::3])
        (folder / "part_000.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "works" / "manifest").write_text('{"entries": []}')
    graph = cocite.ingest(tmp_path / "works", tmp_path / "g")
    expected = {(w["id"], cited) for w in OPENALEX for cited in w["referenced_works"]}
    assert sorted(links(graph)) == sorted(pair for pair in expected if pair[0] != pair[1])
    assert set(graph.names) == {w["id"] for w in OPENALEX} | {b for _, b in expected}
    titles = dict(zip(graph.names, titles_of(graph), strict=True))
    assert {name: t for name, t in titles.items() if t} == {
        w["id"]: w["display_name"] for w in OPENALEX if w["display_name"]
    }


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (lines(CROSSREF), CROSSREF_LINKS),
        (json.dumps({"items": CROSSREF}), CROSSREF_LINKS),
        (json.dumps({"items": CROSSREF}, indent=1), CROSSREF_LINKS),
        (json.dumps(CROSSREF_RESPONSE), CROSSREF_LINKS),
        (lines(SCHOLAR), [("p1", "p2")]),
        (lines(DBLP), [("2", "1"), ("2", "3")]),
        (json.dumps(DBLP), [("2", "1"), ("2", "3")]),
        (json.dumps(DBLP).replace("}, {", "}\n,{"), [("2", "1"), ("2", "3")]),
        ('{"id": "W1", "referenced_works": ["W2", "W3"]}\n', [("W1", "W2"), ("W1", "W3")]),
        ('{"meta": {}, "results": [{"id": "a", "referenced_works": ["b"]}]}', [("a", "b")]),
        (lines([{"citationid": 1, "citingcorpusid": "5", "citedcorpusid": "7"}] * 2), [("5", "7")]),
        (lines([{"page": "a", "links": ["b"]}, {"page": "b", "links": None}]), [("a", "b")]),
        (lines([["a", ["b", "c"]], ["c", []]]), [("a", "b"), ("a", "c")]),
        (lines([{"id": "x", "outCitations": ["y"], "inCitations": ["z"]}]), [("x", "y")]),
    ],
)
def test_works_reader_links_works_to_references(
    tmp_path: Path, content: str, expected: list[tuple[str, str]]
) -> None:
    packed = gzip.compress(content.encode())
    graph = read(tmp_path, packed, "0.json.gz")
    assert sorted(links(graph)) == sorted(expected)


def test_works_reader_counts_unnamed_references(tmp_path: Path) -> None:
    graph = read(tmp_path, lines(CROSSREF))
    assert source_of(graph)["read_as"].endswith(" (1 without a name skipped)")
    assert titles_of(graph)[:2] == ["First", None]


def test_columns_option_selects_json_members(tmp_path: Path) -> None:
    rows = [
        {"k": "a", "t": "x", "to": ["b", "c"], "w": 2},
        {"k": "d", "t": "y", "to": [], "w": 1},
        {"k": "e", "to": "a", "w": 4},
    ]
    graph = read(tmp_path, lines(rows), columns="k,to", weight_column="w")
    assert weights_of(graph) == {("a", "b"): 2, ("a", "c"): 2, ("e", "a"): 4}
    assert "d" in graph.names
    with pytest.raises(UsageError, match="no member 'x'; the first object has 'k'"):
        read(tmp_path, lines(rows), columns="k,x")
    ratings = lines([{"user": "u", "item": ["i", "j"]}] * 2)
    assert read(tmp_path, ratings, bipartite=True).sides is not None


def test_works_reader_recognizes_long_first_work(tmp_path: Path) -> None:
    first = {"id": "W1", "authors": ["x" * 1000] * 100, "referenced_works": ["W2"]}
    assert links(read(tmp_path, lines([first, {"id": "W3"}]))) == [("W1", "W2")]


@pytest.mark.usefixtures("decoder")
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ('{"id": null, "referenced_works": ["b"]}', "no text or whole number as 'id' or"),
        ('{"id": "a", "referenced_works": [1.5]}', "no text or whole number as"),
        ('{"id": "a", "referenced_works": [["b"]]}', "no text or whole number as"),
        ('{"id": "a", "referenced_works": {"b": 1}}', "no text or whole number as"),
        ('{"id": "a", "referenced_works": [""]}', "an empty name"),
        ('{"id": "a", "referenced_works": ["b\\u0000"]}', "a control character in a name"),
        ('{"id": "a", "referenced_works": ["b"', "not a JSON value"),
        ("17", "neither an object nor a list"),
    ],
)
def test_works_reader_reports_or_skips_bad_work(tmp_path: Path, bad: str, message: str) -> None:
    good = lines(OPENALEX[3:9])
    error = refused(tmp_path, MalformedRow, good + bad + "\n" + good)
    assert str(error).startswith(f"{tmp_path}/links.tsv:7: {message}")
    graph = read(tmp_path, good + bad + "\n" + good, bad_rows="few")
    assert graph.info().bad_rows == 1


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("id"), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(["id", "DOI", "paperId", "referenced_works", "reference", "title", "x"])


@settings(max_examples=15)
@given(st.lists(st.dictionaries(KEYS, JUNK) | JUNK, min_size=1, max_size=4), st.booleans())
def test_works_reader_handles_any_json(tmp_path: Path, values: list[Any], wrap: bool) -> None:
    content = json.dumps({"items": values}) if wrap else lines(values)
    try:
        graph = read(tmp_path, content, "l.jsonl", bad_rows="few")
    except InputError:
        return
    text = json.dumps(values, ensure_ascii=False).lower()
    for name in graph.names:
        assert json.dumps(name, ensure_ascii=False)[1:-1].lower().strip() in text
