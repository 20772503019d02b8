"""The HTML of a list of related pages, where to insert it in a page, and where an old list is.

A tokenizer finds byte offsets, and bytes are inserted or removed there, so the rest of the page
remains identical. The tokenizer follows the HTML standard where that matters: quoted attributes may
contain ``>``; comments, and the text of ``script``, ``style`` or ``textarea``, contain no tags. It
works on bytes in any encoding based on ASCII. Pages in UTF-16, UTF-7 or ISO-2022 are refused.

Runs at some 20 MB/s. https://html.spec.whatwg.org/multipage/parsing.html#tokenization
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape, unescape
from typing import NamedTuple

from cocite.errors import UsageError

CLASS = "cocite-related"
"""The class that marks a list; the HTML reader ignores links in its elements."""
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
MARK = "data-cocite-block"
"""Attribute of lists that ``cocite site`` inserted, rather than a generator's plug-in."""
PLACE = "data-cocite"
_NAME = rb"[^\t\n\f\r />][^\t\n\f\r />=]*+"
_IS = rb"[\t\n\f\r ]*+=[\t\n\f\r ]*+"
_VALUE = rb"\"[^\"]*+\"|'[^']*+'|(?![\"'])[^\t\n\f\r >]*+"
# Possessive quantifiers: an unclosed quote costs one pass, instead of backtracking.
_TAG = re.compile(
    rb"<(/?)([A-Za-z][^\t\n\f\r />]*+)"
    rb"((?:[\t\n\f\r /]++|%b(?:%b(?:%b)|(?!%b)))*+)>" % (_NAME, _IS, _VALUE, _IS)
)
_ATTRIBUTES = re.compile(rb"(%b)(?:%b(%b))?" % (_NAME, _IS, _VALUE))
_COMMENT = re.compile(rb"<!--(?:-?>|(.*?)--!?>)", re.S)
_OTHER = re.compile(rb"<[!?/][^>]*+>")
_CDATA = re.compile(rb"<!\[CDATA\[.*?\]\]>", re.S)
_TEXTS = frozenset(
    ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript"]
)
_ENCODING = re.compile(rb"charset\s*=\s*[\"']?\s*(?:iso-2022|utf-7|hz-)", re.I)
_PART = re.compile(
    r"^([a-z][\w-]*)|([#.])([\w-]+)|\[([\w:-]+)(?:=[\"']?([^\"'\]]*)[\"']?)?\]", re.I
)
Selector = Sequence[tuple[str, ...]]
"""Conditions; each is a tag, a sign (``#`` or ``.``) and a word, or an attribute and its value."""


class PageRefused(Exception):
    """Raised for a page that cannot be edited safely; the message is the reason."""


class Token(NamedTuple):
    """A tag or a comment at bytes ``start:end``.

    ``name`` is the lower-case tag name, with ``/`` before it for an end tag, or ``!`` for a
    comment; ``text`` is the attributes or the comment.
    """

    start: int
    end: int
    name: str
    text: bytes

    def attributes(self) -> dict[str, str]:
        """Return the tag's attributes; if a name occurs twice, the first value counts."""
        found: dict[str, str] = {}
        for name, value in _ATTRIBUTES.findall(self.text):
            plain = value[1:-1] if value[:1] in (b'"', b"'") else value
            found.setdefault(name.decode("latin-1").lower(), unescape(plain.decode("latin-1")))
        return found


class Place(NamedTuple):
    """Where to insert a list: the byte ``offset``, and its description ``where``.

    ``base`` is the ``href`` of the page's ``<base>``, or None.
    """

    offset: int
    where: str
    base: str | None


def tokens_of(content: bytes) -> list[Token]:
    """Return a page's tags and comments; raises :class:`PageRefused` for an unreadable page."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content[:1024]:
        raise PageRefused("is in UTF-16, or binary")
    if _ENCODING.search(content[:1024]):
        raise PageRefused("is in an encoding not based on ASCII")
    return list(_tokens(content))


def _tokens(content: bytes) -> Iterator[Token]:
    xml = content[:100].lstrip(b"\xef\xbb\xbf\r\n\t ").startswith(b"<?xml")
    at = 0
    while (at := content.find(b"<", at)) >= 0:
        following, token = content[at + 1 : at + 4], None
        if following == b"!--":
            match = _COMMENT.match(content, at)
            if match:
                token = Token(at, match.end(), "!", match[1] or b"")
        elif xml and content.startswith(b"<![CDATA[", at):
            match = _CDATA.match(content, at)
        elif following[:1].isalpha() or (following[:1] == b"/" and following[1:2].isalpha()):
            match = _TAG.match(content, at)
            if match:
                name = (match[1] + match[2]).decode("latin-1").lower()
                token = Token(at, match.end(), name, match[3])
        elif following[:1] in (b"!", b"?") or (following[:1] == b"/" and following[1:2] != b">"):
            match = _OTHER.match(content, at)
        else:
            at += 1
            continue
        if match is None:
            raise PageRefused("ends inside a tag or a comment")
        at = match.end()
        if token is None:
            continue
        yield token
        if token.name in _TEXTS and not (xml and token.text.endswith(b"/")):
            close = re.compile(rb"</" + token.name.encode() + rb"(?=[\t\n\f\r />])", re.I)
            end = close.search(content, at)
            if end is None:
                raise PageRefused(f"its <{token.name}> has no end")
            at = end.start()
        elif token.name == "plaintext":
            raise PageRefused("ends in <plaintext>")


def without_list(content: bytes) -> bytes:
    """Return the page without lists of ``cocite site``; raises :class:`PageRefused` for others."""
    if CLASS.encode() not in content:
        return content
    kept, at = [], 0
    tokens = tokens_of(content)
    for number, token in enumerate(tokens):
        if token.name != "nav" or token.start < at:
            continue
        attributes = token.attributes()
        if CLASS not in attributes.get("class", "").split():
            continue
        if MARK not in attributes:
            raise PageRefused("has a list that another program inserted, such as a plug-in")
        end = _end_of(tokens, number)
        if end is None:
            raise PageRefused("its list has no end tag; repair or restore the page")
        kept.append(content[at : token.start])
        at = end.end
    return b"".join(kept) + content[at:]


def place_in(content: bytes, selector: Selector = ()) -> Place:
    """Return where to insert a list in a page without one.

    With a selector, it is before the end tag of the first matching element. Otherwise, it is after
    the first ``<!-- cocite -->`` or start tag with ``data-cocite``; failing that, before the end
    tag of ``main``, the only ``article``, or ``body``. Raises :class:`PageRefused`.
    """
    tokens = _shown(tokens_of(content))
    base = next((t.attributes() for t in tokens if t.name == "base"), {}).get("href")

    def ends(where: str, fits: Callable[[Token], bool]) -> Iterator[Place]:
        for number, token in enumerate(tokens):
            if token.name[0] not in "/!" and fits(token) and (end := _end_of(tokens, number)):
                yield Place(end.start, where, base)

    if any(token.name == "frameset" for token in tokens):
        raise PageRefused("consists of frames")
    if selector:
        for place in ends("--selector", lambda token: _fits(token, selector)):
            return place
        raise PageRefused("has no element that matches --selector and has an end tag")
    for token in tokens:
        if token.name == "!" and token.text.strip() == b"cocite":
            return Place(token.end, "<!-- cocite -->", base)
        quick = token.name[0] not in "/!" and PLACE.encode() in token.text.lower()
        if quick and PLACE in token.attributes():
            return Place(token.end, PLACE, base)
    for place in ends("main", _is_main):
        return place
    articles = list(ends("article", lambda token: token.name == "article"))
    if len(articles) == 1:
        return articles[0]
    last = {token.name: token.start for token in tokens}
    return Place(last.get("/body", last.get("/html", len(content))), "body", base)


def _is_main(token: Token) -> bool:
    if token.name == "main" or b"main" not in token.text.lower():
        return token.name == "main"
    return token.attributes().get("role", "").strip().lower() == "main"


def _shown(tokens: list[Token]) -> list[Token]:
    """Return the tokens outside ``template`` elements, which browsers do not display."""
    found, depth = [], 0
    for token in tokens:
        depth += (token.name == "template") - (token.name == "/template" and depth > 0)
        if not depth:
            found.append(token)
    return found


def _end_of(tokens: Sequence[Token], number: int) -> Token | None:
    """Return the end tag of the element that token ``number`` begins, or None."""
    name, depth = tokens[number].name, 0
    for token in tokens[number:]:
        depth += (token.name == name) - (token.name == "/" + name)
        if not depth:
            return token
    return None


def references(text: str) -> list[str]:
    """Return the ``href`` of every ``a`` element in an HTML fragment."""
    found = []
    with suppress(PageRefused):  # the fragment ends inside a tag
        for token in _tokens(text.encode("ascii", "xmlcharrefreplace")):
            if token.name == "a" and (href := token.attributes().get("href")):
                found.append(href)
    return found


def selector_of(text: str) -> Selector:
    """Parse a selector for one element, such as ``div.content`` or ``[role=main]``.

    Raises :class:`UsageError` for other selectors.
    """
    if not text or _PART.sub("", text):
        raise UsageError(
            f"selector is {text!r}; it must be a tag, #id, .class, [attribute] or "
            "[attribute=value], or several of them for one element, such as div.content or "
            "[role=main]"
        )
    return _PART.findall(text)


def _fits(token: Token, selector: Selector) -> bool:
    has = token.attributes()
    return all(
        token.name == tag.lower()
        if tag
        else word in has.get({"#": "id", ".": "class"}[sign], "").split()
        if sign
        else name.lower() in has and value in ("", has[name.lower()])
        for tag, sign, word, name, value in selector
    )


# -- the list ------------------------------------------------------------------------------


def related_list(
    heading: str, pages: Sequence[tuple[str, str]], attributes: str = "", style: bool = False
) -> str:
    """Return HTML for a heading and (title, URL) pairs; "" if there are none.

    Characters other than ASCII become character references, which are valid in every encoding.
    """
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
