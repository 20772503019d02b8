"""``cocite site`` adds lists to the pages of a folder and removes them; no other byte changes."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urljoin, urlsplit

import pytest

import cocite
from cocite.cli.main import main
from tests.integrations.sites.pages import links

pytest.importorskip("selectolax", reason="needs the extra html")
LIST = re.compile(rb'<nav class="related cocite-related" data-cocite-block="".*?</nav>', re.S)
NAMES = {
    "garden": "gärten & mehr/{}.html",  # spaces, signs and letters that URLs escape
    "kitchen": "100%/küche?/{}/index.html",
}


def path_of(page: str) -> str:
    subject, _, name = page.rpartition("/")
    return NAMES[subject].format(name) if subject else f"{page}.html"


def digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def listed_urls(page: Path) -> list[str]:
    """The URLs in the list of a page, by the standard library."""
    found: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.extend(value for name, value in attrs if name == "href" and value)

    Links().feed(b"".join(LIST.findall(page.read_bytes())).decode("ascii"))
    return found


def target(folder: Path, page: str, url: str) -> Path:
    path = unquote(urlsplit(urljoin("http://host/" + quote(page), url)).path).lstrip("/")
    return folder / path / ("index.html" if path.endswith("/") or not path else "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A site: Latin-1, carriage returns, pages with and without a menu, two modes."""
    for page, targets in links().items():
        path = tmp_path / "html" / path_of(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        here = os.path.relpath(tmp_path / "html", path.parent)
        anchors = "".join(f'<a href="{here}/{quote(path_of(to))}">to</a>\r\n' for to in targets)
        text = f"<title>Über {page} | Site</title><main><p>{anchors}</main><footer>é</footer>"
        path.write_bytes(text.encode("latin-1"))
    (tmp_path / "html" / path_of("garden/page1")).chmod(0o640)
    return tmp_path / "html"


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def site(*arguments: str, code: int = 0) -> dict[str, Any]:
        assert main(["site", str(folder), *arguments, "--format", "json"]) == code
        out, err = capsys.readouterr()
        return json.loads(out) if out else {"error": err}

    return site


def test_site_writes_lists_with_valid_links(folder: Path, run: Run) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*.html")}
    found = run("-k", "3")
    assert (found["pages"], found["listed"], found["written"]) == (15, 12, 12)
    assert found["hubs"] == ["glossary.html", "index.html"]
    assert found["places"] == {"main": 12}
    listed = 0
    for path, content in before.items():
        assert LIST.sub(b"", path.read_bytes()) == content
        page = path.relative_to(folder)
        for url in listed_urls(path):
            linked = target(folder, str(page), url)
            assert linked.is_file()
            assert linked.relative_to(folder).parts[0] == page.parts[0]
            listed += 1
    assert listed == found["links_listed"] == 36
    page = folder / path_of("garden/page1")
    assert page.read_bytes().endswith(b"</nav></main><footer>\xe9</footer>")
    assert page.stat().st_mode & 0o777 == 0o640
    assert b">&#220;ber garden/page" in page.read_bytes()


def test_site_is_idempotent_and_reversible(folder: Path, run: Run) -> None:
    before, edges = digests(folder), cocite.ingest(str(folder)).edges
    run()
    after = digests(folder)
    assert run()["written"] == 0
    assert digests(folder) == after
    assert cocite.ingest(str(folder)).edges == edges
    fewer = run("-k", "2", "--heading", "A & B", "--no-style", "--directory-urls")
    assert (fewer["written"], fewer["links_listed"]) == (12, 24)
    page = folder / path_of("kitchen/page0")
    assert b"<h2>A &amp; B</h2>" in page.read_bytes()
    assert b"<style>" not in page.read_bytes()
    assert all(re.fullmatch(r"\.\./page\d/", url) for url in listed_urls(page))
    assert run("--remove", "--dry-run")["restored"] == 12
    found = run("--remove")
    assert (found["restored"], found["edited"], found["written"]) == (12, [], 12)
    assert digests(folder) == before
    assert run("--remove")["written"] == 0


def test_site_dry_run_shows_change_and_writes_nothing(folder: Path, run: Run) -> None:
    before = digests(folder)
    for options in ((), ("--json", str(folder / "new"))):
        found = run("--dry-run", *options)
        assert (found["dry_run"], found["listed"], found["written"]) == (True, 12, 0)
        assert "page" in found["shown_page"]
        assert ("+<nav" in found["shown"]) == (not options)
        assert digests(folder) == before


def test_site_remove_cuts_lists_from_edited_pages(folder: Path, run: Run) -> None:
    run()
    edited, damaged = (folder / path_of(f"garden/page{n}") for n in (2, 3))
    edited.write_bytes(edited.read_bytes() + b"<!-- new -->")
    damaged.write_bytes(damaged.read_bytes().replace(b"</nav>", b""))
    content = damaged.read_bytes()
    found = run("--remove")
    assert found["edited"] == [path_of("garden/page2")]
    assert found["left_alone"] == {
        path_of("garden/page3"): "its list has no end tag; repair or restore the page"
    }
    assert found["restored"] == 10
    assert edited.read_bytes().endswith(b"\xe9</footer><!-- new -->")
    assert LIST.search(edited.read_bytes()) is None
    assert damaged.read_bytes() == content
    (folder / ".cocite-site.json").write_text('{"pages": [')
    assert run("-k", "1")["left_alone"].keys() == {path_of("garden/page3")}


def test_site_leaves_files_outside_folder_unchanged(folder: Path, run: Run) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    page = folder / path_of("garden/page4")
    page.rename(outside / "page.html")
    page.symlink_to(outside / "page.html")
    (folder / "linked").symlink_to(outside)
    os.link(folder / path_of("garden/page5"), outside / "same.html")
    manifest = outside / "manifest.json"
    manifest.write_text("{}")
    (folder / ".cocite-site.json").symlink_to(manifest)
    before = digests(outside)
    run()
    assert digests(outside) == before
    assert page.is_symlink()
    assert listed_urls(folder / path_of("garden/page5"))
    run("--remove")
    assert digests(outside) == before


def test_site_skips_pages_changed_during_run(
    folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cocite.integrations import site_folder

    edited, deleted = (path_of(f"garden/page{n}") for n in (0, 1))
    original = site_folder._replace

    def edit(site: Any, change: Any, left: dict[str, str]) -> bool:
        if change.page == edited:
            (folder / edited).write_bytes(b"<p>another program was here</p>")
        elif change.page == deleted:
            (folder / deleted).unlink()
        return original(site, change, left)

    monkeypatch.setattr(site_folder, "_replace", edit)
    found = run()
    assert found["left_alone"] == dict.fromkeys((edited, deleted), "changed while it was read")
    assert not (folder / deleted).exists()
    assert (folder / edited).read_bytes() == b"<p>another program was here</p>"
    assert found["written"] == 10


KILLED = """
import os, signal, sys
from cocite.cli.main import main
from cocite.storage import disk
renamed, place = disk.rename, sys.argv[2]
def rename(source, target):
    if str(target).endswith(place):
        os.kill(os.getpid(), signal.SIGKILL)
    renamed(source, target)
disk.rename = rename
main(["site", sys.argv[1]])
"""
"""A run that is killed as it renames a file to its second argument."""


@pytest.mark.process
@pytest.mark.parametrize(
    ("name", "again"), [(path_of("garden/page1"), ()), (".cocite-site.json", ("--remove",))]
)
def test_site_cleans_up_after_killed_run(
    folder: Path, run: Run, name: str, again: tuple[str, ...]
) -> None:
    other = (folder / path_of("garden/page1")).with_name(".other.html.0123456789abcdef.new")
    other.write_bytes(b"of another program")
    before = digests(folder)
    killed = subprocess.run([sys.executable, "-c", KILLED, folder, name], check=False)
    assert killed.returncode == -signal.SIGKILL
    left = [path for path in folder.rglob(".*.new") if path != other]
    assert len(left) == 1
    run("--dry-run", *again)
    assert left[0].exists()
    run(*again)
    assert [*folder.rglob(".*.new")] == [other]
    run("--remove")
    assert digests(folder) == before


@pytest.mark.parametrize(
    ("base", "url", "refused"),
    [
        ("../", "g%C3%A4rten%20%26%20mehr/", "/"),  # the root of the host, which is above the site
        ("https://example.org/docs/", "g%C3%A4rten%20%26%20mehr/", "https://elsewhere.org/"),
        ("page9.html", "", "//elsewhere.org/"),
    ],
)
def test_site_links_respect_base_element(
    folder: Path, run: Run, base: str, url: str, refused: str
) -> None:
    page, other = path_of("garden/page0"), path_of("kitchen/page0")
    for name, target in ((page, base), (other, refused)):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(f'<base href="{target}">'.encode() + content)
    found = run("--site", "https://example.org/docs")
    assert "--site" in found["left_alone"][other]
    urls = listed_urls(folder / page)
    assert urls
    assert all(re.fullmatch(re.escape(url) + r"page\d.html", each) for each in urls)


@pytest.mark.long
def test_site_json_writes_file_per_page_and_summary(folder: Path, run: Run) -> None:
    before, output = digests(folder), folder.parent / "lists"
    found = run("--json", str(output), "-k", "2")
    assert (found["listed"], found["output"]) == (12, str(output))
    assert digests(folder) == before
    pages = json.loads((output / "related.json").read_text("utf-8"))["pages"]
    assert len(pages) == 12 == len(list((output / "pages").rglob("*.json")))
    listed = pages["/100%/küche?/page0/"]
    page = json.loads((output / "pages/100%/küche?/page0/index.html.json").read_text("utf-8"))
    assert page == {
        "path": "100%/küche?/page0/index.html",
        "title": "Über kitchen/page0",
        "related": listed,
    }
    assert len(listed) == 2
    for each in listed:
        assert target(folder, page["path"], each["url"]) == folder / each["path"]
    assert "exists" in run("--json", str(output), code=1)["error"]
    run("--json", str(output), "--overwrite", "--exclude", "100%/*")
    assert not (output / "pages" / "100%").exists()
    (output / "mine").touch()
    unchanged = digests(output)
    error = run("--json", str(output), "--overwrite", code=1)["error"]
    assert "contains files that cocite site did not write, such as mine. Choose" in error
    assert digests(output) == unchanged
    (output / "mine").unlink()
    (output / "related.json").unlink()
    error = run("--json", str(output), "--overwrite", code=1)["error"]
    assert "did not write, and lacks related.json. Choose another output" in error
    (folder.parent / "to").symlink_to(output)
    error = run("--json", str(folder.parent / "to"), "--overwrite", code=1)["error"]
    assert f"is a symbolic link to {output}. Choose that folder, or another output" in error


def test_sites_page_recipes_match_json_keys(folder: Path, run: Run) -> None:
    text = (Path(__file__).parents[3] / "docs" / "sites.md").read_text("utf-8")
    run("--json", str(folder.parent / "lists"), "--directory-urls", "-k", "2")
    data = json.loads((folder.parent / "lists" / "related.json").read_text("utf-8"))
    page = "/100%/küche?/page0/"
    for generator in ("Hugo", "Jekyll", "Eleventy", "Docusaurus"):
        (section,) = re.findall(rf"^### {generator}\n(.*?)^#", text + "\n#", re.M | re.S)
        (template,) = re.findall(r"^```\w+\n(.*?)^```", section, re.M | re.S)
        item = r"\{\{ \.(\w+) \}\}" if generator == "Hugo" else r"\beach\.(\w+)"
        assert {"url", "title"} <= {*re.findall(item, template)} <= data["pages"][page][0].keys()
        assert re.search(r"\b[Dd]ata\.related\.pages\b|\brelated\.pages\b", template)
        assert 'ame="cocite-related"' in template.replace("class=", "className=")
        if generator == "Eleventy":  # Nunjucks is like Jinja
            jinja = pytest.importorskip("jinja2", reason="needs Jinja, which comes with Sphinx")
            rendered = jinja.Template(template, autoescape=True).render(
                related=data, page={"url": page}
            )
            shown = re.findall(r'<li><a href="(.*?)">(.*?)</a></li>', rendered)
            assert shown == [(each["url"], each["title"]) for each in data["pages"][page]]
            assert len(shown) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--selector", "main > p"], "selector is 'main > p'"),
        (["--remove", "-k", "3"], "-k says how to create them"),
        (["--measure", "nothing"], "no measure is called"),
        (["-k", "0"], "1 or more"),
        (["--index", "INSIDE"], "choose a path outside it"),
        (["--json", "FOLDER"], "the folder of the pages"),
    ],
)
def test_site_refuses_invalid_arguments(
    folder: Path, run: Run, arguments: list[str], message: str
) -> None:
    before = digests(folder)
    places = {"INSIDE": str(folder / "x"), "FOLDER": str(folder)}
    assert message in run(*(places.get(each, each) for each in arguments), code=2)["error"]
    assert digests(folder) == before


def test_site_refuses_folder_without_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("a\tb\n")
    assert main(["site", str(tmp_path)]) == 2
    assert "contains no HTML page" in capsys.readouterr().err
    assert main(["site", str(tmp_path / "notes.txt")]) == 2


def test_site_index_reproduces_lists(folder: Path, run: Run) -> None:
    saved = folder.parent / "saved"
    run("--index", str(saved), "-k", "3")
    page = path_of("garden/page0")
    hits = cocite.open(saved / "index").related(page, 3, min_score=0.15)
    linked = [target(folder, page, url) for url in listed_urls(folder / page)]
    assert linked == [folder / str(hit.node) for hit in hits]
    assert "exists" in run("--index", str(saved), code=1)["error"]
    assert run("--index", str(saved), "--overwrite", "-k", "3")["written"] == 0


def test_site_prints_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for page in ("a", "b", "c", "d"):
        path = folder / path_of("garden/page0").replace("page0", page)
        path.write_bytes((folder / path_of("garden/page0")).read_bytes() + b"<!--")
    assert main(["site", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert re.search(r"^lists +on 12 pages, \d+ links; none on 7 pages$", out, re.M)
    assert re.search(r"^places +end of main 12$", out, re.M)
    assert "2 pages linked with more than a quarter" in err
    assert "a.html: ends inside a tag or a comment" in err
    assert "4 pages are unchanged" in err


@pytest.mark.long
def test_site_roundtrips_git_documentation(data: Callable[[str], Path], tmp_path: Path) -> None:
    archive = data("html-git-htmldocs") / "git-htmldocs.tar.gz"
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (folder,) = tmp_path.iterdir()
    before = digests(folder)
    plain = {path: path.read_bytes() for path in folder.rglob("*.html")}
    assert main(["site", str(folder), "-k", "5", "--selector", "#header"]) == 0
    lists = 0
    for path, content in plain.items():
        changed = path.read_bytes()
        assert LIST.sub(b"", changed) == content
        urls = listed_urls(path)
        assert len(urls) <= 5
        page = str(path.relative_to(folder))
        assert all(target(folder, page, url) in plain.keys() - {path} for url in urls)
        lists += bool(urls)
    assert lists > 200
    assert main(["site", str(folder), "--remove"]) == 0
    assert digests(folder) == before
