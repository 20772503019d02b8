"""How names are compared when people look for them: spellings that mean the same.

``São Paulo`` finds ``S%C3%A3o_Paulo`` and ``SAO-PAULO`` does not: case, underscores in the place of
blanks, percent-encoding and the accents of Latin letters make no difference, everything else does.

Cost: some 3 million short names a second, and 300,000 that have codes or accents.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

__all__ = ["Wanted", "folded"]

_CODES = re.compile("(?:%[0-9A-Fa-f]{2})+")
_ACCENTS = re.compile("[\u0300-\u036f]+")


def folded(text: str) -> str:
    """``text`` without what makes no difference. Line ends stay where they are, so that many names
    may be folded as one text with a line each, where none has a line end in it.
    """
    if "%" in text:
        text = _CODES.sub(lambda codes: _decoded(codes[0]), text)
    text = text.replace("_", " ").casefold()
    if not text.isascii():
        bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", bare)
    return text


@lru_cache(1 << 12)
def _decoded(codes: str) -> str:
    return bytes.fromhex(codes.replace("%", "")).decode("utf-8", "replace")


class Wanted:
    """A text that is looked for: as it is written, in any case; folded, too, unless ``plain``."""

    def __init__(self, text: str, *, plain: bool = False) -> None:
        self._plain, self._folded = text.casefold(), folded(text)
        self._only_plain = plain

    def within(self, name: str) -> bool:
        """Whether ``name`` contains it."""
        if self._plain in name.casefold():
            return True
        return not self._only_plain and self._folded in folded(name)

    def how(self, name: str) -> int:
        """0 if ``name`` is it, 1 if it begins so, else 2."""
        spellings = (name.casefold(), self._plain), (folded(name), self._folded)
        if any(a == b for a, b in spellings):
            return 0
        return 1 if any(a.startswith(b) for a, b in spellings) else 2
