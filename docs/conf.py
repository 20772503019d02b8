"""How Sphinx makes a site of these documents: ``make docs``.

Documents are plain Markdown, as a code forge shows them; only ``index.md`` files have directives.
What is outside of this folder is included (``README.md``, ``CHANGELOG.md``, ...), the
reference of Python comes from docstrings, that of the command line from its options
(``commands.py``), and the related pages under each page from our own plug-in.
"""

from __future__ import annotations

import importlib.metadata
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

sys.path.insert(0, os.path.dirname(__file__))
sys.path.insert(1, os.path.dirname(os.path.dirname(__file__)))
import commands  # beside this file, which Sphinx runs from elsewhere

from benchmarks import origins

logging.getLogger("cocite").setLevel(logging.WARNING)  # examples of the gallery build indexes

project = "cocite"
author = "the authors of cocite"
version = release = importlib.metadata.version("cocite")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx_llms_txt",
    "cocite.integrations.sphinx",
]
exclude_patterns = ["_build"]
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
suppress_warnings = ["misc.highlighting_failure"]  # JSON with dots for what is left out
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
}

html_theme = "furo"
html_title = f"cocite {release}"
html_copy_source = True  # which llms.txt links to
html_static_path = ["_static", "../src/cocite/server/pages/static/inter.woff2"]
html_css_files = ["site.css"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/versions.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0B6E5F",
        "color-brand-content": "#0B6E5F",
        "font-stack": "Inter, system-ui, sans-serif",
    },
    "dark_css_variables": {"color-brand-primary": "#5BD0BA", "color-brand-content": "#5BD0BA"},
}
html_show_copyright = False

# A list of the pages for language models, which read their sources.
llms_txt_full_file = False
llms_txt_exclude = ["genindex", "search", "gallery/*", "reference/api/*"]

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_inline"]
# Words behind the first of a block of text need no colors, and ours are not all of a language.
highlight_language = "none"

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
python_use_unqualified_type_names = True
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

# Pages of contents, which link to what stands in the menu, too.
cocite_exclude = ["index", "*/index", "guides", "theory", "figures", "reference/*"]


_ELSEWHERE = {
    "SECURITY.md": "reference/security.md",
    "CHANGELOG.md": "reference/changes.md",
    "src/cocite/storage/FORMAT.md": "reference/format.md",
}
"""Documents outside of this folder, by their paths, and the pages that include them."""


def of_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Have links to documents elsewhere lead to the pages that include them."""
    for path, page in _ELSEWHERE.items():
        source[0] = source[0].replace(f"](../{path})", f"]({page})")


def of_pages_included(app: Sphinx, path: Path, name: str, source: list[str]) -> None:
    """The same of what is included, whose links begin where it lies: at the top of the clone."""
    for there, page in _ELSEWHERE.items():
        source[0] = source[0].replace(f"]({there})", f"](docs/{page})")


_WEIGHTS = {"measures": 2, "reference/changes": 0.3, "glossary": 0.3, "gallery/": 0.7}
_WEIGHTS |= {"reproduction": 0.5, "decisions": 0.5, "performance": 0.7, "reference/api/": 0.5}
"""What a word counts on a page: less where most words occur without being explained."""


_SECTION = re.compile(r'<section id="([^"]+)">\s*((?:<span id="[^"]+"></span>)*)<h([2-4])>')
"""Sphinx names sections; Pagefind leads to headings that have names."""


def for_search(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Mark what Pagefind indexes: the text of a page, without its menus."""
    if tree is None:  # a page without a source, such as the index of names
        return
    weight = next((w for prefix, w in _WEIGHTS.items() if page.startswith(prefix)), 1)
    body = context["body"].replace('class="headerlink"', 'class="headerlink" data-pagefind-ignore')
    body = _SECTION.sub(r'<section>\2<h\3 id="\1">', body)
    context["body"] = f'<div data-pagefind-body data-pagefind-weight="{weight}">{body}</div>'


def index_for_search(app: Sphinx, exception: Exception | None) -> None:
    """Have Pagefind index the finished pages for the ranked search of ``search.html``."""
    if exception is None and app.builder.format == "html":
        command = [sys.executable, "-m", "pagefind", "--site", str(app.outdir), "--quiet"]
        subprocess.run(command, check=True)


def landing(
    app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any
) -> str | None:
    """Give the first page its own layout."""
    return "landing.html" if page == app.config.root_doc else None


def by_keys(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Have what may be wider than the screen, blocks of text and tables, be scrolled by keys."""
    for wide in ("<pre", '<div class="table-wrapper'):
        context["body"] = context.get("body", "").replace(
            wide, f'{wide[:4]} tabindex="0"{wide[4:]}'
        )


def write_pages(app: Sphinx) -> None:
    """Write the pages that are made before Sphinx looks for its sources."""
    commands.write_pages(Path(app.srcdir) / "reference" / "commands")
    origins.write_page(Path(app.srcdir) / "reference" / "results.md")


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("source-read", of_pages)
    app.connect("include-read", of_pages_included)
    app.connect("html-page-context", by_keys)
    app.connect("html-page-context", for_search)
    app.connect("html-page-context", landing)
    app.connect("build-finished", index_for_search)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
