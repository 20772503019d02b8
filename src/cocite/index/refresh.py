"""Index refreshes: new samples of the current graph replace the oldest ones.

Retained samples are converted to the new graph's ids, blob by blob; unchanged shards are linked.
New samples get unused numbers, so they are independent of all others. Parts without samples, and
data for refined answers, are rebuilt; a ``local`` refresh retains the rows of unaffected nodes
(``index/layouts/rows/local.py``). With ``add_links``, the links that a server accepted
(``graph/journal.py``) are first added to the graph, and removed from the log after the refresh.

If the newest samples already come from this graph, nothing changes unless ``force`` is true,
because each repetition would replace more samples. A refresh costs a build of the new samples, and
a pass over the retained samples that are not linked. Each thread needs memory for a blob and 8
bytes per node.
"""

from __future__ import annotations

import datetime
import json
import logging
import math
import os
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from cocite.constants import NOWHERE, Bools, Ids
from cocite.engine.diagonal import SweepReport
from cocite.errors import Busy, Damaged, ResourceError, StoreError, UsageError
from cocite.graph import Graph
from cocite.graph.journal import drop_links, journal_of, posted_links
from cocite.graph.name_files import NAME_FILES, TITLE_FILES, match_names
from cocite.graph.sides import Sides
from cocite.index.build import IndexBuild, files_named
from cocite.index.cluster import ClusterBuild
from cocite.index.layouts.contract import OldTexts, PartPlan, Texts, is_shard
from cocite.index.layouts.memory_plan import Progress
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import is_sampled, sampled_format
from cocite.index.layouts.rows.local import OldRows, changed_nodes, report_file, with_neighbors
from cocite.index.layouts.snapshots import MOST_NUMBERS, SINCE, LocalRefresh, Snapshot
from cocite.index.manifest import LOCAL
from cocite.index.parts import CarriedShards, PartBuild, ShardedPart
from cocite.index.plan import BuildOptions, PageFilter
from cocite.index.reports import BuildReport, IndexEstimate
from cocite.index.stored import StoredIndex
from cocite.index.verify import part_faults
from cocite.io.remote import is_url, origin
from cocite.options.build import RefreshOptions
from cocite.resources import Resources, format_least, short_of
from cocite.storage import Access, Entry, write_array

_log = logging.getLogger("cocite")
ROWS = "rows"
"""The layout that supports local refreshes."""
_FULLY = (
    "A local refresh compares the links of both graphs: restore the old graph, or omit --local "
    "(local=True)"
)
_LOOKED_UP, _LEAST_FAMILIAR = 1000, 0.1
"""Number of nodes to look up in the new graph, and fraction that must exist there."""


def graph_with_links(
    index: str | os.PathLike[str], graph: Graph, means: Resources, options: RefreshOptions
) -> Graph:
    """Return the graph from which to refresh ``index``, after adding links if asked."""
    if not options.add_links:
        return graph
    if options.local:
        raise UsageError(
            "a local refresh needs the old graph, which --add-links (add_links=True) replaces: "
            "omit --local (local=True) or --add-links"
        )
    if is_url(index) or graph.store.home is not None or origin(graph.path) is not None:
        raise UsageError(
            "--add-links (add_links=True) replaces the graph, so GRAPH must be the directory of a "
            "stored graph: pass that directory, or omit --add-links"
        )
    links = posted_links(index, graph)
    if not links:
        return graph
    _log.info(f"adding {len(links):,} link{'s' * (len(links) > 1)} to {graph.path}")
    graph.check()
    graph.with_links(links, graph.path, overwrite=True, memory=means.total, threads=means.threads)
    return Graph.open(graph.path)


def same_options(index: StoredIndex) -> BuildOptions:
    """Return an index's build options, except texts and page selection."""
    return BuildOptions(
        index.measure,
        index.direction,
        index.settings,
        tuple(part.plan for part in index.parts),
        unweighted=not index.weighted,
        refine=bool(index.refined),
        meeting_weight=index.meeting_weight,
        query_defaults=index.query_defaults,
    )


def graph_before(index: StoredIndex, verify: bool, otherwise: str) -> Graph:
    """Open the graph of an index, at the recorded path. If the graph is missing or has changed,
    raises :class:`UsageError` with the advice ``otherwise``.
    """
    place = Path(os.path.normpath(Path(index.store.path).resolve() / index.graph["path"]))
    try:
        found = Graph.open(place, verify=verify)
        found.check()
    except StoreError as error:
        raise UsageError(f"{error}. {otherwise}") from error
    if found.digest != index.graph["digest"]:
        raise UsageError(f"{place} is no longer the graph of {index.store.path}. {otherwise}")
    return found


class RefreshBuild(IndexBuild):
    """One refresh, used like an :class:`IndexBuild`; units are samples to draw or rewrite."""

    def __init__(
        self,
        index: str | os.PathLike[str],
        graph: Graph,
        means: Resources,
        options: RefreshOptions,
        *,
        verify: bool = True,
        spread: ClusterBuild | None = None,
    ) -> None:
        """Prepare the refresh. ``verify`` enables checksum verification of the index's files. With
        ``spread``, cluster nodes draw the new samples.
        """
        fraction, texts, self._local = options.fraction, options.texts, options.local
        if not 0 < fraction <= 1:
            raise UsageError(f"fraction is {fraction!r}; it must be a number above 0, at most 1")
        graph.check()
        if is_url(index):
            raise UsageError(
                f"{index} is a URL, but only an index in a directory can be refreshed: refresh the "
                "original and copy it, manifest.json last; or rebuild the index with --overwrite"
            )
        self._old = old = StoredIndex.open(index, verify=verify)
        old.store.require(*_read_anyway(old, options.local))
        self.date, self._dated = _checked_date(options.date), options.date is not None
        """Date of the new samples."""
        self._named = os.fspath(index)
        numbers = old.freshness.numbers
        # At least one sample, rounded up; 0.07 of 100 is 7 despite floating-point error.
        count = math.ceil(round(fraction * len(numbers), 9))
        self.drawn = range(numbers.stop, numbers.stop + max(min(1, len(numbers)), count))
        if self.drawn.stop > MOST_NUMBERS:
            raise UsageError(
                f"{index} was refreshed so often that its sample numbers are used up; build a new "
                "index with another --seed (seed=...)"
            )
        self.already = "" if options.force else self._already(graph)
        if self.already:
            self.drawn = range(numbers.stop, numbers.stop)
        self._generations = _unchanged(old, numbers[len(self.drawn) :])
        if self.retained and old.lost:
            then = ". Then refresh it, or redraw all samples with --fraction 1 (fraction=1)"
            raise Damaged(old.loss + (not old.freshness.refreshed) * then)
        self._check_layouts(graph)
        self._check_names(graph)
        self._before = graph
        if self._local and not self.already:
            if all(part.layout != ROWS for part in old.parts):
                raise UsageError(
                    f"{old.store.path} uses {old.measure.name}: only fusion and ppr-pmi support "
                    "local refreshes. Omit --local (local=True)"
                )
            self._before = graph_before(old, verify, _FULLY)
        if texts is not None and not old.measure.texts:
            raise UsageError(
                f"{index} does not compare texts: omit --texts (texts=...), or build an index "
                f"with texts: cocite index {graph.path} -o {index} --texts {os.fspath(texts)} "
                "--overwrite"
            )
        built = replace(same_options(old), texts=None if texts is None else Path(texts))
        place = os.path.realpath(index)  # follow a symbolic link to the index
        how: dict[str, Any] = {"restart": options.restart, "spread": spread}
        super().__init__(graph, place, built, means, overwrite=True, **how)

    def _already(self, graph: Graph) -> str:
        """Return a note if the index, with its titles, is up to date with this graph, or ""."""
        old, newest = self._old, self._old.freshness.snapshots[-1]
        if newest.digest != graph.digest or (old.local and not self._local):
            return ""
        ours, theirs = (files_named(store, TITLE_FILES) for store in (old.store, graph.store))
        if old.kept is None and ours != theirs:
            return ""
        when = f", on {newest.date}" if newest.date and newest.refresh else ""
        done = "was already refreshed from" if newest.refresh else "was built from"
        return (
            f"{old.store.path} {done} this graph ({graph.path}){when}, so nothing changes. To draw "
            "samples from it again, or to use other texts: --force (force=True)"
        )

    def _check_layouts(self, graph: Graph) -> None:
        """Raise :class:`UsageError` if the index cannot be refreshed from this graph."""
        old, path = self._old, self._old.store.path
        before, now = old.names.sides, graph.sides
        if (before and (before.titles, before.mark)) != (now and (now.titles, now.mark)):
            raise UsageError(
                f"{graph.path} is {_bipartite(now)}, but the graph of {path} is "
                f"{_bipartite(before)}, so node names differ. Ingest the new graph with the same "
                "--bipartite (bipartite=...) and --sides (sides=...), or build a new index"
            )
        if old.graph["weighted"] != (graph.in_weights is not None):
            here, there, how = "none", "weights", "without"
            if old.graph["weighted"]:
                here, there, how = "weights", "none", "with"
            raise UsageError(
                f"the links of {graph.path} have {there}, but the links of {path} have {here}, "
                f"so scores cannot be combined. Ingest the new graph {how} weights, or build "
                "a new index"
            )
        for part in old.parts if self.retained else ():
            if is_sampled(part.layout) and not sampled_format(part.layout).carries(part.settings):
                raise UsageError(
                    f"{path} has the {part.layout} layout, whose samples cannot be transferred "
                    "to another graph. Redraw all of them with --fraction 1 (fraction=1), or "
                    "build the index in another layout"
                )

    def _check_names(self, graph: Graph) -> None:
        """Raise :class:`UsageError` if the graph contains too few of the index's nodes to be a
        newer version of its graph. Checks evenly spaced nodes.
        """
        path, names = self._old.store.path, self._old.names
        count = min(len(names), _LOOKED_UP)
        asked = names.names(np.arange(count) * len(names) // max(1, count))
        found = sum(graph.names.find(name) is not None for name in asked)
        if found < max(1, int(_LEAST_FAMILIAR * count)):
            raise UsageError(
                f"{graph.path} has only {found:,} of {count:,} checked nodes of {path}, so it is "
                "not a newer version of the index's graph. Pass the right graph, or build an "
                f"index of {graph.path}: cocite index {graph.path} -o {path} --overwrite"
            )

    def __enter__(self) -> Self:
        if self.already:
            return self
        super().__enter__()
        try:
            if StoredIndex.open(self._old.store.path).store.manifest != self._old.store.manifest:
                raise Busy(
                    f"{self._old.store.path} was replaced during the refresh; refresh it again"
                )
            for part in self.parts:
                if isinstance(part, ShardedPart):
                    part.link_finished()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if not self.already:
            super().__exit__(kind, error, trace)

    def run(
        self,
        progress: Progress = lambda done, total: None,
        refining: SweepReport = lambda sweep, done, total: None,
    ) -> BuildReport:
        """Run like a build; do nothing if the index is already up to date."""
        if self.already:
            report = BuildReport(0, 0, 0.0, 0, self._old.store.nbytes)
        else:
            report = super().run(progress, refining)
        if left := drop_links(self._named, self.graph):
            _log.info(
                f"{left:,} link{'s' * (left > 1)} that a server accepted for {self._named} "
                f"{'are' if left > 1 else 'is'} not in {self.graph.path}, but remain"
                f"{'' if left > 1 else 's'} in {journal_of(self._named)}. To add such links to the "
                "graph: --add-links (add_links=True)"
            )
        return report

    def estimate(self) -> IndexEstimate:
        """Estimate like a build; linked samples do not count as finished by an earlier run."""
        linked = sum(part.linked for part in self.parts if isinstance(part, ShardedPart))
        found = super().estimate()
        return replace(found, done=found.done - linked)

    @property
    def retained(self) -> int:
        """Return the number of retained samples."""
        return sum(generation.samples for generation in self._generations)

    # -- what differs from a build -----------------------------------------------------

    def _texts_compared(self) -> Texts | None:
        """Return the given texts, or the texts in the index, which all text parts share."""
        given = super()._texts_compared()
        if given is not None or not self._old.measure.texts:
            return given
        for part in self._old.parts:
            for name, _ in part_faults(part) if part.measure.texts else ():
                raise part.damaged_file(name)  # rows are copied, so they must be valid
        return OldTexts(lambda prefix, name: self._before_of(prefix).array(name), lambda: self._ids)

    def _before_of(self, prefix: str) -> StoredPart:
        """Return the old index's part with this prefix."""
        return next(part for part in self._old.parts if part.prefix == prefix)

    def _part(self, plan: PartPlan) -> PartBuild:
        if self._local and not self.already and plan.layout == ROWS:
            old = self._before_of(plan.prefix)
            plan = replace(plan, old=lambda: OldRows(old, *self._new_rows))
        return super()._part(plan)

    @cached_property
    def _new_rows(self) -> tuple[Ids, Bools, Ids]:
        """Return each node's old row, a mask of rows to recompute, and each old node's new id."""
        before, graph, kept = self._before, self.graph, self._pages
        ids = self._ids if kept is None else match_names(before.names, graph.names)
        rows = self._ids if kept is None else self._there
        changed = changed_nodes(before, graph, ids, weighted=self.options.weighted)
        made, places = with_neighbors(graph, changed), np.full(graph.nodes, NOWHERE, np.uint32)
        there = np.flatnonzero(rows != NOWHERE)
        places[rows[there]] = there
        made |= places == NOWHERE
        if kept is not None:
            stored = np.zeros(graph.nodes, bool)
            stored[kept] = True
            made &= stored
        return places, made, ids

    def _numbers(self, plan: PartPlan, shard: int) -> tuple[range, CarriedShards | None]:
        if not self.retained:
            return self.drawn, None
        part = self._before_of(plan.prefix)
        numbers = range(self._generations[0].first, self.drawn.start)
        layout = sampled_format(plan.layout)
        blob = 4 * layout.most_words(self.nodes, plan.settings)
        making = blob + layout.carry_node * max(self.nodes, self._old.nodes)
        threads = self._carrying_threads(blob, making)
        how = self._same, self.nodes, shard, threads
        return self.drawn, CarriedShards(part, numbers, lambda: self._ids, *how)

    def _carrying_threads(self, blob: int, making: int) -> int:
        """Return how many threads fit in memory if each needs ``making`` bytes, and finished blobs
        need memory too: one for a single thread, two for several. Raises :class:`ResourceError`.
        """
        beside = 4 * self._old.nodes
        matching = 0
        if not self._same:  # the mapped name files, and a mask of all names
            names = sum(entry.nbytes for files in self._matched_files for entry in files.values())
            matching = max(self._old.nodes, self.graph.nodes) + names
        need = beside + max(making + blob, matching)
        allowed = self._means.memory
        if need > allowed:
            raise ResourceError(
                f"carrying the old samples over to the new graph ({self.graph.nodes:,} nodes) "
                f"needs {format_least(need)} of memory; {short_of(allowed)}, or redraw all samples "
                "with --fraction 1 (fraction=1)"
            )
        return min(self._means.threads, max(1, (allowed - beside - 2 * blob) // making))

    @property
    def _plan(self) -> dict[str, Any]:
        old = self._old.store.manifest.digest()
        own = {"index": old, "drawn": len(self.drawn), "date": self.date, "local": self._local}
        return super()._plan | own

    def _resume_or_clear(self) -> None:
        """Resume as in a build, with the date of the first run."""
        if not self._dated:
            with suppress(UsageError):  # a damaged plan cannot be resumed
                self.date = _checked_date((self._draft.plan or {}).get("date", self.date))
        super()._resume_or_clear()

    def _facts(self, names: str) -> dict[str, Any]:
        facts = super()._facts(names)
        if self._local:
            facts[LOCAL] = self._local_refresh().to_json()
        if not len(self.drawn):
            return facts
        refresh, graph = self._old.freshness.snapshots[-1].refresh + 1, facts["graph"]
        first, samples = self.drawn.start, len(self.drawn)
        named = graph["name"], graph["digest"], self.date, graph["path"]
        newest = Snapshot(refresh, first, samples, *named)
        return facts | {"generations": [g.to_json() for g in (*self._generations, newest)]}

    def _local_refresh(self) -> LocalRefresh:
        """Return the local refresh's facts, with the largest deviation of any part."""
        old, before = self._old, self._old.local
        files = (report_file(part.prefix) for part in old.parts if part.layout == ROWS)
        reports = [json.loads((self._draft.path / file).read_bytes()) for file in files]
        worst = {name: max(report[name] for report in reports) for name in reports[0]}
        if before is None:
            began, graph, refreshes = _built_on(old), str(old.graph["name"]), 1
        else:
            began, graph, refreshes = before.since, before.graph, before.refreshes + 1
        return LocalRefresh(refreshes, self.date, **worst, since=began, graph=graph)

    def _more_files(self) -> dict[str, Entry]:
        """Write each node's first sample number, unless all samples include all nodes."""
        if not self.retained:
            return {}
        since = np.full(self.nodes, self.drawn.start, np.uint32)
        old, ids = self._old.freshness.since, self._ids
        stay = np.flatnonzero(ids != NOWHERE)
        since[ids[stay]] = 0 if old is None else old[stay]
        if not since.size or since.max() <= self._generations[0].first:
            return {}
        return {SINCE: write_array(self._draft.path / SINCE, np.uint32, [since])}

    # -- nodes -------------------------------------------------------------------------

    @cached_property
    def _same(self) -> bool:
        """Return whether the nodes and their ids are unchanged."""
        if self._pages is not None:
            here = np.arange(self._old.nodes, dtype=np.uint32)
            return self.nodes == self._old.nodes and bool((self._matched == here).all())
        old, new = self._old.store.facts, self.graph.store.facts
        files, new_files = self._matched_files
        same = old["nodes"] == new["nodes"] and old["names"] == new["names"]
        return same and files == new_files

    @property
    def _matched_files(self) -> list[dict[str, Entry]]:
        """Return the name files of the index and of the graph."""
        return [files_named(store, NAME_FILES) for store in (self._old.store, self.graph.store)]

    @cached_property
    def _ids(self) -> Ids:
        """Return uint32[old nodes]: each old node's new id, or NOWHERE if it was removed."""
        if self._pages is not None:
            return self._matched
        if self._same:
            return np.arange(self._old.nodes, dtype=np.uint32)
        self._old.store.advise(Access.AROUND)
        return match_names(self._old.names, self.graph.names)

    # -- indexes of selected pages -------------------------------------------------------

    def _page_filter(self) -> Ids | None:
        """Return the selected pages that still exist, and all pages that match the prefixes."""
        if self._old.kept is None:
            return None
        self._old.store.advise(Access.AROUND)
        self._there = match_names(self._old.names, self.graph.names)
        found = [self.graph.names.with_prefix(p) for p in self._old.kept.prefixes]
        return np.unique(np.concatenate([self._there[self._there != NOWHERE], *found]))

    @cached_property
    def _matched(self) -> Ids:
        """Return uint32[old nodes]: each old node's row in the new selection, or NOWHERE."""
        assert self._pages is not None
        stay = self._there != NOWHERE
        ids = np.full(self._there.size, NOWHERE, np.uint32)
        ids[stay] = np.searchsorted(self._pages, self._there[stay])
        return ids

    @property
    def page_filter(self) -> PageFilter | None:
        """Return the index's selection, for the new graph."""
        old = self._old.kept
        return None if old is None else PageFilter(self.graph.nodes, old.prefixes)


def _read_anyway(old: StoredIndex, local: bool) -> list[str]:
    """Return the files that a refresh reads, except shards, which are verified when read. Parts
    without samples are rebuilt without their files, unless they compare texts or, in a ``local``
    refresh, have rows.
    """
    anew = tuple(
        part.prefix
        for part in old.parts
        if not (is_sampled(part.layout) or part.measure.texts or (local and part.layout == ROWS))
    )
    files = (name for name in old.store.manifest.files if not is_shard(name))
    return [name for name in files if not name.startswith(anew)]


def _unchanged(old: StoredIndex, numbers: range) -> tuple[Snapshot, ...]:
    """Return the snapshots that contain retained samples, limited to these samples, with dates."""
    built, kept = _built_on(old), []
    for each in old.freshness.snapshots:
        first = max(each.first, numbers.start)
        if first < each.numbers.stop and len(numbers):
            samples = each.numbers.stop - first
            kept.append(replace(each, first=first, samples=samples, date=each.date or built))
    return tuple(kept)


def _built_on(old: StoredIndex) -> str:
    """Return the date on which an index was written."""
    manifest = (old.store.path / "manifest.json").stat()
    return datetime.datetime.fromtimestamp(manifest.st_mtime, datetime.UTC).date().isoformat()


def _bipartite(sides: Sides | None) -> str:
    """Describe whether a graph is bipartite."""
    if sides is None:
        return "not bipartite"
    return f"bipartite ({sides.mark}NAME and {sides.titles[1]})"


def _checked_date(date: str | None) -> str:
    """Return the date (default: today) in ISO format; raises :class:`UsageError`."""
    if date is None:
        return datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        return datetime.date.fromisoformat(date).isoformat()
    except (ValueError, TypeError) as error:
        raise UsageError(f"date is {date!r}; it must be a date such as 2026-11-21") from error
