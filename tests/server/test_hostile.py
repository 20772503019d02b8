"""What hostile names try in a real browser: nothing of it runs, and nothing is loaded."""

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
"""Whether there are suggestions, and all have the text, as names match whether encoded or not."""


def test_hostile_names_are_text(visit: Open) -> None:
    assert len(PAYLOADS) == 200
    there = visit()
    seen = set()
    for number in range(0, 200, 20):
        page = there.goto(node=PAYLOADS[number], k=20, why=PAYLOADS[number + 1])
        called = page.evaluate("document.querySelector('h1 bdi').textContent")
        assert called in (PAYLOADS[number], unquote(PAYLOADS[number]))
        shown = page.locator("tr[data-rank] th a bdi").all_text_contents()
        assert len(shown) >= 19
        seen |= {called, *shown}
        for link in page.locator("a[href]").evaluate_all(
            "all => all.map(a => a.getAttribute('href'))"
        ):
            assert re.match(r"/|#|https?://a\.example/", link), link
        page.locator("tr[data-rank='1'] a.ask").click()  # the same in place
        page.wait_for_selector("tr.seen[data-rank='1']")
        there.goto("/embed", node=PAYLOADS[number], k=20)
    for each in PAYLOADS:  # percent-decoded or as it is
        assert seen & {each, unquote(each)}, each
    assert seen <= {*PAYLOADS, *map(unquote, PAYLOADS)}
    page = there.goto()
    for text in ("<script>", "onerror", "javascript:", "alert"):
        page.fill("#node", text)
        page.wait_for_function(_ALL_MATCH, arg=text)
    for text in PAYLOADS[::25]:
        page = there.goto(node=f"{text} no page", index="near")
        assert page.evaluate("document.querySelector('h1 bdi').textContent") == f"{text} no page"
        there.goto(node="x", why=text, k=text)
    assert page.evaluate("window.hit") is None
