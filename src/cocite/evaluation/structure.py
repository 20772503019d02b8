"""What fingerprint trees cost to read, and walks to make, as walks get longer.

A query reads the tree of its node in every sample, so what answering costs is

    mean tree      the mean, over nodes and samples, of the size of the node's tree
    largest tree   the largest of all
    alone          the share of nodes that met no other: their tree is themselves

One index says it for all lengths up to its own. Draws are keyed by step, so its walks begin with
those of the shorter ones; and in dendrogram order a label is the step that joins a member to the
one before it: the trees of length l are the runs between labels that are 0 or above l.

    live tokens    how many walks are still under way and apart before each step: what making costs

They are counted by walking the index's first samples again, as no index keeps them.

Cost: one pass over the labels of the samples looked at; a walk a sample for the tokens.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 5.3 and figure 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cocite.errors import UsageError
from cocite.graph import Graph
from cocite.graph.links import links_of
from cocite.layouts.memory_plan import MemoryPlan
from cocite.layouts.table import sampled_builder
from cocite.layouts.trees.reader import TreeReader
from cocite.measures import LENGTH
from cocite.query import Index

__all__ = ["TreeSizes", "has_trees", "live_tokens", "tree_sizes"]


@dataclass(frozen=True)
class TreeSizes:
    """Trees at one length, over all samples (and directions) of an index."""

    length: int
    mean: float
    largest: int
    alone: float


def has_trees(index: Index) -> bool:
    """Whether the index is one of fingerprint trees."""
    return all(part.layout in ("trees", "packed") for part in index.stored.parts)


def _length(index: Index) -> int:
    """Steps of its longest walks."""
    return max(part.settings[LENGTH] for part in index.stored.parts)


def tree_sizes(index: Index) -> list[TreeSizes]:
    """For every length from 1 to the index's own.

    Raises :class:`~cocite.errors.UsageError` for an index in another layout than ``trees`` and
    ``packed``.
    """
    if not has_trees(index):
        raise UsageError(f"{index!r} has no fingerprint trees: the layouts trees and packed have")
    nodes, length = index.stored.nodes, _length(index)
    squares, largest, alone = (np.zeros(length + 1) for _ in range(3))
    samples = 0
    for reader in index.readers:
        assert isinstance(reader, TreeReader)
        for labels in reader.labels():
            samples += 1
            others = nodes - labels.size
            for limit in range(1, length + 1):
                sizes = _runs(labels, limit)
                squares[limit] += float((sizes.astype(np.float64) ** 2).sum()) + others
                largest[limit] = max(largest[limit], sizes.max(initial=1))
                alone[limit] += np.count_nonzero(sizes == 1) + others
    count = samples * nodes
    return [
        TreeSizes(limit, squares[limit] / count, int(largest[limit]), alone[limit] / count)
        for limit in range(1, length + 1)
    ]


def _runs(labels: NDArray[np.uint8], limit: int) -> NDArray[np.int64]:
    """The sizes of the trees of walks of ``limit`` steps."""
    starts = np.flatnonzero((labels == 0) | (labels > limit))
    return np.diff(starts, append=labels.size)


def live_tokens(graph: Graph, index: Index, samples: int = 5) -> NDArray[np.float64]:
    """float64[length]: the mean number of live tokens before each step, as a share of the nodes.

    Parameters
    ----------
    graph
        The graph that the index was built from.
    index
        Whose first walks are made again, by its own draws; of all its parts if it has several.
    samples
        How many of them, or as many as it has.

    Raises
    ------
    UsageError
        For an index without fingerprint trees, or of another graph.
    """
    if not has_trees(index):
        raise UsageError(f"{index!r} has no fingerprint trees: the layouts trees and packed have")
    if graph.digest != index.stored.graph["digest"]:
        raise UsageError(f"{index!r} was built from another graph")
    graph.check()
    found = np.zeros(_length(index))
    samples = min(samples, index.samples or 0)
    for part in index.stored.parts:
        links = links_of(graph, part.direction, index.means.memory, weighted=part.weighted)
        fit = MemoryPlan(memory=0, threads=1, cuts=())  # all in memory
        builder = sampled_builder(part.layout)
        (make,) = builder.makers(links, part.plan, fit, Path(), range(samples))
        for sample in range(samples):
            live = make(sample).live
            found[: len(live)] += live
    return found / (samples * len(index.stored.parts) * graph.nodes)
