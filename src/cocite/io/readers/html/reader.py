"""A folder of HTML pages: a static site, linked as a browser sees it.

    list the files -> parse every page -> who is a copy of whom -> what stands on every page -> rows

What is a page, and to which one a URL leads: ``io/readers/html/site.py``. What is on a page:
``io/readers/html/page.py``. A node is the path of a page in the folder; all pages are nodes, and
every link that stands on one is a row, so that ``--count-duplicates`` counts them.

* The URL at which the site is published, so that links by it are inside: what was told, else what
  the canonical links of some pages agree on.
* A page whose canonical link leads to another page of the folder, or that sends the browser there
  (``refresh``), is that page: links to it are links to the other one, and it is no node.
* ``--links main`` leaves navigation out: what stands in its elements, and links to pages to which 9
  in 10 pages of the site link, ten at least.

Links that lead to no file of the folder, or are no URLs, are counted, and listed in the order of
the pages in the file of ``--report``, which is there when it is whole.

Pages are parsed side by side, in a process for each thread: one that dies, or takes longer than a
minute, is begun anew, and its page is one without links, and counted.

Cost: some 0.8 ms a page of 40 KB, on all threads; a few pages a thread are in memory.
"""

from __future__ import annotations

import csv
import io
import json
import os
import select
import subprocess
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, NamedTuple, Self

from cocite.errors import InputError, UnrecognizedInput
from cocite.extras import need
from cocite.io.readers.contract import (
    EXAMPLES,
    FormatReader,
    Found,
    Job,
    Read,
    Reported,
    no_progress,
    no_report,
)
from cocite.io.readers.crawl.sitemap import read_listed
from cocite.io.readers.html.page import TAGS
from cocite.io.readers.html.site import HERE, LARGEST, Folder, Site
from cocite.io.readers.rows import clean_rows
from cocite.io.readers.sources import Source
from cocite.io.readers.spreadsheet import run_script
from cocite.io.readers.text import clean_relation
from cocite.storage import disk, staged_file
from cocite.storage.atomic import check_file

# -- pages -------------------------------------------------------------------------------


_PATIENCE = 60.0
"""Seconds for one page."""
_SCRIPT = str(Path(__file__).with_name("page.py"))
_AHEAD = 8
"""Pages in memory for each thread."""


class HtmlPage(NamedTuple):
    """A page: what its reader calls it, its URL, its bytes, and what the server said of them."""

    key: Any
    url: str
    content: bytes
    charset: str = ""


class Parsed(NamedTuple):
    """What was found on a page (``page.links_of``); None, and why, if its parser died."""

    key: Any
    found: dict[str, Any] | None
    why: str = ""


class Pages:
    """``with Pages(threads, purpose) as pages: pages.parsed(...)``; ``purpose`` is what needs it,
    in the message that a library is missing, and ``extra`` what it comes with.
    """

    def __init__(self, threads: int, purpose: str, extra: str = "html") -> None:
        need("selectolax", purpose, extra)
        need("ada_url", purpose, extra)
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="cocite-html")
        self._idle: SimpleQueue[_Parser] = SimpleQueue()
        self._parsers = [_Parser() for _ in range(threads)]
        for parser in self._parsers:
            self._idle.put(parser)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown(cancel_futures=True)
        for parser in self._parsers:
            parser.end()

    def parsed(self, pages: Iterable[HtmlPage]) -> Iterator[Parsed]:
        """What is on each page, in the same order."""
        waiting: deque[Future[Parsed]] = deque()
        for page in pages:
            waiting.append(self._pool.submit(self._parse, page))
            if len(waiting) >= self._threads * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _parse(self, page: HtmlPage) -> Parsed:
        parser = self._idle.get()
        try:
            found, why = parser.parse(page)
        finally:
            self._idle.put(parser)
        return Parsed(page.key, found, why)


class _Parser:
    """One process that parses."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, page: HtmlPage) -> tuple[dict[str, Any] | None, str]:
        """What was found, or why nothing was."""
        process = self._process or self._begin()
        assert process.stdin is not None
        assert process.stdout is not None
        request = json.dumps({"url": page.url, "charset": page.charset}).encode() + b"\n"
        size = len(request) + len(page.content)
        try:
            process.stdin.write(size.to_bytes(8, "little") + request + page.content)
            process.stdin.flush()
            poll = select.poll()
            poll.register(process.stdout, select.POLLIN)
            if not poll.poll(_PATIENCE * 1000):
                self.end()
                return None, f"its parser took more than {_PATIENCE:.0f} seconds"
            answer = process.stdout.read(int.from_bytes(process.stdout.read(8), "little"))
            if answer:
                found: dict[str, Any] = json.loads(answer)
                return found, ""
        except BrokenPipeError:
            pass
        self.end()
        return None, "its parser died"

    def _begin(self) -> subprocess.Popen[bytes]:
        self._process = run_script(_SCRIPT)
        return self._process

    def end(self) -> None:
        """Let it go, or see that it goes."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(BrokenPipeError):
                        stream.close()
            process.wait()


# -- reader ------------------------------------------------------------------------------


_EVERYWHERE = 0.9
_LEAST_PAGES = 10
_ASKED = 100
"""Pages whose canonical links tell where the site is published."""


@dataclass
class PagesFound(Found):
    """What was found on pages. ``links`` are those between them, by their tags; ``others`` all the
    other ones, by where they lead; ``left_out`` files or records, by what they are.
    """

    pages: int = 0
    links: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    copies: int = 0

    def counts(self, between: str = "") -> str:
        """Return the end of a line for people: ``; 1,855 links between them (...), ...``."""
        kinds = [f"{count:,} by {tag}" for tag, count in self.links.items() if count]
        text = f"; {sum(self.links.values()):,} links{between}"
        text += f" ({', '.join(kinds)})" if len(kinds) > 1 else ""
        text += f"; {_listed(self.others)}" if self.others else ""
        return text + (f"; left out: {_listed(self.left_out)}" if self.left_out else "")


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


@dataclass
class SiteFound(PagesFound):
    """What was found in a folder of pages, published at the URL ``site``."""

    site: str = ""

    def describe(self) -> str:
        """Return one line for people."""
        text = f"{self.file}: {self.pages:,} HTML pages"
        text += f" of {self.site}" if self.site else ""
        text += f", and {self.copies:,} copies of some of them" if self.copies else ""
        return text + self.counts(" between them")


def _read_folder(job: Job) -> Read:
    """The links between pages, and the pages."""
    if job.source.path is None or not job.source.is_directory:
        raise UnrecognizedInput(
            f"{job.source.label} is a file. HTML is read as a folder, a whole site: name that"
        )
    return read_site(job, Site(Folder(job.source.path)))


READER = FormatReader(
    "a folder of HTML pages",
    "a folder of HTML pages, a static site: links as a browser follows them",
    _read_folder,
    streams=False,
    restricts=True,
    columns=False,
)


def read_site(job: Job, site: Site) -> Read:
    """The links between the pages of a site, and the pages."""
    if not site.pages:
        raise UnrecognizedInput(f"{job.source.label} holds no HTML page")
    if job.wanted == 1:
        return clean_rows(job, READER.title, ((page,) for page in site.pages))
    with Pages(job.threads, "reading HTML") as pages:
        return _SiteRead(job, site, pages).run()


class _SiteRead:
    """One folder, read."""

    def __init__(self, job: Job, site: Site, pages: Pages) -> None:
        self._job, self._site, self._pages = job, site, pages
        self._chosen = job.options.pages
        self._found = SiteFound(job.source.label, integers=False)
        self._others: Counter[str] = Counter()
        self._links: Counter[str] = Counter()
        self._spool = job.scratch / "pages.jsonl"
        self._same: dict[str, str] = {}
        self._real: dict[str, str] = {}
        self._gone: set[str] = set()
        self._unlisted: frozenset[str | None] = frozenset()

    def run(self) -> Read:
        job, site, found = self._job, self._site, self._found
        root = self._chosen.site or self._published()
        if root:
            site.root = found.site = root if root.endswith("/") else root + "/"
        self._parse()
        self._find_duplicates()
        here = [page for page in site.pages if page not in self._gone]
        own = [page for page in here if self._real.get(page, page) == page]
        if self._chosen.listed:
            own = self._restrict(own)
        found.pages, found.copies = len(own), len(here) - len(own)
        everywhere = self._everywhere() if self._chosen.links == "main" else frozenset()
        read = clean_rows(replace(job, progress=no_progress), READER.title, self._rows(everywhere))
        nodes_job = replace(
            job, wanted=1, scratch=job.scratch / "nodes", options=job.options.for_nodes()
        )
        disk.make_own_folder(nodes_job.scratch)
        nodes = clean_rows(nodes_job, READER.title, ((page,) for page in own))
        found.rows, found.bad_rows = read.found.rows, read.found.bad_rows | nodes.found.bad_rows
        found.examples = (read.found.examples + nodes.found.examples)[:EXAMPLES]
        found.links = {tag: self._links[tag] for tag in TAGS}
        found.others = dict(sorted(self._others.items()))
        found.left_out = dict(sorted(site.left_out.items()))
        # Pages may be called as integers are: they are text all the same.
        return Read(clean_relation(job, False), found, clean_relation(nodes_job, False))

    # -- parsing ------------------------------------------------------------------------

    def _read(self, paths: Iterable[str]) -> Iterator[HtmlPage]:
        """The pages that are there and are HTML."""
        for path in paths:
            try:
                content = self._site.tree.read(path, LARGEST + 1)
            except (FileNotFoundError, NotADirectoryError):
                self._leave_out(path, "gone while it was read")
                continue
            except OSError as error:
                raise InputError(
                    f"{self._job.source.label}: {path} cannot be read: {error.strerror}"
                ) from error
            if len(content) > LARGEST:
                self._leave_out(path, f"page of more than {LARGEST:,} bytes")
                continue
            if b"\0" in content[:1024] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
                self._leave_out(path, "binary file called HTML")
                continue
            yield HtmlPage(path, self._site.url_of(path), content)

    def _leave_out(self, path: str, why: str) -> None:
        self._site.left_out[why] += 1
        self._gone.add(path)
        self._job.report(path, why, "", "")

    def _published(self) -> str:
        """The URL of the folder on which canonical links agree; "" if there are none."""
        paths = self._site.pages
        some = paths[:: max(1, len(paths) // _ASKED)][:_ASKED]
        votes = Counter[str]()
        seen = self._site.left_out.copy(), set(self._gone)
        quiet, self._job = self._job, replace(self._job, report=lambda *row: None)
        for parsed in self._pages.parsed(self._read(some)):
            url = parsed.found["same"].get("canonical", "") if parsed.found else ""
            if url and not self._site.is_inside(url):
                votes[_root(url, parsed.key)] += 1
        self._job = quiet
        self._site.left_out, self._gone = seen
        if not votes:
            return ""
        root, count = votes.most_common(1)[0]
        return root if count * 2 > votes.total() else ""

    def _parse(self) -> None:
        """Write what is on the pages to the scratch file."""
        total = len(self._site.pages)
        stage = "parsing " + self._job.source.short
        with disk.rewrite(self._spool) as out:
            for done, parsed in enumerate(self._pages.parsed(self._read(self._site.pages)), 1):
                if parsed.found is None:
                    self._site.left_out[f"page of which {parsed.why}"] += 1
                    self._job.report(parsed.key, parsed.why, "", "")
                    continue
                same = parsed.found.pop("same")
                kinds = ("refresh", "canonical") if self._chosen.canonical else ()
                for url in (same[kind] for kind in kinds if kind in same):
                    if self._site.is_inside(url) and parsed.key not in self._same:
                        self._same[parsed.key] = url
                disk.write(out, f"{json.dumps([parsed.key, parsed.found])}\n".encode())
                self._job.progress(stage, done, total)

    def _spooled(self) -> Iterator[tuple[str, dict[str, Any]]]:
        with self._spool.open(encoding="ascii") as file:
            for line in file:
                page, found = json.loads(line)
                yield page, found

    # -- copies, and what stands everywhere ---------------------------------------------

    def _find_duplicates(self) -> None:
        """Which page each copy is, at the end of what they say; in a circle they are themselves."""
        step = {page: self._site.page_at(url) for page, url in self._same.items()}
        for page, named in step.items():
            path, at = [page], named
            while at and at not in path and at not in self._gone:
                path.append(at)
                at = step.get(at)
            if at not in path:
                self._real[page] = path[-1]

    def _restrict(self, own: list[str]) -> list[str]:
        """Those pages that are listed, also by other names; the others are none."""
        source, skip = Source(Path(self._chosen.listed)), self._job.options.bad_rows != "stop"
        urls = read_listed(source, base=self._site.root, skip=skip).pages
        found = {url: self._target(url) if self._leads_inside(url) else None for url in urls}
        here = set(found.values())
        lost = [url for url, page in found.items() if not page]
        if not here - {None, ""}:
            raise UnrecognizedInput(
                f"none of the {len(urls):,} pages that {source.label} names is in "
                f"{self._found.file}. Say where the folder is published: --site URL"
            )
        if lost:
            self._site.left_out["listed pages that are not there"] = len(lost)
        for url in lost:
            self._job.report(url, "listed, and not there", "", "")
        self._unlisted = frozenset(own) - here
        return [page for page in own if page in here]

    def _target(self, url: str | None) -> str | None:
        """The page to which a URL leads; "" if that is a file but no page, None if nothing."""
        page = self._site.page_at(url) if url else None
        page = self._real.get(page, page) if page else page
        return None if page in self._gone else page

    def _everywhere(self) -> frozenset[str]:
        """Pages to which nearly all pages link."""
        counts: Counter[str] = Counter()
        for _, found in self._spooled():
            links = (url for _, main, url, _ in found["links"] if main and self._leads_inside(url))
            counts.update({page for page in map(self._target, links) if page})
        least = max(_LEAST_PAGES, _EVERYWHERE * self._found.pages)
        return frozenset(page for page, count in counts.items() if count >= least)

    # -- rows ---------------------------------------------------------------------------

    def _leads_inside(self, url: str | None) -> bool:
        return url is not None and self._site.is_inside(url)

    def _rows(self, everywhere: frozenset[str]) -> Iterator[tuple[str, str]]:
        """The links between pages; all others are counted."""
        others, links, chosen = self._others, self._links, self._chosen
        for name, found in self._spooled():
            page = self._real.get(name, name)
            if page in self._unlisted:
                continue
            if page == name:
                self._job.titles.add(page, found["title"])
            for number, main, url, written in found["links"]:
                tag = TAGS[number]
                if tag not in chosen.tags:
                    others[f"by {tag}, which are not asked for"] += 1
                elif chosen.links == "main" and not main:
                    others["in navigation"] += 1
                elif url is None:
                    others["malformed"] += 1
                    self._job.report(name, "malformed", written, "")
                elif not self._leads_inside(url):
                    if not url.startswith(("http:", "https:")):
                        others["to no web page (mailto: and so on)"] += 1
                        continue
                    others["to other sites"] += 1
                    if chosen.external:
                        yield page, url
                else:
                    target = self._target(url)
                    if target is None:
                        others["broken"] += 1
                        self._job.report(name, "broken", written, url.removeprefix(HERE))
                    elif not target:
                        others["to files that are no pages"] += 1
                    elif target in self._unlisted:
                        others["to pages that are not listed"] += 1
                    elif target in everywhere:
                        others["to pages that all pages link to"] += 1
                    else:
                        links[tag] += 1
                        yield page, target


def _root(url: str, path: str) -> str:
    """The URL of a folder in which the page at ``path`` has this URL; "" if it cannot have it."""
    from urllib.parse import quote

    folder, _, file = quote(path).rpartition("/")
    stem = os.path.splitext(file)[0]
    plain = url.partition("?")[0].rstrip("/") if stem == "index" else url.partition("?")[0]
    inside = f"{folder}/" if folder else ""
    for end in (inside + file, inside + stem, inside + stem + "/"):
        if plain.endswith("/" + end):
            return plain[: -len(end)]
    if stem == "index" and (not folder or plain.endswith("/" + folder)):
        root = plain[: len(plain) - len(folder)]
        return root if root.endswith("/") else root + "/"
    return ""


# -- broken ------------------------------------------------------------------------------


TITLES = ("page", "what", "written", "leads to")
_FULL = 1 << 20


@contextmanager
def report_to(path: str, overwrite: bool) -> Iterator[Reported]:
    """What adds a row to the file at ``path``; nothing is written if that is empty.

    Raises :class:`~cocite.errors.OutputExists` before anything is done.
    """
    if not path:
        yield no_report
        return
    where = check_file(Path(path), overwrite)
    text = io.StringIO(newline="")
    rows = csv.writer(text, delimiter="," if path.endswith(".csv") else "\t", lineterminator="\n")

    with staged_file(where) as file:

        def write() -> None:
            disk.write(file, text.getvalue().encode("utf-8", "backslashreplace"))
            text.seek(0)
            text.truncate()

        def add(page: str, what: str, written: str, url: str) -> None:
            rows.writerow([" ".join(field.split()) for field in (page, what, written, url)])
            if text.tell() > _FULL:
                write()

        rows.writerow(TITLES)
        yield add
        write()
