"""From links to lists: exclusions, the cache between builds, errors."""

import json
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import UsageError
from cocite.integrations.html_places import related_list
from cocite.integrations.sites import MIN_SCORE, everywhere, related_pages
from tests.integrations.sites.pages import PER_SUBJECT, SUBJECTS, links


def test_related_pages_stay_within_subject() -> None:
    found = related_pages(links(), 4)
    for subject in SUBJECTS:
        for n in range(PER_SUBJECT):
            listed = found[f"{subject}/page{n}"]
            assert len({*listed}) == len(listed) == 4
            assert {page.partition("/")[0] for page in listed} == {subject}


def test_related_pages_excludes_pages_linked_everywhere() -> None:
    assert everywhere(links()) == {"glossary", "index"}
    found = related_pages(links(), 99)
    assert found.keys() == links().keys()
    assert [found[page] for page in ("glossary", "index", "license")] == [[], [], []]
    listed = {page for pages in found.values() for page in pages}
    assert listed == {page for page in links() if "/" in page}


def test_related_pages_equals_related() -> None:
    linked = {page: targets for page, targets in links().items() if "/" in page}
    pairs = [(page, to) for page, targets in linked.items() for to in targets if to in linked]
    hits = cocite.related(pairs, "garden/page1", 99)
    assert {hit.score >= MIN_SCORE for hit in hits} == {True}
    assert related_pages(links(), 99)["garden/page1"] == [hit.node for hit in hits]
    min_score = hits[2].score
    found = related_pages(links(), 99, min_score=min_score)["garden/page1"]
    assert found == [hit.node for hit in hits if hit.score >= min_score]
    assert len(found) < len(hits)


def test_everywhere_is_empty_for_small_site() -> None:
    assert everywhere({"index": ["a", "b", "c"], "a": ["b"], "b": [], "c": []}) == set()


def test_related_pages_without_links_is_empty() -> None:
    assert related_pages({"a": [], "b": ["elsewhere", "b"]}, 5) == {"a": [], "b": []}


@pytest.mark.long
def test_related_pages_cache_is_reused_until_input_changes(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "related-pages.json"

    def queried(**options: Any) -> bool:
        """Whether an index was queried and its answers written."""
        before = cache.stat().st_ino, cache.stat().st_mtime_ns
        arguments: dict[str, Any] = {"links": links(), "k": 3} | options
        found = related_pages(folder=cache.parent, **arguments)
        assert found == (related_pages(**arguments) if options else expected)
        return (cache.stat().st_ino, cache.stat().st_mtime_ns) != before

    expected = related_pages(links(), 3, folder=cache.parent)
    assert not queried()
    assert not queried(links=dict(reversed(links().items())))
    changed: dict[str, Any] = {}
    for name, value in (
        ("k", 2),
        ("measure", "cocitation"),
        ("min_score", 0.3),
        ("links", links() | {"license": ["garden/page0"]}),
    ):
        changed[name] = value  # one by one, since the cache holds the last answers only
        assert queried(**changed), name
    assert queried()
    content = cache.read_text()
    for damaged in ("", content[:-9], json.dumps({**json.loads(content), "related": 1}), "[]"):
        cache.write_text(damaged)
        assert queried()
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


@pytest.mark.parametrize(
    ("k", "measure", "message"),
    [(0, None, "it must be 1 or more"), (5, "simrang", "no measure is called")],
)
def test_related_pages_refuses_invalid_options(k: int, measure: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        related_pages(links(), k, measure=measure)


def test_related_list_escapes_titles_and_urls() -> None:
    shown = related_list("A & B", [('<script>"', 'x"onclick="y')])
    assert "<script>" not in shown
    assert 'href="x&quot;onclick=&quot;y"' in shown
    assert "<h2>A &amp; B</h2>" in shown
    assert related_list("A", []) == ""
