"""Copying an array file, and seeing that it arrived whole."""

from __future__ import annotations

from pathlib import Path

from cocite.errors import Damaged
from cocite.store import disk
from cocite.store.arrays import Entry, checksum

__all__ = ["copy_array"]


def copy_array(source: Path, target: Path, entry: Entry) -> None:
    """Copy one array file and see that it arrived whole."""
    with source.open("rb") as reader, disk.create_anew(target) as writer:
        while piece := reader.read(1 << 22):
            disk.write(writer, piece)
        disk.sync_file(writer)
    if checksum(target, entry) != entry.xxh3_128:
        raise Damaged(f"{source} does not match its checksum. Build it again")
