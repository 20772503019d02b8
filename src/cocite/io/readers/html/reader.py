"""A folder of HTML pages: a static site, linked as a browser sees it.

    site.py: which files are pages -> page.py: the links on them -> ../crawl/captures.py: rows

A node is the path of a page in the folder; all pages are nodes, and every link that stands on one
is a row, so that ``--count-duplicates`` counts them. The URL at which the site is published, by
which links are inside too, is what was chosen, else what the canonical links of some pages agree
on. A page whose canonical link or ``refresh`` leads to another page of the folder is that page.
``--links main`` leaves navigation out: what stands in its elements, and links to pages to which 9
in 10 pages of the site link, ten at least.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

from cocite.errors import InputError, MalformedRow, UnrecognizedInput
from cocite.graph.spelling import refused_in
from cocite.io.readers.contract import FormatReader, Job, Read, no_report
from cocite.io.readers.crawl.captures import ERROR, OTHER, Captures, CrawlRules, PagesFound
from cocite.io.readers.html.parsers import HtmlPage, Pages
from cocite.io.readers.html.site import HERE, LARGEST, Site
from cocite.io.readers.rows import clean_rows

_SAMPLED = 100
"""Pages whose canonical links tell where the site is published."""


def _read_folder(job: Job) -> Read:
    """The links between pages, and the pages."""
    if job.source.path is None or not job.source.is_directory:
        raise UnrecognizedInput(
            f"{job.source.label} is a file. HTML is read as a folder, a whole site: name that"
        )
    return read_site(job, Site(job.source.path))


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
    found = PagesFound(job.source.label, integers=False)
    _refuse_names(job, site, found)
    with Pages(job.threads, "reading HTML") as pages:
        root = job.options.site or _published(job, site, pages)
        if root:
            site.root = found.site = root if root.endswith("/") else root + "/"
        with _captures_of(job, site, found) as captures:
            captures.parse(pages, _pages(job, site, captures))
            captures.left_out += site.left_out
            return captures.finish()


def _captures_of(job: Job, site: Site, found: PagesFound) -> Captures:
    """Captures whose nodes are pages of the site by their paths, and other pages by URL."""

    def name(url: str) -> str:
        page = site.page_at(url) if site.is_inside(url) else url
        if page:
            return page
        captures.add(ERROR if page is None else OTHER, url)
        return url

    rules = CrawlRules(
        name,
        site.is_inside,
        external="to other sites",
        base=site.root,
        advice=". Say where the folder is published: --site URL",
        hidden=HERE,
    )
    captures = Captures(job, found, rules)  # `name` above adds to it
    return captures


def _refuse_names(job: Job, site: Site, found: PagesFound) -> None:
    """Leave out pages whose paths are no names; raises :class:`MalformedRow`."""
    bad = [(number, path) for number, path in enumerate(site.pages, 1) if refused_in(path)]
    for number, path in bad:
        what = f"{refused_in(path)} in a name"
        if job.options.bad_rows == "stop":
            raise MalformedRow(job.source.label, number, what, path)
        found.leave_out(what, 1, [f"page {number}: {path!r}"])
    site.remove(path for _, path in bad)


def _pages(job: Job, site: Site, captures: Captures) -> Iterator[HtmlPage]:
    """The pages that are there and are HTML."""
    stage, total = "parsing " + job.source.short, len(site.pages)
    for done, path in enumerate(site.pages, 1):
        content = _content(job, site, path)
        if isinstance(content, str):
            captures.leave_out(path, content)
            captures.add(ERROR, path)
        else:
            yield HtmlPage((path, ""), site.url_of(path), content)
        job.progress(stage, done, total)


def _content(job: Job, site: Site, path: str) -> bytes | str:
    """A page, or why it is left out."""
    try:
        content = site.read(path, LARGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return "gone while it was read"
    except OSError as error:
        raise InputError(f"{job.source.label}: {path} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST:
        return f"page of more than {LARGEST:,} bytes"
    if b"\0" in content[:1024] and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "binary file called HTML"
    return content


def _published(job: Job, site: Site, pages: Pages) -> str:
    """The URL of the folder on which canonical links of some pages agree; "" if there is none."""
    job, votes = replace(job, report=no_report), Counter[str]()
    some = site.pages[:: max(1, len(site.pages) // _SAMPLED)][:_SAMPLED]
    read = ((path, _content(job, site, path)) for path in some)
    each = (HtmlPage(p, site.url_of(p), c) for p, c in read if isinstance(c, bytes))
    for parsed in pages.parsed(each):
        url = parsed.found["same"].get("canonical", "") if parsed.found else ""
        if url and not site.is_inside(url):
            votes[_root(url, parsed.key)] += 1
    root, count = votes.most_common(1)[0] if votes else ("", 0)
    return root if count * 2 > votes.total() else ""


def _root(url: str, path: str) -> str:
    """The URL of a folder in which the page at ``path`` has this URL; "" if it cannot have it."""
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
