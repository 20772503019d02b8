"""The names of some nodes of a graph, written as names of their own: an index of wanted pages.

Ids are given anew, in the same order; so names stay in the order that ``store/FORMAT.md`` says.

Cost: a pass over the names that are kept; 12 bytes each in memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.graph.name_files import joined_names, write_text_names
from cocite.graph.names import BY_NAME, VALUES, IntegerNames, Names
from cocite.graph.sides import SIDES
from cocite.store import ArrayWriter, Entry, Store

__all__ = ["write_some_names"]

_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_PIECE = 1 << 12
"""Names at a time: a block of them divides it."""
Ids = NDArray[np.uint32]


class _Sorter:
    """Sorts hashes in memory."""

    def sort_hashes(self, pieces: Iterator[Ids]) -> Iterator[NDArray[np.uint64]]:
        """One piece of hash * 2**32 + id, ascending."""
        hashes = np.concatenate([np.empty(0, np.uint32), *pieces]).astype(np.uint64)
        yield np.sort((hashes << np.uint64(32)) | np.arange(hashes.size, dtype=np.uint64))


def write_some_names(
    directory: Path, store: Store, names: Names, ids: Ids, *, as_ingested: bool = False
) -> tuple[str, dict[str, Entry]]:
    """Write the names of ``ids``, ascending, out of ``names``, which are those of ``store``;
    returns their kind and the entries of the files.

    The order of names is written if it is not that of ids; ``as_ingested``: if one is a URL, or
    there are two sides.
    """
    names = names.stored
    if isinstance(names, IntegerNames):
        values = names.values()[ids]
        if bool((values == np.arange(values.size, dtype=np.uint64)).all()):
            return "dense", {}
        with ArrayWriter(directory / VALUES, np.uint64) as writer:
            writer.write(values)
        return "integers", {VALUES: writer.finished}
    urls = as_ingested and SIDES in store.facts

    def pieces() -> Iterator[list[str]]:
        nonlocal urls
        for low in range(0, ids.size, _PIECE):
            piece = names.names(ids[low : low + _PIECE])
            urls = urls or (as_ingested and any(map(_URL.match, piece)))
            yield piece

    files = write_text_names(directory, _Sorter(), map(joined_names, pieces()))
    if store.has(BY_NAME):
        ranked = store.array(BY_NAME)
        places = np.minimum(np.searchsorted(ids, ranked), ids.size - 1)
        order = places[ids[places] == ranked].astype(np.uint32)
        if urls or bool((order != np.arange(order.size)).any()):
            with ArrayWriter(directory / BY_NAME, np.uint32) as writer:
                writer.write(order)
            files[BY_NAME] = writer.finished
    return "text", files
