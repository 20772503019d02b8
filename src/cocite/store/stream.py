"""One scratch array that is written piece by piece, of a length that is not known before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cocite.store.spool import ScratchFile

__all__ = ["Stream"]


class Stream:
    """Pieces one behind the other, in a nameless file in ``directory``."""

    def __init__(self, directory: Path, dtype: DTypeLike) -> None:
        self._file, self._dtype = ScratchFile(directory), np.dtype(dtype)
        self.size = 0

    def append(self, piece: NDArray[Any]) -> None:
        """Add a contiguous piece of the array's dtype; a full disk is a ResourceError."""
        self._file.write(self.size * self._dtype.itemsize, piece)
        self.size += piece.size

    def finish(self) -> NDArray[Any]:
        """The whole array, mapped and writable."""
        return self._file.mapped(self._dtype, self.size)
