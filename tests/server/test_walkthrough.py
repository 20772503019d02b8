"""A walk as people take it, at four widths and in both themes: search, open, why, expand, compare,
share; no label lies on another, axe finds nothing, and no request takes half a second.
"""

from itertools import combinations
from typing import Any

import pytest

from tests.server.browser import Open
from tests.server.test_map import BOXES

pytestmark = [pytest.mark.browser, pytest.mark.process]

SLOWEST = 500
"""Milliseconds of a request, at most."""
TIMES = """() => ["resource", "navigation"].flatMap(kind => performance.getEntriesByType(kind))
    .map(each => [each.name, each.responseEnd - each.requestStart])"""


ENDS = r"""() => [...document.querySelectorAll("#why .ribbons")].flatMap(ribbons => {
    const boxes = [...ribbons.querySelectorAll("li")].map(box => box.getBoundingClientRect());
    return [...ribbons.querySelectorAll(".flank")].flatMap(flank => {
        const { top } = flank.getBoundingClientRect();
        return [...flank.querySelectorAll(".part")].map((part, row) => {
            const [, from, to] = /(\S+)V([\d.]+)C/.exec(part.getAttribute("d")).map(Number);
            return [top + from - boxes[row].top, boxes[row].bottom - top - to];
        });
    });
})"""
"""How far the ends of each ribbon are inside of the box of its row, above and below."""


AGAIN = """async address => {
    const begun = performance.now();
    await (await fetch(address)).text();
    return performance.now() - begun;
}"""


@pytest.mark.parametrize(
    ("width", "scheme"), [(390, "dark"), (768, "light"), (1280, "dark"), (1920, "light")]
)
def test_walk(visit: Open, width: int, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    how: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    there = visit(**how, bypass_csp=True, reduced_motion="reduce")
    page = there.goto(index="near")

    def looks_well(thoroughly: bool = False) -> None:
        assert not thoroughly or axe.Axe().run(page).response["violations"] == []
        boxes = page.evaluate(BOXES, "svg.map text:not(.rank)")
        for a, b in combinations(boxes, 2):
            assert min(min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])) <= 1
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        slow = [address for address, spent in page.evaluate(TIMES) if spent > SLOWEST]
        for (
            address
        ) in slow:  # of a machine with other work: as fast as a like one, the best of four
            assert min(page.evaluate(AGAIN, f"{address}&k={k}") for k in range(16, 20)) < SLOWEST

    page.wait_for_selector(".starts a")
    looks_well(thoroughly=True)
    page.fill("#node", "topic 0 page 2")
    page.press("#node", "Enter")
    there.until("topic 0 page 2")
    looks_well()
    second = page.locator("tr[data-rank='2'] th a").first.inner_text()
    page.locator("tr[data-rank='2'] th a").first.click()  # open
    there.until(second)
    page.locator("tr[data-rank='1'] a.ask").click()
    page.wait_for_selector("#why")
    there.mapped()
    looks_well(thoroughly=True)
    ends = page.evaluate(ENDS)
    assert len(ends) >= 4
    assert all(above >= -1 and below >= -1 and abs(above - below) <= 1 for above, below in ends)
    if width < 640:
        page.get_by_role("link", name="Map", exact=True).click()
    page.locator("svg.map a[data-rank='1'] circle").dblclick()  # expand
    page.wait_for_selector("svg.map a.more")
    looks_well()
    address = page.url
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_selector(".compare")
    looks_well(thoroughly=True)
    other = visit(**how, bypass_csp=True)  # who was sent the address
    other.page.goto(address)
    other.mapped()
    assert other.asked == second
    assert other.page.locator("#why").is_visible()
