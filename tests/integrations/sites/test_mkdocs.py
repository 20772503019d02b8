"""A real small site made by MkDocs, with warnings as errors, built again and again."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.sites.pages import HEADING, check_lists, links, related, title, write

pytestmark = pytest.mark.process

pytest.importorskip("mkdocs", reason="MkDocs is not installed")

CONF = {
    "site_name": "Small",
    "site_url": "https://www.example.org/docs/",
    "theme": {"name": "mkdocs"},
    "plugins": ["search", {"cocite": {"related": 3}}],
}


def text(page: str, tos: list[str]) -> str:
    body = "".join(f"* [that]({os.path.relpath(to, Path(page).parent)}.md#part)\n" for to in tos)
    if page == "garden/page5":  # by its address, as some write them
        body += "* [that](https://www.example.org/docs/garden/page1/)\n"
    head = title(page).replace("<", "&lt;")
    return f"# {head}\n\n{body or 'Nothing.'}\n\n## Part {{#part}}\n\nText.\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the command; what it warns of is an error."""
    place = tmp_path_factory.mktemp("mkdocs")
    write(place / "docs", ".md", text, links())
    (place / "mkdocs.yml").write_text(json.dumps(CONF | {"markdown_extensions": ["attr_list"]}))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return place


def build(place: Path, dirty: bool = False, **options: object) -> None:
    from mkdocs.commands.build import build as make
    from mkdocs.config import load_config

    said = json.loads((place / "mkdocs.yml").read_text())
    if options:
        said["plugins"] = ["search", {"cocite": options}]
    (place / "mkdocs.yml").write_text(json.dumps(said))
    # Of a dirty build MkDocs itself warns.
    config = load_config(str(place / "mkdocs.yml"), strict=not dirty)
    config.plugins.on_startup(command="build", dirty=dirty)
    make(config, dirty=dirty)


def file_of(place: Path, page: str) -> Path:
    return place / "site" / (page if page != "index" else "") / "index.html"


def listed(place: Path, page: str) -> list[tuple[str, str]]:
    return related(file_of(place, page))


def test_pages_have_lists_of_their_subject(site: Path) -> None:
    check_lists(lambda page: file_of(site, page))


def test_the_search_finds_no_titles_of_other_pages(site: Path) -> None:
    words = json.loads((site / "site/search/search_index.json").read_text())["docs"]
    assert len(words) > len(links())
    assert [each["location"] for each in words if HEADING in each["text"]] == []


def test_a_second_build_asks_nothing_and_other_links_do(site: Path) -> None:
    kept = site / ".cache/plugin/cocite/related-pages.json"
    before, written = listed(site, "garden/page0"), kept.stat().st_mtime_ns
    build(site)
    assert (listed(site, "garden/page0"), kept.stat().st_mtime_ns) == (before, written)
    other = links() | {"garden/page0": ["kitchen/page1", "kitchen/page2"]}
    write(site / "docs", ".md", text, other)
    build(site)
    assert kept.stat().st_mtime_ns > written
    assert any("kitchen" in address for address, _ in listed(site, "garden/page0"))
    write(site / "docs", ".md", text, links())


def test_a_build_of_some_pages_leaves_lists_out(site: Path) -> None:
    path = site / "docs/garden/page0.md"
    path.write_text(path.read_text() + "\nMore.\n")
    build(site, dirty=True)
    assert listed(site, "garden/page0") == []


def test_options(site: Path) -> None:
    build(site, related=1, heading="See <too>", exclude=["garden/page[12].md"])
    assert listed(site, "garden/page1") == []
    found = [name for page in links() for _, name in listed(site, page)]
    assert found
    assert not any(name.startswith(("About garden/page1", "About garden/page2")) for name in found)
    assert "<h2>See &lt;too&gt;</h2>" in (site / "site/garden/page0/index.html").read_text()
    build(site, min_score=2)
    assert listed(site, "garden/page0") == []


def test_what_cannot_be_asked_is_an_error(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    from mkdocs.exceptions import Abort

    with pytest.raises(Abort):
        build(site, measure="simrang")
    assert "no related pages: no measure is called 'simrang'" in caplog.text
