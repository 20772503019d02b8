"""``cocite tune``: find the best measure and settings for a graph, with labels or without.

    round 1   every measure in every direction: a quarter of the pages and samples
    round 2   the best 6 of these, with one setting changed at a time: half of the pages and samples
    round 3   the best 5 of these, and all settings at their best values: all pages and samples

The default takes part in every round. Without labels, links are hidden, and lists are evaluated by
the co-neighbors that they find (``evaluation/held_out.py``); with labels, by a figure of ``cocite
evaluate`` on the whole graph. Candidates are selected on half of the pages and measured on the
other half, which avoids selection bias.

A candidate is level with the best of round 3 if the 95% interval of their difference includes 0.
The default wins if it is level, otherwise the smallest index in bytes. A candidate
replaces the default only if it is significantly better on both halves; without labels, its lead on
the held-out half must exceed a fifth of the default's figure, because labels often contradict
smaller leads.

Candidates that differ only in query settings share an index. Judgments are stored next to the
output, so a run with the same settings resumes. The choice depends only on graph, settings and
seed, unless there is a time limit: the rounds then end at 40, 75 and 100% of it. Takes about 40
builds with a quarter of the samples, 30 with half, and 10 with all.
"""

from __future__ import annotations

import os
import tempfile
import time as clock
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError, UsageError
from cocite.evaluation.held_out import (
    CONEIGHBOR_TITLES,
    CoNeighborGain,
    Hidden,
    hidden_pairs,
    hide_links,
)
from cocite.evaluation.judge import QueryJudge
from cocite.evaluation.labels import Bootstrap, Interval
from cocite.evaluation.points import DataPlan, JudgePlan, Point, called
from cocite.evaluation.rankers import Builds, Ids, IndexRanker, builds_on, judging_resources
from cocite.evaluation.trials import (
    Records,
    Trial,
    TrialRecord,
    TuningResult,
    Variants,
    decided,
    first_points,
    is_default,
)
from cocite.evaluation.truth import read_truth, sample_pages
from cocite.graph import Graph
from cocite.index.settings import IndexSettings
from cocite.io.opening import open_graph
from cocite.io.readers.contract import split
from cocite.options import accepts
from cocite.options.evaluate import TuneOptions
from cocite.progress import shows
from cocite.resources import format_time, resident
from cocite.search.plan import parse_time
from cocite.storage import check_file, disk
from cocite.storage.staging import Building

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


_ROUNDS = 3
_PARTS, _UNTIL, _ADVANCING = (4, 2, 1), (0.4, 0.75, 1.0), (6, 5)
_MARGIN = 5
"""Required lead over the default without labels, as a fraction 1/n of the default's figure."""
_FEWEST = 50
"""Minimum number of selecting pages in a round, unless there are fewer."""
_FEW = 30
"""Number of pages below which bootstrap intervals are too narrow."""
Progress = Callable[[str, int, int, str], None]


class _TimeUp(Exception):
    """The time limit of a round is reached."""


@dataclass
class Tuning:
    """One tuning run."""

    graph: Graph
    folder: Path
    records: Records
    plan: dict[str, Any]
    options: TuneOptions
    builds: Builds
    seconds: float
    progress: Progress

    def __post_init__(self) -> None:
        self._begin = clock.monotonic() - self.records.seconds
        self._seed, self._by = int(self.plan["seed"]), str(self.plan["figure"])
        self._notes: list[str] = []
        self._since = resident()
        self._hidden: int | None = None
        self._candidates: Ids | None = None
        self._last: dict[Point, tuple[int, TrialRecord]] = {}

    def run(self) -> TuningResult:
        """Run all rounds."""
        plan = self.plan
        self._judge = self._gain() if self.options.labels is None else self._labeled()
        if self._by not in self._judge.titles:
            raise UsageError(
                f"figure is {self._by!r}; choose one of: {', '.join(self._judge.titles)}"
            )
        self._choosing = self._choosers()
        settings = {"samples": plan["samples"], "seed": self._seed}
        first, notes = first_points(
            self.graph, settings, plan["measures"], plan["directions"], plan["unweighted"]
        )
        self._notes += notes
        if not first:
            raise UsageError("there are no candidates left to try: " + "; ".join(notes))
        for graph in (self.graph, self._shown):
            graph.store.evict()
        rows = 16 * self._judge.queries.size * len(self._judge.titles)
        means = self.builds.means
        nodes, samples = self.graph.nodes, max(each.samples or 0 for each in first)
        self._means = judging_resources(means, self._since, nodes, samples, rows, 0)
        self.builds = replace(self.builds, held=means.memory - self._means.memory)
        usual = [first[0]] if is_default(first[0]) else []
        one = self._round(1, first, usual)
        leading = list(one)[: _ADVANCING[0]]
        wider = [each for each in usual if each not in leading]
        variants = Variants(sorted(leading, key=first.index), settings)
        order = [each.measure for each in (*wider, *leading)]
        pool = sorted(
            dict.fromkeys([*wider, *leading, *variants.points()]),
            key=lambda p: (p not in leading, p not in wider, order.index(p.measure)),
        )
        two = self._round(2, pool, usual)
        leading = list(two)[: _ADVANCING[1]]
        ways = {(p.measure, p.direction) for p in leading}
        together = variants.combined(lambda p: two.get(p, float("-inf")))
        together = [p for p in together if (p.measure, p.direction) in ways]
        three = self._round(3, list(dict.fromkeys([*leading, *together, *usual])), usual)
        return self._result(usual[0] if usual else None, three)

    # -- judges ----------------------------------------------------------------------------------

    def _gain(self) -> QueryJudge:
        """Hide links and return the judge that uses co-neighbors."""
        plan, graph = self.plan, self.graph
        self.progress("hiding links", 0, 0, "")
        memory = self.builds.means.memory
        pairs = hidden_pairs(graph, plan["share"], self._seed, memory)
        place = self.folder / "shown.graph"
        disk.remove_tree(place)
        self._shown = hide_links(graph, place, pairs)
        self._hidden = graph.edges - self._shown.edges
        hidden = Hidden.of(pairs)
        low, high = plan.get("nodes", (0, graph.nodes))
        able = hidden.pages[(hidden.pages >= low) & (hidden.pages < high)]
        pages = sample_pages(able, plan["queries"], self._seed)
        return CoNeighborGain(graph, self._shown, hidden, pages, memory)

    def _labeled(self) -> QueryJudge:
        """Return the judge that uses labels, on the whole graph."""
        plan, self._shown = self.plan, self.graph
        judging = JudgePlan(queries=plan["queries"])
        truth = read_truth(self.graph.names, DataPlan.of(self.options), judging, seed=self._seed)
        if "nodes" in plan:
            low, high = plan["nodes"]
            if not ((truth.queries >= low) & (truth.queries < high)).all():
                sides = self.graph.sides
                assert sides is not None
                side = sides.title_of(int(truth.queries[0]))
                raise UsageError(
                    f"{self.options.labels} labels nodes on the {side} side: select that side with "
                    f"--side {side} (side=...)"
                )
        self._candidates = truth.candidates
        self._notes += [f"read {source}" for source in truth.sources]
        return truth.judge(judging)

    def _choosers(self) -> NDArray[np.bool_]:
        """Return the selecting half, bool[queries]; all if there are fewer than four queries."""
        queries = self._judge.queries
        if queries.size < 4:
            return np.ones(queries.size, bool)
        return np.isin(queries, sample_pages(queries, (queries.size + 1) // 2, self._seed + 1))

    def _part(self, turn: int) -> NDArray[np.bool_]:
        """Return the pages to query in a round, bool[queries]."""
        if turn == _ROUNDS:
            return np.ones(self._choosing.size, bool)
        mine = self._judge.queries[self._choosing]
        few = sample_pages(mine, max(_FEWEST, mine.size // _PARTS[turn - 1]), self._seed + 1)
        return np.isin(self._judge.queries, few)

    # -- rounds ----------------------------------------------------------------------------------

    def _round(
        self, turn: int, points: Sequence[Point], usual: Sequence[Point]
    ) -> dict[Point, float]:
        """Run a round; return the candidates' figures on the selecting pages, best first."""
        rows = self._part(turn)
        judge, chosen = self._judge.of(rows), self._choosing[rows]
        found: dict[Point, float] = {}
        shared: dict[Any, list[Point]] = {}

        def record_of(each: Point) -> TrialRecord | None:
            return self.records.get(turn, self._at(turn, each))

        for each in points:
            shared.setdefault(self._at(turn, each).index_key, []).append(each)
        total, done, late = len(points), 0, 0
        for group in shared.values():
            needed = not found or any(each in group for each in usual)
            self._until = float("inf") if needed else self.seconds * _UNTIL[turn - 1]
            todo = [p for p in group if record_of(p) is None]
            self.progress(f"round {turn} of {_ROUNDS}", done, total, called(group[0]))
            try:
                if todo:
                    self._try(turn, todo, judge)
            except _TimeUp:
                late += sum(record_of(p) is None for p in group)
            except (ResourceError, UsageError) as error:
                self._notes.append(f"{called(group[0])} is left out: {error}")
            for each in group:
                record = record_of(each)
                if record is not None:
                    self._last[each] = turn, record
                    found[each] = record.judgment.of(chosen).value(self._by)
            done += len(group)
        if late:
            share = _UNTIL[turn - 1]
            self._notes.append(
                f"round {turn} of {_ROUNDS} must end at {share:.0%} of the time limit, "
                f"{format_time(share * self.seconds)} of {format_time(self.seconds)}: {late} of "
                f"its {total} candidates are skipped; allow more time with --time (time=...)"
            )
        if not found:
            raise UsageError("no candidate could be tried: " + "; ".join(self._notes))
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _at(self, turn: int, each: Point) -> Point:
        """Return a candidate with the samples that it has in a round."""
        if each.samples is None:
            return each
        fewer = max(1, each.samples // _PARTS[turn - 1])
        settings = dict(each.build) | {"samples": fewer}
        return Point(each.measure, each.direction, tuple(sorted(settings.items())), each.ask)

    def _try(self, turn: int, points: Sequence[Point], judge: QueryJudge) -> None:
        """Build the points' common index and evaluate each point."""
        first, place = self._at(turn, points[0]), self.folder / "tried.index"
        disk.remove_tree(place)
        begin = clock.perf_counter()
        index = self.builds.index(
            self._shown,
            place,
            first.measure,
            first.direction,
            dict(first.build),
            unweighted=bool(self.plan["unweighted"]),
            restart=True,
            progress=self._watch,
        )
        seconds, threads = clock.perf_counter() - begin, self._means.threads
        try:
            for each in points:
                begin = clock.perf_counter()
                ranker = IndexRanker(index, self._candidates, self._means, **dict(each.ask))
                judgment = judge(ranker, threads=threads, progress=self._watch)
                asking = clock.perf_counter() - begin
                record = TrialRecord(judgment, index.stored.store.nbytes, seconds, asking)
                self.records.add(turn, self._at(turn, each), record)
        finally:
            index.stored.store.evict()  # garbage collection may come late
            disk.remove_tree(place)

    def _watch(self, done: int, total: int) -> None:
        if clock.monotonic() - self._begin > self._until:
            raise _TimeUp

    # -- result ----------------------------------------------------------------------------------

    def _result(self, usual: Point | None, three: dict[Point, float]) -> TuningResult:
        """Return the choice and the results of all candidates."""
        graph, by, labels = self.graph, self._by, self.options.labels
        records = {p: record for p, (_, record) in self._last.items()}
        choosing, judging = self._choosing, ~self._choosing
        chose, judged_by = int(choosing.sum()), int(judging.sum())
        first = next(iter(three))
        top, mine = records[first].judgment.of(choosing), Bootstrap(chose, seed=self._seed)
        behind = {p: top.differences(records[p].judgment.of(choosing), mine)[by] for p in three}
        judged: dict[Point, Interval] = {}
        held: dict[Point, Interval] = {}
        if judged_by:
            others = Bootstrap(judged_by, seed=self._seed)
            theirs = {p: records[p].judgment.of(judging) for p in three}
            judged = {p: found.figures(others)[by] for p, found in theirs.items()}
            if usual in theirs:
                base = theirs[usual]
                held = {p: found.differences(base, others)[by] for p, found in theirs.items()}
        if self.options.best:
            chosen, reason = first, "the best on the selection pages, as requested"
        else:
            level = [p for p in three if p == first or not behind[p].low > 0]
            sizes = {p: records[p].bytes for p in level}
            margin = 0.0
            if labels is None and usual in judged:
                margin = judged[usual].value / _MARGIN
            default = usual if usual in three else None
            chosen, reason = decided(first, level, default, sizes, held, margin)
        self._notes += self._few_pages(chose, judged_by, labels is not None)
        tried = {}
        for each, (turn, record) in self._last.items():
            rows = choosing[self._part(turn)]
            figures = record.judgment.of(rows).figures(Bootstrap(int(rows.sum()), seed=self._seed))
            what = called(each), each.measure, each.direction, each.settings, turn
            found = figures[by], behind.get(each), judged.get(each)
            cost = record.seconds, record.bytes, record.asking / len(record.judgment.parts)
            tried[each] = Trial(*what, *found, self._at(turn, each).samples, *cost)
        order = sorted(tried, key=lambda p: (p != chosen, -tried[p].round, -tried[p].figure.value))
        own = {k: v for k, v in chosen.settings.items() if k in chosen.chosen or k == "samples"}
        return TuningResult(
            graph=str(graph.path),
            nodes=graph.nodes,
            links=graph.edges,
            date=date.today().isoformat(),
            by=by,
            labels=None if labels is None else Path(labels).name,
            hidden=self._hidden,
            chosen_by=chose,
            judged_by=judged_by or chose,
            seed=self._seed,
            best=tried[chosen],
            reason=reason,
            settings=IndexSettings(
                chosen.measure, chosen.direction, None, bool(self.plan["unweighted"]), own
            ),
            tried=[tried[p] for p in order],
            notes=list(dict.fromkeys(self._notes)),
        )

    def _few_pages(self, chose: int, judged: int, labeled: bool) -> list[str]:
        """Return a note if the choice depends on few pages."""
        if min(chose, judged) >= _FEW:
            return []
        more = "label more pages" if labeled else "hide more links with --fraction"
        others = f"evaluated on {judged} others" if judged else "evaluated on no others"
        return [
            f"the choice is based on {chose} page{'s' * (chose != 1)}, and {others}: too few to "
            "be reliable, and another --seed may change the choice. Use all pages with --queries "
            f"0, or {more}"
        ]


FIGURE, LABELS_FIGURE = "coneighbors@50", "precision@10"
SMALL, SMALL_FIGURE = 500, "coneighbors@10"
"""Below this many nodes, nearly every list of 50 would contain all co-neighbors."""


@shows("tuning")
@accepts(TuneOptions)
def tune(
    graph: Any,
    output: str | os.PathLike[str] | None = None,
    *,
    threads: int | None = None,
    memory: str | int | None = None,
    cluster: str | Cluster | None = None,
    staging_url: str | None = None,
    progress: Progress = lambda stage, done, total, remark: None,
    options: TuneOptions | None = None,
    **given: Any,
) -> TuningResult:
    """Choose the best measure and settings for ``graph``.

    Parameters
    ----------
    graph
        A stored graph, or anything else that holds links (:func:`cocite.open_graph`).
    output
        The settings file to write, for ``build(..., settings=output)``. If it is given, interrupted
        runs resume; otherwise, nothing is stored.
    threads, memory
        As for building an index. Candidates that need more memory are skipped.
    cluster, staging_url
        As for building an index. All machines must be able to access the graph, and the folder
        of ``output``, where a copy of the graph without the hidden links is stored.
    progress
        Called with (stage, done, total, remark).
    options, given
        The options below, as one object or by name.
    {options}

    Raises
    ------
    UsageError
        If a value is invalid, or no link can be hidden.
    InputError, OutputExists, Busy, ResourceError, ClusterError
    """
    options = TuneOptions.of(options, given)
    graph = open_graph(graph, memory=memory, threads=threads)
    graph.check()
    by = _figure(graph, options)
    seconds = float("inf") if options.time is None else parse_time(options.time)
    if output is not None:
        check_file(Path(output), options.overwrite)
    plan = {
        "graph": graph.digest,
        "labels": None if options.labels is None else _content(options.labels),
        "label columns": list(split(options.label_columns)),
        "delimiter": options.delimiter,
        "header": options.header,
        "bad rows": options.bad_rows,
        "separator": options.separator,
        "figure": by,
        "measures": list(options.measures),
        "directions": list(options.directions),
        "share": options.fraction,
        "queries": options.queries,
        "samples": options.samples,
        "seed": options.seed,
        "unweighted": options.unweighted,
    }
    if graph.sides is not None:
        within = graph.sides.named(options.side)
        plan["nodes"] = [within.start, within.stop]
    with ExitStack() as stack:
        builds = stack.enter_context(builds_on(cluster, staging_url, threads, memory))
        if output is not None:
            place = Path(output)
        else:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cocite-"))) / "t"
        building = stack.enter_context(Building(place, resumable=True))
        building.goes_on(plan, "tuning", restart=options.restart)
        records = stack.enter_context(Records(building.path / "records"))
        work = Tuning(graph, building.path, records, plan, options, builds, seconds, progress)
        try:
            found = work.run()
        except KeyboardInterrupt as stopped:
            if output is not None:
                stopped.add_note(
                    f"{len(records):,} evaluations are saved in {building.path}: repeat the "
                    "command to continue"
                )
            raise
        if output is not None:
            found.save(output, options.overwrite)
        building.done()
    return found


def _figure(graph: Graph, options: TuneOptions) -> str:
    """Return the deciding figure. Raises :class:`UsageError` for invalid options."""
    if not 0 < options.fraction <= 0.5:
        raise UsageError(
            f"fraction is {options.fraction!r}; it must be a number above 0, at most 0.5"
        )
    if options.side is not None and graph.sides is None:
        raise UsageError(f"{graph.path} is not bipartite: omit --side (side=...)")
    if options.labels is not None:
        return options.figure or LABELS_FIGURE
    by = options.figure or (FIGURE if graph.nodes >= SMALL else SMALL_FIGURE)
    if by not in CONEIGHBOR_TITLES:
        raise UsageError(
            f"figure is {by!r}; without labels, it must be one of {', '.join(CONEIGHBOR_TITLES)}"
        )
    if graph.sides is not None and by.startswith("links@"):
        raise UsageError(
            f"figure is {by}, but in a bipartite graph, hidden links lead to the other side, and "
            "no list contains nodes of that side: choose coneighbors@10 or coneighbors@50"
        )
    return by


def _content(path: str | os.PathLike[str]) -> str:
    """Return a checksum of a label file."""
    import xxhash

    try:
        return xxhash.xxh3_128_hexdigest(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
