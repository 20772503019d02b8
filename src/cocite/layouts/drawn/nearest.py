"""Asking lists of nearest pages that nobody stored: those that a question needs are made for it.

The list of the node is made; then those of everybody who may have any of its pages in a list. Who
that is follows from nearness, which is symmetric to the bit: x is in the list of v if near(x, v) is
among the best of v. Of a draft (``part.py``) the lists of the index without it say how near that
has to be. Scores are those of an index of all lists, to the bit.

    new pages, changed worths    near(u, v) = shared / (whole(u) + whole(v) - shared) is a quotient
                                 of sums of worths. If no worth changes by more than a share r of
                                 itself, near changes by no more than (1 + r) / (1 - r)
    changed    the draft, what is linked with it, and all neighbours of pages whose worth changes by
               more than r = 1 %, as their number of members does
    clean v    not changed, with none of these in its list, and none near enough to enter it

The list of a clean v is what it was but for what is as near as its last page, within the share of r
that near may have changed. So a page that is farther is not in it. Lists of all others that a page
of the list reaches are made, and compared.

Cost: the nearness of everybody to some hundred pages and some hundred lists, 20 microseconds each
(cnr-2000); and once for all drafts of an open index a pass over its lists and links.
Source: ``measures/shared_nearest.py``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.graph.rows import Links
from cocite.layouts.drawn.part import DraftPart, UnbuiltPart
from cocite.layouts.nearest.reader import chosen_form, list_reasons
from cocite.layouts.nearest.room import room
from cocite.layouts.reader import Estimate, Ids, Reader
from cocite.layouts.reasons import Graphs, Reasons
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings
from cocite.measures.shared_nearest import NEAREST, WIDEST

__all__ = ["DrawnNearestReader"]

_SIDES = {"in": 1, "out": 2, "both": 3}
_SHARE = 0.01
"""By how much of itself a worth may change, of pages that do not count as changed."""
_ROUNDING = 1e-6
_MOST_ENTRIES = 1 << 22
_WAYS = {"in": ("in", "out"), "out": ("out", "in")}

Values = NDArray[np.float32]


class Lists(NamedTuple):
    """Lists of ``pages`` (ascending): that of the i-th is from ``offsets[i]`` on."""

    pages: Ids
    offsets: NDArray[np.int64]
    nodes: Ids
    values: Values

    def of(self, page: int) -> tuple[Ids, Values]:
        """One of them."""
        at = int(np.searchsorted(self.pages, page))
        part = slice(int(self.offsets[at]), int(self.offsets[at + 1]))
        return self.nodes[part], self.values[part]

    @property
    def owners(self) -> Ids:
        """Whose list each entry is in."""
        return np.repeat(self.pages, np.diff(self.offsets))


class DrawnNearestReader(Reader):
    """In the place of the layout ``nearest``."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, UnbuiltPart)
        super().__init__(part)
        self._drawn = part
        self._k = min(part.settings[NEAREST], max(1, part.nodes - 1))
        self._ins, self._outs = part.links("in"), part.links("out")
        self._weights = _weights(self._ins, self._outs, part.settings[WIDEST])
        self._sides = (
            (self._ins.offsets, self._ins.neighbours),
            (self._outs.offsets, self._outs.neighbours),
            self._weights["in"],
            self._weights["out"],
            _SIDES[part.direction],
        )
        self._floors = self._needed()

    # -- the questions ---------------------------------------------------------------------

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes; a node is wholly similar to itself."""
        if first == second:
            return Estimate(float(GRAINS), 0.0)
        return Estimate(float(self._scores(first, np.array([second], np.uint32), settings)[0]), 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The pages in both lists, as the layout has it."""
        score = self.pair(first, second, settings).grains / GRAINS
        lists = self._lists(np.array(sorted((first, second)), np.uint32))
        lists = self._marked(lists) if chosen_form(settings)[2] else lists
        return list_reasons((first, second), score, lists.of(first), lists.of(second), settings)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Make the lists of all that may share any page with that of the node; compare."""
        from cocite.kernels import totals

        listed, _ = self._lists(np.array([node], np.uint32)).of(node)
        others = self._reaching(listed, self._floors)
        others = np.setdiff1d(np.union1d(others, listed), [node]).astype(np.uint32)
        values, used = scratch.sums.view(np.float64), scratch.used
        for begin in range(0, others.size, size := max(1, _MOST_ENTRIES // (self._k + 1))):
            piece = others[begin : begin + size]
            values[piece, 0] = self._scores(node, piece, settings)
        used[: others.size] = others
        scratch.have = int(
            totals.settle_exact(
                values,
                used,
                others.size,
                self.part.weight,
                scratch.totals,
                scratch.touched,
                scratch.have,
            )
        )

    def _scores(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        """float64[h]: the scores of a node with others, none of them itself, in grains."""
        from cocite.kernels import nearest

        form, power, mutual = chosen_form(settings)
        lists = self._lists(np.unique(np.append(others, np.uint32(node))))
        lists = self._marked(lists) if mutual else lists
        counted = np.where(lists.values > 0, lists.values, 0) if mutual else lists.values
        owner = np.repeat(np.arange(lists.pages.size), np.diff(lists.offsets))
        sums = np.bincount(owner, counted.astype(np.float64) ** power, lists.pages.size)
        norms = np.append(sums, sums[np.searchsorted(lists.pages, node)])
        found = np.empty(lists.pages.size)
        table = lists.offsets, lists.nodes, lists.values, norms
        nearest.compare(*lists.of(node), table, form, mutual, found)
        scores: NDArray[np.float64] = found[np.searchsorted(lists.pages, others)]
        return scores

    # -- lists -----------------------------------------------------------------------------

    def _room(self) -> tuple[NDArray[Any], ...]:
        """What kernels add up in."""
        return room(self.part.nodes, self._k)

    def _lists(self, pages: Ids) -> Lists:
        """Those of some pages, ascending."""
        from cocite.kernels import nearest

        counts, size = np.zeros(pages.size, np.uint64), pages.size * (self._k + 1)
        nodes, values = np.empty(size, np.uint32), np.empty(size, np.float32)
        used = nearest.closest_of(*self._sides, pages, self._room(), (counts, nodes, values))
        offsets = np.append(0, np.cumsum(counts.astype(np.int64)))
        return Lists(pages, offsets, nodes[:used], values[:used])

    def _marked(self, lists: Lists) -> Lists:
        """The same, with values below 0 of pages that have not the list's page in theirs."""
        nodes = np.int64(self.part.nodes)
        theirs = self._lists(np.unique(lists.nodes))
        there = np.sort(theirs.owners * nodes + theirs.nodes)
        asked = lists.nodes * nodes + lists.owners
        places = np.minimum(np.searchsorted(there, asked), there.size - 1)
        one_sided = there[places] != asked
        return lists._replace(values=np.where(one_sided, -lists.values, lists.values))

    def _reaching(self, pages: Ids, floors: Values) -> Ids:
        """Who is near enough to any of some pages."""
        from cocite.kernels import nearest

        nodes = self.part.nodes
        out = floors, np.zeros(nodes, bool), np.empty(nodes, np.uint32)
        count = nearest.reaching(*self._sides, pages, self._room(), out)
        found: Ids = out[2][:count]
        return found

    # -- what is known of lists without making them ----------------------------------------

    def _needed(self) -> Values:
        """float32[nodes]: a page nearer to v than that may be in v's list; no other one is."""
        floors = np.zeros(self.part.nodes, np.float32)
        if not isinstance(self._drawn, DraftPart):
            return floors
        changed, share = self._changed(self._drawn)
        if share > _SHARE:
            return floors
        slack = np.float32(((1 - share) / (1 + share)) ** 2 * (1 - _ROUNDING))
        floors[:-1] = self._lasts(self._drawn) * slack
        dirty = np.append(changed, self._holders(self._drawn, changed))
        floors[self._reaching(changed, floors)] = 0  # before lists of theirs are looked at
        floors[dirty] = 0
        return floors

    def _changed(self, part: DraftPart) -> tuple[Ids, float]:
        """The pages whose nearness to others may have changed by more than a share, and the share
        by which worths of the others' neighbours may have.
        """
        page, newcomer = part.ends.page, np.uint32(part.nodes - 1)
        found, most = [np.append(np.union1d(page.out, page.into), newcomer)], 0.0
        before = self._before(part)
        for side in ("in", "out"):
            if not _SIDES[part.direction] & _SIDES[side]:
                continue
            was, now = before[side], self._weights[side][0]
            ratio = _ratios(was, now[:-1])
            linked = np.union1d(page.out, page.into).astype(np.int64)
            moved = linked[ratio[linked] > _SHARE]
            ratio[moved] = 0
            most = max(most, float(ratio.max(initial=0)))
            columns = self._outs if side == "in" else self._ins
            cuts = [columns.offsets[y : y + 2].astype(np.int64).tolist() for y in moved.tolist()]
            found += [columns.neighbours[begin:end] for begin, end in cuts]
        return np.unique(np.concatenate(found)).astype(np.uint32), most

    def _before(self, part: DraftPart) -> dict[str, NDArray[np.float64]]:
        """What each page told without the draft, by side."""
        if "worths" not in part.kept:
            ins, outs = part.ends.before("in", False), part.ends.before("out", False)
            widest = part.settings[WIDEST]
            part.kept["worths"] = {
                "in": _worths(outs, widest),
                "out": _worths(ins, widest),
            }
        found: dict[str, NDArray[np.float64]] = part.kept["worths"]
        return found

    def _lasts(self, part: DraftPart) -> Values:
        """float32[nodes before]: how near the last page of each list was; 0 of lists that are not
        full, which have all that is near.
        """
        if "lasts" not in part.kept:
            built = part.built
            offsets, values = built.array("nearest.offsets"), built.array("nearest.values")
            lasts = np.minimum.reduceat(np.abs(values), offsets[:-1].astype(np.int64))
            sizes = np.diff(offsets.astype(np.int64))
            part.kept["lasts"] = np.where(sizes > part.settings[NEAREST], lasts, np.float32(0))
        found: Values = part.kept["lasts"]
        return found

    def _holders(self, part: DraftPart, pages: Ids) -> Ids:
        """Who had any of some pages in its list."""
        offsets, nodes = part.built.array("holders.offsets"), part.built.array("holders.nodes")
        known = pages[pages < part.nodes - 1]
        cuts = [offsets[page : page + 2].astype(np.int64).tolist() for page in known.tolist()]
        rows = [nodes[begin:end] for begin, end in cuts]
        return np.unique(np.concatenate([np.empty(0, np.uint32), *rows]))


def _worths(columns: Links, widest: int) -> NDArray[np.float64]:
    from cocite.kernels import nearest

    worths = np.zeros(columns.nodes)
    nearest.weigh(columns.offsets, columns.neighbours, np.int64(widest), 0, columns.nodes, worths)
    return worths


def _weights(
    ins: Links, outs: Links, widest: int
) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """By side: what each page tells as a neighbour, and what all neighbours of each tell."""
    from cocite.kernels import nearest

    found = {}
    for side, rows, columns in (("in", ins, outs), ("out", outs, ins)):
        worths, whole = _worths(columns, widest), np.zeros(rows.nodes)
        nearest.norms(rows.offsets, rows.neighbours, worths, 0, rows.nodes, whole)
        found[side] = worths, whole
    return found


def _ratios(was: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    """By which share of itself each worth has changed; inf where one is 0 and the other is not."""
    low, high = np.minimum(was, now), np.maximum(was, now)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low == high, 0.0, np.where(low > 0, high / low - 1, math.inf))
