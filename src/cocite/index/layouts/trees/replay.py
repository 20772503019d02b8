"""Repeated walks, which find meeting points.

A step depends only on (seed, sample, step, node) and the links, so two walks can be repeated
without the others (``engine/walk.py``). The ``trees`` layout stores meeting times; repeating the
walks on the graph finds the meeting points. If the times differ, the graph or the index is damaged.
Older graphs, and graphs of indexes of selected pages, have other ids: nodes are matched by name,
and removed pages get ids after the node ids.

A step costs about 30 microseconds per sample, plus the rows of links at hubs; for direction
``out``, the links are transposed once per open index. Source: Fogaras, Racz, *Scaling link-based
similarity search*, section 2.1.3.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Ids, Ints
from cocite.deadline import check
from cocite.engine.walk import Mover
from cocite.errors import Damaged
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.graph.name_files import names_of
from cocite.index.layouts.contract import WANTED
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.trees.build import part_weights, step_bytes
from cocite.measures import LENGTH, SEED
from cocite.resources import Resources
from cocite.storage import Access
from cocite.storage.spool import Scratch

Points = Ids


def part_mover(part: StoredPart, links: Links, means: Resources) -> Mover:
    """Return the mover of a part's walks along ``links``, which must have the part's direction.
    Weights that do not fit in memory beside the links go to a scratch file.
    """
    plan = part.plan
    fits = links.nbytes + step_bytes(plan).taken(links) <= means.memory
    scratch = Scratch(None) if fits else Scratch.near(part.store.path)
    weights = part_weights(links, plan, scratch)
    seed = part.settings[SEED]
    return Mover(links, plan.step, seed, turn=plan.turn, weights=weights, in_share=plan.in_share)


def repeat(
    move: Mover,
    pair: tuple[int, int],
    samples: Ints,
    steps: NDArray[np.uint8],
    length: int,
    before: Callable[[Links, Points], None] = lambda links, at: None,
) -> Points:
    """Return uint32[samples.size, length, 2]: the nodes after each step of two walks, up to
    ``steps``, and 0 after that. ``before`` checks the links and nodes of each step.
    """
    points = np.zeros((samples.size, length, 2), np.uint32)
    for row, (sample, last) in enumerate(zip(samples.tolist(), steps.tolist(), strict=True)):
        check()
        at = np.array(pair, np.uint32)
        for step in range(1, last + 1):
            before(move.along(sample, step), at)
            move(sample, step, at, points[row, step - 1])
            at = points[row, step - 1]
    return points


class Replay:
    """Repeats one part's walks on a graph."""

    def __init__(self, part: StoredPart, graph: Graph, means: Resources) -> None:
        """Prepare the links of ``graph`` (``search/source.py`` checks that it is the samples'
        graph).
        """
        self._part, self._graph = part, graph
        if part.plan.step.weighted:
            graph.check()  # computing weights reads all links
        self._links: Links = links_of(graph, part.direction, means.memory, weighted=part.weighted)
        self._move = part_mover(part, self._links, means)
        graph.store.advise(Access.SCATTERED)  # two walks read only a few rows
        self._valid: set[tuple[bool, int]] = set()
        self._newest = graph.digest == part.freshness.snapshots[-1].digest
        self._newest &= not part.store.has(WANTED)
        self._names = names_of(part.store).stored

    def __call__(
        self, first: int, second: int, samples: Ints, steps: NDArray[np.uint8], gone: list[str]
    ) -> tuple[Points, Points]:
        """Repeat two walks in the samples with these numbers, up to the meetings at ``steps``.

        Returns two uint32[samples.size, length], with the node after each step, and 0 after the
        meeting. Appends the names of removed pages to ``gone``. Raises :class:`Damaged` unless the
        walks first meet at exactly these steps.
        """
        length, nodes = self._part.settings[LENGTH], self._links.nodes
        pair = self._there(first), self._there(second)
        points = repeat(self._move, pair, samples, steps, length, self._check)
        number = np.arange(1, length + 1)
        met = points[:, :, 0] == points[:, :, 1]
        differ = (met != (number == steps[:, None])) | (points >= nodes).any(axis=2)
        if differ[number <= steps[:, None]].any():
            raise self._damaged()
        if not self._newest:
            walked = np.arange(length) < steps[:, None]
            points[walked] = self._here(points[walked], gone)
        return points[:, :, 0], points[:, :, 1]

    def _there(self, node: int) -> int:
        if self._newest:
            return node
        found = self._graph.names.find(self._names.name(node))
        if found is None:
            raise self._damaged()
        return found

    def _here(self, nodes: Points, gone: list[str]) -> Points:
        different, rows = np.unique(nodes, return_inverse=True)
        ids = np.empty(different.size, np.uint32)
        for row, name in enumerate(self._graph.names.stored.names(different)):
            found = self._names.find(name)
            if found is None:
                if name not in gone:
                    gone.append(name)
                found = len(self._names) + gone.index(name)
            ids[row] = found
        return ids[rows].reshape(nodes.shape)

    def _check(self, links: Links, at: Points) -> None:
        """Check that two nodes' rows contain valid, ascending ids; for direction ``any``, mutually
        linked nodes occur twice.
        """
        if int(at.max()) >= links.nodes:
            raise self._damaged()
        ascends = np.greater_equal if self._part.direction == "any" else np.greater
        for node in at.tolist():
            if (links is self._links, node) in self._valid:
                continue
            begin, end = links.offsets[node : node + 2].tolist()
            row = links.neighbors[begin:end]
            fine = begin <= end <= links.edges and bool(ascends(row[1:], row[:-1]).all())
            if not fine or (row.size and int(row[-1]) >= links.nodes):
                raise self._damaged()
            self._valid.add((links is self._links, node))

    def _damaged(self) -> Damaged:
        index, graph = self._part.store.path, self._graph.path
        return Damaged(
            f"walks on {graph} differ from those in {index}, which was built from it: one of the "
            f"two is damaged. See: cocite verify {graph}; cocite verify {index}"
        )
