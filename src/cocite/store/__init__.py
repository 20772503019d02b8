"""Bytes on disk: raw arrays, a manifest, checksums, atomic publication.

This room knows nothing of graphs or indexes. The format is specified in ``FORMAT.md``.
"""

from cocite.store.arrays import ArrayWriter, Entry, checksum, forget, map_array
from cocite.store.building import Building
from cocite.store.draft import Draft
from cocite.store.facts import Facts
from cocite.store.folder import check_folder, new_folder
from cocite.store.journal import Journal
from cocite.store.manifest import FORMAT_VERSION, Manifest, Store, kind_of
from cocite.store.scratch import Scratch
from cocite.store.spool import Reader, ScratchFile, Spool

__all__ = [
    "FORMAT_VERSION",
    "ArrayWriter",
    "Building",
    "Draft",
    "Entry",
    "Facts",
    "Journal",
    "Manifest",
    "Reader",
    "Scratch",
    "ScratchFile",
    "Spool",
    "Store",
    "check_folder",
    "checksum",
    "forget",
    "kind_of",
    "map_array",
    "new_folder",
]
