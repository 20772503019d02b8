"""The list of related pages under a page, in HTML.

No style of its own: a heading and a list look as those of the site's theme do, of which some (that
of Read the Docs) style lists in sections alone. A ``class`` is there for who wants another one.
Titles and addresses are text of the site, and escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["related_list"]


def related_list(heading: str, pages: Sequence[tuple[str, str]]) -> str:
    """HTML of a heading and (title, address) pairs; nothing if there are none."""
    if not pages:
        return ""
    items = "".join(
        f'<li><a class="reference internal" href="{escape(address)}">{escape(title)}</a></li>\n'
        for title, address in pages
    )
    return (
        f'\n<nav class="cocite-related" aria-label="{escape(heading)}">\n<section>\n'
        f"<h2>{escape(heading)}</h2>\n<ul>\n{items}</ul>\n</section>\n</nav>\n"
    )
