"""How Sphinx makes a site of these documents: ``make docs``.

Documents are plain Markdown, as a code forge shows them; only ``index.md`` files have directives.
What is outside of this folder is included (``README.md``, ``CHANGELOG.md``, ...), the
reference of Python comes from docstrings, that of the command line from its help
(``cli_reference``, below), and the related pages under each page from our own plug-in.
"""

from __future__ import annotations

import importlib.metadata
import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

os.environ["COLUMNS"] = "100"  # help is as wide as this

project = "cocite"
author = "the authors of cocite"
version = release = importlib.metadata.version("cocite")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "cocite.integrations.sphinx",
]
exclude_patterns = ["_build"]
suppress_warnings = ["misc.highlighting_failure"]  # JSON with dots for what is left out
source_suffix = {".md": "markdown"}

html_theme = "furo"
html_title = f"cocite {release}"
html_copy_source = False
html_show_copyright = False

myst_heading_anchors = 4
# Words behind the first of a block of text need no colors, and ours are not all of a language.
highlight_language = "none"

autodoc_typehints = "none"  # the signature has none; docstrings say what is taken
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


def by_keys(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Have what may be wider than the screen, blocks of text and tables, be scrolled by keys."""
    for wide in ("<pre", '<div class="table-wrapper'):
        context["body"] = context.get("body", "").replace(
            wide, f'{wide[:4]} tabindex="0"{wide[4:]}'
        )


class CliReference(SphinxDirective):
    """``cli_reference``: a section for each verb of the command line, with all of its help."""

    def run(self) -> list[nodes.Node]:
        """What stands in the place of the directive."""
        import click

        from cocite.cli.main import cli, main

        found: list[nodes.Node] = []
        top = click.Context(cli, info_name="cocite")
        for verb in cli.list_commands(top):
            command = cli.get_command(top, verb)
            assert command is not None
            taken = {name for each in command.get_params(top) for name in each.opts}
            said = StringIO()
            with redirect_stdout(said):
                main([verb, "--help-all" if "--help-all" in taken else "--help"])
            section = nodes.section(ids=[f"cocite-{verb}"], names=[f"cocite {verb}"])
            section += nodes.title(text=f"cocite {verb}")
            section += nodes.literal_block(text=said.getvalue().rstrip())
            found.append(section)
        return found


def setup(app: Sphinx) -> dict[str, Any]:
    """What Sphinx calls."""
    app.connect("source-read", of_pages)
    app.connect("include-read", of_pages_included)
    app.connect("html-page-context", by_keys)
    app.add_directive("cli_reference", CliReference)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
