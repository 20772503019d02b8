"""From links to lists: what is left out, what is kept between builds, what is told."""

import json
from pathlib import Path

import pytest

import cocite
from cocite.errors import UsageError
from cocite.integrations.html_places import related_list
from cocite.integrations.sites import MIN_SCORE, everywhere, related_pages
from tests.integrations.sites.pages import EACH, SUBJECTS, links


def test_pages_are_related_within_their_subject() -> None:
    found = related_pages(links(), 4)
    for subject in SUBJECTS:
        for n in range(EACH):
            listed = found[f"{subject}/page{n}"]
            assert len({*listed}) == len(listed) == 4
            assert {page.partition("/")[0] for page in listed} == {subject}


def test_what_tells_nothing_apart_is_neither_asked_nor_listed() -> None:
    assert everywhere(links()) == {"glossary", "index"}
    found = related_pages(links(), 99)
    assert found.keys() == links().keys()
    assert [found[page] for page in ("glossary", "index", "license")] == [[], [], []]
    listed = {page for pages in found.values() for page in pages}
    assert listed == {page for page in links() if "/" in page}


def test_lists_are_those_of_an_index() -> None:
    of = {page: tos for page, tos in links().items() if "/" in page}
    pairs = [(page, to) for page, tos in of.items() for to in tos if to in of]
    hits = cocite.related(pairs, "garden/page1", 99)
    assert {hit.score >= MIN_SCORE for hit in hits} == {True}
    assert related_pages(links(), 99)["garden/page1"] == [hit.node for hit in hits]
    least = hits[2].score
    found = related_pages(links(), 99, min_score=least)["garden/page1"]
    assert found == [hit.node for hit in hits if hit.score >= least]
    assert len(found) < len(hits)


def test_a_small_site_has_no_page_that_is_everywhere() -> None:
    assert everywhere({"index": ["a", "b", "c"], "a": ["b"], "b": [], "c": []}) == set()


def test_a_site_without_links_has_no_lists() -> None:
    assert related_pages({"a": [], "b": ["elsewhere", "b"]}, 5) == {"a": [], "b": []}


def test_answers_are_kept_until_something_changes(tmp_path: Path) -> None:
    kept = tmp_path / "cache" / "related-pages.json"

    def asked(**options: object) -> bool:
        """Whether an index was asked, and its answers were written."""
        before = kept.stat().st_ino, kept.stat().st_mtime_ns
        given = {"k": 3, "of": links()} | options
        of, k = given.pop("of"), given.pop("k")
        found = related_pages(of, k, folder=kept.parent, **given)  # type: ignore[arg-type]
        assert found == related_pages(of, k, **given)  # type: ignore[arg-type]
        return (kept.stat().st_ino, kept.stat().st_mtime_ns) != before

    related_pages(links(), 3, folder=kept.parent)
    assert not asked()
    assert not asked(of=dict(reversed(links().items())))
    assert asked(k=2)
    assert asked(measure="cocitation")
    assert asked(min_score=0.3)
    assert asked(of=links() | {"license": ["garden/page0"]})
    assert asked()
    whole = kept.read_text()
    for spoilt in ("", whole[:-9], json.dumps({**json.loads(whole), "related": 1}), "[]"):
        kept.write_text(spoilt)
        assert asked()
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize(
    ("k", "measure", "said"),
    [(0, None, "it must be 1 or more"), (5, "simrang", "no measure is called")],
)
def test_what_cannot_be_asked_is_told(k: int, measure: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        related_pages(links(), k, measure=measure)


def test_titles_and_addresses_are_escaped() -> None:
    shown = related_list("A & B", [('<script>"', 'x"onclick="y')])
    assert "<script>" not in shown
    assert 'href="x&quot;onclick=&quot;y"' in shown
    assert "<h2>A &amp; B</h2>" in shown
    assert related_list("A", []) == ""
