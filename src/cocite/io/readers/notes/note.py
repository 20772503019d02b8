"""Parse a Markdown note (CommonMark, Obsidian): its links, title, aliases and tags.

Links are Markdown links (inline, by reference, autolinks), wiki links ``[[Note#part|text]]`` and
embeds ``![[Note]]``, wiki links in front matter, and the shortcodes ``ref``, ``relref``, ``link``
and ``post_url`` of Hugo and Jekyll. Code, comments (``<!-- -->``, ``%% %%``) and other HTML are
ignored. Front matter is YAML or TOML; Logseq's properties (``title:: x``) are read from the first
block.

This module runs as a script in a separate process (``io/readers/html/parsers.py``), and imports
nothing from cocite. A note of 2 KB takes 0.5 ms (markdown-it-py, with only the rules for links).
"""

from __future__ import annotations

import gc
import json
import logging
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline

KINDS = ("wiki link", "embed", "Markdown link")
"""Kinds of links."""

WIKI, EMBED, MARKDOWN = range(3)
LONGEST_TITLE = 1000
_LONGEST_LINK = 4096
_MOST_FRONT = 1 << 16
"""Maximum length of front matter in characters."""
_DEEPEST = 100
_FEW = 1000
"""Maximum number of aliases, and of tags, per note."""
_NO_LINKS = ["emphasis", "newline", "entity", "text_join", "balance_pairs", "fragments_join"]
"""Rules of markdown-it that do not affect links."""
_SIGNS = re.compile(r"[*_`\\!\[\]<&#{\n]")
_TAG = re.compile(r"#([\w/-]+)")
_SHORTCODE = re.compile(
    r"""\{\{[<%]\s*(?:rel)?ref\s+["'`]?([^\s"'`]+)["'`]?\s*[>%]\}\}"""
    r"""|\{%-?\s*(?:link|post_url)\s+["']?([^%"']{1,1000}?)["']?\s*-?%\}"""
)
_PROPERTY = re.compile(r"(title|alias|aliases|tags)::\s+(.*)", re.I)
_COMMENT = re.compile(
    r"(^[\s>]*(?:[-*+]\s+|\d+[.)]\s+)*(`{3,}|~{3,})[^\n]*\n.*?(?:^[\s>]*\2[`~]*[ \t]*$|\Z)"
    r"|(?<!`)(`+)(?!`)[^\n]*?(?<!`)\3(?!`))|%%.*?%%",
    re.M | re.S,
)
"""Matches a code span (group 1, kept) or a comment (removed)."""
_LINKED = re.compile(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
_GROWS = re.compile(r"\*|.{201}")
"""Possible YAML aliases or deep nesting; text without a match is safe to load."""
_TOML = re.compile(r"\+\+\+[ \t]*\n(.*?)(?:^|\n)\+\+\+[ \t]*(?:\n|\Z)", re.S)


def decoded(content: bytes) -> str:
    """Decode a note: UTF-16 with a byte order mark, UTF-8, or else windows-1252."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def links_of(content: bytes) -> dict[str, Any]:
    """Return a note's ``title``, ``aliases``, ``tags``, ``links`` and ``fault``.

    ``links`` is a list of [index of the kind in :data:`KINDS`, target as written]. ``fault``
    describes invalid front matter, or is "".
    """
    text = decoded(content).replace("\r\n", "\n")
    front, fault, toml = dict[str, Any](), "", _TOML.match(text)
    if toml:
        text = text[toml.end() :]
        front, fault = _loaded(toml[1], tomllib.loads, "TOML")
    tokens = _parser().parse(text)
    if tokens and tokens[0].type == "front_matter":
        front, fault = _loaded(tokens[0].content, load_yaml, "YAML")
    title, aliases = _text(front.get("title")), _texts(front, ("aliases", "alias"), ",")
    tags = _texts(front, ("tags", "tag"), r"[,\s]")
    links = [(WIKI, link) for link in _linked(front)]
    heading, inline = "", [place for place, token in enumerate(tokens) if token.type == "inline"]
    for place in inline:
        token = tokens[place]
        if not heading and tokens[place - 1].type == "heading_open":
            heading = _plain(token.content)
        for child in token.children or ():
            if child.type == "wiki_link":
                links.append((EMBED if child.markup else WIKI, child.content))
            elif child.type == "tag":
                tags.append(child.content)
            elif child.type == "link_open":
                links.append((MARKDOWN, str(child.attrs["href"])))
            elif child.type == "image":
                links.append((EMBED, str(child.attrs["src"])))
    for line in tokens[inline[0]].content.split("\n") if inline else ():
        if found := _PROPERTY.match(line.strip()):
            values = _split(found[2], ",")
            title = title or (found[2] if found[1].lower() == "title" else "")
            (tags if found[1].lower() == "tags" else aliases).extend(values)
    tags = [" ".join(tag.removeprefix("#").lower().split()).strip("/") for tag in tags]
    return {
        "title": " ".join((title or heading).split())[:LONGEST_TITLE],
        "aliases": aliases[:_FEW],
        "tags": list(dict.fromkeys(tag for tag in tags if tag and not tag.isdecimal()))[:_FEW],
        "links": links,
        "fault": fault,
    }


# -- front matter ------------------------------------------------------------------------


def _loaded(text: str, load: Callable[[str], Any], kind: str) -> tuple[dict[str, Any], str]:
    """Return (front matter with lower-case keys, its fault or "")."""
    if len(text) > _MOST_FRONT:
        return {}, f"front matter of more than {_MOST_FRONT:,} characters"
    try:
        found = load(text)
    except (ValueError, RecursionError):
        return {}, f"front matter that is not {kind}"
    if not found:
        return {}, ""
    if not isinstance(found, dict):
        return {}, "front matter without named values"
    return {str(name).lower(): value for name, value in found.items()}, ""


def load_yaml(text: str) -> Any:
    """Parse YAML, with all scalars as text.

    Raises ValueError for invalid YAML, for aliases (``*name``), which can expand without limit, and
    for nesting deep enough to overflow the stack.
    """
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # makes only strings, lists and dicts
    try:
        depth = 0
        flat = not _GROWS.search(text) and text.count("[") + text.count("{") <= _DEEPEST
        for event in () if flat else yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST or isinstance(event, yaml.AliasEvent):
                raise ValueError("it has aliases, or is nested too deeply")
        return yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _text(value: object) -> str:
    text = "" if value is None or isinstance(value, list | dict) else str(value).strip()
    return "" if text in ("~", "null") else text


def _texts(front: dict[str, Any], names: tuple[str, ...], between: str) -> list[str]:
    """Return the texts under ``names``, in lists or separated by ``between``."""
    found: list[str] = []
    for name in names:
        value = front.get(name)
        found += map(_text, value) if isinstance(value, list) else _split(_text(value), between)
    return [text for text in found if text]


def _split(text: str, between: str) -> list[str]:
    each = (part.strip().removeprefix("[[").removesuffix("]]") for part in re.split(between, text))
    return [part for part in each if part]


def _linked(front: dict[str, Any]) -> Iterator[str]:
    waiting = list(front.values())
    for value in waiting:  # grows in the loop
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and (found := _LINKED.fullmatch(value)):
            yield found[1].strip()


# -- text --------------------------------------------------------------------------------


@cache
def _parser(plain: bool = False) -> MarkdownIt:
    """Return the parser for notes or, if ``plain``, for headings."""
    from markdown_it import MarkdownIt
    from mdit_py_plugins.front_matter import front_matter_plugin

    parser = MarkdownIt("commonmark")
    # Keep URLs as written; nothing here is displayed or fetched.
    parser.normalizeLink = str  # type: ignore[assignment, method-assign]
    parser.validateLink = bool  # type: ignore[assignment, method-assign]
    parser.inline.ruler.before("link", "wiki_link", _wiki_link)
    parser.inline.ruler.before("link", "tag", _tag)
    parser.inline.ruler.before("link", "shortcode", _shortcode)
    if not plain:
        parser.use(front_matter_plugin)
        parser.core.ruler.after("normalize", "comments", _without_comments)
        parser.disable(_NO_LINKS)
    return parser


def _plain(heading: str) -> str:
    if not _SIGNS.search(heading):
        return heading
    (token,) = _parser(plain=True).parseInline(heading)
    return "".join(child.info or child.content for child in token.children or ())


def _wiki_link(state: StateInline, silent: bool) -> bool:
    """Parse ``[[Note#part|text]]`` or ``![[Note]]``."""
    src, start = state.src, state.pos
    embed = src.startswith("![[", start)
    if not embed and not src.startswith("[[", start):
        return False
    begin = start + 2 + embed
    end = src.find("]]", begin, min(begin + _LONGEST_LINK, state.posMax))
    inside = src[begin:end].replace("\\|", "|") if end > begin else ""  # escaped in tables
    target, _, text = inside.partition("|")
    if not target.strip() or "[" in inside or "\n" in inside:
        return False
    if not silent:
        token = state.push("wiki_link", "", 0)
        token.content, token.info, token.markup = target.strip(), text or target, "!" * embed
    state.pos = end + 2
    return True


def _tag(state: StateInline, silent: bool) -> bool:
    """Parse ``#tag`` after a blank."""
    src, start = state.src, state.pos
    found = _TAG.match(src, start, state.posMax)
    if not found or found[1].isdecimal() or (start and not src[start - 1].isspace()):
        return False
    if not silent:
        token = state.push("tag", "", 0)
        token.content, token.info = found[1], found[0]
    state.pos = found.end()
    return True


def _shortcode(state: StateInline, silent: bool) -> bool:
    """Parse shortcodes that Hugo and Jekyll replace with a page's URL."""
    found = _SHORTCODE.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        token = state.push("link_open", "a", 0)
        token.attrs = {"href": (found[1] or found[2]).strip()}
    state.pos = found.end()
    return True


def _without_comments(state: StateCore) -> None:
    """Remove Obsidian's comments ``%% ... %%``, except in code."""
    if "%%" in state.src:
        state.src = _COMMENT.sub(lambda found: found[1] or "", state.src)


def serve() -> None:
    """Process requests like ``io/readers/html/page.py``."""
    gc.set_threshold(100_000)  # parsing leaves few reference cycles
    logging.disable()  # markdown-it logs each of its steps
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(size := requests.read(8)) == 8:
        content = requests.read(int.from_bytes(size, "little")).partition(b"\n")[2]
        answer = json.dumps(links_of(content)).encode()
        answers.write(len(answer).to_bytes(8, "little") + answer)
        answers.flush()


if __name__ == "__main__":
    serve()
