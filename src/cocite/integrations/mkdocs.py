"""MkDocs plug-in: related pages below every page.

    plugins:                              in mkdocs.yml
      - cocite:
          related: 5                  maximum length of a list
          heading: Related pages      heading of each list
          exclude: ["news/*"]         pages that get no list and appear in none (fnmatch)
          measure: neighborhood       one of ``cocite measures``; default: that of ``cocite index``
          min_score: 0.15             minimum score to list

Only links in page texts count, not those in menus. Answers are cached in ``.cache/plugin/cocite``
until a link changes. Lists are inserted after the search plug-in has indexed the texts, so they
do not appear in search results. Needs the extra ``mkdocs``.
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
from cocite.integrations.html_places import HEADING, references, related_list, relative_url
from cocite.integrations.sites import MIN_SCORE, related_pages

_SITE = "http://site/"
_log = get_plugin_logger(__name__)


class PluginSettings(Config):  # type: ignore[no-untyped-call]
    """The plug-in's settings in ``mkdocs.yml``."""

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
        """Store whether MkDocs builds only changed pages (``--dirty``)."""
        self.dirty = dirty

    @event_priority(-100)  # after plug-ins that change the text
    def on_env(self, env: Any, *, config: Any, files: Any) -> None:
        """Compute the lists when all pages have been rendered."""
        self.lists = {}
        if self.dirty:
            _log.info("no related pages: they need a build of the whole site; omit --dirty")
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
        """Append a page's list to its text."""
        listed = [  # titles from texts may contain entities
            (unescape(str(other.title)), relative_url(page.url, other.url))
            for other in self.lists.get(page.file.src_uri, [])
        ]
        page.content += related_list(self.config.heading, listed)


def _address(site: str, url: str) -> str:
    """Return the normalized URL of a page."""
    found = unquote(urljoin(site, url).partition("#")[0].partition("?")[0])
    return found.removesuffix("index.html")


def _links(site: str, url: str, content: str, named: dict[str, str]) -> set[str]:
    addresses = (_address(urljoin(site, url), each) for each in references(content))
    return {named[address] for address in addresses if address in named}
