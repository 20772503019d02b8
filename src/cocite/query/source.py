"""The graph behind an index: found where it was when the index was built, or where one says.

An index answers from its own files. What goes beyond them reads the graph again: refined answers,
and the places where walks meet. Only the very graph will do: its digest is compared with the one
that the index remembers.
"""

from __future__ import annotations

import os
from pathlib import Path

from cocite.errors import NotAStore, UsageError
from cocite.graph import Graph
from cocite.index import StoredIndex

__all__ = ["find_graph"]

_GIVE = "Say where it is with --graph (graph=...)"


def find_graph(stored: StoredIndex, given: Graph | str | os.PathLike[str] | None = None) -> Graph:
    """The graph that ``stored`` was built from: ``given``, or where it was then, as seen from the
    index.

    Raises :class:`NotAStore` if there is none, and :class:`UsageError` if it is another one.
    """
    found = given if isinstance(given, Graph) else _opened(stored, given)
    if found.digest != stored.graph.get("digest"):
        raise UsageError(
            f"{found.path} is not the graph that {stored.store.path} was built from, which was "
            f"called {stored.graph.get('name')}: their checksums differ. {_GIVE}, or build the "
            "index again"
        )
    return found


def _opened(stored: StoredIndex, given: str | os.PathLike[str] | None) -> Graph:
    if given is not None:
        return Graph.open(given)
    told, index = stored.graph.get("path"), Path(stored.store.path)
    name = stored.graph.get("name")
    if not isinstance(told, str):
        raise NotAStore(f"{index} does not say where its graph {name} is. {_GIVE}")
    path = Path(os.path.normpath(index.resolve() / told))
    try:
        return Graph.open(path)
    except NotAStore as error:
        raise NotAStore(
            f"the graph {name}, from which {index} was built, is not at {path}. {_GIVE}"
        ) from error
