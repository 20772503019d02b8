"""Result documents of the commands that describe, build, refresh, merge, and verify indexes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from cocite.engine.carriers import Traffic
from cocite.graph import Graph
from cocite.graph.partitions import GraphDocument
from cocite.graph.sides import Sides
from cocite.index.layouts.snapshots import LocalRefresh, Snapshot
from cocite.index.plan import PageFilter, links_in_words
from cocite.index.reports import GraphReport
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
    from cocite.index.reports import BuildReport


@dataclass(frozen=True)
class IndexDocument(Document):
    """The properties of an index.

    ``links`` describes the links that the measure uses. ``snapshots`` includes snapshots without
    samples; ``available_samples`` excludes ``missing_samples``. ``kept`` is the page selection, or
    None for all pages. ``meeting_weight`` is the query default. ``texts`` counts words and pages
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
        """Return the bytes per node and sample, or per node if the index has no samples."""
        return self.bytes / (self.nodes * (self.samples or 1))

    def facts(self) -> dict[str, Any]:
        """Return the fields for JSON, without ``links`` and empty optional fields."""
        spare = [
            "meeting_weight",
            "query_defaults",
            "missing_samples",
            "kept",
            "texts",
            "sides",
            "local",
        ]
        absent = {"links", *(name for name in spare if not getattr(self, name))}
        absent |= {"available_samples"} if "missing_samples" in absent else set()
        facts = {name: fact for name, fact in super().facts().items() if name not in absent}
        snapshots = [each.to_json() for each in self.snapshots if each.samples]
        return {"kind": "index"} | facts | {"snapshots": snapshots}


@dataclass(frozen=True)
class BuildDocument(Document):
    """A completed build.

    ``made`` counts the units finished by this run, out of ``units``; ``unit`` is as in
    :attr:`IndexBuild.finished`. ``live_steps`` is the number of walk steps per node and sample, or
    None without walks. ``numbers`` contains the sample numbers. ``report`` describes the graph, and
    ``traffic`` the traffic between partitions. Other fields are as in :class:`IndexDocument`.
    """

    index: str
    measure: str
    direction: str
    layout: str
    weighted: bool
    settings: dict[str, Value]
    links: str
    nodes: int
    unit: str
    units: int
    made: int
    seconds: float
    bytes: int
    live_steps: float | None
    refined: bool
    meeting_weight: str | None
    query_defaults: dict[str, Value]
    numbers: range
    kept: PageFilter | None
    texts: dict[str, int] | None
    report: GraphReport
    traffic: Traffic | None = None

    @classmethod
    def of(cls, work: IndexBuild, report: BuildReport, output: str) -> Self:
        """Describe ``work`` after its run."""
        options, nodes, made = work.options, work.nodes, report.units
        _, units, unit = work.finished
        return cls(
            output,
            options.measure.name,
            options.direction,
            _each_once(plan.layout for plan in options.parts),
            work.weighted,
            options.settings.to_json(),
            links_in_words(options.measure, options.direction),
            nodes,
            unit,
            units,
            report.finished,
            report.seconds,
            report.bytes,
            report.live_steps / (work.graph.nodes * made) if report.live_steps else None,
            work.options.refine,
            work.options.meeting_weight,
            dict(work.options.query_defaults),
            work.options.numbers,
            work.page_filter,
            StoredIndex.open(output).texts,
            GraphReport.of(work.graph, options),
            report.traffic,
        )

    @property
    def sampled(self) -> bool:
        """Return whether all parts have samples."""
        return self.unit == "samples"

    @property
    def bytes_each(self) -> float:
        """Return the bytes per node and sample, or per node unless all parts have samples."""
        return self.bytes / (self.nodes * (self.units if self.sampled else 1))

    def facts(self) -> dict[str, Any]:
        """Return the fields for JSON: settings at the top level, the unit in field names."""
        facts = {name: getattr(self, name) for name in ("index", "measure", "direction", "layout")}
        facts |= {"weighted": self.weighted, **self.settings, f"{self.unit}_made": self.made}
        facts |= {"seconds": self.seconds, "bytes": self.bytes}
        facts["bytes_per_node" + "_and_sample" * self.sampled] = self.bytes_each
        if self.sampled and self.live_steps is not None:
            facts["live_steps_per_node"] = self.live_steps
        facts |= {"refined": self.refined} | (
            {"meeting_weight": self.meeting_weight} if self.meeting_weight else {}
        )
        facts |= {"query_defaults": self.query_defaults} if self.query_defaults else {}
        first = {"first": self.numbers.start} if self.numbers.start else {}
        kept = {"nodes": self.nodes, "kept": self.kept} if self.kept else {}
        texts = {"texts": self.texts} if self.texts else {}
        links: dict[str, Any] = {
            "hubs": list(self.report.hubs),
            "without_links": self.report.without,
        }
        links |= {"excluded": self.report.excluded} if self.report.excluded else {}
        if self.traffic is not None:
            links["sent"] = self.traffic.facts()
        return facts | first | kept | texts | links


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
        """Describe ``work`` after its run."""
        drawn, took = len(work.drawn), (report.seconds, report.bytes)
        current, local = bool(work.already), StoredIndex.open(index).local
        return cls(
            index, str(work.graph.path), work.retained, drawn, work.date, *took, current, local
        )


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
        """Describe ``work`` after its run."""
        merged, made = list(map(str, work.paths)), StoredIndex.open(index)
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
