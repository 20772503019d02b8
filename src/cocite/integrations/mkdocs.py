"""MkDocs plug-in: related pages below every page.

    plugins:                              in mkdocs.yml
      - cocite:
          related: 5                  how many, at most
          heading: Related pages      above them
          exclude: ["news/*"]         pages without a list, and in none (fnmatch)
          measure: neighborhood      a name of ``cocite measures``; by default an index's own
          min_score: 0.15             pages of a lower score are not listed

Links in the text of pages count, menus do not. Answers are cached in ``.cache/plugin/cocite`` until
a link changes. Lists are inserted after the search plug-in has read the texts. Needs the extra
``mkdocs``.
"""

from __future__ import annotations

from fnmatch import fnmatch
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin

from mkdocs.config import config_options as options
from mkdocs.config.base import Config
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger

from cocite.errors import CociteError
from cocite.integrations.blocks import HEADING, related_list, relative_url
from cocite.integrations.html_places import references
from cocite.integrations.sites import MIN_SCORE, related_pages

_SITE = "http://site/"
_log = get_plugin_logger(__name__)


class PluginSettings(Config):  # type: ignore[no-untyped-call]
    """Settings of the plug-in in ``mkdocs.yml``."""

    related = options.Type(int, default=5)
    heading = options.Type(str, default=HEADING)
    exclude = options.ListOfItems(options.Type(str), default=[])
    measure = options.Optional(options.Type(str))
    min_score = options.Type((int, float), default=MIN_SCORE)


class RelatedPages(BasePlugin[PluginSettings]):  # type: ignore[no-untyped-call]
    """The plug-in."""

    dirty: bool
    lists: dict[str, list[Any]]

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """Handle the start of MkDocs."""
        self.dirty = dirty

    @event_priority(-100)  # after plug-ins that change the text
    def on_env(self, env: Any, *, config: Any, files: Any) -> None:
        """Find links and related pages, when all pages have their text."""
        self.lists = {}
        if self.dirty:
            _log.info("no related pages: they take a build of the whole site, without --dirty")
            return
        pages = {
            file.src_uri: file.page
            for file in files.documentation_pages()
            if file.page is not None
            and file.page.content is not None
            and not any(fnmatch(file.src_uri, pattern) for pattern in self.config.exclude)
        }
        site = config.site_url or _SITE
        named = {_address(site, page.url): name for name, page in pages.items()}
        links = {name: _links(site, page.url, page.content, named) for name, page in pages.items()}
        folder = Path(config.config_file_path or ".").absolute().parent / ".cache/plugin/cocite"
        try:
            found = related_pages(
                links,
                self.config.related,
                measure=self.config.measure,
                min_score=self.config.min_score,
                folder=folder,
            )
        except CociteError as error:
            raise PluginError(f"no related pages: {error}") from error
        self.lists = {name: [pages[other] for other in found[name]] for name in pages}

    @event_priority(-100)  # after the search plug-in
    def on_page_context(self, context: Any, *, page: Any, config: Any, nav: Any) -> None:
        """Put a page's list below its text."""
        listed = [  # titles from texts have entities, those from mkdocs.yml maybe not
            (unescape(str(other.title)), relative_url(page.url, other.url))
            for other in self.lists.get(page.file.src_uri, [])
        ]
        page.content += related_list(self.config.heading, listed)


def _address(site: str, url: str) -> str:
    """Return the normalized address of a page of a site."""
    found = unquote(urljoin(site, url).partition("#")[0].partition("?")[0])
    return found.removesuffix("index.html")


def _links(site: str, url: str, content: str, named: dict[str, str]) -> set[str]:
    """Return the names of the pages that a text links to."""
    here = urljoin(site, url)
    found = {named.get(_address(here, each)) for each in references(content)}
    return {name for name in found if name is not None}
