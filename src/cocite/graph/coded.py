"""Texts of nodes, front-coded in blocks: names and titles are read by this.

Cost: a lookup decodes one block.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CODED_BLOCK", "coded_texts"]

_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_WIDE = re.compile(rb"\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
"""What no text has (``unnamed.py``): a terminal or a table would read it as more than text."""
CODED_BLOCK = 16
"""Texts of a block: ``kernels/names.py`` has it, too, and is not imported for it."""


def coded_texts(
    data: NDArray[np.uint8], blocks: NDArray[np.uint64], ids: NDArray[Any]
) -> list[str] | None:
    """The texts of ``ids``, in their order; None if the data are damaged, or have control
    characters or what turns the direction of text. The ids are below the number of texts; those
    that ask for many do so in pieces, as a text takes up to 65,535 bytes however few it has in the
    data.
    """
    from cocite.kernels.names import decode

    wanted = np.ascontiguousarray(ids, np.uint32)
    ends = np.empty(wanted.size, np.uint64)
    out = np.empty(64 * wanted.size + 1024, np.uint8)
    needed = decode(data, blocks, wanted, out, ends)
    if needed < 0:
        return None
    if needed > out.size:
        out = np.empty(needed, np.uint8)
        decode(data, blocks, wanted, out, ends)
    whole = out[:needed].tobytes()
    if _CONTROL.search(whole) or (not whole.isascii() and _WIDE.search(whole)):
        return None
    begin = 0
    found: list[str] = []
    try:
        for end in ends.tolist():
            found.append(whole[begin:end].decode())
            begin = end
    except UnicodeDecodeError:
        return None
    return found
