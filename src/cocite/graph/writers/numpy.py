"""``.npy``: one array, as NumPy loads and maps it. Constant memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph.writers.writer import ArrayFile

__all__ = ["NPY"]


def _write(
    path: Path, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(np.ascontiguousarray(piece).data)


NPY = ArrayFile("NumPy", _write)
