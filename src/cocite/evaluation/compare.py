"""Indexes that are there already, judged side by side: a study without a suite's builds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from cocite.errors import UsageError
from cocite.evaluation.bootstrap import Bootstrap
from cocite.evaluation.data import read_truth
from cocite.evaluation.examples import Examples
from cocite.evaluation.rankings import IndexRanker
from cocite.evaluation.study import Result, Study, facts_of
from cocite.evaluation.suite import Point, Suite
from cocite.index import StoredIndex
from cocite.means import Means
from cocite.measures import Value
from cocite.query import Index

__all__ = ["compare_indexes"]


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
        As for :func:`~cocite.evaluation.study.run_suite`.

    Raises
    ------
    UsageError
        If they are not of one graph, or one does not take a setting.
    InputError, StoreError
    """
    means = Means.checked(threads, memory)
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
        judgement = judge(
            ranker, threads=means.threads, progress=partial(progress, f"judging {path}")
        )
        examples.ask(path, ranker)
        asked = index.stored.ask_settings(settings).to_json()
        built, asking = tuple(sorted(index.settings.items())), tuple(sorted(asked.items()))
        study.methods.append(
            Result(
                path,
                Point(index.measure, index.direction, built, asking),
                judgement.figures(bootstrap),
                judgement.pairs,
                index.stored.store.nbytes,
            )
        )
    study.examples += examples.pages
    return study
