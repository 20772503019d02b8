"""A folder of Markdown notes: an Obsidian, Foam or Logseq vault, or a site's sources.

    html/site.py: which files -> note.py: content of each -> vault.py: targets of its links

Nodes are the paths of all notes in the folder, without suffixes. Every link is a row, so
``--count-duplicates`` counts repeated links. With ``--tags``, tags are nodes (``#tag``) that notes
link to. Parsed notes are stored in a scratch file until all aliases are known; only names are in
memory.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cocite.errors import UnrecognizedInput
from cocite.extras import need
from cocite.graph.spelling import refused_in
from cocite.io.readers.contract import FormatReader, Job, PagesFound, Read
from cocite.io.readers.html.parsers import HtmlPage, Pages
from cocite.io.readers.html.reader import content_of, refuse_names
from cocite.io.readers.html.site import Site, is_note_name, is_page_name
from cocite.io.readers.notes import EXTRA, LIBRARIES, note, vault
from cocite.io.readers.rows import LinkWriter, clean_rows
from cocite.storage import disk

_LARGEST = 1 << 22
"""Maximum size of a note in bytes."""
_LONGEST = 65_535
_BACKUPS = ("logseq/bak/", "logseq/version-files/")
_KINDS = (*note.KINDS, "tag")
_READ = "notes.jsonl"
_OTHERS = {
    vault.AMBIGUOUS: "that could lead to several notes (the nearest is used)",
    vault.FILE: "to files that are not notes",
    vault.EXTERNAL: "to other sites",
    vault.NO_PAGE: "to addresses that are not web pages (mailto: and so on)",
    vault.BROKEN: "broken",
}


def _read_folder(job: Job) -> Read:
    if job.source.path is None or not job.source.is_directory:
        raise UnrecognizedInput(
            f"{job.source.label} is a file; notes must be read as a folder: pass the folder that "
            "contains it. For a note not yet in the folder, run cocite related FOLDER --draft "
            "FILE.md"
        )
    site = Site(job.source.path, lambda path: is_note_name(path) and not path.startswith(_BACKUPS))
    if not site.pages:
        raise UnrecognizedInput(f"{job.source.label} contains no Markdown notes")
    found = PagesFound(job.source.label, integers=False, format="Markdown notes")
    refuse_names(job, site, found)
    names = _names(site.pages)
    if job.wanted == 1:
        return clean_rows(job, READER.title, ((name,) for name in names.values()))
    html = sum(is_page_name(path) for path in site.files)
    if html and job.options.input_format == "auto":
        site.left_out["HTML pages (--input-format html reads them)"] = html
    links = _Links(job, site, names, found)
    links.parse()
    return links.resolve()


READER = FormatReader(
    "a folder of Markdown notes",
    "a folder of Markdown notes: an Obsidian, Foam or Logseq vault, or Hugo, Jekyll or MkDocs "
    "sources",
    _read_folder,
    streams=False,
    columns=False,
)


def _names(paths: list[str]) -> dict[str, str]:
    """Map paths to names: paths without suffix, unless that is ambiguous or looks like a tag."""
    names, taken = dict[str, str](), set[str]()
    for path in paths:
        name = _stem(path)
        name = path if name in taken or name.startswith("#") else name
        taken.add(name)
        names[path] = name
    return names


def _stem(path: str) -> str:
    return os.path.splitext(path)[0]


class _Links:
    def __init__(self, job: Job, site: Site, names: dict[str, str], found: PagesFound) -> None:
        self._job, self._site, self._names, self._found = job, site, names, found
        files = site.files.difference(names)
        self._vault = vault.Vault(names.values(), files, site.folders, site.real_path)
        for link, path in site.names.items():
            if path in names:
                self._vault.add_alias(_stem(link).rpartition("/")[2], names[path])
        self._place = job.scratch / _READ

    def parse(self) -> None:
        """Parse all notes into a scratch file of JSON lines."""
        job, purpose = self._job, "reading Markdown notes"
        with (
            Pages(job.threads, purpose, EXTRA, note.__file__, LIBRARIES) as pages,
            disk.create_anew(self._place) as out,
        ):
            for path, in_note, why in pages.parsed(self._contents()):
                name = self._names[path]
                if in_note is None:
                    self._leave_out(name, f"note whose {why}")
                    continue
                if in_note["fault"]:
                    self._leave_out(name, in_note["fault"])
                for alias in in_note["aliases"]:
                    self._vault.add_alias(alias, name)
                job.titles.add(name, in_note["title"] or name.rpartition("/")[2])
                disk.write(out, json.dumps([name, in_note]).encode() + b"\n")

    def _leave_out(self, name: str, why: str) -> None:
        self._site.left_out[why] += 1
        self._job.report(name, why, "", "")

    def _contents(self) -> Iterator[HtmlPage]:
        stage, total = "parsing " + self._job.source.short, len(self._names)
        for done, path in enumerate(self._names, 1):
            content = content_of(self._job, self._site, path, _LARGEST, "Markdown")
            if isinstance(content, str):
                self._leave_out(self._names[path], content)
            else:
                yield HtmlPage(path, "", content)
            self._job.progress(stage, done, total)

    def resolve(self) -> Read:
        job, found = self._job, self._found
        kinds, others = Counter[int](), Counter[int]()
        with LinkWriter(job, ("link", "note")) as out:
            for number, name in enumerate(self._names.values(), 1):
                out.nodes.add((name,), number)
            with self._place.open("rb") as lines:
                for name, in_note in map(json.loads, lines):
                    for kind, target in self._targets(name, in_note, others):
                        kinds[kind] += 1
                        out.links.add((name, target), kinds.total())
            read = out.finish(READER.title, "")
        found.rows, found.integers = read.found.rows, read.found.integers
        for kind_of_row, count in read.found.bad_rows.items():
            found.leave_out(kind_of_row, count, read.found.examples[found.bad :])
        found.pages = len(self._names)
        found.links = {_KINDS[kind]: count for kind, count in sorted(kinds.items())}
        found.others = {_OTHERS[kind]: count for kind, count in sorted(others.items())}
        found.left_out = dict(sorted(self._site.left_out.items()))
        return Read(read.rows, found, read.nodes)

    def _targets(
        self, name: str, in_note: Mapping[str, Any], others: Counter[int]
    ) -> Iterator[tuple[int, str]]:
        """Yield (kind, node) for each of a note's links that leads to a node."""
        for kind, written in in_note["links"]:
            where, target = self._vault.find(kind, written, name)
            if where == vault.EXTERNAL and (refused_in(target) or len(target.encode()) > _LONGEST):
                where = vault.BROKEN
            if where != vault.NOTE:
                others[where] += 1
            if where in (vault.BROKEN, vault.AMBIGUOUS):
                what = "broken" if where == vault.BROKEN else "ambiguous"
                self._job.report(name, what, written, target)
            external = where == vault.EXTERNAL and kind != note.EMBED  # images are not pages
            external = external and self._job.options.keep_external
            if where in (vault.NOTE, vault.AMBIGUOUS) or external:
                yield kind, target
        for tag in in_note["tags"] if self._job.options.tags else ():
            if not refused_in(tag):
                yield len(note.KINDS), f"#{tag}"


def draft_links(content: bytes, names: Iterable[str], at: str) -> tuple[list[str], list[str]]:
    """Return the nodes among ``names`` that a new note links to, and its unresolved links.

    ``at`` is the new note's name. Links to ``at`` are omitted; aliases of notes are ignored.
    """
    for library in LIBRARIES:
        need(library, "reading a Markdown draft", EXTRA)
    known = list(names)
    nodes, in_note = frozenset(known), note.links_of(content)
    places = vault.Vault([*known, *([] if at in nodes else [at])])
    found, lost = list[str](), list[str]()
    for kind, written in in_note["links"]:
        where, name = places.find(kind, written, at)
        if where == vault.BROKEN:
            lost.append(written)
        elif name in nodes and name != at:
            found.append(name)
    found += [f"#{tag}" for tag in in_note["tags"] if f"#{tag}" in nodes]
    return list(dict.fromkeys(found)), lost
