"""The text layout: which files there are; ``build.py`` says what is in them."""

from __future__ import annotations

from typing import ClassVar

from cocite.layouts.format import WholeFormat

__all__ = ["TextFormat"]


class TextFormat(WholeFormat):
    """The layout ``text``."""

    files: ClassVar[dict[str, str]] = {
        "texts.offsets": "<u8[n + 1]",
        "texts.words": "<u4[E]",
        "texts.values": "<f4[E]",
        "holders.offsets": "<u8[w + 1]",
        "holders.nodes": "<u4[E]",
        "holders.values": "<f4[E]",
        "words.offsets": "<u8[w + 1]",
        "words.letters": "|u1[B]",
    }
