"""Evaluation in one call, for Python and for ``cocite evaluate``.

    input                       evaluates
    one or more indexes         the indexes, side by side
    a graph                     every measure in every direction, with default settings

A graph costs one build per measure per direction, into a temporary directory that holds one index
at a time. Each index costs one query per test page.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.deadline import clock
from cocite.errors import UsageError
from cocite.evaluation.judge import CUTOFFS
from cocite.evaluation.labels import Bootstrap
from cocite.evaluation.points import (
    DataPlan,
    JudgePlan,
    Point,
    Settings,
    combinations,
    link_measures,
    point,
    taken,
)
from cocite.evaluation.rankers import Builds, IndexRanker, builds_on, judging_resources
from cocite.evaluation.report import Result, Study, StudyDocument, facts_of
from cocite.evaluation.truth import Examples, Truth, read_truth
from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.index import StoredIndex
from cocite.io.opening import open_graph
from cocite.io.remote import copied, is_url
from cocite.measures import find_measure
from cocite.options import accepts
from cocite.options.evaluate import EvaluateOptions
from cocite.progress import shows
from cocite.resources import Resources, resident
from cocite.search import Index
from cocite.storage import disk, kind_of

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster

Progress = Callable[[str, int, int], None]
Stored = Index | Graph | str | os.PathLike[str]

_DIRECTIONS = ("in", "out", "both")
_LISTED = 36
"""Bytes per node of a list of all nodes: ids, scores, order and labels."""


@dataclass(frozen=True)
class Method:
    """An index to evaluate, its query settings, and its build time if built for the evaluation."""

    name: str
    index: Index
    point: Point
    seconds: float | None = None


@dataclass(frozen=True)
class Assessment:
    """How to evaluate, and the ``settings`` of the measures to evaluate."""

    settings: Settings
    data: DataPlan
    plan: JudgePlan
    seed: int
    progress: Progress
    since: int
    """Memory of the process at the start."""

    def _truth(self, names: Names, memory: int) -> Truth:
        how: dict[str, Any] = {"progress": self.progress, "memory": memory}
        return read_truth(names, self.data, self.plan, seed=self.seed, **how)

    def of_indexes(self, indexes: Sequence[Index], resources: Resources) -> Study:
        """Evaluate indexes of one graph. Methods are named after index paths.

        Raises :class:`UsageError` if the indexes belong to different graphs, or if one of them does
        not support a setting.
        """
        if len({index.stored.graph["digest"] for index in indexes}) > 1:
            raise UsageError(
                "the indexes belong to different graphs; compare indexes of the same graph"
            )
        first, paths = indexes[0], [str(index.stored.store.path) for index in indexes]
        truth = self._truth(first.nodes, memory=resources.memory)
        several = len(paths) > 1
        about = "Indexes of one graph, side by side" if several else f"The index {paths[0]}"
        edges, name = int(first.stored.graph["edges"]), str(first.stored.graph["name"])
        facts = facts_of(first.stored.nodes, edges, truth, self.seed)
        methods = []
        for path, index in zip(paths, indexes, strict=True):
            ask = index.stored.ask_settings(self.settings).to_json()
            pairs = (tuple(sorted(each.items())) for each in (index.settings, ask))
            methods.append(Method(path, index, Point(index.measure, index.direction, *pairs)))
            index.stored.store.evict()
        examples = Examples(first.nodes, truth, self.seed, first.titles)
        study = Study(about, self.plan, facts, graph=name)
        samples = max(index.samples or 0 for index in indexes)
        return self._judge(lambda held: methods, study, truth, examples, resources, samples)

    def of_graph(self, graph: Graph, builds: Builds) -> Study:
        """Evaluate every measure in every direction, except coupling, which is cocitation in the
        other direction.
        """
        graph.check()
        truth = self._truth(graph.names, memory=builds.means.memory)
        about = "Every measure in every direction, with its own settings"
        facts = facts_of(graph.nodes, graph.edges, truth, self.seed)
        study = Study(about, self.plan, facts, graph=graph.path.resolve().name)
        names = [name for name in link_measures() if name != "coupling"]
        points = [
            point(measure, direction, taken(measure, self.settings, {"seed": self.seed}))
            for measure, direction in combinations(names, _DIRECTIONS)
        ]
        examples = Examples(graph.names, truth, self.seed, graph.titles)
        with tempfile.TemporaryDirectory(prefix="cocite-") as folder:
            graph.store.evict()
            samples = max(each.samples or 0 for each in points)
            methods = partial(self._built, graph, points, builds, Path(folder))
            return self._judge(methods, study, truth, examples, builds.means, samples)

    def _judge(
        self,
        methods: Callable[[int], Iterable[Method]],
        study: Study,
        truth: Truth,
        examples: Examples,
        means: Resources,
        samples: int,
    ) -> Study:
        """Evaluate methods one after another and add their results to the study."""
        judge, plan = truth.judge(self.plan), self.plan
        rows, nodes = 16 * truth.queries.size * len(judge.titles), int(study.facts["nodes"])
        left = judging_resources(means, self.since, nodes, samples, rows, _LISTED)
        resamples = Bootstrap(truth.queries.size, plan.resamples, plan.confidence, self.seed)
        for each in methods(means.memory - left.memory):
            asked = dict(each.point.ask)
            ranker = IndexRanker(each.index, truth.candidates, left, **asked)
            stage = partial(self.progress, f"evaluating {each.name}")
            judgment = judge(ranker, threads=left.threads, progress=stage)
            examples.ask(each.name, ranker)
            size, figures = each.index.stored.store.nbytes, judgment.figures(resamples)
            study.methods.append(
                Result(each.name, each.point, figures, judgment.pairs, size, each.seconds)
            )
        study.examples += examples.pages
        study.sources += truth.sources
        return study

    def _built(
        self, graph: Graph, points: Sequence[Point], builds: Builds, folder: Path, held: int
    ) -> Iterator[Method]:
        """Build and yield one index after another, removing each before the next."""
        builds = replace(builds, held=held)
        for number, each in enumerate(points, 1):
            place, texts = folder / f"{number}.index", self.data.texts
            begin = clock()
            index = builds.index(
                graph,
                place,
                each.measure,
                each.direction,
                dict(each.build),
                progress=partial(self.progress, f"building index {number} of {len(points)}"),
                texts=texts if texts and find_measure(each.measure).texts else None,
            )
            yield Method(f"{each.measure} {each.direction}", index, each, clock() - begin)
            index.stored.store.evict()  # garbage collection may come late
            disk.remove_tree(place)


@shows("evaluating")
@accepts(EvaluateOptions)
def evaluate(
    *of: Any,
    threads: int | None = None,
    memory: str | int | None = None,
    cluster: str | Cluster | None = None,
    staging_url: str | None = None,
    progress: Progress = lambda stage, done, total: None,
    options: EvaluateOptions | None = None,
    **given: Any,
) -> StudyDocument:
    """Evaluate results by labels and texts: sibling Gamma, precision, recall, nDCG and text
    similarity, each with an interval.

    >>> cocite.evaluate("web.index", labels="topics.tsv").to_json()        # doctest: +SKIP
    >>> cocite.evaluate("web.graph", labels="topics.tsv").write("r.html")  # doctest: +SKIP

    Parameters
    ----------
    of
        Indexes of one graph, to compare these; or one graph, to compare all measures in all
        directions. Each is an open object, a path, a URL, or other links
        (:func:`cocite.open_graph`).
    threads, memory
        As for building an index.
    cluster, staging_url
        As for building an index; they apply to indexes built for the evaluation. These are in a
        temporary directory (``TMPDIR``), which other machines must be able to access unless shards
        are sent through ``staging_url``. The figures are the same as without a cluster.
    progress
        Called with (stage, done, total).
    options, given
        The options below, as one object or by name, and ``settings``, the settings of measures,
        such as ``{"decay": 0.1}``.
    {options}

    Returns
    -------
    StudyDocument
        ``to_json()`` and ``rows()`` return every figure with its 95% interval.
        ``write("report.html")`` writes a report.

    Raises
    ------
    UsageError, InputError, StoreError, ResourceError, ClusterError
    """
    settings = given.pop("settings", None)
    options = EvaluateOptions.of(options, given)
    if settings is not None:
        options = replace(options, settings=settings)
    chosen = dict(options.settings)
    call = _call(of, options.changed() | ({"settings": chosen} if chosen else {}))
    judged = tuple(_stored(each, memory, threads) for each in of)
    paths = [_path(each) for each in judged]
    plan = JudgePlan(
        queries=options.queries or 0,
        gamma_least=options.gamma_least or 0.0,
        cutoffs=_cutoffs(options.cutoffs),
    )
    data = DataPlan.of(options, depth=options.depth, texts=options.texts)
    work = Assessment(chosen, data, plan, options.seed, progress, resident())
    kinds = [kind_of(path) for path in paths]
    if kinds == ["graph"]:
        with builds_on(cluster, staging_url, threads, memory) as builds:
            graph = judged[0] if isinstance(judged[0], Graph) else Graph.open(paths[0])
            return StudyDocument(work.of_graph(graph, builds), call)
    for path, kind in zip(paths, kinds, strict=True):
        if kind is None:
            raise UsageError(f"{path} is neither an index nor a graph")
    if not paths:
        raise UsageError("there is nothing to evaluate: pass a graph, or indexes of the same graph")
    if set(kinds) != {"index"}:
        raise UsageError("pass either a graph, or indexes of the same graph")
    if cluster is not None or staging_url is not None:
        raise UsageError(
            "--cluster (cluster=...) and --staging-url (staging_url=...) only apply when indexes "
            "are built: omit them"
        )
    resources = Resources.checked(threads, memory)
    indexes = [
        each
        if isinstance(each, Index)
        else Index(
            StoredIndex.open(path).validated(), resources
        )  # nearly all of the index will be read
        for each, path in zip(judged, paths, strict=True)
    ]
    return StudyDocument(work.of_indexes(indexes, resources), call)


def _cutoffs(given: Any) -> tuple[int, ...]:
    """Return the cutoffs, given as integers or as comma-separated text."""
    if given is None:
        return CUTOFFS
    try:
        found = tuple(map(int, given.split(","))) if isinstance(given, str) else tuple(given)
    except ValueError:
        raise UsageError(f"cutoffs is {given!r}; it must be whole numbers such as 1,5,10") from None
    if not (found and all(type(k) is int and k > 0 for k in found)):
        raise UsageError(f"cutoffs are {list(found)}; they must be whole numbers, 1 or more")
    return found


def _stored(what: Any, memory: str | int | None, threads: int | None) -> Stored:
    """Return a stored graph or index, or its path; stores other links first."""
    if isinstance(what, Index):
        return what
    if isinstance(what, str | os.PathLike):
        if is_url(what):
            return str(copied(what))
        if os.path.isdir(what):
            return what
    return open_graph(what, memory=memory, threads=threads)


def _call(of: Sequence[Any], given: Mapping[str, Any]) -> str:
    """Return the Python call that was made."""
    stored = (Index, Graph, str, os.PathLike)
    words = [
        repr(_path(each)) if isinstance(each, stored) else f"<{type(each).__name__}>" for each in of
    ]
    for name, value in given.items():
        if value is not None:
            shown = os.fspath(value) if isinstance(value, os.PathLike) else value
            words.append(f"{name}={shown!r}")
    return f"cocite.evaluate({', '.join(words)})"


def _path(what: Stored) -> str:
    """Return the path of a graph or index."""
    if isinstance(what, Index):
        return str(what.stored.store.path)
    return str(what.path) if isinstance(what, Graph) else os.fspath(what)
