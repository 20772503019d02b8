"""One way to write a URL, so that a page has one name: what ``--normalise-urls`` does to names.

Only names that are URLs of http or https are changed, by rules that no server tells apart:

    parsed as by a browser (WHATWG, ada-url)    HTTP://Example.COM:80/a/../b -> http://example.com/b
    no fragment                                 http://a.org/b#c     -> http://a.org/b
    letters, digits and -._~ not escaped,       http://a.org/%7eb%c3 -> http://a.org/~b%C3
    the digits of other escapes large
    no parameters of :data:`TRACKING`           http://a.org/?utm_source=x&p=1 -> http://a.org/?p=1

All else stays, as a server may tell it apart: http and https, www., a slash at the end, index.html,
the case of the path, the order of other parameters, a user's name. What begins as such a URL and is
none stays as it is.

Cost: 4 µs a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from cocite.extras import need

__all__ = ["IS_WEB", "TRACKING", "normaliser"]

IS_WEB = r"^\s*[hH][tT][tT][pP][sS]?:"
"""The names that are looked at, as a pattern that DuckDB and Python read alike."""

TRACKING = (
    *("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "utm_id"),
    *("gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "twclid"),
    *("ttclid", "igshid", "mc_cid", "mc_eid"),
)
"""Parameters that say how a reader came to a page: of Google, Meta, Microsoft, Yandex, Mailchimp,
..."""

_WEB = re.compile(IS_WEB)
_TRACKED = re.compile(rf"(?:^|&)(?:{'|'.join(TRACKING)})(?:=[^&]*)?(?=&|$)")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def normaliser() -> Callable[[str], str]:
    """What turns a name into the one way to write it; raises
    :class:`~cocite.extras.MissingLibrary` without ada-url.
    """
    ada = need("ada_url", "--normalise-urls", "html")

    def normal(name: str) -> str:
        if not _WEB.match(name):
            return name
        try:
            url: str = ada.normalize_url(name)
        except ValueError:
            return name
        url = url.partition("#")[0]
        if "%" in url:
            url = _ESCAPE.sub(_escape, url)
        page, mark, query = url.partition("?")
        if query and _TRACKED.search(query):
            query = _TRACKED.sub("", query).removeprefix("&")
            mark = "?" if query else ""
        return page + mark + query

    return normal


def _escape(match: re.Match[str]) -> str:
    letter = chr(int(match[1], 16))
    return letter if letter in _PLAIN else match[0].upper()
