"""Asking for companions: the vicinity of a node, and HITS on the links in it.

Both questions take the whole vector of authorities, so they agree to the bit; a reader keeps the
last one. Sums go in the order of the links.

Cost: see ``measures/companion.py``; 40 bytes for each link of the vicinity.
Source: Dean, Henzinger 1999, 3.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.deadline import check
from cocite.graph.links import opposite
from cocite.graph.rows import Links
from cocite.layouts.reader import Estimate, Reader
from cocite.layouts.reasons import NOTHING, Graphs, Paths, Reasons, apportioned
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings
from cocite.measures.companion import WIDEST

__all__ = ["CompanionReader"]

_ROUNDS, _ENOUGH = 100, 1e-10

Ids = NDArray[np.uint32]


class _Vicinity(NamedTuple):
    """``nodes`` ascending, whole ``grains`` of authority and ``hubs`` of each; the links among
    them, by places in ``nodes``.
    """

    nodes: Ids
    grains: NDArray[np.float64]
    hubs: NDArray[np.float64]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]


class CompanionReader(Reader):
    """The layout ``links`` for ``companion``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        way = part.measure.looks_at(part.direction)
        self._ins, self._outs = part.links(way), part.links(opposite(way))
        self._last: tuple[int, int, _Vicinity] | None = None

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The authority of ``second`` around ``first``."""
        found = self._around(first, settings)
        place = int(np.searchsorted(found.nodes, second))
        there = place < found.nodes.size and int(found.nodes[place]) == second
        return Estimate(float(found.grains[place]) if there else 0.0, 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """The authorities of all others around ``node``."""
        from cocite.kernels import totals

        found = self._around(node, settings)
        values = scratch.sums.view(np.float64)
        values[found.nodes, 0] = np.where(found.nodes == node, 0.0, found.grains)
        scratch.used[: found.nodes.size] = found.nodes
        scratch.have = int(
            totals.settle_exact(
                values,
                scratch.used,
                found.nodes.size,
                self.part.weight,
                scratch.totals,
                scratch.touched,
                scratch.have,
            )
        )

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The hubs that link to ``second``, each by how much of a hub it is."""
        found = self._around(first, settings)
        score = self.pair(first, second, settings).grains / GRAINS
        if score == 0:
            return NOTHING
        there = found.sources[found.nodes[found.targets] == second]
        hubs, times = np.unique(there, return_counts=True)  # links taken either way may be two

        def path(node: int) -> Paths:
            return [], []

        return apportioned(score, found.nodes[hubs], times * found.hubs[hubs], path)

    def _around(self, node: int, settings: PartSettings) -> _Vicinity:
        """The vicinity of a node."""
        own = settings.of_graph((WIDEST,), self._ins.edges)
        widest, last = own[WIDEST], self._last
        if last is not None and last[:2] == (node, widest):
            return last[2]
        me = np.array([node], np.uint32)
        parents, _ = self._rows(self._ins, me)
        children, _ = self._rows(self._outs, me)
        siblings, _ = self._rows(self._outs, self._narrow(self._outs, parents, widest))
        mates, _ = self._rows(self._ins, self._narrow(self._ins, children, widest))
        nodes = np.unique(np.concatenate([me, parents, children, siblings, mates]))
        linking, targets = self._rows(self._ins, nodes)
        places = np.searchsorted(nodes, linking)
        inside = nodes[np.minimum(places, nodes.size - 1)] == linking
        sources, targets = places[inside], targets[inside]
        authorities, hubs = _hits(sources, targets, nodes.size)
        found = _Vicinity(nodes, np.rint(authorities * GRAINS), hubs, sources, targets)
        self._last = node, widest, found
        return found

    def _narrow(self, links: Links, nodes: Ids, widest: int) -> Ids:
        """Those of ``nodes`` that have no more links than ``widest``."""
        begins, ends = self._ends(links, nodes)
        return nodes[ends - begins <= widest]

    def _ends(self, links: Links, nodes: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where the rows of some nodes begin and end."""
        begins = links.offsets[nodes].astype(np.int64)
        ends = links.offsets[nodes.astype(np.int64) + 1].astype(np.int64)
        if (begins > ends).any() or (ends > links.edges).any() or (begins < 0).any():
            raise self._damaged(links, "offsets")
        return begins, ends

    def _rows(self, links: Links, nodes: Ids) -> tuple[Ids, NDArray[np.int64]]:
        """All neighbours of ``nodes``, row behind row, and whose they are, by place."""
        check()
        begins, ends = self._ends(links, nodes)
        sizes = ends - begins
        owner = np.repeat(np.arange(nodes.size), sizes)
        at = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begins[owner]
        found: Ids = links.neighbours[at]
        if found.size and int(found.max()) >= self.part.nodes:
            raise self._damaged(links, "neighbours")
        return found, owner

    def _damaged(self, links: Links, what: str) -> Exception:
        way = self.part.measure.looks_at(self.part.direction)
        return self.part.damaged_file(f"{way if links is self._ins else opposite(way)}_{what}")


def _hits(
    sources: NDArray[np.int64], targets: NDArray[np.int64], nodes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """float64[nodes] authorities and hubs, each of sum 1; all 0 without links."""
    authorities: NDArray[np.float64] = np.zeros(nodes)
    hubs: NDArray[np.float64] = np.ones(nodes)
    if not sources.size:
        return authorities, authorities
    for _ in range(_ROUNDS):
        check()
        before = authorities
        authorities = np.bincount(targets, hubs[sources], nodes).astype(np.float64, copy=False)
        authorities /= authorities.sum()
        hubs = np.bincount(sources, authorities[targets], nodes).astype(np.float64, copy=False)
        hubs /= hubs.sum()
        if np.abs(authorities - before).sum() <= _ENOUGH:
            break
    return authorities, hubs
