"""Related pages under every page of a site made by MkDocs: in ``mkdocs.yml``,

    plugins:
      - cocite:
          related: 5                  how many, at most
          heading: Related pages      above them
          measure: neighbourhood      a name of ``cocite measures``; by default an index's own
          exclude: ["tags.md"]        pages that are neither asked nor listed (fnmatch)

Links are those in the text of pages, as it is in HTML; menus do not count. Related pages are asked
for when all pages have their text, and kept in ``.cache/plugin/cocite`` beside ``mkdocs.yml`` until a
link changes.

Needs MkDocs (the extra ``mkdocs``).
"""

from __future__ import annotations

from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin

from mkdocs.config import config_options as options
from mkdocs.config.base import Config
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority
from mkdocs.utils import get_relative_url

from cocite.errors import CociteError
from cocite.interop.sites import related_list, related_pages

__all__ = ["RelatedPages"]

_SITE = "http://site/"


class Settings(Config):
    """What ``mkdocs.yml`` may say."""

    related = options.Type(int, default=5)
    heading = options.Type(str, default="Related pages")
    measure = options.Optional(options.Type(str))
    exclude = options.ListOfItems(options.Type(str), default=[])


class RelatedPages(BasePlugin[Settings]):
    """The plug-in."""

    @event_priority(-100)  # behind plug-ins that change the text
    def on_env(self, env: Any, *, config: Any, files: Any) -> Any:
        """All pages have their text: find links, ask, and put lists under the texts."""
        pages = {
            file.src_uri: file.page
            for file in files.documentation_pages()
            if file.page is not None
            and file.page.content is not None
            and not any(fnmatch(file.src_uri, pattern) for pattern in self.config.exclude)
        }
        named = {_address(page.url): name for name, page in pages.items()}
        links = {name: _links(page.url, page.content, named) for name, page in pages.items()}
        folder = Path(config.config_file_path or ".").absolute().parent / ".cache/plugin/cocite"
        try:
            found = related_pages(
                links, self.config.related, measure=self.config.measure, folder=folder
            )
        except CociteError as error:
            raise PluginError(f"no related pages: {error}") from error
        for name, page in pages.items():
            listed = [
                (str(pages[other].title), get_relative_url(pages[other].url or ".", page.url))
                for other in found[name]
            ]
            page.content += related_list(self.config.heading, listed)
        return env


class _References(HTMLParser):
    """Collects where a page links to."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each tag."""
        if tag == "a":
            self.found += [value for name, value in attrs if name == "href" and value]


def _address(url: str) -> str:
    """A page's address from the root of the site, the same however it is written."""
    found = unquote(urljoin(_SITE, url).partition("#")[0].partition("?")[0])
    return found.removesuffix("index.html")


def _links(url: str, content: str, named: dict[str, str]) -> set[str]:
    """The names of the pages that a text links to."""
    parser = _References()
    parser.feed(content)
    parser.close()
    found = {named.get(_address(urljoin(_SITE + url, each))) for each in parser.found}
    return {name for name in found if name is not None}
