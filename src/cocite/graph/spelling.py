r"""Spelling of names: which differences searches ignore, and which characters are not allowed.

Searches ignore case, percent-encoding, the accents of Latin letters, the number of blanks, and
whether blanks are underscores. ``São Paulo`` finds ``S%C3%A3o_Paulo``; ``SAO-PAULO`` does not.

Names cannot contain control characters (U+0000 to U+001F, U+007F to U+009F), which affect terminals
and web pages, or characters that change the text direction (U+202A to U+202E, U+2066 to U+2069),
which make one name look like another (CVE-2021-42574). Direction marks and joiners are allowed.
Blanks (U+0020) at the ends of a name are removed, because fixed-width columns are padded with them.
``kernels/text.py`` applies these rules to names in files; this module applies them in Python and in
DuckDB.

A search compares about 3 million short names per second, or 300,000 with percent-encoding or
accents. Source: https://www.unicode.org/reports/tr9/, sections 2.1 to 2.5; .../tr36/.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CODES = re.compile("(?:%[0-9A-Fa-f]{2})+")
_BLANKS = re.compile(r"[^\S\n]{2,}|[^\S\n ]")
_ACCENTS = re.compile("[\u0300-\u036f]+")


def folded(text: str) -> str:
    """Return ``text`` without the differences that searches ignore. Line ends are preserved, so one
    call can fold many names, one per line.
    """
    if "%" in text:
        text = _CODES.sub(lambda codes: _decoded(codes[0]), text)
    text = text.replace("_", " ").casefold()
    text = _BLANKS.sub(" ", text)
    if not text.isascii():
        bare = _ACCENTS.sub("", unicodedata.normalize("NFD", text))
        text = unicodedata.normalize("NFC", bare)
    return text


@lru_cache(1 << 12)
def _decoded(codes: str) -> str:
    return bytes.fromhex(codes.replace("%", "")).decode("utf-8", "replace")


class NameQuery:
    """A search text, which matches as is, ignoring case and, unless ``plain``, folded."""

    def __init__(self, text: str, *, plain: bool = False) -> None:
        self._text, self._plain, self._folded = text, text.casefold(), folded(text).strip()
        self._only_plain = plain

    def within(self, name: str) -> bool:
        """Return whether ``name`` contains the text."""
        if self._plain in name.casefold():
            return True
        return not self._only_plain and self._folded in folded(name)

    def among(
        self, texts: Callable[[NDArray[Any]], list[str]], count: int, piece: int
    ) -> NDArray[np.uint32]:
        """Return the positions of names that contain the text, uint32; read ``piece`` names at a
        time.
        """
        found = [np.empty(0, np.uint32)]
        for low in range(0, count, piece):
            some = texts(np.arange(low, min(low + piece, count)))
            if self.within("\n".join(some)):
                places = (i for i, text in enumerate(some, low) if self.within(text))
                found.append(np.fromiter(places, np.uint32))
        return np.concatenate(found)

    def how(self, name: str) -> int:
        """Return the rank of ``name``, 0 to 4 as in ``graph/names.py``; 9 if it does not match."""
        if name == self._text:
            return 0
        return min(_how(name.casefold(), self._plain), _how(folded(name), self._folded))


def _how(name: str, wanted: str) -> int:
    place = name.find(wanted)
    if place <= 0:
        return (1 if name == wanted else 2) if place == 0 else 9
    while place > 0:
        if not (name[place - 1].isalnum() and wanted[:1].isalnum()):
            return 3
        place = name.find(wanted, place + 1)
    return 4


_CONTROLS, _TURNS = "\x00-\x1f\x7f-\x9f", "\u202a-\u202e\u2066-\u2069"
REFUSED = _CONTROLS + _TURNS
"""Ranges of refused characters, for a regular expression."""
REFUSED_SQL = r"^ *$|[\x00-\x1f\x7f-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]"
"""DuckDB pattern of refused names, including blank ones."""
PADDED = "(name LIKE ' %' OR name LIKE '% ')"
"""DuckDB condition for names with leading or trailing blanks."""


def trimmed(name: str) -> str:
    """Return a name without leading or trailing blanks."""
    return name.strip(" ")


def turn_in(text: str) -> str:
    """Describe the first character that changes the text direction, or return ""."""
    found = re.search(f"[{_TURNS}]", text)
    return f"U+{ord(found[0]):04X}, which changes the text direction" if found else ""


def refused_in(text: str) -> str:
    """Describe a character that names cannot contain, or return ""."""
    return "a control character" if re.search(f"[{_CONTROLS}]", text) else turn_in(text)
