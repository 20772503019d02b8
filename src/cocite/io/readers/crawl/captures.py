"""Captures of a crawl and the links on them: which URL is a page, which another name of a page, for
what archives hold and what is fetched now. All in DuckDB, out of core.

* Of several captures of a URL the newest counts, of those of one moment the last one. A revisit
  says that nothing has changed; where there is nothing else of its URL, it is the page that it
  refers to.
* A redirect is the page that it leads to, and so is a page that says that it is a copy of another
  one (a canonical link, or ``refresh``), if that is there. What goes in a circle is itself, if it
  is a page.
* Links lead to pages that were captured; those to other URLs are counted, or kept.

Cost: a few joins over all links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocite.errors import UnrecognizedInput
from cocite.io.readers.contract import Job, Read, follow, no_report
from cocite.io.readers.crawl.records import HttpMessage, body_of, is_page, page_type
from cocite.io.readers.crawl.sitemap import read_listed
from cocite.io.readers.html.page import TAGS, joined
from cocite.io.readers.html.reader import HtmlPage, Pages, PagesFound
from cocite.io.readers.sources import Source
from cocite.io.readers.text import new_clean_file, relation_of
from cocite.storage import disk

PAGE, REDIRECT, OTHER, ERROR, REVISIT = range(5)
"""What a capture is."""

_EVERYWHERE = 0.9
_LEAST_PAGES = 10
_LONGEST = 65_535
_HELD = 1 << 20
_CAPTURES = {
    "n": "UBIGINT",
    "kind": "UTINYINT",
    "url": "VARCHAR",
    "moment": "VARCHAR",
    "leads": "VARCHAR",
    "title": "VARCHAR",
}
_LINKS = {
    "n": "UBIGINT",
    "tag": "UTINYINT",
    "main": "UTINYINT",
    "url": "VARCHAR",
    "written": "VARCHAR",
}
_NO_CONTROLS = dict.fromkeys([*range(32), *range(127, 160)], " ")


@dataclass
class CrawlFound(PagesFound):
    """What was found in a crawl: ``files`` were read for it, the first of which is ``file``."""

    files: int = 1
    what: str = "in a web archive"
    redirects: int = 0

    def describe(self) -> str:
        """Return one line for people."""
        text = self.file + (f" and {self.files - 1:,} more" if self.files > 1 else "")
        text += f": {self.pages:,} pages {self.what}"
        text += f", {self.redirects:,} redirects" if self.redirects else ""
        text += f", {self.copies:,} copies of pages" if self.copies else ""
        return text + self.counts()


class Captures:
    """What a reader pushes captures and links to; a context. ``finish`` makes the relations."""

    def __init__(self, job: Job, found: CrawlFound) -> None:
        self._job, self._chosen, self.found = job, job.options.pages, found
        self._open = ExitStack()
        self._out = [self._open.enter_context(new_clean_file(job, n)) for n in ("c.tsv", "l.tsv")]
        self._held: list[list[str]] = [[], []]
        self._size = [0, 0]
        self._count = 0
        self._others: Counter[str] = Counter()
        self.lost = 0
        """Pages that are listed, and were not captured."""
        self._reported = job.report is not no_report
        self._called = job.options.called

    def __enter__(self) -> Captures:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    # -- what is met --------------------------------------------------------------------

    def capture(self, kind: int, url: str, at: str, leads: str = "", title: str = "") -> int:
        """A capture of a URL (clean, without a fragment) at a moment, as text that sorts; it
        ``leads`` to another URL. Returns its number.
        """
        title = " ".join(title.translate(_NO_CONTROLS).split())
        at = at.translate(_NO_CONTROLS)
        number = self._count = self._count + 1
        leads = self._called(leads) if len(leads) <= _LONGEST and leads.isascii() else ""
        url = self._called(url)
        self._add(0, f"{number}\t{kind}\t{url}\t{at}\t{leads}\t{title}\n")
        return number

    def page(self, url: str, at: str, parsed: dict[str, Any]) -> None:
        """A page, of which ``html/page.links_of`` has told what is on it."""
        same, leads = parsed["same"], ""
        if self._chosen.canonical:
            leads = next((same[k] for k in ("refresh", "canonical") if _is_web(same.get(k))), "")
        number = self.capture(PAGE, url, at, leads, parsed["title"])
        for tag, main, where, written in parsed["links"]:
            if TAGS[tag] not in self._chosen.tags:
                self._others[f"by {TAGS[tag]}, which are not asked for"] += 1
            elif self._chosen.links == "main" and not main:
                self._others["in navigation"] += 1
            elif where is None or len(where) > _LONGEST:
                self._others["malformed"] += 1
                self._job.report(url, "malformed", written, "")
            elif not _is_web(where):
                self._others["to no web page (mailto: and so on)"] += 1
            else:
                shown = written.translate(_NO_CONTROLS)[:_LONGEST] if self._reported else ""
                self._add(1, f"{number}\t{tag}\t{int(main)}\t{self._called(where)}\t{shown}\n")

    def _add(self, which: int, line: str) -> None:
        self._held[which].append(line)
        self._size[which] += len(line)
        if self._size[which] >= _HELD:
            self._write(which)

    def _write(self, which: int) -> None:
        text = "".join(self._held[which])
        disk.write(self._out[which], text.encode("utf-8", "replace"))
        self._held[which].clear()
        self._size[which] = 0

    # -- what it makes ------------------------------------------------------------------

    def finish(self) -> Read:
        """The relations of links and of pages."""
        for which in (0, 1):
            self._write(which)
        self._open.close()
        self._latest()
        self._names()
        run = self._job.run
        run(
            "CREATE TABLE reading.pages AS SELECT url AS a, title FROM reading.latest WHERE kind "
            f"IN ({PAGE}, {REVISIT}) AND url NOT IN (SELECT a FROM reading.same) "
            "AND url NOT IN (SELECT a FROM reading.goes)"
        )
        found = self.found
        if self._chosen.listed:
            self._restrict()
        found.pages = self._job.count("SELECT count(*) FROM reading.pages")
        found.copies = self._job.count("SELECT count(*) FROM reading.same")
        found.redirects = self._job.count(
            f"SELECT count(*) FROM reading.latest WHERE kind = {REDIRECT}"
        )
        self._titles()
        nodes = "SELECT a FROM reading.pages"
        if self._job.wanted == 1:
            found.rows = found.pages
            return Read(nodes, found)
        self._joined()
        kept = "what IN ('', 'external')" if self._chosen.external else "what = ''"
        found.rows = self._job.count(f"SELECT count(*) FROM reading.joined WHERE {kept}")
        self._counts()
        self._report()
        return Read(f"SELECT a, b FROM reading.joined WHERE {kept}", found, nodes)

    def _latest(self) -> None:
        """The capture of each URL that counts."""
        captures = relation_of(self._job, _CAPTURES, "c.tsv")
        self._job.run(
            f"CREATE TABLE reading.latest AS SELECT * FROM ({captures}) QUALIFY row_number() OVER "
            f"(PARTITION BY url ORDER BY kind = {REVISIT}, moment DESC, n DESC) = 1"
        )

    def _names(self) -> None:
        """``goes``: URLs of redirects, and where these lead; ``same``: copies, and of what."""
        run, database = self._job.run, self._job.database
        run(
            "CREATE TABLE reading.goes AS SELECT url AS a, leads AS b FROM reading.latest WHERE "
            f"leads != '' AND (kind = {REDIRECT} OR (kind = {REVISIT} AND leads != url AND leads "
            f"IN (SELECT url FROM reading.latest WHERE kind IN ({PAGE}, {REDIRECT}, {REVISIT}))))"
        )
        follow(database, "reading.goes")
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
        follow(database, "reading.same")
        run(
            "CREATE TABLE reading.real AS SELECT g.a, coalesce(s.b, g.b) AS b FROM reading.goes g "
            "LEFT JOIN reading.same s ON s.a = g.b UNION ALL SELECT a, b FROM reading.same"
        )

    def _joined(self) -> None:
        """Every link, from page to page, and where it leads: '' to a page."""
        links = relation_of(self._job, _LINKS, "l.tsv")
        self._job.run(
            "CREATE TABLE reading.joined AS SELECT coalesce(s.b, c.url) AS a, coalesce(r.b, l.url) "
            "AS b, l.url AS url, written, tag, c.url AS page, l.n AS n, CASE "
            f"WHEN t.kind IS NULL THEN 'external' WHEN t.kind = {OTHER} THEN 'file' "
            f"WHEN t.kind IN ({ERROR}, {REDIRECT}) THEN 'broken' ELSE '' END AS what "
            f"FROM ({links}) l JOIN reading.latest c ON c.n = l.n "
            "LEFT JOIN reading.same s ON s.a = c.url LEFT JOIN reading.real r ON r.a = l.url "
            "LEFT JOIN reading.latest t ON t.url = coalesce(r.b, l.url)"
        )
        if self._chosen.listed:
            pages = "NOT IN (SELECT a FROM reading.pages)"
            self._job.run(f"DELETE FROM reading.joined WHERE a {pages}")
            self._job.run(
                f"UPDATE reading.joined SET what = 'unlisted' WHERE what = '' AND b {pages}"
            )
        if self._chosen.links == "main":
            host = "regexp_extract({}, '^[a-z]+://([^/]*)', 1)"
            of_a = host.format("a")
            self._job.run(
                f"UPDATE reading.joined SET what = 'everywhere' WHERE what = '' AND (b, {of_a}) IN "
                f"(SELECT j.b, j.host FROM (SELECT b, {of_a} AS host, count(DISTINCT a) AS often "
                "FROM reading.joined WHERE what = '' GROUP BY ALL) j JOIN "
                f"(SELECT {of_a} AS host, count(*) AS pages FROM reading.pages GROUP BY ALL) p ON "
                f"p.host = j.host WHERE often >= {_LEAST_PAGES} AND often >= {_EVERYWHERE} * pages)"
            )

    def _restrict(self) -> None:
        """Keep those pages only that are listed, also by other names."""
        source = Source(Path(self._chosen.listed))
        listed = read_listed(source, skip=self._job.options.bad_rows != "stop")
        with new_clean_file(self._job, "listed.tsv") as out:
            for url in listed.pages:
                disk.write(out, f"{self._called(url)}\n".encode())
        named = relation_of(self._job, {"url": "VARCHAR"}, "listed.tsv")
        self._job.run(
            "CREATE TABLE reading.listed AS SELECT DISTINCT coalesce(r.b, w.url) AS a "
            f"FROM ({named}) w LEFT JOIN reading.real r ON r.a = w.url"
        )
        strangers = "a NOT IN (SELECT a FROM reading.pages)"
        self.lost = self._job.count(f"SELECT count(*) FROM reading.listed WHERE {strangers}")
        self._job.run("DELETE FROM reading.pages WHERE a NOT IN (SELECT a FROM reading.listed)")
        if not self._job.count("SELECT count(*) FROM reading.pages"):
            raise UnrecognizedInput(
                f"none of the {self.lost:,} pages that {source.label} names is in {self.found.file}"
            )

    def _counts(self) -> None:
        found, others, chosen = self.found, self._others, self._chosen
        words = {
            "external": "to pages that were not captured"
            + ("" if chosen.external else " (--keep-external keeps them)"),
            "file": "to files that are no pages",
            "broken": "broken",
            "everywhere": "to pages that all pages link to",
            "unlisted": "to pages that are not listed",
        }
        found.links = dict.fromkeys(TAGS, 0)
        for tag, what, count in self._job.run(
            "SELECT tag, what, count(*) FROM reading.joined GROUP BY ALL"
        ):
            if not what or (what == "external" and chosen.external):
                found.links[TAGS[tag]] += count
            if what:
                others[words[what]] += count
        found.others = dict(sorted(others.items()))
        if self.lost:
            found.left_out |= {"listed pages that are not there": self.lost}

    def _report(self) -> None:
        if self._reported:
            rows = "SELECT page, written, url FROM reading.joined WHERE what = 'broken' ORDER BY "
            rows += "n, url, written"
            self._job.run(f"CREATE TABLE reading.broken AS {rows}")
            for page, written, url in self._job.streamed("reading.broken", "page, written, url"):
                self._job.report(page, "broken", written, url)

    def _titles(self) -> None:
        for url, title in self._job.streamed("reading.pages", "a, title"):
            if title:
                self._job.titles.add(url, title)


def _is_web(url: str | None) -> bool:
    return url is not None and url.startswith(("http:", "https:"))


# -- responses ---------------------------------------------------------------------------


LARGEST = 1 << 25
"""Bytes of a page, unpacked; a larger one is left out."""
REDIRECTS = (301, 302, 303, 307, 308)


class Responses:
    """Pushes answers to ``captures``; ``left_out`` counts those that are no pages."""

    def __init__(self, job: Job, captures: Captures) -> None:
        self._job, self.captures = job, captures
        self.left_out: Counter[str] = Counter()

    def leave_out(self, url: str, why: str) -> None:
        """Count a page that is left out, and report it."""
        self.left_out[why] += 1
        self._job.report(url, why, "", "")

    def parse(self, pages: Pages, each: Iterable[HtmlPage]) -> None:
        """Push pages, which are called by URL and moment, with what is on them."""
        for parsed in pages.parsed(each):
            url, at = parsed.key
            if parsed.found is None:
                self.leave_out(url, f"page of which {parsed.why}")
            nothing = {"title": "", "same": {}, "links": []}
            self.captures.page(url, at, parsed.found or nothing)

    def page_of(
        self, message: HttpMessage, url: str, at: str, *, long: bool = False, cut: bool = False
    ) -> HtmlPage | None:
        """The page in an answer; all else is pushed or counted. ``long`` and ``cut`` say that not
        all of it is there, as it is too long, or as it was so when it was kept.
        """
        type_ = message.header.get("content-type", "")
        if self.is_no_page(message.status, message.header, url, at):
            return None
        if type_ and not page_type(type_):
            self.other(url, at)
            return None
        body = None if long else body_of(message, LARGEST)
        if body is None:
            long = long or message.header.get("content-encoding", "") == ""
            why = f"page of more than {LARGEST >> 20} MiB" if long else "page that is not decoded"
            self.leave_out(url, why)
            self.captures.capture(OTHER, url, at)
            return None
        if not is_page(type_, body):
            self.other(url, at)
            return None
        if cut:
            self.left_out["ends of pages that were cut when they were fetched"] += 1
        return HtmlPage((url, at), url, body, message.charset)

    def other(self, url: str, at: str) -> None:
        """A file that is no page."""
        self.left_out["file that is no page"] += 1
        self.captures.capture(OTHER, url, at)

    def is_no_page(self, status: int, header: dict[str, str], url: str, at: str) -> bool:
        """Whether it is a redirect or an error by its status, which is pushed then."""
        if 200 <= status < 300:
            return False
        leads = joined(header.get("location", ""), url) if header.get("location") else None
        if status in REDIRECTS and leads is not None:
            self.captures.capture(REDIRECT, url, at, leads)
        elif status == 304:
            self.captures.capture(REVISIT, url, at)
        else:
            self.left_out["error of a server, or no answer to show"] += 1
            self.captures.capture(ERROR, url, at)
        return True
