"""A page that is not in a graph: its links, the graph's links with them, the names with its own.

The page gets the last id, ``nodes``. So it stands at the end of every row that it comes into, and
no other id changes:

    in-links     rows of the pages that it links to get it; its own row: who links to it
    out-links    rows of the pages that link to it get it; its own row: what it links to
    either way   both; a page that is linked with it both ways gets it twice, and is twice in its
                 row, the in-link first (``graph/links.py``)

Draws are keyed by ids, so walks over these links are those of a graph that has the page for its
last one.

Cost: a copy of the links, in a scratch file where the memory given does not hold it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import Damaged
from cocite.graph.graph import MAX_NODES
from cocite.graph.names import Names
from cocite.graph.rows import Links
from cocite.store import Scratch

__all__ = ["NamesAndOne", "Page", "with_page"]

Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Page:
    """The links of a page: ``out`` uint32[o] are the pages that it links to and ``into`` uint32[i]
    those that link to it, ascending, each once; float32 weights beside them.
    """

    out: Ids
    into: Ids
    out_weights: NDArray[np.float32]
    into_weights: NDArray[np.float32]

    def row(self, way: str) -> tuple[Ids, NDArray[np.float32]]:
        """Its own row, ``in``, ``out`` or ``any``, and the weights in it."""
        if way == "in":
            return self.into, self.into_weights
        if way == "out":
            return self.out, self.out_weights
        ids = np.concatenate((self.into, self.out))
        order = np.argsort(ids, kind="stable")
        return ids[order], np.concatenate((self.into_weights, self.out_weights))[order]

    def rows(self, way: str) -> tuple[Ids, NDArray[np.float32]]:
        """The pages whose rows it comes into, ascending, and the weights there."""
        if way == "in":
            return self.out, self.out_weights
        if way == "out":
            return self.into, self.into_weights
        ids = np.concatenate((self.out, self.into))  # of theirs, an in-link comes first, too
        order = np.argsort(ids, kind="stable")
        return ids[order], np.concatenate((self.out_weights, self.into_weights))[order]


def with_page(links: Links, page: Page, way: str, memory: int, scratch: Scratch) -> Links:
    """The ``links`` of a direction (``in``, ``out``, ``any`` or ``both``) with one page more.

    They are made in memory if ``memory`` bytes hold them twice, else in ``scratch``; with weights
    if ``links`` have some.
    """
    if way == "both":
        assert links.back is not None
        ins = with_page(replace(links, back=None), page, "in", memory, scratch)
        return replace(ins, back=with_page(links.back, page, "out", memory, scratch))
    own, own_weights = page.row(way)
    into, into_weights = page.rows(way)
    nodes, more = links.nodes, into.size
    assert nodes < MAX_NODES
    room = Scratch(None) if 2 * links.nbytes <= memory else scratch
    offsets = room.zeros(nodes + 2, np.uint64)
    ends = [0, *(into.astype(np.int64) + 1).tolist(), nodes + 1]
    for before, (low, high) in enumerate(pairwise(ends)):
        np.add(links.offsets[low:high], np.uint64(before), out=offsets[low:high])
    offsets[nodes + 1] = links.edges + more + own.size
    cuts = links.offsets[into.astype(np.int64) + 1].astype(np.int64)
    newcomer = np.full(more, nodes, np.uint32)
    neighbours = _spliced(links.neighbours, cuts, newcomer, own, room)
    weights = None
    if links.weights is not None:
        weights = _spliced(links.weights, cuts, into_weights, own_weights, room)
    return Links(offsets, neighbours, weights)


def _spliced(
    values: NDArray[Any], cuts: NDArray[np.int64], put: NDArray[Any], own: NDArray[Any], to: Scratch
) -> NDArray[Any]:
    """``values`` with ``put[i]`` before place ``cuts[i]``, ascending, and ``own`` at the end."""
    found = to.zeros(values.size + put.size + own.size, values.dtype)
    begin = 0
    for i, (cut, value) in enumerate(zip(cuts.tolist(), put, strict=True)):
        found[begin + i : cut + i] = values[begin:cut]
        found[cut + i] = value
        begin = cut
    found[begin + put.size : values.size + put.size] = values[begin:]
    found[values.size + put.size :] = own
    return found


class NamesAndOne(Names):
    """Names of nodes, and one of a page behind them, which no search finds but by its name."""

    def __init__(self, names: Names, name: str) -> None:
        super().__init__(len(names) + 1)
        self._names, self._own, self.note = names, name, names.note
        self.titles = names.titles

    def names(self, ids: NDArray[Any]) -> list[str]:
        """The names of ``ids``, in their order."""
        ids = self._check(ids)
        own = ids == self._count - 1
        known = iter(self._names.names(ids[~own]))
        return [self._own if mine else next(known) for mine in own.tolist()]

    def find(self, name: str) -> int | None:
        """The id of ``name``, None if no node has it."""
        return self._count - 1 if name == self._own else self._names.find(name)

    def see_that_none_is(self, name: str) -> None:
        """See that no node of the graph is called so."""
        self._names.see_that_none_is(name)

    def damaged(self) -> Damaged:
        """What is to be said of stored names that cannot be as they are."""
        return self._names.damaged()

    @property
    def stored(self) -> Names:
        """The same, with the names as they are stored."""
        return NamesAndOne(self._names.stored, self._own)

    def is_one(self, value: object) -> bool:
        """Whether a tuple names one node."""
        return self._names.is_one(value)

    def with_prefix(self, prefix: str) -> NDArray[np.uint32]:
        """The ids of all nodes of the graph whose names begin with ``prefix``, ascending."""
        return self._names.with_prefix(prefix)

    def complete(self, prefix: str, limit: int = 10, but: str | None = None) -> list[str]:
        """The first ``limit`` names of the graph that begin with ``prefix``, in their order."""
        return self._names.complete(prefix, limit, but)

    def forget(self) -> None:
        """Give back the memory of the files."""
        self._names.forget()

    def _first_with_prefix(self, prefix: str, limit: int, but: str | None = None) -> NDArray[Any]:
        return self._names._first_with_prefix(prefix, limit, but)

    def _similar(self, name: str, limit: int) -> list[str]:
        return self._names._similar(name, limit)
