"""The rounds of a tuning: who is tried, who judges, who is left.

What happens in which round is told in ``evaluation/tune.py``. Candidates that differ in nothing but
how they are asked share an index, which goes when they are judged. A candidate that was judged
before, in a run that was interrupted, is not judged again.

What an index of a graph should be made of: candidates tried, successively fewer, the best told.

    round 1   every measure in every direction: a quarter of the pages, a quarter of the samples
    round 2   the best 6 of these, one setting at a time set otherwise: half of both
    round 3   the best 5 of these, and the best value of every setting at once: all of both

The default takes part in every round. Without labels some links are hidden, and what finds the
company of their ends is best (``evaluation/held_out.py``); with labels some labeled pages choose by
a figure of ``cocite evaluate``, on the whole graph. Half of the pages choose; the others have no
say, and tell how good what was chosen is, as a best of many looks better on the pages that chose
it.

Who is best in round 3 is chosen, but what is not told apart from it by the pages (the 95 % interval
of the difference, over resamples of the pages, reaches 0) goes before it: the default, if that is
among them, or else the smallest index. The default is left only for what is ahead of it, by more
than chance, on the pages that chose and on the others, too; unless the ``best`` is asked for. Where
a choice rests on few pages, that is told.

What was judged is kept beside the output, and a run with the same settings goes on behind it. A
choice follows from graph, settings and seed, unless the time was up: a round has until 40, 75 and
100 % of it, and what it has not come to then is left out, and told.

Cost: some 40 builds with a quarter of the samples, 30 with a half, 10 with all.

Choosing what an index is made of, without labels or with them: ``cocite tune``.
"""

from __future__ import annotations

import os
import tempfile
import time as clock
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cocite.errors import InputError, ResourceError, UsageError
from cocite.evaluation.held_out import (
    COMPANY_TITLES,
    CoNeighborGain,
    Hidden,
    hidden_pairs,
    hide_links,
)
from cocite.evaluation.judge import Judge, Judgment
from cocite.evaluation.labels import Bootstrap, Interval
from cocite.evaluation.points import DataPlan, JudgePlan, Point, called, candidates, combined
from cocite.evaluation.rankers import Builds, IndexRanker, Ranker, builds_on
from cocite.evaluation.trials import (
    Records,
    Trial,
    TrialRecord,
    TuningResult,
    decided,
    default_point,
    first_points,
    settings_points,
    suite_of,
    whole_settings,
)
from cocite.evaluation.truth import Truth, read_truth, sample_pages
from cocite.graph import Graph
from cocite.io.opening import open_graph
from cocite.io.pipeline import split
from cocite.options.core import accepts
from cocite.options.evaluate import TuneOptions
from cocite.resources import format_time
from cocite.search.plan import parse_time
from cocite.storage import Building, check_file, disk

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


_ROUNDS = 3
_PARTS, _UNTIL, _KEPT = (4, 2, 1), (0.4, 0.75, 1.0), (6, 5)
_FEWEST = 50
"""Pages that choose in a round, if there are so many."""
_FEW = 30
"""Pages below which intervals over resamples of them are too narrow to go by."""
Progress = Callable[[str, int, int, str], None]


class _JudgeSets(Protocol):
    """What judges: :class:`CoNeighborGain`, or the judge of labels."""

    queries: NDArray[np.uint32]
    titles: tuple[str, ...]

    def __call__(
        self, ranker: Ranker, *, threads: int = ..., progress: Callable[[int, int], None] = ...
    ) -> Judgment: ...


class _TimeUp(Exception):
    """A round has taken its time."""


class Tuning:
    """One run."""

    def __init__(
        self,
        graph: Graph,
        folder: Path,
        records: Records,
        plan: dict[str, Any],
        builds: Builds,
        seconds: float,
        progress: Progress,
        best: bool = False,
    ) -> None:
        """``best``: whether the best is chosen even if the default is not told apart from it."""
        self._wanted_best = best
        self._graph, self._folder, self._records = graph, folder, records
        self._plan, self._builds, self._progress = plan, builds, progress
        self._means = builds.means
        self._seconds, self._begin = seconds, clock.monotonic() - records.seconds
        self._seed, self._by = int(plan["seed"]), str(plan["figure"])
        self._notes: list[str] = []
        self._read = ""

    def run(self, labels: Path | None) -> TuningResult:
        """Do all of it."""
        plan, seed = self._plan, self._seed
        self._hidden: int | None = None
        self._truth: Truth | None = None
        if labels is None:
            self._court: Any = self._gain()
        else:
            self._court = self._judge(labels)
        if self._by not in self._court.titles:
            raise UsageError(f"figure is {self._by!r}; there are {', '.join(self._court.titles)}")
        self._choosing = self._choosers()
        suite = suite_of(plan["measures"], plan["directions"], plan["samples"], seed)
        first, self._notes = first_points(suite, self._graph, seed, plan["unweighted"])
        if not first:
            raise UsageError("nothing is left to try: " + "; ".join(self._notes))
        usual = default_point(first)
        self._last: dict[Point, int] = {}
        one = self._round(1, first, usual)
        best = _first(one, _KEPT[0])
        swept = settings_points(suite, best, seed)
        wider = [usual] if usual is not None and usual not in best else []
        pool = [p for each in candidates([*wider, *best], swept).values() for p in each]
        pool.sort(key=lambda p: (p not in best, p not in wider))
        two = self._round(2, pool, usual)
        both = combined(suite, swept, seed, lambda p: two.get(p, float("-inf")))
        near = _first(two, _KEPT[1])
        ways = {(p.measure, p.direction) for p in near}
        final = dict.fromkeys([*near, *(p for p in both if (p.measure, p.direction) in ways)])
        if usual is not None:
            final[usual] = None
        three = self._round(3, list(final), usual)
        return self._result(usual, three, labels)

    # -- who judges ------------------------------------------------------------------------------

    def _gain(self) -> CoNeighborGain:
        """Hide links, and who finds them again."""
        plan = self._plan
        self._progress("hiding links", 0, 0, "")
        pairs = hidden_pairs(self._graph, plan["share"], self._seed)
        place = self._folder / "shown.graph"
        disk.remove_tree(place)
        self._shown = hide_links(self._graph, place, pairs)
        self._hidden = self._graph.edges - self._shown.edges
        hidden = Hidden.of(pairs)
        low, high = plan.get("nodes", (0, self._graph.nodes))
        able = hidden.pages[(hidden.pages >= low) & (hidden.pages < high)]
        pages = sample_pages(able, plan["queries"], self._seed)
        return CoNeighborGain(self._graph, self._shown, hidden, pages, self._means.memory)

    def _judge(self, labels: Path) -> Judge:
        """By labels, on the whole graph."""
        plan = self._plan
        self._shown = self._graph
        data = DataPlan(
            labels=str(labels.absolute()),
            label_columns=tuple(plan["label columns"]),
            delimiter=plan["delimiter"],
            header=plan["header"],
            bad_rows=plan["bad rows"],
            separator=plan["separator"],
        )
        judging = JudgePlan(queries=plan["queries"])
        self._truth = read_truth(self._graph.names, data, judging, seed=self._seed)
        if "nodes" in plan:
            low, high = plan["nodes"]
            if not ((self._truth.queries >= low) & (self._truth.queries < high)).all():
                sides = self._graph.sides
                assert sides is not None
                raise UsageError(
                    f"{labels} labels nodes of the side "
                    f"{sides.title_of(int(self._truth.queries[0]))}: name that with --side (side=)"
                )
        if self._truth.labels is not None:
            self._read = f"read {self._truth.labels.read}"
        return self._truth.judge(judging)

    def _choosers(self) -> NDArray[np.bool_]:
        """bool[queries]: the half that chooses; all where there are fewer than four."""
        queries = self._court.queries
        if queries.size < 4:
            return np.ones(queries.size, bool)
        return np.isin(queries, sample_pages(queries, (queries.size + 1) // 2, self._seed + 1))

    def _part(self, turn: int) -> NDArray[np.bool_]:
        """bool[queries]: the pages that are asked in a round."""
        if turn == _ROUNDS:
            return np.ones(self._choosing.size, bool)
        mine = self._court.queries[self._choosing]
        few = sample_pages(mine, max(_FEWEST, mine.size // _PARTS[turn - 1]), self._seed + 1)
        return np.isin(self._court.queries, few)

    def _judges_of(self, rows: NDArray[np.bool_]) -> _JudgeSets:
        if isinstance(self._court, CoNeighborGain):
            return self._court.of(rows)
        assert self._truth is not None
        return self._truth.judge(JudgePlan(), self._court.queries[rows])

    # -- rounds ----------------------------------------------------------------------------------

    def _round(self, turn: int, points: Sequence[Point], usual: Point | None) -> dict[Point, float]:
        """The figures of those that the round came to, by the pages that choose; best first."""
        rows = self._part(turn)
        court, chosen = self._judges_of(rows), self._choosing[rows]
        found: dict[Point, float] = {}
        shared: dict[Any, list[Point]] = {}
        for each in points:
            shared.setdefault(self._at(turn, each).index_key, []).append(each)
        total, done, late = len(points), 0, 0
        for group in shared.values():
            stage = f"round {turn} of {_ROUNDS}"
            needed = usual in group or not found
            self._until = float("inf") if needed else self._seconds * _UNTIL[turn - 1]
            todo = [p for p in group if self._records.get(turn, self._at(turn, p)) is None]
            self._progress(stage, done, total, called(group[0]))
            try:
                if todo:
                    self._try(turn, todo, court)
            except _TimeUp:
                late += sum(self._records.get(turn, self._at(turn, p)) is None for p in group)
            except (ResourceError, UsageError) as error:
                self._notes.append(f"{called(group[0])} is left out: {error}")
            for each in group:
                record = self._records.get(turn, self._at(turn, each))
                if record is not None:
                    self._last[each] = turn
                    found[each] = record.judgment.of(chosen).value(self._by)
            done += len(group)
        if late:
            share = _UNTIL[turn - 1]
            self._notes.append(
                f"round {turn} of {_ROUNDS} has until {share:.0%} of the time, "
                f"{format_time(share * self._seconds)} of {format_time(self._seconds)}: {late} of "
                f"its {total} candidates are left out; give more with --time (time=...)"
            )
        if not found:
            raise UsageError("nothing could be tried: " + "; ".join(self._notes))
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def _at(self, turn: int, each: Point) -> Point:
        """A candidate as it is tried in a round: with some of its samples."""
        if each.samples is None:
            return each
        fewer = max(1, each.samples // _PARTS[turn - 1])
        settings = dict(each.build) | {"samples": fewer}
        return Point(each.measure, each.direction, tuple(sorted(settings.items())), each.ask)

    def _try(self, turn: int, points: Sequence[Point], court: _JudgeSets) -> None:
        """Build the index that the points share, and judge each by it."""
        first, place = self._at(turn, points[0]), self._folder / "tried.index"
        disk.remove_tree(place)
        begin = clock.perf_counter()
        index = self._builds.index(
            self._shown,
            place,
            first.measure,
            first.direction,
            dict(first.build),
            unweighted=bool(self._plan["unweighted"]),
            restart=True,
            progress=self._watch,
        )
        seconds = clock.perf_counter() - begin
        candidates = None if self._truth is None else self._truth.candidates
        try:
            for each in points:
                begin = clock.perf_counter()
                ranker = IndexRanker(index, candidates, **dict(each.ask))
                judgment = court(ranker, threads=self._means.threads, progress=self._watch)
                asking = clock.perf_counter() - begin
                record = TrialRecord(judgment, index.stored.store.nbytes, seconds, asking)
                self._records.add(turn, self._at(turn, each), record)
        finally:
            disk.remove_tree(place)

    def _watch(self, done: int, total: int) -> None:
        if clock.monotonic() - self._begin > self._until:
            raise _TimeUp

    # -- what came of it -------------------------------------------------------------------------

    def _result(
        self, usual: Point | None, three: dict[Point, float], labels: Path | None
    ) -> TuningResult:
        """Who is chosen, and what all came to."""
        records = {p: self._record(p) for p in self._last}
        choosing, judging = self._choosing, ~self._choosing
        mine = Bootstrap(int(choosing.sum()), seed=self._seed)
        first = next(iter(three))
        top = records[first].judgment.of(choosing)
        behind = {
            p: top.differences(records[p].judgment.of(choosing), mine)[self._by] for p in three
        }
        level = [p for p in three if p == first or not behind[p].low > 0]
        judged: dict[Point, Interval] = {}
        held: dict[Point, Interval] = {}
        if judging.any():
            others = Bootstrap(int(judging.sum()), seed=self._seed)
            judged = {p: records[p].judgment.of(judging).figures(others)[self._by] for p in three}
            if usual in three:
                base = records[usual].judgment.of(judging)
                held = {
                    p: records[p].judgment.of(judging).differences(base, others)[self._by]
                    for p in three
                }
        if self._wanted_best:
            chosen, reason = first, "the best by the pages that chose, as asked for"
        else:
            sizes = {p: records[p].bytes for p in level}
            chosen, reason = decided(first, level, usual if usual in three else None, sizes, held)
        self._notes += self._few_pages(int(choosing.sum()), int(judging.sum()))
        tried = {}
        for each, turn in self._last.items():
            rows = choosing[self._part(turn)]
            tried[each] = self._tried(each, turn, records[each], rows, behind, judged)
        order = sorted(tried, key=lambda p: (p != chosen, -tried[p].round, -tried[p].figure.value))
        return TuningResult(
            graph=str(self._graph.path),
            nodes=self._graph.nodes,
            links=self._graph.edges,
            date=date.today().isoformat(),
            by=self._by,
            labels=None if labels is None else labels.name,
            hidden=self._hidden,
            chosen_by=int(choosing.sum()),
            judged_by=int(judging.sum()) or int(choosing.sum()),
            seed=self._seed,
            best=tried[chosen],
            reason=reason,
            settings=whole_settings(chosen, bool(self._plan["unweighted"])),
            tried=[tried[p] for p in order],
            notes=list(dict.fromkeys([self._read, *self._notes] if self._read else self._notes)),
        )

    def _few_pages(self, chose: int, judged: int) -> list[str]:
        """How little a choice rests on, if it does."""
        if min(chose, judged) >= _FEW:
            return []
        more = "label more pages" if self._truth else "hide more links with --share"
        told = f"{judged} others judge it" if judged else "no others judge it"
        return [
            f"the choice rests on {chose} page{'s' * (chose != 1)}, and {told}: so few tell hardly "
            f"more than chance, and another --seed may choose otherwise. Take all pages with "
            f"--queries 0; or {more}"
        ]

    def _record(self, each: Point) -> TrialRecord:
        turn = self._last[each]
        found = self._records.get(turn, self._at(turn, each))
        assert found is not None
        return found

    def _tried(
        self,
        each: Point,
        turn: int,
        record: TrialRecord,
        rows: NDArray[np.bool_],
        behind: dict[Point, Interval],
        judged: dict[Point, Interval],
    ) -> Trial:
        bootstrap = Bootstrap(int(rows.sum()), seed=self._seed)
        return Trial(
            called(each),
            each.measure,
            each.direction,
            each.settings,
            turn,
            record.judgment.of(rows).figures(bootstrap)[self._by],
            behind.get(each),
            judged.get(each),
            self._at(turn, each).samples,
            record.seconds,
            record.bytes,
            record.asking / len(record.judgment.parts),
        )


def _first(found: dict[Point, float], count: int) -> list[Point]:
    return list(found)[:count]


# -- tuning ------------------------------------------------------------------------------


FIGURE, LABELS_FIGURE = "company@50", "precision@10"
SMALL, SMALL_FIGURE = 500, "company@10"
"""Of fewer nodes fifty are so many that every list has everybody."""


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
    """Find out what an index of ``graph`` should be made of.

    Parameters
    ----------
    graph
        A stored graph, or anything else that holds links (:func:`cocite.open_graph`).
    output
        The file of settings to write, for ``build(..., settings=output)``. A run that was
        interrupted goes on; without an output nothing is kept.
    threads, memory
        As for building an index. A candidate that does not fit is left out.
    cluster, staging_url
        As for building an index: where samples are drawn. Nodes see ``output``, and the graph,
        whose links are hidden in a copy beside ``output``.
    progress
        Called with (stage, done, total, remark).
    options, given
        The options below, as one value or by name.
    {options}

    Raises
    ------
    UsageError
        For a value that is not allowed, and if nothing can be hidden.
    InputError, OutputExists, Busy, ResourceError, ClusterError
    """
    options = TuneOptions.of(options, given)
    graph = open_graph(graph, memory=memory, threads=threads)
    graph.check()
    labels, side, share, figure = options.labels, options.side, options.share, options.figure
    if not 0 < share <= 0.5:
        raise UsageError(f"share is {share!r}; it is a number above 0, at most 0.5")
    if side is not None and graph.sides is None:
        raise UsageError(f"{graph.path} is not bipartite: leave side out")
    by = figure or (LABELS_FIGURE if labels else FIGURE if graph.nodes >= SMALL else SMALL_FIGURE)
    if labels is None and by not in COMPANY_TITLES:
        raise UsageError(
            f"without labels figure is one of {', '.join(COMPANY_TITLES)}; found {by!r}"
        )
    if labels is None and graph.sides is not None and by.startswith("links@"):
        raise UsageError(
            f"figure is {by}, which lists the ends of hidden links, and these are on the other "
            "side of a bipartite graph, which no list has: choose company@10 or company@50"
        )
    seconds = float("inf") if options.time is None else parse_time(options.time)
    if output is not None:
        check_file(Path(output), options.overwrite)
    plan = {
        "graph": graph.digest,
        "labels": None if labels is None else _content(labels),
        "label columns": list(split(options.label_columns)),
        "delimiter": options.delimiter,
        "header": options.header,
        "bad rows": options.bad_rows,
        "separator": options.separator,
        "figure": by,
        "measures": list(options.measures),
        "directions": list(options.directions),
        "share": share,
        "queries": options.queries,
        "samples": options.samples,
        "seed": options.seed,
        "unweighted": options.unweighted,
    }
    if graph.sides is not None:
        within = graph.sides.named(side)
        ids: list[int | str] = [within.start, within.stop]
        plan["nodes"] = ids
    with ExitStack() as stack:
        builds = stack.enter_context(builds_on(cluster, staging_url, threads, memory))
        place = Path(output) if output is not None else None
        if place is None:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cocite-"))) / "t"
        building = stack.enter_context(Building(place, resumable=True))
        building.goes_on(plan, "tuning", restart=options.restart)
        records = stack.enter_context(Records(building.path / "records"))
        work = Tuning(graph, building.path, records, plan, builds, seconds, progress, options.best)
        try:
            found = work.run(None if labels is None else Path(labels))
        except KeyboardInterrupt as stopped:
            if output is not None:
                stopped.add_note(
                    f"{len(records):,} judgments are kept in {building.path}: repeat the command "
                    "to go on"
                )
            raise
        if output is not None:
            found.save(output, options.overwrite)
        building.done()
    return found


def _content(path: str | os.PathLike[str]) -> str:
    """What tells one file of labels from another."""
    import xxhash

    try:
        return xxhash.xxh3_128_hexdigest(Path(path).read_bytes())
    except OSError as error:
        raise InputError(f"{os.fspath(path)} cannot be read: {error.strerror}") from error
