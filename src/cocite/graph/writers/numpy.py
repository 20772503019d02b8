"""``.npy``: one array, as NumPy loads and maps it. Constant memory."""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.graph.writers.writer import ArrayFile
from cocite.store import disk

__all__ = ["NPY"]


def _write(
    path: Path, pieces: Iterable[NDArray[Any]], dtype: np.dtype[Any], shape: tuple[int, ...]
) -> None:
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    with disk.rewrite(path) as file:
        begin = BytesIO()
        np.lib.format.write_array_header_1_0(begin, header)
        disk.write(file, begin.getvalue())
        for piece in pieces:
            disk.write(file, np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)


NPY = ArrayFile("NumPy", _write)
