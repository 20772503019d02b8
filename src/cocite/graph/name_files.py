"""Writing names: integers as they are, text front-coded in blocks, with hashes for the way back.

``names.py`` says what lies where, and reads it.

Cost: a pass over the names, and a sort of their hashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.graph.names import BLOCKS, BY_HASH, BY_NAME, DATA, HASHES, VALUES, name_hash
from cocite.store import ArrayWriter, Entry

if TYPE_CHECKING:
    from cocite.graph.tables import Tables

__all__ = [
    "HashSorter",
    "TextPiece",
    "encode_texts",
    "joined_names",
    "write_names",
    "write_text_names",
]

TextPiece = tuple[NDArray[np.uint8], NDArray[np.uint64]]
"""Names in UTF-8, one behind the other, and where each ends."""


def write_names(directory: Path, tables: Tables, kind: str, count: int) -> dict[str, Entry]:
    """Write the names of ``tables`` as ``kind``: dense, integers or text; returns the entries."""
    files: dict[str, Entry] = {}
    if kind == "integers":
        with ArrayWriter(directory / VALUES, np.uint64) as values:
            for piece in tables.integer_names():
                values.write(piece)
        files[VALUES] = values.finished
    elif kind == "text":
        files |= write_text_names(directory, tables, map(joined_names, tables.text_names()))
        if tables.has_urls():
            with ArrayWriter(directory / BY_NAME, np.uint32) as by_name:
                for ids in tables.ids_by_name():
                    by_name.write(ids)
            files[BY_NAME] = by_name.finished
    return files


class HashSorter(Protocol):
    """What sorts the hashes of names."""

    def sort_hashes(self, pieces: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.uint64]]:
        """From hashes in order of id, pieces of hash * 2**32 + id, ascending."""


def write_text_names(
    directory: Path, tables: HashSorter, pieces: Iterable[TextPiece]
) -> dict[str, Entry]:
    """Write text names, given in order of id; ``tables`` sorts their hashes.

    A block's length divides that of every piece but the last. Ids in the order of names, where that
    is another one, are the caller's.
    """
    with (
        ArrayWriter(directory / DATA, np.uint8) as data,
        ArrayWriter(directory / BLOCKS, np.uint64) as blocks,
        ArrayWriter(directory / HASHES, np.uint32) as hashes,
        ArrayWriter(directory / BY_HASH, np.uint32) as by_hash,
    ):
        for keys in tables.sort_hashes(_encode_all(pieces, data, blocks)):
            hashes.write((keys >> np.uint64(32)).astype(np.uint32))
            by_hash.write((keys & np.uint64(0xFFFFFFFF)).astype(np.uint32))
    writers = {DATA: data, BLOCKS: blocks, HASHES: hashes, BY_HASH: by_hash}
    return {name: writer.finished for name, writer in writers.items()}


def joined_names(names: list[str]) -> TextPiece:
    """Names as a piece of text."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum(np.fromiter(map(len, encoded), np.uint64, len(encoded)))
    return np.frombuffer(b"".join(encoded), np.uint8), ends


def _encode_all(
    pieces: Iterable[TextPiece], data: ArrayWriter, blocks: ArrayWriter
) -> Iterator[NDArray[np.uint32]]:
    """Front-code all names into the writers; yields their hashes, piece by piece."""
    base = 0
    for text, ends in pieces:
        base += encode_texts(text, ends, data, blocks, base)
        whole, bounds = text.tobytes(), [0, *ends.tolist()]
        hashes = (name_hash(whole[begin:end]) for begin, end in pairwise(bounds))
        yield np.fromiter(hashes, np.uint32, ends.size)


def encode_texts(
    text: NDArray[np.uint8],
    ends: NDArray[np.uint64],
    data: ArrayWriter,
    blocks: ArrayWriter,
    base: int,
) -> int:
    """Front-code a piece of texts behind ``base`` bytes of others; returns the bytes written."""
    from cocite.kernels.names import BLOCK, encode

    out = np.empty(text.size + 6 * ends.size, np.uint8)
    begins = np.empty(-(-ends.size // BLOCK), np.uint64)
    written = int(encode(text, ends, out, begins))
    data.write(out[:written])
    blocks.write(begins + np.uint64(base))
    return written
