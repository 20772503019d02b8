"""A real small site made by Sphinx, with warnings as errors, built again and again."""

import re
import subprocess
import sys
import warnings
from io import StringIO
from pathlib import Path

import pytest

from tests.integrations.sites.pages import check_lists, links, related, title, write

pytestmark = pytest.mark.process

pytest.importorskip("sphinx", reason="Sphinx is not installed")

CONF = """
project = "Small"
extensions = ["cocite.integrations.sphinx"]
html_theme = "alabaster"
cocite_related = 3
"""


def text(page: str, tos: list[str]) -> str:
    head = title(page)
    if page == "index":  # the menu, which counts as no link
        listed = "".join(f"   {to}\n" for to in tos)
        return f"{head}\n{'=' * 40}\n\n.. toctree::\n\n{listed}"
    body = "\n".join(f"See :doc:`that </{to}>`, and `it again <#here>`__." for to in tos)
    return f"{head}\n{'=' * 40}\n\n{body or 'Nothing.'}\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the command, on two processes; what it warns of is an error."""
    place = tmp_path_factory.mktemp("sphinx")
    write(place, ".rst", text, links())
    (place / "conf.py").write_text(CONF)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-j", "2", "-d", "trees", ".", "html"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return place


def build(place: Path, builder: str = "html", **settings: object) -> str:
    """Built in this process; what Sphinx said. There are as many processes as before: one."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    said, wrong = StringIO(), StringIO()
    with warnings.catch_warnings(), patch_docutils(), docutils_namespace():
        warnings.simplefilter("ignore")
        here, made, trees = str(place), str(place / builder), str(place / "trees")
        app = Sphinx(here, here, made, trees, builder, settings, said, wrong)
        app.build()
    assert (wrong.getvalue(), app.statuscode) == ("", 0)
    return re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue())


def moments(place: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sorted(place.rglob("page*.html"))}


def test_pages_have_lists_of_their_subject(site: Path) -> None:
    check_lists(lambda page: site / "html" / f"{page}.html")


def test_a_second_build_asks_nothing_and_other_links_do(site: Path) -> None:
    kept = site / "trees" / "cocite" / "related-pages.json"
    before, written = moments(site / "html" / "kitchen"), kept.stat().st_mtime_ns
    assert "no targets are out of date" in build(site)
    assert (moments(site / "html" / "kitchen"), kept.stat().st_mtime_ns) == (before, written)

    garden = {to for _, to in related(site / "html/garden/page0.html")}
    other = links() | {"garden/page0": ["kitchen/page1", "kitchen/page2"]}
    write(site, ".rst", text, other)
    build(site)
    assert kept.stat().st_mtime_ns > written
    listed = {to for _, to in related(site / "html/garden/page0.html")}
    assert listed != garden
    assert any("kitchen" in to for to in listed)
    (site / "garden/page0.rst").unlink()
    write(
        site, ".rst", text, {"index": [to for to in links() if to not in ("garden/page0", "index")]}
    )
    unlinked = {f"garden/page{n}": links()[f"garden/page{n}"] for n in range(1, 6)}
    for tos in unlinked.values():
        tos[:] = [to for to in tos if to != "garden/page0"]
    write(site, ".rst", text, unlinked)
    build(site)
    for n in range(1, 6):
        others = related(site / f"html/garden/page{n}.html")
        assert others
        assert "page0" not in str(others)
    write(site, ".rst", text, links())
    build(site)


def test_options(site: Path) -> None:
    build(site, cocite_related=1, cocite_heading="See <too>", cocite_exclude=["garden/page[12]"])
    assert related(site / "html/garden/page1.html") == []
    for page in links():
        listed = related(site / "html" / f"{page}.html")
        assert len(listed) <= 1
        assert not any(
            name.startswith(("About garden/page1", "About garden/page2")) for _, name in listed
        )
    assert "<h2>See &lt;too&gt;</h2>" in (site / "html/garden/page0.html").read_text()
    build(site, cocite_min_score=2.0)
    assert related(site / "html/garden/page0.html") == []
    build(site, cocite_measure="cocitation", cocite_min_score=0.0)
    assert related(site / "html/garden/page0.html") != []


def test_folders_as_addresses(site: Path) -> None:
    build(site, "dirhtml")
    for address, _ in related(site / "dirhtml/garden/page0/index.html"):
        assert (site / "dirhtml/garden/page0" / address / "index.html").is_file()
    assert len(related(site / "dirhtml/garden/page0/index.html")) == 3


def test_a_measure_that_is_none_is_a_warning(site: Path) -> None:
    with pytest.raises(AssertionError, match="no related pages: no measure is called 'simrang'"):
        build(site, cocite_measure="simrang")
