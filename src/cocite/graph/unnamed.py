r"""Characters that no name has: a terminal or a page would do something, and not show them.

    controls    U+0000 to U+001F, U+007F to U+009F: ends of lines, ESC, and what ESC
                begins in one sign
    turns       U+202A to U+202E, U+2066 to U+2069: they turn the direction of the text that
                follows, so that a name looks like another one (CVE-2021-42574)

Marks of direction (U+200E, U+200F, U+061C) and joiners (U+200C, U+200D) are part of how names are
written in some languages, reach no further than their neighbours, and stay.

Names of files are looked at by ``kernels/text_checks.py``; this is the same for Python and DuckDB.
Source: https://www.unicode.org/reports/tr9/, 2.1 to 2.5; https://www.unicode.org/reports/tr36/.
"""

from __future__ import annotations

import re

__all__ = ["REFUSED", "REFUSED_SQL", "refused_in", "turn_in"]

_CONTROLS = "\x00-\x1f\x7f-\x9f"
_TURNS = "\u202a-\u202e\u2066-\u2069"
REFUSED = _CONTROLS + _TURNS
"""Ranges of a regular expression."""
REFUSED_SQL = r"[\x00-\x1f\x7f-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]"
"""A pattern of DuckDB."""

_CONTROL, _TURN = re.compile(f"[{_CONTROLS}]"), re.compile(f"[{_TURNS}]")


def turn_in(text: str) -> str:
    """What is wrong with ``text``, in words, if it turns the direction of writing; else empty."""
    found = _TURN.search(text)
    return f"U+{ord(found[0]):04X}, which turns the direction of text" if found else ""


def refused_in(text: str) -> str:
    """What is in ``text`` that no name has, in words; empty if there is nothing of the kind."""
    return "a control character" if _CONTROL.search(text) else turn_in(text)
