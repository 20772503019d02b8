"""Options of ``cocite site``: what is listed on pages, where, and what is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cocite.options import CLI, Options, option


@dataclass(frozen=True)
class SiteOptions(Options, fronts=CLI):
    """What ``cocite site`` takes beside the folder."""

    k: int = option(5, "How many related pages to list on a page, at most.", low=1, flag="-k")
    heading: str = option("Related pages", "The heading of the list.", metavar="TEXT")
    selector: str | None = option(
        None,
        "Put the list at the end of the first element that fits: a tag, #id, .class or "
        "[attribute=value], or several of them for one element. Pages without it stay as they are.",
        metavar="CSS",
        unset="at <!-- cocite --> or data-cocite, else at the end of main, article or body",
    )
    style: bool = option(
        True,
        "Put a few lines of CSS into the list.",
        flag="--no-style",
        negated="Put no CSS into the list. Otherwise it has a few rules, and those of the site go "
        "before them.",
    )
    directory_urls: bool = option(
        False,
        "Link to guide/ where the page is guide/index.html.",
        unset="name the file, which works without a server, too",
    )
    exclude: Any = option(
        (),
        "Leave out pages whose paths fit, such as 'news/*': they get no list and are in none. "
        "Repeatable.",
        kind=str,
        many=True,
        metavar="PATTERN",
    )
    links: str = option(
        "main",
        "Which links count: main, without the navigation that stands on every page, or all.",
        choices=("all", "main"),
    )
    site: str | None = option(
        None,
        "Where the folder is published, so that links by that URL lead into it.",
        metavar="URL",
        unset="what its canonical links agree on",
    )
    measure: str | None = option(
        None,
        "What similar means: a name that cocite measures lists.",
        metavar="NAME",
        unset="fusion",
    )
    min_score: float = option(0.15, "Leave out related pages with a lower score.", low=0)
    index: str | None = option(
        None,
        "Keep the graph and the index of the pages in this folder, to ask them more.",
        metavar="DIR",
        unset="they are temporary",
    )
    json_folder: str | None = option(
        None,
        "Change no page. Write the lists as JSON for a generator of sites: related.json for all "
        "pages, and pages/PATH.json for each.",
        flag="--json",
        metavar="DIR",
    )
    overwrite: bool = option(
        False, "Replace what --json or --index made before. Nothing else is replaced."
    )
    dry_run: bool = option(
        False, "Write nothing. Show what would be done, and the change of one page."
    )
    remove: bool = option(
        False, "Take the lists out of the pages again. The other bytes stay as they are."
    )
