"""Where a list goes in the bytes of a page, by the HTML standard as lexbor implements it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cocite.errors import UsageError
from cocite.integrations.html_places import (
    MARK,
    PageRefused,
    place_in,
    references,
    related_list,
    relative_url,
    selector_of,
    short_titles,
    without_list,
)

lexbor = pytest.importorskip("selectolax.lexbor", reason="needs the extra html")
BLOCK = related_list("Related", [("Näher & <so>", "../a%20b.html")], f' {MARK}=""', True).encode()


def inserted(page: bytes, selector: str | None = None) -> bytes:
    offset = place_in(page, selector_of(selector) if selector else ()).offset
    return page[:offset] + BLOCK + page[offset:]


@pytest.mark.parametrize(
    ("page", "where"),
    [
        (b"<main>a<div></div>|</main><p>b", "main"),
        (b"<DIV ROLE='Main'>a<div>b</div>|</DIV><footer></footer>", "main"),
        (b"<!-- <main></main> --><main>a|</main>", "main"),
        (b"<script>'<main></main>'</script><main>a|</main>", "main"),
        (b"<textarea><main></main></textarea><title></main></title><main>|</main >", "main"),
        (b"<template><main></main></template><main>|</main>", "main"),
        (b"<p title='<main></main>'><p title=\"></main>\"><main>|</main>", "main"),
        (b"<main><p>never closed<article>b|</article></body>", "article"),
        (b"<article>a</article><article>b</article>|</body></html>", "body"),
        (b"<body>a|</BODY\n></html>", "body"),
        (b"<html>a|</html>", "body"),
        (b"a < b <3 </> </ x> <!x> <?y>|", "body"),
        (b"<main><!-- cocite -->|b</main>", "<!-- cocite -->"),
        (b"<main>a</main><div class=x data-cocite>|old</div>", "data-cocite"),
        (b"<p title='data-cocite'><main>|</main>", "main"),
        (b"<?xml version='1.0'?><main><![CDATA[</main>]]>|</main>", "main"),
        (b"<?xml version='1.0'?><script src='a'/><main>|</main>", "main"),
    ],
)
def test_place_in_finds_end_of_text(page: bytes, where: str) -> None:
    offset = page.index(b"|")
    found = place_in(page.replace(b"|", b""))
    assert (found.offset, found.where) == (offset, where)


@pytest.mark.parametrize(
    ("selector", "page"),
    [
        ("#a", b"<div><div id=a>x<div></div>|</div></div>"),
        ("div.b.c", b"<p class='b c'></p><div class='c  b'>|</div>"),
        ("[data-x]", b"<p data-y><p DATA-X>|</p>"),
        ("section[role=doc]", b"<section role=x></section><section role='doc'>|</section>"),
        ("br", b"<br>"),
        ("aside", b"<main></main>"),
    ],
)
def test_place_in_accepts_selector(selector: str, page: bytes) -> None:
    plain = page.replace(b"|", b"")
    if plain == page:
        with pytest.raises(PageRefused, match="no element"):
            place_in(plain, selector_of(selector))
    else:
        assert place_in(plain, selector_of(selector)).offset == page.index(b"|")


@pytest.mark.parametrize("selector", ["", "main p", "a > b", "a, b", ":first-child", "a[b=c", "*"])
def test_selector_of_refuses_unsupported_selector(selector: str) -> None:
    with pytest.raises(UsageError, match=r"selector is .* it must be a tag"):
        selector_of(selector)


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (b"<main>a</main><!-- ", "ends inside"),
        (b"<main>a</main><p title='x>", "ends inside"),
        (b"<main>a</main><script>1</scrip>", "script"),
        (b"<plaintext></main>", "plaintext"),
        (b"<frameset><frame src=a.html></frameset>", "frames"),
        ("\ufeff<main></main>".encode("utf-16-le"), "UTF-16"),
        (b"<meta charset=iso-2022-jp><main></main>", "not based on ASCII"),
    ],
)
def test_place_in_refuses_unsupported_pages(page: bytes, message: str) -> None:
    with pytest.raises(PageRefused, match=message):
        place_in(page)


def test_without_list_removes_only_inserted_list() -> None:
    page = b"\xff<main><nav>menu</nav>\r\n</main>"
    assert without_list(inserted(page)) == page == without_list(page)
    assert without_list(inserted(page).replace(b"<li>", b"<li><nav></nav>")) == page
    with pytest.raises(PageRefused, match="no end"):
        without_list(inserted(page).replace(b"</nav>", b""))
    with pytest.raises(PageRefused, match="another program"):
        without_list(inserted(page).replace(MARK.encode(), b"x"))
    quoted = b"<pre>&lt;nav class=cocite-related</pre><!-- " + BLOCK + b" -->"
    assert without_list(quoted) == quoted


PIECES = (
    *("<main>", "</main>", "<p>", "<div>", "</div>", "<article>", "</article>", "<b>", "</body>"),
    *("<!--", "-->", "--!>", "<!>", "<?x>", "<script>", "</script>", "<title>", "</title>"),
    *("<p a='", "'>", '<p b="', '">', "<p c=d>", "<p/ e = f/>", "<textarea>", "</textarea >", "é"),
    *("<style>", "</style>", "<a href=x>", "</a>", "<x-y>", "</html>"),
    *("< ", "<", "</", ">", "=", "'", '"'),
)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_place_in_agrees_with_parser(text: str) -> None:
    page = text.encode()
    try:
        changed = inserted(page)
    except PageRefused:
        return
    assert without_list(changed) == page
    tree = lexbor.LexborHTMLParser(changed.decode())
    lists = tree.css("nav.cocite-related")
    assert len(lists) == 1
    ours = lists[0].css("a[href='../a%20b.html']")
    assert [each.text() for each in ours] == ["Näher & <so>"]
    hrefs = {a.attributes["href"] for a in lexbor.LexborHTMLParser(text).css("a[href]")}
    assert {*references(text)} == hrefs


@pytest.mark.parametrize(
    ("source", "target", "url"),
    [
        ("a.html", "b.html", "b.html"),
        ("a/b/c.html", "a/d/e.html", "../d/e.html"),
        ("a/b/c.html", "index.html", "../../index.html"),
        ("a.html", "b/c%20d.html", "b/c%20d.html"),
        ("a/b/", "a/c/", "../c/"),
        ("a/", "", "../"),
        ("a.html", "", "./"),
        ("a/x.html", "a/", "./"),
        ("a.html", "b:c.html", "./b:c.html"),
        ("", "a/", "a/"),
        ("a/a/b.html", "a/b.html", "../b.html"),
    ],
)
def test_relative_url_resolves_target(source: str, target: str, url: str) -> None:
    assert relative_url(source, target) == url


def test_short_titles_omit_site_name() -> None:
    site = {"a": "A - b — Site", "b": "B — Site", "c": "C — Site", "d": "Site"}
    assert short_titles(site) == {"a": "A - b", "b": "B", "c": "C", "d": "Site"}
    few = {"a": "A - x", "b": "B - y", "c": "C - x"}
    assert short_titles(few) == few
