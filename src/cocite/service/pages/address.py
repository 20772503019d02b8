"""The state of a page is its address: the question as the API takes it, and what else is looked at.

    /?node=NAME&index=near&k=20&decay=0.8&prefix=...&refine=true      what ``GET /v1/related`` takes
     &why=OTHER                                                       whose reasons are shown

So a page can be kept, sent and gone back to, and its JSON is the same query under ``/v1/related``.
Fields that a form leaves empty mean nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import quote, urlencode, urlsplit

__all__ = ["State", "outward", "readable"]

_LONGEST = 2048
"""Characters of an address that a name may be: longer ones are no links."""


@dataclass(frozen=True)
class State:
    """What a page is asked for: ``nodes``, whose reasons ``why``, and all ``others`` as texts."""

    nodes: tuple[str, ...] = ()
    why: str | None = None
    others: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """The state in the fields of a query."""
        nodes, why, others = [], None, []
        for name, value in pairs:
            if name == "node" and value:
                nodes.append(value)
            elif name == "why":
                why = value or None
            elif value and name != "node":
                others.append((name, value))
        return cls(tuple(dict.fromkeys(nodes)), why, tuple(others))

    def get(self, name: str) -> str | None:
        """A text that was given."""
        return next((value for other, value in self.others if other == name), None)

    @property
    def question(self) -> list[tuple[str, str]]:
        """The fields that the API takes."""
        return [*(("node", node) for node in self.nodes), *self.others]

    def without(self, *names: str) -> State:
        """The same, but for some of the others."""
        return replace(self, others=tuple(pair for pair in self.others if pair[0] not in names))

    def asking(self, *nodes: str) -> State:
        """Other nodes, with the same settings: from the first hit on, and no reasons. Their names
        are those of the index, which need no side.
        """
        return replace(self.without("offset", "side"), nodes=nodes, why=None)

    def reasons(self, node: str | None) -> State:
        """The same with the reasons of another hit, or none."""
        return replace(self, why=node)

    def at(self, offset: int) -> State:
        """The same list further on."""
        found = replace(self.without("offset"), why=None)
        return replace(found, others=(*found.others, ("offset", str(offset)))) if offset else found

    def safely(self) -> State:
        """The same as a list for spreadsheets."""
        return replace(self, others=(*self.others, ("safe", "true")))

    def href(self, path: str = "/", *, reasons: bool = True) -> str:
        """The address."""
        pairs = self.question + ([("why", self.why)] if reasons and self.why is not None else [])
        query = urlencode(pairs, quote_via=quote, errors="surrogateescape")
        return f"{path}?{query}" if query else path


def outward(name: str) -> str | None:
    """The name as a link to where it leads, if it is an address of http or https and nothing else;
    else None.
    """
    if not name.lower().startswith(("http://", "https://")) or len(name) > _LONGEST:
        return None
    if not name.isprintable() or any(sign.isspace() or sign in '"<>\\^`{|}' for sign in name):
        return None
    try:
        return name if urlsplit(name).hostname else None
    except ValueError:
        return None


def readable(name: str, most: int) -> str:
    """A name in at most ``most`` characters: of an address without its scheme, and rather its end
    than its middle.
    """
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in name)
    if outward(name) is not None:
        text = text.split("://", 1)[1].rstrip("/")
    if len(text) <= most:
        return text
    head = (most - 1) // 3 if outward(name) is not None else (most - 1) * 2 // 3
    return f"{text[:head]}…{text[len(text) - (most - 1 - head) :]}"
