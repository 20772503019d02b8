"""The facts of a manifest, read one by one, each of its kind and between its bounds.

A checksum tells chance, not an enemy: whoever writes a manifest writes its checksum, too. So a fact
that becomes the name of a file, a size or a number is asked for here, by what is allowed, and any
other is :class:`~cocite.errors.Damaged`, with what was found, where, and what may stand there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from cocite.errors import Damaged

__all__ = ["Facts"]

_MOST = 2**63 - 1
_LONGEST_NAME, _LONGEST_PATH = 255, 4096
"""Bytes of a file's name, and characters of a path: no system that is in use has longer ones."""
_DIGEST = re.compile("[0-9a-f]{32}")


class Facts:
    """What a manifest says; ``place`` names it in messages. Everything raises :class:`Damaged`."""

    def __init__(self, values: object, place: str) -> None:
        if not isinstance(values, dict):
            raise Damaged(f"{place} is {_short(values)}; it has names with values. {_REBUILD}")
        self.values: dict[str, Any] = values
        """All of it, unchecked."""
        self._place = place

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def _value(self, name: str) -> Any:
        if name not in self.values:
            raise Damaged(f"{self._place} has no {name}. {_REBUILD}")
        return self.values[name]

    def whole(self, name: str, least: int = 0, most: int = _MOST) -> int:
        """A whole number."""
        found = self._value(name)
        if type(found) is int and least <= found <= most:
            return found
        raise self.refused(name, f"a whole number from {least} to {most}")

    def number(self, name: str, least: float, most: float) -> float:
        """A number, none that is infinite or not a number."""
        found = self._value(name)
        if type(found) in (int, float) and least <= found <= most and abs(found) < float("inf"):
            return float(found)
        raise self.refused(name, f"a number from {least:g} to {most:g}")

    def flag(self, name: str) -> bool:
        """True or false."""
        found = self._value(name)
        if type(found) is bool:
            return found
        raise self.refused(name, "true or false")

    def text(self, name: str, choices: Sequence[str] = ()) -> str:
        """A text, one of the ``choices`` if there are some."""
        found = self._value(name)
        if isinstance(found, str) and (not choices or found in choices):
            return found
        raise self.refused(name, " or ".join(choices) or "a text")

    def digest(self, name: str) -> str:
        """An XXH3-128 in hex."""
        if _DIGEST.fullmatch(self.text(name)):
            return self.text(name)
        raise self.refused(name, "a checksum of 32 hexadecimal digits")

    def relative(self, name: str) -> str:
        """A path that is seen from the store: it may lead out of it, as it is only read."""
        found = self.text(name)
        if found and "\0" not in found and not found.startswith("/") and not _is_too_long(found):
            return found
        raise self.refused(name, "a relative path")

    def group(self, name: str) -> Facts:
        """Facts within a fact."""
        return Facts(self._value(name), f"{self._place}, {name},")

    def groups(self, name: str) -> list[Facts]:
        """A list of such."""
        found = self._value(name)
        if not isinstance(found, list):
            raise self.refused(name, "a list")
        return [Facts(each, f"{self._place}, {name}[{i}],") for i, each in enumerate(found)]

    def same_as(self, expected: Mapping[str, object]) -> None:
        """See that just these values are there."""
        for name, value in expected.items():
            if self._value(name) != value:
                raise self.refused(name, _short(value))
        for name in self.values.keys() - expected.keys():
            raise self.refused(name, "not there")

    def refused(self, name: str, allowed: str) -> Damaged:
        """What to raise for a fact that is not what is ``allowed``."""
        found = _short(self.values.get(name))
        return Damaged(f"{self._place} says that {name} is {found}; it is {allowed}. {_REBUILD}")


_REBUILD = "Copy the directory again from where it was whole, or build it again"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _is_too_long(path: str) -> bool:
    """Whether no system has a file of that name."""
    longest = max(len(name.encode("utf-8", "surrogatepass")) for name in path.split("/"))
    return longest > _LONGEST_NAME or len(path) > _LONGEST_PATH
