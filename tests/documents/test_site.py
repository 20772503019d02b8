"""The documentation as a site: built like ``make docs``, with warnings as errors; its links and
anchors exist; it has all pages, verbs and public names. Nothing is fetched.
"""

import fcntl
import json
import os
import re
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest
import yaml

import cocite
from cocite.cli.main import _COMMANDS, cli
from tests.integrations.sites.pages import related

for needed in ("sphinx", "furo", "myst_parser", "sphinx_copybutton", "sphinx_design"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and name == "id":
                self.anchors.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built by the first worker: the build writes pages beside its sources."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = base / "documents"
    with open(base / "documents.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build_site(folder)
    return folder / "html"


def build_site(folder: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(folder / "t")]
    command += [str(ROOT / "docs"), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


@pytest.mark.process
def test_site_has_no_broken_links(site: Path, pages: dict[Path, Page]) -> None:
    broken_links, internal = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            internal += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            broken = not target.exists() or site.resolve() not in [target, *target.parents]
            if not broken and parts.fragment and target in pages:
                broken = unquote(parts.fragment) not in pages[target].anchors
            if broken:
                broken_links.append(f"{path.relative_to(site)}: {link}")
    assert internal > 1000
    assert broken_links == []


@pytest.mark.process
def test_site_menu_lists_every_document(site: Path, pages: dict[Path, Page]) -> None:
    documents = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert len(documents) > 30
    assert [name for name in documents if not (site / name).with_suffix(".html").exists()] == []
    linked = {link.partition("#")[0] for link in pages[site / "start.html"].links}
    missing = {str(name.with_suffix(".html")) for name in documents} - linked
    assert missing <= {"index.html", "start.html"}  # its own menu links to a page by "#"


@pytest.mark.process
def test_reference_covers_every_option_and_public_name(site: Path, pages: dict[Path, Page]) -> None:
    top = click.Context(cli, info_name="cocite")
    options = 0
    for verb in _COMMANDS:
        command = cli.get_command(top, verb)
        assert command is not None
        anchors = pages[site / "reference" / "commands" / f"{verb}.html"].anchors
        ctx = click.Context(command, info_name=verb, parent=top)
        for option in command.get_params(ctx):
            if isinstance(option, click.Option) and not option.hidden:
                name = max(option.opts, key=len).lstrip("-")
                assert any(anchor.endswith(f"-{verb}-{name}") for anchor in anchors), (verb, name)
                options += 1
    assert options > 300
    public = {f"cocite.{name}" for name in cocite.__all__ if name != "__version__"}
    public -= {"cocite.CociteError", "cocite.UnknownNode"}  # listed under cocite.errors
    public |= {"cocite.errors.CociteError", "cocite.errors.UnknownNode"}
    python = [site / "reference" / "python.html", *(site / "reference" / "api").glob("*.html")]
    assert public <= set().union(*(pages[path].anchors for path in python))


@pytest.mark.process
def test_site_pages_have_related_pages(site: Path) -> None:
    shown = {
        path.relative_to(site).as_posix(): [address for address, _ in related(path)]
        for path in site.rglob("*.html")
    }
    assert sum(map(bool, shown.values())) >= 12
    assert max(map(len, shown.values())) == 5
    assert not shown["reference/changes.html"]


@pytest.mark.process
def test_site_wide_blocks_are_keyboard_scrollable(site: Path) -> None:
    """Browsers scroll only focusable text blocks and tables by keys."""
    text = "".join(path.read_text("utf-8") for path in site.rglob("*.html"))
    wide = re.findall(r'<pre\b[^>]*>|<div\b[^>]*"table-wrapper[^>]*>', text)
    assert {"<pre", "<div"} == {start[:4] for start in wide}
    assert [start for start in wide if 'tabindex="0"' not in start] == []


@pytest.mark.process
def test_pagefind_and_llms_txt_cover_every_document(site: Path) -> None:
    """Pagefind indexes every document; llms.txt lists them all."""
    entry = json.loads((site / "pagefind" / "pagefind-entry.json").read_text("utf-8"))
    (language,) = entry["languages"].values()
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert language["page_count"] >= len(sources)
    assert "PagefindUI" in (site / "search.html").read_text("utf-8")
    listed = re.findall(r"\(/_sources/(.*?)\.md\.txt\)", (site / "llms.txt").read_text("utf-8"))
    assert {str(name.with_suffix("")) for name in sources} <= set(listed)
    assert [name for name in listed if not (site / "_sources" / f"{name}.md.txt").exists()] == []


def test_directives_appear_only_in_contents_pages() -> None:
    allowed = {"index.md", "guides.md", "theory.md", "figures.md"}
    for path in (ROOT / "docs").rglob("*.md"):
        if path.parent.name == "commands" or path.name == "results.md":  # made with the site
            continue
        has = "\n```{" in "\n" + path.read_text("utf-8")
        assert has == (path.name in allowed or path.parent.name == "reference"), path


def test_citation_matches_pyproject() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["cff-version"] == "1.2.0"
    assert {name: citation[name] for name in ("title", "version", "license", "abstract")} == {
        "title": project["name"],
        "version": project["version"],
        "license": project["license"],
        "abstract": project["description"],
    }
