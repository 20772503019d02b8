"""Answers with an unseen node in the layout ``rows``.

The rows of the unseen node, and of 32 nodes within two links, are computed on the extended links,
as in a rebuilt index. Linked nodes are chosen first, then nodes with the fewest links. All other
rows stay as stored, and contain the unseen node by symmetry: v's row contains it with the same code
with which its row contains v.

So its scores differ from those of a rebuilt index only by the node's effect on stored rows. Scores
between other nodes do not change.

The first query copies the links, makes one pass over them for neighbor weights, and computes one
list and one push for each of these nodes.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cocite.constants import GRAINS, Floats, Ids
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Estimate, Graphs, QueryScratch, Reader, Reasons
from cocite.index.layouts.rows.fusion import Pusher, degrees_of, encode
from cocite.index.layouts.rows.fusion_reader import Row, RowsReader, shared_nodes
from cocite.index.layouts.rows.neighbors import Rows, lists_of
from cocite.index.layouts.rows.reader import own_reasons
from cocite.kernels.totals import settle_exact
from cocite.measures import PartSettings
from cocite.measures.fusion import OWN, SIZE, SIZES
from cocite.measures.snn import MAX_DEGREE

_CHANGED = 32
"""Number of nearby nodes whose rows are recomputed."""


class UnseenRowsReader(Reader):
    """Replaces the reader of ``rows`` for indexes with an unseen page."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._draft, self._node, self._stored = part, part.nodes - 1, RowsReader(part.built)

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself."""
        if self._node not in (first, second):
            return self._stored.pair(first, second, settings)
        other = second if first == self._node else first
        return Estimate(GRAINS if other == self._node else float(self._scores[other]), 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the scores of all other nodes; the unseen node's scores are cached."""
        if node == self._node:
            others, grains = np.flatnonzero(self._scores), self._scores
        else:
            others, grains = np.array([self._node]), np.zeros(self._node + 1)
            grains[self._node] = self._scores[node]
            self._stored.gather(node, settings, scratch)
        values, used = scratch.sums.view(np.float64), scratch.used
        values[others, 0] = grains[others]
        used[: others.size] = others
        own = scratch.totals, scratch.touched
        weight, have = self.part.weight, scratch.have
        scratch.have = settle_exact(values, used, others.size, weight, *own, have)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the nodes that two rows of any family share."""
        if self._node not in (first, second):
            return self._stored.reasons(first, second, settings, graphs)
        families = range(len(self._stored.weights))
        pairs = ((self._row(each, first), self._row(each, second)) for each in families)
        weighed = zip(self._stored.weights, pairs, strict=True)
        nodes, shares = shared_nodes(weighed)
        return own_reasons(self.part, self.part.nodes, (first, second), nodes, shares)

    def _row(self, family: int, node: int) -> Row:
        """Return a node's recomputed row, or its stored row with the unseen node."""
        made = self._new_rows[family]
        if node in made:
            return made[node]
        ids, codes = self._stored.row(family, node)
        own_ids, own_codes = made[self._node]
        held = own_codes[own_ids == node]
        return np.append(ids, np.full(held.size, self._node, np.uint32)), np.append(codes, held)

    @cached_property
    def _scores(self) -> Floats:
        """Return float64[nodes + 1]: the unseen node's scores in grains; its own score is 0."""
        total = np.zeros(self._node + 1)
        for number, weight in enumerate(self._stored.weights):
            made = self._new_rows[number]
            ids, codes = made[self._node]
            common, sums = np.zeros(self._node + 1), np.append(self._stored.norms(number), 0.0)
            for node, code in zip(ids.tolist(), codes.tolist(), strict=True):
                if node == self._node:
                    common[ids] += np.minimum(codes, code) ** 2
                else:
                    holders, held = self._stored.column(number, node)
                    common[holders] += np.minimum(held, code) ** 2
            sums[ids] += codes**2
            for node, (others, values) in made.items():
                _, here, there = np.intersect1d(ids, others, return_indices=True)
                common[node] = (np.minimum(codes[here], values[there]) ** 2).sum()
                sums[node] = (values**2).sum()
            found = np.flatnonzero(common)
            union = (codes**2).sum() + sums[found] - common[found]
            total[found] += weight * (common[found] / union)
        total[self._node] = 0.0
        return np.rint(total * GRAINS)

    # -- rows ----------------------------------------------------------------------------

    @cached_property
    def _new_rows(self) -> list[dict[int, Row]]:
        """Return the rows of the unseen node and of nearby nodes, for each family."""
        pages, scales = np.append(self._linked, np.uint32(self._node)), self._stored_scales
        families = [encode(self._pushed(pages), scales[-1])]
        if MAX_DEGREE in self._draft.settings:
            families.insert(0, encode(self._lists(pages), scales[0]))
        found = []
        for counts, ids, codes, _ in families:
            ends = np.cumsum(counts).astype(np.int64)[:-1]
            rows = zip(np.split(ids, ends), np.split(codes.astype(np.float64), ends), strict=True)
            found.append(dict(zip(pages.tolist(), rows, strict=True)))
        return found

    @property
    def _stored_scales(self) -> list[float]:
        found: list[float] = self._draft.built.array("scales").tolist()
        return found

    @property
    def _sizes(self) -> tuple[int, int]:
        return SIZES[self._draft.settings[SIZE]]

    @property
    def _linked(self) -> Ids:
        """Return up to 32 nodes within two links of the unseen node, preferring near nodes, then
        nodes with few links.
        """
        page, links = self._draft.ends.page, self._draft.ends.links("any", self.part.weighted)
        nodes = np.union1d(page.out, page.into).astype(np.uint32)
        chosen = nodes[:0]
        for _ in range(2):
            sizes = links.offsets[nodes + np.int64(1)] - links.offsets[nodes]
            order = np.argsort(sizes, kind="stable")
            chosen = np.append(chosen, nodes[order])[:_CHANGED]
            rows = [links.neighbors[links.offsets[v] : links.offsets[v + 1]] for v in chosen]
            known = np.append(chosen, np.uint32(self._node))
            nodes = np.setdiff1d(np.concatenate([nodes[:0], *rows]), known)
        return np.sort(chosen)

    def _lists(self, pages: Ids) -> Rows:
        """Return the lists of ``pages``, ascending."""
        part = self._draft
        ins, outs = part.ends.links("in", False), part.ends.links("out", False)
        chosen = part.direction, part.settings[MAX_DEGREE], self._sizes[0] - 1
        return lists_of(ins, outs, *chosen, pages, OWN)

    def _pushed(self, pages: Ids) -> Rows:
        """Return the pushed rows of ``pages``, ascending."""
        links = self._draft.ends.links("any", self.part.weighted)
        odd = float(self._draft.built.array("odd")[0])
        pusher = Pusher(links, degrees_of(links), self._sizes[1], odd)
        made = [pusher(range(page, page + 1)) for page in pages.tolist()]
        counts, ids, values = (np.concatenate(each) for each in zip(*made, strict=True))
        return counts, ids, values
