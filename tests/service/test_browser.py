"""The pages in a real browser: what people do, with and without scripts, on any screen, and what
hostile names try.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import pytest

import cocite
from tests.service.browser import chromium
from tests.service.conftest import Server, Start

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SITE = "https://elsewhere.example"
PAYLOADS = [
    *(f"<script>window.hit={n};alert({n})</script>" for n in range(10)),
    *(f"<img src={q}x{q} onerror={q}alert(1){q}>" for q in ("", "'", '"', "`")),
    *(f"{q}><svg/onload=alert(1)>" for q in ("", "'", '"', "-->", "]]>", "</title>", "</script>")),
    *(f'{q} onmouseover={q}alert(1){q} autofocus onfocus="alert(1)' for q in ("", "'", '"')),
    *(f"</{tag}><script>alert('{tag}')</script>" for tag in ("bdi", "a", "svg", "title", "text")),
    *(f"</{tag}><img src=x onerror=alert(1)>" for tag in ("style", "textarea", "noscript", "q")),
    *(
        f"<{tag} src=//{SITE[8:]}/x></{tag}>"
        for tag in ("iframe", "script", "img", "embed", "video")
    ),
    *(f"<{tag} href={SITE}/>" for tag in ("base", "link rel=stylesheet", "a", "use")),
    *(
        f"{scheme}:alert(1)"
        for scheme in ("javascript", "JaVaScRiPt", "vbscript", "java\u00adscript")
    ),
    *(f"javascript:alert(1)//{scheme}://a.example/" for scheme in ("http", "https")),
    *(f"http://a.example/{q}onclick=alert(1)//{q}" for q in ("'", '"', " ", "\u00a0", "`")),
    *(f"https://a.example/?q={quote('<script>alert(1)</script>')}&n={n}" for n in range(3)),
    *(f"{{{{{code}}}}}" for code in ("7*7", "config", "''.__class__", "self.__init__")),
    *(f"{{% {code} %}}" for code in ("include 'page.html'", "for x in ().__class__")),
    *(f"${{{code}}}" for code in ("alert(1)", "7*7")),
    *("=cmd|' /C calc'!A0", "+1+1", "-1", "@SUM(1)", '"; DROP TABLE pages; --', "' OR 1=1 --"),
    *(f"&{name};script&{other};alert(1)" for name, other in (("lt", "gt"), ("#60", "#62"))),
    *(f"{sign}script{sign}alert(1)" for sign in ("\u2028", "\u202e", "\u200b", "\ufeff", "\uff1c")),
    *(f"<{tag} onload=alert(1)>" for tag in ("body", "svg", "iframe", "math", "object")),
    *(f"<{tag} open ontoggle=alert(1)>" for tag in ("details", "details/", "DETAILS")),
    *(f'<form action="{SITE}"><button{n}>' for n in range(2)),
    *(f'<meta http-equiv="refresh" content="{n};url={SITE}">' for n in range(3)),
    *(f"<!--{n}--><script>alert({n})</script><!--" for n in range(3)),
    *(f"%3Cscript%3Ealert({n})%3C/script%3E" for n in range(3)),
    *(f"../../{name}" for name in ("etc/passwd", "v1/related", "?node=x#why")),
    *("constructor", "__proto__", "toString", "hasOwnProperty", "null", "undefined", "NaN"),
    *("x" * 300 + "<script>alert(1)</script>", "\U0001f469‍\U0001f4bb" * 20, "a" * 2000),
]
PAYLOADS = list(dict.fromkeys(" ".join(payload.split()) for payload in PAYLOADS))
PAYLOADS += [f"<b{n}><script>alert({n})//</script>\"'`" for n in range(200 - len(PAYLOADS))]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from chromium()


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory, start: Start) -> Server:
    """Two worlds: modules that import each other, and names that are hostile, with such titles."""
    place = tmp_path_factory.mktemp("browser")
    names = [f"topic {n // 6} page {n % 6}" for n in range(36)]
    links = [(f"list {n // 6} {m}", name) for n, name in enumerate(names) for m in range(4)]
    links += [(f"list {n // 6} {n % 6 % 4}", names[(n + 7) % 36]) for n in range(36)]
    links += [("list 0 0", "https://example.org/page?a=1&b=2")]
    links += [("list 0 1", "https://example.org/page?a=1&b=2")]
    for number, payload in enumerate(PAYLOADS):
        links += [(f"hostile {number // 20} {m}", payload) for m in range(3)]
    rows = "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in links)
    (place / "links.jsonl").write_text(rows, "utf-8")
    titles = [
        ("topic 0 page 0", "The first page of all"),
        ("topic 0 page 1", "<b>Second</b> & last"),
    ]
    titles += [(f"hostile {n} 0", PAYLOADS[n]) for n in range(10)]
    table = "".join(f"{name}\t{title}\n" for name, title in [("name", "title"), *titles])
    (place / "titles.tsv").write_text(table, "utf-8")
    graph = cocite.ingest(place / "links.jsonl", place / "g", titles=place / "titles.tsv")
    cocite.build(graph, place / "near.index")
    cocite.build(graph, place / "walks.index", measure="psimrank", samples=60)
    cocite.open(place / "near.index").related_all(place / "site", 5, kind="site")
    indexes = [str(place / "walks.index"), str(place / "near.index")]
    open_to = ("--allow-origin", "*", "--frame-ancestors", "http://127.0.0.1:*")
    found = start(*indexes, "--target-latency", "10000", *open_to)
    found.site = place / "site"  # type: ignore[attr-defined]
    return found


class Visit:
    """A page in the browser, and what it did that it may not."""

    def __init__(self, page: Page, base: str) -> None:
        self.page, self.base = page, base
        self.wrong: list[str] = []
        page.on("dialog", self._opened)
        page.on("pageerror", self._failed)
        page.on("request", self._requested)
        page.on("console", self._said)

    def _opened(self, dialog: Any) -> None:
        self.wrong.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _failed(self, error: Any) -> None:
        self.wrong.append(f"error {error}")

    def _requested(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "about:")):
            self.wrong.append(f"request {request.url}")

    def _said(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.wrong.append(message.text)

    def goto(self, path: str = "/", **query: Any) -> Page:
        self.page.goto(f"{self.base}{path}{'?' * bool(query)}{urlencode(query, doseq=True)}")
        return self.page

    def until(self, name: str) -> None:
        """Wait until the page of that name is there."""
        there = "name => document.querySelector('h1 bdi')?.innerText === name"
        self.page.wait_for_function(there, arg=name)

    @property
    def asked(self) -> str:
        """The heading."""
        return self.page.inner_text("h1 bdi")


Open = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Open]:
    made: list[tuple[Any, Visit]] = []

    def opening(**options: Any) -> Visit:
        context = browser.new_context(**options)
        context.set_default_timeout(20_000)
        made.append((context, Visit(context.new_page(), f"http://127.0.0.1:{server.port}")))
        return made[-1][1]

    yield opening
    for context, each in made:
        context.close()
        assert each.wrong == []


def names_of(page: Page) -> list[str]:
    return page.locator("tr[data-rank] th a:first-child bdi").all_inner_texts()


@pytest.mark.parametrize("scripts", [True, False])
def test_search_walk_why_and_back(visit: Open, scripts: bool) -> None:
    there = visit(java_script_enabled=scripts)
    page = there.goto()
    page.fill("#node", "topic 0 page 2")
    page.press("#node", "Enter")
    page.wait_for_url("**/?node=topic*")
    page.wait_for_selector("tr[data-rank]")
    assert there.asked == "topic 0 page 2"
    first = names_of(page)
    assert {
        name for name in first[:4] if not name.startswith(("topic 0", "The first", "<b>"))
    } == set()
    page.locator("svg.map a[data-rank='2']").click()
    there.until(first[1])
    page.locator("tr[data-rank='1'] a.ask").click()
    page.wait_for_selector("#why")
    assert "why=" in page.url
    assert page.locator("#why .path a").count() >= 3
    page.go_back()
    page.wait_for_selector("#why", state="detached")
    assert there.asked == first[1]
    page.go_back()
    there.until("topic 0 page 2")
    assert names_of(page) == first
    page.go_forward()
    there.until(first[1])
    page.reload()
    assert there.asked == first[1]


def test_with_a_script_pages_are_exchanged_in_place(visit: Open) -> None:
    there = visit()
    page = there.goto(node="topic 1 page 1")
    page.evaluate("window.mark = 1")
    first = names_of(page)[0]
    page.locator("tr[data-rank='1'] th a").first.click()
    there.until(first)
    assert page.evaluate("window.mark") == 1
    assert page.title().startswith(there.asked)
    assert page.evaluate("document.activeElement.id") == "main"
    assert "related pages" in page.inner_text("#said")
    page.hover("tr[data-rank='3']")
    assert page.locator("svg.map a.on").get_attribute("data-rank") == "3"


def test_names_are_completed_by_keys(visit: Open) -> None:
    there = visit()
    page = there.goto(index="near")
    page.locator("#node").press_sequentially("opic 2")
    page.wait_for_selector("#names li")
    assert page.get_attribute("#node", "aria-expanded") == "true"
    shown = page.locator("#names li").all_inner_texts()
    assert all("topic 2" in name for name in shown)
    page.press("#node", "ArrowDown")
    page.press("#node", "ArrowDown")
    chosen = page.get_attribute("#node", "aria-activedescendant")
    assert page.locator(f"#{chosen}").get_attribute("aria-selected") == "true"
    page.press("#node", "Enter")
    page.wait_for_selector("tr[data-rank]")
    assert there.asked == shown[1]
    assert "index=near" in page.url
    page.fill("#node", "")
    page.locator("#node").press_sequentially("FIRST page")
    page.locator("#names li", has_text="The first page of all").click()
    there.until("The first page of all")
    page.locator("#node").press_sequentially("x")
    page.fill("#node", "topic")
    page.wait_for_selector("#names li")
    page.press("#node", "Escape")
    assert page.locator("#names").is_hidden()


@pytest.mark.parametrize("scripts", [True, False])
def test_the_form_asks_otherwise(visit: Open, scripts: bool) -> None:
    there = visit(java_script_enabled=scripts)
    page = there.goto(node="topic 3 page 3")
    page.click(".controls summary")
    page.fill("#f-k", "3")
    page.fill("#f-decay", "0.8")
    page.fill("#f-prefix", "topic")
    page.click(".controls button")
    page.wait_for_url("**k=3*")
    assert "exclude_prefix" not in page.url
    page.wait_for_function("() => document.querySelectorAll('tr[data-rank]').length === 3")
    assert page.locator(".controls[open]").count() == scripts  # a script leaves it open
    if not scripts:
        page.click(".controls summary")
    page.select_option("#f-index", "near")
    page.click(".controls button")
    page.wait_for_selector(".note")
    assert "decay is left out" in page.inner_text(".note")
    with page.expect_download() as told:
        page.click("text=CSV")
    lines = Path(told.value.path()).read_text("utf-8").splitlines()
    assert [line.split(",")[1] for line in lines[1:]] == names_of(page)


@pytest.mark.parametrize("width", [360, 390, 820, 1280, 2200])
def test_nothing_is_wider_than_the_screen(visit: Open, width: int) -> None:
    there = visit(viewport={"width": width, "height": 800})
    for query in ({}, {"node": "topic 0 page 0", "why": "topic 0 page 1"}, {"node": PAYLOADS[0]}):
        page = there.goto(**query)
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_labels_lie_beside_each_other(visit: Open) -> None:
    page = visit(viewport={"width": 1280, "height": 900}).goto(node="topic 0 page 0", index="near")
    boxes = page.locator("svg.map .label").evaluate_all(
        "all => all.map(a => a.getBoundingClientRect()).map(b => [b.x, b.y, b.right, b.bottom])"
    )
    assert len(boxes) >= 12
    for at, a in enumerate(boxes):
        for b in boxes[:at]:
            across, along = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
            assert across <= 1 or along <= 3  # the heights of boxes have room above letters


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit: Open, scheme: str) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    there = visit(color_scheme=scheme, bypass_csp=True)
    for path, query in (
        ("/", {"node": "topic 0 page 0", "why": "topic 0 page 1", "prefix": "topic"}),
        ("/", {"node": ["topic 0 page 0", "topic 1 page 1"], "index": "near", "k": 3}),
        ("/", {"node": "topic"}),
        ("/", {"node": "x", "k": 0}),
        ("/embed", {"node": "topic 0 page 0"}),
        ("/docs", {}),
        ("/", {}),
    ):
        page = there.goto(path, **query)
        if "why" in query:
            page.fill("#node", "topic")
            page.wait_for_selector("#names li")
        found = axe.Axe().run(page).response["violations"]
        told = [
            (each["id"], each["impact"], [n["html"][:200] for n in each["nodes"]][:3])
            for each in found
        ]
        assert told == [], (path, query)


def test_hostile_names_are_text(visit: Open, server: Server) -> None:
    assert len(PAYLOADS) == 200
    there = visit()
    seen = set()
    for number in range(0, 200, 20):
        page = there.goto(node=PAYLOADS[number], k=20, why=PAYLOADS[number + 1])
        assert page.evaluate("document.querySelector('h1 bdi').textContent") == PAYLOADS[number]
        shown = page.locator("tr[data-rank] th a:first-child bdi").all_text_contents()
        assert len(shown) >= 19
        seen |= {PAYLOADS[number], *shown}
        for link in page.locator("a[href]").evaluate_all(
            "all => all.map(a => a.getAttribute('href'))"
        ):
            assert re.match(r"/|#|https?://a\.example/", link), link
        page.locator("tr[data-rank='1'] a.ask").click()  # the same in place
        page.wait_for_selector("tr.seen[data-rank='1']")
        there.goto("/embed", node=PAYLOADS[number], k=20)
    assert seen == set(PAYLOADS)
    page = there.goto()
    for text in ("<script>", "onerror", "javascript:", "alert"):
        page.fill("#node", text)
        page.wait_for_function(
            "text => document.querySelector('#names bdi')?.textContent.includes(text)", arg=text
        )
    for text in PAYLOADS[::10]:
        page = there.goto(node=f"{text} no page", index="near")
        assert page.evaluate("document.querySelector('h1 bdi').textContent") == f"{text} no page"
        there.goto(node="x", why=text, k=text)
    assert page.evaluate("window.hit") is None


@pytest.fixture(scope="module")
def elsewhere(server: Server) -> Iterator[tuple[str, Path]]:
    """Another site: static files, the folder of ``--kind site`` among them."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    root = server.site.parent  # type: ignore[attr-defined]
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=root)) as files:
        thread = threading.Thread(target=files.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{files.server_port}", root
        files.shutdown()
        thread.join()


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_static_lists_are_found_by_their_names(
    visit: Open, elsewhere: tuple[str, Path], levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cocite.query.batch.outputs import folder as folders

    base, root = elsewhere
    if levels:
        monkeypatch.setattr(folders, "_FEW", 1)
        monkeypatch.setattr(folders, "_MANY", 1 if levels == 2 else 10**6)
    index, folder = cocite.open(root / "near.index"), f"site{levels}"
    asked = ["topic 0 page 0", "ü/.. '!*()~", *PAYLOADS]
    index.related_all(root / folder, 5, kind="site", nodes=[n for n in asked if n in index.nodes])
    tags = "".join(
        f'<div><script src="/{folder}/related.js" data-node="{_quoted(name)}" data-title="">'
        "</script></div>"
        for name in asked
    )
    (root / "page.html").write_text(f"<!doctype html><meta charset=utf-8>{tags}", "utf-8")
    there = visit()
    there.base = base
    page = there.goto("/page.html")
    page.wait_for_function(f"() => document.querySelectorAll('nav').length === {len(asked) - 1}")
    found = page.evaluate(
        "[...document.querySelectorAll('div')].map("
        "each => [...each.querySelectorAll('li')].map(item => item.textContent))"
    )
    for name, shown in zip(asked, found, strict=True):
        hits = index.related(name, 5) if name in index.nodes else []
        assert shown == [hit.title or hit.node for hit in hits]


def test_a_server_puts_lists_into_other_sites(
    visit: Open, server: Server, elsewhere: tuple[str, Path]
) -> None:
    base, root = elsewhere
    ours = f"http://127.0.0.1:{server.port}"
    (root / "other.html").write_text(
        f'<!doctype html><link rel="canonical" href="https://example.org/page?a=1&amp;b=2"><body>'
        f'<script src="{ours}/embed.js" data-k="3" data-link="https://w.example/{{}}"></script>'
        f'<iframe src="{ours}/embed?node=topic+0+page+3&k=4"></iframe>'
    )
    there = visit()
    there.base = base
    page = there.goto("/other.html")
    page.wait_for_selector("nav.cocite-related li:nth-child(3)")
    assert page.inner_text("nav h2") == "Related pages"
    for link in page.locator("nav a").all():
        assert urlsplit(link.get_attribute("href") or "").netloc == "w.example"
    frame = page.frame_locator("iframe")
    frame.locator("li").nth(3).wait_for()
    assert frame.locator("li").count() == 4


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
