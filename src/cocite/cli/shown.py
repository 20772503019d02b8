r"""What a terminal would read as more than text, written out: names come from others.

Control characters, among them those that begin a sequence of ANSI (ESC, and CSI in one byte), and
what turns the direction of writing round, so that a name looks like another one. ``\x1b`` and
``\u202e`` stand in their place: what is shown is what is there, and no more happens. In JSON such
an escape is the sign itself, so programs read what they did.
"""

from __future__ import annotations

import re

__all__ = ["as_json", "shown"]

_READ = "\x7f-\x9f\u061c\u2028-\u202e\u2066-\u2069\ufeff"
"""Beyond ASCII's own controls: DEL, C1; separators of lines; overrides of direction, isolates."""
_SIGNS = re.compile(f"[\x00-\x08\x0b-\x1f{_READ}]")
_IN_JSON = re.compile(f"[{_READ}]")


def shown(text: str) -> str:
    """``text`` for people, who see line ends and tabs as such and all else that is read written
    out.
    """
    if text.isascii() and text.isprintable():
        return text
    return _SIGNS.sub(_escape, text)


def as_json(text: str) -> str:
    """A document of JSON that says the same in signs that no terminal reads."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
