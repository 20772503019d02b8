"""Documents that only the service has: names that begin so, and the indexes that it serves.

They name no path of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cocite.documents import Document, Rows
from cocite.errors import UsageError
from cocite.query import Index
from cocite.query.shards.spread import ShardSeen, SpreadIndex

__all__ = ["SEARCHED", "CompleteDocument", "ServedDocument"]

SEARCHED = 1_000_000
"""Names among which parts of names are looked for: a third of a second."""


@dataclass(frozen=True)
class CompleteDocument(Document):
    """Names for ``text``: those that begin so, in the order of names, then, if ``within``, those
    that contain it, by id. ``more`` says whether there are others.
    """

    text: str
    within: bool
    nodes: Sequence[str]
    more: bool
    titles: Sequence[str | None] | None

    @classmethod
    def of(
        cls, index: Index, text: str, k: int = 10, within: bool = True, side: str | None = None
    ) -> Self:
        """Look for names, of a ``side`` alone if one is said; raises :class:`UsageError` for parts
        in an index of too many names, and for a side that is none.
        """
        names, titles = index.nodes, index.titles
        begun, but, among = text, None, range(len(names))
        if side is not None:
            if names.sides is None:
                raise UsageError("the index is not bipartite: leave side out")
            begun, among = names.sides.name(side, text), names.sides.named(side)
            but = names.sides.mark if among.start else None
        if within and len(names) > SEARCHED:
            raise UsageError(
                f"the index has {len(names):,} names; parts of names are looked for among "
                f"{SEARCHED:,} at most: leave within out (within=false)"
            )
        found = names.complete(begun, k + 1, but)
        if within and text and len(found) <= k:
            ids = names.containing(text)
            if titles is not None:
                ids = np.union1d(ids, titles.containing(text))
            ids = ids[(ids >= among.start) & (ids < among.stop)]
            there = set(found)
            found += [name for name in names.names(ids[: 2 * k + 2]) if name not in there]
        shown = [str(name) for name in found[:k]]
        told = index.titles_of(shown)
        named = None if told is None else [title or None for title in told]
        return cls(text, within, shown, len(found) > k, named)

    def facts(self) -> dict[str, Any]:
        """A node each, with its title where the graph has any."""
        facts = {"text": self.text, "within": self.within, "more": self.more}
        if self.titles is None:
            return facts | {"nodes": [{"node": node} for node in self.nodes]}
        pairs = zip(self.nodes, self.titles, strict=True)
        return facts | {"nodes": [{"node": node, "title": title} for node, title in pairs]}

    def rows(self) -> Rows:
        """A row a name."""
        if self.titles is None:
            return Rows(("node",), [(node,) for node in self.nodes])
        return Rows(("node", "title"), list(zip(self.nodes, self.titles, strict=True)))


@dataclass(frozen=True)
class ServedDocument(Document):
    """An index that is served. ``sides`` are what the two of a bipartite one are called, null for
    another; ``samples`` are all that it has, ``answering`` those that a question
    gets now, both null where scores are computed; ``ages`` are those of its samples; ``shards`` are
    the servers that these answer from, if it is not this one.
    """

    name: str
    generation: str
    measure: str
    direction: str
    layout: str
    nodes: int
    titles: bool
    sides: Sequence[str] | None
    settings: dict[str, Any]
    asks: dict[str, Any]
    samples: int | None
    answering: int | None
    bytes: int
    ages: Sequence[dict[str, Any]]
    graph: dict[str, Any]
    shards: Sequence[ShardSeen] | None

    @classmethod
    def of(cls, name: str, generation: str, index: Index, answering: int | None) -> Self:
        """What the manifest says, but for places."""
        stored = index.stored
        layouts = " ".join(dict.fromkeys(part.layout for part in stored.parts))
        ages = [
            {"refresh": each.refresh, "samples": each.samples, "date": each.date}
            for each in stored.freshness.generations
            if each.samples
        ]
        told = {"name": stored.graph.get("name"), "edges": stored.graph.get("edges")}
        return cls(
            name,
            generation,
            index.measure,
            index.direction,
            layouts,
            len(index.nodes),
            index.titles is not None,
            None if index.nodes.sides is None else index.nodes.sides.titles,
            index.settings,
            dict(stored.asks) | ({"by": stored.by} if stored.by else {}),
            index.samples,
            answering,
            stored.store.nbytes,
            ages,
            told,
            index.shards if isinstance(index, SpreadIndex) else None,
        )

    def facts(self) -> dict[str, Any]:
        """Shards where there are any."""
        facts = super().facts()
        shards = facts.pop("shards")
        return facts if shards is None else facts | {"shards": [s._asdict() for s in shards]}
