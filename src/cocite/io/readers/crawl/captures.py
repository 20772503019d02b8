"""Captures of pages and their links: which URLs are pages, and which are aliases.

Used for folders, archives and fetched pages. DuckDB joins the tables out of core.

* The newest capture of a URL counts; among several with the same time, the last. A revisit means
  that the page is unchanged; if a URL has only revisits, the page that they refer to counts.
* A redirect is an alias of its target. A page is an alias if its canonical link or ``refresh``
  declares it a copy of another captured page, except in a cycle of such pages.
* Links lead to captured pages; links to other URLs are counted, or stored.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cocite.errors import UnrecognizedInput
from cocite.io.readers import signs
from cocite.io.readers.contract import Job, PagesFound, Read, Reported, follow, no_report
from cocite.io.readers.crawl.sitemap import read_listed
from cocite.io.readers.html.page import TAGS, joined
from cocite.io.readers.html.parsers import HtmlPage, Pages
from cocite.io.readers.sources import Beginning, Source, zstd
from cocite.io.readers.text import new_clean_file, relation_of
from cocite.storage import disk, staged_file
from cocite.storage.atomic import check_file

PAGE, REDIRECT, OTHER, ERROR, REVISIT = range(5)
"""Kinds of captures."""
LARGEST = 1 << 25
"""Maximum size of a decompressed page in bytes; larger pages are skipped."""
REDIRECTS = (301, 302, 303, 307, 308)

_EVERYWHERE, _LEAST_PAGES = 0.9, 10
"""Links to a page are navigation if this fraction, and number, of the site's pages have them."""
_LONGEST = 65_535
_HELD = 1 << 20
_CAPTURES = {"n": "UBIGINT", "kind": "UTINYINT"}
_CAPTURES |= dict.fromkeys(("url", "moment", "leads", "title"), "VARCHAR")
_LINKS = {"n": "UBIGINT", "tag": "UTINYINT", "url": "VARCHAR", "written": "VARCHAR"}
_NO_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], " ")
_NOTHING: dict[str, Any] = {"title": "", "same": {}, "links": []}


@dataclass(frozen=True)
class CrawlRules:
    """The rules that differ between sites and crawls.

    ``name`` returns the node of a URL, ``inside`` whether a URL may be the original of a copy.
    ``external`` describes links to pages that were not captured. Lines of a list of pages are
    relative to ``base``; ``advice`` is given if none of these pages was captured. Reports omit the
    URL prefix ``hidden``.
    """

    name: Callable[[str], str]
    inside: Callable[[str], bool]
    external: str = "to pages that were not captured (--keep-external keeps them)"
    base: str = ""
    advice: str = ""
    hidden: str = ""


def is_web(url: str | None) -> bool:
    """Return whether ``url`` is an http or https URL."""
    return url is not None and url.startswith(("http:", "https:"))


class Captures:
    """Context manager that collects captures and their links."""

    def __init__(self, job: Job, found: PagesFound, rules: CrawlRules | None = None) -> None:
        self._job, self._chosen, self.found = job, job.options, found
        self.rules = rules or CrawlRules(job.options.called, is_web)
        self._open = ExitStack()
        self._out = [self._open.enter_context(new_clean_file(job, n)) for n in ("c.tsv", "l.tsv")]
        self._held = io.StringIO(), io.StringIO()
        self._count = 0
        self._others: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self._reported = job.report is not no_report

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    # -- records ------------------------------------------------------------------------

    def leave_out(self, url: str, why: str) -> None:
        """Count and report a skipped page."""
        self.left_out[why] += 1
        self._job.report(url, why, "", "")

    def add(self, kind: int, name: str, at: str = "", leads: str = "", title: str = "") -> int:
        """Add a capture of the node ``name``; return the capture's number.

        ``at`` is the time, as sortable text; ``leads`` is the target's node, or "".
        """
        title = " ".join(title.translate(_NO_CONTROLS).split())
        self._count += 1
        at = at.translate(_NO_CONTROLS)
        self._write(0, f"{self._count}\t{kind}\t{name}\t{at}\t{leads}\t{title}\n")
        return self._count

    def capture(self, kind: int, url: str, at: str, leads: str = "", title: str = "") -> int:
        """Add a capture by its URL; URLs must be normalized and have no fragments."""
        fine = leads and len(leads) <= _LONGEST and leads.isascii()
        name = self.rules.name
        return self.add(kind, name(url), at, name(leads) if fine else "", title)

    def page(self, url: str, at: str, parsed: dict[str, Any]) -> None:
        """Add a page as parsed by ``html/page.links_of``."""
        leads, same, rules = "", parsed["same"], self.rules
        if not self._chosen.ignore_canonical:
            named = (same[kind] for kind in ("refresh", "canonical") if kind in same)
            leads = next(filter(rules.inside, named), "")
        number = self.capture(PAGE, url, at, leads, parsed["title"])
        for tag, main, where, written in parsed["links"]:
            if TAGS[tag] not in self._chosen.link_tags:
                self._others[f"by {TAGS[tag]}, which were not requested"] += 1
            elif self._chosen.links == "main" and not main:
                self._others["in navigation"] += 1
            elif where is None or len(where) > _LONGEST:
                self._others["malformed"] += 1
                self._job.report(url, "malformed", written, "")
            elif not is_web(where):
                self._others["to addresses that are not web pages (mailto: and so on)"] += 1
            else:
                shown = written.translate(_NO_CONTROLS)[:_LONGEST] if self._reported else ""
                self._write(1, f"{number}\t{tag}\t{rules.name(where)}\t{shown}\n")

    def parse(self, pages: Pages, each: Iterable[HtmlPage]) -> None:
        """Parse pages with keys (URL, time), and add them."""
        for parsed in pages.parsed(each):
            url, at = parsed.key
            if parsed.found is None:
                self.leave_out(url, f"page whose {parsed.why}")
            self.page(url, at, parsed.found or _NOTHING)

    def _write(self, which: int, line: str) -> None:
        held = self._held[which]
        held.write(line)
        if held.tell() >= _HELD or not line:
            disk.write(self._out[which], held.getvalue().encode("utf-8", "replace"))
            held.seek(0)
            held.truncate()

    # -- responses ----------------------------------------------------------------------

    def page_of(
        self, message: HttpMessage, url: str, at: str, *, long: bool = False, cut: bool = False
    ) -> HtmlPage | None:
        """Return the page in a response; add or count other responses.

        An incomplete response is ``long`` (above the limit) or ``cut`` (truncated when archived).
        """
        if self.is_no_page(message, url, at):
            return None
        if message.is_html is False:
            self.other(url, at)
            return None
        body = None if long else body_of(message, LARGEST)
        if body is None:
            long = long or message.header.get("content-encoding", "") == ""
            why = f"page of more than {LARGEST >> 20} MiB" if long else "page that is not decoded"
            self.leave_out(url, why)
            self.capture(OTHER, url, at)
            return None
        if message.is_html is None and not signs.html(Beginning(body[: 1 << 14])):
            self.other(url, at)
            return None
        if cut:
            self.left_out["ends of pages that were truncated when fetched"] += 1
        return HtmlPage((url, at), url, body, message.charset)

    def other(self, url: str, at: str) -> None:
        """Count and add a file that is not a page."""
        self.left_out["file that is not a page"] += 1
        self.capture(OTHER, url, at)

    def is_no_page(self, message: HttpMessage, url: str, at: str) -> bool:
        """Add a redirect, an unchanged page or an error; return whether the response was one."""
        status, location = message.status, message.header.get("location")
        if 200 <= status < 300:
            return False
        leads = joined(location, url) if location else None
        if status in REDIRECTS and leads is not None:
            self.capture(REDIRECT, url, at, leads)
        elif status == 304:
            self.capture(REVISIT, url, at)
        else:
            self.left_out["server error, or response without a page"] += 1
            self.capture(ERROR, url, at)
        return True

    # -- result -------------------------------------------------------------------------

    def finish(self) -> Read:
        """Return the relations of links and of pages, and the report."""
        for which in (0, 1):
            self._write(which, "")
        self._open.close()
        run, count, found = self._job.run, self._job.count, self.found
        captures = relation_of(self._job, _CAPTURES, "c.tsv")
        run(
            f"CREATE TABLE reading.latest AS SELECT * FROM ({captures}) QUALIFY row_number() OVER "
            f"(PARTITION BY url ORDER BY kind = {REVISIT}, moment DESC, n DESC) = 1"
        )
        self._names()
        run(
            "CREATE TABLE reading.pages AS SELECT url AS a, title FROM reading.latest WHERE kind "
            f"IN ({PAGE}, {REVISIT}) AND url NOT IN (SELECT a FROM reading.same) "
            "AND url NOT IN (SELECT a FROM reading.goes)"
        )
        if self._chosen.pages:
            self._restrict()
        found.pages = count("SELECT count(*) FROM reading.pages")
        found.copies = count("SELECT count(*) FROM reading.same")
        found.redirects = count(f"SELECT count(*) FROM reading.latest WHERE kind = {REDIRECT}")
        found.left_out = dict(sorted(self.left_out.items()))
        for url, title in self._job.streamed("reading.pages", "a, title", "title != ''"):
            self._job.titles.add(url, title)
        nodes = "SELECT a FROM reading.pages"
        self._join()
        chosen = "what IN ('', 'external')" if self._chosen.keep_external else "what = ''"
        found.rows = count(f"SELECT count(*) FROM reading.joined WHERE {chosen}")
        self._count_links()
        self._report()
        return Read(f"SELECT a, b FROM reading.joined WHERE {chosen}", found, nodes)

    def _names(self) -> None:
        """Create ``goes`` (redirect, target), ``same`` (copy, original), ``real`` (both)."""
        run = self._job.run
        run(
            "CREATE TABLE reading.goes AS SELECT url AS a, leads AS b FROM reading.latest WHERE "
            f"leads != '' AND (kind = {REDIRECT} OR (kind = {REVISIT} AND leads != url AND leads "
            f"IN (SELECT url FROM reading.latest WHERE kind IN ({PAGE}, {REDIRECT}, {REVISIT}))))"
        )
        follow(self._job, "reading.goes")
        run(
            "CREATE TABLE reading.same AS SELECT l.url AS a, coalesce(g.b, l.leads) AS b FROM "
            "reading.latest l LEFT JOIN reading.goes g ON g.a = l.leads "
            f"WHERE l.kind = {PAGE} AND l.leads != ''"
        )
        run(
            "DELETE FROM reading.same WHERE a = b OR b NOT IN (SELECT url FROM reading.latest "
            f"WHERE kind = {PAGE} OR (kind = {REVISIT} AND url NOT IN "
            "(SELECT a FROM reading.goes)))"
        )
        follow(self._job, "reading.same")
        run(
            "CREATE TABLE reading.real AS SELECT g.a, coalesce(s.b, g.b) AS b FROM reading.goes g "
            "LEFT JOIN reading.same s ON s.a = g.b UNION ALL SELECT a, b FROM reading.same"
        )

    def _restrict(self) -> None:
        """Drop pages that are not listed by URL or alias."""
        source, run = Source(Path(self._chosen.pages)), self._job.run
        skip = self._job.options.bad_rows != "stop"
        listed = read_listed(source, base=self.rules.base, skip=skip).pages
        with new_clean_file(self._job, "listed.tsv") as out:
            for url in listed:
                name = self.rules.name(url) if self.rules.inside(url) else url
                disk.write(out, f"{name}\t{url}\n".encode("utf-8", "replace"))
        named = relation_of(self._job, {"a": "VARCHAR", "url": "VARCHAR"}, "listed.tsv")
        run(
            "CREATE TABLE reading.listed AS SELECT coalesce(r.b, w.a) AS a, min(w.url) AS url "
            f"FROM ({named}) w LEFT JOIN reading.real r ON r.a = w.a GROUP BY 1"
        )
        run(
            "CREATE TABLE reading.lost AS SELECT url FROM reading.listed "
            "WHERE a NOT IN (SELECT a FROM reading.pages) ORDER BY url"
        )
        run("DELETE FROM reading.pages WHERE a NOT IN (SELECT a FROM reading.listed)")
        if not self._job.count("SELECT count(*) FROM reading.pages"):
            raise UnrecognizedInput(
                f"none of the {len(listed):,} pages listed in {source.label} is in "
                f"{self.found.file}{self.rules.advice}"
            )
        for (url,) in self._job.streamed("reading.lost", "url"):
            self.left_out["listed pages that are missing"] += 1
            self._job.report(url, "listed, but missing", "", "")

    def _join(self) -> None:
        """Create the table ``joined`` of links; ``what`` is '' if the target is a page."""
        run, links = self._job.run, relation_of(self._job, _LINKS, "l.tsv")
        run(
            "CREATE TABLE reading.joined AS SELECT coalesce(s.b, c.url) AS a, coalesce(r.b, l.url) "
            "AS b, l.url AS url, written, tag, c.url AS page, l.n AS n, CASE "
            f"WHEN t.kind IS NULL THEN 'external' WHEN t.kind = {OTHER} THEN 'file' "
            f"WHEN t.kind IN ({ERROR}, {REDIRECT}) THEN 'broken' ELSE '' END AS what "
            f"FROM ({links}) l JOIN reading.latest c ON c.n = l.n "
            "LEFT JOIN reading.same s ON s.a = c.url LEFT JOIN reading.real r ON r.a = l.url "
            "LEFT JOIN reading.latest t ON t.url = coalesce(r.b, l.url)"
        )
        if self._chosen.pages:
            pages = "NOT IN (SELECT a FROM reading.pages)"
            run(f"DELETE FROM reading.joined WHERE a {pages}")
            run(f"UPDATE reading.joined SET what = 'unlisted' WHERE what = '' AND b {pages}")
        if self._chosen.links == "main":
            host = "regexp_extract({}, '^[a-z]+://([^/]*)', 1)"
            of_a = host.format("a")
            run(
                f"UPDATE reading.joined SET what = 'everywhere' WHERE what = '' AND (b, {of_a}) IN "
                f"(SELECT j.b, j.host FROM (SELECT b, {of_a} AS host, count(DISTINCT a) AS often "
                "FROM reading.joined WHERE what = '' GROUP BY ALL) j JOIN "
                f"(SELECT {of_a} AS host, count(*) AS pages FROM reading.pages GROUP BY ALL) p ON "
                f"p.host = j.host WHERE often >= {_LEAST_PAGES} AND often >= {_EVERYWHERE} * pages)"
            )

    def _count_links(self) -> None:
        found, others, external = self.found, self._others, self._chosen.keep_external
        words = {
            "external": self.rules.external.partition(" (")[0] if external else self.rules.external,
            "file": "to files that are not pages",
            "broken": "broken",
            "everywhere": "to pages that all pages link to",
            "unlisted": "to pages that are not listed",
        }
        found.links = dict.fromkeys(TAGS, 0)
        for tag, what, count in self._job.run(
            "SELECT tag, what, count(*) FROM reading.joined GROUP BY ALL"
        ):
            if not what or (what == "external" and external):
                found.links[TAGS[tag]] += count
            if what:
                others[words[what]] += count
        found.others = dict(sorted(others.items()))

    def _report(self) -> None:
        if self._reported:
            rows = "SELECT page, written, url FROM reading.joined WHERE what = 'broken' ORDER BY "
            self._job.run(f"CREATE TABLE reading.broken AS {rows} n, url, written")
            for page, written, url in self._job.streamed("reading.broken", "page, written, url"):
                self._job.report(page, "broken", written, url.removeprefix(self.rules.hidden))


# -- responses ---------------------------------------------------------------------------

# HTTP messages from archives and servers. Chunks are joined; gzip, deflate, Brotli and Zstandard
# are decoded as in browsers, up to the point of truncation. Archives often store decoded bodies
# with the original header, so text that is not encoded as declared is returned unchanged.

_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/\d(?:\.\d)?[ \t]+(\d{3})\b", re.I)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?\s*([^\s\"';,]+)", re.I)
_PAGES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True)
class HttpMessage:
    """A response; ``header`` maps lower-case names to their first values."""

    status: int
    header: dict[str, str]
    body: bytes

    @property
    def charset(self) -> str:
        """Return the header's charset, or ""."""
        found = _CHARSET.search(self.header.get("content-type", ""))
        return found[1] if found else ""

    @property
    def is_html(self) -> bool | None:
        """Return whether the header's type is HTML; None without a type."""
        type_ = self.header.get("content-type", "")
        return type_.partition(";")[0].strip().lower() in _PAGES if type_ else None


def message_of(block: bytes) -> HttpMessage | None:
    """Parse an HTTP response; return None for anything else."""
    end = _END.search(block)
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    lines = re.split(rb"\r?\n(?![ \t])", head)
    status = _STATUS.match(lines[0])
    if status is None:
        return None
    header: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon:
            header.setdefault(name.strip().lower(), " ".join(value.split()))
    return HttpMessage(int(status[1]), header, body)


def body_of(message: HttpMessage, most: int) -> bytes | None:
    """Return the decoded body; None if it cannot be decoded or exceeds ``most`` bytes."""
    body = message.body
    if "chunked" in message.header.get("transfer-encoding", "").lower():
        body = _joined(body)
    named = message.header.get("content-encoding", "").lower().split(",")
    for name in reversed([name.strip() for name in named]):
        unpacked = _unpacked(name, body, most)
        if unpacked is None and b"\0" in body[:1024]:
            return None
        body = body if unpacked is None else unpacked
    return body if len(body) <= most else None


def _joined(body: bytes) -> bytes:
    """Join the chunks of a chunked body; return other bodies unchanged."""
    parts: list[bytes] = []
    at = 0
    while at < len(body):
        end = body.find(b"\r\n", at)
        size = body[at:end].partition(b";")[0].strip() if end >= 0 else b""
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", size):
            return b"".join(parts) if parts else body
        length = int(size, 16)
        if not length:
            break
        parts.append(body[end + 2 : end + 2 + length])
        at = end + 2 + length + 2
    return b"".join(parts)


def _unpacked(name: str, body: bytes, most: int) -> bytes | None:
    """Decompress a body, up to the point of truncation; None on failure."""
    if name in ("", "identity") or not body:
        return body
    try:
        if name in ("gzip", "x-gzip"):
            return zlib.decompressobj(31).decompress(body, most + 1)
        if name == "deflate":
            zlib_wrapped = body[0] & 15 == 8 and int.from_bytes(body[:2], "big") % 31 == 0
            return zlib.decompressobj(15 if zlib_wrapped else -15).decompress(body, most + 1)
        if name == "br":
            import brotli  # a dependency of FastWARC

            with suppress(brotli.error):
                return bytes(brotli.Decompressor().process(body, output_buffer_limit=most + 1))
        if name == "zstd":
            return bytes(zstd().ZstdDecompressor().decompress(body, most + 1))
    except (zlib.error, zstd().ZstdError):
        pass
    return None


# -- report ------------------------------------------------------------------------------


@contextmanager
def report_to(path: str, overwrite: bool) -> Iterator[Reported]:
    """Yield a function that adds a row to ``path``; raises :class:`OutputExists`."""
    if not path:
        yield no_report
        return
    delimiter = "," if path.endswith(".csv") else "\t"
    with staged_file(check_file(Path(path), overwrite)) as file:

        def add(*fields: str) -> None:
            text = io.StringIO(newline="")
            row = [" ".join(field.split()) for field in fields]
            csv.writer(text, delimiter=delimiter, lineterminator="\n").writerow(row)
            disk.write(file, text.getvalue().encode("utf-8", "backslashreplace"))

        add("page", "what", "written", "leads to")
        yield add
