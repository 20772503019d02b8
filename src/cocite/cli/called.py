"""Nodes as they are typed, and as they are stored: on a side, or pages by their paths.

Of a folder of HTML pages a shell completes the paths of files, ``site/guide/install.html``, where
the page is called ``guide/install.html``; in the folder itself it is ``./guide/install.html``. A
path counts from where one is, as a shell has it, then from the folder; a folder in it is its index
page, as in a URL. A page that is called as it was typed is that page, whatever files there are.

A name in another spelling, or a title, is the node that is meant if there is only one.

Cost: a look for each name that is no page's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cocite.cli.output import say
from cocite.errors import UsageError
from cocite.graph.names import Resolver
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.graph.names import Names
    from cocite.search import Index


_INDEXES = ("index.html", "index.htm", "index.xhtml", "index.xht", "index.shtml")


def as_stored(index: Index, path: str, nodes: Sequence[str], side: str | None = None) -> list[str]:
    """The names of ``nodes`` as they are stored in the index of ``path``, which was typed; of those
    of a ``side``, if one is said. Raises :class:`UsageError` if there are no sides.
    """
    if side is not None:
        sides = index.nodes.sides
        if sides is None:
            raise UsageError(f"{index.stored.store.path} is not bipartite: leave --side out")
        nodes = [sides.name(side, node) for node in nodes]
    elif os.path.isdir(path) and kind_of(path) is None:
        nodes = [node if node in index.nodes else _page(index.nodes, path, node) for node in nodes]
    resolver, found = Resolver(index.nodes), []
    for typed in nodes:
        node = resolver.find(typed)
        found.append(typed if node is None else index.nodes.stored.name(node))
        if found[-1] != typed:
            say(f"{typed!r} is answered as {found[-1]!r}")
    return found


def _page(names: Names, folder: str, typed: str) -> str:
    """The page at a path; what was typed, if there is none."""
    root = Path(os.path.realpath(folder))
    for base in (Path(), root):
        real = Path(os.path.realpath(base / typed))
        if not real.is_relative_to(root) or not real.exists():
            continue
        for found in (real, *(real / name for name in _INDEXES)):
            name = found.relative_to(root).as_posix()
            if name in names:
                return name
    return typed
