"""``cocite cache``: the compiled kernels that are kept; shown by ``cocite info --cache``, too."""

from __future__ import annotations

from dataclasses import dataclass

import click

from cocite.cli.options import format_option
from cocite.cli.outputs import Reply, Show
from cocite.cli.text import and_of, facts_text
from cocite.compiled.kept import Version, remove, versions_kept
from cocite.compiled.place import VARIABLE, place
from cocite.documents import Document
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


@dataclass(frozen=True)
class ClearedDocument(Document):
    """What was removed."""

    removed: list[Version]
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
    )
    return Reply(document, lambda: _text(document))


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
    """Look after the compiled kernels that are kept.

    cocite info --cache shows where they are, and cocite warm compiles all of them.
    """


@cache.command()
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Remove those of this version, too: they are compiled anew.",
)
@format_option
def clear(every: bool, show: Show) -> None:
    """Remove compiled kernels of other versions than this one."""
    gone = remove(place(), every)
    document = ClearedDocument(gone, sum(each.bytes for each in gone))
    left = "" if every else "; that of now stays"
    versions = f"{len(gone)} version{'' if len(gone) == 1 else 's'}"
    show(Reply(document, lambda: f"removed {versions}, {format_size(document.bytes)}{left}"))
