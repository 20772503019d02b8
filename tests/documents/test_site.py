"""The documentation as a site: built as ``make docs`` does, warnings as errors; its links lead to
pages and places that there are; it has all pages, verbs and public names. Nothing is fetched.
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
    """Where a page links to, and the places on it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and name == "id":
                self.places.add(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made by whichever worker comes first: it writes pages beside its sources."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    place = base / "documents"
    with open(base / "documents.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            built(place)
    return place / "html"


def built(place: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-d", str(place / "t")]
    command += [str(ROOT / "docs"), str(place / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(site.rglob("*.html"))}


@pytest.mark.process
def test_links_lead_to_what_is_there(site: Path, pages: dict[Path, Page]) -> None:
    wrong, seen = [], 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            seen += 1
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            lost = not there.exists() or site.resolve() not in [there, *there.parents]
            if not lost and parts.fragment and there in pages:
                lost = unquote(parts.fragment) not in pages[there].places
            if lost:
                wrong.append(f"{path.relative_to(site)}: {link}")
    assert seen > 1000
    assert wrong == []


@pytest.mark.process
def test_all_documents_are_pages_and_in_the_menu(site: Path, pages: dict[Path, Page]) -> None:
    documents = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert len(documents) > 30
    assert [name for name in documents if not (site / name).with_suffix(".html").exists()] == []
    linked = {link.partition("#")[0] for link in pages[site / "start.html"].links}
    missing = {str(name.with_suffix(".html")) for name in documents} - linked
    assert missing <= {"index.html", "start.html"}  # a page is linked from its own menu by "#"


@pytest.mark.process
def test_the_reference_is_whole(site: Path, pages: dict[Path, Page]) -> None:
    top = click.Context(cli, info_name="cocite")
    anchors = 0
    for verb in _COMMANDS:
        command = cli.get_command(top, verb)
        assert command is not None
        places = pages[site / "reference" / "commands" / f"{verb}.html"].places
        ctx = click.Context(command, info_name=verb, parent=top)
        for option in command.get_params(ctx):
            if isinstance(option, click.Option) and not option.hidden:
                name = max(option.opts, key=len).lstrip("-")
                assert any(place.endswith(f"-{verb}-{name}") for place in places), (verb, name)
                anchors += 1
    assert anchors > 300
    public = {f"cocite.{name}" for name in cocite.__all__ if name != "__version__"}
    public -= {"cocite.CociteError", "cocite.UnknownNode"}  # there as cocite.errors has them
    public |= {"cocite.errors.CociteError", "cocite.errors.UnknownNode"}
    python = [site / "reference" / "python.html", *(site / "reference" / "api").glob("*.html")]
    assert public <= set().union(*(pages[path].places for path in python))


@pytest.mark.process
def test_pages_have_related_ones_by_our_own_plug_in(site: Path) -> None:
    shown = {
        path.relative_to(site).as_posix(): [address for address, _ in related(path)]
        for path in site.rglob("*.html")
    }
    assert sum(map(bool, shown.values())) >= 12
    assert max(map(len, shown.values())) == 5
    assert not shown["reference/changes.html"]


@pytest.mark.process
def test_what_may_be_wider_than_the_screen_is_scrolled_by_keys(site: Path) -> None:
    """Blocks of text, and tables: a browser only scrolls by keys what can be focused."""
    text = "".join(path.read_text("utf-8") for path in site.rglob("*.html"))
    wide = re.findall(r'<pre\b[^>]*>|<div\b[^>]*"table-wrapper[^>]*>', text)
    assert {"<pre", "<div"} == {start[:4] for start in wide}
    assert [start for start in wide if 'tabindex="0"' not in start] == []


@pytest.mark.process
def test_search_is_ranked_and_models_have_a_list_of_pages(site: Path) -> None:
    """What Pagefind indexed are pages with text; the list names all documents but those."""
    entry = json.loads((site / "pagefind" / "pagefind-entry.json").read_text("utf-8"))
    (language,) = entry["languages"].values()
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    assert language["page_count"] >= len(sources)
    assert "PagefindUI" in (site / "search.html").read_text("utf-8")
    listed = re.findall(r"\(/_sources/(.*?)\.md\.txt\)", (site / "llms.txt").read_text("utf-8"))
    assert {str(name.with_suffix("")) for name in sources} <= set(listed)
    assert [name for name in listed if not (site / "_sources" / f"{name}.md.txt").exists()] == []


def test_only_pages_of_contents_have_directives() -> None:
    allowed = {"index.md", "guides.md", "theory.md", "figures.md"}
    for path in (ROOT / "docs").rglob("*.md"):
        if path.parent.name == "commands" or path.name == "results.md":  # made with the site
            continue
        has = "\n```{" in "\n" + path.read_text("utf-8")
        assert has == (path.name in allowed or path.parent.name == "reference"), path


def test_the_citation_is_of_this_release() -> None:
    stated = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert stated["cff-version"] == "1.2.0"
    assert {name: stated[name] for name in ("title", "version", "license", "abstract")} == {
        "title": project["name"],
        "version": project["version"],
        "license": project["license"],
        "abstract": project["description"],
    }
