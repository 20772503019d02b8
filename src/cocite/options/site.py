"""Options of ``cocite site``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cocite.options import CLI, Options, option


@dataclass(frozen=True)
class SiteOptions(Options, fronts=CLI):
    """Options of ``cocite site``."""

    k: int = option(5, "The largest number of related pages in a list.", low=1, flag="-k")
    heading: str = option("Related pages", "The heading of the list.", metavar="TEXT")
    selector: str | None = option(
        None,
        "Put the list at the end of the first element that matches: a tag, #id, .class, "
        "[attribute=value], or a combination. Pages without a match do not change.",
        metavar="CSS",
        unset="at <!-- cocite --> or data-cocite; otherwise at the end of main, article or body",
    )
    style: bool = option(
        True,
        "Put a few lines of CSS into the list.",
        flag="--no-style",
        negated="Put no CSS into the list. By default, the list has a few rules, which the site's "
        "rules override.",
    )
    directory_urls: bool = option(
        False,
        "Link to guide/ instead of guide/index.html.",
        unset="link to the file, which also works without a server",
    )
    exclude: Any = option(
        (),
        "Exclude pages whose paths match, such as 'news/*'. They have no list and appear in none. "
        "Repeatable.",
        kind=str,
        many=True,
        metavar="PATTERN",
    )
    links: str = option(
        "main",
        "Which links count. main ignores navigation that every page repeats.",
        choices=("all", "main"),
    )
    site: str | None = option(
        None,
        "The URL at which the folder is published. Links with this URL lead into the folder.",
        metavar="URL",
        unset="the URL that its canonical links agree on",
    )
    measure: str | None = option(
        None,
        "The measure of similarity (see: cocite measures).",
        metavar="NAME",
        unset="fusion",
    )
    min_score: float = option(0.15, "Omit related pages with a lower score.", low=0)
    index: str | None = option(
        None,
        "Keep the graph and the index in this folder, for further queries.",
        metavar="DIR",
        unset="they are temporary",
    )
    json_folder: str | None = option(
        None,
        "Change no page. Write the lists as JSON for a site generator: related.json for all "
        "pages, and pages/PATH.json for each page.",
        flag="--json",
        metavar="DIR",
    )
    overwrite: bool = option(
        False, "Replace the output of an earlier --json or --index, and nothing else."
    )
    dry_run: bool = option(
        False, "Write nothing. Report what would change, and show the change to one page."
    )
    remove: bool = option(False, "Remove the lists from the pages. All other bytes are unchanged.")
