"""Related pages on other sites, in a real browser: static files, the script, the frame."""

from __future__ import annotations

import http.server
import os
import re
import shlex
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import cocite
from cocite.cli.main import main
from tests.documents import sample_data
from tests.server.browser import Open
from tests.server.conftest import Server, Start
from tests.server.hostile import PAYLOADS

pytestmark = [pytest.mark.browser, pytest.mark.process]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def other_site(demo_server: Server) -> Iterator[tuple[str, Path]]:
    """Another site: static files with a folder of ``--output-format site``."""
    yield from serve_folder(demo_server.site.parent)  # type: ignore[attr-defined]


@pytest.mark.parametrize("levels", [0, 1, 2])
def test_related_js_finds_lists_by_node_name(
    visits: Open, other_site: tuple[str, Path], levels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cocite.search.batch import folder as folder_module

    base, root = other_site
    if levels:
        monkeypatch.setattr(folder_module, "_FEW", 1)
        monkeypatch.setattr(folder_module, "_MANY", 1 if levels == 2 else 10**6)
    index, folder = cocite.open(root / "near.index"), f"site{levels}"
    queries = ["topic 0 page 0", "ü/.. '!*()~", *PAYLOADS]
    index.related_all(root / folder, 5, kind="site", nodes=[n for n in queries if n in index.nodes])
    tags = "".join(
        f'<div><script src="/{folder}/related.js" data-node="{_quoted(name)}" data-title="">'
        "</script></div>"
        for name in queries
    )
    (root / "page.html").write_text(f"<!doctype html><meta charset=utf-8>{tags}", "utf-8")
    page = visits(base).goto("/page.html")
    page.wait_for_function(f"() => document.querySelectorAll('nav').length === {len(queries) - 1}")
    lists = page.evaluate(
        "[...document.querySelectorAll('div')].map("
        "each => [...each.querySelectorAll('li')].map(item => item.textContent))"
    )
    for name, shown in zip(queries, lists, strict=True):
        hits = index.related(name, 5) if name in index.nodes else []
        assert shown == [hit.title or hit.node for hit in hits]


def test_embed_shows_lists_on_other_sites(
    visits: Open, demo_server: Server, other_site: tuple[str, Path]
) -> None:
    base, root = other_site
    server_url = f"http://127.0.0.1:{demo_server.port}"
    (root / "other.html").write_text(
        f'<!doctype html><link rel="canonical" href="https://example.org/page?a=1&amp;b=2"><body>'
        f'<script src="{server_url}/embed.js" data-k="3" data-link="https://w.example/{{}}"></script>'
        f'<iframe src="{server_url}/embed?node=topic+0+page+3&k=4"></iframe>'
    )
    page = visits(base).goto("/other.html")
    page.wait_for_selector("nav.cocite-related li:nth-child(3)")
    assert page.inner_text("nav h2") == "Related pages"
    for link in page.locator("nav a").all():
        assert urlsplit(link.get_attribute("href") or "").netloc == "w.example"
    frame = page.frame_locator("iframe")
    frame.locator("li").nth(3).wait_for()
    assert frame.locator("li").count() == 4


def _quoted(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


class Site(http.server.SimpleHTTPRequestHandler):
    """A static file host that also serves ``guide/install.html`` without its suffix."""

    def log_message(self, *_: Any) -> None:
        pass

    def translate_path(self, path: str) -> str:
        target = super().translate_path(path)
        return target if os.path.exists(target) else f"{target}.html"


def publish(folder: Path) -> None:
    """Add lists to the pages of ``site`` as in docs/how-to/documentation.md."""
    text = (ROOT / "docs" / "how-to" / "documentation.md").read_text("utf-8")
    section = text.split("\n## Show lists with a script\n")[1]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", section, re.M | re.S)
    assert [language for language, _ in blocks] == ["", "python"]
    (command, code) = (block for _, block in blocks)
    previous = os.getcwd()
    os.chdir(folder)
    try:
        assert main(["ingest", "site", "-o", "site.graph", "--links", "main"]) == 0
        assert main(["index", "site.graph", "-o", "less.index"]) == 0
        assert main(shlex.split(command)[1:]) == 0
        exec(code, {})
        exec(code, {})  # idempotent
    finally:
        os.chdir(previous)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """HTML pages with lists, below the root of a host, at ``/docs v2/``."""
    top = tmp_path_factory.mktemp("published")
    sample_data.documentation(top)
    odd_name = "guide/tips #1 & 100%.html"
    (top / "site" / "guide" / "index.html").write_text(
        '<!doctype html><title>All guides</title><body><a href="install.html">a</a>'
        '<a href="backup.html">b</a><a href="tips%20%231%20&amp;%20100%25.html">c</a></body>'
    )
    (top / "site" / odd_name).write_text(
        '<!doctype html><title>Tips</title><body><a href="install.html">a</a>'
        '<a href="backup.html">b</a><a href="./">c</a></BODY>'
    )
    publish(top)
    os.rename(top / "site", top / "docs v2")
    yield from serve_folder(top)


def serve_folder(top: Path) -> Iterator[tuple[str, Path]]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Site, directory=top)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", top
        server.shutdown()
        thread.join()


def check_lists(page: Any, site: str, index: cocite.Index, paths: dict[str, str]) -> None:
    """Each page of ``paths``, URL path -> name, shows its list; its first link leads to a page."""
    for path, name in paths.items():
        page.goto(site + path)
        page.wait_for_selector("nav.cocite-related li")
        hits = index.related(name, 5)
        links = page.locator("nav.cocite-related a")
        assert links.all_inner_texts() == [
            " ".join((hit.title or str(hit.node)).split()) for hit in hits
        ]
        urls = links.evaluate_all("all => all.map(each => each.href)")
        assert urls == [site + quote(str(hit.node)) for hit in hits]
        links.first.click()
        page.wait_for_selector("nav.cocite-related li")
        assert page.url == urls[0]
        assert page.title() == hits[0].title


PATHS = {
    "": "index.html",
    "index.html?from=mail#top": "index.html",
    "guide/": "guide/index.html",
    "guide/install.html": "guide/install.html",
    "guide/backup": "guide/backup.html",
    "guide/tips%20%231%20&%20100%25.html": "guide/tips #1 & 100%.html",
}


@pytest.mark.long
def test_related_js_shows_lists_below_root(visits: Open, published: tuple[str, Path]) -> None:
    base, top = published
    check_lists(visits(base).page, f"{base}/docs%20v2/", cocite.open(top / "less.index"), PATHS)


@pytest.mark.parametrize("options", [(), ("--directory-urls",)])
def test_site_writes_working_links(
    visits: Open, published: tuple[str, Path], options: tuple[str, ...]
) -> None:
    """Links of ``cocite site`` work from pages in folders and to pages with odd names."""
    base, top = published
    assert main(["site", str(top / "docs v2"), "-k", "5", "--min-score", "0", *options]) == 0
    page, seen = visits(base).page, set[str]()
    for path in PATHS:
        page.goto(f"{base}/docs%20v2/{path}")
        links = page.locator("nav.cocite-related[data-cocite-block] a")
        for number in range(links.count()):
            title = links.nth(number).inner_text()
            links.nth(number).click()
            page.wait_for_function("title => document.title === title", arg=title)
            seen.add(urlsplit(page.url).path)
            page.go_back()
    guide = "guide/" if options else "guide/index.html"
    assert {f"/docs%20v2/{guide}", "/docs%20v2/guide/tips%20%231%20%26%20100%25.html"} <= seen
    assert main(["site", str(top / "docs v2"), "--remove"]) == 0


def test_embed_links_to_pages_of_site(
    visits: Open, published: tuple[str, Path], start: Start
) -> None:
    """The script with ``data-site``, and the frame of a server with ``--site``."""
    base, top = published
    site, index = f"{base}/docs%20v2/", top / "less.index"
    options = ("--target-latency", "10000", "--allow-origin", base, "--frame-ancestors", base)
    server = start(str(index), "--site", site.removesuffix("/"), *options)
    server_url = f"http://127.0.0.1:{server.port}"
    text = (top / "docs v2" / "guide" / "install.html").read_text("utf-8")
    tag = '<script src="../related/related.js" async></script>'
    assert text.count(tag) == 1
    (top / "docs v2" / "scripted").mkdir()
    for name, other in (
        (
            "scripted.html",
            f'<script src="{server_url}/embed.js" data-site="/docs v2" data-k="5"></script>',
        ),
        (
            "framed.html",
            f'<iframe src="{server_url}/embed?node=guide%2Finstall.html&k=5"></iframe>',
        ),
    ):
        canonical = f'<link rel="canonical" href="{site}guide/install.html">'
        (top / name).write_text(canonical + text.replace(tag, other), "utf-8")
    hits = cocite.open(index).related("guide/install.html", 5)
    expected = [site + quote(str(hit.node)) for hit in hits]
    page = visits(base).page
    page.goto(f"{base}/scripted.html")
    page.wait_for_selector("nav.cocite-related li")
    links = page.locator("nav.cocite-related a")
    assert links.evaluate_all("all => all.map(each => each.href)") == expected
    page.goto(f"{base}/framed.html")
    frame = page.frame_locator("iframe").locator("main a")
    frame.nth(4).wait_for()
    assert frame.evaluate_all("all => all.map(each => each.href)") == expected
    frame.first.click()
    page.wait_for_url(expected[0])


def test_related_js_data_link_keeps_slash(visits: Open, published: tuple[str, Path]) -> None:
    base, root = published
    graph = cocite.ingest([("x", "a/b c"), ("x", "a"), ("y", "a/b c"), ("y", "a")])
    cocite.build(graph, root / "slash.index").related_all(root / "slash", 5, kind="site")
    tag = '<script src="/slash/related.js" data-node="a" data-link="/wiki/{}"></script>'
    (root / "slash.html").write_text(f"<!doctype html><body>{tag}")
    page = visits(base).page
    page.goto(f"{base}/slash.html")
    page.wait_for_selector("nav.cocite-related li")
    links = page.locator("nav.cocite-related a").evaluate_all("all => all.map(each => each.href)")
    assert f"{base}/wiki/a/b%20c" in links
