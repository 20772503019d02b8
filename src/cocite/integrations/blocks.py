"""HTML of the list of related pages: its element, titles and URLs.

    <nav class="related cocite-related" aria-label="Related pages">...</nav>

The HTML reader ignores links in elements of the class ``cocite-related``, so an inserted list does
not affect the next run. Non-ASCII characters are written as character references, which are valid
in HTML and XHTML whatever the page's encoding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

CLASS = "cocite-related"
"""The class that marks a list."""
HEADING = "Related pages"
_STYLE = """<style>
:where(.cocite-related) { clear: both; margin: 2em 0 1em; padding-top: .5em }
:where(.cocite-related) { border-top: 1px solid; border-top-color: rgba(128, 128, 128, .4) }
:where(.cocite-related h2) { margin: .5em 0; font-size: 1.1em }
:where(.cocite-related ul) { margin: 0; padding-left: 1.2em }
</style>
"""
"""``:where`` has no specificity, so any rule of the site overrides these."""
_BETWEEN = (" — ", " – ", " | ", " - ", " · ", " • ", " :: ", " « ", " » ")


def related_list(
    heading: str, pages: Sequence[tuple[str, str]], attributes: str = "", style: bool = False
) -> str:
    """Return HTML for a heading and (title, URL) pairs; "" if there are none."""
    if not pages:
        return ""
    items = "".join(
        f'<li><a class="reference internal" href="{_text(url)}">{_text(title)}</a></li>\n'
        for title, url in pages
    )
    return (
        f'<nav class="related {CLASS}"{attributes} aria-label="{_text(heading)}">\n'
        f"{_STYLE if style else ''}<section>\n<h2>{_text(heading)}</h2>\n<ul>\n{items}</ul>\n"
        "</section>\n</nav>"
    )


def _text(text: str) -> str:
    return escape(text).encode("ascii", "xmlcharrefreplace").decode("ascii")


def relative_url(here: str, there: str) -> str:
    """Return the URL ``there``, made relative to the page ``here``.

    Both are percent-encoded and relative to the site's root, such as ``guide/a%20page.html``;
    ``guide/`` and "" are folders.
    """
    above, path = here.split("/")[:-1], there.split("/")
    while above and len(path) > 1 and above[0] == path[0]:
        del above[0], path[0]
    found = "../" * len(above) + "/".join(path)
    # A colon in the first segment would make it a scheme; an empty URL would be this page.
    return f"./{found}" if not found or ":" in found.partition("/")[0] else found


def short_titles(titles: Mapping[str, str]) -> dict[str, str]:
    """Return titles without the site's name, if more than half of them end in it."""
    tails = Counter(tail for title in titles.values() if (tail := _tail(title)))
    tail, count = tails.most_common(1)[0] if tails else ("", 0)
    if count < 3 or 2 * count <= len(titles):
        return dict(titles)
    return {page: title.removesuffix(tail) for page, title in titles.items()}


def _tail(title: str) -> str:
    """Return a title's last part, with its separator; "" if there is no separator."""
    at = max(title.rfind(sign) for sign in _BETWEEN)
    return title[at:] if at > 0 else ""
