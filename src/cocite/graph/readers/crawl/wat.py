"""WAT of Common Crawl: what was on a page, as JSON, one object a page (a record of metadata).

    {"Envelope": {"WARC-Header-Metadata": {"WARC-Type": "response", "WARC-Target-URI": URL, ...},
                  "Payload-Metadata": {"HTTP-Response-Metadata": {
                      "Response-Message": {"Status": "200"}, "Headers": {"Location": URL, ...},
                      "HTML-Metadata": {
                          "Head": {"Title": "...", "Base": URL, "Link": [...], "Metas": [...]},
                          "Links": [{"path": "A@/href", "url": "/next"}, ...]}}}}}

Links are told apart by their paths, as elements and attributes; of the head those that say what the
page is the same as. Where elements stand is not told, so none is known to be navigation.

Cost: that of the JSON, some 0.2 ms a page, and a microsecond a link.
https://commoncrawl.org/get-started
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from cocite.graph.readers.html.page import TAGS, joined, refresh_of

__all__ = ["Described", "described"]

_PATHS = {
    "A@/href": TAGS.index("a"),
    "AREA@/href": TAGS.index("area"),
    "FRAME@/src": TAGS.index("frame"),
    "IFRAME@/src": TAGS.index("frame"),
}
_TITLE = 1000


class Described(NamedTuple):
    """A response that WAT tells of: its URL and status, the header's names in small letters, and
    what is on the page, as ``html/page.links_of`` has it; None if that is not told.
    """

    url: str
    at: str
    status: int
    header: dict[str, str]
    found: dict[str, Any] | None


def described(block: bytes) -> Described | None:
    """What a record of WAT tells; None if it tells of no response.

    Raises ValueError for what is no WAT.
    """
    try:
        envelope = _part(json.loads(block), "Envelope")
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not envelope:
        raise ValueError("no Envelope")
    warc = _part(envelope, "WARC-Header-Metadata")
    response = _part(envelope, "Payload-Metadata", "HTTP-Response-Metadata")
    if warc.get("WARC-Type") != "response" or not response:
        return None
    url = _text(warc.get("WARC-Target-URI")).strip().strip("<>")
    status = _text(_part(response, "Response-Message").get("Status"))
    header = {k.lower(): _text(v) for k, v in _part(response, "Headers").items()}
    html = response.get("HTML-Metadata")
    found = _found(html, url) if isinstance(html, dict) else None
    at = _text(warc.get("WARC-Date"))
    return Described(url, at, int(status) if status.isdecimal() else 0, header, found)


def _found(html: dict[str, Any], url: str) -> dict[str, Any]:
    head = _part(html, "Head")
    base = url
    if _text(head.get("Base")):
        base = joined(_text(head.get("Base")), url) or url
        base = url if base.startswith(("data:", "javascript:")) else base
    links = []
    for link in _list(html.get("Links")):
        tag = _PATHS.get(_text(link.get("path")))
        if tag is not None:
            written = _text(link.get("url"))
            links.append((tag, True, joined(written, base), written))
    title = " ".join(_text(head.get("Title")).split())[:_TITLE]
    return {"title": title, "same": _same(head, url, base), "links": links}


def _same(head: dict[str, Any], url: str, base: str) -> dict[str, str]:
    same: dict[str, str] = {}
    for link in _list(head.get("Link")):
        if "canonical" in _text(link.get("rel")).lower().split():
            where = joined(_text(link.get("url")), base)
            if where is not None:
                same["canonical"] = where
                break
    for meta in _list(head.get("Metas")):
        if _text(meta.get("http-equiv")).lower() == "refresh":
            where = refresh_of(_text(meta.get("content")), base)
            if where is not None and where != url:
                same["refresh"] = where
                break
    return same


def _part(value: Any, *names: str) -> dict[str, Any]:
    """An object in objects; an empty one if it is not there."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    """A text, whatever stands there; letters that are none become a sign of that."""
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) else ""
    return text.encode("utf-8", "replace").decode("utf-8")
