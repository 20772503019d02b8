"""A real browser for tests: Debian's Chromium, driven by Playwright; a demo server; and visits to
it, which record whatever a page must not do, such as requests beyond loopback.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

import cocite
from tests.server.hostile import PAYLOADS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.server.conftest import Server, Start

__all__ = ["CHROMIUM", "Open", "Visit", "browser", "chromium", "demo_server", "visit", "visits"]

CHROMIUM = "/usr/bin/chromium"
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


def chromium() -> Iterator[Browser]:
    """A browser, closed at the end; skip if there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not os.access(CHROMIUM, os.X_OK):
        pytest.skip(f"there is no {CHROMIUM} (Debian: apt-get install chromium)")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from chromium()


@pytest.fixture(scope="module")
def demo_server(browser: Browser, tmp_path_factory: pytest.TempPathFactory, start: Start) -> Server:
    """Serve linked pages, some with hostile names and titles; and a shop's customers and goods."""
    folder = tmp_path_factory.mktemp("browser")
    names = [f"topic {n // 6} page {n % 6}" for n in range(36)]
    links = [(f"list {n // 6} {m}", name) for n, name in enumerate(names) for m in range(4)]
    links += [(f"list {n // 6} {n % 6 % 4}", names[(n + 7) % 36]) for n in range(36)]
    links += [("list 0 0", "https://example.org/page?a=1&b=2")]
    links += [("list 0 1", "https://example.org/page?a=1&b=2")]
    for number, payload in enumerate(PAYLOADS):
        links += [(f"hostile {number // 20} {m}", payload) for m in range(3)]
    rows = "".join(json.dumps({"source": a, "target": b}) + "\n" for a, b in links)
    (folder / "links.jsonl").write_text(rows, "utf-8")
    titles = [
        ("topic 0 page 0", "The first page of all"),
        ("topic 0 page 1", "<b>Second</b> & last"),
    ]
    titles += [(f"hostile {n} 0", PAYLOADS[n]) for n in range(10)]
    table = "".join(f"{name}\t{title}\n" for name, title in [("name", "title"), *titles])
    (folder / "titles.tsv").write_text(table, "utf-8")
    graph = cocite.ingest(folder / "links.jsonl", folder / "g", titles=folder / "titles.tsv")
    cocite.build(graph, folder / "near.index")
    cocite.build(graph, folder / "walks.index", measure="psimrank", samples=60)
    cocite.open(folder / "near.index").related_all(folder / "site", 5, kind="site")
    purchases = [(str(n), f"{n + m}") for n in range(10) for m in (1, 2, 3)]
    shop = cocite.ingest(purchases, folder / "shop", bipartite=True)
    cocite.build(shop, folder / "shop.index")
    indexes = [str(folder / f"{name}.index") for name in ("walks", "near", "shop")]
    permissions = ("--allow-origin", "*", "--frame-ancestors", "http://127.0.0.1:*")
    server = start(*indexes, *permissions)
    server.site = folder / "site"  # type: ignore[attr-defined]
    return server


class Visit:
    """A page in the browser, and the ``violations`` that it committed."""

    def __init__(self, page: Page, base: str, scripts: bool = True) -> None:
        self.page, self.base, self.scripts = page, base, scripts
        self.violations: list[str] = []
        page.on("dialog", self._opened)
        page.on("pageerror", self._failed)
        page.on("request", self._requested)
        page.on("console", self._logged)

    def _opened(self, dialog: Any) -> None:
        self.violations.append(f"dialog {dialog.message}")
        dialog.dismiss()

    def _failed(self, error: Any) -> None:
        self.violations.append(f"error {error}")

    def _requested(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "about:")):
            self.violations.append(f"request {request.url}")

    def _logged(self, message: Any) -> None:
        if "Content Security Policy" in message.text:
            self.violations.append(message.text)

    def goto(self, path: str = "/", **query: Any) -> Page:
        self.page.goto(f"{self.base}{path}{'?' * bool(query)}{urlencode(query, doseq=True)}")
        self.wait_for_map()
        return self.page

    def wait_for_map(self) -> None:
        """Wait until the list's map is there."""
        if self.scripts:
            missing = "document.querySelector('.around:not(:has(.live))')"
            self.page.wait_for_function(f"() => !{missing}")

    def wait_for_page(self, name: str) -> None:
        """Wait until the page of that name is shown."""
        is_shown = "name => document.querySelector('h1 bdi')?.innerText === name"
        self.page.wait_for_function(is_shown, arg=name)
        self.wait_for_map()

    @property
    def heading(self) -> str:
        """The name in the page's heading."""
        return self.page.inner_text("h1 bdi")


Open = Callable[..., Visit]


@pytest.fixture
def visits(browser: Browser) -> Iterator[Open]:
    """Visit a server, by its address."""
    found: list[tuple[Any, Visit]] = []

    def open_visit(base: str, **options: Any) -> Visit:
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        scripts = options.get("java_script_enabled", True)
        found.append((context, Visit(context.new_page(), base, scripts)))
        return found[-1][1]

    yield open_visit
    for context, opened in found:
        context.close()
        assert opened.violations == []


@pytest.fixture
def visit(visits: Open, demo_server: Server) -> Open:
    """Visit the demo server."""
    return partial(visits, f"http://127.0.0.1:{demo_server.port}")
