"""The nearest layout: which files there are; ``build.py`` says what is in them."""

from __future__ import annotations

from typing import ClassVar

from cocite.layouts.format import WholeFormat

__all__ = ["NearestFormat"]


class NearestFormat(WholeFormat):
    """The layout ``nearest``."""

    files: ClassVar[dict[str, str]] = {
        "nearest.offsets": "<u8[n + 1]",
        "nearest.nodes": "<u4[E]",
        "nearest.values": "<f4[E]",
        "holders.offsets": "<u8[n + 1]",
        "holders.nodes": "<u4[E]",
        "holders.values": "<f4[E]",
        "norms": "<f8[n, 2]",
        "mutual_norms": "<f8[n, 2]",
    }
