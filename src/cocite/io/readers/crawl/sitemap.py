"""Sitemaps and lists of URLs, compressed or not.

    <urlset><url><loc>https://a.org/b</loc></url>...            a sitemap (sitemaps.org)
    <sitemapindex><sitemap><loc>https://a.org/1.xml.gz</loc></sitemap>...     a sitemap index
    https://a.org/b                                             a list: one URL per line, # comments

``loc`` elements of extensions (images, videos) are ignored. A URL that is not http or https raises
an error with its line number. A URL takes a microsecond; distinct URLs are in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from cocite.errors import InputError, MalformedRow
from cocite.io.readers.graphs.xml import line_of, parse_xml
from cocite.io.readers.html.page import joined
from cocite.io.readers.sources import Beginning, Source

_LONGEST = 65_535
_LARGEST = 50 << 20
"""Maximum size of a sitemap in bytes, according to sitemaps.org."""


class Listed:
    """URLs of ``pages`` and of other ``sitemaps``, in order of first occurrence."""

    def __init__(self) -> None:
        self.pages: dict[str, None] = {}
        self.sitemaps: dict[str, None] = {}
        self.bad = 0
        self.examples: list[str] = []


def is_list(beginning: Beginning) -> bool:
    """Return whether every line is one http or https URL."""
    return bool(beginning.rows) and all(
        row.lower().startswith(("http://", "https://")) and not set(row) & set("\t ,;|")
        for row in beginning.rows
    )


def listed_in(
    stream: IO[bytes], label: str, listed: Listed, *, xml: bool, base: str = "", skip: bool = False
) -> None:
    """Add the URLs in a sitemap (``xml``) or a list to ``listed``.

    Lines of a list are relative to ``base``, if given. Raises :class:`MalformedRow` and
    :class:`InputError`.
    """

    def add(text: str, of_sitemap: bool, line: int) -> None:
        text = text.strip()
        url = joined(text, base) if base else joined("", text)
        if url is None or not url.startswith(("http:", "https:")) or len(url) > _LONGEST:
            if not skip:
                raise MalformedRow(label, line, "not an http or https URL", text[:100])
            listed.bad += 1
            listed.examples.append(f"line {line}: not an http or https URL: {text[:100]!r}")
            del listed.examples[5:]
            return
        (listed.sitemaps if of_sitemap else listed.pages).setdefault(url)

    if xml:
        text = stream.read(_LARGEST + 1)
        if len(text) > _LARGEST:
            raise InputError(f"{label} is a sitemap of more than 50 MB, the limit of the format")
        for item in parse_xml(text, label):
            if item.tag in ("url", "sitemap") and (loc := item.find("loc")) is not None:
                add(loc.text or "", item.tag == "sitemap", line_of(loc))
        return
    for number, row in enumerate(stream, 1):
        line = row.decode("utf-8-sig" if number == 1 else "utf-8", "replace").strip()
        if line and not line.startswith("#"):
            add(line, False, number)


def read_listed(
    source: Source, *, base: str = "", skip: bool = False, beside: bool = True
) -> Listed:
    """Return the URLs in a file and, if ``beside``, in the sitemaps of a sitemap index.

    These sitemaps must be files next to the index, named like the last parts of their URLs. Raises
    :class:`InputError` if a sitemap is missing.
    """
    listed = Listed()
    _add_file(source, listed, base, skip)
    seen = set[str]()
    while beside and (waiting := [url for url in listed.sitemaps if url not in seen]):
        seen.add(url := waiting[0])
        name = urlsplit(url).path.rpartition("/")[2] or "sitemap.xml"
        found = None if source.path is None else _there(source.path.with_name(name))
        if found is None:
            raise InputError(
                f"{source.label} is a sitemap index, and its sitemap {url} is missing. Put that "
                f"sitemap next to {source.label}, as {name}"
            )
        _add_file(Source(found), listed, base, skip)
    return listed


def _there(path: Path) -> Path | None:
    """Return the file at ``path``, its uncompressed or compressed variant, or None."""
    other = path.with_name(path.name.removesuffix(".gz"))
    return next((p for p in (path, other, path.with_name(path.name + ".gz")) if p.is_file()), None)


def _add_file(source: Source, listed: Listed, base: str, skip: bool) -> None:
    with source.reading() as (stream, _):
        xml = source.beginning().text.lstrip().startswith("<")
        listed_in(stream, source.label, listed, xml=xml, base=base, skip=skip)
