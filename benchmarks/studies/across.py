"""Run several suites: the same plan on each data set, and tables of all.

The plan is ``across.toml``: the default with its default settings, every measure at its best
settings, and the embeddings. With labels, the best settings of a measure are chosen on some queries
and evaluated on others. Without labels, every measure has its default settings. Each index is built
once more, alone, to measure its cost and its answers (``benchmarks/studies/answers.py``).

Cost: that of each suite (``benchmarks/studies/run.py``), a build per measure, and the queries of
``benchmarks/studies/answers.py``.

The tables have a row per method and a column per suite:

    table             cell
    a figure          the figure, and its difference from the default on the same queries:
                      precision and both gammas
    best settings     the chosen direction and settings
    lists             answered / full, as fractions of the queried nodes
    cost              seconds of the build, size, milliseconds per query: median / 99th percentile
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.studies.answers import JudgedAnswers, JudgedQueries
from benchmarks.studies.checks import embed, graph_of
from benchmarks.studies.plans import StudySuite
from benchmarks.studies.rankers import VectorRanker
from benchmarks.studies.run import run_on
from benchmarks.studies.study import signed_text
from cocite.errors import UsageError
from cocite.evaluation.html_report import ReportTable, interval_text
from cocite.evaluation.judge import Figures, headline
from cocite.evaluation.points import Point, called, point
from cocite.evaluation.rankers import Builds, builds_on
from cocite.evaluation.report import Result, facts_of
from cocite.evaluation.truth import Truth, read_truth
from cocite.extras import MissingLibrary
from cocite.graph import Graph
from cocite.measures import MEASURES
from cocite.resources import format_size
from cocite.storage import disk

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


K, PAGES = 20, 300
"""How many hits are asked of how many random nodes, for coverage and time."""
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Judged:
    """One method on one graph; no figures where there are no labels, no point for an embedding."""

    suite: str
    method: str
    point: Point | None
    figures: Figures
    differences: Figures
    """How much the figures are above those of the default, on the same queries."""
    bytes: int
    build_seconds: float
    answers: JudgedAnswers


@dataclass
class Across:
    """What the suites came to: ``facts`` and ``chosen`` by suite, the latter how many queries chose
    and how many judged.
    """

    plan: StudySuite
    facts: dict[str, dict[str, int]] = field(default_factory=dict)
    chosen: dict[str, tuple[int, int]] = field(default_factory=dict)
    rows: list[Judged] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _Place(NamedTuple):
    """Where one suite runs, and with what."""

    suite: StudySuite
    graph: Graph
    truth: Truth
    work: Path
    seed: int
    builds: Builds
    progress: Progress


def folders_of(suites: Sequence[StudySuite], root: Path | None) -> dict[str, Path | None]:
    """Where the data of each suite is: a folder of ``root``, None for a suite that makes its own.

    Raises :class:`~cocite.errors.UsageError` if one is not there, before any work.
    """
    found: dict[str, Path | None] = {}
    for suite in suites:
        data = suite.data
        if suite.name in found:
            raise UsageError(f"the suite {suite.name} is named twice")
        if not (data.links or data.graph or data.web):
            raise UsageError(f"the suite {suite.name} names no data, so it cannot run with others")
        if data.web:
            found[suite.name] = None
            continue
        if root is None:
            raise UsageError(f"the suite {suite.name} reads data: name the folder of all data")
        folder = root / (data.folder or suite.name)
        if not folder.is_dir():
            raise UsageError(f"the data of the suite {suite.name} is looked for in {folder}: none")
        found[suite.name] = folder
    return found


def run_across(
    suites: Sequence[StudySuite],
    root: Path | None,
    work: Path,
    plan: StudySuite,
    *,
    seed: int = 0,
    threads: int | None = None,
    memory: str | int | None = None,
    cluster: str | Cluster | None = None,
    via: str | None = None,
    progress: Progress = lambda stage, done, total: None,
) -> Across:
    """Run a plan on the data of several suites.

    Parameters
    ----------
    suites
        Whose data; methods and sweeps of their own are not run, and texts are left aside.
    root
        The folder that has a folder for each (``[data] folder``, by default the suite's name).
    work
        An empty folder, for graphs and indexes.
    plan
        What to run, such as :func:`~benchmarks.studies.suite.load_across`.
    seed, threads, memory, cluster, via, progress
        As for :func:`~benchmarks.studies.run.run_suite`.

    Raises
    ------
    UsageError, InputError, StoreError, ResourceError, ClusterError
    """
    folders = folders_of(suites, root)
    with builds_on(cluster, via, threads, memory) as builds:
        return _run(suites, folders, work, plan, seed, builds, progress)


def _run(
    suites: Sequence[StudySuite],
    folders: Mapping[str, Path | None],
    work: Path,
    plan: StudySuite,
    seed: int,
    builds: Builds,
    progress: Progress,
) -> Across:
    """The same, with the folders of the suites, on what builds their indexes."""
    across, memory = Across(plan), builds.means.memory
    for number, suite in enumerate(suites):
        place = work / f"{number}"
        disk.make_own_folder(place, new=True)
        told = partial(_report, progress, suite.name)
        folder = folders[suite.name]
        graph, data = graph_of(replace(suite.data, texts=""), folder, place, told)
        judge = replace(plan.judge, gamma_least=suite.judge.gamma_least)
        here = replace(plan, name=suite.name, about=suite.about, data=data, judge=judge)
        truth = read_truth(graph.names, data, judge, folder or Path(), seed, told, memory)
        across.facts[suite.name] = facts_of(graph.nodes, graph.edges, truth, seed)
        at = _Place(here, graph, truth, place, seed, builds, told)
        found = list(_labeled(at, across) if truth.labels else _unlabeled(at))
        across.rows += _queries(at, found, across.notes)
        del graph, truth, at
        disk.remove_tree(place)
    across.notes = list(dict.fromkeys(across.notes))
    return across


def _report(progress: Progress, name: str, stage: str, done: int, total: int) -> None:
    progress(f"{stage}, {name}", done, total)


Found = tuple[str, Result | None, Point | None, Figures]
"""A method: its name, what it came to, its index, its differences from the default."""


def _labeled(at: _Place, across: Across) -> Iterator[Found]:
    """The default, every measure at its best, embeddings; by the queries that did not choose."""
    study = run_on(at.suite, at.graph, at.truth, at.work, at.seed, at.builds, at.progress)
    best = study.best
    if best is None:
        raise UsageError("the plan of several suites has no table [best]")
    across.notes += study.notes
    across.chosen[at.suite.name] = best.chosen_by, best.judged_by
    for result in best.results:
        yield result.name, result, result.point, best.differences.get(result.name, {})


def _unlabeled(at: _Place) -> Iterator[Found]:
    """Every measure as it comes, the default first, and embeddings."""
    for name, default in at.suite.methods(at.seed).items():
        yield name, None, default, {}
    for measure in (each for each in MEASURES.values() if not each.texts):
        found = point(measure.name, measure.direction, {})
        if found not in at.suite.methods(at.seed).values():
            yield called(found), None, found, {}
    for plan in at.suite.embedding:
        yield plan.name, None, None, {}


def _queries(at: _Place, found: Sequence[Found], notes: list[str]) -> Iterator[Judged]:
    """What each takes to build and answers."""
    asked = JudgedQueries(at.graph, PAGES, K, at.seed)
    kinds = {plan.name: plan for plan in at.suite.embedding}
    for name, result, made, differences in found:
        at.progress(f"asking {name}", 0, 0)
        begin = time.perf_counter()
        if made is None:
            plan = kinds[name]
            try:
                vectors = embed(at.graph, plan.kind, plan.dimensions, at.seed)
            except MissingLibrary as error:
                notes.append(f"{name} is left out: {error}")
                continue
            seconds = time.perf_counter() - begin
            size = int(vectors.nbytes)
            ranker = VectorRanker(vectors)
            answers = asked.by(lambda node, ranker=ranker: ranker.related(node, K).ids)  # type: ignore[misc]
        else:
            path = at.work / "asked.index"
            index = at.builds.index(at.graph, path, made.measure, made.direction, dict(made.build))
            seconds, size = time.perf_counter() - begin, index.stored.store.nbytes
            names = index.nodes.names(np.array(asked.nodes))
            named = dict(zip(asked.nodes, names, strict=True))
            settings = dict(made.ask)
            answers = asked.by(
                lambda node, index=index, named=named, settings=settings: index.related(  # type: ignore[misc]
                    named[node], K, **settings
                )
            )
            disk.remove_tree(path)
        figures = result.figures if result else {}
        yield Judged(at.suite.name, name, made, figures, differences, size, seconds, answers)


# -- across report -----------------------------------------------------------------------


_NONE = "–"
_SHOWN = ("precision", "gamma")


def _label(across: Across, row: Judged) -> str:
    """The row of a table that a method stands in: measures at their best share theirs."""
    if row.method == across.plan.baseline:
        return f"the default, {row.point.measure}" if row.point else row.method
    return row.point.measure if row.point else row.method


def _table(
    across: Across, heading: str, cell: Callable[[Judged], str], remark: str = ""
) -> ReportTable:
    """One column a suite; suites in which no method has anything to tell are left out."""
    suites = list(across.facts)
    labels = dict.fromkeys(_label(across, row) for row in across.rows)
    cells: dict[str, dict[str, str]] = {label: {} for label in labels}
    for row in across.rows:
        cells[_label(across, row)][row.suite] = cell(row)
    suites = [s for s in suites if any(told.get(s, _NONE) != _NONE for told in cells.values())]
    rows = [[name, *(told.get(s, _NONE) for s in suites)] for name, told in cells.items()]
    rows = [row for row in rows if set(row[1:]) != {_NONE}]
    return ReportTable(heading, ["", *suites], rows, remark)


def across_tables(across: Across) -> list[ReportTable]:
    """All tables, those of figures first."""
    judged = next((row.figures for row in across.rows if row.figures), {})
    tables: list[ReportTable] = []
    titles = [title for title in headline(list(judged)) if title.startswith(_SHOWN)]
    for title in sorted(titles, key=lambda title: not title.startswith(_SHOWN[0])):

        def figure(row: Judged, title: str = title) -> str:
            if title not in row.figures:
                return _NONE
            if title not in row.differences:
                return interval_text(row.figures[title])
            return f"{row.figures[title].value:.3f}, {signed_text(row.differences[title])}"

        remark = (
            "The default with its interval; the others with their difference from the default. "
        )
        tables.append(_table(across, title, figure, remark + _by(across) if not tables else ""))

    def settings(row: Judged) -> str:
        known = row.point is not None and bool(row.figures)
        return (row.method.partition(" ")[2] or _NONE) if known else _NONE

    def lists(row: Judged) -> str:
        return f"{row.answers.answered:.1%} / {row.answers.full:.1%}"

    def cost(row: Judged) -> str:
        answers = row.answers
        times = f"{answers.median_ms:.2f} / {answers.slowest_ms:.2f} ms"
        return f"{row.build_seconds:.2f} s, {format_size(row.bytes)}, {times}"

    nodes = "For random pages with links."
    return [
        *tables,
        _table(across, "best settings", settings),
        _table(across, "answered / full lists of 20", lists, nodes),
        _table(across, "build, size, a question: median / 99th percentile", cost),
    ]


def _by(across: Across) -> str:
    chosen = [f"{s} {some:,}, {others:,}" for s, (some, others) in _chosen(across)]
    listed = "; ".join(chosen)
    return f"Queries to choose settings, and to evaluate: {listed}." if chosen else ""


def _chosen(across: Across) -> list[tuple[str, tuple[int, int]]]:
    return list(across.chosen.items())
