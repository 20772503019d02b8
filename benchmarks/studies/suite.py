"""Suites as data: data set x measures x sweeps, in a small TOML file.

about = "..."                  a sentence for the report
baseline = "spectral"          a method; differences from this method are reported

[data]                         one of links, graph and web; paths relative to the data folder
links = "links.tsv"            a file to ingest; with columns, undirected, as cocite ingest
graph = "wiki.graph"           a stored graph
web = {nodes = 1, links = 1}   a generated web, with topics as labels; with seed
labels = "categories.tsv"      with label_columns, delimiter, header, skip_bad_rows (as the options
                               of cocite evaluate), separator, depth (of the tree, for Gamma)
texts = "texts.tar.gz"
unlabeled = true               if there are neither labels nor texts
folder = "wikispeedia"         the subfolder of the data, if several suites run

[judge]                        queries, sweep_queries (0: all that are labeled), top, gamma_least,
                               cutoffs, content, resamples, confidence; quick: sweeps look no
                               further down a list than the largest cutoff
[settings]                     of every measure that supports them; otherwise its defaults

[[method]]                     measures (["*"]: all), without, directions, settings
[[embedding]]                  name, kind, dimensions
[[blend]]                      name, of (names of methods), weights, scale, depth
[[sweep]]                      setting, values, measures, without, directions, settings
[best]                         by: the figure by which best settings are chosen
[accuracy]                     measures, samples, queries, ks, decay, epsilon
[structure]                    measures, directions, samples, length

Accuracy and structure need no labels.

Accuracy compares estimates over in-links with exact scores (``benchmarks/studies/checks.py``), for
increasing numbers of samples from one index. For SimRank and PSimRank, the rows of the queries are
taken from the matrix of all pairs; for XJaccard, each row is computed separately. Structure
describes fingerprint trees and walks (``benchmarks/studies/checks.py``).

Cost: for 10,000 nodes, SimRank of all pairs takes about 10 s, and PSimRank a few times as long.
XJaccard takes length * queries * nodes**2 operations.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.studies.checks import KINDS, Rows, accuracy, live_tokens, tree_sizes
from benchmarks.studies.plans import (
    AccuracyPlan,
    BestPlan,
    BlendPlan,
    EmbeddingPlan,
    StructurePlan,
    StudySuite,
    SuiteData,
    SuiteJudge,
)
from benchmarks.studies.points import MethodPlan, SweepPlan, chosen_measures, sweep_points
from benchmarks.studies.rankers import Scale
from benchmarks.studies.study import Precise, Trees
from benchmarks.studies.xjaccard import exact_xjaccard
from cocite.allpairs import AllPairsOptions, exact_simrank
from cocite.errors import InputError, UsageError
from cocite.evaluation.points import point
from cocite.evaluation.rankers import IndexRanker
from cocite.evaluation.truth import sample_pages
from cocite.graph import Graph
from cocite.graph.links import links_of
from cocite.measures import find_measure
from cocite.measures.xjaccard import XJACCARD
from cocite.resources import Resources
from cocite.search import Index
from cocite.storage import disk

EXACT = (*AllPairsOptions.declared()["measure"].choices, XJACCARD.name)
"""The measures that have exact scores to compare with."""

Progress = Callable[[str, int, int], None]
Build = Callable[..., Index]
"""Builds an index: of a measure and a direction, with settings, and a stage for progress."""


def _report(progress: Callable[[int, int], None], sweeps: int, error: float) -> None:
    """The sweeps of an exact solver, whose number is not known in advance."""
    progress(sweeps, 0)


def _exact(
    graph: Graph,
    measure: str,
    plan: AccuracyPlan,
    queries: NDArray[np.uint32],
    progress: Callable[[int, int], None],
    means: Resources,
) -> Rows:
    """The exact scores of the queries."""
    if measure == XJACCARD.name:
        progress(0, 0)
        rows = exact_xjaccard(links_of(graph, "in"), queries, decay=plan.decay, memory=means.memory)
        places = {query: place for place, query in enumerate(queries.tolist())}
        return lambda node: rows[places[node]]
    scores = exact_simrank(
        graph,
        measure=measure,
        decay=plan.decay,
        epsilon=plan.epsilon,
        progress=partial(_report, progress),
        threads=means.threads,
        memory=means.memory,
    )
    return scores.row


def accuracies(
    graph: Graph,
    plan: AccuracyPlan,
    seed: int,
    build: Build,
    progress: Progress,
    means: Resources,
) -> Iterator[Precise]:
    """Estimates against exact scores; ``means`` are those of the exact solvers."""
    everyone = np.arange(graph.nodes, dtype=np.uint32)
    queries = sample_pages(everyone, plan.queries, seed)
    for measure in plan.measures:
        exact = _exact(
            graph, measure, plan, queries, partial(progress, f"solving {measure}"), means
        )
        wanted = {"samples": max(plan.samples), "seed": seed, "decay": plan.decay}
        chosen = point(measure, "in", wanted)
        index = build(measure, "in", dict(chosen.build), f"building {measure}")
        for samples in sorted(plan.samples):
            ranker = IndexRanker(index.with_samples(samples), **dict(chosen.ask))
            stage = partial(progress, f"comparing {measure}")
            yield Precise(measure, samples, accuracy(ranker, exact, queries, plan.ks, stage))
        disk.remove_tree(index.stored.store.path)


def structures(
    graph: Graph, plan: StructurePlan, seed: int, build: Build, progress: Progress
) -> Iterator[Trees]:
    """Trees and live tokens of the measures that walk."""
    for measure in chosen_measures(plan.measures):
        found = find_measure(measure)
        if found.step is None or "trees" not in found.layouts:
            continue
        for direction in plan.directions:
            stage = f"walking {measure} {direction}"
            progress(stage, 0, 0)
            wanted = {"samples": plan.samples, "length": plan.length, "seed": seed}
            chosen = point(measure, direction, wanted)
            index = build(measure, direction, dict(chosen.build), stage, layout="trees")
            live = np.round(live_tokens(graph, index), 12).tolist()
            yield Trees(measure, direction, tree_sizes(index), live)
            disk.remove_tree(index.stored.store.path)


# -- suite file --------------------------------------------------------------------------


T = TypeVar("T")


def built_in_suites() -> list[str]:
    """The names of the suites that come along."""
    folder = files("benchmarks.studies") / "suites"
    return sorted(
        f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml")
    )


def load_suite(name: str) -> StudySuite:
    """A suite that comes along, by name, or one from a TOML file, by path.

    Raises :class:`~cocite.errors.UsageError` and, if a file is not what it should be,
    :class:`~cocite.errors.InputError`.
    """
    if name in built_in_suites():
        text = (files("benchmarks.studies") / "suites" / f"{name}.toml").read_text("utf-8")
        return _parsed(name, name, text)
    path = Path(name)
    if path.suffix != ".toml":
        raise UsageError(
            f"no suite is called {name!r}; there are {', '.join(built_in_suites())}, and files "
            "that end in .toml"
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return _parsed(path.stem, str(path), text)


def load_across() -> StudySuite:
    """What is run on every suite where several run: the plan ``across.toml``, without data."""
    text = (files("benchmarks.studies") / "across.toml").read_text("utf-8")
    return _parsed("across", "across.toml", text)


def with_data(
    suite: StudySuite, given: Mapping[str, Any], settings: Mapping[str, Any] | None = None
) -> StudySuite:
    """The suite with some of its data, its judge and its settings chosen otherwise.

    ``given`` holds fields of :class:`SuiteData` and :class:`SuiteJudge`; None is not chosen. Paths
    of labels and texts are those of the caller, not of the data folder.
    """
    chosen = {key: value for key, value in given.items() if value is not None}
    for key in ("labels", "texts"):
        if key in chosen:
            chosen[key] = str(Path(chosen[key]).absolute())
    parts: dict[str, Any] = {
        name: replace(plan, **{f.name: chosen[f.name] for f in fields(plan) if f.name in chosen})
        for name, plan in (("data", suite.data), ("judge", suite.judge))
    }
    return replace(suite, settings=dict(suite.settings) | dict(settings or {}), **parts)


def _parsed(name: str, label: str, text: str) -> StudySuite:
    try:
        suite = _build(StudySuite, {"name": name} | tomllib.loads(text), "the suite")
    except (tomllib.TOMLDecodeError, UsageError) as error:
        raise InputError(f"{label}: {error}") from error
    data = suite.data
    if sum(map(bool, (data.links, data.graph, data.web))) > 1:
        raise InputError(f"{label}: [data] has more than one of links, graph and web")
    try:
        _check(suite)
    except UsageError as error:
        raise InputError(f"{label}: {error}") from error
    return suite


def _check(suite: StudySuite) -> None:
    """See that everything named is there, before any work."""
    names = [*suite.methods(), *(e.name for e in suite.embedding)]
    for embedding in suite.embedding:
        if embedding.kind not in KINDS:
            raise UsageError(f"embedding {embedding.name}: kind is one of {', '.join(KINDS)}")
    for blend in suite.blend:
        missing = [name for name in blend.of if name not in names]
        if missing or not blend.of:
            raise UsageError(
                f"blend {blend.name}: no method is called {', '.join(missing) or '(nothing)'}; "
                f"there are {', '.join(names)}"
            )
        if blend.weights and len(blend.weights) != len(blend.of):
            raise UsageError(f"blend {blend.name}: as many weights as methods, or none")
        if blend.scale not in {scale.value for scale in Scale}:
            raise UsageError(
                f"blend {blend.name}: scale is one of " + ", ".join(s.value for s in Scale)
            )
    names += [blend.name for blend in suite.blend]
    if len(set(names)) != len(names):
        raise UsageError("two methods have one name")
    if suite.baseline and suite.baseline not in names:
        raise UsageError(f"baseline is {suite.baseline!r}; there are {', '.join(names)}")
    for sweep in suite.sweep:
        sweep_points(suite, sweep, 0)
    if suite.structure is not None:
        chosen_measures(suite.structure.measures)
    if suite.accuracy is not None:
        strangers = set(suite.accuracy.measures) - set(EXACT)
        if strangers or not suite.accuracy.samples:
            raise UsageError("[accuracy] takes samples, and measures out of " + ", ".join(EXACT))


_NESTED: dict[str, Any] = {
    "data": SuiteData,
    "judge": SuiteJudge,
    "best": BestPlan,
    "accuracy": AccuracyPlan,
    "structure": StructurePlan,
}
_LISTED: dict[str, Any] = {
    "method": MethodPlan,
    "embedding": EmbeddingPlan,
    "blend": BlendPlan,
    "sweep": SweepPlan,
}


def _build(kind: type[T], value: Any, where: str) -> T:
    """A plan from a table of TOML: every key known, every value of its default's kind."""
    if not isinstance(value, dict):
        raise UsageError(f"{where} is not a table")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for key, item in value.items():
        if key not in known:
            raise UsageError(f"{where} has no key {key!r}; there are {', '.join(known)}")
        if kind is StudySuite and key in _NESTED:
            given[key] = _build(_NESTED[key], item, f"[{key}]")
        elif kind is StudySuite and key in _LISTED:
            if not isinstance(item, list):
                raise UsageError(f"{key} is a list of tables: write [[{key}]]")
            given[key] = tuple(_build(_LISTED[key], each, f"[[{key}]]") for each in item)
        else:
            given[key] = _checked(item, known[key].type, f"{where}, {key}")
    lacking = [
        f.name
        for f in known.values()
        if f.default is MISSING and f.default_factory is MISSING and f.name not in given
    ]
    if lacking:
        raise UsageError(f"{where} lacks {', '.join(lacking)}")
    return kind(**given)


def _checked(item: Any, annotation: Any, where: str) -> Any:
    """The value if it is of the kind that the field is annotated with."""
    text = str(annotation)
    kinds: dict[str, tuple[type, ...]] = {
        "str": (str,),
        "int": (int,),
        "float": (float, int),
        "bool": (bool,),
        "Value": (bool, int, float, str),
        "Column": (int, str),
    }
    if text.startswith("tuple["):
        inner = text.removeprefix("tuple[").split(",")[0]
        if not isinstance(item, list) or not all(type(each) in kinds[inner] for each in item):
            raise UsageError(f"{where}: a list of {inner} was expected, found {item!r}")
        return tuple(item)
    if text in ("Settings", "Mapping[str, int]"):
        inner = "Value" if text == "Settings" else "int"
        if not isinstance(item, dict) or not all(type(v) in kinds[inner] for v in item.values()):
            raise UsageError(f"{where}: a table of settings was expected, found {item!r}")
        return item
    if type(item) not in kinds[text]:
        raise UsageError(f"{where}: {text} was expected, found {item!r}")
    return item
