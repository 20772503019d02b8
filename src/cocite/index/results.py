"""Result documents of the commands that describe, build, refresh, merge, and verify indexes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cocite.graph import Graph
from cocite.graph.partitions import GraphDocument
from cocite.graph.sides import Sides
from cocite.index.layouts.snapshots import LocalRefresh, Snapshot
from cocite.index.plan import BuildOptions, PageFilter, links_in_words
from cocite.index.reports import BuildReport, GraphReport
from cocite.index.stored import Lost, StoredIndex
from cocite.index.verify import VerifyDocument
from cocite.measures import Value
from cocite.progress import shows
from cocite.results import Document
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.index.build import IndexBuild
    from cocite.index.merge import Merge, RangeMerge
    from cocite.index.refresh import RefreshBuild


_SPARE = "meeting_weight", "query_defaults", "missing_samples", "kept", "texts", "sides", "local"
"""Fields that :meth:`IndexDocument.facts` omits if they are empty."""


@dataclass(frozen=True)
class IndexDocument(Document):
    """The properties of an index.

    ``links`` describes the links that the measure uses. ``snapshots`` includes snapshots without
    samples; ``available_samples`` excludes ``missing_samples``. ``kept`` is the page selection, or
    None for all pages. ``meeting_weight`` is the query default. ``texts`` counts words, and pages
    with texts. ``sides`` is None unless the graph is bipartite. ``local`` is the last local refresh
    since the full build, or None.
    """

    path: str
    measure: str
    direction: str
    links: str
    layout: str
    weighted: bool
    parts: Sequence[dict[str, Any]]
    nodes: int
    settings: dict[str, Value]
    graph: dict[str, Any]
    snapshots: Sequence[Snapshot]
    bytes: int
    refined: dict[str, Any]
    meeting_weight: str | None
    query_defaults: dict[str, Value]
    digest: str
    available_samples: int | None
    missing_samples: Sequence[Lost]
    kept: PageFilter | None
    texts: dict[str, int] | None
    sides: Sides | None
    local: LocalRefresh | None = None

    @classmethod
    def of(cls, index: StoredIndex) -> Self:
        """Describe an open index."""
        return cls(
            str(index.store.path),
            index.measure.name,
            index.direction,
            links_in_words(index.measure, index.direction),
            _each_once(part.layout for part in index.parts),
            index.weighted,
            [part.to_json() for part in index.parts],
            index.nodes,
            index.settings.to_json(),
            index.graph,
            index.freshness.snapshots,
            index.store.nbytes,
            index.refined,
            index.meeting_weight,
            index.query_defaults,
            index.digest,
            index.samples,
            index.lost,
            index.kept,
            index.texts,
            index.names.sides,
            index.local,
        )

    @property
    def samples(self) -> int:
        """Return the number of samples, or 0."""
        return sum(generation.samples for generation in self.snapshots)

    @property
    def bytes_each(self) -> float:
        """Return the bytes per node per sample, or per node if the index has no samples."""
        return self.bytes / (self.nodes * (self.samples or 1))

    def facts(self) -> dict[str, Any]:
        """Return the fields for JSON; omit ``links`` and empty optional fields."""
        absent = {"links", *(name for name in _SPARE if not getattr(self, name))}
        absent |= {"available_samples"} if "missing_samples" in absent else set()
        facts = {name: fact for name, fact in super().facts().items() if name not in absent}
        snapshots = [each.to_json() for each in self.snapshots if each.samples]
        return {"kind": "index"} | facts | {"snapshots": snapshots}


@dataclass(frozen=True)
class BuildDocument(Document):
    """A completed build.

    ``units`` and ``unit`` are as in :attr:`IndexBuild.finished`. ``live_steps`` is the number of
    walk steps per node per sample, or None without walks. ``kept`` and ``texts`` are as in
    :class:`IndexDocument`.
    """

    index: str
    options: BuildOptions
    nodes: int
    unit: str
    units: int
    cost: BuildReport
    live_steps: float | None
    kept: PageFilter | None
    texts: dict[str, int] | None
    report: GraphReport

    @classmethod
    def of(cls, work: IndexBuild, cost: BuildReport, output: str) -> Self:
        """Describe the completed build ``work``."""
        options, (_, units, unit) = work.options, work.finished
        steps = cost.live_steps / (work.graph.nodes * cost.units) if cost.live_steps else None
        kept, texts = work.page_filter, StoredIndex.open(output).texts
        graph = GraphReport.of(work.graph, options)
        return cls(output, options, work.nodes, unit, units, cost, steps, kept, texts, graph)

    @property
    def sampled(self) -> bool:
        """Return whether all parts have samples."""
        return self.unit == "samples"

    @property
    def bytes_each(self) -> float:
        """Return the bytes per node per sample, or per node unless all parts have samples."""
        return self.cost.bytes / (self.nodes * (self.units if self.sampled else 1))

    def facts(self) -> dict[str, Any]:
        """Return the fields for JSON: settings at the top level, the unit in field names."""
        options, cost, report = self.options, self.cost, self.report
        facts: dict[str, Any] = {
            "index": self.index,
            "measure": options.measure.name,
            "direction": options.direction,
            "layout": _each_once(plan.layout for plan in options.parts),
            "weighted": options.weighted,
            **options.settings.to_json(),
            f"{self.unit}_made": cost.finished,
            "seconds": cost.seconds,
            "bytes": cost.bytes,
            "bytes_per_node" + "_and_sample" * self.sampled: self.bytes_each,
        }
        if self.sampled and self.live_steps is not None:
            facts["live_steps_per_node"] = self.live_steps
        facts["refined"] = options.refine
        spare: dict[str, Any] = {
            "meeting_weight": options.meeting_weight,
            "query_defaults": options.query_defaults,
            "first": options.first,
            "nodes": self.kept and self.nodes,
            "kept": self.kept,
            "texts": self.texts,
        }
        facts |= {name: value for name, value in spare.items() if value}
        facts |= {"hubs": list(report.hubs), "without_links": report.without}
        facts |= {"excluded": report.excluded} if report.excluded else {}
        return facts | ({"sent": cost.traffic.facts()} if cost.traffic is not None else {})


@dataclass(frozen=True)
class RefreshDocument(Document):
    """A completed refresh.

    ``kept`` and ``drawn`` count the retained samples and those drawn from ``graph``. ``already`` is
    true if the index was up to date, so nothing changed. ``local`` is None unless the refresh was
    local.
    """

    index: str
    graph: str
    kept: int
    drawn: int
    date: str
    seconds: float
    bytes: int
    already: bool
    local: LocalRefresh | None = None

    @classmethod
    def of(cls, work: RefreshBuild, report: BuildReport, index: str) -> Self:
        """Describe the completed refresh ``work``."""
        came = len(work.drawn), work.date, report.seconds, report.bytes, bool(work.already)
        local = StoredIndex.open(index).local
        return cls(index, str(work.graph.path), work.retained, *came, local)


@dataclass(frozen=True)
class MergeDocument(Document):
    """A completed merge. ``samples`` (a count) and ``first`` (a sample number) are None if the
    measure has no samples.
    """

    index: str
    merged: Sequence[str]
    nodes: int
    samples: int | None
    first: int | None
    seconds: float
    bytes: int

    @classmethod
    def of(cls, work: Merge | RangeMerge, seconds: float, index: str) -> Self:
        """Describe the completed merge ``work``."""
        merged = [str(each.store.path) for each in work.indexes]
        made = StoredIndex.open(index)
        first = None if made.samples is None else made.freshness.numbers.start
        return cls(index, merged, made.nodes, made.samples, first, seconds, made.store.nbytes)


def _each_once(names: Iterable[str]) -> str:
    return " ".join(dict.fromkeys(names))


def info(path: str | os.PathLike[str]) -> GraphDocument | IndexDocument:
    """Describe the stored graph or index at ``path``, like ``cocite info``.

    The result contains counts, sizes, and an index's measure and settings; ``to_json()`` converts
    them to plain values. Raises :class:`~cocite.errors.StoreError` if no store can be read there.
    """
    name = os.fspath(path)
    if kind_of(name) == "index":
        return IndexDocument.of(StoredIndex.open(name))
    return GraphDocument.of(Graph.open(name))


@shows("verifying files")
def verify(path: str | os.PathLike[str]) -> VerifyDocument:
    """Verify every file of the stored graph or index at ``path``, like ``cocite verify``.

    The result describes each fault in ``faults``, which is empty if all files are intact. Costs two
    or three passes over all files. Raises :class:`~cocite.errors.StoreError` if no store exists
    there.
    """
    return VerifyDocument.of(path)
