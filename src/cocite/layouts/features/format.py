"""The features layout: which files there are; ``build.py`` says what is in them."""

from __future__ import annotations

from typing import ClassVar

from cocite.layouts.format import WholeFormat

__all__ = ["FeaturesFormat"]


class FeaturesFormat(WholeFormat):
    """The layout ``features``."""

    files: ClassVar[dict[str, str]] = {
        "holders.offsets": "<u8[n + 1]",
        "holders.nodes": "<u4[E]",
        "holders.values": "<f4[E]",
        "features.offsets": "<u8[n + 1]",
        "features.nodes": "<u4[E]",
        "features.values": "<f4[E]",
        "cut": "<f4[n]",
    }
