"""Bytes on disk: raw arrays, a manifest, checksums, atomic publication.

This room knows nothing of graphs or indexes. The format is specified in ``FORMAT.md``. What writes
stores and scratch files is imported when it is first used, as a question does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cocite.storage.arrays import (
    AROUND,
    Access,
    ArrayWriter,
    DeclaredFiles,
    Entry,
    advise,
    checksum,
    evict,
    fetch,
    is_mapped,
    map_array,
)
from cocite.storage.atomic import (
    Journal,
    check_file,
    staged_file,
    staged_folder,
    staged_rows,
)
from cocite.storage.manifest import FORMAT_VERSION, MANIFEST, Facts, Manifest, Store, kind_of

if TYPE_CHECKING:
    from cocite.storage.spool import Scratch, ScratchFile, Spool, SpoolReader, Stream
    from cocite.storage.staging import Building, Staging, copy_array, publishing, written_from

__all__ = [
    "AROUND",
    "FORMAT_VERSION",
    "MANIFEST",
    "Access",
    "ArrayWriter",
    "Building",
    "DeclaredFiles",
    "Entry",
    "Facts",
    "Journal",
    "Manifest",
    "Scratch",
    "ScratchFile",
    "Spool",
    "SpoolReader",
    "Staging",
    "Store",
    "Stream",
    "advise",
    "check_file",
    "checksum",
    "copy_array",
    "evict",
    "fetch",
    "is_mapped",
    "kind_of",
    "map_array",
    "publishing",
    "staged_file",
    "staged_folder",
    "staged_rows",
    "written_from",
]
_SPOOLS = {"Scratch", "ScratchFile", "Spool", "SpoolReader", "Stream"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(f"{__name__}.{'spool' if name in _SPOOLS else 'staging'}")
    globals()[name] = found = getattr(module, name)
    return found
