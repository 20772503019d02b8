"""Sitemaps and URL lists: what they contain, the pages of folders and archives that they select,
and pages fetched from a local server.
"""

import gzip
import socketserver
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cocite
from cocite.errors import InputError, MalformedRow, UnrecognizedInput, UsageError
from cocite.io.readers import Source
from cocite.io.readers.crawl import fetch
from cocite.io.readers.crawl.sitemap import read_listed
from tests.conftest import Shell
from tests.io.plain import graph_of, links, nothing_left, source_of, title_of, write_files
from tests.io.served import Answer, Served, html
from tests.io.test_warc import page, redirect, write_archive

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def sitemap(*urls: str, kind: str = "urlset", tag: str = "url") -> str:
    entries = "".join(
        f"<{tag}>\n<loc> {url}\n</loc><lastmod>2026-01-01</lastmod></{tag}>" for url in urls
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{kind} {NAMESPACE}>{entries}</{kind}>'


def index(*urls: str) -> str:
    return sitemap(*urls, kind="sitemapindex", tag="sitemap")


def test_read_listed_reads_sitemaps_and_url_lists(tmp_path: Path) -> None:
    image = (
        '<image:image xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">'
        "<image:loc>http://a.org/x.png</image:loc></image:image>"
    )
    text = sitemap("http://A.org/b?x=1&amp;y=2#c", "http://a.org/ä", "http://a.org/b?x=1&amp;y=2")
    (tmp_path / "s.xml").write_text(text.replace("<lastmod>", image + "<lastmod>"))
    listed = read_listed(Source(tmp_path / "s.xml"))
    assert list(listed.pages) == ["http://a.org/b?x=1&y=2", "http://a.org/%C3%A4"]
    (tmp_path / "list.txt").write_text("\ufeff# pages\nhttp://a.org\n\nhttps://b.org/x \n")
    assert list(read_listed(Source(tmp_path / "list.txt")).pages) == [
        "http://a.org/",
        "https://b.org/x",
    ]
    (tmp_path / "paths.txt").write_text("x.html\n/y\n")
    listed = read_listed(Source(tmp_path / "paths.txt"), base="http://a.org/d/")
    assert list(listed.pages) == ["http://a.org/d/x.html", "http://a.org/y"]


def test_read_listed_finds_sitemaps_beside_index(tmp_path: Path) -> None:
    first = index("http://a.org/maps/1.xml.gz", "http://a.org/2.xml", "http://a.org/index.xml")
    (tmp_path / "index.xml").write_text(first)
    (tmp_path / "1.xml.gz").write_bytes(gzip.compress(sitemap("http://a.org/1").encode()))
    with pytest.raises(InputError, match=r"http://a\.org/2\.xml is missing.* as 2\.xml"):
        read_listed(Source(tmp_path / "index.xml"))
    (tmp_path / "2.xml.gz").write_bytes(gzip.compress(b"http://a.org/2\n"))
    listed = read_listed(Source(tmp_path / "index.xml"))
    assert list(listed.pages) == ["http://a.org/1", "http://a.org/2"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (sitemap("http://a.org/", "ftp://a.org/"), r"s:5: not an http or https URL: 'ftp"),
        (sitemap("http://a.org/", "/b"), r"s:\d+: not an http or https URL: '"),
        ("http://a.org/\nx\n", r"s:2: not an http or https URL: 'x'"),
        (sitemap("http://a.org/")[:-9], r"s:\d+: .* this is not well-formed XML"),
        ('<!DOCTYPE x [<!ENTITY y "z">]>' + sitemap("&y;")[39:], r"s:1: the document has"),
    ],
)
def test_read_listed_reports_line_of_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "s").write_text(text)
    with pytest.raises(InputError, match=message):
        read_listed(Source(tmp_path / "s"))


def test_read_listed_counts_skipped_lines(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("http://a.org/\nx\nmailto:y\n")
    listed = read_listed(Source(tmp_path / "s"), skip=True)
    assert (list(listed.pages), listed.bad) == (["http://a.org/"], 2)
    assert listed.examples[0] == "line 2: not an http or https URL: 'x'"


def test_sitemap_reader_requires_fetch_or_pages(tmp_path: Path) -> None:
    (tmp_path / "sitemap.xml").write_text(sitemap("http://a.org/", "http://a.org/b"))
    (tmp_path / "urls.txt").write_text("http://a.org/\nhttp://b.org/\n")
    (tmp_path / "links.tsv").write_text("http://a.org/\thttp://b.org/\n")
    with pytest.raises(
        UnrecognizedInput, match=r"has 2 pages of a\.org, but no links\. .*--fetch\. .*--pages"
    ):
        cocite.ingest(tmp_path / "sitemap.xml", tmp_path / "g")
    with pytest.raises(UnrecognizedInput, match="has 2 pages of 2 hosts, but no links"):
        cocite.ingest(tmp_path / "urls.txt", tmp_path / "g")
    assert cocite.ingest(tmp_path / "links.tsv", tmp_path / "g").edges == 1
    for name in ("urls.txt", "sitemap.xml"):
        graph = cocite.ingest(tmp_path / "links.tsv", tmp_path / name[:4], nodes=tmp_path / name)
        assert "http://a.org/" in graph.names
    for options in ({"fetch": True}, {"pages": tmp_path / "urls.txt"}):
        with pytest.raises(UsageError, match=r"\) applies only to .*: omit --"):
            cocite.ingest(tmp_path / "links.tsv", tmp_path / "h", **options)
    with pytest.raises(UsageError, match="delay is -1"):
        cocite.ingest(tmp_path / "urls.txt", tmp_path / "h", fetch=True, delay=-1)
    assert not (tmp_path / "h").exists()


def test_pages_option_selects_pages_of_folder(tmp_path: Path) -> None:
    folder = write_files(
        tmp_path / "site",
        {
            "index.html": html("a.html", "b.html", "c.html"),
            "a.html": html("b.html", "old.html"),
            "b.html": html("a.html", "c.html", "index.html"),
            "c.html": html("a.html"),
            "old.html": '<link rel=canonical href="b.html">',
        },
    )
    expected = {("index.html", "b.html"), ("b.html", "index.html")}
    urls = [f"https://x.org/d/{name}" for name in ("", "old.html", "lost")]
    (tmp_path / "s.xml").write_text(sitemap(*urls, "https://y.org/"))
    (tmp_path / "list.txt").write_text("index.html\nold.html\nlost.html\n")
    out, report = tmp_path / "g", tmp_path / "lost.tsv"
    graph = cocite.ingest(
        folder, out, pages=tmp_path / "s.xml", site="https://x.org/d/", report=report
    )
    assert set(links(graph)) == expected
    source = source_of(graph)
    assert source["left_out"] == {"listed pages that are missing": 2}
    assert source["others"] == {"to pages that are not listed": 4}
    assert source["pages"] == 2
    assert len(report.read_text().splitlines()) == 3
    graph = cocite.ingest(folder, out, pages=tmp_path / "list.txt", overwrite=True)
    assert set(links(graph)) == expected
    with pytest.raises(UnrecognizedInput, match=r"none of the 4 pages .* is in .*: --site URL"):
        cocite.ingest(folder, tmp_path / "h", pages=tmp_path / "s.xml")
    assert nothing_left(tmp_path)


def test_pages_option_selects_pages_of_archive(tmp_path: Path) -> None:
    archive = write_archive(
        tmp_path / "x.warc.gz",
        page("http://a.org/a", "b", "c", "old"),
        page("http://a.org/b", "a"),
        page("http://a.org/c", "a", "b"),
        redirect("http://a.org/old", "/b"),
    )
    (tmp_path / "list.txt").write_text("http://a.org/a\nhttp://a.org/old\nhttp://a.org/lost\n")
    graph = cocite.ingest(archive, tmp_path / "g", pages=tmp_path / "list.txt")
    assert set(links(graph)) == {
        ("http://a.org/a", "http://a.org/b"),
        ("http://a.org/b", "http://a.org/a"),
    }
    source = source_of(graph)
    assert source["others"] == {"to pages that are not listed": 1}
    assert source["left_out"] == {"listed pages that are missing": 1}
    (tmp_path / "list.txt").write_text("http://b.org/a\n")
    with pytest.raises(UnrecognizedInput, match=r"none of the 1 pages listed in .* is in"):
        cocite.ingest(archive, tmp_path / "h", pages=tmp_path / "list.txt")


# -- fetching --------------------------------------------------------------------------


def fetched(
    folder: Path, text: str | bytes, **options: Any
) -> tuple[set[tuple[str, str]], dict[str, Any], cocite.Graph]:
    path = folder / "sitemap.xml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    graph = graph_of(path, **{"fetch": True, "delay": 0} | options)
    return set(links(graph)), source_of(graph), graph


def test_fetch_obeys_robots_txt_and_follows_redirects(tmp_path: Path, served: Served) -> None:
    u = served.url
    robots = (
        b"User-agent: *\nDisallow: /\n\nUser-agent: cocite\nDisallow: /secret*.html$\nAllow: /\n"
    )
    served.pages["/robots.txt"] = 200, {}, robots
    served.page("/", "/a", "/b", "moved", "secret1.html", "image", "http://elsewhere.invalid/")
    body = gzip.compress(html("/b", "lost", title="Käse").encode("cp1252"))
    packed = {"Content-Type": "text/html; charset=windows-1252", "Content-Encoding": "gzip"}
    served.pages["/a"] = 200, packed, body
    served.page("/b", "/")
    served.pages["/moved"] = 302, {"Location": "/there"}, b""
    served.page("/there", "/a")
    served.pages["/away"] = 301, {"Location": "http://elsewhere.invalid/"}, b""
    served.pages["/image"] = 200, {"Content-Type": "image/png"}, b"\x89PNG"
    names = ["", "a", "b", "moved", "moved", "away", "secret1.html", "image", "lost"]
    urls = "".join(f"{u}/{name}\n" for name in names)
    found, source, graph = fetched(tmp_path, urls, report=tmp_path / "report.tsv")
    short = {(a.removeprefix(u), b.removeprefix(u)) for a, b in found}
    assert short == {
        *(("/", "/a"), ("/", "/b"), ("/", "/there"), ("/a", "/b"), ("/b", "/"), ("/there", "/a"))
    }
    assert source["left_out"] == {
        "server error, or response without a page": 1,
        "file that is not a page": 1,
        "page that robots.txt forbids": 1,
    }
    assert source["others"]["broken"] == 2
    assert (source["pages"], source["redirects"]) == (4, 2)
    assert "sitemap.xml: 4 pages fetched, 2 redirects; 6 links" in source["read_as"]
    assert served.paths[0] == "/robots.txt"
    assert sorted(served.paths[1:]) == sorted(
        {"/", "/a", "/b", "/moved", "/away", "/image", "/lost", "/there"}
    )
    assert served.max_active == 1
    assert {agent for _, _, agent in served.requests} == {f"cocite/{cocite.__version__}"}
    assert title_of(graph, u + "/a") == "Käse"
    report = (tmp_path / "report.tsv").read_text()
    assert "robots.txt forbids it" in report
    assert f"{u}/lost\tstatus 404\t\t\n" in report


def test_fetch_waits_between_requests(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def sleep(seconds: float) -> None:
        served.clock.sleep(seconds)

    monkeypatch.setattr(fetch, "time", served.clock)
    monkeypatch.setattr("asyncio.sleep", sleep)
    served.pages["/robots.txt"] = 200, {}, b"User-agent: *\nCrawl-delay: 0.3\n"
    served.page("/a", "/b")
    served.page("/b", "/a")
    fetched(tmp_path, f"{served.url}/a\n{served.url}/b\n", delay=0.1)
    times = [when for _, when, _ in served.requests]
    assert times[1] - times[0] == pytest.approx(0.1)
    assert times[2] - times[1] == pytest.approx(0.3)


@pytest.mark.long
def test_fetch_reads_sitemaps_of_index(tmp_path: Path, served: Served) -> None:
    u = served.url
    served.pages["/1.xml.gz"] = 200, {}, gzip.compress(sitemap(u + "/a").encode())
    second = index(u + "/3.txt", u + "/2.xml", "http://elsewhere.invalid/x")
    served.pages["/2.xml"] = 200, {}, second.encode()
    served.pages["/3.txt"] = 301, {"Location": "/4.txt"}, b""
    served.pages["/4.txt"] = 200, {}, f"{u}/b\n".encode()
    served.page("/a", "/b")
    served.page("/b", "/a")
    found, source, _ = fetched(tmp_path, index(u + "/1.xml.gz", u + "/2.xml"))
    assert found == {(u + "/a", u + "/b"), (u + "/b", u + "/a")}
    assert source["left_out"] == {"sitemap of another host": 1}
    with pytest.raises(InputError, match=r"the sitemap .*/lost\.xml cannot be read \(status 404\)"):
        fetched(tmp_path, index(u + "/1.xml.gz", u + "/lost.xml"))
    listed = index(u + "/1.xml.gz", u + "/lost.xml", u + "/4.txt")
    _, source, _ = fetched(tmp_path, listed, bad_rows="few")
    assert source["left_out"] == {"sitemap that could not be fetched": 1}
    served.pages["/4.txt"] = 200, {}, b"no URL\n"
    with pytest.raises(MalformedRow, match=r"/4\.txt:1: not an http or https URL"):
        fetched(tmp_path, index(u + "/4.txt"))


def test_fetch_counts_failed_pages(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = iter([(503, {"Retry-After": "0"}, b""), (200, {}, html("/b").encode())])
    served.pages["/a"] = lambda: next(tries)
    served.page("/b", "/a")
    served.pages["/cut"] = 200, {"Content-Type": "text/html", "Content-Length": "999"}, b"<p>"
    closed = "http://127.0.0.1:9/x"
    urls = f"{served.url}/a\n{served.url}/b\n{served.url}/cut\n{closed}\n"
    found, source, _ = fetched(tmp_path, urls)
    assert found == {(served.url + "/a", served.url + "/b"), (served.url + "/b", served.url + "/a")}
    assert source["left_out"] == {"page that could not be fetched": 2}
    served.pages["/robots.txt"] = 500, {}, b""
    none = r"there are no links: .* {} page that could not be fetched"
    with pytest.raises(UnrecognizedInput, match=none.format(2)):
        fetched(tmp_path, f"{served.url}/a\n{served.url}/b\n")
    served.pages.pop("/robots.txt")

    released = threading.Event()

    def slow() -> Answer:
        assert released.wait(60)
        return 200, {"Content-Type": "text/html"}, html("/slow").encode()

    served.pages["/slow"] = slow
    monkeypatch.setattr(fetch, "_TIMEOUT", 0.3)
    with pytest.raises(UnrecognizedInput, match=none.format(1)):
        fetched(tmp_path, f"{served.url}/slow\n")
    released.set()


@pytest.fixture
def trickle(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes], str]]:
    """Gives the URL of a response that begins with the given bytes and then goes on forever, a
    byte at a time. There is no robots.txt.
    """
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    start, stopped = [b""], threading.Event()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            if b"robots.txt" in self.rfile.readline():
                self.wfile.write(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n")
                return
            with suppress(OSError):
                self.wfile.write(start[0])
                while not stopped.wait(0.05):
                    self.wfile.write(b"0")

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()

        def url(beginning: bytes) -> str:
            start[0] = beginning
            return f"http://127.0.0.1:{running.server_address[1]}/slow"

        yield url
        stopped.set()
        running.shutdown()


_OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.long
@pytest.mark.parametrize(
    "beginning",
    [
        b"HTTP/1.1 200 ",
        _OK + b"X: ",
        _OK + b"Transfer-Encoding: chunked\r\n\r\n",
        _OK + b"Content-Length: 99999\r\n\r\n",
    ],
    ids=["status", "head", "chunk size", "body"],
)
def test_fetcher_abandons_endless_response(
    beginning: bytes, trickle: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_WHOLE", 0.5)
    (found,) = fetch.Fetcher(0).fetch([trickle(beginning)])
    assert found.message is None
    assert found.why == "it took longer than 0.5 seconds"


def test_fetcher_stops_at_run_time_limit(
    trickle: Callable[[bytes], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_RUN", 0.5)
    monkeypatch.setattr(fetch, "_EACH", 0.0)
    url = trickle(_OK + b"X: ")
    found = list(fetch.Fetcher(0).fetch([url, url + "/2", url + "/3"]))
    assert [each.url for each in found] == [url, url + "/2", url + "/3"]
    assert {each.why for each in found} == {"the time limit of the run was reached"}


def test_fetcher_close_stops_pending_requests(
    served: Served, trickle: Callable[[bytes], str]
) -> None:
    served.page("/a")
    results = fetch.Fetcher(0).fetch([trickle(_OK + b"X: "), served.url + "/a"])
    assert next(results).url == served.url + "/a"
    results.close()
    assert not [t for t in threading.enumerate() if t.name == "cocite-fetch"]


@pytest.mark.process
def test_fetch_stops_on_first_interrupt(tmp_path: Path, trickle: Callable[[bytes], str]) -> None:
    (tmp_path / "urls").write_text(trickle(_OK + b"X: ") + "\n")
    command = [sys.executable, "-c", _INTERRUPTED, str(tmp_path / "urls"), str(tmp_path / "g")]
    result = subprocess.run(command, stderr=subprocess.PIPE, timeout=100, check=False)
    assert (result.returncode, b"Traceback" in result.stderr) == (130, False), result.stderr
    assert not (tmp_path / "g").exists()


_INTERRUPTED = """
import os, signal, sys, threading
from cocite.io.readers.crawl import fetch
from cocite.cli.main import main
original = fetch.Fetcher._ask
async def ask(self, url, *args):
    if "robots" not in url:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    return await original(self, url, *args)
fetch.Fetcher._ask = ask
sys.exit(main(["ingest", sys.argv[1], "--input-format", "sitemap", "--fetch", "-o", sys.argv[2]]))
"""


def test_fetch_limits_redirects(
    tmp_path: Path, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(20):
        served.pages[f"/r{i}"] = 302, {"Location": f"/r{i + 1}"}, b""
    served.pages["/c1"] = 302, {"Location": "/c2"}, b""
    served.pages["/c2"] = 302, {"Location": "/c1"}, b""
    served.page("/a", "/r0", "/c1", "/a")
    served.page("/long", *("/a" for _ in range(1000)))
    monkeypatch.setattr(fetch, "LARGEST", 1000)
    urls = "".join(f"{served.url}/{name}\n" for name in ("a", "r0", "c1", "long"))
    _, source, _ = fetched(tmp_path, urls, keep_self_loops=True)
    assert source["redirects"] == 13
    assert sum(path.startswith("/r") and path[2].isdigit() for path in served.paths) == 11
    assert source["pages"] == 1  # the long page is skipped


def test_ingest_command_fetches_pages(tmp_path: Path, served: Served, shell: Shell) -> None:
    served.page("/a", "/b", title="Ay")
    served.page("/b", "/a")
    (tmp_path / "urls").write_text(f"{served.url}/a\n{served.url}/b\n")
    command = ["ingest", tmp_path / "urls", "-o", tmp_path / "g", "--input-format", "sitemap"]
    assert "--fetch" in shell(command, 2).err
    assert served.requests == []
    printed = shell([*command, "--fetch", "--delay", "0"])
    assert "urls: 2 pages fetched; 2 links" in printed.err
