"""Lists of related pages in the pages of a folder of HTML, and out of them again.

    folder -> links of its pages -> related pages of each -> bytes inserted at a place of the page
    FOLDER/.cocite-site.json       digests of each page with a list: before, and with it

A list is one element, which is known by an attribute. To insert is to cut the old one first, so a
second run writes the same bytes, and to remove is to cut: all other bytes stay. The manifest tells
whether a page is then what it was before the first list. It names no file to read or write: pages
are those in the folder. Links of the file system are not followed. A page is written beside its
place, keeps its mode, and stays as it is if it changed since it was read.

Cost: two passes over the pages, beside those of their links.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import numpy as np
import xxhash

from cocite.errors import OutputExists, UsageError
from cocite.graph import Graph
from cocite.integrations.blocks import related_list, relative_url, short_titles
from cocite.integrations.html_places import (
    MARK,
    PageRefused,
    Place,
    place_in,
    selector_of,
    without_list,
)
from cocite.integrations.results import SiteDocument
from cocite.integrations.sites import everywhere, related_pages
from cocite.io.ingest import ingest
from cocite.io.readers.html.page import joined
from cocite.io.readers.html.site import HERE, LARGEST, Site
from cocite.options.site import SiteOptions
from cocite.storage import disk, staged_file, staged_folder

MANIFEST = ".cocite-site.json"
_JSON = "related.json"
_KIND = "site"
Progress = Callable[[str, int, int], None]
Listed = list[tuple[str, str, str]]
"""(path, title, URL) of each page of a list."""


@dataclass(frozen=True)
class RelatedSite:
    """A folder of pages, whose links are in ``graph``; the pages related to each; all titles."""

    site: Site
    options: SiteOptions
    related: Mapping[str, list[str]]
    titles: Mapping[str, str]
    graph: Graph
    hubs: tuple[str, ...]

    def listed(self, page: str, base: str | None = None) -> Listed:
        """What the list of a page has; URLs are seen from it, or from its ``<base>``."""
        others = self.related.get(page, [])
        here = _seen_from(self.site, page, base) if others else ""
        return [(o, self.titles[o], relative_url(here, self._url(o))) for o in others]

    def _url(self, page: str) -> str:
        folder = page.removesuffix("index.html")
        short = self.options.directory_urls and (not folder or folder.endswith("/"))
        return quote(folder if short else page)


def relate(
    folder: Path, options: SiteOptions, progress: Progress, **means: int | None
) -> RelatedSite:
    """Read the links of a folder of pages, and find the pages related to each. ``means`` are
    threads and memory.
    """
    from cocite.search import build

    kept = None if options.index is None else Path(options.index)
    if kept is not None and kept.resolve().is_relative_to(folder.resolve()):
        raise UsageError(f"index is {options.index}, in the folder of pages: name a place beside")
    graph = ingest(
        str(folder),
        input_format="html",
        links=options.links,
        site=options.site,
        progress=progress,
        **means,
    )
    names = [str(name) for name in graph.names.stored.names(np.arange(graph.nodes))]
    texts = graph.titles.of(np.arange(graph.nodes)) if graph.titles else [""] * len(names)
    links = {
        name: [names[to] for to in graph.out_neighbors(number)]
        for number, name in enumerate(names)
        if not any(fnmatch(name, pattern) for pattern in options.exclude)
    }

    def index_of(pairs: list[tuple[str, str]], measure: str | None) -> Any:
        places = (None, None) if kept is None else (kept / "graph", kept / "index")
        stored = ingest(pairs, places[0], titles=titles, overwrite=options.overwrite, **means)
        report = lambda done, total: progress("indexing", done, total)  # noqa: E731
        again = {"overwrite": options.overwrite, "measure": measure}
        return build(stored, places[1], progress=report, **again, **means)

    titles = short_titles(
        {n: t or PurePosixPath(n).stem for n, t in zip(names, texts, strict=True)}
    )
    found = related_pages(
        links, options.k, measure=options.measure, min_score=options.min_score, index_of=index_of
    )
    site = Site(folder)
    site.root = HERE if options.site is None else options.site.rstrip("/") + "/"
    return RelatedSite(site, options, found, titles, graph, tuple(sorted(everywhere(links))))


def _seen_from(site: Site, page: str, base: str | None) -> str:
    """The URL against which those on a page are resolved, from the root of the site."""
    found = None if base is None else joined(base, site.url_of(page))
    if found is None:
        return quote(page)
    if not site.is_inside(found):
        raise PageRefused(
            "its <base> leads out of the folder; say where that is published, with --site"
        )
    inside = found.partition("://")[2].removeprefix(site.root.partition("://")[2])
    return inside.partition("?")[0]


# -- pages ---------------------------------------------------------------------------------


@dataclass
class _Run:
    """What is done to the pages of a folder, and what came of it."""

    site: Site
    options: SiteOptions
    change: Callable[[str, bytes], tuple[bytes, Place | None, Listed]]
    manifest: Mapping[str, Any]
    left_alone: dict[str, str] = field(default_factory=dict)
    places: Counter[str] = field(default_factory=Counter)
    edited: list[str] = field(default_factory=list)
    links = listed = changed = restored = 0
    shown: tuple[str, str] | None = None

    def plan(self) -> dict[str, list[str]]:
        """See what becomes of each page; the digests of those with a list. Nothing is written."""
        found = {}
        for page, content, bare, changed, place, listed in self._each():
            if place is not None:
                found[page] = [_digest(bare), _digest(changed)]
                self.places[place.where] += 1
                self.listed += 1
                self.links += len(listed)
            if bare != content and place is None:
                before = self.manifest.get(page, [None])[0]
                self.restored += before == _digest(bare)
                self.edited += [page] * (before != _digest(bare))
            wanted = self.options.page in (None, page)
            if wanted and self.shown is None and (changed != content or self.options.page):
                self.shown = page, _difference(content, changed)
        if self.options.page is not None and self.shown is None:
            why = self.left_alone.get(self.options.page, "there is no such page in the folder")
            raise UsageError(f"page is {self.options.page!r}: {why}")
        return found

    def write(self, progress: Progress) -> None:
        """Write the pages that change."""
        for done, (page, content, _, changed, *_) in enumerate(self._each(), 1):
            if changed != content:
                why = _replace(self.site, page, content, changed)
                self.left_alone |= {page: why} if why else {}
                self.changed += not why
            progress("writing pages", done, len(self.site.pages))

    def _each(self) -> Iterator[tuple[str, bytes, bytes, bytes, Place | None, Listed]]:
        """Of each page its bytes as they are, without a list, and as they are to be."""
        for page in self.site.pages:
            try:
                content = self.site.read(page, LARGEST + 1)
                if len(content) > LARGEST:
                    raise PageRefused(f"page of more than {LARGEST:,} bytes")
                bare = without_list(content)
                yield (page, content, bare, *self.change(page, bare))
            except PageRefused as error:
                self.left_alone[page] = str(error)
            except OSError as error:
                self.left_alone[page] = f"cannot be read: {error.strerror}"

    def document(self, folder: Path, hubs: tuple[str, ...] = ()) -> SiteDocument:
        """What came of it."""
        page, shown = self.shown if self.shown and self.options.dry_run else (None, None)
        return SiteDocument(
            folder=str(folder),
            dry_run=self.options.dry_run,
            pages=len(self.site.pages),
            listed=self.listed,
            links_listed=self.links,
            changed=self.changed,
            places=dict(self.places),
            hubs=hubs,
            left_alone=self.left_alone,
            restored=self.restored,
            edited=tuple(self.edited),
            output=None,
            shown_page=page,
            shown=shown,
        )


def insert_lists(found: RelatedSite, progress: Progress) -> SiteDocument:
    """Put a list into each page with related ones, in the place of the one that is there."""
    options = found.options
    selector = selector_of(options.selector) if options.selector else ()

    def change(page: str, bare: bytes) -> tuple[bytes, Place | None, Listed]:
        if not found.related.get(page):
            return bare, None, []
        place = place_in(bare, selector)
        listed = found.listed(page, place.base)
        pairs = [(title, url) for _, title, url in listed]
        text = related_list(
            options.heading, pages=pairs, attributes=f' {MARK}=""', style=options.style
        )
        return bare[: place.offset] + text.encode() + bare[place.offset :], place, listed

    run = _Run(found.site, options, change, _manifest(found.site))
    digests = run.plan()
    if not options.dry_run:
        _save_manifest(found.site, digests)
        run.write(progress)
    return run.document(found.site.path, found.hubs)


def remove_lists(folder: Path, options: SiteOptions, progress: Progress) -> SiteDocument:
    """Cut the lists out of the pages of a folder, and remove the manifest."""
    site = Site(folder)
    run = _Run(site, options, lambda page, bare: (bare, None, []), _manifest(site))
    run.plan()
    if not options.dry_run:
        run.write(progress)
        if not run.left_alone:
            disk.remove(site.path / MANIFEST)
    return run.document(folder)


def _digest(content: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(content)


def _difference(old: bytes, new: bytes) -> str:
    """The bytes that go, a line each behind ``-``, and those that come, behind ``+``; the line
    before them.
    """
    same = _common(old, new)
    same -= old[same - 1 : same] == b"<"  # which a list begins with, too
    end = _common(old[same:][::-1], new[same:][::-1])
    parts = {
        " ": old[:same].splitlines()[-1:],
        "-": old[same : len(old) - end].splitlines(),
        "+": new[same : len(new) - end].splitlines(),
    }
    lines = [
        sign + line.decode("utf-8", "backslashreplace") for sign in parts for line in parts[sign]
    ]
    return "\n".join([f"@@ byte {same:,} @@", *lines])


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _replace(site: Site, page: str, old: bytes, new: bytes) -> str:
    """Write a page beside its place and rename it; or say why not."""
    path = site.path / page
    try:
        inside = Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(site.path))
        found = path.lstat()
        if not inside or not stat.S_ISREG(found.st_mode) or site.read(page, LARGEST + 1) != old:
            return "changed while it was read"
        with staged_file(path) as file:
            disk.write(file, new)
            with suppress(PermissionError):
                os.fchown(file.fileno(), found.st_uid, found.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode))
    except FileNotFoundError:
        return "gone while it was read"
    return ""


def _manifest(site: Site) -> Mapping[str, Any]:
    """Page -> digests; empty if there is no manifest, or a damaged one."""
    try:
        found = json.loads(site.read(MANIFEST, 1 << 30))
        pages = found["pages"] if found["cocite"] == _KIND else {}
        return {page: each for page, each in pages.items() if isinstance(each, list) and each}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _save_manifest(site: Site, digests: Mapping[str, list[str]]) -> None:
    with staged_file(site.path / MANIFEST) as file:
        disk.write(file, _json({"cocite": _KIND, "pages": digests}))


# -- for generators ------------------------------------------------------------------------


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def write_json(found: RelatedSite, folder: Path) -> SiteDocument:
    """Write the lists as JSON, one file for all pages, by their URLs, and one for each.

    Raises :class:`OutputExists` for a folder that holds anything else.
    """
    if folder.resolve() == found.site.path.resolve():
        raise UsageError(f"json is {folder}, the folder of the pages: name another one")
    _check_folder(folder, found.options.overwrite)
    each: dict[str, dict[str, Any]] = {}
    for page in found.site.pages:
        listed = [{"path": p, "title": t, "url": u} for p, t, u in found.listed(page)]
        url = "/" + (
            page.removesuffix("index.html") if PurePosixPath(page).name == "index.html" else page
        )
        if listed:
            each[page] = {"path": page, "title": found.titles[page], "url": url, "related": listed}
    run = _Run(found.site, found.options, lambda page, bare: (bare, None, []), {})
    run.listed, run.links = len(each), sum(len(page["related"]) for page in each.values())
    shown = found.options.page or next(iter(each), "")
    if found.options.dry_run and shown in each:
        run.shown = shown, _json(each[shown]).decode()
    if not found.options.dry_run:
        with staged_folder(folder) as made:
            for page, content in each.items():
                path = made / "files" / "pages" / f"{page}.json"
                disk.make_own_folder(path.parent)
                with disk.create(path) as file:
                    disk.write(file, _json(content))
            disk.make_own_folder(made / "files")
            by_url = {page["url"]: page["related"] for page in each.values()}
            with disk.create(made / "files" / _JSON) as file:
                disk.write(file, _json({"cocite": _KIND, "pages": by_url}))
            if folder.exists():
                disk.exchange(made / "files", folder)
            else:
                disk.rename(made / "files", folder)
    return replace(run.document(found.site.path, found.hubs), output=str(folder))


def _check_folder(folder: Path, overwrite: bool) -> None:
    """See that lists may be written there; raises :class:`OutputExists`."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise OutputExists(f"{folder} is no folder. Choose another output")
    names = set(os.listdir(folder)) if folder.exists() else set()
    if names and (names - {_JSON, "pages"} or _JSON not in names):
        raise OutputExists(f"{folder} holds other things than such lists. Choose another output")
    if names and not overwrite:
        raise OutputExists(f"{folder} exists. Choose another output, or pass --overwrite")
