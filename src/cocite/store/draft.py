"""A store in the making: written beside its final place, published by one rename.

While it grows it is called ``<output>.building`` (``building.py``). ``publish`` writes the
manifest last, then renames. A process that is killed at any moment leaves either the old output
untouched or the new one whole, and a directory that the next run takes over.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from cocite.errors import Damaged, NotAStore, OutputExists, StoreError
from cocite.store import disk
from cocite.store.arrays import Entry, checksum
from cocite.store.beside import written_beside
from cocite.store.building import MARK, Building, lock
from cocite.store.manifest import MANIFEST, Manifest, kind_of

__all__ = ["Draft", "copy_array"]

_NAMED = 5
"""Strangers that a message names."""


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
        rest = self._mark_rest({*manifest.files, MANIFEST, MARK})
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
        for name in (*rest, MARK):
            disk.remove(self.output / name)
        return self.output

    def _mark_rest(self, kept: set[str]) -> list[str]:
        """What of the draft is no part of the store, and goes when that is published; it is written
        down, so that it is known for ours if the process does not come so far.
        """
        rest = sorted({entry.name for entry in self.path.iterdir()} - kept)
        if rest:
            with written_beside(self.path / MARK) as file:
                disk.write(file, json.dumps(rest).encode())
        return rest

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
            mark = None if link or (self.output / MARK).exists() else self.output / MARK
            try:
                if mark is not None:
                    disk.touch(mark)
                disk.exchange(self.path, self.output)
            except BaseException:
                if mark is not None:
                    mark.unlink(missing_ok=True)
                raise
            self._published = True
            try:
                disk.sync_directory(self.output.parent)
            finally:
                if link:
                    self.path.unlink()
                else:
                    self._remove_old()
        finally:
            os.close(old)

    def _remove_old(self) -> None:
        """Remove the old store, which has the draft's name."""
        for name in sorted(_own(self.path) - {MARK}):
            disk.remove(self.path / name)
        (self.path / MARK).unlink()
        try:
            self.path.rmdir()
        except OSError as error:
            raise StoreError(
                f"{self.output} is whole; what came into the old one while it was replaced is in "
                f"{self.path}: move it, and remove that directory"
            ) from error


def _own(directory: Path) -> set[str]:
    """What is in a store and its own: the files that its manifest lists, and what a draft has left.

    Names are those of the directory, whatever is listed: nothing else can be meant by them.
    """
    listed = {MANIFEST, *_listed(directory / MANIFEST, "files")}
    left = set()
    if not (directory / MARK).is_symlink():
        left = {MARK, *_listed(directory / MARK, None)}
    return {
        entry.name
        for entry in directory.iterdir()
        if entry.name in left or (entry.name in listed and not _is_folder(entry))
    }


def _strangers(directory: Path) -> list[str]:
    """What is in a store and not its own."""
    return sorted({entry.name for entry in directory.iterdir()} - _own(directory))


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _listed(path: Path, key: str | None) -> set[str]:
    """The names in a file of JSON, under a key or as they are; none if it is no such file."""
    try:
        value = json.loads(path.read_bytes())
        return set(map(str, value if key is None else value[key]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def copy_array(source: Path, target: Path, entry: Entry) -> None:
    """Copy one array file and see that it arrived whole."""
    with source.open("rb") as reader, disk.create_anew(target) as writer:
        while piece := reader.read(1 << 22):
            disk.write(writer, piece)
        disk.sync_file(writer)
    if checksum(target, entry) != entry.xxh3_128:
        raise Damaged(f"{source} does not match its checksum. Build it again")
