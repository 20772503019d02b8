"""Repeated walks, which find meeting points and answer queries with an unseen page.

A step depends only on (seed, sample, step, node) and the links, so two walks can be repeated
without all others (``engine/walk.py``). The layout ``trees`` stores meeting times; repeating the
walks on the graph finds the meeting points. If the times differ, the graph or the index is damaged.
Older graphs, and graphs of indexes of selected pages, have other ids: nodes are matched by name,
and removed pages get ids after the node ids.

With an unseen page, a pair repeats its two walks in every sample, and a list is found from the
nodes that the query node's walk passes. Answers equal those of a rebuilt index, to the bit.

A step costs about 30 microseconds per sample, plus the rows of links at hubs; for direction
``out``, the links are transposed once per open index. With an unseen page, a list takes at least
0.1 ms per sample. Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.1.3.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Ids, Ints
from cocite.deadline import check
from cocite.engine.walk import Mover, follow, probe
from cocite.errors import Damaged
from cocite.graph import Graph
from cocite.graph.blocks import Links
from cocite.graph.links import links_of
from cocite.graph.name_files import names_of
from cocite.index.layouts.contract import WANTED
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Graphs, QueryScratch, weights_of
from cocite.index.layouts.trees.build import part_weights, step_bytes
from cocite.index.layouts.trees.meetings import MeetingReader, Times, Ways
from cocite.measures import LENGTH, SEED, PartSettings
from cocite.options import opposite
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


class Replay:
    """Repeats one part's walks on a graph."""

    def __init__(self, part: StoredPart, graph: Graph, means: Resources) -> None:
        """Prepare the links. Samples must have been drawn from ``graph`` (``search/source.py``
        checks this).
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
        length = self._part.settings[LENGTH]
        points = np.zeros((samples.size, length, 2), np.uint32)
        first, second = self._there(first), self._there(second)
        for row, (sample, last) in enumerate(zip(samples.tolist(), steps.tolist(), strict=True)):
            check()
            at = np.array([first, second], np.uint32)
            for step in range(1, last + 1):
                self._check(self._move.along(sample, step), at)
                self._move(sample, step, at, points[row, step - 1])
                at = points[row, step - 1]
                together = at[0] == at[1]
                if int(at.max()) >= self._links.nodes or together != (step == last):
                    raise self._damaged()
        if not self._newest:
            walked = np.arange(length) < steps[:, None]
            points[walked] = self._here(points[walked], gone)
        return points[:, :, 0], points[:, :, 1]

    def _there(self, node: int) -> int:
        """Convert an index id to a graph id."""
        if self._newest:
            return node
        found = self._graph.names.find(self._names.name(node))
        if found is None:
            raise self._damaged()
        return found

    def _here(self, nodes: Points, gone: list[str]) -> Points:
        """Convert graph ids to index ids."""
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


class OnTheFlyReader(MeetingReader):
    """Replaces the readers of walks for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._means, self._length = part.ends.means, part.settings[LENGTH]

    @property
    def _numbers(self) -> list[int]:
        """Return the sample numbers."""
        found: list[int] = self.part.freshness.held[: self.part.samples].tolist()
        return found

    @cached_property
    def _mover(self) -> Mover:
        return part_mover(self.part, self.part.links(self.part.direction), self._means)

    @cached_property
    def _columns(self) -> Links:
        return self.part.links(opposite(self.part.direction))

    def times_with(self, node: int, others: Ids) -> Times:
        """Return uint8[samples, h]: tau, or 255 without a meeting."""
        nodes = np.append(np.uint32(node), others)
        times = np.empty((len(self._numbers), others.size), np.uint8)
        for row, sample in enumerate(self._numbers):
            check()
            times[row] = follow(self._mover, self._length, sample, nodes)[1:]
        return times

    def gather_sums(self, node: int, settings: PartSettings, scratch: QueryScratch) -> int:
        """Add up the meetings with all nodes."""
        weights, count = weights_of(self.weight(settings).values), 0
        for sample in self._numbers:
            check()
            met, times = probe(self._mover, self._length, self._columns, sample, node)
            fresh = met[scratch.sums[met, 0] == 0]
            scratch.used[count : count + fresh.size] = fresh
            count += fresh.size
            scratch.sums[met] += weights[times]
        return count

    def _ways(self, first: int, second: int, samples: Ints, steps: Times, graphs: Graphs) -> Ways:
        """Repeat the walks on the extended links."""
        points = np.zeros((samples.size, self._length, 2), np.uint32)
        numbers = np.array(self._numbers)[samples].tolist()
        for row, (sample, last) in enumerate(zip(numbers, steps.tolist(), strict=True)):
            check()
            at = np.array([first, second], np.uint32)
            for step in range(1, last + 1):
                self._mover(sample, step, at, points[row, step - 1])
                at = points[row, step - 1]
        return Ways(points[:, :, 0], points[:, :, 1], np.ones(samples.size, bool))
