"""Pages that people know, to begin with: those that most others link to, each of another kind.

Pages with titles come first where the graph has any, then those with more in-links, then smaller
ids. A page that is in the list of one before it is left out, and so is one that has no related
pages. In-links are counted in the graph where that is at hand, else in the index where it holds
links; in an index of samples alone, pages that are in many lists of others stand for them.

Cost: a pass over the offsets of the links, 8 bytes a node, and a question for each page that is
looked at, some twenty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cocite.deadline import limited
from cocite.errors import QueryTimeout
from cocite.search.index import Index
from cocite.search.source import in_offsets_of

_CANDIDATES, _NEAR = 400, 20
"""Pages that are looked at, and how far in the list of one before it a page may not be."""
_LISTS, _LISTED = 40, 10
"""Lists that are made where no links are at hand, and how many pages of each are counted."""
_RANK_PIECE = 1 << 20
_LONGEST = 2.0
"""Seconds after which those that were found are enough."""


def prominent(index: Index, most: int) -> list[tuple[str, str | None]]:
    """Up to ``most`` names, and their titles; None where a page has none."""
    found: list[tuple[str, str | None]] = []
    near: set[str] = set()
    try:
        with limited(_LONGEST):
            for name in _candidates(index):
                if name in near:
                    continue
                hits = index.related(name, _NEAR)
                if hits:
                    found.append((name, (index.titles_of([name]) or [""])[0] or None))
                    near.update(str(hit.node) for hit in hits)
                if len(found) == most:
                    break
    except QueryTimeout:
        pass  # a large graph has large lists: what there is will do
    return found


def _candidates(index: Index) -> Iterator[str]:
    """Names, the best known first."""
    offsets = in_offsets_of(index.stored, index._graph)
    if offsets is None:
        yield from _listed(index)
        return
    ids = _most_linked(offsets, index)
    names = [str(name) for name in index.nodes.names(ids)]
    titles = index.titles_of(names)
    if titles is not None:
        yield from (name for name, title in zip(names, titles, strict=True) if title)
        yield from (name for name, title in zip(names, titles, strict=True) if not title)
    else:
        yield from names


def _most_linked(offsets: NDArray[np.uint64], index: Index) -> NDArray[np.uint32]:
    """The ids of the pages with most in-links, most first."""
    best, ids = np.empty(0, np.int64), np.empty(0, np.int64)
    for begin in range(0, len(index.nodes), _RANK_PIECE):
        mine = np.arange(begin, min(begin + _RANK_PIECE, len(index.nodes)))
        there = index.stored.in_graph(mine.astype(np.uint32)).astype(np.int64)
        degrees = (offsets[there + 1] - offsets[there]).astype(np.int64)
        best, ids = np.append(best, degrees), np.append(ids, mine)
        order = np.lexsort((ids, -best))[:_CANDIDATES]
        best, ids = best[order], ids[order]
    return ids[best > 0].astype(np.uint32)


def _listed(index: Index) -> list[str]:
    """Names of pages that many lists have, those of pages far from each other in order of ids."""
    count, seen = len(index.nodes), Counter[str]()
    for place in sorted({each * count // _LISTS for each in range(_LISTS)}) if count else ():
        seen.update(str(hit.node) for hit in index.related(index.nodes.name(place), _LISTED))
    return [name for name, _ in seen.most_common()]
