"""Options of ``cocite ingest`` for pages of the web and of wikis: which links and pages count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["page_options"]

_OPTIONS = (
    click.option(
        "--links",
        type=click.Choice(["all", "main"], case_sensitive=False),
        default="all",
        show_default=True,
        help="Of HTML pages: all links, or main, without the navigation that stands on every page.",
    ),
    click.option(
        "--link-tags",
        default="a,area,frame",
        show_default=True,
        metavar="TAG,...",
        help="What counts as a link, in HTML.",
    ),
    click.option(
        "--site",
        metavar="URL",
        help="Where a folder of HTML pages is published, so that links by that URL lead into it.  "
        "[default: what its canonical links agree on]",
    ),
    click.option(
        "--ignore-canonical",
        is_flag=True,
        help="Keep copies of a page apart, though they say what page they are copies of.",
    ),
    click.option(
        "--keep-external",
        is_flag=True,
        help="Keep the pages outside a folder that it links to, by their URLs.",
    ),
    click.option(
        "--namespaces",
        default="0",
        show_default=True,
        metavar="NUMBER,...",
        help="Namespaces of a wiki whose pages are nodes: of a dump of MediaWiki, such as 0,14 for "
        "articles and categories.",
    ),
    click.option(
        "--pages",
        metavar="FILE",
        help="Take only the pages that this sitemap or list of URLs names: of a folder of HTML "
        "pages or a web archive.",
    ),
    click.option(
        "--fetch",
        is_flag=True,
        help="Fetch the pages that a sitemap or a list of URLs names: those that robots.txt "
        "allows, one at a time of each host.",
    ),
    click.option(
        "--delay",
        type=float,
        default=1.0,
        show_default=True,
        metavar="SECONDS",
        help="Seconds between two requests to a host.",
    ),
    click.option(
        "--normalise-urls",
        is_flag=True,
        help="Write names that are URLs in one way, so that those of one page are one node: host, "
        "port, dots, escapes, no fragment, no parameters of trackers.",
    ),
    click.option(
        "--report",
        metavar="FILE",
        help="List the links of HTML pages that lead nowhere (.tsv or .csv).",
    ),
)


def page_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add them to a verb."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
