"""What is served, and how: one value, made by the command line and handed to every process.

It can be pickled, as processes may be started afresh. Times are in seconds, sizes in bytes.

Documents that only the service has: names that begin so, and the indexes that it serves.

They name no path of the server.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Self

from cocite.errors import UsageError
from cocite.graph.names import Resolver
from cocite.results import Document, ResultRows
from cocite.search import Index
from cocite.search.remote.index import ShardStatus

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
        cls, index: Index, text: str, k: int = 10, matches: bool = True, side: str | None = None
    ) -> Self:
        """Look for names, of a ``side`` alone if one is said; raises :class:`UsageError` for parts
        in an index of too many names, and for a side that is none.
        """
        names, among = index.nodes, None
        if side is not None:
            if names.sides is None:
                raise UsageError("the index is not bipartite: leave side out")
            among = names.sides.named(side)
        if matches and len(names) > SEARCHED:
            raise UsageError(
                f"the index has {len(names):,} names; parts of names are looked for among "
                f"{SEARCHED:,} at most: leave matches out (matches=false)"
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
    shards: Sequence[ShardStatus] | None

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
            dict(stored.asks)
            | ({"meeting_weight": stored.meeting_weight} if stored.meeting_weight else {}),
            index.samples,
            answering,
            stored.store.nbytes,
            ages,
            told,
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


@dataclass(frozen=True)
class Limits:
    """What a request may ask for at most; what is beyond is refused, and said."""

    url: int = 8 << 10
    """Bytes of path and query: 414 beyond."""
    body: int = 1 << 20
    """Bytes of a body: 413 beyond."""
    k: int = 1000
    offset: int = 10_000
    batch: int = 1000
    hits: int = 100_000
    """Hits that a batch may ask for in all."""
    together: int = 20
    only: int = 1000
    name: int = 4096
    """Characters of a name, or of any other text."""
    body_time: float = 10.0
    """How long a body may take to arrive: 408 beyond."""
    head_time: float = 5.0
    """How long the head of a request may take, and how long a connection may be silent."""
    send_time: float = 30.0
    """How long a client may take to read a piece of an answer."""
    question_time: float = 10.0
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
class ServedShards:
    """Samples that answer from a cluster at ``address``: in so many ``shards``, None for two a
    node, each on so many nodes, and how many seconds they have to answer.
    """

    address: str
    shards: int | None = None
    replicas: int = 1
    deadline: float = 0.2


@dataclass(frozen=True)
class Config:
    """``indexes``, the first of which answers where a question names none, and how to serve them.

    ``graphs`` are where the graphs of indexes are now, if they were moved. ``threads`` and
    ``queue`` are of one process: how many questions are answered at a time, and how many may wait.
    ``target`` is the time that nine answers of ten are to take at most, for which samples are
    given up down to ``floor`` (``server/load.py``).
    """

    indexes: tuple[Served, ...]
    graphs: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    threads: int = 2
    memory: int | None = None
    queue: int = 256
    floor: int = 10
    target: float = 0.05
    reload: float = 5.0
    drain: float = 0.0
    """How long everything is answered after SIGTERM, while ``/readyz`` says no."""
    keys: str | None = None
    origins: tuple[str, ...] = ()
    ancestors: tuple[str, ...] = ()
    site: str = ""
    """What stands before names that are no URLs, in links to the pages themselves."""
    hosts: tuple[str, ...] = ()
    """Names of this server beside ``localhost``, where it listens at this machine alone."""
    requests: bool = True
    """Whether every request is logged, and not only what is wrong."""
    log_json: bool = False
    quiet: bool = False
    limits: Limits = Limits()
    spread: ServedShards | None = None
    """Where samples answer from, if not from this process."""

    @property
    def local(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


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
                f"{found[name].path} and {path} would both be served as {name!r}: give one another "
                f"name, such as {name}2={path}"
            )
        found[name] = Served(name, path)
    return tuple(found.values())


def _named(text: str) -> tuple[str, str]:
    name, sign, path = text.partition("=")
    if sign and path and os.sep not in name and not os.path.lexists(text):
        return name, path
    whole = Path(os.path.abspath(text))
    return whole.name.removesuffix(".index"), text
