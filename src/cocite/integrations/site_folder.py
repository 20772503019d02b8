"""Insert lists of related pages into a folder of HTML pages, and remove them.

    folder -> links between its pages -> related pages -> a list inserted into each page
    FOLDER/.cocite-site.json       for each page with a list: digests without and with it

A list is one element with a marking attribute. Inserting first removes the old list, so a second
run writes the same bytes; removing leaves all other bytes unchanged. The manifest serves only to
check whether a page without its list is as it was before its first list.

Symbolic links are not followed. Pages are replaced atomically and keep their mode; a page that
changed after it was read is skipped. The next run removes temporary files of a
killed run.

Makes two passes over the pages, after reading their links.
"""

from __future__ import annotations

import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np
import xxhash

from cocite.errors import OutputExists, UsageError
from cocite.graph import Graph
from cocite.integrations.html_places import (
    MARK,
    PageRefused,
    Place,
    place_in,
    related_list,
    relative_url,
    selector_of,
    short_titles,
    without_list,
)
from cocite.integrations.sites import everywhere, related_pages
from cocite.io.ingest import ingest
from cocite.io.readers.html.page import joined
from cocite.io.readers.html.site import HERE, LARGEST, Site
from cocite.options.site import SiteOptions
from cocite.results import Document
from cocite.storage import check_folder, disk, staged_file, staged_folder
from cocite.storage.atomic import sweep_staged

MANIFEST = ".cocite-site.json"
_JSON = "related.json"
_KIND = "site"
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class RelatedSite:
    """A folder of pages: their links (``graph``), titles, and related pages."""

    site: Site
    options: SiteOptions
    related: Mapping[str, list[str]]
    titles: Mapping[str, str]
    graph: Graph
    hubs: tuple[str, ...]

    def listed(self, page: str, base: str | None = None) -> list[tuple[str, str, str]]:
        """Return (path, title, relative URL) for each page in the list on ``page``."""
        others = self.related.get(page, [])
        here = _base_url(self.site, page, base) if others else ""
        urls = map(_folder_url, others) if self.options.directory_urls else others
        return [
            (other, self.titles[other], relative_url(here, quote(url)))
            for other, url in zip(others, urls, strict=True)
        ]


def _folder_url(page: str) -> str:
    """Return the path of a page; for an index page, the path of its folder."""
    folder, slash, name = page.rpartition("/")
    return folder + slash if name == "index.html" else page


def relate(
    folder: Path, options: SiteOptions, progress: Progress, **means: int | None
) -> RelatedSite:
    """Read the links between a folder's pages, and find the related pages of each page."""
    from cocite.search import build

    kept = None if options.index is None else Path(options.index)
    if kept is not None and kept.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"index is {options.index}, inside the folder of pages; choose a path outside it"
        )
    reading: dict[str, Any] = {"links": options.links, "site": options.site, **means}
    graph = ingest(str(folder), input_format="html", progress=progress, **reading)
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


def _base_url(site: Site, page: str, base: str | None) -> str:
    """Return a page's base for relative URLs, relative to the site's root."""
    found = None if base is None else joined(base, site.url_of(page))
    if found is None:
        return quote(page)
    if not site.is_inside(found):
        raise PageRefused(
            "its <base> is outside the site; pass the URL of the published folder with --site "
            "(site=...)"
        )
    inside = found.partition("://")[2].removeprefix(site.root.partition("://")[2])
    return inside.partition("?")[0]


class _Change(NamedTuple):
    """A page's bytes before the run, without a list, and after the run; the position of the new
    list, and its number of links.
    """

    page: str
    content: bytes
    bare: bytes
    new: bytes
    place: Place | None
    links: int


Change = Callable[[str, bytes], tuple[bytes, Place | None, int]]
"""Function from (page, bytes without a list) to (new bytes, list's position, number of links)."""


def insert_lists(found: RelatedSite, progress: Progress) -> SiteDocument:
    """Insert or replace the list in each page that has related pages."""
    options = found.options
    selector = () if options.selector is None else selector_of(options.selector)

    def change(page: str, bare: bytes) -> tuple[bytes, Place | None, int]:
        if not found.related.get(page):
            return bare, None, 0
        place = place_in(bare, selector)
        pairs = [(title, url) for _, title, url in found.listed(page, place.base)]
        text = related_list(options.heading, pairs, f' {MARK}=""', options.style).encode()
        return bare[: place.offset] + text + bare[place.offset :], place, len(pairs)

    done = _apply(found.site, change, options.dry_run, progress)
    return replace(done, hubs=found.hubs)


def remove_lists(folder: Path, options: SiteOptions, progress: Progress) -> SiteDocument:
    """Remove the lists from a folder's pages."""
    return _apply(Site(folder), lambda page, bare: (bare, None, 0), options.dry_run, progress)


def _apply(site: Site, change: Change, dry_run: bool, progress: Progress) -> SiteDocument:
    """Compute all changes; unless ``dry_run``, write the manifest, then the pages."""
    before = _manifest(site)
    places, left, edited = Counter[str](), dict[str, str](), list[str]()
    digests, restored, links, written = dict[str, list[str]](), 0, 0, 0
    shown: tuple[str | None, str | None] = None, None
    for each in _changes(site, change, left):
        if each.place is not None:
            digests[each.page] = [*map(xxhash.xxh3_128_hexdigest, (each.bare, each.new))]
            places[each.place.where] += 1
            links += each.links
        elif each.bare != each.content:
            same = before.get(each.page, [""])[0] == xxhash.xxh3_128_hexdigest(each.bare)
            restored += same
            edited += [each.page] * (not same)
        if each.new != each.content and shown[0] is None and dry_run:
            shown = each.page, _difference(each.content, each.new)
    listed = len(digests)
    digests |= {page: before[page] for page in left if page in before}
    if not dry_run:
        _sweep(site)
        if digests:
            with staged_file(site.path / MANIFEST) as file:
                disk.write(file, _json({"cocite": _KIND, "pages": digests}))
        for done, each in enumerate(_changes(site, change, left), 1):
            if each.new != each.content:
                written += _replace(site, each, left)
            progress("writing pages", done, len(site.pages))
        if not digests and not left:
            disk.remove(site.path / MANIFEST)
    counts = (len(site.pages), listed, links, written, places)
    return SiteDocument(str(site.path), dry_run, *counts, (), left, restored, edited, *shown)


def _sweep(site: Site) -> None:
    """Remove temporary files that a killed run left next to the pages."""
    folders = {"": [MANIFEST]}
    for page in site.pages:
        folder, _, name = page.rpartition("/")
        folders.setdefault(folder, []).append(name)
    for folder, names in folders.items():
        if _is_inside(site.path / folder, site):
            sweep_staged(site.path / folder / names[0], *names[1:])


def _is_inside(folder: Path, site: Site) -> bool:
    """Return whether a folder is inside the site, with symbolic links resolved."""
    return Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(site.path))


def _changes(site: Site, change: Change, left: dict[str, str]) -> Iterator[_Change]:
    """Yield each page's change; record skipped pages in ``left``, with the reason."""
    for page in site.pages:
        try:
            content = site.read(page, LARGEST + 1)
            if len(content) > LARGEST:
                raise PageRefused(f"larger than {LARGEST:,} bytes")
            bare = without_list(content)
            yield _Change(page, content, bare, *change(page, bare))
        except PageRefused as error:
            left[page] = str(error)
        except OSError as error:
            left[page] = f"cannot be read: {error.strerror}"


def _difference(old: bytes, new: bytes) -> str:
    """Return a diff: the line before the change, removed lines (-), added lines (+)."""
    same = _common(old, new)
    same -= old[same - 1 : same] == b"<"  # a list begins with <, like the text after it
    end = _common(old[same:][::-1], new[same:][::-1])
    parts = {
        " ": old[:same].splitlines()[-1:],
        "-": old[same : len(old) - end].splitlines(),
        "+": new[same : len(new) - end].splitlines(),
    }
    lines = [sign.encode() + line for sign in parts for line in parts[sign]]
    text = b"\n".join(lines).decode("utf-8", "backslashreplace")
    return f"@@ byte {same:,} @@\n{text}"


def _common(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _replace(site: Site, change: _Change, left: dict[str, str]) -> bool:
    """Replace a page atomically, unless it has changed since it was read."""
    path = site.path / change.page
    inside, found = _is_inside(path.parent, site), None
    with suppress(OSError):  # removed, or a symbolic link now
        same = inside and site.read(change.page, LARGEST + 1) == change.content
        found = path.lstat() if same else None
    if found is None:
        left[change.page] = "changed while it was read"
        return False
    with staged_file(path) as file:
        disk.write(file, change.new)
        with suppress(PermissionError):
            os.fchown(file.fileno(), found.st_uid, found.st_gid)
        os.fchmod(file.fileno(), stat.S_IMODE(found.st_mode))
    return True


def _manifest(site: Site) -> Mapping[str, Any]:
    """Return the digests by page; {} without a valid manifest."""
    try:
        found = json.loads(site.read(MANIFEST, 1 << 30))
        pages = found["pages"] if found["cocite"] == _KIND else {}
        return {page: each for page, each in pages.items() if isinstance(each, list) and each}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


# -- for generators ------------------------------------------------------------------------


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def write_json(found: RelatedSite, folder: Path) -> SiteDocument:
    """Write the lists as JSON: one file with all pages by URL, and one file per page.

    Raises :class:`OutputExists` if the folder contains other files.
    """
    if folder.resolve() == found.site.path.resolve():
        raise UsageError(f"json is {folder}, the folder of the pages; choose another folder")
    _check_folder(folder, found.options.overwrite)
    each: dict[str, dict[str, Any]] = {}
    for page in found.related:
        listed = [{"path": p, "title": t, "url": u} for p, t, u in found.listed(page)]
        if listed:
            each[page] = {"path": page, "title": found.titles[page], "related": listed}
    by_url = {"/" + _folder_url(page): each[page]["related"] for page in each}
    if not found.options.dry_run:
        with staged_folder(folder) as made:
            disk.make_own_folder(made / "new")
            for name, content in [
                *((f"pages/{page}.json", each[page]) for page in each),
                (_JSON, {"cocite": _KIND, "pages": by_url}),
            ]:
                disk.make_own_folder((made / "new" / name).parent)
                with disk.create(made / "new" / name) as file:
                    disk.write(file, _json(content))
            (disk.exchange if folder.exists() else disk.rename)(made / "new", folder)
    shown = next(((page, _json(each[page]).decode()) for page in each), (None, None))
    return SiteDocument(
        str(found.site.path),
        found.options.dry_run,
        pages=len(found.site.pages),
        listed=len(each),
        links_listed=sum(len(listed) for listed in by_url.values()),
        hubs=found.hubs,
        shown_page=shown[0] if found.options.dry_run else None,
        shown=shown[1] if found.options.dry_run else None,
        output=str(folder),
    )


def _check_folder(folder: Path, overwrite: bool) -> None:
    """Raise :class:`OutputExists` unless lists may be written to ``folder``."""
    check_folder(folder)
    names = set(os.listdir(folder)) if folder.exists() else set()
    others = sorted(names - {_JSON, "pages"})
    if others or (names and _JSON not in names):
        found = f"such as {others[0]}" if others else f"and lacks {_JSON}"
        raise OutputExists(
            f"{folder} contains files that cocite site did not write, {found}. Choose another "
            "output"
        )
    if names and not overwrite:
        raise OutputExists(
            f"{folder} exists. Choose another output, or pass --overwrite (overwrite=True)"
        )


@dataclass(frozen=True)
class SiteDocument(Document):
    """The changes to a folder of pages, or those that a ``dry_run`` would make.

    ``listed`` pages now have a list, with ``links_listed`` links in total; ``places`` counts lists
    by position. ``written`` pages changed. ``hubs`` are excluded, because they are linked with too
    many pages. ``left_alone`` maps each skipped page to the reason. Of the pages whose lists were
    removed, ``restored`` are as before their first list, and ``edited`` are the others. ``shown``
    is the diff of ``shown_page``; ``output`` is the folder of JSON files.
    """

    folder: str
    dry_run: bool
    pages: int
    listed: int
    links_listed: int
    written: int = 0
    places: Mapping[str, int] = field(default_factory=dict)
    hubs: Sequence[str] = ()
    left_alone: Mapping[str, str] = field(default_factory=dict)
    restored: int = 0
    edited: Sequence[str] = ()
    shown_page: str | None = None
    shown: str | None = None
    output: str | None = None
