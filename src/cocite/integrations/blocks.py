"""The list of related pages as HTML, for all tools that insert one: its element, titles and URLs.

    <nav class="related cocite-related" aria-label="Related pages">...</nav>

HTML readers ignore links in elements of the class ``cocite-related``, so a list never affects the
next one. The text is ASCII: other characters are character references, which mean the same in every
encoding of a page, in HTML and in XHTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

CLASS = "cocite-related"
"""The class by which a list is recognized."""
HEADING = "Related pages"
_STYLE = """<style>
:where(.cocite-related) { clear: both; margin: 2em 0 1em; padding-top: .5em }
:where(.cocite-related) { border-top: 1px solid; border-top-color: rgba(128, 128, 128, .4) }
:where(.cocite-related h2) { margin: .5em 0; font-size: 1.1em }
:where(.cocite-related ul) { margin: 0; padding-left: 1.2em }
</style>
"""
"""A few rules without specificity: any rule of the site overrides them."""
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
    """Return the URL ``there`` relative to the page ``here``. Both are relative to the root of the
    site and percent-encoded, such as ``guide/a%20page.html``; ``guide/`` and "" are folders.
    """
    above, path = here.split("/")[:-1], there.split("/")
    while above and len(path) > 1 and above[0] == path[0]:
        del above[0], path[0]
    found = "../" * len(above) + "/".join(path)
    # A colon in the first segment would make it a scheme; an empty URL would be this page.
    return f"./{found}" if not found or ":" in found.partition("/")[0] else found


def short_titles(titles: Mapping[str, str]) -> dict[str, str]:
    """Return titles without the site's name at their ends, if more than half of them have it."""
    tails = Counter(tail for title in titles.values() if (tail := _tail(title)))
    tail, count = tails.most_common(1)[0] if tails else ("", 0)
    if count < 3 or 2 * count <= len(titles):
        return dict(titles)
    return {page: title.removesuffix(tail) for page, title in titles.items()}


def _tail(title: str) -> str:
    """Return the last part of a title, with what precedes it; "" if it has one part."""
    at = max(title.rfind(sign) for sign in _BETWEEN)
    return title[at:] if at > 0 else ""
