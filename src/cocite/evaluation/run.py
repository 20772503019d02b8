"""How good the answers are, in one call: the same for Python and for ``cocite evaluate``.

    given                          what is judged
    an index, or several           each as it is, side by side (``evaluation/run.py``)
    a graph                        every measure in every direction (the suite ``graph``)
    a suite, and maybe a folder    what the suite says (``evaluation/suite_run.py``)
    several suites, and a folder   the default beside all else on the data of each
    (``evaluation/across.py``)

Graphs and indexes that are only made to be judged lie in a temporary directory.

Cost: an index or a graph as ``evaluation/suite_run.py`` says; indexes that are there, a question a
query each.

Indexes that are there already, judged side by side: a study without a suite's builds.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocite.errors import UsageError
from cocite.evaluation.across import AcrossDocument, run_across
from cocite.evaluation.html_report import Result, Study, facts_of
from cocite.evaluation.labels import Bootstrap
from cocite.evaluation.points import Point, Suite
from cocite.evaluation.rankers import IndexRanker
from cocite.evaluation.report import StudyDocument
from cocite.evaluation.studies import Examples, read_truth
from cocite.evaluation.suite_file import load_across, load_suite, with_data
from cocite.evaluation.suite_run import run_suite
from cocite.graph import Graph
from cocite.index import StoredIndex
from cocite.io.opening import open_graph
from cocite.io.remote import copied, is_url
from cocite.measures import Value
from cocite.resources import Resources
from cocite.search import Index
from cocite.storage import kind_of

if TYPE_CHECKING:
    from cocite.cluster.ray import Cluster


def compare_indexes(
    given: Sequence[Index | str],
    suite: Suite,
    settings: Mapping[str, Value],
    *,
    seed: int = 0,
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> Study:
    """Judge indexes of one graph by the data and the judge of a suite.

    Parameters
    ----------
    given
        The indexes, opened or as paths; a method is called as its path.
    suite
        Whose ``data`` names labels and texts.
    settings
        For asking all of them.
    seed, threads, memory, progress
        As for :func:`~cocite.evaluation.suite_run.run_suite`.

    Raises
    ------
    UsageError
        If they are not of one graph, or one does not take a setting.
    InputError, StoreError
    """
    means = Resources.checked(threads, memory)
    indexes = [
        each
        if isinstance(each, Index)
        else Index(StoredIndex.open(each).sound(), means)  # nearly all of it will be read
        for each in given
    ]
    paths = [str(index.stored.store.path) for index in indexes]
    graphs = {index.stored.graph["digest"] for index in indexes}
    if len(graphs) > 1:
        raise UsageError("the indexes are of different graphs; compare those of one")
    first = indexes[0]
    truth = read_truth(
        first.nodes, suite.data, suite.judge, seed=seed, progress=progress, memory=means.memory
    )
    judge, plan = truth.judge(suite.judge), suite.judge
    bootstrap = Bootstrap(truth.queries.size, plan.resamples, plan.confidence, seed)
    edges = int(first.stored.graph["edges"])
    about = "Indexes of one graph, side by side" if len(paths) > 1 else f"The index {paths[0]}"
    suite = replace(suite, name="indexes", about=about)
    study = Study(suite, facts_of(first.stored.nodes, edges, truth, seed))
    study.sources += truth.sources
    study.graph = str(first.stored.graph["name"])
    examples = Examples(first.nodes, truth, seed, first.titles)
    for path, index in zip(paths, indexes, strict=True):
        ranker = IndexRanker(index, truth.candidates, **settings)
        judgment = judge(
            ranker, threads=means.threads, progress=partial(progress, f"judging {path}")
        )
        examples.ask(path, ranker)
        asked = index.stored.ask_settings(settings).to_json()
        built, asking = tuple(sorted(index.settings.items())), tuple(sorted(asked.items()))
        study.methods.append(
            Result(
                path,
                Point(index.measure, index.direction, built, asking),
                judgment.figures(bootstrap),
                judgment.pairs,
                index.stored.store.nbytes,
            )
        )
    study.examples += examples.pages
    return study


# -- evaluating --------------------------------------------------------------------------


What = Index | Graph | str | os.PathLike[str]


def evaluate(
    *of: Any,
    suite: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    labels: str | os.PathLike[str] | None = None,
    label_columns: Sequence[int | str] | None = None,
    delimiter: str | None = None,
    header: str | None = None,
    skip_bad_rows: bool | str | None = None,
    separator: str | None = None,
    depth: int | None = None,
    gamma_least: float | None = None,
    texts: str | os.PathLike[str] | None = None,
    queries: int | None = None,
    cutoffs: Sequence[int] | None = None,
    settings: Mapping[str, Value] | None = None,
    seed: int = 0,
    threads: int | None = None,
    memory: str | int | None = None,
    cluster: str | Cluster | None = None,
    via: str | None = None,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> StudyDocument | AcrossDocument:
    """Tell how good the answers are, by labels and by texts: sibling Gamma, precision, recall,
    nDCG, likeness of texts, each with its interval.

    >>> cocite.evaluate("web.index", labels="topics.tsv").to_json()        # doctest: +SKIP
    >>> cocite.evaluate("web.graph", labels="topics.tsv").write("r.html")  # doctest: +SKIP

    Parameters
    ----------
    of
        Indexes of one graph, or one graph, opened or as paths or URLs, or anything else that holds
        links (:func:`cocite.open_graph`); with ``suite`` the folder of its data (of a suite for
        graphs, the graph).
    suite
        A study that comes along, by name, or a TOML file; several for one table of all.
    labels, label_columns, separator
        A table of names and categories; its columns of both, as titles or numbers from 1; and what
        separates the parts of a category, the most general first, ``""`` for nothing. By default
        ``(1, 2)`` and ``"."`` or what the suite says.
    delimiter, header, skip_bad_rows
        How the labels are read, as for :func:`~cocite.ingest`.
    depth
        How many parts of a category make a class, for sibling Gamma; by default as many as most
        have.
    gamma_least
        Compare only nodes that score more than this, for sibling Gamma; 0 by default.
    texts
        The texts of the nodes: a folder, a tar archive, or a table.
    queries
        Ask for so many nodes only, drawn by ``seed``; by default all that have a label or a text.
    cutoffs
        The values of k in ``precision@k`` and the like.
    settings
        Of the measures, such as ``{"decay": 0.1}``.
    seed
        Where the random numbers start. Equal seeds give equal figures.
    threads, memory
        As for building an index.
    cluster, via
        As for building an index: where samples are drawn, of indexes that are only made to be
        judged. They lie in a temporary directory (``TMPDIR`` says where): nodes on other machines
        see it, or their shards come by ``via``. Figures are the same.
    progress
        Called with (stage, done, total).

    Returns
    -------
    StudyDocument or, of several suites, AcrossDocument
        ``to_json()`` and ``rows()`` have every figure, with the bounds of its 95 % interval;
        ``write("report.html")`` writes a report.

    Raises
    ------
    UsageError, InputError, StoreError, ResourceError, ClusterError
    """
    call = _call(
        of,
        suite=suite,
        labels=labels,
        label_columns=label_columns,
        delimiter=delimiter,
        header=header,
        skip_bad_rows=skip_bad_rows,
        separator=separator,
        depth=depth,
        gamma_least=gamma_least,
        texts=texts,
        queries=queries,
        cutoffs=cutoffs,
        settings=settings,
        seed=seed,
    )
    if not suite:
        of = tuple(_stored(each, memory, threads) for each in of)
    suites = [suite] if isinstance(suite, str | os.PathLike) else list(suite)
    if cutoffs is not None and not (cutoffs and all(type(k) is int and k > 0 for k in cutoffs)):
        raise UsageError(f"cutoffs are {list(cutoffs)}; they are whole numbers, 1 or more")
    data: dict[str, Any] = {
        "labels": None if labels is None else os.fspath(labels),
        "label_columns": None if label_columns is None else tuple(label_columns),
        "delimiter": delimiter,
        "header": header,
        "skip_bad_rows": skip_bad_rows,
        "separator": separator,
        "depth": depth,
        "texts": None if texts is None else os.fspath(texts),
    }
    judge: dict[str, Any] = {
        "queries": queries,
        "gamma_least": gamma_least,
        "cutoffs": None if cutoffs is None else tuple(cutoffs),
    }
    _check(data | judge)
    options: dict[str, Any] = {
        "seed": seed,
        "threads": threads,
        "memory": memory,
        "cluster": cluster,
        "via": via,
        "progress": progress,
    }
    chosen = dict(settings or {})
    if len(suites) > 1:
        names = [os.fspath(each) for each in suites]
        return _across([_path(each) for each in of], names, data, judge, chosen, options, call)
    name = os.fspath(suites[0]) if suites else None
    return StudyDocument(_study(of, name, data | judge, chosen, options), call)


def _stored(what: Any, memory: str | int | None, threads: int | None) -> What:
    """What is judged, stored if it holds links that are not stored yet."""
    if isinstance(what, Index):
        return what
    if isinstance(what, str | os.PathLike) and (is_url(what) or os.path.isdir(what)):
        return what
    return open_graph(what, memory=memory, threads=threads)


def _call(of: Sequence[Any], **given: Any) -> str:
    """The call as it would be typed, without what is as it is anyway."""
    stored = (Index, Graph, str, os.PathLike)
    words = [
        repr(_path(each)) if isinstance(each, stored) else f"<{type(each).__name__}>" for each in of
    ]
    for name, value in given.items():
        if value is not None and value != () and (name, value) != ("seed", 0):
            shown = os.fspath(value) if isinstance(value, os.PathLike) else value
            words.append(f"{name}={shown!r}")
    return f"cocite.evaluate({', '.join(words)})"


def _check(given: Mapping[str, Any]) -> None:
    """Numbers are in their range; the rest is checked where it is used."""
    for name, kinds, least in (
        ("queries", (int,), 1),
        ("depth", (int,), 1),
        ("gamma_least", (int, float), 0),
    ):
        value = given[name]
        if value is not None and not (type(value) in kinds and value >= least):
            what = "a whole number" if kinds == (int,) else "a number"
            raise UsageError(f"{name} is {value!r}; it is {what}, {least} or more")


def _path(what: What) -> str:
    """Where it is stored."""
    if isinstance(what, Index):
        return str(what.stored.store.path)
    return str(what.path) if isinstance(what, Graph) else os.fspath(what)


def _across(
    paths: Sequence[str],
    suites: Sequence[str],
    data: Mapping[str, Any],
    judge: Mapping[str, Any],
    settings: Mapping[str, Value],
    options: dict[str, Any],
    call: str,
) -> AcrossDocument:
    """Several suites: one table of all."""
    if len(paths) > 1:
        raise UsageError("several suites take one folder, which has a folder for each")
    own = dict(data) | {"gamma_least": judge["gamma_least"]}
    given = [key for key, value in own.items() if value is not None]
    if given:
        option = given[0].replace("_", "-")
        raise UsageError(f"--{option} is each suite's own: leave it out with several suites")
    plan = with_data(load_across(), judge, settings)
    root = Path(paths[0]) if paths else None
    with tempfile.TemporaryDirectory(prefix="cocite-") as work:
        found = run_across(_distinct_labels(suites), root, Path(work), plan, **options)
    return AcrossDocument(found, call)


def _distinct_labels(names: Sequence[str]) -> list[Suite]:
    """The suites of these names; files that share a base name are called as their paths."""
    found = []
    suites = list(map(load_suite, names))
    often = Counter(suite.name for suite in suites)
    for name, suite in zip(names, suites, strict=True):
        if often[suite.name] == 1:
            found.append(suite)
            continue
        if names.count(name) > 1:
            raise UsageError(f"the suite {name} is named twice")
        data = replace(suite.data, folder=suite.data.folder or suite.name)
        found.append(replace(suite, name=name.removesuffix(".toml"), data=data))
    return found


def _study(
    of: Sequence[What],
    suite: str | None,
    given: Mapping[str, Any],
    settings: Mapping[str, Value],
    options: dict[str, Any],
) -> Study:
    """The study that the arguments name: of a suite, of a graph, or of indexes."""
    of = [str(copied(each)) if is_url(each) else each for each in of]
    paths = [_path(each) for each in of]
    kinds = [kind_of(path) for path in paths]
    if suite is None and paths and all(kind == "index" for kind in kinds):
        plan = with_data(load_suite("graph"), given)
        on = [options.pop(name) for name in ("cluster", "via")]
        if any(each is not None for each in on):
            raise UsageError(
                "indexes that are there are not built: leave --cluster (cluster=...) and "
                "--staging-url (via=...) out"
            )
        indexes = [each if isinstance(each, Index) else _path(each) for each in of]
        return compare_indexes(indexes, plan, settings, **options)
    if suite is not None or kinds == ["graph"]:
        if len(paths) > 1:
            raise UsageError("a suite takes one folder of data, or one graph")
        plan = with_data(load_suite(suite or "graph"), given, settings)
        folder = Path(paths[0]) if paths else None
        if kinds == ["graph"]:
            plan = with_data(plan, {"graph": str(Path(paths[0]).absolute())})
        with tempfile.TemporaryDirectory(prefix="cocite-") as work:
            return run_suite(plan, folder, Path(work), **options)
    for path, kind in zip(paths, kinds, strict=True):
        if kind is None:
            raise UsageError(f"{path} is neither an index nor a graph")
    if kinds:
        raise UsageError("give indexes of one graph, or one graph, but not both")
    raise UsageError("name indexes, or a graph, or a --suite (and the folder of its data)")
