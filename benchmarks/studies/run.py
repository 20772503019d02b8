"""Run a suite: build every index once, and evaluate all of its points.

Points that differ only in query settings or in the number of samples share an index. It is built
with the largest number of samples, and the other points use its first samples. A point that occurs
in several tables is evaluated once. Indexes are in a work folder, and are removed after their
points are evaluated, unless a blend needs them.

Cost: a build per measure per direction per setting, and an evaluation per point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.checks import embed, graph_of, quick_judge
from benchmarks.studies.plans import BlendPlan, StudySuite
from benchmarks.studies.points import Swept, candidates, combined, sweep_points
from benchmarks.studies.rankers import BlendedRanking, Scale, VectorRanker
from benchmarks.studies.study import Best, Series, SuiteStudy
from benchmarks.studies.suite import accuracies, structures
from cocite.deadline import clock
from cocite.errors import UsageError
from cocite.evaluation.judge import Judge, Judgment
from cocite.evaluation.labels import Bootstrap
from cocite.evaluation.points import Point, called
from cocite.evaluation.rankers import (
    Builds,
    IndexRanker,
    Ranker,
    builds_on,
)
from cocite.evaluation.report import Result, facts_of
from cocite.evaluation.truth import Examples, Truth, read_truth, sample_pages
from cocite.extras import MissingLibrary
from cocite.graph import Graph
from cocite.index.layouts.contract import is_shard
from cocite.measures import SAMPLES, Value, find_measure
from cocite.search import Index
from cocite.storage import disk

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


Progress = Callable[[str, int, int], None]


def run_suite(
    suite: StudySuite,
    folder: Path | None,
    work: Path,
    *,
    seed: int = 0,
    threads: int | None = None,
    memory: str | int | None = None,
    cluster: str | Cluster | None = None,
    via: str | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> SuiteStudy:
    """Run a suite.

    Parameters
    ----------
    suite
        What to do.
    folder
        Where its data is; None if it needs none.
    work
        An empty folder, for graphs and indexes.
    seed
        Of the indexes, the queries drawn, the embeddings and the resamples.
    threads, memory, cluster, via
        As for building an index; what has no samples is built here.
    progress
        Called with (stage, done, total).

    Raises
    ------
    UsageError, InputError, StoreError, ResourceError, ClusterError
    """
    with builds_on(cluster, via, threads, memory) as builds:
        graph, data = graph_of(suite.data, folder, work, progress)
        memory, place = builds.means.memory, folder or Path()
        truth = read_truth(graph.names, data, suite.judge, place, seed, progress, memory)
        texts = place / data.texts if data.texts else None
        return run_on(suite, graph, truth, work, seed, builds, progress, texts)


def run_on(
    suite: StudySuite,
    graph: Graph,
    truth: Truth,
    work: Path,
    seed: int,
    builds: Builds,
    progress: Progress,
    texts: Path | None = None,
) -> SuiteStudy:
    """Run a suite on data that is ready; see :func:`run_suite`. ``texts`` are for measures that
    compare them.
    """
    return _SuiteRun(suite, graph, truth, work, seed, builds, progress, texts).study()


def _called(suite: StudySuite, graph: Graph) -> str:
    """What the graph of a suite is called: a generated one has no file of its own."""
    web = suite.data.web
    if web:
        return "a generated web, " + ", ".join(f"{key} {value:,}" for key, value in web.items())
    return Path(suite.data.links).name if suite.data.links else graph.path.resolve().name


def _bytes_of(index: Index, samples: int | None) -> int:
    """The size of an index with so many of its samples: theirs at the mean size of all."""
    store, parts = index.stored.store, index.stored.parts
    stored = next((p.settings[SAMPLES] for p in parts if SAMPLES in p.settings), None)
    share = 1.0 if samples is None or stored is None else samples / stored
    return round(
        sum(
            entry.nbytes * (share if is_shard(name) else 1)
            for name, entry in store.manifest.files.items()
        )
    )


class _SuiteJudges(NamedTuple):
    """Some queries: their judge, and their resamples."""

    judge: Judge
    bootstrap: Bootstrap


class _SuiteRun:
    """One run, and what it has judged so far."""

    def __init__(
        self,
        suite: StudySuite,
        graph: Graph,
        truth: Truth,
        work: Path,
        seed: int,
        builds: Builds,
        progress: Progress,
        texts: Path | None,
    ) -> None:
        self._texts = texts
        self._suite, self._graph, self._truth, self._work = suite, graph, truth, work
        self._seed, self._builds, self._progress = seed, builds, progress
        self._means = builds.means
        self._court = self._courts(truth.queries)
        few = sample_pages(truth.queries, suite.judge.sweep_queries, seed)
        self._few = self._court
        if few.size < truth.queries.size:
            self._few = self._courts(few, suite.judge.quick)
        self._chosen = np.isin(truth.queries, few)
        self._judged: dict[tuple[Point, bool], Judgment] = {}
        self._sizes: dict[Point, tuple[int, float | None]] = {}
        self._results: dict[tuple[Point, bool], Result] = {}
        self._others: dict[str, Judgment] = {}
        self._rankers: dict[str, Ranker] = {}
        self._numbers = count()
        self._examples = Examples(graph.names, truth, seed, graph.titles)
        titles = self._few.judge.titles
        if suite.best is not None and suite.best.by not in titles:
            raise UsageError(f"[best] goes by {suite.best.by!r}; there are {', '.join(titles)}")

    def _courts(self, queries: NDArray[np.uint32], quick: bool = False) -> _SuiteJudges:
        plan = self._suite.judge
        bootstrap = Bootstrap(queries.size, plan.resamples, plan.confidence, self._seed)
        judge = (
            quick_judge(self._truth, plan, queries) if quick else self._truth.judge(plan, queries)
        )
        return _SuiteJudges(judge, bootstrap)

    def study(self) -> SuiteStudy:
        """Do all of it."""
        suite, graph = self._suite, self._graph
        facts = facts_of(graph.nodes, graph.edges, self._truth, self._seed)
        study = SuiteStudy(
            suite.about or suite.name,
            suite.judge,
            facts,
            sources=self._truth.sources,
            graph=_called(suite, graph),
            suite=suite,
        )
        study.examples = self._examples.pages
        methods = suite.methods(self._seed)
        swept: list[Swept] = []
        for plan in suite.sweep:
            found, notes = sweep_points(suite, plan, self._seed)
            swept.append((plan, found))
            study.notes += notes
        points = [p for _, found in swept for values in found.values() for p in values.values()]
        self._judge_points(methods.values(), points, self._blended(methods))
        study.methods = [self._result(found, True, name) for name, found in methods.items()]
        study.methods += self._embeddings(study.notes)
        study.methods += self._blends(study.notes)
        judged = {name: self._judged[found, True] for name, found in methods.items()}
        study.differences = self._differences(judged | self._others, None)
        for plan, found in swept:
            study.sweeps.setdefault(plan.setting, []).extend(self._series(plan.setting, found))
        if suite.best is not None:
            study.best = self._best(list(methods.values()), swept)
        if suite.accuracy is not None:
            study.accuracy = list(
                accuracies(
                    graph, suite.accuracy, self._seed, self._built, self._progress, self._means
                )
            )
        if suite.structure is not None:
            study.trees = list(
                structures(graph, suite.structure, self._seed, self._built, self._progress)
            )
        return study

    # -- indexes ---------------------------------------------------------------------------------

    def _blended(self, methods: Mapping[str, Point]) -> dict[Point, str]:
        """The methods that blends are made of, whose indexes are needed again."""
        return {methods[n]: n for blend in self._suite.blend for n in blend.of if n in methods}

    def _judge_points(
        self, whole: Iterable[Point], few: Iterable[Point], blended: Mapping[Point, str]
    ) -> None:
        """Judge points by all queries or by those of sweeps, building index after index; what was
        judged before is not judged again.
        """
        named = {point: name for name, point in self._suite.methods(self._seed).items()}
        wanted = dict.fromkeys((p, True) for p in whole)
        wanted |= dict.fromkeys((p, self._few is self._court) for p in few)
        groups: dict[tuple[Any, ...], list[tuple[Point, bool]]] = {}
        for key in wanted:
            if key not in self._judged:
                groups.setdefault(key[0].index_key, []).append(key)
        for number, group in enumerate(groups.values(), 1):
            what = f"index {number} of {len(groups)}"
            largest = max((p for p, _ in group), key=lambda p: p.samples or 0)
            begin = clock()
            index = self._built(
                largest.measure, largest.direction, dict(largest.build), f"building {what}"
            )
            seconds = clock() - begin
            for each, all_queries in group:
                view = (
                    index
                    if each.samples in (None, index.samples)
                    else index.with_samples(each.samples)
                )
                ranker = IndexRanker(view, self._truth.candidates, **dict(each.ask))
                took = seconds if view is index else None
                self._sizes[each] = _bytes_of(view, each.samples), took
                court = self._court if all_queries else self._few
                self._judged[each, all_queries] = self._ask(court, ranker, f"judging {what}")
                if all_queries and each in named:
                    self._examples.ask(named[each], ranker)
                if each in blended:
                    self._rankers[blended[each]] = ranker
            if not any(p in blended for p, _ in group):
                disk.remove_tree(index.stored.store.path)

    def _ask(self, court: _SuiteJudges, ranker: Ranker, stage: str) -> Judgment:
        return court.judge(
            ranker, threads=self._means.threads, progress=partial(self._progress, stage)
        )

    def _result(self, found: Point, whole: bool, name: str) -> Result:
        """What a point came to, by all queries or by those of sweeps."""
        whole = whole or self._few is self._court
        court = self._court if whole else self._few
        if (found, whole) not in self._results:
            judgment, (size, seconds) = self._judged[found, whole], self._sizes[found]
            figures = judgment.figures(court.bootstrap)
            self._results[found, whole] = Result(
                name, found, figures, judgment.pairs, size, seconds
            )
        return replace(self._results[found, whole], name=name)

    def _built(
        self, measure: str, direction: str, settings: Any, stage: str, layout: str | None = None
    ) -> Index:
        """An index in the work folder, by a name of its own."""
        return self._builds.index(
            self._graph,
            self._work / f"{next(self._numbers)}.index",
            measure,
            direction,
            settings,
            layout=layout,
            progress=partial(self._progress, stage),
            texts=self._texts if find_measure(measure).texts else None,
        )

    # -- what is no index ------------------------------------------------------------------------

    def _judge_other(self, name: str, ranker: Ranker) -> Result:
        judgment = self._ask(self._court, ranker, f"judging {name}")
        self._others[name], self._rankers[name] = judgment, ranker
        self._examples.ask(name, ranker)
        return Result(name, None, judgment.figures(self._court.bootstrap), judgment.pairs)

    def _embeddings(self, notes: list[str]) -> Iterator[Result]:
        """An embedding whose library is not there is left out, unless all is compared with it."""
        for plan in self._suite.embedding:
            self._progress(f"embedding {plan.name}", 0, 0)
            try:
                vectors = embed(self._graph, plan.kind, plan.dimensions, self._seed)
            except MissingLibrary as error:
                if plan.name == self._suite.baseline:
                    raise
                notes.append(f"{plan.name} is left out: {error}")
                continue
            yield self._judge_other(plan.name, VectorRanker(vectors, self._truth.candidates))

    def _blends(self, notes: list[str]) -> Iterator[Result]:
        for plan in self._suite.blend:
            lacking = [name for name in plan.of if name not in self._rankers]
            if lacking:
                notes.append(f"{plan.name} is left out, as {', '.join(lacking)} is")
                continue
            yield self._judge_other(plan.name, self._blend(plan))

    def _blend(self, plan: BlendPlan) -> BlendedRanking:
        rankers = [self._rankers[name] for name in plan.of]
        return BlendedRanking(rankers, plan.weights or None, Scale(plan.scale), plan.depth or None)

    def _differences(
        self, judged: Mapping[str, Judgment], rows: NDArray[np.bool_] | None
    ) -> dict[str, Any]:
        """From the baseline, on the same queries: all, or those of some rows."""
        name = self._suite.baseline
        if not name:
            return {}
        base = self._others.get(name)
        if base is None:
            base = self._judged[self._suite.methods(self._seed)[name], True]
        bootstrap = self._court.bootstrap if rows is None else self._resampled(rows)
        base = base if rows is None else base.of(rows)
        return {
            other: judgment.differences(base, bootstrap)
            for other, judgment in judged.items()
            if other != name
        }

    def _resampled(self, rows: NDArray[np.bool_]) -> Bootstrap:
        plan = self._suite.judge
        return Bootstrap(int(rows.sum()), plan.resamples, plan.confidence, self._seed)

    # -- sweeps ----------------------------------------------------------------------------------

    def _series(self, setting: str, found: dict[str, dict[Value, Point]]) -> Iterator[Series]:
        for method, values in found.items():
            measure, direction = method.split(" ")
            results = {value: self._result(p, False, method) for value, p in values.items()}
            yield Series(setting, method, measure, direction, results)

    def _weight(self, found: Point) -> float:
        """The figure that decides, by the queries of the sweeps."""
        assert self._suite.best is not None
        key = found, self._few is self._court
        judged = self._judged.get(key)
        if judged is None:
            judged = self._judged[key] = self._judged[found, True].of(self._chosen)
        return judged.value(self._suite.best.by)

    def _best(self, methods: list[Point], swept: list[Swept]) -> Best:
        """Every measure at its best, and what is no index beside it, by the other queries."""
        suite = self._suite
        assert suite.best is not None
        found = candidates(methods, swept)
        together = combined(suite, swept, self._seed, self._weight)
        self._judge_points([], together, {})
        for each in together:
            found[each.measure].append(each)
        winners = {called(p): p for p in (max(ps, key=self._weight) for ps in found.values())}
        self._judge_points(winners.values(), [], {})
        held_out = self._few is not self._court
        rows = ~self._chosen if held_out else self._chosen
        bootstrap = self._resampled(rows)
        baseline = suite.methods(self._seed).get(suite.baseline)
        if baseline is not None and called(baseline) not in winners:
            winners = {suite.baseline: baseline} | winners
        judged = {name: self._judged[p, True].of(rows) for name, p in winners.items()}
        judged |= {name: judgment.of(rows) for name, judgment in self._others.items()}
        results = []
        for name, judgment in judged.items():
            point = winners.get(name)
            size, seconds = self._sizes[point] if point else (None, None)
            figures = judgment.figures(bootstrap)
            results.append(Result(name, point, figures, judgment.pairs, size, seconds))
        return Best(
            suite.best.by,
            int(self._chosen.sum()),
            int(rows.sum()) if held_out else 0,
            results,
            self._differences(judged, rows),
        )
