"""An index with one more page: as if a draft had been in the graph when the index was made.

The draft gets the last id. Its samples are drawn along the links with it, by the keys of the
index's samples; other links include it; lists, rings and features are made on demand
(``layouts/*/on_the_fly.py``). So answers equal those of an index of the graph with the page.

For a refreshed index all samples are drawn from the newest graph. An index of selected pages is
refused: the draft may link to others.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cached_property

from cocite.errors import Damaged, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.graph import NamesAndOne, UnseenPage
from cocite.graph.links import links_of
from cocite.index.layouts.on_the_fly import DraftEnds, DraftPart, LinksOf, memoized_links
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.snapshots import Freshness
from cocite.index.stored import StoredIndex
from cocite.options import DIRECTIONS
from cocite.resources import Resources


class Drafts:
    """State shared by all drafts of an open index: the links of its graph."""

    def __init__(self, stored: StoredIndex, graph: Callable[[], Graph], means: Resources) -> None:
        """``graph`` finds the newest graph of the index on demand."""
        if stored.kept is not None:
            raise UsageError(
                f"{stored.store.path} keeps {stored.kept.in_words(stored.nodes)}: a draft may link "
                "to others. Ask an index of all pages"
            )
        self._stored, self._means, self._find = stored, means, graph
        self._links = memoized_links(
            lambda way, weighted: links_of(self._graph, way, means.memory, weighted=weighted)
        )

    @cached_property
    def _graph(self) -> Graph:
        found = self._find()
        found.check()
        return found

    def links(self, way: str) -> Links:
        """Return the links of the graph, with weights if they are used."""
        return self._links(way, self._stored.weighted)

    def __call__(self, page: UnseenPage, name: str, replaced: int | None = None) -> UnseenIndex:
        """Return the index with an added page of this name, which may replace a node."""
        shared, parts = DraftEnds(self._links, page, self._means), []
        for part in self._stored.parts:
            own = DraftEnds(_own(part), page, self._means) if part.layout == "links" else shared
            facts = {name: getattr(part, name) for name in StoredPart.__dataclass_fields__}
            facts |= {"nodes": part.nodes + 1, "freshness": _of_one(part.freshness)}
            parts.append(DraftPart(**facts, ends=own, built=part))
        return UnseenIndex(self._stored, page, name, tuple(parts), replaced)


def _own(part: StoredPart) -> LinksOf:
    """Return the links that a part stores."""
    return lambda way, weighted: part.links(way)


def _of_one(freshness: Freshness) -> Freshness:
    """Return the freshness with all samples from the newest graph."""
    numbers, newest = freshness.numbers, freshness.snapshots[-1]
    whole = replace(newest, refresh=0, first=numbers.start, samples=len(numbers))
    return replace(freshness, snapshots=(whole,), since=None)


class UnseenIndex(StoredIndex):
    """The index ``stored`` with one page more. It is never written."""

    drafted = True

    def __init__(
        self,
        stored: StoredIndex,
        page: UnseenPage,
        name: str,
        parts: tuple[DraftPart, ...],
        replaced: int | None = None,
    ) -> None:
        self.__dict__.update(stored.__dict__)
        self.replaced = replaced
        if stored.titles is not None:
            self.titles = copy(stored.titles)
            self.titles.draft = replaced
        self.names = NamesAndOne(stored.names, name)
        self.nodes, self.page, self.parts = stored.nodes + 1, page, parts
        self.freshness = _of_one(stored.freshness)

    @property
    def unlinked(self) -> str:
        """Describe the links that all its parts use, if the draft has none of them."""
        ways = {part.measure.looks_at(part.direction) for part in self.parts}
        found = " or ".join(DIRECTIONS[way] for way in DIRECTIONS if way in ways)
        return "" if any(self.page.row(way)[0].size for way in ways) else found

    @property
    def graph_nodes(self) -> int:
        """Return the number of nodes of its graph, without the draft."""
        return self.nodes - 1

    def without(self, file: str, fault: str) -> StoredIndex:
        """Raise :class:`Damaged`: the underlying index must exclude the shard."""
        raise Damaged(fault)
