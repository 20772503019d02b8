"""A note that is not in its folder yet: which notes it links to, found by their names alone."""

from __future__ import annotations

from collections.abc import Iterable

from cocite.extras import need
from cocite.io.readers.notes import EXTRA, LIBRARIES, note, vault


def draft_links(content: bytes, names: Iterable[str], at: str) -> tuple[list[str], list[str]]:
    """Return the nodes of these ``names`` that a note at the path ``at`` links to, without itself,
    and what is written in links that lead to none. Aliases of notes are not known.
    """
    for library in LIBRARIES:
        need(library, "reading a Markdown draft", EXTRA)
    known = list(names)
    nodes, in_note = frozenset(known), note.links_of(content)
    places = vault.Vault([*known, *([] if at in nodes else [at])])
    found, lost = list[str](), list[str]()
    for kind, written in in_note["links"]:
        where, name = places.find(kind, written, at)
        if where == vault.BROKEN:
            lost.append(written)
        elif name in nodes and name != at:
            found.append(name)
    found += [f"#{tag}" for tag in in_note["tags"] if f"#{tag}" in nodes]
    return list(dict.fromkeys(found)), lost
