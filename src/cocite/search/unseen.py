"""Drafts: query pages outside the graph, answered as if the graph contained them.

A draft is defined by its links: ``out`` to other pages, ``into`` from other pages; see
:meth:`UnseenNode.read` for the text format. Duplicate links count once; their weights add up, as in
``io/ingest.py``. Weights require an index that uses weights.

The draft gets the last id. Its samples are drawn with the keys of the index's samples; lists, hop
neighborhoods and features are computed on demand (``index/layouts/*/on_the_fly.py``). Answers
therefore equal those of an index whose graph contains the page. For a refreshed index, all samples
are drawn from the newest graph. A draft costs a copy of the links in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Ids, added
from cocite.errors import Damaged, InputError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.graph import NamesAndOne, UnseenPage
from cocite.graph.links import links_of
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.index.layouts.on_the_fly import DraftEnds, DraftPart, memoized_links
from cocite.index.layouts.snapshots import Freshness
from cocite.options import DIRECTIONS
from cocite.resources import Resources
from cocite.search.source import GivenGraph, checked_graph

DRAFT = "draft"
"""The default name of a draft."""
LinksLike = Iterable[object] | Mapping[Any, float]
"""Names, or names with link weights, as a mapping or as pairs."""
_SHOWN = 5
_ARROWS = ("->", "<-")
_log = logging.getLogger("cocite")
_LARGEST = float(np.finfo(np.float32).max)


class UnseenNode(NamedTuple):
    """A draft's links in each direction: (name, weight or None)."""

    out: list[tuple[str, float | None]]
    into: list[tuple[str, float | None]]

    @classmethod
    def of(cls, out: LinksLike, into: LinksLike) -> UnseenNode:
        """Create a draft from links; raises :class:`UsageError`."""
        return cls(_links_of("out", out), _links_of("into", into))

    @classmethod
    def read(cls, text: bytes, where: str) -> UnseenNode:
        """Parse a draft with one link per line; raises :class:`InputError`, naming it ``where``.

        Zebra               the draft links to the page Zebra
        -> Zebra            the same; required for names that begin with an arrow
        <- Africa<TAB>2.5   Africa links to the draft, with a weight; the default is 1
        """
        try:
            lines = text.decode("utf-8-sig").split("\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where} is not UTF-8 text (byte {error.start:,}); it must contain the links of "
                "a draft, one per line"
            ) from error
        draft = cls([], [])
        for number, line in enumerate(lines, 1):
            name, tab, weight = line.removesuffix("\r").partition("\t")
            to, into = name.startswith("-> "), name.startswith("<- ")
            name = name[3:] if to or into else name
            if not name and not (tab or to or into):
                continue
            try:
                value = float(weight) if tab else None
                if not name or not (value is None or 0 < value <= _LARGEST):
                    raise ValueError
            except ValueError:
                raise InputError(
                    f"{where}:{number}: {line!r} is not a link of a draft: a name, optionally "
                    "after '-> ' or '<- ', and optionally before a tab and a weight above 0"
                ) from None
            (draft.into if into else draft.out).append((name, value))
        return draft

    @classmethod
    def of_note(cls, content: bytes, names: Names, at: str) -> UnseenNode:
        """Create a draft from a Markdown note. ``names`` are the notes in its folder, and ``at`` is
        the note's path without extension. Links without a target are skipped and logged.
        """
        from cocite.io.readers.notes.reader import draft_links

        out, lost = draft_links(content, names.stored, at)
        if lost:
            _log.warning(
                "omitted from the draft: links that lead to no note (%d), such as %r",
                len(lost),
                lost[0],
            )
        return cls([(name, None) for name in out], [])

    def page(self, names: Names, *, weighted: bool, skip_unknown: bool) -> UnseenPage:
        """Resolve the names in the links against the node ``names``.

        Raises :class:`UsageError` for unknown names, unless skipped; for weights that the index
        ignores; and if no link is left.
        """
        given = [value for _, value in self.out + self.into if value is not None]
        if given and not weighted:
            raise UsageError(
                "the draft's links have weights, but the index ignores weights: omit the weights"
            )
        unknown = list(dict.fromkeys(name for name, _ in self.out + self.into if name not in names))
        if unknown and not skip_unknown:
            raise UsageError(_unknown(unknown, names))
        if unknown:
            _log.warning(
                "omitted from the draft: links to or from %s, such as %r",
                f"{len(unknown):,} unknown page{'s' * (len(unknown) > 1)}",
                unknown[0],
            )
        out, into = (_side(side, names) for side in self)
        if not out[0].size and not into[0].size:
            left = " with a known page" if unknown else ""
            raise UsageError(
                f"the draft has no link{left}, so nothing is related to it. Add pages that the "
                "draft links to, or that link to the draft"
            )
        return UnseenPage(out[0], into[0], out[1], into[1])


def _links_of(what: str, links: LinksLike) -> list[tuple[str, float | None]]:
    if isinstance(links, str | bytes):
        raise UsageError(f"{what} is a single string; pass a list of names")
    found: list[tuple[str, float | None]] = []
    for link in links.items() if isinstance(links, Mapping) else links:
        if not isinstance(link, tuple):
            found.append((str(link), None))
            continue
        name, weight = link if len(link) == 2 else (link, None)
        if not (isinstance(weight, int | float) and 0 < weight <= _LARGEST):
            raise UsageError(
                f"{what} has {link!r}; a link must be a name, or (name, weight above 0)"
            )
        found.append((str(name), float(weight)))
    return found


def _side(links: list[tuple[str, float | None]], names: Names) -> tuple[Ids, NDArray[np.float32]]:
    weights: dict[int, float] = {}
    for name, value in links:
        node = names.find(name)
        if node is None:
            continue
        if value is None:
            weights.setdefault(node, 1.0)
        else:
            weights[node] = weights.get(node, 0.0) + value
    ids = sorted(weights)
    return np.array(ids, np.uint32), np.array([weights[node] for node in ids], np.float32)


def _unknown(unknown: list[str], names: Names) -> str:
    def shown(name: str) -> str:
        if name.startswith(_ARROWS):
            return f"{name!r} (put a blank after the arrow: '{name[:2]} {name[2:]}')"
        nearest = names.suggest(name, 1)
        return f"{name!r}" + (f" (the nearest name is {nearest[0]!r})" if nearest else "")

    more = f" and {len(unknown) - _SHOWN:,} more" if len(unknown) > _SHOWN else ""
    note = f" {names.note}." if names.note else ""
    return (
        f"the draft has links to or from {len(unknown):,} unknown page{'s' * (len(unknown) > 1)}: "
        f"{', '.join(map(shown, unknown[:_SHOWN]))}{more}.{note} Correct the names, or omit such "
        "links with --skip-unknown (skip_unknown=True)"
    )


class UnseenNodes:
    """Creates indexes with one added node, which share the graph's links. Thread-safe."""

    def __init__(self, stored: StoredIndex, resources: Resources, graph: GivenGraph) -> None:
        if stored.kept is not None:
            raise UsageError(
                f"{stored.store.path} contains only {stored.kept.in_words(stored.nodes)}, but a "
                "draft may link to others. Query an index of all pages"
            )
        self._stored, self._resources, self._given = stored, resources, graph
        self._links = memoized_links(
            lambda way, weighted: links_of(self._graph, way, resources.memory, weighted=weighted)
        )

    @cached_property
    def _graph(self) -> Graph:
        return checked_graph(self._stored, self._given)

    def links(self, way: str) -> Links:
        """Return the graph's links, ``in`` or ``out``, with weights if the index uses them."""
        return self._links(way, self._stored.weighted)

    def added(
        self,
        draft: UnseenNode,
        names: Names,
        *,
        name: str | None,
        skip_unknown: bool,
        replaced: int | None = None,
    ) -> UnseenIndex:
        """Return the index as if the graph contained the draft; ``replaced`` is the id of a node
        whose name the draft takes over. Raises :class:`UsageError`.
        """
        stored = self._stored
        if stored.drafted:
            raise UsageError("the index already has a draft: use the index without it")
        if names.sides is not None:
            raise UsageError(
                f"{stored.store.path} is bipartite, and drafts need a graph with one kind of "
                "nodes: add the node to the table, and ingest the table again"
            )
        page = draft.page(names, weighted=stored.weighted, skip_unknown=skip_unknown)
        called = DRAFT if name is None else str(name)
        while name is None and called in names:
            called = f"({called})"
        if replaced is None and called in names:
            raise UsageError(f"{called!r} is the name of a node: choose another name for the draft")
        linked = added(part.weight for part in stored.parts if not part.measure.texts)
        if linked < 1:
            _log.info(
                "the draft has no text: scores use only its links, which are %.0f%% of a score",
                100 * linked,
            )
        shared, parts = DraftEnds(self._links, page, self._resources), []
        for part in stored.parts:
            ends = shared
            if part.layout == "links":  # this layout stores its own links
                stored_links = lambda way, weighted, part=part: part.links(way)  # noqa: E731
                ends = DraftEnds(stored_links, page, self._resources)
            parts.append(DraftPart.extending(part, ends, _of_one(part.freshness)))
        return UnseenIndex(stored, page, called, tuple(parts), replaced)


def _of_one(freshness: Freshness) -> Freshness:
    """Return the freshness for samples that all come from the newest graph."""
    numbers, newest = freshness.numbers, freshness.snapshots[-1]
    whole = replace(newest, refresh=0, first=numbers.start, samples=len(numbers))
    return replace(freshness, snapshots=(whole,), since=None)


class UnseenIndex(StoredIndex):
    """The index ``stored`` with one added page, in memory."""

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
        """Describe the links that the measure uses and the draft lacks; "" if it has some."""
        ways = {part.measure.looks_at(part.direction) for part in self.parts}
        found = " or ".join(DIRECTIONS[way] for way in DIRECTIONS if way in ways)
        return "" if any(self.page.row(way)[0].size for way in ways) else found

    @property
    def graph_nodes(self) -> int:
        """Return the graph's number of nodes, not counting the draft."""
        return self.nodes - 1

    def without(self, file: str, fault: str) -> StoredIndex:
        """Raise :class:`Damaged`; only the underlying index can exclude a shard."""
        raise Damaged(fault)
