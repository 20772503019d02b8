"""A store in the making: written beside its final place, published by one rename.

While it grows it is called ``<output>.building`` (``building.py``). ``publish`` writes the
manifest last, then renames. A process that is killed at any moment leaves either the old output
untouched or the new one whole, and a directory that the next run takes over.
"""

from __future__ import annotations

import os
from pathlib import Path

from cocite.errors import NotAStore, OutputExists
from cocite.store import disk
from cocite.store.building import Building, lock
from cocite.store.manifest import MANIFEST, Manifest, kind_of

__all__ = ["Draft"]


class Draft(Building):
    """``with Draft(output, "graph") as draft: ... draft.publish(manifest)``.

    On an error the directory is kept if ``resumable`` and removed if not. Raises
    :class:`OutputExists` if the output is there and ``overwrite`` is false, :class:`Busy` if
    another process is building it, :class:`NotAStore` if overwriting would remove something
    that is no store of the same ``kind``, and :class:`StoreError` if the directory cannot be made.
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
        self._remove_all_but(self.output, {*manifest.files, MANIFEST})
        return self.output

    def _check_replaceable(self) -> None:
        if kind_of(self.output) != self._kind:
            raise NotAStore(
                f"{self.output} exists and is no stored {self._kind}: it will not be overwritten. "
                "Choose another output"
            )

    def _replace(self) -> None:
        """Exchange old and new, then remove the old one."""
        old = os.open(self.output, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # After the exchange the old one has the draft's name: locked, nobody takes it over.
            lock(old)
            disk.exchange(self.path, self.output)
            self._published = True
            try:
                disk.sync_directory(self.output.parent)
            finally:
                disk.remove_tree(self.path)
        finally:
            os.close(old)
