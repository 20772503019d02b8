"""The server's documents, configuration, and limits.

The command line creates a :class:`Config`, which is pickled for every process. Times are in
seconds, sizes in bytes. Documents omit server file paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, Self

from cocite.errors import UsageError
from cocite.graph.names import Resolver
from cocite.options.serve import ServeOptions
from cocite.resources import cores
from cocite.results import Document
from cocite.search import Index
from cocite.search.remote.index import ShardStatus
from cocite.search.results import RelatedDocument

DEFAULT_NAMES = 10
"""The default number of names to list."""
SEARCHED = 1_000_000
"""Maximum number of names for substring search, which then takes a third of a second."""


@dataclass(frozen=True)
class CompleteDocument(Document):
    """Names that match ``text``, best first (``graph/names.py``); without ``matches``, names with
    this prefix. ``more`` says whether others match.
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
        """Find names, on one ``side`` if given; raises :class:`UsageError` for an unknown side, and
        for substring search over too many names.
        """
        names, among = index.nodes, None
        if side is not None:
            if names.sides is None:
                raise UsageError("the index is not bipartite: omit the parameter side")
            among = names.sides.named(side)
        if matches and len(names) > SEARCHED:
            raise UsageError(
                f"the index has {len(names):,} names; substring search allows at most "
                f"{SEARCHED:,}: search for prefixes (matches=false)"
            )
        found = Resolver(names).matches(text, among, passes=matches).ids
        shown = [str(name) for name in names.names(found[:k])]
        titles = index.titles_of(shown)
        named = None if titles is None else [title or None for title in titles]
        return cls(text, matches, shown, len(found) > k, named)

    def facts(self) -> dict[str, Any]:
        """Return the fields, with an object per node."""
        nodes: list[dict[str, str | None]] = [{"node": node} for node in self.nodes]
        if self.titles is not None:
            nodes = [{"node": n, "title": t} for n, t in zip(self.nodes, self.titles, strict=True)]
        return {"text": self.text, "matches": self.matches, "more": self.more, "nodes": nodes}


@dataclass(frozen=True)
class DraftDocument(Document):
    """The pages ``related`` to an unseen node, and ``unknown`` names among the node's links."""

    related: RelatedDocument
    unknown: Sequence[str]

    def facts(self) -> dict[str, Any]:
        """Return the list's fields, and the unknown names."""
        return self.related.facts() | {"unknown": self.unknown}


@dataclass(frozen=True)
class ServedDocument(Document):
    """A served index. ``available_samples`` is the number that a query uses now."""

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
        """Describe an index; omit paths."""
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
                {name: getattr(each, name) for name in ("refresh", "samples", "date")}
                for each in stored.freshness.snapshots
                if each.samples
            ],
            {name: stored.graph.get(name) for name in ("name", "edges")},
            None if index.remote is None else index.remote.replicas.status(),
        )

    def facts(self) -> dict[str, Any]:
        """Return the fields; omit ``shards`` if None."""
        facts = super().facts()
        shards = facts.pop("shards")
        return facts if shards is None else facts | {"shards": [s._asdict() for s in shards]}


# -- config ------------------------------------------------------------------------------


FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder of process metrics. prometheus_client reads the variable on
import, so only worker processes may import that package.
"""


_TARGET = 50.0
"""The target time of an answer, in milliseconds."""
_WAITING = 8
"""Maximum number of simultaneous queries with a cluster; they mostly wait for the cluster."""


@dataclass(frozen=True)
class Limits:
    """Limits on requests. Requests that exceed a limit are refused."""

    url: int = 8 << 10
    """Bytes of path and query; otherwise 414."""
    body: int = 1 << 20
    """Bytes of a body; otherwise 413."""
    k: int = ServeOptions.max_k
    offset: int = 10_000
    batch: int = ServeOptions.max_batch
    hits: int = 100_000
    """Total hits in a batch."""
    together: int = 20
    only: int = 1000
    name: int = 4096
    """Characters in a text parameter, such as a name."""
    links: int = 10_000
    """Links in a request."""
    pending: int = 100_000
    """Posted links waiting for a refresh, per index."""
    body_time: float = 10.0
    """Seconds for a body to arrive; otherwise 408."""
    head_time: float = 5.0
    """Seconds for a request head to arrive, and for an idle connection."""
    send_time: float = 30.0
    """Seconds for a client to read a chunk of an answer."""
    question_time: float = ServeOptions.question_timeout
    """Seconds for an answer after a thread starts it; otherwise 503."""
    batch_times: int = 10
    """The time limit of a batch, as a multiple of question_time; remaining nodes get errors."""
    map_time: float = 1.0
    """Seconds for the lines of a map; otherwise the map has none."""


class Served(NamedTuple):
    """The name and path of a served index."""

    name: str
    path: str


@dataclass(frozen=True)
class Config:
    """The served ``indexes``, the first of which is the default, and options of each process."""

    indexes: tuple[Served, ...]
    options: ServeOptions = field(default_factory=ServeOptions)
    memory: int | None = None
    log_json: bool = False
    quiet: bool = False
    limits: Limits = Limits()

    @property
    def threads(self) -> int:
        """Return the maximum number of simultaneous queries per process."""
        own = _WAITING if self.options.cluster else max(2, cores() // self.options.workers)
        return self.options.threads or own

    @property
    def target(self) -> float:
        """Return the target time of nine out of ten answers, in seconds."""
        usual = self.options.deadline if self.options.cluster else _TARGET
        return (self.options.target_latency or usual) / 1000

    @property
    def local(self) -> bool:
        """Return whether only this machine can connect."""
        try:
            return ip_address(self.options.host).is_loopback
        except ValueError:
            return self.options.host == "localhost"


def served_indexes(given: Iterable[str]) -> tuple[Served, ...]:
    """Parse ``PATH`` or ``NAME=PATH``, where NAME defaults to the directory name without
    ``.index``; raises :class:`UsageError` for duplicate names.
    """
    found: dict[str, Served] = {}
    for text in given:
        name, sign, path = text.partition("=")
        if not (sign and path) or os.sep in name or os.path.lexists(text):
            name, path = Path(os.path.abspath(text)).name.removesuffix(".index"), text
        if name in found:
            raise UsageError(
                f"{found[name].path} and {path} would both be served as {name!r}: rename one, "
                f"such as {name}2={path}"
            )
        found[name] = Served(name, path)
    return tuple(found.values())
