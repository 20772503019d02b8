"""Exact queries on links: common neighbors (cocitation, coupling) and companions.

A pair merges two rows of neighbors; a list is a row of the sparse product of the links with their
transpose. Both read neighbors in ascending id order, so sums are bit-identical
(``kernels/neighbors.py``). A list costs one addition for each link of each neighbor, 1 to 3 ns.

Companions are the HITS authorities in a node's vicinity (``measures/companion.py``). Pairs and
lists need the authorities of the whole vicinity, so a reader caches the last vicinity, at 40 bytes
per link. Source: Small 1973; Kessler 1963 (``measures/cocitation.py``); Dean, Henzinger 1999,
section 3.1.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from cocite.constants import GRAINS, Floats, Ids, Ints
from cocite.deadline import check
from cocite.errors import Damaged
from cocite.graph.blocks import Links, entries_of
from cocite.index.layouts.contract import PartPlan, WholeFormat
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import (
    Estimate,
    Graphs,
    QueryScratch,
    Reader,
    Reasons,
    apportioned,
)
from cocite.kernels import neighbors
from cocite.kernels.neighbors import FORMS
from cocite.measures import PartSettings
from cocite.measures.cocitation import FORM, IDF
from cocite.measures.companion import MAX_DEGREE
from cocite.options import opposite

DEGREES, NORMS = "degrees", "norms"


def has_norms(plan: PartPlan) -> bool:
    """Return whether a part stores the norms that ``idf`` needs."""
    return any(setting.name == "idf" for setting in plan.measure.ask)


def has_degrees(plan: PartPlan) -> bool:
    """Return whether a part stores the degrees that ``ppr-symmetric`` needs."""
    return plan.measure.name == "ppr-symmetric"


def _has(plan: PartPlan, name: str) -> bool:
    """Return whether a part has a file: in-links and out-links, or merged links for ``any``; and
    weights, norms and degrees if the part uses them.
    """
    has = {"weights": plan.weighted, NORMS: has_norms(plan), DEGREES: has_degrees(plan)}
    way = "_" not in name or name.startswith("any_") == (plan.direction == "any")
    return way and has.get(name.rsplit("_", maxsplit=1)[-1], True)


_ENDS = {"in": "m", "out": "m", "any": "E"}
LINKS = WholeFormat(
    files={
        f"{way}_{name}": form.format(size)
        for way, size in _ENDS.items()
        for name, form in (
            ("offsets", "<u8[n + 1]"),
            ("neighbours", "<u4[{}]"),
            ("weights", "<f4[{}]"),
        )
    }
    | {NORMS: "<f8[n, 2]", DEGREES: "<f8[n]"},
    has=_has,
)
"""The ``links`` layout."""

_NO_NORMS = np.empty((0, 2))


class LinksReader(Reader):
    """Base of readers of links: ``rows`` in the measure's direction, ``columns`` in the opposite
    one.
    """

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        way = part.measure.looks_at(part.direction)
        self.rows, self.columns = part.links(way), part.links(opposite(way))
        self._ways = way, opposite(way)

    def _damaged(self, what: str = "neighbours", columns: bool = False) -> Damaged:
        return self.part.damaged_file(f"{self._ways[columns]}_{what}")


class CommonReader(LinksReader):
    """The ``links`` layout for ``cocitation`` and ``coupling``."""

    @cached_property
    def _sums(self) -> Floats:
        return self.part.array(NORMS)

    def _norms(self, power: int) -> Floats:
        """Return float64[nodes, 2]; empty for power 0, for which kernels do not read norms."""
        return self._sums if power else _NO_NORMS

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself unless the form is a count."""
        power, form = _chosen(settings)
        if first == second and settings[FORM] != "count":
            return Estimate(float(GRAINS), 0.0)
        rows, members = self.rows, self.columns.offsets
        pair = np.int64(first), np.int64(second)
        links = rows.offsets, rows.neighbors, members, self._norms(power)
        grains = float(neighbors.pair(*links, *pair, power, form))
        if grains == neighbors.DAMAGED:
            raise self._damaged()
        return Estimate(grains, 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the common neighbors, with their weights."""
        score = self.score(first, second, settings)
        rows, members = self.rows, self.columns.offsets
        cuts = (rows.offsets[node : node + 2].tolist() for node in (first, second))
        mine, theirs = (rows.neighbors[begin:end] for begin, end in cuts)
        common = np.intersect1d(mine, theirs, assume_unique=True)
        if common.size and int(common.max()) >= self.part.nodes:
            raise self._damaged()
        power, _ = _chosen(settings)
        sizes = members[common + np.int64(1)] - members[common]
        worths = np.log(self.part.nodes / sizes) ** power
        return apportioned(score, common, worths, lambda node: ([first, node], [second, node]))

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """For each node, sum the weights of common neighbors, normalize, and add to the totals."""
        power, form = _chosen(settings)
        rows, columns, me = self.rows, self.columns, np.int64(node)
        values, used = scratch.scores, scratch.used
        links = rows.offsets, rows.neighbors, columns.offsets, columns.neighbors
        count = int(neighbors.gather(*links, me, power, values, used))
        if count == neighbors.DAMAGED:
            raise self._damaged()
        neighbors.normalize(values, used, count, me, rows.offsets, self._norms(power), power, form)
        self.settle_exact(scratch, count)


def _chosen(settings: PartSettings) -> tuple[int, int]:
    """Return (power of the weights, form) for kernels."""
    form = settings[FORM]
    power = 0 if not settings[IDF] else 2 if form == "cosine" else 1
    return power, FORMS.index(form)


_ROUNDS, _ENOUGH = 100, 1e-10


class _Vicinity(NamedTuple):
    """A node's vicinity: ``nodes``, ascending, with authorities in whole ``grains``, and ``hubs``
    scores; and the links between them, by position in ``nodes``.
    """

    nodes: Ids
    grains: Floats
    hubs: Floats
    sources: Ints
    targets: Ints


class CompanionReader(LinksReader):
    """The ``links`` layout for ``companion``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._last: tuple[int, int, _Vicinity] | None = None

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the authority of ``second`` around ``first``."""
        found = self._around(first, settings)
        place = int(np.searchsorted(found.nodes, second))
        there = place < found.nodes.size and int(found.nodes[place]) == second
        return Estimate(float(found.grains[place]) if there else 0.0, 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the authorities of all other nodes around ``node`` to the totals."""
        found = self._around(node, settings)
        scratch.scores[found.nodes, 0] = np.where(found.nodes == node, 0.0, found.grains)
        scratch.used[: found.nodes.size] = found.nodes
        self.settle_exact(scratch, found.nodes.size)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the nodes that link to ``second``, weighted by hub score."""
        found = self._around(first, settings)
        score = self.score(first, second, settings)
        there = found.sources[found.nodes[found.targets] == second]
        hubs, times = np.unique(there, return_counts=True)  # "any": mutual links are two
        worths = times * found.hubs[hubs]
        return apportioned(score, found.nodes[hubs], worths, lambda node: ([], []))

    def _around(self, node: int, settings: PartSettings) -> _Vicinity:
        """Return the node's vicinity; caches the last one."""
        own = settings.of_graph((MAX_DEGREE,), self.rows.edges)
        max_degree, last = own[MAX_DEGREE], self._last
        if last is not None and last[:2] == (node, max_degree):
            return last[2]
        me = np.array([node], np.uint32)
        parents, _ = self._neighbors(self.rows, me)
        children, _ = self._neighbors(self.columns, me)
        siblings, _ = self._neighbors(self.columns, self._narrow(self.columns, parents, max_degree))
        mates, _ = self._neighbors(self.rows, self._narrow(self.rows, children, max_degree))
        nodes = np.unique(np.concatenate([me, parents, children, siblings, mates]))
        linking, targets = self._neighbors(self.rows, nodes)
        places = np.searchsorted(nodes, linking)
        inside = nodes[np.minimum(places, nodes.size - 1)] == linking
        sources, targets = places[inside], targets[inside]
        authorities, hubs = _hits(sources, targets, nodes.size)
        found = _Vicinity(nodes, np.rint(authorities * GRAINS), hubs, sources, targets)
        self._last = node, max_degree, found
        return found

    def _narrow(self, links: Links, nodes: Ids, max_degree: int) -> Ids:
        begins, ends = self._ends(links, nodes)
        return nodes[ends - begins <= max_degree]

    def _ends(self, links: Links, nodes: Ids) -> tuple[Ints, Ints]:
        """Return (begins, ends) of the nodes' rows; raises :class:`Damaged`."""
        begins = links.offsets[nodes].astype(np.int64)
        ends = links.offsets[nodes.astype(np.int64) + 1].astype(np.int64)
        if (begins > ends).any() or (ends > links.edges).any() or (begins < 0).any():
            raise self._damaged("offsets", links is self.columns)
        return begins, ends

    def _neighbors(self, links: Links, nodes: Ids) -> tuple[Ids, Ints]:
        """Return the neighbors of ``nodes``, row after row, and the index in ``nodes`` of each."""
        check()
        begins, ends = self._ends(links, nodes)
        at, owner = entries_of(begins, ends - begins)
        found: Ids = links.neighbors[at]
        if found.size and int(found.max()) >= self.part.nodes:
            raise self._damaged(columns=links is self.columns)
        return found, owner


def _hits(sources: Ints, targets: Ints, nodes: int) -> tuple[Floats, Floats]:
    """Return float64[nodes] authorities and hubs, each with sum 1, or all 0 without links."""
    authorities: Floats = np.zeros(nodes)
    hubs: Floats = np.ones(nodes)
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
