"""On-disk storage: raw arrays, manifests, checksums, and atomic publication.

``FORMAT.md`` specifies the files. This package does not depend on graphs or indexes. Store writers
(``storage/staging.py``) and scratch files (``storage/spool.py``) are imported from their own
modules, and ``storage/atomic.py`` loads on first use, because queries do not need them.
"""

from typing import TYPE_CHECKING, Any

from cocite.storage.arrays import AROUND as AROUND
from cocite.storage.arrays import Access as Access
from cocite.storage.arrays import ArrayWriter as ArrayWriter
from cocite.storage.arrays import DeclaredFiles as DeclaredFiles
from cocite.storage.arrays import Entry as Entry
from cocite.storage.arrays import advise as advise
from cocite.storage.arrays import checksum as checksum
from cocite.storage.arrays import evict as evict
from cocite.storage.arrays import fetch as fetch
from cocite.storage.arrays import is_mapped as is_mapped
from cocite.storage.arrays import map_array as map_array
from cocite.storage.arrays import write_array as write_array
from cocite.storage.manifest import FORMAT_VERSION as FORMAT_VERSION
from cocite.storage.manifest import MANIFEST as MANIFEST
from cocite.storage.manifest import Facts as Facts
from cocite.storage.manifest import Manifest as Manifest
from cocite.storage.manifest import Store as Store
from cocite.storage.manifest import kind_of as kind_of

if TYPE_CHECKING:
    from cocite.storage.atomic import Journal as Journal
    from cocite.storage.atomic import check_file as check_file
    from cocite.storage.atomic import check_folder as check_folder
    from cocite.storage.atomic import ending_of as ending_of
    from cocite.storage.atomic import staged_file as staged_file
    from cocite.storage.atomic import staged_folder as staged_folder
    from cocite.storage.atomic import staged_rows as staged_rows


_ATOMIC = {"Journal", "check_file", "check_folder", "ending_of", "staged_file", "staged_folder"}
_ATOMIC |= {"staged_rows"}


def __getattr__(name: str) -> Any:
    if name not in _ATOMIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cocite.storage import atomic

    return getattr(atomic, name)
