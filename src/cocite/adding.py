"""Floats added up from left to right, one after another, in every Python.

The built-in ``sum`` makes up for rounding since Python 3.12, and does not before. So a weight that
is a share of a sum would be another number there, and an index that one Python made would be
damaged to the other. Whatever comes into an index or an answer is added up here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

__all__ = ["added"]


def added(values: Iterable[float]) -> float:
    """Their sum, rounded after each of them; 0.0 of none."""
    return reduce(add, values, 0.0)
