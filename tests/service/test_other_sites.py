"""Related pages in other sites, in a real browser: static files, the script, the frame."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import cocite
from tests.service.browser import Open
from tests.service.conftest import Server
from tests.service.hostile import PAYLOADS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def elsewhere(worlds: Server) -> Iterator[tuple[str, Path]]:
    """Another site: static files, the folder of ``--kind site`` among them."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    root = worlds.site.parent  # type: ignore[attr-defined]
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
    visit: Open, worlds: Server, elsewhere: tuple[str, Path]
) -> None:
    base, root = elsewhere
    ours = f"http://127.0.0.1:{worlds.port}"
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
