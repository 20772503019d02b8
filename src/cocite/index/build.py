"""Index builds, which write all parts to a staging directory and then publish that directory.

A build first writes its plan (``plan.json``). A later run with the same plan continues after the
finished parts and shards. The manifest is written last. Then the staging directory is renamed to
the output, or exchanged with an existing index.
"""

from __future__ import annotations

import os
import shutil
import weakref
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from cocite.constants import Ids
from cocite.deadline import clock
from cocite.engine.diagonal import SweepReport, diagonal_memory
from cocite.errors import CociteError, ResourceError, UsageError
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.exclude import write_some_names
from cocite.graph.links import links_of
from cocite.graph.name_files import NAME_FILES, TITLE_FILES, write_some_titles
from cocite.index.cluster import ClusterBuild, SampleWork
from cocite.index.layouts.contract import WANTED, PartPlan, PartRequest, TextFiles, Texts
from cocite.index.layouts.memory_plan import Progress
from cocite.index.layouts.reader import is_sampled, whole_builder
from cocite.index.manifest import EXCLUDED, diagonal_bytes, index_facts, write_diagonal
from cocite.index.parts import CarriedShards, PartBuild, ShardedPart, WholePart, shard_samples
from cocite.index.plan import ASKS, BuildOptions, PageFilter
from cocite.index.reports import BuildReport, IndexEstimate, too_wide
from cocite.index.stored import StoredIndex
from cocite.io.remote import bare, origin
from cocite.measures import MEETING_WEIGHT, SAMPLES
from cocite.options import NO_LINKS, opposite
from cocite.resources import Resources, format_size
from cocite.storage import FORMAT_VERSION, Entry, Manifest, Store
from cocite.storage.staging import Staging, copy_array

_BESIDE = 100
"""Bytes per node that any build needs in addition to links and settings-dependent data."""


def path_from(output: Path, graph: Path, elsewhere: bool) -> str:
    """Return the graph's path relative to the index; ``elsewhere`` means that the index will be
    moved beside the graph.
    """
    beside = os.path.join(os.pardir, graph.name)
    return beside if elsewhere else os.path.relpath(graph, output.resolve())


def files_named(store: Store, *prefixes: str) -> dict[str, Entry]:
    """Return the entries of a store's files whose names begin with one of the ``prefixes``."""
    files = store.manifest.files
    return {name: entry for name, entry in files.items() if name.startswith(prefixes)}


class IndexBuild:
    """One build: ``with IndexBuild(...) as build: build.estimate(); build.run(progress)``."""

    def __init__(
        self,
        graph: Graph,
        output: str | os.PathLike[str],
        options: BuildOptions,
        means: Resources,
        *,
        overwrite: bool = False,
        restart: bool = False,
        spread: ClusterBuild | None = None,
        elsewhere: bool = False,
    ) -> None:
        """Prepare the build.

        ``overwrite`` replaces an index at ``output``; ``restart`` discards an unfinished build
        instead of resuming it. With ``spread``, cluster nodes make the samples or rows, and
        ``means`` are the resources of one task. ``elsewhere`` means that the index will be moved,
        so the manifest assumes that the graph is its sibling.
        """
        self._elsewhere = elsewhere
        self._spread = spread
        graph.check()
        self.options = options = options.for_graph(graph)
        self.graph, self._means, self._restart = graph, means, restart
        self._draft = Staging(os.fspath(output), "index", overwrite=overwrite, resumable=True)
        self._pages = self._page_filter()
        self.nodes, self._requested = graph.nodes, None
        if self._pages is not None:
            self.nodes = self._pages.size
            self._requested = PartRequest.of(self._draft.path.absolute(), self._pages)
        self._texts = self._texts_compared()
        plans = (
            replace(p, wanted=self._requested, texts=self._texts if p.measure.texts else None)
            for p in options.parts
        )
        self.options = options = replace(options, parts=tuple(plans))
        self._built = weakref.WeakValueDictionary[tuple[str, bool], Links]()
        self._shards: list[int] = []
        if means.cut and not self._sampled:
            raise UsageError(
                f"{options.measure.name} has no samples, so its build cannot be split: omit "
                "--shard (shard=...), --blocks (blocks=...) and --out-of-core (external=True)"
            )
        spreads = (  # a local refresh is too little work to distribute
            is_sampled(plan.layout) or (whole_builder(plan.layout).spreads and plan.old is None)
            for plan in options.parts
        )
        if spread is not None and not any(spreads):
            raise UsageError(
                f"{options.measure.name} can only be built on one machine: omit --cluster "
                "(cluster=...)"
            )
        self.parts = [self._part(plan) for plan in options.parts]

    def _page_filter(self) -> Ids | None:
        """Return the selected pages' ids, ascending, or None for all pages."""
        keep = self.options.only_nodes
        return None if keep is None else keep.ids(self.graph)

    def _texts_compared(self) -> Texts | None:
        """Return the texts to compare, or None."""
        texts = self.options.texts
        return None if texts is None else TextFiles(texts)

    def _part(self, plan: PartPlan) -> PartBuild:
        links, graph, folder = partial(self._links, plan), self.graph, self._draft.path.absolute()
        named = graph.path.absolute(), graph.digest
        verify = graph.store.verifying
        if not is_sampled(plan.layout):
            whole = SampleWork(plan, range(0), folder, *named, self._means, verify)
            return WholePart(whole, graph, links, self._spread)
        samples = shard_samples(plan, self.nodes, self._means.shard)
        self._shards.append(samples)
        numbers, kept = self._numbers(plan, samples)
        means = self._means.up_to(plan.settings[SAMPLES])
        work = SampleWork(plan, numbers, folder, *named, means, verify)
        # Fail now if the links exceed the memory; in-links and out-links have equal sizes.
        way = "any" if plan.direction == "any" else "in"
        own = links_of(graph, way, means.memory, weighted=plan.weighted)
        work.fit(replace(own, back=own) if plan.direction == "both" else own)
        return ShardedPart(work, links, self.nodes, samples, kept, self._spread)

    def _numbers(self, plan: PartPlan, shard: int) -> tuple[range, CarriedShards | None]:
        """Return the sample numbers to draw, and the samples carried over from an older index."""
        return self.options.numbers, None

    def _links(self, plan: PartPlan) -> Links:
        """Return the links that a part follows.

        For direction ``both``, samples need links in both directions; other layouts derive in-links
        from out-links. Derived links are computed on first use, shared between parts, and freed
        after the last use.
        """
        way = "out" if plan.direction == "both" else plan.direction
        if way in ("in", NO_LINKS):
            return links_of(self.graph, "in", weighted=plan.weighted)
        links = self._built.get((way, plan.weighted))
        if links is None:
            memory, nodes = self._means.memory, self.graph.nodes
            stored = links_of(self.graph, "in", weighted=plan.weighted).nbytes
            keep = max(memory // 4, memory - stored - _BESIDE * nodes)
            links = links_of(self.graph, way, memory, weighted=plan.weighted, keep=keep)
            self._built[way, plan.weighted] = links
        if plan.direction == "both" and is_sampled(plan.layout):
            return replace(links_of(self.graph, "in", weighted=plan.weighted), back=links)
        return links

    def __enter__(self) -> Self:
        self._draft.__enter__()
        try:
            self._resume_or_clear()
            if self._requested is not None and self._pages is not None:
                self._requested.write(self._pages)
        except BaseException as error:
            self._draft.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for part in self.parts:
            part.close()
        if isinstance(error, KeyboardInterrupt):
            done, units, unit = self.finished
            error.add_note(
                f"{done:,} of {units:,} {unit} are saved in {self._draft.path}: repeat the command "
                "to continue"
            )
        if isinstance(error, CociteError) and not self.done:
            self._draft.clear()  # with nothing to resume, later settings may differ
        self._draft.__exit__(kind, error, trace)

    # -- state -----------------------------------------------------------------------

    @cached_property
    def _sampled(self) -> list[PartPlan]:
        return [plan for plan in self.options.parts if is_sampled(plan.layout)]

    @cached_property
    def unit(self) -> str:
        """Return the unit of progress: ``samples`` if all parts have samples, ``nodes`` if no part
        has samples, and otherwise ``steps``, with the same number of steps for each part.
        """
        if not self._sampled:
            return "nodes"
        return "samples" if len(self._sampled) == len(self.options.parts) else "steps"

    def _steps(self, part: PartBuild, done: int) -> int:
        """Convert ``done`` units of a part to progress steps."""
        if self.unit != "steps":
            return done
        return done * self._sampled[0].settings[SAMPLES] // max(1, part.units)

    def _counted(self, steps: int) -> int:
        """Convert steps to units. Nodes are averaged over parts, which all process every node."""
        return steps // len(self.parts) if self.unit == "nodes" else steps

    @cached_property
    def units(self) -> int:
        """Return the total number of units."""
        return self._counted(sum(self._steps(part, part.units) for part in self.parts))

    @property
    def done(self) -> int:
        """Return the number of finished units."""
        return self._counted(sum(self._steps(part, part.done) for part in self.parts))

    @property
    def finished(self) -> tuple[int, int, str]:
        """Return (finished, total, unit); several parts without samples count as ``parts``."""
        if self.unit != "nodes" or len(self.parts) == 1:
            return self.done, self.units, self.unit
        return sum(part.done > 0 for part in self.parts), len(self.parts), "parts"

    @property
    def _plan(self) -> dict[str, Any]:
        """Return everything that determines the parts' bytes and their division into files."""
        options, by = self.options, self.options.meeting_weight
        return {
            "format": FORMAT_VERSION,
            "measure": options.measure.name,
            "direction": options.direction,
            "settings": options.settings.to_json(),
            "parts": [plan.to_json() for plan in options.parts],
            "shard": self._shards,
            "refine": options.refine,
            "graph": self.graph.digest,
            **({MEETING_WEIGHT.name: by} if by is not None else {}),
            **({ASKS: dict(options.query_defaults)} if options.query_defaults else {}),
            **({"texts": self._texts.digest} if isinstance(self._texts, TextFiles) else {}),
            "first": options.first,
            "only_nodes": None if self._requested is None else self._requested.entry.xxh3_128,
        }

    def _resume_or_clear(self) -> None:
        """Resume an earlier run with the same plan; discard a run with another plan."""
        if self._draft.goes_on(self._plan, "build", restart=self._restart):
            for part in self.parts:
                part.resume()

    @property
    def name_bytes(self) -> int:
        """Estimate the size of the node names on disk from their mean length."""
        files = files_named(self.graph.store, NAME_FILES, TITLE_FILES)
        names = sum(entry.nbytes for entry in files.values())
        if self._requested is None:
            return names
        return names * self.nodes // self.graph.nodes + self._requested.entry.nbytes

    def estimate(self) -> IndexEstimate:
        """Estimate size, memory, and time from pilot runs on this graph; raises
        :class:`ResourceError` if memory or disk space is insufficient.
        """
        found, refining = [], 0
        if self.options.refine:
            links = links_of(self.graph, "in", weighted=False)
            refining = diagonal_memory(links, self._means)
        for part in self.parts:
            found.append(part.estimate())
            if len(self.parts) > 1:
                part.close()  # parts are built one after another
        names = self.name_bytes
        size = sum(each.bytes for each in found)
        size += self.options.refine * len(self.parts) * diagonal_bytes(self.graph.nodes)
        total = size + names
        free = shutil.disk_usage(self._draft.path).free
        if size * (self.units - self.done) / self.units > free:
            raise ResourceError(
                f"the index needs about {format_size(total)}; {format_size(free)} is free in "
                f"{self._draft.output.parent}. Choose another output, or fewer samples"
            )
        fits = tuple("finished before" if each.fit is None else str(each.fit) for each in found)
        seconds, (done, _, unit) = sum(each.seconds for each in found), self.finished
        return IndexEstimate(total, fits, seconds, done, unit, refining)

    # -- the work ----------------------------------------------------------------------

    def run(
        self,
        progress: Progress = lambda done, total: None,
        refining: SweepReport = lambda sweep, done, total: None,
    ) -> BuildReport:
        """Make the missing parts and publish the index.

        ``progress`` is called with (done, total) in units. While refined answers are prepared,
        ``refining`` is called with (sweep, done, total) in nodes.
        """
        begin, before, finished = clock(), self.done, self.finished[0]
        progress(before, self.units)
        base = 0
        for part in self.parts:
            part.run(partial(self._report, progress, part, base))
            base += self._steps(part, part.units)
            part.close()
        live, traffic = sum(part.live_steps for part in self.parts), None
        for sent in (part.traffic for part in self.parts):
            traffic = traffic if sent is None else sent.plus_all(traffic)
        path = self._publish(refining)
        made = self.units - before, self.finished[0] - finished
        return BuildReport(
            *made, clock() - begin, live, StoredIndex.open(path).store.nbytes, traffic
        )

    def _report(self, progress: Progress, part: PartBuild, base: int, done: int, _: int) -> None:
        progress(self._counted(base + self._steps(part, done)), self.units)

    def _publish(self, refining: SweepReport) -> Path:
        """Compute diagonals, collect the parts' files, copy the names, and write the manifest."""
        files, refined = dict[str, Entry](), dict[str, Any]()
        for plan in self.options.parts if self.options.refine else ():
            other = replace(plan, direction=opposite(plan.direction))
            ends = self._links(plan), self._links(other)
            made = write_diagonal(self._draft.path, plan, *ends, self._means, refining)
            files |= made[0]
            refined |= made[1]
        for part in self.parts:
            files |= part.publish()
        names = self._copy_names()
        files |= names[1] | self._more_files()
        facts = self._facts(names[0]) | ({"refined": refined} if refined else {})
        return self._draft.publish(Manifest("index", facts, files))

    def _copy_names(self) -> tuple[str, dict[str, Entry]]:
        """Copy the selected pages' names; return (format of the names, files)."""
        graph, folder, files = self.graph, self._draft.path, dict[str, Entry]()
        if self._requested is not None:
            ids = self._requested.ids()
            kind, files = write_some_names(folder, graph.store, graph.names, ids)
            if graph.titles is not None:
                files |= write_some_titles(folder, graph.titles, ids)
            return kind, files | {WANTED: self._requested.entry}
        for name, entry in files_named(self.graph.store, NAME_FILES, TITLE_FILES).items():
            copy_array(graph.store.path / name, folder / name, entry)
            files[name] = entry
        return str(graph.store.facts["names"]), files

    @property
    def page_filter(self) -> PageFilter | None:
        """Return the page selection for the manifest, or None for all pages."""
        keep = self.options.only_nodes
        return None if keep is None else PageFilter(self.graph.nodes, keep.prefixes)

    def _more_files(self) -> dict[str, Entry]:
        """Write additional files and return their entries; subclasses override this."""
        return {}

    def _facts(self, names: str) -> dict[str, Any]:
        """Return the manifest's facts; ``names`` is the format of names."""
        options, graph = self.options, self.graph
        excluded, _ = too_wide(graph, options)
        place, url = graph.path.resolve(), origin(graph.path)
        beside = path_from(self._draft.output, place, self._elsewhere)
        described = {
            "name": place.name,
            "digest": graph.digest,
            "edges": graph.edges,
            "weighted": graph.in_weights is not None,
            "path": beside if url is None else bare(url),
        }
        sides = graph.sides
        if sides is not None and self._requested is not None:
            sides = sides.subset(self._requested.ids())
        facts = index_facts(self.nodes, names, options, described, self.page_filter, sides)
        return ({EXCLUDED: excluded} if excluded else {}) | facts
