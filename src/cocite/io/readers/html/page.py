"""Parse an HTML page like a browser (lexbor, ada-url): its links, title and aliases.

URLs are resolved against the first ``<base href>``; fragments are removed. A byte order mark, the
server (``charset``) or ``<meta charset>`` in the first 1,024 bytes declares the encoding, in this
order of precedence. Otherwise, the page is UTF-8 if valid, else windows-1252. A link is navigation
if it is in ``nav``, ``aside``, the page's header or footer, or an element with a corresponding
role. On a page with ``main``, links outside ``main`` are navigation too.

Hostile input can crash parsers written in C, so this module runs as a script in a separate process
(``io/readers/html/parsers.py``), and imports nothing from cocite. A request on standard input
consists of its length in 8 bytes, a line of JSON, and the page. A reply consists of its length in 8
bytes, and JSON.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Iterable
from typing import Any

TAGS = ("a", "area", "frame")
"""Kinds of links; an ``iframe`` counts as a frame."""

_ATTRIBUTE = {"a": "href", "area": "href", "frame": "src", "iframe": "src"}
_NAVIGATION = (
    "nav, aside, header, footer, [role=navigation i], [role=banner i], [role=contentinfo i], "
    "[role=complementary i], [role=search i]"
)
_MAIN = "main, [role=main i]"
_RELATED = ".cocite-related"
"""Lists of related pages, generated from links (``integrations/html_places.py``)."""
_SENT = "meta[http-equiv=refresh i]"
LONGEST_TITLE = 1000
_LONGEST_URL = 1 << 13
"""Maximum length of a URL in characters; limited, because each link can repeat a long <base>."""
_MOST_URLS = 1 << 26
"""Maximum total length of a page's URLs in characters; later URLs count as malformed."""
_PARTS = ("main", "article", "section")
"""Elements with their own headers and footers."""
_LINKS = ", ".join(_ATTRIBUTE)
_CHARSET = re.compile(rb"<meta\b[^>]*?\bcharset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]+)", re.I)
_COMMENT = re.compile(rb"<!--.*?-->", re.S)
_REFRESH = re.compile(r"\s*[0-9.]*\s*[;,\s]\s*(?:url\s*=\s*)?(?:\"([^\"]*)|'([^']*)|(\S.*))", re.I)
_LATIN1 = (
    *("iso-8859-1", "iso8859-1", "latin1", "latin-1", "l1", "ascii", "us-ascii", "cp1252"),
    *("x-cp1252", "x-user-defined"),
)
_LABELS = dict.fromkeys(_LATIN1, "cp1252") | {
    # Labels that the WHATWG defines differently from Python.
    "iso-8859-9": "cp1254",
    "latin5": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "big5": "big5hkscs",
    "x-x-big5": "big5hkscs",
    "x-mac-roman": "mac_roman",
    "macintosh": "mac_roman",
    "x-euc-jp": "euc_jp",
    # A page whose label could be read as ASCII is not in UTF-16.
    "utf-16": "utf-8",
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decoded(content: bytes, charset: str = "") -> str:
    """Return a page's text; ``charset`` is the encoding that the server declared."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content[len(mark) :].decode(encoding, "replace")
    declared = _CHARSET.search(_COMMENT.sub(b"", content[:1024]))
    for label in (charset, declared[1].decode("ascii") if declared else ""):
        encoding = _encoding(label)
        if encoding:
            return content.decode(encoding, "replace")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def _encoding(label: str) -> str:
    label = label.strip().lower()
    label = _LABELS.get(label, label)
    try:
        found = codecs.lookup(label)
    except (LookupError, ValueError):
        return ""
    # Codecs such as base64 are not encodings of text.
    return str(found.name) if getattr(found, "_is_text_encoding", True) else ""


def joined(url: str, base: str) -> str | None:
    """Return the absolute URL without fragment; None if it is malformed or too long."""
    import ada_url

    if len(url) + len(base) > 2 * _LONGEST_URL:
        return None
    try:
        found: str = ada_url.join_url(base, url)
    except ValueError:
        return None
    found = found.split("#", 1)[0]
    return found if len(found) <= _LONGEST_URL else None


def links_of(content: bytes, url: str, charset: str = "") -> dict[str, Any]:
    """Return a page's ``title``, ``same`` and ``links``.

    ``same`` maps ``canonical`` and ``refresh`` to the URLs that the page is a copy of. ``links`` is
    a list of [index of the tag in :data:`TAGS`, whether the link is content rather than navigation,
    the URL or None if malformed, the URL as written].
    """
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(decoded(content, charset))
    base = base_of((node.attributes.get("href") or "" for node in tree.css("base[href]")[:1]), url)
    titles = (node for node in tree.css("title") if node.parent and node.parent.tag != "svg")
    title = next((" ".join(node.text().split())[:LONGEST_TITLE] for node in titles), "")
    links = (node.attributes for node in tree.css("link[href]"))
    rel = ((each.get("rel") or "", each.get("href") or "") for each in links)
    sent = (node.attributes.get("content") or "" for node in tree.css(_SENT))
    return {"title": title, "same": same_as(rel, sent, url, base), "links": _links(tree, base)}


def base_of(written: Iterable[str], url: str) -> str:
    """Return the base URL of the page at ``url``, given its ``base`` elements."""
    first = next(iter(written), None)
    found = None if first is None else joined(first, url)
    return url if found is None or found.startswith(("data:", "javascript:")) else found


def same_as(
    links: Iterable[tuple[str, str]], refreshes: Iterable[str], url: str, base: str
) -> dict[str, str]:
    """Return the URLs that the page at ``url`` declares itself a copy of.

    ``canonical`` is the first canonical link in ``links`` (rel, href), ``refresh`` the first target
    of ``refreshes`` other than ``url``.
    """
    named = (joined(href, base) for rel, href in links if "canonical" in rel.lower().split())
    sent = (_refresh_of(content, base) for content in refreshes)
    found = {
        "canonical": next((each for each in named if each is not None), None),
        "refresh": next((each for each in sent if each is not None and each != url), None),
    }
    return {kind: where for kind, where in found.items() if where is not None}


def _links(tree: Any, base: str) -> list[tuple[int, bool, str | None, str]]:
    beside = _in(node for node in tree.css(_NAVIGATION) if not _of_a_part(node))
    listed = _in(tree.css(_RELATED))
    mains = tree.css(_MAIN)
    inside = _in(mains) if mains else None
    links: list[tuple[int, bool, str | None, str]] = []
    room = _MOST_URLS
    for node in tree.css(_LINKS):
        if node.mem_id in listed:
            continue
        attributes = node.attributes
        written = attributes.get(_ATTRIBUTE[node.tag])
        if written is None and node.tag == "a":
            written = attributes.get("xlink:href")  # in SVG
        if written is None or (node.tag.endswith("frame") and not written.strip()):
            continue
        main = node.mem_id not in beside and (inside is None or node.mem_id in inside)
        tag = TAGS.index(node.tag.removeprefix("i"))
        found = joined(written, base) if room > 0 else None
        room -= len(found or "")
        links.append((tag, main, found, written))
    return links


def _in(elements: Iterable[Any]) -> set[int]:
    """Return the ids of the links in these elements."""
    # Not one selector: lexbor matches ":is(...) :is(...)" for children, not for grandchildren.
    return {node.mem_id for element in elements for node in element.css(_LINKS)}


def _of_a_part(node: Any) -> bool:
    """Return whether an element is a section's header or footer rather than the page's."""
    if node.tag not in ("header", "footer"):
        return False
    above = node.parent
    while above is not None and above.tag not in _PARTS:
        above = above.parent
    return above is not None


def _refresh_of(content: str, base: str) -> str | None:
    """Return the target of ``<meta http-equiv=refresh>``, or None."""
    match = _REFRESH.match(content)
    return joined(next(filter(None, match.groups()), ""), base) if match else None


def serve() -> None:
    """Process requests until the end of standard input."""
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(size := requests.read(8)) == 8:
        line, _, content = requests.read(int.from_bytes(size, "little")).partition(b"\n")
        answer = json.dumps(links_of(content, **json.loads(line))).encode()
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


if __name__ == "__main__":
    serve()
