"""A small site built repeatedly by Sphinx, with warnings as errors."""

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


def text(page: str, targets: list[str]) -> str:
    head = title(page)
    if page == "index":  # a menu, not links
        listed = "".join(f"   {to}\n" for to in targets)
        return f"{head}\n{'=' * 40}\n\n.. toctree::\n\n{listed}"
    body = "\n".join(f"See :doc:`that </{to}>`, and `it again <#here>`__." for to in targets)
    return f"{head}\n{'=' * 40}\n\n{body or 'Nothing.'}\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the command, on two processes, with warnings as errors."""
    folder = tmp_path_factory.mktemp("sphinx")
    write(folder, ".rst", text, links())
    (folder / "conf.py").write_text(CONF)
    command = [sys.executable, "-m", "sphinx", "-W", "-q", "-j", "2", "-d", "trees", ".", "html"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def build(folder: Path, builder: str = "html", **settings: object) -> str:
    """Build in this process, without workers, and return the status output of Sphinx."""
    from sphinx.application import Sphinx
    from sphinx.util.docutils import docutils_namespace, patch_docutils

    status, warning = StringIO(), StringIO()
    with warnings.catch_warnings(), patch_docutils(), docutils_namespace():
        warnings.simplefilter("ignore")
        source, output, doctrees = str(folder), str(folder / builder), str(folder / "trees")
        app = Sphinx(source, source, output, doctrees, builder, settings, status, warning)
        app.build()
    assert (warning.getvalue(), app.statuscode) == ("", 0)
    return re.sub(r"\x1b\[[0-9;]*m", "", status.getvalue())


def mtimes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in sorted(folder.rglob("page*.html"))}


def test_sphinx_lists_pages_of_same_subject(site: Path) -> None:
    check_lists(lambda page: site / "html" / f"{page}.html")


def test_sphinx_cache_is_reused_until_links_change(site: Path) -> None:
    cache = site / "trees" / "cocite" / "related-pages.json"
    before, written = mtimes(site / "html" / "kitchen"), cache.stat().st_mtime_ns
    assert "no targets are out of date" in build(site)
    assert (mtimes(site / "html" / "kitchen"), cache.stat().st_mtime_ns) == (before, written)

    garden = {to for _, to in related(site / "html/garden/page0.html")}
    other = links() | {"garden/page0": ["kitchen/page1", "kitchen/page2"]}
    write(site, ".rst", text, other)
    build(site)
    assert cache.stat().st_mtime_ns > written
    listed = {to for _, to in related(site / "html/garden/page0.html")}
    assert listed != garden
    assert any("kitchen" in to for to in listed)
    (site / "garden/page0.rst").unlink()
    write(
        site, ".rst", text, {"index": [to for to in links() if to not in ("garden/page0", "index")]}
    )
    unlinked = {f"garden/page{n}": links()[f"garden/page{n}"] for n in range(1, 6)}
    for targets in unlinked.values():
        targets[:] = [to for to in targets if to != "garden/page0"]
    write(site, ".rst", text, unlinked)
    build(site)
    for n in range(1, 6):
        others = related(site / f"html/garden/page{n}.html")
        assert others
        assert "page0" not in str(others)
    write(site, ".rst", text, links())
    build(site)


def test_sphinx_options_shape_lists(site: Path) -> None:
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


def test_sphinx_dirhtml_links_resolve(site: Path) -> None:
    build(site, "dirhtml")
    for address, _ in related(site / "dirhtml/garden/page0/index.html"):
        assert (site / "dirhtml/garden/page0" / address / "index.html").is_file()
    assert len(related(site / "dirhtml/garden/page0/index.html")) == 3


def test_sphinx_unknown_measure_warns(site: Path) -> None:
    with pytest.raises(AssertionError, match="no related pages: no measure is called 'simrang'"):
        build(site, cocite_measure="simrang")
