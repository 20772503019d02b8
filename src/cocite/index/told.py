"""What a stored graph or index holds, and whether its bytes are whole: for Python, as the command
line tells it.
"""

from __future__ import annotations

import os

from cocite.graph import Graph
from cocite.graph.documents import GraphDocument
from cocite.index.documents import IndexDocument
from cocite.index.stored import StoredIndex
from cocite.index.verify import VerifyDocument
from cocite.store import kind_of

__all__ = ["info", "verify"]


def info(path: str | os.PathLike[str]) -> GraphDocument | IndexDocument:
    """What the stored graph or index at ``path`` holds, as ``cocite info`` shows it: counts, sizes,
    and of an index its measure and settings. ``to_json()`` gives it as plain values.

    Raises :class:`~cocite.errors.StoreError` if there is none, or it cannot be read.
    """
    name = os.fspath(path)
    if kind_of(name) == "index":
        return IndexDocument.of(StoredIndex.open(name))
    return GraphDocument.of(Graph.open(name))


def verify(path: str | os.PathLike[str]) -> VerifyDocument:
    """Read the stored graph or index at ``path`` in full and compare every file with its checksum,
    as ``cocite verify`` does. ``faults`` of what is returned are in words, and empty if all is
    whole; the time is that of reading all bytes once.

    Raises :class:`~cocite.errors.StoreError` if there is none.
    """
    return VerifyDocument.of(path)
