"""URLs as names, normalized: each rule, and every input that has names."""

from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cocite
from cocite.errors import UsageError
from cocite.io.readers.contract import IS_WEB, TRACKING, normalizer
from tests.conftest import Shell
from tests.io.plain import links, title_of, weights_of

RULES = [
    ("HTTP://Example.COM:80/a/./b/../c", "http://example.com/a/c"),
    ("https://example.com:443", "https://example.com/"),
    ("https://example.com:80/", "https://example.com:80/"),
    ("http://bücher.de/ä?ü", "http://xn--bcher-kva.de/%C3%A4?%C3%BC"),
    ("http://a.org/b#c?d#e", "http://a.org/b"),
    ("http://a.org/?a=1&b=2#", "http://a.org/?a=1&b=2"),
    ("http://a.org/%7eb/%c3%a4%2f%41", "http://a.org/~b/%C3%A4%2FA"),
    ("http://a.org/%zz%4", "http://a.org/%zz%4"),
    ("  http://a.org/a b\n", "http://a.org/a%20b"),
    ("http:\\\\a.org\\b", "http://a.org/b"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://a.org/?utm_source=x&p=1&fbclid=y", "http://a.org/?p=1"),
    ("http://a.org/?p=1&utm_id", "http://a.org/?p=1"),
    ("http://a.org/?gclid=x", "http://a.org/"),
    ("http://a.org/?gclid=x&utm_term=y#z", "http://a.org/"),
    ("http://a.org/?p=utm_source=x&xgclid=1", "http://a.org/?p=utm_source=x&xgclid=1"),
]
UNCHANGED = [
    *("http://www.a.org/index.html", "http://a.org/b/", "http://a.org/b", "http://a.org/B"),
    *("http://a.org/?", "http://a.org/?b=1&a=2", "http://me:x@a.org/", "http://a.org./"),
    *("http://a.org//b", "mailto:x@a.org", "ftp://A.org/#b", "A page", "httpx://A.org/", "http"),
    *("http://[", "http:// a.org/#b", "http://a.org:99999/#b", "www.A.org/#b"),
]


@pytest.mark.parametrize(("url", "expected"), RULES)
def test_normalizer_unifies_equivalent_urls(url: str, expected: str) -> None:
    assert normalizer()(url) == expected
    assert normalizer()(expected) == expected


@pytest.mark.parametrize("name", UNCHANGED)
def test_normalizer_keeps_other_names(name: str) -> None:
    assert normalizer()(name) == name


@given(st.text(alphabet="aZ%2e7/.:?&=#@é ~_-[]\\", max_size=30), st.sampled_from(TRACKING))
def test_normalizer_is_idempotent(text: str, tracking: str) -> None:
    for url in (f"http://a.org/{text}", f"https:{text}", f"http://a.org/?{tracking}=1&{text}"):
        once = normalizer()(url)
        assert normalizer()(once) == once


def test_is_web_matches_every_normalized_url_in_duckdb() -> None:
    names = [*(a for a, _ in RULES), *UNCHANGED]
    found = duckdb.execute("SELECT regexp_matches(unnest($1), $2)", [names, IS_WEB]).fetchall()
    normalize = normalizer()
    assert all(hit or normalize(name) == name for name, (hit,) in zip(names, found, strict=True))
    assert sum(hit for (hit,) in found) == len(RULES) + 12


def test_normalize_urls_merges_names_of_page(tmp_path: Path) -> None:
    """In links, nodes, titles and excluded nodes; weights are summed."""
    (tmp_path / "links.csv").write_text(
        "source,target,n\nhttp://A.org,http://a.org/b#c,2\nhttp://a.org/,http://a.org/b,3\n"
        "http://a.org:80/,http://a.org/#top,1\nhttp://a.org/b,plain,1\nhttp://A.org/x,plain,1\n"
    )
    (tmp_path / "nodes.txt").write_text("http://a.org/%7Eme\nHTTP://a.org/b\n")
    (tmp_path / "titles.tsv").write_text("http://A.ORG/b#title\tBee\n")
    graph = cocite.ingest(
        tmp_path / "links.csv",
        tmp_path / "g",
        nodes=tmp_path / "nodes.txt",
        titles=tmp_path / "titles.tsv",
        weight_column="n",
        exclude_nodes=["http://a.org:80/x"],
        normalize_urls=True,
    )
    assert sorted(graph.names) == ["http://a.org/", "http://a.org/b", "http://a.org/~me", "plain"]
    assert set(links(graph)) == {("http://a.org/", "http://a.org/b"), ("http://a.org/b", "plain")}
    assert graph.info().self_loops == 1
    assert title_of(graph, "http://a.org/b") == "Bee"
    assert graph.store.facts["normalized_urls"] == 7
    assert weights_of(graph)["http://a.org/", "http://a.org/b"] == 5.0
    plain = cocite.ingest(tmp_path / "links.csv", tmp_path / "h")
    assert plain.nodes == 8
    assert "normalized_urls" not in plain.store.facts


def test_normalize_urls_ignores_integers_and_rejects_objects(tmp_path: Path) -> None:
    (tmp_path / "links.tsv").write_text("1\t2\n")
    graph = cocite.ingest(tmp_path / "links.tsv", tmp_path / "g", normalize_urls=True)
    assert graph.store.facts["normalized_urls"] == 0
    with pytest.raises(UsageError, match="normalize_urls applies to files"):
        cocite.ingest([("a", "b")], normalize_urls=True)


def test_normalize_urls_merges_external_pages(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "site").mkdir()
    urls = ("http://B.org/x?utm_source=a#1", "http://b.org/x")
    page = "".join(f'<a href="{url}">x</a>' for url in urls)
    (tmp_path / "site" / "index.html").write_text(page)
    options = ["--keep-external", "--normalize-urls"]
    printed = shell(["ingest", tmp_path / "site", "-o", tmp_path / "g", *options])
    assert "1 URLs used as names were normalized" in printed.err
    assert links(cocite.Graph.open(tmp_path / "g")) == [("index.html", "http://b.org/x")]
