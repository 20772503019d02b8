"""Writing titles: front-coded in blocks, as names are; the package reads them.

Cost: a pass over the titles.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.graph.name_files import encode_texts, joined_names
from cocite.graph.titles import TITLES_BLOCKS, TITLES_DATA, Titles
from cocite.store import ArrayWriter, Entry

__all__ = ["write_some_titles", "write_titles"]

_PIECE = 1 << 12


def write_titles(directory: Path, pieces: Iterable[list[str]]) -> dict[str, Entry]:
    """Write the titles of all nodes, in order of id, in pieces whose length a block divides."""
    base = 0
    with (
        ArrayWriter(directory / TITLES_DATA, np.uint8) as data,
        ArrayWriter(directory / TITLES_BLOCKS, np.uint64) as blocks,
    ):
        for titles in pieces:
            base += encode_texts(*joined_names(titles), data, blocks, base)
    return {TITLES_DATA: data.finished, TITLES_BLOCKS: blocks.finished}


def write_some_titles(directory: Path, titles: Titles, ids: NDArray[np.uint32]) -> dict[str, Entry]:
    """Write the titles of the nodes ``ids``, ascending, as those of nodes of their own."""
    pieces = (titles.of(ids[low : low + _PIECE]) for low in range(0, ids.size, _PIECE))
    return write_titles(directory, pieces)
