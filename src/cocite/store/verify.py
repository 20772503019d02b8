"""Checking every byte of a store: each file is read in full and compared with its checksum.

Cost: one pass over all files, in constant memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cocite.documents import Document
from cocite.store.manifest import Manifest, Store, kind_of

__all__ = ["VerifyDocument"]


@dataclass(frozen=True)
class VerifyDocument(Document):
    """What was found: the ``faults`` of ``files`` files, none if all are whole."""

    path: str
    kind: str
    files: int
    bytes: int
    faults: Sequence[str]

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Read the store at ``path``; raises a :class:`~cocite.errors.StoreError` if none is."""
        name, kind = os.fspath(path), kind_of(os.fspath(path)) or "graph"
        store = Store(Path(name), Manifest.read(Path(name), kind))
        faults = [fault for file in store.manifest.files if (fault := store.verify(file))]
        return cls(name, kind, len(store.manifest.files), store.nbytes, faults)
