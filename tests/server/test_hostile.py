"""Hostile names in a real browser: none of them runs or loads anything."""

import re
from urllib.parse import unquote

import pytest

from tests.server.browser import Open
from tests.server.hostile import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.process]

_ALL_MATCH = """text => {
  const decoded = shown => { try { return decodeURIComponent(shown); } catch { return shown; } };
  const found = [...document.querySelectorAll("#names li")];
  return found.length && found.every(
    each => decoded(each.textContent).toLowerCase().includes(text));
}"""
"""Whether there are suggestions and all contain the text, percent-decoded or not."""


def test_pages_show_hostile_names_as_text(visit: Open) -> None:
    assert len(PAYLOADS) == 200
    session = visit()
    seen = set()
    for number in range(0, 200, 20):
        page = session.goto(node=PAYLOADS[number], k=20, why=PAYLOADS[number + 1])
        heading = page.evaluate("document.querySelector('h1 bdi').textContent")
        assert heading in (PAYLOADS[number], unquote(PAYLOADS[number]))
        shown = page.locator("tr[data-rank] th a bdi").all_text_contents()
        assert len(shown) >= 19
        seen |= {heading, *shown}
        for link in page.locator("a[href]").evaluate_all(
            "all => all.map(a => a.getAttribute('href'))"
        ):
            assert re.match(r"/|#|https?://a\.example/", link), link
        page.locator("tr[data-rank='1'] a.ask").click()  # again, in place
        page.wait_for_selector("tr.seen[data-rank='1']")
        session.goto("/embed", node=PAYLOADS[number], k=20)
    for payload in PAYLOADS:  # percent-decoded or unchanged
        assert seen & {payload, unquote(payload)}, payload
    assert seen <= {*PAYLOADS, *map(unquote, PAYLOADS)}
    page = session.goto()
    for text in ("<script>", "onerror", "javascript:", "alert"):
        page.fill("#node", text)
        page.wait_for_function(_ALL_MATCH, arg=text)
    for text in PAYLOADS[::25]:
        page = session.goto(node=f"{text} no page", index="near")
        assert page.evaluate("document.querySelector('h1 bdi').textContent") == f"{text} no page"
        session.goto(node="x", why=text, k=text)
    assert page.evaluate("window.hit") is None
