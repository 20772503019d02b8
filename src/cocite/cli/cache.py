"""``cocite cache``: compiled kernels, and copies of stores; ``cocite info --cache`` shows both."""

from __future__ import annotations

from dataclasses import dataclass

import click

from cocite.cli.options import format_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.text import and_of, facts_text
from cocite.compiled.kept import Version, remove, versions_kept
from cocite.compiled.place import VARIABLE, place
from cocite.copies import Copy, copies_kept, remove_copies
from cocite.documents import Document
from cocite.errors import StoreError
from cocite.memory import format_size

__all__ = ["cache", "cache_reply"]


@dataclass(frozen=True)
class CacheDocument(Document):
    """Where kernels are kept, why there, and which versions there are, that of now first.

    ``path`` is None if there is no place to keep them; ``read`` are directories that are read, too.
    """

    path: str | None
    because: str
    read: list[str]
    kernels: int
    bytes: int
    versions: list[Version]
    copies: list[Copy]
    """Of stores that lie at URLs."""
    bytes_of_copies: int


@dataclass(frozen=True)
class ClearedDocument(Document):
    """What was removed."""

    removed: list[Version]
    copies: list[Copy]
    bytes: int


def cache_reply() -> Reply:
    """The facts of the cache."""
    found = place()
    versions = versions_kept(found)
    document = CacheDocument(
        None if found.written is None else str(found.written),
        found.because,
        [str(folder) for folder in found.folders if folder != found.written],
        sum(each.kernels for each in versions),
        sum(each.bytes for each in versions),
        versions,
        copies := _copies(),
        sum(each.bytes for each in copies),
    )
    return Reply(document, lambda: _text(document))


def _copies() -> list[Copy]:
    """Those that are kept; none where there is no place for them."""
    try:
        return copies_kept()
    except StoreError:
        return []


def _text(found: CacheDocument) -> str:
    shown = {"cache": found.path or "none: kernels are compiled anew by every command"}
    shown["chosen by"] = f"{found.because} ({VARIABLE} sets another place)"
    if found.read:
        shown["read, too"] = and_of(found.read)
    shown["holds"] = f"{_kernels(found.kernels)}, {format_size(found.bytes)}"
    old = 0
    for each in found.versions:
        old += not each.current
        title = "of now" if each.current else f"old, {old}"
        shown[title] = f"{_kernels(each.kernels)}, {format_size(each.bytes)}{_made_by(each)}"
    if found.copies:
        count = len(found.copies)
        size = format_size(found.bytes_of_copies)
        shown["copies"] = f"{count:,} of stores at URLs, {size} (cocite cache clear --copies)"
    for number, copy in enumerate(found.copies, 1):
        read = ", being read" if copy.read else ""
        shown[f"copy {number}"] = f"{copy.url or copy.name}, {format_size(copy.bytes)}{read}"
    if old:
        shown["to do"] = "cocite cache clear removes the old ones"
    return facts_text(shown)


def _kernels(count: int) -> str:
    return f"{count:,} kernel{'' if count == 1 else 's'}"


def _made_by(version: Version) -> str:
    named = [f"{name} {text}" for name, text in version.made_by.items()]
    return f", by {and_of(named)}" if named else ""


@click.group()
def cache() -> None:
    """Look after the compiled kernels that are kept, and the copies of stores at URLs.

    cocite info --cache shows where they are, and cocite warm compiles all kernels.
    """


@cache.command()
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Remove those of this version, too: they are compiled anew.",
)
@click.option(
    "--copies",
    is_flag=True,
    help="Remove the copies of stores at URLs that nobody reads, and no kernels but with --all.",
)
@format_option
def clear(every: bool, copies: bool, show: Show) -> None:
    """Remove compiled kernels of other versions than this one, or copies of stores at URLs."""
    gone = [] if copies and not every else remove(place(), every)
    taken = remove_copies() if copies else []
    size = sum(each.bytes for each in gone) + sum(each.bytes for each in taken)
    document = ClearedDocument(gone, taken, size)
    show(Reply(document, lambda: _cleared(document, every, copies)))


def _cleared(found: ClearedDocument, every: bool, copies: bool) -> str:
    parts = []
    if every or not copies:
        parts.append(f"{len(found.removed)} version{'' if len(found.removed) == 1 else 's'}")
    if copies:
        parts.append(f"{len(found.copies)} cop{'y' if len(found.copies) == 1 else 'ies'}")
    left = "" if every or copies else "; that of now stays"
    return f"removed {and_of(parts)}, {format_size(found.bytes)}{left}"
