"""A small site built repeatedly by MkDocs, with warnings as errors."""

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


def text(page: str, targets: list[str]) -> str:
    body = "".join(
        f"* [that]({os.path.relpath(to, Path(page).parent)}.md#part)\n" for to in targets
    )
    if page == "garden/page5":  # by its full address
        body += "* [that](https://www.example.org/docs/garden/page1/)\n"
    head = title(page).replace("<", "&lt;")
    return f"# {head}\n\n{body or 'Nothing.'}\n\n## Part {{#part}}\n\nText.\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the command, with warnings as errors."""
    folder = tmp_path_factory.mktemp("mkdocs")
    write(folder / "docs", ".md", text, links())
    (folder / "mkdocs.yml").write_text(json.dumps(CONF | {"markdown_extensions": ["attr_list"]}))
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def build(folder: Path, dirty: bool = False, **options: object) -> None:
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    config_data = json.loads((folder / "mkdocs.yml").read_text())
    if options:
        config_data["plugins"] = ["search", {"cocite": options}]
    (folder / "mkdocs.yml").write_text(json.dumps(config_data))
    # MkDocs warns about dirty builds.
    config = load_config(str(folder / "mkdocs.yml"), strict=not dirty)
    config.plugins.on_startup(command="build", dirty=dirty)
    build_site(config, dirty=dirty)


def file_of(folder: Path, page: str) -> Path:
    return folder / "site" / (page if page != "index" else "") / "index.html"


def listed(folder: Path, page: str) -> list[tuple[str, str]]:
    return related(file_of(folder, page))


def test_mkdocs_lists_pages_of_same_subject(site: Path) -> None:
    check_lists(lambda page: file_of(site, page))


def test_mkdocs_search_index_excludes_lists(site: Path) -> None:
    entries = json.loads((site / "site/search/search_index.json").read_text())["docs"]
    assert len(entries) > len(links())
    assert [each["location"] for each in entries if HEADING in each["text"]] == []


def test_mkdocs_cache_is_reused_until_links_change(site: Path) -> None:
    cache = site / ".cache/plugin/cocite/related-pages.json"
    before, written = listed(site, "garden/page0"), cache.stat().st_mtime_ns
    build(site)
    assert (listed(site, "garden/page0"), cache.stat().st_mtime_ns) == (before, written)
    other = links() | {"garden/page0": ["kitchen/page1", "kitchen/page2"]}
    write(site / "docs", ".md", text, other)
    build(site)
    assert cache.stat().st_mtime_ns > written
    assert any("kitchen" in address for address, _ in listed(site, "garden/page0"))
    write(site / "docs", ".md", text, links())


def test_mkdocs_dirty_build_omits_lists(site: Path) -> None:
    path = site / "docs/garden/page0.md"
    path.write_text(path.read_text() + "\nMore.\n")
    build(site, dirty=True)
    assert listed(site, "garden/page0") == []


def test_mkdocs_options_shape_lists(site: Path) -> None:
    build(site, related=1, heading="See <too>", exclude=["garden/page[12].md"])
    assert listed(site, "garden/page1") == []
    found = [name for page in links() for _, name in listed(site, page)]
    assert found
    assert not any(name.startswith(("About garden/page1", "About garden/page2")) for name in found)
    assert "<h2>See &lt;too&gt;</h2>" in (site / "site/garden/page0/index.html").read_text()
    build(site, min_score=2)
    assert listed(site, "garden/page0") == []


def test_mkdocs_unknown_measure_aborts(site: Path, caplog: pytest.LogCaptureFixture) -> None:
    from mkdocs.exceptions import Abort

    with pytest.raises(Abort):
        build(site, measure="simrang")
    assert "no related pages: no measure is called 'simrang'" in caplog.text
