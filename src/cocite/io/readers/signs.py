"""Signs of formats: tests whether the beginning of an input (:class:`Beginning`) is in a format.

Binary formats are recognized by their magic numbers, text formats by the structure of their first
lines. A list of links may contain any text, so a sign must not occur in rows of two columns: it is
a closed tag, a JSON value that ends with its line, or a header line of the format.

Cost: one check of 64 KiB. ``io/readers/formats.py`` determines the order of checks.
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
    """Return a test whether one of the ``magic`` bytes is at byte ``at``.

    Magic bytes that text may begin with (``words``) match only binary content.
    """

    def found(beginning: Beginning) -> bool:
        content = beginning.content
        return content.startswith(magic, at) and not (words and not CONTROL.search(content))

    return found


def hive(beginning: Beginning) -> bool:
    """Test for columns separated by character 1."""
    return bool(beginning.lines) and all(
        "\x01" in line and not CONTROL.search(line.replace("\x01", "").encode())
        for line in beginning.lines
    )


def spreadsheet(beginning: Beginning) -> bool:
    """Test for a workbook of Excel or OpenDocument."""
    content = beginning.content
    names = (b"xl/", b"[Content_Types].xml", b"mimetypeapplication/vnd.oasis.opendoc")
    packed = content.startswith(b"PK\x03\x04") and any(name in content for name in names)
    return packed or content.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")


_PROPERTIES = re.compile(rb"(?m)^graphclass\s*[=:]\s*(?:class )?it\.unimi\.dsi\.")


def webgraph(beginning: Beginning) -> bool:
    """Test for a graph of WebGraph, or its properties, if both files exist."""
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
    """Test for a tar archive by the first header's checksum, which also covers old formats."""
    head = beginning.content[:512]
    digits = head[148:156].strip(b"\0 ")
    if len(head) < 512 or not re.fullmatch(b"[0-7]{1,7}", digits):
        return False
    return sum(head) - sum(head[148:156]) + 8 * 32 == int(digits, 8)


def binary(beginning: Beginning) -> bool:
    """Test whether most lines have control characters."""
    return bad_lines(beginning.content, beginning.whole, CONTROL)


def other_text(beginning: Beginning) -> bool:
    """Test for text whose lines beyond ASCII are not UTF-8."""
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
    """Test for a record of a web archive; for lz4, and Zstandard with a dictionary, by the file
    name.
    """
    content, path = beginning.content, beginning.path
    if path is not None and content.startswith((b"\x04\x22\x4d\x18", b"\x5d\x2a\x4d\x18")):
        return bool(re.search(r"\.(?:warc|wat)\.(?:lz4|zst)$", path.name, re.I))
    return bool(re.match(rb"\s*WARC/[01]\.\d+\r?\n", content))


_WIKI_COLUMNS = (b"pl_from", b"page_namespace", b"lt_namespace", b"rd_interwiki")
_WIKI = re.compile(rb"create\s+table\s[^;]*[`\"](?:" + b"|".join(_WIKI_COLUMNS) + rb")[`\"]", re.I)


def wiki(beginning: Beginning) -> bool:
    """Test for a table of links from a wiki's database."""
    content = beginning.content
    return any(name in content for name in _WIKI_COLUMNS) and bool(_WIKI.search(content))


_FEW, _LOOKED = 100, 8192
"""Lines, and characters, to examine for text that is not a table."""

_LIST_OF_ROWS = re.compile(r'\[\s*(?:\{\s*"|\[\s*(?:"[^"]*"|-?\d+)\s*,)')


# -- text ------------------------------------------------------------------------------


def has_line(pattern: str, first: int = 100) -> Sign:
    """Return a test whether one of the ``first`` lines matches in full, ignoring case."""
    whole = re.compile(pattern, re.I)
    return lambda beginning: any(map(whole.fullmatch, beginning.rows[:first]))


def begun(pattern: str, *, table: bool = False) -> Sign:
    """Return a test whether the stripped, nonblank lines begin with ``pattern``, ignoring case.

    Leading comments may precede. Rows with a tab each do not match unless ``table``.
    """
    wanted = re.compile(pattern, re.I)

    def found(beginning: Beginning) -> bool:
        first = (beginning.opening, "\n".join(beginning.rows[:_FEW]) + "\n")
        return any(map(wanted.match, first)) and (table or not _is_table(beginning))

    return found


def each(pattern: str) -> Sign:
    """Return a test whether all of the first rows match in full."""
    wanted = re.compile(pattern)

    def found(beginning: Beginning) -> bool:
        rows = beginning.rows[:_FEW]
        return bool(rows) and all(map(wanted.fullmatch, rows)) and not _is_table(beginning)

    return found


def _is_table(beginning: Beginning) -> bool:
    """Test whether every row has a tab."""
    rows = beginning.rows[:_FEW]
    return bool(rows) and all("\t" in row for row in rows)


def html(beginning: Beginning) -> bool:
    """Test for an opening and a closing element of HTML."""
    return bool(_HTML.match(beginning.text) and _CLOSED.search(beginning.text))


def tagged(*roots: str) -> Sign:
    """Return a test for XML, with one of the elements ``roots``, if any, near the beginning."""
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
    """Return whether the first value is JSON, and whether another one follows on a new line."""
    text = beginning.text.lstrip()
    if not text.startswith(("{", "[")):
        return False, False
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return True, False
    except ValueError:
        # Broken, or cut here: still JSON, if it begins like no other format.
        return bool(re.match(r'\{\s*"[^"]*"\s*:|\[\s*[\[{]?\s*("[^"]*"|-?\d+)\s*[,:]', text)), False
    rest = re.match(r"[ \t,]*(?:\r\n|\n|\r|$)\s*(.?)", text[end:])
    return rest is not None, rest is not None and rest[1] in tuple("{[")


def json_value(beginning: Beginning) -> bool:
    """Test for JSON."""
    return _json(beginning)[0]


def node_link(beginning: Beginning) -> bool:
    """Test for nodes and links in one object; a truncated one may show only one of both."""
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
    """Test for one object with works and citations: a file or a service's response."""
    return bool(_WORKS.match(beginning.text.lstrip()))


def json_rows(beginning: Beginning) -> bool:
    """Test for a JSON value per line, a list of objects or of lists of names, or works in an
    object.

    A single line is a row if the file extension or its keys indicate links or works, or if it is
    longer than the examined part.
    """
    one, more = _json(beginning)
    if more or (one and wrapped(beginning)):
        return True
    if one and not beginning.whole and len(beginning.lines) == 1:
        return bool(_NAMED.match(beginning.text.lstrip()))
    if one and _LIST_OF_ROWS.match(beginning.text.lstrip()):
        return True
    if not (one and beginning.whole and len(beginning.lines) == 1):
        return False
    called = beginning.path is not None and set(beginning.path.suffixes) & {".jsonl", ".ndjson"}
    if called:
        return True
    try:
        value = json.loads(beginning.text)
    except ValueError:
        return False
    known = isinstance(value, dict) and (shape_of(list(value)) or ends_of(list(value)))
    return bool(known)


def rdf(beginning: Beginning) -> bool:
    """Test for RDF by lines of three terms and a period, by prefixes, or by the file name."""
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
    """Test for a graph in brackets, with nodes in brackets."""
    text = beginning.text
    if "[" not in text:
        return False
    opened = re.search(r"(?:\A|[\r\n])\s*graph\s*\[\s*[\w#]", text[:8192], re.I)
    return bool(opened and (re.search(r"\bnode\s*\[", text, re.I) or not beginning.whole))


SEPARATORS = ("\t", ",", ";", " ")


def separator(beginning: Beginning) -> str:
    """Return the separator of names in an adjacency list, or ""."""
    return next((by for by in SEPARATORS if _is_adjacency(beginning, by)), "")


def lock(beginning: Beginning) -> bool:
    """Test for a lock file of a package manager, in TOML or JSON, or output of pip inspect."""
    text = beginning.text
    if text.lstrip().startswith("{"):
        npm = re.search(r'"lockfileVersion"\s*:\s*\d', text)
        pip = re.search(r'"pip_version"\s*:', text) and re.search(r'"installed"\s*:\s*\[', text)
        return bool(npm or pip)
    if "[[package]]" not in text:
        return False
    return bool(re.search(r'(?m)^\[\[package\]\]\s*[\r\n]+name = "', text))


def common_crawl(beginning: Beginning) -> bool:
    """Test for vertices, or edges with a file of vertices, by file names and rows."""
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
    """Test for rows of a node and its neighbors, of different lengths and with distinct first
    names.

    If the other names never come first, only lists of integers with three different lengths match.
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
    # Links, with or without more columns, and some malformed rows.
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
