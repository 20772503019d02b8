"""The pages in a real browser, with and without scripts, on small and large screens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tests.server.browser import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.process]


def names_of(page: Page) -> list[str]:
    return page.locator("tr[data-rank] th a bdi").all_inner_texts()


def test_search_field_moves_from_front_page_to_header(visit: Open) -> None:
    page = visit().goto()
    focused = "document.activeElement === document.querySelector('main #node')"
    assert page.evaluate(focused)
    page.wait_for_selector(".starts:not([data-later]) a")
    page.locator(".tabs a", has_text="near").click()
    page.wait_for_selector(".tabs [aria-current]:has-text('near')")
    assert page.evaluate(focused)
    page.keyboard.type("topic 0 page 2")
    page.wait_for_selector("#names li")
    page.keyboard.press("Enter")
    page.wait_for_selector("header #node[data-index=near]")
    assert page.locator("#node").count() == 1
    page.go_back()
    page.wait_for_selector("main #node")
    page.wait_for_selector(".starts a")
    name = page.locator(".starts a b").first.inner_text()
    page.locator(".starts a").first.click()
    page.wait_for_selector("header #node")
    assert page.inner_text("h1 bdi") == name
    assert "index=near" in page.url


@pytest.mark.parametrize("scripts", [pytest.param(True, marks=pytest.mark.chosen), False])
def test_page_search_why_back_and_reload_work(visit: Open, scripts: bool) -> None:
    session = visit(java_script_enabled=scripts)
    page = session.goto()
    page.fill("#node", "topic 0 page 2")
    page.press("#node", "Enter")
    page.wait_for_url("**/?node=topic*")
    page.wait_for_selector("tr[data-rank]")
    assert session.heading == "topic 0 page 2"
    first = names_of(page)
    assert {
        name for name in first[:4] if not name.startswith(("topic 0", "The first", "<b>"))
    } == set()
    if not scripts:
        page.get_by_role("link", name="Map of these pages").click()
    page.locator("svg.map a[data-rank='2'] circle").click()
    session.wait_for_page(first[1])
    page.locator("tr[data-rank='1'] a.ask").click()
    page.wait_for_selector("#why")
    assert "why=" in page.url
    assert "links to both" in page.locator("#why .said").all_inner_texts()
    page.go_back()
    page.wait_for_selector("#why", state="detached")
    assert session.heading == first[1]
    for _ in range(1 if scripts else 2):
        page.go_back()
    session.wait_for_page("topic 0 page 2")
    assert names_of(page) == first
    if not scripts:
        page.go_forward()
    page.go_forward()
    session.wait_for_page(first[1])
    page.reload()
    assert session.heading == first[1]


def test_page_script_replaces_content_in_place(visit: Open) -> None:
    session = visit()
    page = session.goto(node="topic 1 page 1")
    page.evaluate("window.mark = 1")
    first = names_of(page)[0]
    page.locator("tr[data-rank='1'] th a").first.click()
    session.wait_for_page(first)
    assert page.evaluate("window.mark") == 1
    assert page.title().startswith(session.heading)
    assert page.evaluate("document.activeElement.id") == "main"
    assert "related pages" in page.inner_text("#said")
    page.hover("tr[data-rank='3']")
    assert page.locator("svg.map a.on").get_attribute("data-rank") == "3"


def test_page_keeps_hits_when_server_is_unreachable(visit: Open) -> None:
    session = visit()
    page = session.goto(node="topic 3 page 3")
    names = names_of(page)
    page.route("**/*", lambda route: route.abort())
    page.locator("tr[data-rank='1'] th a").first.click()
    page.wait_for_selector("[role=alert]:has-text('Not reachable')")
    assert names_of(page) == names
    page.unroute("**/*")
    page.click("text=Retry")
    session.wait_for_page(names[0])
    page.locator("main").press("/")
    assert page.evaluate("document.activeElement.id") == "node"


def test_page_can_cancel_slow_request(visit: Open) -> None:
    session = visit()
    page = session.goto(node="topic 3 page 3")
    names = names_of(page)
    page.clock.install()
    page.route("**/*", lambda route: None)  # never answers
    page.locator("tr[data-rank='1'] th a").first.click()
    page.wait_for_selector("main[aria-busy]")
    assert page.locator("text=Cancel").count() == 0
    page.clock.fast_forward(2100)
    page.click("text=Cancel")
    page.wait_for_selector("main:not([aria-busy])")
    assert page.locator("[role=alert]").count() == 0
    assert names_of(page) == names


def test_search_field_completes_names_by_keyboard(visit: Open) -> None:
    session = visit()
    page = session.goto(index="near")
    page.locator("#node").press_sequentially("opic 2")
    page.wait_for_selector("#names li:first-child:has-text('topic 2')")  # beyond "opic"
    assert page.get_attribute("#node", "aria-expanded") == "true"
    shown = page.locator("#names li").all_inner_texts()
    assert [name for name in shown if "topic 2" not in name] == []
    page.press("#node", "ArrowDown")
    page.press("#node", "ArrowDown")
    chosen = page.get_attribute("#node", "aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    page.press("#node", "Enter")
    page.wait_for_selector("tr[data-rank]")
    assert session.heading == shown[1]
    assert "index=near" in page.url
    page.fill("#node", "")
    page.locator("#node").press_sequentially("FIRST page")
    page.locator("#names li", has_text="The first page of all").click()
    session.wait_for_page("The first page of all")
    page.locator("#node").press_sequentially("x")
    page.fill("#node", "topic")
    page.wait_for_selector("#names li")
    page.press("#node", "Escape")
    assert page.locator("#names").is_hidden()
    page.fill("#node", "second")
    page.wait_for_selector("#names li")
    page.press("#node", "Enter")  # opens the first suggestion
    session.wait_for_page("<b>Second</b> & last")


FOCUSED = """() => {
    const focus = document.activeElement;
    if (focus === document.body) return null;
    const style = getComputedStyle(focus), box = focus.getBoundingClientRect();
    const dot = focus.querySelector("circle");
    return {
        name: focus.id || focus.getAttribute("href") || focus.tagName,
        row: focus.closest("tr")?.dataset.rank ?? null,
        map: focus.closest("svg.map") !== null,
        seen: box.width > 0 && box.height > 0,
        marked: style.outlineStyle !== "none"
            || (dot !== null && getComputedStyle(dot).strokeWidth === "4px"),
    };
}"""


@pytest.mark.parametrize("scripts", [True, False])
def test_page_is_fully_reachable_by_keyboard(visit: Open, scripts: bool) -> None:
    session = visit(java_script_enabled=scripts)
    page = session.goto(node="topic 3 page 3")
    focused: list[dict[str, object]] = []
    for _ in range(300):  # bounded, in case a page traps the focus
        page.keyboard.press("Tab")
        element = page.evaluate(FOCUSED)
        if element is None:
            break
        focused.append(element)
    assert element is None
    assert [each for each in focused if not (each["seen"] and each["marked"])] == []
    names = [each["name"] for each in focused]
    links = page.locator(
        "a[href]:visible:not([tabindex='-1']), input:visible, select:visible, summary:visible"
    ).count()
    assert len(names) >= links
    assert "node" in names
    rows = [each["row"] for each in focused if each["row"] is not None]
    assert rows == sorted(rows, key=lambda rank: int(str(rank)))
    assert {*rows} == {str(rank) for rank in range(1, len({*rows}) + 1)}
    second = page.locator("tr[data-rank='2'] th a")
    name = second.inner_text()
    second.focus()
    page.keyboard.press("Enter")
    session.wait_for_page(name)


@pytest.mark.parametrize("scripts", [True, False])
def test_search_field_filters_names_by_side(visit: Open, scripts: bool) -> None:
    session = visit(java_script_enabled=scripts)
    page = session.goto(index="shop")
    page.fill("#node", "4")
    page.select_option("#side", "user")
    page.press("#node", "Enter")
    page.wait_for_selector("tr[data-rank]")
    assert session.heading == "user:4"
    assert "side=user" in page.url
    assert all(name.startswith("user:") for name in names_of(page))
    page.locator("tr[data-rank] th a").first.click()
    page.wait_for_url(lambda url: "side=" not in url)
    assert page.input_value("#side") == "user"
    if scripts:
        page.fill("#node", "")
        page.locator("#node").press_sequentially("4")
        page.wait_for_selector("#names li")
        assert page.locator("#names li").all_inner_texts() == ["user:4"]
        page.select_option("#side", "item")
        page.fill("#node", "")
        page.locator("#node").press_sequentially("4")
        page.locator("#names li", has_text="4").click()
        session.wait_for_page("4")
        assert page.input_value("#side") == "item"


@pytest.mark.parametrize("scripts", [True, False])
def test_settings_form_changes_query(visit: Open, scripts: bool) -> None:
    session = visit(java_script_enabled=scripts)
    page = session.goto(node="topic 3 page 3")
    page.click(".controls summary")
    page.fill("#f-k", "3")
    page.fill("#f-decay", "0.8")
    page.fill("#f-prefix", "topic")
    page.press("#f-prefix", "Enter")
    page.wait_for_url("**k=3*")
    assert "exclude_prefix" not in page.url
    page.wait_for_function("() => document.querySelectorAll('tr[data-rank]').length === 3")
    assert page.locator(".controls[open]").count() == scripts  # a script keeps it open
    if not scripts:
        page.click(".controls summary")
    page.select_option("#f-index", "near")
    if not scripts:
        page.click(".controls button")
    page.wait_for_selector(".note")
    assert "decay was ignored" in page.inner_text(".note")
    with page.expect_download() as download:
        page.click("text=CSV")
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == names_of(page)


def test_page_shows_list_map_and_reasons_side_by_side(visit: Open) -> None:
    page = visit(viewport={"width": 1280, "height": 900}).goto(
        node="topic 0 page 0", why="topic 0 page 1"
    )
    boxes = [page.locator(selector).bounding_box() for selector in (".list", ".around", ".why")]
    assert all(box is not None for box in boxes)
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes if box]
    assert [round(end) for _, end in ends][:2] == [round(begin) for begin, _ in ends][1:]
    assert {round(box["y"]) for box in boxes if box} <= {96, 97}
    assert page.evaluate("document.fonts.check('14px Inter')")


def test_hit_list_selects_rows_by_click_and_keyboard(visit: Open) -> None:
    session = visit(viewport={"width": 1280, "height": 900})
    page = session.goto(node="topic 0 page 0")
    names = names_of(page)
    page.locator("tr[data-rank='2'] td.num").click()
    page.wait_for_selector("#why")
    assert page.locator("tr.seen").get_attribute("data-rank") == "2"
    assert names_of(page) == names
    page.locator("main").press("j")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.closest('tr').dataset.rank") == "2"
    page.keyboard.press("j")
    page.keyboard.press("w")
    page.wait_for_selector("tr.seen[data-rank='3']")
    page.keyboard.press("s")
    page.locator(".keys input").click()  # turn keys off
    page.locator("tr[data-rank='2'] th a").focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    session.wait_for_page(names[1])


def test_reasons_open_below_row_on_phone(visit: Open) -> None:
    page = visit(viewport={"width": 390, "height": 800}).goto(node="topic 0 page 0")
    page.locator("tr[data-rank='2'] a.ask").click()
    page.wait_for_selector("tr[data-rank='2'] + tr #why")
    small = page.locator(".hits a:visible, .chips button:visible").evaluate_all(
        "all => all.filter(a => a.getBoundingClientRect().height < 24).map(a => a.outerHTML)"
    )
    assert small == []


def test_group_chip_dims_other_rows(visit: Open) -> None:
    page = visit(viewport={"width": 1280, "height": 900}).goto(node="topic 0 page 0", index="near")
    chips = page.locator(".chips button")
    assert chips.count() >= 2
    assert sum(int(text) for text in page.locator(".chips .count").all_inner_texts()) == len(
        names_of(page)
    )
    chips.first.click()
    pressed = chips.evaluate_all("all => all.map(each => each.ariaPressed)")
    assert pressed == ["true"] + ["false"] * (chips.count() - 1)
    rows = page.locator("tr[data-rank]")
    dimmed = rows.evaluate_all("all => all.map(row => row.classList.contains('dim'))")
    outside = rows.evaluate_all("all => all.map(row => row.dataset.group !== '0')")
    assert dimmed == outside
    chips.first.click()
    assert page.locator(".dim").count() == 0


SCHEMES: tuple[tuple[Literal["light", "dark"], dict[str, Any]], ...]
SCHEMES = ("light", {}), ("dark", {"runOnly": ["color-contrast"]})
"""In the dark theme only colors can differ."""


def test_pages_have_no_axe_violations(visit: Open) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    session = visit(bypass_csp=True)
    for path, query in (
        ("/", {"node": "topic 0 page 0", "why": "topic 0 page 1", "prefix": "topic"}),
        ("/", {"node": ["topic 0 page 0", "topic 1 page 1"], "index": "near", "k": 3}),
        ("/", {"node": "topic"}),
        ("/", {"node": "3", "side": "user", "index": "shop"}),
        ("/", {"node": "x", "k": 0}),
        ("/embed", {"node": "topic 0 page 0"}),
        ("/docs", {}),
        ("/draft", {"links": "topic 0 page 0\nnobody", "index": "near"}),
        ("/compare", {"node": "topic 0 page 0", "index": "near"}),
        ("/map", {"node": "topic 0 page 0"}),
        ("/", {}),
    ):
        page = session.goto(path, **query)
        if "why" in query:
            page.fill("#node", "topic")
            page.wait_for_selector("#names li")
        for scheme, rules in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            options = {"resultTypes": ["violations"], **rules}
            violations = axe.Axe().run(page, options=options).response["violations"]
            summaries = [
                (each["id"], each["impact"], [n["html"][:200] for n in each["nodes"]][:3])
                for each in violations
            ]
            assert summaries == [], (path, query, scheme)


def test_page_url_keeps_trail(visit: Open) -> None:
    session = visit()
    page = session.goto(node="topic 3 page 3")
    first = names_of(page)[0]
    page.locator("tr[data-rank='1'] th a").first.click()
    session.wait_for_page(first)
    assert page.locator(".trail a").all_inner_texts() == ["topic 3 page 3"]
    second = names_of(page)[1]
    page.locator("svg.map a[data-rank='2'] circle").click()
    session.wait_for_page(second)
    assert len(page.locator(".trail a").all()) == 2
    page.reload()
    assert len(page.locator(".trail a").all()) == 2
    page.locator(".trail a").first.click()
    session.wait_for_page("topic 3 page 3")
    assert page.locator(".trail a").count() == 0


def test_settings_form_applies_at_once_and_keeps_input(visit: Open) -> None:
    session = visit()
    page = session.goto(node="topic 3 page 3")
    page.click(".controls summary")
    page.fill("#f-decay", "0.7")
    page.press("#f-decay", "Tab")
    page.keyboard.type("t<=2")  # while the request is pending
    page.wait_for_url("**decay=0.7*")
    assert page.evaluate("document.activeElement.value") == "t<=2"
    page.keyboard.press("Tab")  # the settings conflict: the list stays
    page.wait_for_selector(".fault")
    assert "meeting_weight" in page.inner_text(".fault")
    assert page.locator("tr[data-rank]").count() > 0
    page.fill("#f-decay", "")
    page.press("#f-decay", "Tab")
    page.wait_for_url("**meeting_weight=t*")
    assert page.locator(".fault").count() == 0
    page.locator(".presets a").first.click()
    page.wait_for_url(lambda url: "meeting" not in url)
    assert page.input_value("#f-meeting_weight") == ""
