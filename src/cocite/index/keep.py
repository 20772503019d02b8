"""Which pages an index keeps, if not all: those with a prefix, those that a list names.

Names that no node has are left out: lists come from elsewhere, and the web of a day has a part of
them. How many were found is told.

Cost: a look-up a name; a binary search a prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.store import Facts

__all__ = ["Keep", "KeptPages", "kept_of"]

_log = logging.getLogger("cocite")
_SHOWN = 3
"""Prefixes that a sentence names."""


@dataclass(frozen=True)
class Keep:
    """The pages whose names begin with one of the ``prefixes``, and those in ``names``."""

    prefixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @classmethod
    def checked(
        cls, names: Iterable[object] | None, prefixes: str | Sequence[str] | None
    ) -> Self | None:
        """None if neither is given; raises :class:`UsageError`."""
        if isinstance(names, str):
            raise UsageError("keep is one text; give a list of names")
        if names is None and prefixes is None:
            return None
        given = (prefixes,) if isinstance(prefixes, str) else tuple(prefixes or ())
        if not all(isinstance(each, str) and each for each in given):
            raise UsageError(
                f"keep_prefix is {prefixes!r}; it is the beginning of names, or a list"
            )
        return cls(given, tuple(dict.fromkeys(map(str, names or ()))))

    def ids(self, graph: Graph) -> NDArray[np.uint32]:
        """uint32[m], ascending: the pages of ``graph`` that are kept; raises :class:`UsageError` if
        there is none.
        """
        found = [graph.names.with_prefix(prefix) for prefix in self.prefixes]
        named = [graph.names.find(name) for name in self.names]
        there = [node for node in named if node is not None]
        ids = np.unique(np.concatenate([*found, np.array(there, np.uint32)]).astype(np.uint32))
        if not ids.size:
            raise UsageError(
                f"{graph.path} has none of the pages that are to be kept: no name is in the list, "
                "or begins with the prefix"
            )
        if len(there) < len(named):
            first = next(name for name, node in zip(self.names, named, strict=True) if node is None)
            _log.warning(
                f"{len(named) - len(there):,} of {len(named):,} names to be kept are not in "
                f"{graph.path}, such as {first!r}"
            )
        return ids


@dataclass(frozen=True)
class KeptPages:
    """What a manifest says of it: the ``nodes`` of the graph, and the ``prefixes`` that pages were
    chosen by, if any.
    """

    nodes: int
    prefixes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As manifests hold it."""
        return {"nodes": self.nodes, "prefixes": list(self.prefixes)}

    def in_words(self, count: int) -> str:
        """Of ``count`` pages that are kept."""
        shown = ", ".join(self.prefixes[:_SHOWN]) + ", ..." * (len(self.prefixes) > _SHOWN)
        by = f" (prefix {shown})" if shown else ""
        return f"{count:,} of the {self.nodes:,} pages of its graph{by}"


def kept_of(facts: Facts, nodes: int, most: int) -> KeptPages | None:
    """What the manifest of an index of so many ``nodes`` says, if it keeps some pages only; raises
    :class:`Damaged`.
    """
    if "wanted" not in facts:
        return None
    told = facts.group("wanted")
    prefixes = told.values.get("prefixes")
    if not isinstance(prefixes, list) or not all(isinstance(p, str) and p for p in prefixes):
        raise told.refused("prefixes", "a list of texts")
    return KeptPages(told.whole("nodes", nodes, most), tuple(prefixes))
