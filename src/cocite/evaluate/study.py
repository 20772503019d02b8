"""Running a suite: every index once, every figure asked of it, in one go.

Points that differ in nothing but how they are asked, or in the number of samples, share an index:
it is built with the most samples that any of them wants, and fewer are its first ones. A point that
several tables want is judged once. Indexes lie in a work folder, and go when their points are
judged, but for those that a blend needs.

Cost: a build for each measure, direction and setting of it; a judgement a point.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs import exact_simrank
from cocite.evaluate.accuracy import Accuracy, accuracy
from cocite.evaluate.bootstrap import Bootstrap
from cocite.evaluate.data import Truth, drawn, open_graph, read_truth
from cocite.evaluate.embedding import embed
from cocite.evaluate.judge import Figures, Judge, Judgement
from cocite.evaluate.plans import BlendPlan
from cocite.evaluate.rankings import Blend, IndexRanker, Ranker, Scale, VectorRanker
from cocite.evaluate.structure import TreeSizes, has_trees, live_tokens, tree_sizes
from cocite.evaluate.suite import Point, Suite, chosen_measures, point, sweep_points
from cocite.graph import Graph
from cocite.index import is_shard
from cocite.measures import Value, find_measure
from cocite.query import Index, build

__all__ = ["Precise", "Result", "Series", "Study", "Trees", "facts_of", "run_suite"]

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Result:
    """What one method came to. ``point`` is None for a blend or an embedding."""

    name: str
    point: Point | None
    figures: Figures
    pairs: int
    bytes: int | None = None
    build_seconds: float | None = None


@dataclass(frozen=True)
class Series:
    """One method of a sweep: its results by value."""

    setting: str
    method: str
    measure: str
    direction: str
    results: dict[Value, Result]


@dataclass(frozen=True)
class Trees:
    """The structure of one measure in one direction; ``live`` is a share of nodes by step."""

    measure: str
    direction: str
    sizes: list[TreeSizes]
    live: list[float]


@dataclass(frozen=True)
class Precise:
    """How far the estimates of a measure from so many samples are from its exact scores."""

    measure: str
    samples: int
    found: Accuracy


@dataclass
class Study:
    """Everything that a suite came to."""

    suite: Suite
    facts: dict[str, Any]
    methods: list[Result] = field(default_factory=list)
    differences: dict[str, Figures] = field(default_factory=dict)
    sweeps: dict[str, list[Series]] = field(default_factory=dict)
    accuracy: list[Precise] = field(default_factory=list)
    trees: list[Trees] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def facts_of(nodes: int, links: int, truth: Truth, seed: int) -> dict[str, int]:
    """What a study is of, in numbers."""
    candidates = nodes if truth.candidates is None else int(truth.candidates.size)
    found = {"nodes": nodes, "links": links, "queries": int(truth.queries.size)}
    found["candidates"] = candidates
    if truth.labels is not None:
        found["labels"] = len(truth.labels.paths)
        found["depth"] = truth.depth
        found["classes"] = len(truth.labels.collapsed(truth.depth).classes)
        found["rows_of_unknown_nodes"] = truth.labels.unknown
    return found | {"seed": seed}


def run_suite(
    suite: Suite,
    folder: Path | None,
    work: Path,
    *,
    seed: int = 0,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Study:
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
    threads, memory
        As for building an index.
    progress
        Called with (stage, done, total).

    Raises
    ------
    UsageError, InputError, StoreError, ResourceError
    """
    graph, data = open_graph(suite.data, folder, work, progress)
    truth = read_truth(graph.names, data, suite.judge, folder or Path(), seed, progress)
    return _Run(suite, graph, truth, work, seed, threads, memory, progress).study()


def _bytes_of(index: Index, samples: int | None) -> int:
    """The size of an index with so many of its samples: theirs at the mean size of all."""
    store, stored = index.stored.store, index.stored.parts[0].settings.get("samples")
    share = 1.0 if samples is None or stored is None else samples / int(stored)
    return round(
        sum(
            entry.nbytes * (share if is_shard(name) else 1)
            for name, entry in store.manifest.files.items()
        )
    )


def _told(progress: Callable[[int, int], None], sweeps: int, error: float) -> None:
    """The sweeps of an exact solver, whose number nobody knows before."""
    progress(sweeps, 0)


class _Court(NamedTuple):
    """Some queries: their judge, and their resamples."""

    judge: Judge
    bootstrap: Bootstrap


class _Run:
    """One run, and what it has judged so far."""

    def __init__(
        self,
        suite: Suite,
        graph: Graph,
        truth: Truth,
        work: Path,
        seed: int,
        threads: int | None,
        memory: str | int | None,
        progress: Progress,
    ) -> None:
        self._suite, self._graph, self._truth, self._work = suite, graph, truth, work
        self._seed, self._threads, self._memory = seed, threads, memory
        self._progress = progress
        self._court = self._courts(truth.queries)
        few = drawn(truth.queries, suite.judge.sweep_queries, seed)
        self._few = self._court if few.size == truth.queries.size else self._courts(few)
        self._results: dict[tuple[Point, bool], Result] = {}
        self._judgements: dict[str, Judgement] = {}
        self._rankers: dict[str, Ranker] = {}

    def _courts(self, queries: NDArray[np.uint32]) -> _Court:
        plan = self._suite.judge
        bootstrap = Bootstrap(queries.size, plan.resamples, plan.confidence, self._seed)
        return _Court(self._truth.judge(plan, queries), bootstrap)

    def study(self) -> Study:
        """Do all of it."""
        suite = self._suite
        graph = self._graph
        facts = facts_of(graph.nodes, graph.edges, self._truth, self._seed)
        study = Study(suite, facts)
        methods = suite.methods(self._seed)
        sweeps = [sweep_points(suite, plan, self._seed) for plan in suite.sweep]
        swept = [p for series, _ in sweeps for s in series.values() for p in s.values()]
        self._judge_points(methods, swept)
        for name, found in methods.items():
            study.methods.append(replace(self._results[found, True], name=name))
        study.methods += self._embeddings()
        study.methods += [self._blend(plan) for plan in suite.blend]
        self._compare(study)
        for plan, (found_points, notes) in zip(suite.sweep, sweeps, strict=True):
            study.notes += notes
            entry = study.sweeps.setdefault(plan.setting, [])
            for method, values in found_points.items():
                measure, direction = method.split(" ")
                results = {v: self._results[p, self._few is self._court] for v, p in values.items()}
                entry.append(Series(plan.setting, method, measure, direction, results))
        if suite.accuracy is not None:
            study.accuracy = list(self._accuracy())
        if suite.structure is not None:
            study.trees = list(self._structure())
        return study

    # -- indexes ---------------------------------------------------------------------------------

    def _judge_points(self, methods: dict[str, Point], swept: list[Point]) -> None:
        """Build index after index, and judge all points that it answers."""
        names = {p: name for name, p in methods.items()}
        blended = {methods[n] for blend in self._suite.blend for n in blend.of if n in methods}
        groups: dict[tuple[Any, ...], list[Point]] = {}
        for each in dict.fromkeys([*methods.values(), *swept]):
            groups.setdefault(each.index_key, []).append(each)
        for number, group in enumerate(groups.values()):
            what = f"index {number + 1} of {len(groups)}"
            largest = max(group, key=lambda p: p.samples or 0)
            index, seconds = self._build(largest, f"building {what}", number)
            for each in group:
                view = index if each.samples in (None, index.samples) else index.first(each.samples)
                ranker = IndexRanker(view, self._truth.candidates, **dict(each.ask))
                size = _bytes_of(view, each.samples)
                took = seconds if view is index else None
                base = Result(f"{each.measure} {each.direction}", each, {}, 0, size, took)
                if each in blended:
                    self._rankers[names[each]] = ranker
                if each in names:
                    self._settle(base, True, ranker, f"judging {what}", names[each])
                if each in swept and (each, self._few is self._court) not in self._results:
                    self._settle(base, False, ranker, f"judging {what}")
            if not blended & set(group):
                shutil.rmtree(index.stored.store.path)

    def _settle(
        self, base: Result, whole: bool, ranker: Ranker, stage: str, name: str | None = None
    ) -> None:
        """Judge a point, by all queries or by those of sweeps, and keep what it came to."""
        whole = whole or self._few is self._court
        court = self._court if whole else self._few
        judgement = court.judge(
            ranker, threads=self._threads, progress=partial(self._progress, stage)
        )
        if name is not None:
            self._judgements[name] = judgement
        figures = judgement.figures(court.bootstrap)
        assert base.point is not None
        self._results[base.point, whole] = replace(base, figures=figures, pairs=judgement.pairs)

    def _build(self, wanted: Point, stage: str, number: int) -> tuple[Index, float]:
        begin = time.perf_counter()
        index = build(
            self._graph,
            self._work / f"{number}.index",
            measure=wanted.measure,
            direction=wanted.direction,
            threads=self._threads,
            memory=self._memory,
            progress=partial(self._progress, stage),
            **dict(wanted.build),
        )
        return index, time.perf_counter() - begin

    # -- what is no index ------------------------------------------------------------------------

    def _judged(self, name: str, ranker: Ranker) -> Result:
        stage = f"judging {name}"
        judgement = self._court.judge(
            ranker, threads=self._threads, progress=partial(self._progress, stage)
        )
        self._judgements[name], self._rankers[name] = judgement, ranker
        return Result(name, None, judgement.figures(self._court.bootstrap), judgement.pairs)

    def _embeddings(self) -> list[Result]:
        found = []
        for plan in self._suite.embedding:
            self._progress(f"embedding {plan.name}", 0, 0)
            vectors = embed(self._graph, plan.kind, plan.dimensions, self._seed)
            ranker = VectorRanker(vectors, self._truth.candidates)
            found.append(self._judged(plan.name, ranker))
        return found

    def _blend(self, plan: BlendPlan) -> Result:
        rankers = [self._rankers[name] for name in plan.of]
        blend = Blend(rankers, plan.weights or None, Scale(plan.scale), plan.depth or None)
        return self._judged(plan.name, blend)

    def _compare(self, study: Study) -> None:
        base = self._suite.baseline
        for name, judgement in self._judgements.items():
            if base and name != base:
                study.differences[name] = judgement.differences(
                    self._judgements[base], self._court.bootstrap
                )

    # -- accuracy --------------------------------------------------------------------------------

    def _accuracy(self) -> Iterator[Precise]:
        """Against exact scores, for in-links, for more and more samples of one index."""
        plan = self._suite.accuracy
        assert plan is not None
        everyone = np.arange(self._graph.nodes, dtype=np.uint32)
        queries = drawn(everyone, plan.queries, self._seed)
        for measure in plan.measures:
            progress = partial(self._progress, f"exact {measure}")
            exact = exact_simrank(
                self._graph,
                measure=measure,
                decay=plan.decay,
                epsilon=plan.epsilon,
                threads=self._threads,
                memory=self._memory,
                progress=partial(_told, progress),
            )
            wanted = {"samples": max(plan.samples), "seed": self._seed, "decay": plan.decay}
            asked = point(measure, "in", wanted)
            index, _ = self._build(asked, f"building {measure}", -1)
            for samples in sorted(plan.samples):
                ranker = IndexRanker(index.first(samples), **dict(asked.ask))
                progress = partial(self._progress, f"comparing {measure}")
                found = accuracy(ranker, exact.row, queries, plan.ks, progress)
                yield Precise(measure, samples, found)
            shutil.rmtree(index.stored.store.path)

    # -- structure -------------------------------------------------------------------------------

    def _structure(self) -> Iterator[Trees]:
        plan = self._suite.structure
        assert plan is not None
        for measure in chosen_measures(plan.measures):
            found = find_measure(measure)
            if found.step is None or "trees" not in found.layouts:
                continue
            for direction in plan.directions:
                self._progress(f"walking {measure} {direction}", 0, 0)
                wanted = {"samples": plan.samples, "length": plan.length, "seed": self._seed}
                output = self._work / "trees.index"
                index = build(
                    self._graph,
                    output,
                    measure=measure,
                    direction=direction,
                    layout="trees",
                    threads=self._threads,
                    memory=self._memory,
                    **dict(point(measure, direction, wanted).build),
                )
                live: list[float] = []
                if direction != "both":
                    shares = live_tokens(
                        self._graph, measure, direction, length=plan.length, seed=self._seed
                    )
                    live = np.round(shares, 12).tolist()
                assert has_trees(index)
                yield Trees(measure, direction, tree_sizes(index), live)
                shutil.rmtree(output)
