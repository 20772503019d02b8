"""A real browser for tests: Debian's chromium, driven by Playwright, kept from all but loopback; a
server of two worlds, and visits to it that note whatever a page may not do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

import cocite
from tests.server.hostile import PAYLOADS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.server.conftest import Server, Start

__all__ = ["CHROMIUM", "Open", "Visit", "browser", "chromium", "visit", "worlds"]

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
    """One browser, closed in the end; skips where there is none."""
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
def worlds(browser: Browser, tmp_path_factory: pytest.TempPathFactory, start: Start) -> Server:
    """Worlds: pages that are linked, names that are hostile, with such titles; and customers of
    a shop with its goods.
    """
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
    bought = [(str(n), f"{n + m}") for n in range(10) for m in (1, 2, 3)]
    shop = cocite.ingest(bought, place / "shop", bipartite=True)
    cocite.build(shop, place / "shop.index")
    indexes = [str(place / f"{name}.index") for name in ("walks", "near", "shop")]
    open_to = ("--allow-origin", "*", "--frame-ancestors", "http://127.0.0.1:*")
    found = start(*indexes, *open_to)
    found.site = place / "site"  # type: ignore[attr-defined]
    return found


class Visit:
    """A page in the browser, and what it did that it may not."""

    def __init__(self, page: Page, base: str, scripts: bool = True) -> None:
        self.page, self.base, self.scripts = page, base, scripts
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
        self.mapped()
        return self.page

    def mapped(self) -> None:
        """Wait until a list has its map."""
        if self.scripts:
            there = "document.querySelector('.around:not(:has(.live))')"
            self.page.wait_for_function(f"() => !{there}")

    def until(self, name: str) -> None:
        """Wait until the page of that name is there."""
        there = "name => document.querySelector('h1 bdi')?.innerText === name"
        self.page.wait_for_function(there, arg=name)
        self.mapped()

    @property
    def asked(self) -> str:
        """The heading."""
        return self.page.inner_text("h1 bdi")


Open = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, worlds: Server) -> Iterator[Open]:
    made: list[tuple[Any, Visit]] = []

    def opening(**options: Any) -> Visit:
        context = browser.new_context(**options)
        context.set_default_timeout(60_000)
        scripts = options.get("java_script_enabled", True)
        base = f"http://127.0.0.1:{worlds.port}"
        made.append((context, Visit(context.new_page(), base, scripts)))
        return made[-1][1]

    yield opening
    for context, each in made:
        context.close()
        assert each.wrong == []
