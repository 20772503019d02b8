"""Folders of HTML pages, with what goes wrong in real sites."""

import os
import select
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cocite
from cocite.errors import InputError, MalformedRow, OutputExists, UnrecognizedInput, UsageError
from cocite.io.readers.html import page as html_page
from cocite.io.readers.html import parsers as html_pages
from cocite.io.readers.html.page import decoded, links_of
from cocite.io.readers.html.parsers import HtmlPage, Pages
from cocite.io.readers.html.site import Site
from tests.conftest import Shell
from tests.io.plain import MakeFolder, graph_of, nothing_left, read_path, titles_of

read = partial(read_path, threads=1)
"""With one parser, which starts faster than two."""


def anchors(*urls: str) -> str:
    return "".join(f'<a href="{url}">x</a>' for url in urls)


def test_html_resolves_urls_like_browser(site: MakeFolder) -> None:
    """Relative, root-relative, with query and fragment, encoded, folders, and ``..``."""
    folder = site(
        {
            "index.html": anchors(
                *("guide/", "/guide/install.html?lang=en#top", "GUIDE/x.html", "a%20b.html"),
                *("../../a%20b.html", " \n guide/in\tstall.html ", "guide\\install.html#x"),
                *("guide/./../index.html", "HTTP://this.folder.invalid/caf%C3%A9.html"),
            ),
            "guide/index.htm": anchors("install", "..", ".", "", "#here", "?page=2", "//a b.html"),
            "guide/install.html": anchors(
                "/guide", "//example.org/index.html", "old/", "../a b.html"
            ),
            "guide/install.md": "[x](y)",
            "a b.html": anchors("guide/install.md", "index.html?p=2", "index.html?p=3"),
            "index.html?p=2": anchors("café.html"),
            "café.html": "",
        }
    )
    found, source = read(folder)
    home, guide, install = "index.html", "guide/index.htm", "guide/install.html"
    assert found == {
        *((home, each) for each in (guide, install, "a b.html", home, "café.html")),
        *((guide, install), (guide, home), (guide, guide), (install, guide), (install, "a b.html")),
        *(("a b.html", "index.html?p=2"), ("a b.html", home), ("index.html?p=2", "café.html")),
    }
    assert source["others"] == {
        "broken": 2,  # GUIDE/x.html and old/
        "malformed": 1,  # //a b.html
        "to files that are not pages": 1,
        "to other sites": 1,
    }
    assert source["pages"] == 6


def test_html_applies_first_base_element(site: MakeFolder) -> None:
    folder = site(
        {
            "a/page.html": '<base target=_top><base href="../b/"><base href="/c/">'
            + anchors("other.html", "#top"),
            "b/index.html": '<base href="http://[">' + anchors("other.html"),
            "b/other.html": '<base href="https://example.org/">' + anchors("index.html"),
        }
    )
    found, source = read(folder)
    other, home = "b/other.html", "b/index.html"
    assert found == {("a/page.html", other), ("a/page.html", home), (home, other)}
    assert source["others"] == {"to other sites": 1}


def test_link_tags_selects_elements(site: MakeFolder) -> None:
    page = (
        '<a href=b.html>b</a><map><area href="c.html"></map><iframe src="d.html"></iframe>'
        '<iframe src=""></iframe><iframe srcdoc="x"></iframe><a name="x">none</a>'
        '<svg><a xlink:href="e.html"><title>no</title></a></svg>'
        '<template><a href="no.html"></a></template><!-- <a href="no.html"></a> -->'
        '<a href="mailto:x@example.org">m</a><a href="javascript:void(0)">j</a>'
        '<noscript><a href="b.html">b</a></noscript><link rel="next" href="c.html">'
    )
    frames = '<frameset><frame src="a.html"><frame src="b.html"></frameset>'
    folder = site({"a.html": page, "f.html": frames} | {f"{x}.html": "" for x in "bcde"})
    found, source = read(folder)
    assert source["links"] == {"a": 3, "area": 1, "frame": 3}
    assert source["others"] == {"to addresses that are not web pages (mailto: and so on)": 2}
    assert {b for a, b in found if a == "a.html"} == {f"{x}.html" for x in "bcde"}
    found, source = read(folder, link_tags="area,frame")
    assert {(a[0], b[0]) for a, b in found} == {("a", "c"), ("a", "d"), ("f", "a"), ("f", "b")}
    assert source["others"]["by a, which were not requested"] == 5
    with pytest.raises(
        UsageError, match="link_tags is 'img'; it must be one or more of a, area, frame"
    ):
        read(folder, link_tags=["a", "img"])


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        ("<title>Käse €</title>".encode(), ""),
        ("<title>Käse €</title>".encode("utf-8-sig"), "iso-8859-1"),
        ("<title>Käse €</title>".encode("utf-16"), ""),
        ("\ufeff<title>Käse €</title>".encode("utf-16-be"), ""),
        ("<title>Käse €</title>".encode("cp1252"), ""),
        ("<meta charset=latin1><title>Käse €</title>".encode("cp1252"), ""),
        ("<meta charset='iso-8859-15'><title>Käse €</title>".encode("iso-8859-15"), ""),
        ("<title>Käse €</title>".encode("iso-8859-15"), "ISO-8859-15"),
        ("<meta charset=base64><title>Käse €</title>".encode(), "no such"),
        ("<meta charset=utf-16><title>Käse €</title>".encode(), ""),
        ("<!-- <meta charset=koi8-r> --><title>Käse €</title>".encode(), ""),
        (
            '<meta http-equiv=Content-Type content="text/html; charset=macintosh">'
            "<title>Käse €</title>".encode("mac_roman"),
            "",
        ),
    ],
)
def test_links_of_detects_encoding(content: bytes, charset: str) -> None:
    assert links_of(content, "http://x.org/", charset)["title"] == "Käse €"


def test_decoded_uses_web_encoding_labels() -> None:
    texts = {"shift_jis": "日本①", "euc-kr": "한국어", "gb2312": "中文", "windows-1251": "Привет"}
    for label, text in texts.items():
        codec = {"shift_jis": "cp932", "gb2312": "gb18030", "euc-kr": "cp949"}.get(label, label)
        page = f"<meta charset='{label.upper()}'>{text}".encode(codec)
        assert decoded(page).endswith(text)


def test_html_resolves_links_in_legacy_encoding(site: MakeFolder) -> None:
    page = '<meta charset="windows-1251">' + anchors("о-нас.html")
    folder = site({"a.html": page.encode("cp1251"), "о-нас.html": b""})
    assert read(folder)[0] == {("a.html", "о-нас.html")}


def test_html_merges_canonical_and_redirect_copies(site: MakeFolder) -> None:
    """Not if two pages name each other."""
    canonical = '<link rel="alternate canonical" href="{}">'
    folder = site(
        {
            "index.html": anchors("print.html", "old.html", "older.html", "x.html", "self.html"),
            "page.html": anchors("y.html"),
            "print.html": canonical.format("/page.html") + anchors("index.html"),
            "old.html": '<meta http-equiv="Refresh" content="0; URL=page.html">',
            "older.html": "<meta http-equiv=refresh content=\"5;'old.html'\">",
            "x.html": canonical.format("y.html"),
            "y.html": canonical.format("x.html"),
            "self.html": canonical.format("self.html") + "<meta http-equiv=refresh content=30>",
            "lost.html": canonical.format("nowhere.html"),
            "away.html": canonical.format("https://example.org/other/page"),
        }
    )
    found, source = read(folder)
    assert found == {
        *(("index.html", each) for each in ("page.html", "x.html", "self.html")),
        *(("page.html", "y.html"), ("page.html", "index.html")),
    }
    assert (source["pages"], source["copies"]) == (7, 3)
    found, source = read(folder, ignore_canonical=True)
    assert ("index.html", "print.html") in found
    assert (source["pages"], source["copies"]) == (10, 0)


def test_html_treats_links_by_site_url_as_internal(site: MakeFolder) -> None:
    """The URL comes from canonical links, or from ``site``."""
    home = "https://www.example.org/docs/"
    url = '<link rel=canonical href="' + home + '{}">'
    folder = site(
        {
            "index.html": url.format("") + anchors("/docs/a.html", "http://www.example.org/docs/b"),
            "a.html": url.format("a") + anchors(home, "https://www.example.org/", "/a.html"),
            "b.html": url.format("b.html") + anchors("https://example.org/docs/a.html"),
            "c/index.html": url.format("c/") + anchors(home + "b.html", "../a.html"),
        }
    )
    expected = {
        *(("index.html", "a.html"), ("index.html", "b.html"), ("a.html", "index.html")),
        *(("c/index.html", "b.html"), ("c/index.html", "a.html")),
    }
    found, source = read(folder)
    assert found == expected
    assert source["site"] == home
    assert source["others"] == {"to other sites": 3}
    assert "4 HTML pages of https://www.example.org/docs/; 5 links" in source["read_as"]
    for page in ("index.html", "a.html", "b.html", "c/index.html"):
        path = folder / page
        path.write_text(path.read_text().partition(">")[2])
    assert ("index.html", "b.html") not in read(folder)[0]
    assert read(folder, site=home.removesuffix("/"))[0] == expected
    with pytest.raises(UsageError, match="site is 'docs'; it must be the URL of the folder"):
        read(folder, site="docs")


def test_links_main_excludes_navigation(site: MakeFolder) -> None:
    """Navigation elements, links outside of main, and links on nearly all of ten or more pages."""
    pages = {
        f"{i}.html": f"<header>{anchors('nav.html')}</header><div>{anchors('all.html')}"
        f"<article><header>{anchors(f'{i + 1}.html')}</header></article></div>"
        for i in range(12)
    }
    pages["0.html"] = (
        f"<div>{anchors('beside.html')}</div><main><nav>{anchors('nav.html')}</nav>"
        f"<ul><li>{anchors('1.html')}</ul></main><div role=navigation>{anchors('nav.html')}</div>"
    )
    folder = site(pages | {f"{x}.html": "" for x in ("nav", "all", "beside", "12")})
    _, source = read(folder)
    assert source["rows"] == 11 * 3 + 4  # two of them repeated
    found, source = read(folder, links="main")
    assert {(f"{i}.html", f"{i + 1}.html") for i in range(12)} < found
    assert found - {(f"{i}.html", f"{i + 1}.html") for i in range(12)} == {
        (f"{i}.html", "all.html") for i in range(1, 12)
    }
    for name in ("beside", "nav", "12"):
        (folder / f"{name}.html").unlink()
    (folder / "all.html").write_text(anchors("all.html"))
    found, source = read(folder, links="main")
    assert found == {(f"{i}.html", f"{i + 1}.html") for i in range(11)}
    assert source["others"] == {
        "broken": 1,
        "in navigation": 14,
        "to pages that all pages link to": 12,
    }
    with pytest.raises(UsageError, match="links is 'some'; it must be all or main"):
        read(folder, links="some")


def test_report_lists_broken_links(site: MakeFolder, shell: Shell) -> None:
    folder = site({"a.html": anchors("no\tne.html#x", "http://[", "a.html"), "b.html": "\0\1\2"})
    report = folder.with_name("broken.tsv")
    out = str(folder.with_name("g"))
    assert shell(["ingest", folder, "-o", out, "--report", report]).err.startswith(
        "read site: 1 HTML pages; 1 links between them; 1 broken, 1 malformed; left out: 1 HTML "
        "file with binary content\n"
    )
    assert report.read_text() == (
        "page\twhat\twritten\tleads to\n"
        "b.html\tHTML file with binary content\t\t\n"
        "a.html\tmalformed\thttp://[\t\n"
        "a.html\tbroken\tno ne.html#x\tnone.html\n"
    )
    with pytest.raises(OutputExists, match=r"broken\.tsv exists"):
        cocite.ingest(folder, folder.with_name("h"), report=report)
    assert not folder.with_name("h").exists()
    cocite.ingest(folder, out, report=folder.with_name("broken.csv"), overwrite=True)
    rows = folder.with_name("broken.csv").read_text().splitlines()
    assert rows[0] == "page,what,written,leads to"


def test_html_reads_nothing_outside_folder(site: MakeFolder) -> None:
    """Neither by ``..``, encoded or not, nor by symlinks or cycles of them."""
    folder = site(
        {
            "a.html": anchors(
                *("../secret.html", "..%2fsecret.html", "%2e%2e/secret.html", "out/secret.html"),
                *("file:///etc/passwd", "latest/x.html", "alias.html", "loop/loop/v2/x.html"),
            ),
            "v2/x.html": anchors("../latest/", "/latest/x.html"),
            "v2/index.html": "",
            ".git/hidden.html": "",
        }
    )
    outside = folder.with_name("elsewhere")
    outside.mkdir()
    (outside / "secret.html").write_text(anchors("../site/a.html"))
    (folder.with_name("secret.html")).write_text("")
    for name, target in (
        *(("latest", "v2"), ("alias.html", "v2/x.html"), ("loop", "."), ("out", str(outside))),
        *(("gone.html", "nowhere.html"), ("self.html", "self.html")),
    ):
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.html")
    found, source = read(folder)
    page = "v2/x.html"
    assert found == {("a.html", page), (page, "v2/index.html"), (page, page)}
    assert source["left_out"] == {
        "symbolic link to a target outside the folder": 1,
        "broken symbolic link": 2,
        "special file": 1,
    }
    assert source["pages"] == 3
    assert source["others"]["broken"] == 4


def test_html_skips_vanishing_pages(site: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site({"a.html": anchors("b.html", "c.html"), "b.html": "", "c.html": ""})
    original = Site.read

    def read_after_unlink(self: Site, path: str, limit: int) -> bytes:
        if path == "b.html":
            (folder / path).unlink(missing_ok=True)
        return original(self, path, limit)

    monkeypatch.setattr(Site, "read", read_after_unlink)
    found, source = read(folder)
    assert found == {("a.html", "c.html")}
    assert source["left_out"] == {"page that no longer exists": 1}
    assert source["others"] == {"broken": 1}
    (folder / "d.html").write_text("")
    replaced = Site(folder)
    (folder / "d.html").unlink()
    (folder / "d.html").symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic links"):
        original(replaced, "d.html", 10)


def test_html_skips_pages_that_crash_or_hang_parser(
    site: MakeFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A parser that crashes or sleeps at certain words replaces lexbor."""
    script = tmp_path / "parser.py"
    body = (
        Path(html_page.__file__)
        .read_text("utf-8")
        .replace(
            "    tree = LexborHTMLParser(",
            "    import os, signal\n    if b'DIE' in content: os.kill(os.getpid(), 11)\n"
            "    if b'SLEEP' in content: signal.pause()\n    tree = LexborHTMLParser(",
        )
    )
    script.write_text(body)
    monkeypatch.setattr(html_pages, "_SCRIPT", str(script))
    monkeypatch.setattr(html_pages, "_PATIENCE", 1.0)
    original, current = html_pages._Parser.parse, threading.local()

    def parse(self: Any, page: HtmlPage) -> Any:
        current.page = page
        return original(self, page)

    class FakePoll:
        """Times out at once for pages that sleep; other parsers may start slowly."""

        def __init__(self) -> None:
            self._poll = select.poll()
            self.register = self._poll.register

        def poll(self, milliseconds: float) -> Any:
            assert milliseconds == 1000
            return self._poll.poll(0 if b"SLEEP" in current.page.content else 60_000)

    monkeypatch.setattr(html_pages._Parser, "parse", parse)
    fake_select = SimpleNamespace(poll=FakePoll, POLLIN=select.POLLIN)
    monkeypatch.setattr(html_pages, "select", fake_select)
    folder = site(
        {
            f"{i}.html": anchors(f"{i + 1}.html") + text
            for i, text in enumerate(["", "DIE", "SLEEP", ""])
        }
    )
    for threads in (1, 3):
        found, source = read(folder, threads=threads)
        assert found == {("0.html", "1.html")}
        assert source["left_out"] == {
            "page whose parser crashed": 1,
            "page whose parser took more than 1 seconds": 1,
        }
        assert (source["pages"], source["others"]) == (4, {"broken": 1})


def test_html_threads_keep_digest_and_end_parsers(site: MakeFolder) -> None:
    folder = site({f"{i}.html": anchors(f"{i * 7 % 50}.html", "0.html") for i in range(50)})
    digests = {graph_of(folder, threads=threads).digest for threads in (1, 3)}
    assert len(digests) == 1
    with Pages(2, "a test") as pages:
        unparsed = [HtmlPage(i, f"http://x.org/{i}", b"<title>%d</title>" % i) for i in range(40)]
        parsed = list(pages.parsed(unparsed))
        processes = [p._process for p in pages._parsers if p._process is not None]
    assert [(p.key, p.found and p.found["title"]) for p in parsed] == [
        (i, str(i)) for i in range(40)
    ]
    assert processes
    assert all(process.poll() is not None for process in processes)


def test_html_detects_pages_by_name_or_content(site: MakeFolder) -> None:
    folder = site(
        {
            "a.HTM": anchors(
                "b", "c.php", "d.txt", "e", "c.php?n=2", "c.php%3Fn=3.html", "g.css?v=1"
            ),
            "b": "<!DOCTYPE html><html><title>B</title></html>",
            "c.php": "<html><body></body></html>",
            "c.php?n=2": "<html><body></body></html>",  # as wget saves pages with queries
            "c.php?n=3.html": "<p>",
            "d.txt": "<html></html>",
            "e": "no page",
            "f.xhtml": '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>',
            "g.css?v=1": "<html></html>",
        }
    )
    pages = ["b", "c.php", "c.php?n=2", "c.php?n=3.html"]
    assert read(folder)[0] == {("a.HTM", page) for page in pages}
    assert list(graph_of(folder).names) == ["a.HTM", *pages, "f.xhtml"]


def test_html_stores_titles(site: MakeFolder) -> None:
    folder = site(
        {
            "a.html": "<title> Käse\n &amp; Brot</title>" + anchors("b.html"),
            "b.html": "<title></title>",
            "c.html": "<title>Copy</title><link rel=canonical href=a.html>",
        }
    )
    assert titles_of(graph_of(folder)) == ["Käse & Brot", None]


def test_html_treats_numeric_page_names_as_text(site: MakeFolder) -> None:
    page = "<!DOCTYPE html><html><a href='{}'>x</a></html>"
    folder = site({"1": page.format("2"), "2": page.format("1"), "index.html": ""})
    assert read(folder)[0] == {("1", "2"), ("2", "1")}


def test_html_refuses_invalid_sites(site: MakeFolder) -> None:
    folder = site({"a.html": anchors("a.html"), "b\nc.html": ""})
    with pytest.raises(
        UnrecognizedInput, match=r"a\.html is an HTML page, which .* pass their folder"
    ):
        cocite.ingest(folder / "a.html", folder.with_name("out.graph"))
    with pytest.raises(UnrecognizedInput, match=r"is a file; HTML pages must be read as a site"):
        cocite.ingest(folder / "a.html", folder.with_name("out.graph"), input_format="html")
    with pytest.raises(MalformedRow, match="control character in a name"):
        graph_of(folder)
    assert graph_of(folder, bad_rows="few").nodes == 1
    (folder / "b\nc.html").unlink()
    (folder / "a.html").unlink()
    with pytest.raises(UnrecognizedInput, match="contains no HTML page"):
        graph_of(folder, input_format="html")
    (folder / "a.html").write_text(anchors("/docs/b.html"))
    with pytest.raises(
        UnrecognizedInput, match=r"no links: .*site has 1 HTML pages; 0 links between them; 1 br"
    ):
        graph_of(folder)


def test_html_names_extra_if_selectolax_is_missing(
    site: MakeFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "selectolax", None)
    with pytest.raises(UsageError, match=r"needs selectolax, .*: pip install .*\[html\]'"):
        graph_of(site({"a.html": anchors("a.html")}))
    assert nothing_left(Path(site({})).parent)


def test_related_accepts_page_paths(
    site: MakeFolder, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative to the current or the site folder; a folder means its index page."""
    pages = {f"guide/{i}.html": anchors("index.html", "a.html") for i in range(4)}
    folder = site(pages | {"guide/index.html": "", "guide/a.html": "", "index.html": "", "a": "x"})

    def run(*command: str) -> str:
        return shell([*command, "--format", "json"]).out

    expected = run("related", str(folder), "guide/a.html")
    assert '"guide/index.html"' in expected
    assert run("related", str(folder), str(folder / "guide" / "a.html")) == expected
    monkeypatch.chdir(folder.parent)
    assert run("related", "site", "site/guide/a.html") == expected
    assert run("related", "site", "./guide/a.html") == expected
    monkeypatch.chdir(folder / "guide")
    assert run("related", "..", "./a.html") == expected
    pair = run("similarity", str(folder), "guide/index.html", "guide/a.html")
    assert run("similarity", "..", ".", "a.html") == pair
    assert run("similarity", "..", "guide/", "../guide/a.html") == pair
    why = run("why", str(folder), "guide/index.html", "guide/a.html")
    assert run("why", "..", ".", "a.html") == why
    for missing in ("../a", "../../site.none", "../none.html", "/etc/passwd"):
        assert missing in shell(["related", "..", missing], 2).err


@pytest.mark.process
def test_html_interrupt_ends_parsers(site: MakeFolder, tmp_path: Path) -> None:
    """On Ctrl-C; a surviving parser would keep the pipe open, and the read would time out."""
    folder = site({f"{i}.html": anchors(*(f"{j}.html" for j in range(400))) for i in range(400)})
    code = (
        "import sys, cocite\n"
        "def progress(stage, done, total):\n"
        "    if stage.startswith('parsing') and done == 20:\n"
        "        print('now', flush=True)\n"
        f"output = {str(tmp_path / 'out.graph')!r}\n"
        f"cocite.ingest({str(folder)!r}, output, progress=progress, threads=2)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"now\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in err
    assert nothing_left(tmp_path)


def test_site_reports_unreadable_folder(site: MakeFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site({"a.html": "", "b/c.html": ""})

    def refused(path: Any) -> Any:
        if Path(path).name == "b":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    scan = os.scandir
    with monkeypatch.context() as patched:  # pytest's cleanup also lists folders
        patched.setattr("cocite.io.readers.html.site.os.scandir", refused)
        with pytest.raises(InputError, match="b cannot be read: Permission denied"):
            Site(folder)


def test_links_of_limits_url_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://site.example/a/"
    long = "x" * html_page._LONGEST_URL
    page = f"<base href='/{long}/'><a href=b>b</a><a href='/{long}'>c</a>"
    assert [link[2] for link in links_of(page.encode(), url)["links"]] == [url + "b", None]
    monkeypatch.setattr(html_page, "_MOST_URLS", 40)
    links = links_of(b"<a href=b>b</a><a href=c>c</a><a href=d>d</a>", url)["links"]
    assert [link[2] for link in links] == [url + "b", url + "c", None]


def test_folder_kind_is_site_if_pages_outnumber_tables(site: MakeFolder) -> None:
    folder = site({"a.html": anchors("a.html"), "b.html": "", "data.csv": "x,y\n"})
    assert graph_of(folder).nodes == 2
    folder = site({"more.tsv": "a\tb\n", "most.tsv.gz": "a\tb\n"})
    with pytest.raises(UnrecognizedInput, match="directory"):
        graph_of(folder)
    assert graph_of(folder, input_format="html").nodes == 2
    (folder / "index.html").write_text("")
    assert graph_of(folder).nodes == 3
