"""Bytes on disk: raw arrays, a manifest, checksums, atomic publication.

This room knows nothing of graphs or indexes. The format is specified in ``FORMAT.md``.
"""

from cocite.store.arrays import (
    AROUND,
    Access,
    ArrayWriter,
    Entry,
    advise,
    checksum,
    fetch,
    forget,
    is_mapped,
    map_array,
)
from cocite.store.beside import check_file, folder_beside, rows_beside, written_beside
from cocite.store.building import Building, publishing, written_from
from cocite.store.draft import Draft, copy_array
from cocite.store.facts import Facts
from cocite.store.files import DeclaredFiles
from cocite.store.folder import check_folder, new_folder
from cocite.store.journal import Journal
from cocite.store.manifest import FORMAT_VERSION, MANIFEST, Manifest, Store, kind_of
from cocite.store.scratch import Scratch
from cocite.store.spool import ScratchFile, Spool, SpoolReader, Stream

__all__ = [
    "AROUND",
    "FORMAT_VERSION",
    "MANIFEST",
    "Access",
    "ArrayWriter",
    "Building",
    "DeclaredFiles",
    "Draft",
    "Entry",
    "Facts",
    "Journal",
    "Manifest",
    "Scratch",
    "ScratchFile",
    "Spool",
    "SpoolReader",
    "Store",
    "Stream",
    "advise",
    "check_file",
    "check_folder",
    "checksum",
    "copy_array",
    "fetch",
    "folder_beside",
    "forget",
    "is_mapped",
    "kind_of",
    "map_array",
    "new_folder",
    "publishing",
    "rows_beside",
    "written_beside",
    "written_from",
]
