"""Documents that only the service has, and what is served, how, and within which limits.

A :class:`Config` is made by the command line and handed to every process, pickled. Times are in
seconds, sizes in bytes. Documents name no path of the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

from cocite.errors import UsageError
from cocite.graph.names import Resolver
from cocite.options.serve import ServeOptions
from cocite.resources import cores
from cocite.results import Document, ResultRows
from cocite.search import Index
from cocite.search.remote.index import ShardStatus
from cocite.search.results import RelatedDocument

DEFAULT_NAMES = 10
"""How many names are listed."""
SEARCHED = 1_000_000
"""Names among which parts of names are looked for: a third of a second."""


@dataclass(frozen=True)
class CompleteDocument(Document):
    """Names for ``text``, best matches first (``graph/names.py``); only those that begin so
    without ``matches``. ``more`` says whether there are others.
    """

    text: str
    matches: bool
    nodes: Sequence[str]
    more: bool
    titles: Sequence[str | None] | None

    @classmethod
    def of(
        cls,
        index: Index,
        text: str,
        k: int = DEFAULT_NAMES,
        matches: bool = True,
        side: str | None = None,
    ) -> Self:
        """Look for names, of a ``side`` alone if one is said; raises :class:`UsageError` for parts
        in an index of too many names, and for a side that is none.
        """
        names, among = index.nodes, None
        if side is not None:
            if names.sides is None:
                raise UsageError("the index is not bipartite: omit side")
            among = names.sides.named(side)
        if matches and len(names) > SEARCHED:
            raise UsageError(
                f"the index has {len(names):,} names; parts of names are looked for among "
                f"{SEARCHED:,} at most: omit matches (matches=false)"
            )
        found = Resolver(names).matches(text, among, passes=matches).ids
        shown = [str(name) for name in names.names(found[:k])]
        told = index.titles_of(shown)
        named = None if told is None else [title or None for title in told]
        return cls(text, matches, shown, len(found) > k, named)

    def facts(self) -> dict[str, Any]:
        """A node each, with its title where the graph has any."""
        facts = {"text": self.text, "matches": self.matches, "more": self.more}
        if self.titles is None:
            return facts | {"nodes": [{"node": node} for node in self.nodes]}
        pairs = zip(self.nodes, self.titles, strict=True)
        return facts | {"nodes": [{"node": node, "title": title} for node, title in pairs]}

    def rows(self) -> ResultRows:
        """A row a name."""
        if self.titles is None:
            return ResultRows(("node",), [(node,) for node in self.nodes])
        return ResultRows(("node", "title"), list(zip(self.nodes, self.titles, strict=True)))


@dataclass(frozen=True)
class DraftDocument(Document):
    """What is ``related`` to a page that is not stored, and the names among its links that no node
    has.
    """

    related: RelatedDocument
    unknown: Sequence[str]

    def facts(self) -> dict[str, Any]:
        """Return those of the list, and the unknown names."""
        return self.related.facts() | {"unknown": self.unknown}

    def rows(self) -> ResultRows:
        """Return a row a hit."""
        return self.related.rows()


@dataclass(frozen=True)
class ServedDocument(Document):
    """An index that is served. ``sides`` are what the two of a bipartite one are called, null for
    another; ``samples`` are all that it has, ``available_samples`` those that a question
    gets now, both null where scores are computed; ``snapshots`` are those of its samples;
    ``shards`` are the servers that these answer from, if it is not this one.
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
    query_defaults: dict[str, Any]
    samples: int | None
    available_samples: int | None
    bytes: int
    snapshots: Sequence[dict[str, Any]]
    graph: dict[str, Any]
    shards: Sequence[ShardStatus] | None

    @classmethod
    def of(cls, name: str, generation: str, index: Index, available_samples: int | None) -> Self:
        """What the manifest says, but for places."""
        stored, sides = index.stored, index.nodes.sides
        weight = {"meeting_weight": stored.meeting_weight} if stored.meeting_weight else {}
        return cls(
            name,
            generation,
            index.measure,
            index.direction,
            " ".join(dict.fromkeys(part.layout for part in stored.parts)),
            len(index.nodes),
            index.titles is not None,
            None if sides is None else sides.titles,
            index.settings,
            dict(stored.query_defaults) | weight,
            index.samples,
            available_samples,
            stored.store.nbytes,
            [
                {"refresh": each.refresh, "samples": each.samples, "date": each.date}
                for each in stored.freshness.snapshots
                if each.samples
            ],
            {name: stored.graph.get(name) for name in ("name", "edges")},
            None if index.remote is None else index.remote.status,
        )

    def facts(self) -> dict[str, Any]:
        """Shards where there are any."""
        facts = super().facts()
        shards = facts.pop("shards")
        return facts if shards is None else facts | {"shards": [s._asdict() for s in shards]}


# -- config ------------------------------------------------------------------------------


FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""The variable by which prometheus_client knows where processes keep their numbers; it is read when
that is imported, so nothing that runs before the processes may import it.
"""


_TARGET = 50.0
"""Milliseconds."""
_WAITING = 8
"""Questions at a time that wait for a cluster most of their time."""


@dataclass(frozen=True)
class Limits:
    """What a request may ask for at most; what is beyond is refused, and said."""

    url: int = 8 << 10
    """Bytes of path and query: 414 beyond."""
    body: int = 1 << 20
    """Bytes of a body: 413 beyond."""
    k: int = ServeOptions.max_k
    offset: int = 10_000
    batch: int = ServeOptions.max_batch
    hits: int = 100_000
    """Hits that a batch may ask for in all."""
    together: int = 20
    only: int = 1000
    name: int = 4096
    """Characters of a name, or of any other text."""
    links: int = 10_000
    """Links that a request may bring."""
    pending: int = 100_000
    """Links that an index may have beside those of its graph, until a refresh adds them."""
    body_time: float = 10.0
    """How long a body may take to arrive: 408 beyond."""
    head_time: float = 5.0
    """How long the head of a request may take, and how long a connection may be silent."""
    send_time: float = 30.0
    """How long a client may take to read a piece of an answer."""
    question_time: float = ServeOptions.question_timeout
    """How long the answer to a question may take, from when a thread begins with it: 503 beyond."""
    batch_times: int = 10
    """How many times as long a batch may take in all; what is left then has errors."""
    map_time: float = 1.0
    """How long lines of a map may take; beyond, it has none."""


@dataclass(frozen=True)
class Served:
    """An index that is served: what it is called, and where it is."""

    name: str
    path: str


@dataclass(frozen=True)
class Config:
    """``indexes``, the first of which answers where a question names none, and how to serve them.
    Options are those of one process; what they leave open is decided here.
    """

    indexes: tuple[Served, ...]
    options: ServeOptions = field(default_factory=ServeOptions)
    memory: int | None = None
    log_json: bool = False
    quiet: bool = False
    limits: Limits = Limits()

    @property
    def threads(self) -> int:
        """How many questions a process answers at a time."""
        own = _WAITING if self.options.cluster else max(2, cores() // self.options.workers)
        return self.options.threads or own

    @property
    def target(self) -> float:
        """How long nine answers of ten are to take at most."""
        usual = self.options.deadline if self.options.cluster else _TARGET
        return (self.options.target_latency or usual) / 1000

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.options.host).is_loopback
        except ValueError:
            return self.options.host == "localhost"


def served_indexes(given: Iterable[str]) -> tuple[Served, ...]:
    """Indexes as they are named on the command line: ``PATH``, or ``NAME=PATH``; the name is that
    of the directory, without ``.index``, unless it is given.

    Raises :class:`UsageError` for two of one name.
    """
    found: dict[str, Served] = {}
    for text in given:
        name, path = _named(text)
        if name in found:
            raise UsageError(
                f"{found[name].path} and {path} would both be served as {name!r}: rename one, "
                f"such as {name}2={path}"
            )
        found[name] = Served(name, path)
    return tuple(found.values())


def _named(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    if sign and path and os.sep not in name and not os.path.lexists(text):
        return name, path
    whole = Path(os.path.abspath(text))
    return whole.name.removesuffix(".index"), text
