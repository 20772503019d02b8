"""The data of an evaluation, made ready: the graph, what its nodes are labelled, their texts.

A graph is opened, ingested or generated, the latter two in a work folder that the caller owns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.evaluation.content import Content, read_texts
from cocite.evaluation.judge import Judge
from cocite.evaluation.labels import Labels, read_labels
from cocite.evaluation.plans import DataPlan, JudgePlan
from cocite.graph import Graph
from cocite.graph.generate import generate_web
from cocite.graph.ingest import ingest
from cocite.graph.names import Names

__all__ = ["Truth", "drawn", "graph_of", "read_truth"]

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Truth:
    """What is known of the nodes beside their links; ``queries`` uint32[q], ascending."""

    labels: Labels | None
    depth: int
    content: Content | None
    queries: NDArray[np.uint32]
    candidates: NDArray[np.uint32] | None
    """The nodes that may be hits: those with a label, or None for all."""

    @property
    def sources(self) -> list[str]:
        """How the labels were read, in words."""
        return [] if self.labels is None else [self.labels.read]

    def judge(self, plan: JudgePlan, queries: NDArray[np.uint32] | None = None) -> Judge:
        """The judge of this truth; ``queries`` by default all of its own."""
        return Judge(
            self.queries if queries is None else queries,
            familial=self.labels.collapsed(self.depth) if self.labels else None,
            relevance=self.labels.collapsed() if self.labels else None,
            content=self.content,
            cutoffs=plan.cutoffs,
            depth=plan.content,
            top=plan.top,
            gamma_least=plan.gamma_least,
        )

    def quick_judge(self, plan: JudgePlan, queries: NDArray[np.uint32]) -> Judge:
        """One that looks at no more of a list than the largest cutoff, for many rankers."""
        relevance = self.labels.collapsed() if self.labels else None
        longest = max(plan.cutoffs)
        return Judge(queries, relevance=relevance, cutoffs=plan.cutoffs, longest=longest)


def graph_of(
    plan: DataPlan, folder: Path | None, work: Path, progress: Progress
) -> tuple[Graph, DataPlan]:
    """The graph, and the plan with what making it has added: the labels of a generated web.

    Raises :class:`~cocite.errors.UsageError` without a folder for data that is read.
    """
    if plan.web:
        wrong = set(plan.web) - {"nodes", "links", "seed"}
        if wrong or not {"nodes", "links"} <= set(plan.web):
            raise UsageError("[data] web takes nodes, links and seed")
        labels = work / "topics.tsv"
        graph = generate_web(
            work / "web.graph",
            nodes=plan.web["nodes"],
            links=plan.web["links"],
            seed=plan.web.get("seed", 0),
            labels=labels,
            progress=progress,
        )
        return graph, DataPlan(**(vars(plan) | {"labels": str(labels)}))
    if folder is None:
        raise UsageError("the suite reads data: name the folder that it is in")
    if plan.graph:
        graph = Graph.open(folder / plan.graph)
        graph.check()
        return graph, plan
    if not plan.links:
        raise UsageError("[data] names neither links, nor a graph, nor a web")
    graph = ingest(
        folder / plan.links,
        work / "links.graph",
        columns=plan.columns,
        undirected=plan.undirected,
        progress=progress,
    )
    return graph, plan


def read_truth(
    names: Names,
    plan: DataPlan,
    judge: JudgePlan,
    folder: Path = Path(),
    seed: int = 0,
    progress: Progress = lambda stage, done, total: None,
) -> Truth:
    """Labels and texts, and the queries: all nodes with either, or so many of them at random.

    Raises :class:`~cocite.errors.UsageError` if there is neither and the plan does not say so, and
    :class:`~cocite.errors.InputError`.
    """
    if not plan.labels and not plan.texts:
        if not plan.unlabelled:
            raise UsageError("nothing to judge by: give labels or texts")
        within = names.sides.named(None) if names.sides is not None else range(len(names))
        everyone = np.arange(within.start, within.stop, dtype=np.uint32)
        return Truth(None, 0, None, drawn(everyone, judge.queries, seed), None)
    if len(plan.label_columns) != 2:
        raise UsageError("label columns are two: that of the name and that of the label")
    labels = content = None
    if plan.labels:
        progress("reading labels", 0, 0)
        labels = read_labels(
            folder / plan.labels,
            names,
            plan.label_columns,
            plan.separator,
            delimiter=plan.delimiter,
            header=plan.header,
            skip_bad_rows=plan.skip_bad_rows if type(plan.skip_bad_rows) is bool else "all",
        )
    texts: dict[int, str] = {}
    if plan.texts:
        stage = "reading texts"
        texts = read_texts(folder / plan.texts, names, lambda done, _: progress(stage, done, 0))
        progress("weighing words", 0, 0)
        content = Content(texts, len(names))
    known = np.array(sorted(texts), np.uint32) if labels is None else labels.labelled
    if names.sides is not None and known.size:
        left, right = known[known < names.sides.left], known[known >= names.sides.left]
        if left.size and right.size:
            one, other = names.names(np.array([left[0], right[0]]))
            raise UsageError(
                f"{plan.labels or plan.texts} has nodes of both sides, such as {one!r} and "
                f"{other!r}, and only nodes of one side are compared: leave those of one side out"
            )
    return Truth(
        labels=labels,
        depth=(plan.depth or labels.usual_depth) if labels else 0,
        content=content,
        queries=drawn(known, judge.queries, seed),
        candidates=known if known.size < len(names) else None,
    )


def drawn(nodes: NDArray[np.uint32], count: int, seed: int) -> NDArray[np.uint32]:
    """``count`` of the nodes at random, ascending; all of them if ``count`` is 0 or not fewer."""
    if not 0 < count < nodes.size:
        return nodes
    return np.sort(np.random.default_rng(seed).choice(nodes, count, replace=False))
