"""The scan by its definition: node by node, lane by lane, one Python number at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def scan(
    neighbors: list[list[int]], x: NDArray[Any], fold: str, start: NDArray[Any] | None
) -> NDArray[Any]:
    """``neighbors`` ascending; x and the result (nodes,) or (nodes, lanes)."""
    rows = x.reshape(len(neighbors), -1).tolist()
    begin = None if start is None else start.reshape(len(neighbors), -1).tolist()
    found = np.empty_like(x)
    cells = found.reshape(len(neighbors), -1)
    for node, sources in enumerate(neighbors):
        for lane in range(cells.shape[1]):
            first = identity(fold, x.dtype) if begin is None else begin[node][lane]
            cells[node, lane] = folded(fold, first, [rows[u][lane] for u in sources], x.dtype)
    return found


def identity(fold: str, dtype: np.dtype[Any]) -> int | float:
    """The result of ``fold`` without values."""
    if dtype.kind == "f":
        return {"sum": 0.0, "min": float("inf"), "max": float("-inf")}[fold]
    return {"sum": 0, "min": 2**32 - 1, "max": 0}[fold]


def folded(fold: str, first: Any, values: list[Any], dtype: np.dtype[Any]) -> Any:
    """The fold of ``values``; floats have 64 bits, and the caller rounds them to ``dtype``."""
    result = first
    for value in values:
        if fold == "sum":
            result = result + value
        elif fold == "min":
            result = value if value < result else result
        else:
            result = value if value > result else result
    return result % 2**32 if dtype.kind == "u" else result
