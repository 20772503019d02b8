"""Exact queries on links: common neighbors (cocitation, coupling) and companions.

A pair merges two rows of neighbors; a list is a row of the sparse product of the links with their
transpose. Both read neighbors in ascending order, so sums are equal to the bit
(``kernels/neighbors.py``). A list costs one addition for each link of each neighbor, 1 to 3 ns.

Companions are the HITS authorities in a node's vicinity (``measures/companion.py``). Pairs and
lists need the whole vector, so a reader caches the last one; it needs 40 bytes for each link of the
vicinity. Source: Small 1973; Kessler 1963 (``measures/cocitation.py``); Dean, Henzinger 1999, 3.1.
"""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from cocite.constants import GRAINS, Floats, Ids, Ints
from cocite.deadline import check
from cocite.graph.blocks import Links
from cocite.index.layouts.contract import PartPlan, WholeFormat
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import (
    NOTHING,
    Estimate,
    Graphs,
    Paths,
    QueryScratch,
    Reader,
    Reasons,
    apportioned,
)
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


class LinksFormat(WholeFormat):
    """The layout ``links``."""

    files: ClassVar[dict[str, str]] = {
        "in_offsets": "<u8[n + 1]",
        "in_neighbours": "<u4[m]",
        "in_weights": "<f4[m]",
        "out_offsets": "<u8[n + 1]",
        "out_neighbours": "<u4[m]",
        "out_weights": "<f4[m]",
        "any_offsets": "<u8[n + 1]",
        "any_neighbours": "<u4[E]",
        "any_weights": "<f4[E]",
        NORMS: "<f8[n, 2]",
        DEGREES: "<f8[n]",
    }

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """Return the files of in-links and out-links, or of merged links for ``any``; and those of
        weights, norms and degrees if the part uses them.
        """
        way, weighted = plan.direction == "any", plan.weighted
        has = {"weights": weighted, NORMS: has_norms(plan), DEGREES: has_degrees(plan)}
        return {
            name: form
            for name, form in cls.files.items()
            if has.get(name.split("_")[-1], True)
            and ("_" not in name or name.startswith("any_") == way)
        }


_NO_NORMS = np.empty((0, 2))


class CommonReader(Reader):
    """The layout ``links`` for ``cocitation`` and ``coupling``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._way = part.measure.looks_at(part.direction)
        self._rows = part.links(self._way)
        self._columns = part.links(opposite(self._way))

    @cached_property
    def _sums(self) -> Floats:
        return self.part.array(NORMS)

    def _norms(self, power: int) -> Floats:
        """Return float64[nodes, 2]; empty for power 0, as kernels then do not read norms."""
        return self._sums if power else _NO_NORMS

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself unless the form is a count."""
        from cocite.kernels import neighbors

        power, form = _chosen(settings)
        if first == second and settings[FORM] != "count":
            return Estimate(float(GRAINS), 0.0)
        rows, members = self._rows, self._columns.offsets
        pair = np.int64(first), np.int64(second)
        links = rows.offsets, rows.neighbors, members, self._norms(power)
        grains = float(neighbors.pair(*links, *pair, power, form))
        if grains == neighbors.DAMAGED:
            raise self.part.damaged_file(f"{self._way}_neighbours")
        return Estimate(grains, 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the common neighbors, with their weights."""
        score = self.pair(first, second, settings).grains / GRAINS
        rows, members = self._rows, self._columns.offsets
        cuts = (rows.offsets[node : node + 2].tolist() for node in (first, second))
        mine, theirs = (rows.neighbors[begin:end] for begin, end in cuts)
        common = np.intersect1d(mine, theirs, assume_unique=True)
        if common.size and int(common.max()) >= self.part.nodes:
            raise self.part.damaged_file(f"{self._way}_neighbours")
        power, _ = _chosen(settings)
        sizes = members[common + np.int64(1)] - members[common]
        worths = np.log(self.part.nodes / sizes) ** power
        return apportioned(score, common, worths, lambda node: ([first, node], [second, node]))

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add up the common neighbors with all nodes, normalize, and add to the totals."""
        from cocite.kernels import neighbors

        power, form = _chosen(settings)
        rows, columns, me = self._rows, self._columns, np.int64(node)
        values, used = scratch.scores, scratch.used
        links = rows.offsets, rows.neighbors, columns.offsets, columns.neighbors
        count = int(neighbors.gather(*links, me, power, values, used))
        if count == neighbors.DAMAGED:
            raise self.part.damaged_file(f"{self._way}_neighbours")
        neighbors.normalize(values, used, count, me, rows.offsets, self._norms(power), power, form)
        self.settle_exact(scratch, count)


def _chosen(settings: PartSettings) -> tuple[int, int]:
    """Return (power of the weights, form) for kernels."""
    from cocite.kernels.neighbors import FORMS

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


class CompanionReader(Reader):
    """The layout ``links`` for ``companion``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        way = part.measure.looks_at(part.direction)
        self._ins, self._outs = part.links(way), part.links(opposite(way))
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
        score = self.pair(first, second, settings).grains / GRAINS
        if score == 0:
            return NOTHING
        there = found.sources[found.nodes[found.targets] == second]
        hubs, times = np.unique(there, return_counts=True)  # "any": mutual links are two

        def path(node: int) -> Paths:
            return [], []

        return apportioned(score, found.nodes[hubs], times * found.hubs[hubs], path)

    def _around(self, node: int, settings: PartSettings) -> _Vicinity:
        """Return the node's vicinity; caches the last one."""
        own = settings.of_graph((MAX_DEGREE,), self._ins.edges)
        max_degree, last = own[MAX_DEGREE], self._last
        if last is not None and last[:2] == (node, max_degree):
            return last[2]
        me = np.array([node], np.uint32)
        parents, _ = self._rows(self._ins, me)
        children, _ = self._rows(self._outs, me)
        siblings, _ = self._rows(self._outs, self._narrow(self._outs, parents, max_degree))
        mates, _ = self._rows(self._ins, self._narrow(self._ins, children, max_degree))
        nodes = np.unique(np.concatenate([me, parents, children, siblings, mates]))
        linking, targets = self._rows(self._ins, nodes)
        places = np.searchsorted(nodes, linking)
        inside = nodes[np.minimum(places, nodes.size - 1)] == linking
        sources, targets = places[inside], targets[inside]
        authorities, hubs = _hits(sources, targets, nodes.size)
        found = _Vicinity(nodes, np.rint(authorities * GRAINS), hubs, sources, targets)
        self._last = node, max_degree, found
        return found

    def _narrow(self, links: Links, nodes: Ids, max_degree: int) -> Ids:
        """Return the ``nodes`` with at most ``max_degree`` links."""
        begins, ends = self._ends(links, nodes)
        return nodes[ends - begins <= max_degree]

    def _ends(self, links: Links, nodes: Ids) -> tuple[Ints, Ints]:
        """Return (begins, ends) of the nodes' rows; raises :class:`Damaged`."""
        begins = links.offsets[nodes].astype(np.int64)
        ends = links.offsets[nodes.astype(np.int64) + 1].astype(np.int64)
        if (begins > ends).any() or (ends > links.edges).any() or (begins < 0).any():
            raise self._damaged(links, "offsets")
        return begins, ends

    def _rows(self, links: Links, nodes: Ids) -> tuple[Ids, Ints]:
        """Return the neighbors of ``nodes``, row after row, and each row's index in ``nodes``."""
        check()
        begins, ends = self._ends(links, nodes)
        sizes = ends - begins
        owner = np.repeat(np.arange(nodes.size), sizes)
        at = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begins[owner]
        found: Ids = links.neighbors[at]
        if found.size and int(found.max()) >= self.part.nodes:
            raise self._damaged(links, "neighbours")
        return found, owner

    def _damaged(self, links: Links, what: str) -> Exception:
        way = self.part.measure.looks_at(self.part.direction)
        return self.part.damaged_file(f"{way if links is self._ins else opposite(way)}_{what}")


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
