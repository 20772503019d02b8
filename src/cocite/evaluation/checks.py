"""What can be said of measures without any truth: how accurate, and what they read and walk.

Accuracy is that of estimates over in-links against exact scores (``accuracy.py``), for more and
more samples of one index. SimRank and PSimRank have a solver for all pairs, of whose matrix the
rows of the queries are taken; XJaccard's rows are computed by themselves. Structure is that of
fingerprint trees and walks (``structure.py``).

Cost: SimRank of all pairs some 10 s, and PSimRank a few times that, for 10,000 nodes; XJaccard
length * queries * nodes**2 operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cocite.allpairs import MEASURES as SOLVED
from cocite.allpairs import exact_simrank
from cocite.evaluation.accuracy import Rows, accuracy
from cocite.evaluation.data import drawn
from cocite.evaluation.plans import AccuracyPlan, StructurePlan
from cocite.evaluation.rankings import IndexRanker
from cocite.evaluation.structure import live_tokens, tree_sizes
from cocite.evaluation.study import Precise, Trees
from cocite.evaluation.suite import chosen_measures, point
from cocite.graph import Graph
from cocite.graph.links import links_of
from cocite.means import Means
from cocite.measures import find_measure
from cocite.measures.xjaccard import XJACCARD, exact_xjaccard
from cocite.query import Index
from cocite.store import disk

__all__ = ["EXACT", "accuracies", "structures"]

EXACT = (*SOLVED, XJACCARD.name)
"""The measures that have exact scores to compare with."""

Progress = Callable[[str, int, int], None]
Build = Callable[..., Index]
"""Builds an index: of a measure and a direction, with settings, and a stage for progress."""


def _told(progress: Callable[[int, int], None], sweeps: int, error: float) -> None:
    """The sweeps of an exact solver, whose number nobody knows before."""
    progress(sweeps, 0)


def _exact(
    graph: Graph,
    measure: str,
    plan: AccuracyPlan,
    queries: NDArray[np.uint32],
    progress: Callable[[int, int], None],
    means: Means,
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
        progress=partial(_told, progress),
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
    means: Means,
) -> Iterator[Precise]:
    """Estimates against exact scores; ``means`` are those of the exact solvers."""
    everyone = np.arange(graph.nodes, dtype=np.uint32)
    queries = drawn(everyone, plan.queries, seed)
    for measure in plan.measures:
        exact = _exact(
            graph, measure, plan, queries, partial(progress, f"solving {measure}"), means
        )
        wanted = {"samples": max(plan.samples), "seed": seed, "decay": plan.decay}
        chosen = point(measure, "in", wanted)
        index = build(measure, "in", dict(chosen.build), f"building {measure}")
        for samples in sorted(plan.samples):
            ranker = IndexRanker(index.first(samples), **dict(chosen.ask))
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
