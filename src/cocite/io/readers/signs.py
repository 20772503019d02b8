"""Signs of formats: tests of an input's first 64 KiB (:class:`Beginning`).

Binary formats are recognized by their magic numbers, text formats by the structure of their first
lines. An edge list may contain any text, so a sign must not occur in rows of two columns. Signs are
closed tags, JSON values that end with their line, and header lines. ``io/readers/formats.py``
determines the order of the tests.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from cocite.io.readers.dialect import ends_of
from cocite.io.readers.graphs.works import shape_of
from cocite.io.readers.sources import CONTROL, Beginning, bad_lines, is_utf8

Sign = Callable[[Beginning], bool]

_XML = re.compile(r"<(?:\?xml\b|!--|!doctype\b|[a-z][\w.:-]*(?:\s[^<>]*)?/?>)", re.I)
_HTML = re.compile(
    r"(?:<\?xml[^>]*\?>|<!--.*?-->|\s)*<(?:!doctype\s+html|html|head|body|title|meta|link|script"
    r"|table|div|span|ul|ol|p|a|h[1-6]|nav|main|article|section)\b[^<>]*>",
    re.I | re.S,
)
_CLOSED = re.compile(r"</[a-z]|/>|\?>|<!doctype", re.I)


# -- bytes -----------------------------------------------------------------------------


def begins(*magic: bytes, at: int = 0, words: bool = False) -> Sign:
    """Return a test for magic numbers; if they are ``words``, only binary content matches."""

    def found(beginning: Beginning) -> bool:
        content = beginning.content
        return content.startswith(magic, at) and not (words and not CONTROL.search(content))

    return found


def hive(beginning: Beginning) -> bool:
    """Test for columns separated by the character U+0001."""
    return bool(beginning.lines) and all(
        "\x01" in line and not CONTROL.search(line.replace("\x01", "").encode())
        for line in beginning.lines
    )


def spreadsheet(beginning: Beginning) -> bool:
    """Test for an Excel or OpenDocument workbook."""
    content = beginning.content
    names = (b"xl/", b"[Content_Types].xml", b"mimetypeapplication/vnd.oasis.opendoc")
    packed = content.startswith(b"PK\x03\x04") and any(name in content for name in names)
    return packed or content.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


_PROPERTIES = re.compile(rb"(?m)^graphclass\s*[=:]\s*(?:class )?it\.unimi\.dsi\.")


def webgraph(beginning: Beginning) -> bool:
    """Test for a WebGraph properties file, or a graph file with one next to it."""
    path = beginning.path
    graph = path is not None and path.suffix == ".graph" and _has_properties(path)
    content = beginning.content
    return graph or (b"graphclass" in content and bool(_PROPERTIES.search(content)))


def _has_properties(path: Path) -> bool:
    try:
        with path.with_suffix(".properties").open("rb") as file:
            return bool(_PROPERTIES.search(file.read(1 << 16)))
    except OSError:
        return False


zip_archive = begins(b"PK\x03\x04", b"PK\x05\x06")
"""Test for a zip archive, possibly empty."""


def tar(beginning: Beginning) -> bool:
    """Test for a tar archive by its first header's checksum, which old formats have too."""
    head = beginning.content[:512]
    digits = head[148:156].strip(b"\0 ")
    if len(head) < 512 or not re.fullmatch(b"[0-7]{1,7}", digits):
        return False
    return sum(head) - sum(head[148:156]) + 8 * 32 == int(digits, 8)


def binary(beginning: Beginning) -> bool:
    """Test whether most lines contain control characters."""
    return bad_lines(beginning.content, beginning.whole, CONTROL)


def other_text(beginning: Beginning) -> bool:
    """Test for text whose non-ASCII lines are not UTF-8."""
    if is_utf8(beginning.content) or CONTROL.search(beginning.content):
        return False
    lines = beginning.content.split(b"\n")
    if not beginning.whole and len(lines) > 1:
        lines.pop()
    beyond = [line for line in lines if not line.isascii()]
    wrong = sum(not is_utf8(line) for line in beyond)
    return bad_lines(beginning.content, beginning.whole, None) or (
        wrong > 1 and wrong == len(beyond)
    )


def warc(beginning: Beginning) -> bool:
    """Test for a web archive's first record or, if FastWARC must decompress it, the file name."""
    content, path = beginning.content, beginning.path
    if path is not None and content.startswith((b"\x04\x22\x4d\x18", b"\x5d\x2a\x4d\x18")):
        return bool(re.search(r"\.(?:warc|wat)\.(?:lz4|zst)$", path.name, re.I))
    return bool(re.match(rb"\s*WARC/[01]\.\d+\r?\n", content))


_WIKI_COLUMNS = (b"pl_from", b"page_namespace", b"lt_namespace", b"rd_interwiki")
_WIKI = re.compile(rb"create\s+table\s[^;]*[`\"](?:" + b"|".join(_WIKI_COLUMNS) + rb")[`\"]", re.I)


def wiki(beginning: Beginning) -> bool:
    """Test for a dump of one of MediaWiki's tables of links and pages."""
    content = beginning.content
    return any(name in content for name in _WIKI_COLUMNS) and bool(_WIKI.search(content))


_FEW, _LOOKED = 100, 8192
"""Number of lines, and of characters, to examine."""

_LIST_OF_ROWS = re.compile(r'\[\s*(?:\{\s*"|\[\s*(?:"[^"]*"|-?\d+)\s*,)')


# -- text ------------------------------------------------------------------------------


def has_line(pattern: str, first: int = 100) -> Sign:
    """Return a test for a full match, ignoring case, among the ``first`` lines."""
    whole = re.compile(pattern, re.I)
    return lambda beginning: any(map(whole.fullmatch, beginning.rows[:first]))


def begun(pattern: str, *, table: bool = False) -> Sign:
    """Return a test for texts that begin with ``pattern``, ignoring case.

    Blank lines and leading comments are skipped. If all rows have a tab, the text is a table, which
    matches only with ``table``.
    """
    wanted = re.compile(pattern, re.I)

    def found(beginning: Beginning) -> bool:
        texts = ("\n".join(each[:_FEW]) + "\n" for each in (beginning.lines, beginning.rows))
        return any(map(wanted.match, texts)) and (table or not _is_table(beginning))

    return found


def each(pattern: str) -> Sign:
    """Return a test for texts whose first rows all match ``pattern`` in full."""
    wanted = re.compile(pattern)

    def found(beginning: Beginning) -> bool:
        rows = beginning.rows[:_FEW]
        return bool(rows) and all(map(wanted.fullmatch, rows)) and not _is_table(beginning)

    return found


def _is_table(beginning: Beginning) -> bool:
    rows = beginning.rows[:_FEW]
    return bool(rows) and all("\t" in row for row in rows)


def html(beginning: Beginning) -> bool:
    """Test for an HTML start tag, followed by an end tag."""
    return bool(_HTML.match(beginning.text) and _CLOSED.search(beginning.text))


def tagged(*roots: str) -> Sign:
    """Return a test for XML; with ``roots``, one of these elements must be near the beginning."""
    wanted = re.compile(rf"<(?:\w+:)?(?:{'|'.join(roots)})\b", re.I) if roots else None

    def found(beginning: Beginning) -> bool:
        text = beginning.text
        if not _XML.match(text.lstrip()) or not _CLOSED.search(text):
            return False
        return wanted is None or bool(wanted.search(text[:8192]))

    return found


def rooted(*roots: str) -> Sign:
    """Return a test for XML with one of these root elements."""
    begin = r"\s*(?:<\?[^>]*\?>\s*|<!--.*?-->\s*|<!doctype\b[^>]*>\s*)*"
    wanted = re.compile(rf"{begin}<(?:[\w.]+:)?(?:{'|'.join(roots)})\b", re.I | re.S)
    return lambda beginning: bool(wanted.match(beginning.text[:_LOOKED]))


def _json(beginning: Beginning) -> tuple[bool, bool]:
    """Return (whether the text begins with a JSON value, whether another one follows)."""
    text = beginning.text.lstrip()
    if not text.startswith(("{", "[")):
        return False, False
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return True, False
    except ValueError:
        # Invalid, or cut here; still JSON if no other format begins like this.
        return bool(re.match(r'\{\s*"[^"]*"\s*:|\[\s*[\[{]?\s*("[^"]*"|-?\d+)\s*[,:]', text)), False
    rest = re.match(r"[ \t,]*(?:\r\n|\n|\r|$)\s*(.?)", text[end:])
    return rest is not None, rest is not None and rest[1] in tuple("{[")


def json_value(beginning: Beginning) -> bool:
    """Test for JSON."""
    return _json(beginning)[0]


def node_link(beginning: Beginning) -> bool:
    """Test for an object with nodes and links; one of the two suffices if the rest is cut off."""
    if not beginning.text.lstrip().startswith("{"):
        return False
    keys = ("nodes", "links|edges")
    found = [bool(re.search(rf'"(?:{key})"\s*:\s*\[', beginning.text)) for key in keys]
    return _json(beginning)[0] and (all(found) or (any(found) and not beginning.whole))


_WORKS = re.compile(
    r'\{\s*"(?:items"\s*:\s*\[\s*\{|results"\s*:\s*\[\s*\{|meta"\s*:\s*\{.*"results"\s*:\s*\['
    r'|status"\s*:\s*"ok"\s*,\s*"message-type"\s*:\s*"work)',
    re.S,
)
_NAMED = re.compile(r'\{\s*"(?:id|_id|DOI|paperId|corpusid)"\s*:')


def wrapped(beginning: Beginning) -> bool:
    """Test for an object that contains works, as in a service's response."""
    return bool(_WORKS.match(beginning.text.lstrip()))


def json_rows(beginning: Beginning) -> bool:
    """Test for JSON Lines, an array of objects or of arrays of names, or an object with works.

    A lone object on one line matches only if the file extension is .jsonl or .ndjson, or if its
    keys are those of a link or a work. If it is cut off, its first key must be an id.
    """
    one, more = _json(beginning)
    text, path = beginning.text.lstrip(), beginning.path
    if more or not one or wrapped(beginning):
        return more or one
    alone = len(beginning.lines) == 1
    if alone and not beginning.whole:
        return bool(_NAMED.match(text))
    if _LIST_OF_ROWS.match(text):
        return True
    if not (alone and beginning.whole):
        return False
    if path is not None and set(path.suffixes) & {".jsonl", ".ndjson"}:
        return True
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(shape_of(list(value)) or ends_of(list(value)))


def rdf(beginning: Beginning) -> bool:
    """Test for RDF: lines of three terms and a period, prefixes, or the file extension."""
    rows, path = beginning.rows, beginning.path
    if path is not None and {".ttl", ".trig", ".nt", ".nq"} & set(path.suffixes) and rows:
        return "\t" not in rows[0] or ntriples(beginning)
    prefix = rows and re.match(r"@?(?:prefix|base)\s+\S*\s*<.*>", rows[0], re.I)
    return bool(prefix) or ntriples(beginning)


def ntriples(beginning: Beginning) -> bool:
    """Test for lines of three or four terms and a period."""
    rows = beginning.rows
    triple = re.compile(r"(?:<[^>]*>|_:\S+)\s+<[^>]*>\s+.*\.")
    return bool(rows) and all(triple.fullmatch(row) for row in rows[:100])


def gml(beginning: Beginning) -> bool:
    """Test for ``graph [`` and ``node [``; the latter may be cut off."""
    text = beginning.text
    if "[" not in text:
        return False
    opened = re.search(r"(?:\A|[\r\n])\s*graph\s*\[\s*[\w#]", text[:8192], re.I)
    return bool(opened and (re.search(r"\bnode\s*\[", text, re.I) or not beginning.whole))


SEPARATORS = ("\t", ",", ";", " ")


def separator(beginning: Beginning) -> str:
    """Return an adjacency list's separator, or ""."""
    return next((by for by in SEPARATORS if _is_adjacency(beginning, by)), "")


def lock(beginning: Beginning) -> bool:
    """Test for a package manager's lock file (TOML or JSON), or output of pip inspect."""
    text = beginning.text
    if text.lstrip().startswith("{"):
        npm = re.search(r'"lockfileVersion"\s*:\s*\d', text)
        pip = re.search(r'"pip_version"\s*:', text) and re.search(r'"installed"\s*:\s*\[', text)
        return bool(npm or pip)
    if "[[package]]" not in text:
        return False
    return bool(re.search(r'(?m)^\[\[package\]\]\s*[\r\n]+name = "', text))


def common_crawl(beginning: Beginning) -> bool:
    """Test for a vertex file, or an edge file next to a vertex file, by names and rows."""
    path = beginning.path
    if path is None or not beginning.lines:
        return False
    if "vertices" in path.name:
        row = re.compile(r"\d+\t[^\t]+(?:\t\d+)?")
    elif "edges" in path.name and path.with_name(path.name.replace("edges", "vertices")).is_file():
        row = re.compile(r"\d+\t\d+")
    else:
        return False
    return all(map(row.fullmatch, beginning.lines))


def _is_adjacency(beginning: Beginning, separator: str) -> bool:
    """Test for rows of different lengths with distinct first names.

    In addition, all first names must end in a colon, half of the other names must also be first
    names, or all names must be integers, in rows of at least three different lengths.
    """
    rows = beginning.rows[:1000]
    if separator not in beginning.text:
        return False
    if separator != " " and len({row.count(separator) for row in rows}) < 2:
        return False
    cut = [row.split(None if separator == " " else separator) for row in rows]
    lengths = Counter(map(len, cut))
    if len(lengths) < 2 or max(lengths) < 3:
        return False
    # Rows of an edge list, even with more columns or bad rows, mostly have one length.
    if lengths[2] * 2 > len(cut) or max(lengths.values()) * 10 > len(cut) * 8:
        return False
    heads = Counter(row[0].strip().rstrip(":") for row in cut)
    if len(heads) * 10 < len(cut) * 9:
        return False
    others = [name.strip() for row in cut for name in row[1:]]
    known = sum(name in heads for name in others)
    numbers = all(name.isdecimal() for name in (*heads, *others))
    colons = all(row[0].strip().endswith(":") for row in cut)
    return colons or known * 2 >= len(others) or (numbers and len(lengths) >= 3)
