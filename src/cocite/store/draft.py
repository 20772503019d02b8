"""A store in the making: written beside its final place, published by one rename.

While it grows it is called ``<output>.building`` (``building.py``). ``publish`` writes the
manifest last, then renames. A process that is killed at any moment leaves either the old output
untouched or the new one whole, and a directory that the next run takes over.

What of a draft is no part of the store goes before that has its name; but for that by which a run
that is killed there goes on, which goes afterwards. An old output that was replaced has the draft's
name until it is removed. The mark of either says what it is, and who next comes to that output
removes what was left behind (:class:`Draft`), whether the output is replaced or not.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path

from cocite.errors import Damaged, NotAStore, OutputExists, StoreError
from cocite.store import disk
from cocite.store.arrays import Entry, checksum
from cocite.store.beside import sweep_beside, written_beside
from cocite.store.building import MARK, Building
from cocite.store.locks import lock, unclaimed
from cocite.store.manifest import MANIFEST, Manifest, kind_of

__all__ = ["Draft", "copy_array"]

_NAMED = 5
"""Strangers that a message names."""
_REST, _OLD = "rest", "replaced"
_MARKING = re.compile(re.escape(f".{MARK}.") + r"[0-9a-f]{16}\.new")
"""What a mark was to become, when the process was killed."""


class Draft(Building):
    """``with Draft(output, "graph") as draft: ... draft.publish(manifest)``.

    On an error the directory is kept if ``resumable`` and removed if not. Raises
    :class:`OutputExists` if the output is there and ``overwrite`` is false or anybody else's files
    are in it, :class:`Busy` if another process is building it, :class:`NotAStore` if it is no store
    of the same ``kind``, and :class:`StoreError` if the directory cannot be made.
    """

    def __init__(
        self, output: str | Path, kind: str, *, overwrite: bool = False, resumable: bool = False
    ) -> None:
        super().__init__(output, resumable=resumable)
        self._kind, self._overwrite = kind, overwrite
        if os.path.lexists(self.output):
            self._finish_earlier()
            if not overwrite:
                raise OutputExists(
                    f"{self.output} exists. Choose another output, or pass --overwrite "
                    "(overwrite=True) to replace it when the new one is complete"
                )
            self._check_replaceable()

    def publish(self, manifest: Manifest) -> Path:
        """Write the manifest and move the directory to its place; returns that place.

        Raises :class:`OutputExists` or :class:`NotAStore` if something that may not be replaced
        came to be there during the build; the draft is kept.
        """
        manifest.write(self.path)
        rest = self._rest({*manifest.files, MANIFEST, MARK})
        if self._overwrite and os.path.lexists(self.output):
            self._check_replaceable()
            self._replace()
        else:
            try:
                disk.rename_new(self.path, self.output)
            except FileExistsError as error:
                raise OutputExists(
                    f"{self.output} came to exist meanwhile; what was built is in {self.path}"
                ) from error
            self._published = True
            disk.sync_directory(self.output.parent)
        _clean(self.output, rest)
        return self.output

    def _rest(self, kept: set[str]) -> list[str]:
        """What of the draft is no part of the store, and goes when that is published, as a run that
        is killed goes on by it. It is written down, so that it is known for ours if the process
        does not come so far. If no run goes on it goes now.
        """
        rest = sorted({entry.name for entry in self.path.iterdir()} - kept)
        if self._resumable:
            if rest:
                _mark(self.path, rest=rest)
            return rest
        for name in rest:
            disk.remove(self.path / name)
        if rest:
            disk.sync_directory(self.path)
        return []

    def _finish_earlier(self) -> None:
        """Remove what a run has left that was killed when it had published its output: in that,
        and what it replaced, which has the draft's name. It is removed if it can be.
        """
        if not self.output.is_symlink() and kind_of(self.output) == self._kind:
            with suppress(OSError), unclaimed(self.output) as free:
                if free:
                    sweep_beside(self.output / MARK)
                    there = set(_names(self.output)) - _in_manifest(self.output)
                    if _is_marked(self.output):
                        _clean(self.output, sorted(_left(self.output)[0] & there))
        if not self.path.is_symlink() and _is_marked(self.path) and _left(self.path)[1]:
            with suppress(OSError), unclaimed(self.path) as free:
                if free:
                    _remove_own(self.path)

    def _is_old(self) -> bool:
        """Whether it is what an earlier run has replaced: nothing to go on with."""
        return _left(self.path)[1]

    def clear(self) -> None:
        """Remove what an earlier, unfinished run left."""
        super().clear()
        if _left(self.path) != (set(), False):
            disk.sync_directory(self.path)  # what is left behind is no old output any more
            _mark(self.path)

    def _check_replaceable(self) -> None:
        """See that the output is such a store and that nothing of anybody else is in it."""
        if kind_of(self.output) != self._kind:
            raise NotAStore(
                f"{self.output} exists and is no stored {self._kind}: it will not be overwritten. "
                "Choose another output"
            )
        strange = [] if self.output.is_symlink() else _strangers(self.output)
        if strange:
            more = f" and {len(strange) - _NAMED} more" if len(strange) > _NAMED else ""
            raise OutputExists(
                f"{self.output} holds what is not the {self._kind}'s own and would be lost: "
                f"{', '.join(strange[:_NAMED])}{more}. Move it elsewhere, or choose another output"
            )

    def _replace(self) -> None:
        """Exchange old and new, then remove the old one: its own files, and nothing else.

        Of a link only the link goes.
        """
        link = self.output.is_symlink()
        old = os.open(self.output, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # After the exchange the old one has the draft's name: locked, nobody takes it over, and
            # marked, who comes after a kill does.
            lock(old)
            try:
                if not link:
                    _mark(self.output, old=True)
                disk.exchange(self.path, self.output)
            except BaseException:
                if not link:
                    disk.remove(self.output / MARK)
                raise
            self._published = True
            try:
                disk.sync_directory(self.output.parent)
            finally:
                if link:
                    disk.remove(self.path)
                else:
                    self._remove_old()
        finally:
            os.close(old)

    def _remove_old(self) -> None:
        """Remove the old store, which has the draft's name."""
        try:
            _remove_own(self.path)
        except OSError as error:
            raise StoreError(
                f"{self.output} is whole; what came into the old one while it was replaced is in "
                f"{self.path}: move it, and remove that directory"
            ) from error


def _mark(directory: Path, rest: list[str] | None = None, old: bool = False) -> None:
    """Say in the mark what a directory is, besides a draft: what in it is no part of the store; and
    whether it is the old store that is being replaced.
    """
    told = {**({_REST: rest} if rest else {}), **({_OLD: True} if old else {})}
    with written_beside(directory / MARK) as file:
        disk.write(file, json.dumps(told).encode() if told else b"")


def _left(directory: Path) -> tuple[set[str], bool]:
    """What the mark says of a directory."""
    mark = directory / MARK
    if mark.is_symlink():
        return set(), False
    try:
        told = json.loads(mark.read_bytes() or b"{}")
        return set(map(str, told.get(_REST, ()))), told.get(_OLD) is True
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return set(), False


def _clean(directory: Path, rest: list[str]) -> None:
    """Remove what is no part of a store that was published, then its mark."""
    for name in rest:
        disk.remove(directory / name)
    if rest:
        disk.sync_directory(directory)  # whatever is left is known by the mark
    disk.remove(directory / MARK)


def _remove_own(directory: Path) -> None:
    """Remove a store that was replaced: its own files; the list of these, its mark, and itself."""
    for name in sorted(_own(directory) - {MANIFEST, MARK}):
        disk.remove(directory / name)
    for name in (MANIFEST, MARK):
        disk.sync_directory(directory)
        disk.remove(directory / name)
    disk.remove_empty(directory)


def _is_marked(directory: Path) -> bool:
    return (directory / MARK).is_file() and not (directory / MARK).is_symlink()


def _own(directory: Path) -> set[str]:
    """What is in a store and its own: the files that its manifest lists, and what a draft has left.

    Names are those of the directory, whatever is listed: nothing else can be meant by them.
    """
    listed = _in_manifest(directory)
    left: set[str] = set() if (directory / MARK).is_symlink() else {MARK, *_left(directory)[0]}
    return {
        entry.name
        for entry in directory.iterdir()
        if entry.name in left
        or (entry.name in listed and not _is_folder(entry))
        or (_MARKING.fullmatch(entry.name) and not _is_folder(entry))
    }


def _strangers(directory: Path) -> list[str]:
    """What is in a store and not its own."""
    return sorted({entry.name for entry in directory.iterdir()} - _own(directory))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _names(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]


def _in_manifest(directory: Path) -> set[str]:
    """The files that are listed, and the list; that alone if it cannot be read."""
    try:
        value = json.loads((directory / MANIFEST).read_bytes())
        return {MANIFEST, *map(str, value["files"])}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {MANIFEST}


def copy_array(source: Path, target: Path, entry: Entry) -> None:
    """Copy one array file and see that it arrived whole."""
    with source.open("rb") as reader, disk.create_anew(target) as writer:
        while piece := reader.read(1 << 22):
            disk.write(writer, piece)
        disk.sync_file(writer)
    if checksum(target, entry) != entry.xxh3_128:
        raise Damaged(f"{source} does not match its checksum. Build it again")
