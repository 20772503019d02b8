"""Sphinx extension ``cocite.integrations.sphinx``: related pages below every page.

    cocite_related = 5                      maximum length of a list
    cocite_heading = "Related pages"        heading of each list
    cocite_exclude = ["changes/*"]          pages that get no list and appear in none (fnmatch)
    cocite_measure = None                   a name from ``cocite measures``, or None for the default
    cocite_min_score = 0.15                 minimum score to list

Only links in page texts count, not tables of contents (``toctree``). Links are stored in Sphinx's
environment, so a build reads only changed pages, and rewrites pages whose lists changed. The
references of a changed page are resolved twice. Needs the extra ``sphinx``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from docutils import nodes
from sphinx import addnodes
from sphinx.util import logging
from sphinx.util.display import progress_message

from cocite import __version__
from cocite.errors import CociteError
from cocite.integrations.html_places import HEADING, related_list, relative_url
from cocite.integrations.sites import MIN_SCORE, related_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment


_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension's settings and event handlers."""
    # "": a change needs no rebuild, because `_ask` returns the pages whose lists change.
    app.add_config_value("cocite_related", 5, "", int)
    app.add_config_value("cocite_heading", HEADING, "html", str)
    app.add_config_value("cocite_exclude", [], "", list)
    app.add_config_value("cocite_measure", None, "", (str, type(None)))
    app.add_config_value("cocite_min_score", MIN_SCORE, "", float)
    app.connect("env-purge-doc", lambda app, env, page: _links(env).pop(page, None))
    app.connect("env-merge-info", _merge)
    app.connect("env-updated", _ask)
    app.connect("html-page-context", _show)
    return {
        "version": __version__,
        "env_version": 1,
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }


def _links(env: BuildEnvironment) -> dict[str, set[str]]:
    """Return the environment's dictionary from each page to the pages it links to."""
    if not hasattr(env, "cocite_links"):
        env.cocite_links = {}  # type: ignore[attr-defined]
    return env.cocite_links  # type: ignore[attr-defined, no-any-return]


def _merge(app: Sphinx, env: BuildEnvironment, docnames: Iterable[str], other: Any) -> None:
    _links(env).update(getattr(other, "cocite_links", {}))


def _shown(app: Sphinx) -> bool:
    """Return whether the builder writes an HTML file per page."""
    return app.builder.format == "html" and app.builder.name not in ("epub", "singlehtml")


def _ask(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Compute the lists when all pages have been read; return the pages to rewrite."""
    if not _shown(app):
        return []
    links = _links(env)
    named = {app.builder.get_target_uri(page): page for page in env.found_docs}
    for page in sorted(env.found_docs - set(links)):
        links[page] = _links_of(app, page, named)
    excluded = app.config.cocite_exclude
    asked = {
        page: links[page]
        for page in sorted(env.found_docs)
        if not any(fnmatch(page, pattern) for pattern in excluded)
    }
    before = getattr(env, "cocite_pages", {})
    try:
        with progress_message("relating pages by their links"):
            found = related_pages(
                asked,
                app.config.cocite_related,
                measure=app.config.cocite_measure,
                min_score=app.config.cocite_min_score,
                folder=Path(app.doctreedir) / "cocite",
            )
    except CociteError as error:
        _log.warning("no related pages: %s", error, type="cocite")
        found = {}
    env.cocite_pages = found  # type: ignore[attr-defined]
    return [page for page in sorted(env.found_docs) if found.get(page) != before.get(page)]


def _links_of(app: Sphinx, page: str, named: Mapping[str, str]) -> set[str]:
    """Return the pages that a page's text links to; ignore tables of contents."""
    env, builder = app.env, app.builder
    doctree = env.get_doctree(page)
    for toctree in list(doctree.findall(addnodes.toctree)):
        toctree.parent.remove(toctree)
    with logging.suppress_logging():  # Sphinx repeats these warnings when writing the page
        env.resolve_references(doctree, page, builder)
    root, here, found = "http://site/", builder.get_target_uri(page), set()
    for node in doctree.findall(nodes.reference):
        address = node.get("refuri", "").partition("#")[0]
        if node.get("internal") and address:
            found.add(named.get(urljoin(root + here, address).removeprefix(root)))
    return {other for other in found if other is not None and other != page}


def _show(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if doctree is None or "body" not in context or not _shown(app):
        return
    uri = app.builder.get_target_uri
    pages = [
        (app.env.titles[other].astext(), relative_url(uri(page), uri(other)))
        for other in getattr(app.env, "cocite_pages", {}).get(page, [])
        if other in app.env.titles
    ]
    context["body"] += related_list(app.config.cocite_heading, pages)
