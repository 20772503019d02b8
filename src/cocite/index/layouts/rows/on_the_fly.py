"""Asking rows with a draft: what a question needs of them, and nobody stored, is made for it.

Lists of nearest pages: that of the node is made, then those of everybody who may have any of its
pages in a list. Who that is follows from nearness, which is symmetric to the bit, and from the
lists of the index without the draft. near(u, v) is a quotient of sums of worths: if no worth
changes by more than a share r of itself, near changes by (1 + r) / (1 - r) at most.

    changed     the draft, what is linked with it, and all neighbors of pages whose worth changes
                by more than r = 1 %, as their number of members does
    floor(v)    the nearness of the last page of v's list as it was, less what near may change by

Pages of v's list that are not changed are as near as the floor still; if those are all, what is
less near is not in the list. So lists are made of v where a page of the node's list is as near to v
as the floor, where v is changed, or has a changed page in its list that is not near enough any
more. Scores are those of an index of all lists, to the bit. Cost: the nearness of everybody to some
hundred pages and some hundred lists, 20 microseconds each (cnr-2000); and once for all drafts of an
open index a pass over its lists and links. Source: ``measures/snn.py``.

Features: one page more changes the PageRank of all, so the whole part is made by its builder, once,
in temporary files; at the cost of a build. Words: a draft has no text, so its row is empty.
"""

from __future__ import annotations

import math
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS
from cocite.errors import ResourceError
from cocite.graph.blocks import Links
from cocite.index.layouts.on_the_fly import DraftPart
from cocite.index.layouts.part import StoredPart
from cocite.index.layouts.reader import Estimate, Graphs, Ids, QueryScratch, Reader, Reasons
from cocite.index.layouts.rows.neighbors import room
from cocite.index.layouts.rows.pagesim import FeaturesBuilder
from cocite.index.layouts.rows.reader import FeatureReader, WordsReader, chosen_form, list_reasons
from cocite.measures import PartSettings
from cocite.measures.pagesim import MOST_STEPS, RADIUS, THRESHOLD
from cocite.measures.snn import MAX_DEGREE, NEIGHBORS
from cocite.options import opposite
from cocite.storage import map_array

_SIDES = {"in": 1, "out": 2, "both": 3}
_SHARE = 0.01
"""By how much of itself a worth may change, of pages that do not count as changed."""
_ROUNDING = 1e-6
_MOST_ENTRIES = 1 << 22
_WAYS = {"in": ("in", "out"), "out": ("out", "in")}

Values = NDArray[np.float32]
Pair = tuple[NDArray[np.float64], NDArray[np.float64]]


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


class OnTheFlyNeighborReader(Reader):
    """In the place of the layout ``nearest``."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(part)
        self._drawn = part
        self._k = min(part.settings[NEIGHBORS], max(1, part.nodes - 1))
        self._ins, self._outs = part.links("in"), part.links("out")
        self._rooms = threading.local()
        self._ratio, self._moved = 0.0, dict[str, NDArray[np.int64]]()
        self._weights = {side: self._weighed(side) for side in ("in", "out")}
        self._sides = (
            (self._ins.offsets, self._ins.neighbors),
            (self._outs.offsets, self._outs.neighbors),
            self._weights["in"],
            self._weights["out"],
            (_SIDES[part.direction], 1.0),
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
        listed, _ = self._lists(np.array([node], np.uint32)).of(node)
        others = self._reaching(listed, self._floors)
        others = np.setdiff1d(np.union1d(others, listed), [node]).astype(np.uint32)
        values, used = scratch.scores, scratch.used
        for begin in range(0, others.size, size := max(1, _MOST_ENTRIES // (self._k + 1))):
            piece = others[begin : begin + size]
            values[piece, 0] = self._scores(node, piece, settings)
        used[: others.size] = others
        self.settle_exact(scratch, others.size)

    def _scores(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        """float64[h]: the scores of a node with others, none of them itself, in grains."""
        from cocite.kernels import features

        form, power, mutual = chosen_form(settings)
        lists = self._lists(np.unique(np.append(others, np.uint32(node))))
        lists = self._marked(lists) if mutual else lists
        counted = np.where(lists.values > 0, lists.values, 0) if mutual else lists.values
        owner = np.repeat(np.arange(lists.pages.size), np.diff(lists.offsets))
        sums = np.bincount(owner, counted.astype(np.float64) ** power, lists.pages.size)
        norms = np.append(sums, sums[np.searchsorted(lists.pages, node)])
        found = np.empty(lists.pages.size)
        table = lists.offsets, lists.nodes, lists.values, norms
        features.compare(*lists.of(node), table, form, mutual, found)
        scores: NDArray[np.float64] = found[np.searchsorted(lists.pages, others)]
        return scores

    # -- lists -----------------------------------------------------------------------------

    def _room(self) -> tuple[NDArray[Any], ...]:
        """What kernels add up in, all 0 between two calls; each thread has its own."""
        if not hasattr(self._rooms, "room"):
            self._rooms.room = room(self.part.nodes, self._k)
        found: tuple[NDArray[Any], ...] = self._rooms.room
        return found

    def _lists(self, pages: Ids) -> Lists:
        """Those of some pages, ascending."""
        from cocite.kernels import near

        counts, size = np.zeros(pages.size, np.uint64), pages.size * (self._k + 1)
        nodes, values = np.empty(size, np.uint32), np.empty(size, np.float32)
        used = near.closest_of(*self._sides, pages, self._room(), (counts, nodes, values))
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
        from cocite.kernels import near

        nodes = self.part.nodes
        out = floors, np.zeros(nodes, bool), np.empty(nodes, np.uint32)
        count = near.reaching(*self._sides, pages, self._room(), out)
        found: Ids = out[2][:count]
        return found

    # -- what pages tell -------------------------------------------------------------------

    def _weighed(self, side: str) -> Pair:
        """What each page tells as a neighbor by a side, and what all neighbors of each tell.

        Of a draft most is what it would be if it had no links, which is kept for all drafts: but
        for the worths of the pages that it is linked with, and the sums over rows that have them.
        """
        part, max_degree = self._drawn, self.part.settings[MAX_DEGREE]
        rows, columns = self._ways(side)
        self._moved[side] = np.empty(0, np.int64)
        worths, whole, ratio = self._alone(part, side)
        worths, whole = worths.copy(), whole.copy()
        page, me = part.ends.page, part.nodes - 1
        linked = np.append(np.union1d(page.out, page.into).astype(np.int64), me)
        sizes = columns.offsets[linked + 1].astype(np.int64) - columns.offsets[linked].astype(
            np.int64
        )
        own = np.array([_holds(columns, node) for node in linked.tolist()])
        before = worths[linked]
        for node, size in zip(linked.tolist(), (sizes + ~own).tolist(), strict=True):
            worths[node] = math.log(part.nodes / size) if size <= max_degree else 0.0
        changed = linked[worths[linked] != before]
        ratios = _ratios(before, worths[linked])[:-1]
        self._ratio = max(self._ratio, ratio, float(ratios[ratios <= _SHARE].max(initial=0)))
        self._moved[side] = linked[:-1][ratios > _SHARE]
        dirty = np.unique(np.concatenate([linked, _entries(columns, changed)[0], changed]))
        whole[dirty] = _row_sums(rows, dirty, worths)
        return worths, whole

    def _ways(self, side: str) -> tuple[Links, Links]:
        """The rows that a side compares, and the same by their other end."""
        return (self._ins, self._outs) if side == "in" else (self._outs, self._ins)

    def _alone(self, part: DraftPart, side: str) -> tuple[NDArray[Any], NDArray[Any], float]:
        """Worths and sums with a page that has no links; by which share of itself a worth has
        changed at most.
        """
        key = f"alone-{side}"
        if key not in part.kept:
            rows, columns = (part.ends.before(way, False) for way in _WAYS[side])
            was = _worths(columns, part.settings[MAX_DEGREE])
            rows, columns = (_longer(links) for links in (rows, columns))
            worths = _worths(columns, part.settings[MAX_DEGREE])
            ratio = float(_ratios(was, worths[:-1]).max(initial=0))
            part.kept[key] = worths, _sums(rows, worths), ratio
        found: tuple[NDArray[Any], NDArray[Any], float] = part.kept[key]
        return found

    # -- what is known of lists without making them ----------------------------------------

    def _needed(self) -> Values:
        """float32[nodes]: a page nearer to v than that may be in v's list; no other one is."""
        floors = np.zeros(self.part.nodes, np.float32)
        share = self._ratio
        if share > _SHARE:
            return floors
        changed = self._changed(self._drawn)
        slack = np.float32((1 - share) / (1 + share) * (1 - _ROUNDING))
        np.multiply(self._lasts(self._drawn), slack, out=floors[:-1])
        floors[self._fallen(self._drawn.built, changed, floors)] = 0
        floors[changed] = 0
        return floors

    def _fallen(self, built: StoredPart, pages: Ids, floors: Values) -> NDArray[np.bool_]:
        """bool[nodes]: who had one of some pages in its list that is not near enough any more."""
        from cocite.kernels import near

        marks = np.zeros(self.part.nodes, bool)
        table = floors, built.array("holders.offsets"), built.array("holders.nodes"), marks
        if not near.fallen(*self._sides, pages, self._room(), table):
            raise built.damaged_file("holders.nodes")
        return marks

    def _changed(self, part: DraftPart) -> Ids:
        """The pages whose nearness to others may have changed by more than worths have."""
        page, newcomer = part.ends.page, np.uint32(part.nodes - 1)
        found = [np.append(np.union1d(page.out, page.into), newcomer)]
        for side, moved in self._moved.items():
            if _SIDES[part.direction] & _SIDES[side]:
                found.append(_entries(self._ways(side)[1], moved)[0])
        return np.unique(np.concatenate(found)).astype(np.uint32)

    def _lasts(self, part: DraftPart) -> Values:
        """float32[nodes before]: how near the last page of each list was; 0 of lists that are not
        full, which have all that is near.
        """
        if "lasts" not in part.kept:
            built = part.built
            offsets, values = built.array("nearest.offsets"), built.array("nearest.values")
            lasts = np.minimum.reduceat(np.abs(values), offsets[:-1].astype(np.int64))
            sizes = np.diff(offsets.astype(np.int64))
            part.kept["lasts"] = np.where(sizes > part.settings[NEIGHBORS], lasts, np.float32(0))
        found: Values = part.kept["lasts"]
        return found


def _worths(columns: Links, max_degree: int) -> NDArray[np.float64]:
    from cocite.kernels import near

    worths = np.zeros(columns.nodes)
    table, degree = (columns.offsets, columns.neighbors), np.int64(max_degree)
    near.weigh(*table, degree, 1.0, 0, columns.nodes, worths)
    return worths


def _sums(rows: Links, worths: NDArray[np.float64]) -> NDArray[np.float64]:
    from cocite.kernels import near

    whole = np.zeros(rows.nodes)
    near.norms(rows.offsets, rows.neighbors, worths, 1.0, 0, rows.nodes, whole)
    return whole


def _longer(links: Links) -> Links:
    """With one page more that has no links."""
    return Links(np.append(links.offsets, links.offsets[-1:]), links.neighbors)


def _holds(links: Links, node: int) -> bool:
    """Whether a page is among its own neighbors."""
    begin, end = links.offsets[node : node + 2].astype(np.int64).tolist()
    return bool((links.neighbors[begin:end] == node).any())


def _entries(links: Links, nodes: NDArray[np.int64]) -> tuple[Ids, NDArray[np.int64]]:
    """All neighbors of some nodes, row behind row, and whose they are, by place."""
    begins = links.offsets[nodes].astype(np.int64)
    sizes = links.offsets[nodes + 1].astype(np.int64) - begins
    owner = np.repeat(np.arange(nodes.size), sizes)
    places = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begins[owner]
    found: Ids = links.neighbors[places]
    return found, owner


def _row_sums(
    rows: Links, nodes: NDArray[np.int64], worths: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What the neighbors of some nodes and themselves tell, in the order of ``near.norms``."""
    neighbors, owner = _entries(rows, nodes)
    own = np.zeros(nodes.size, bool)
    own[owner[neighbors == nodes[owner]]] = True
    first = np.where(own, 0.0, worths[nodes])
    owners = np.concatenate((np.arange(nodes.size), owner))
    terms = np.concatenate((first, worths[neighbors]))
    found: NDArray[np.float64] = np.bincount(owners, terms, nodes.size).astype(np.float64)
    return found  # it adds in this order


def _ratios(was: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    """By which share of itself each worth has changed; inf where one is 0 and the other is not."""
    low, high = np.minimum(was, now), np.maximum(was, now)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(low == high, 0.0, np.where(low > 0, high / low - 1, math.inf))


# -- features ----------------------------------------------------------------------------


class OnTheFlyPageSimReader(FeatureReader):
    """In the place of the layout ``features``."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        super().__init__(_PartInMemory(part, _mapped_arrays(part)))


class _PartInMemory(StoredPart):
    """A part some of whose arrays were ``made`` just now; the others are those that were built."""

    def __init__(self, part: DraftPart, made: dict[str, NDArray[Any]]) -> None:
        names = list(StoredPart.__dataclass_fields__)
        super().__init__(**{name: getattr(part, name) for name in names})
        self.__dict__["made"], self.__dict__["built"] = made, part.built

    def array(self, name: str) -> NDArray[Any]:
        """The array ``name``."""
        made: dict[str, NDArray[Any]] = self.__dict__["made"]
        found: NDArray[Any] = made[name] if name in made else self.__dict__["built"].array(name)
        return found


class _Builder(FeaturesBuilder):
    """Of links that no graph on disk has."""

    def __init__(self, part: DraftPart) -> None:
        plan = replace(part.plan, weight=1.0)
        super().__init__(None, part.links(part.direction), plan, part.ends.means)  # type: ignore[arg-type]
        self.onward = part.links(opposite(part.direction))

    def too_many(self, source: int) -> ResourceError:
        """What to raise when the paths of a page take too many steps."""
        settings = self.plan.settings
        return ResourceError(
            f"with the draft the paths of a page take more than {settings[MOST_STEPS]:,} links, "
            f"with a radius of {settings[RADIUS]} and a threshold of {settings[THRESHOLD]:g}. Ask "
            "an index with a smaller --radius or a larger --threshold"
        )


def _mapped_arrays(part: DraftPart) -> dict[str, NDArray[np.generic]]:
    """The arrays of a part, mapped; their files have no names any more."""
    builder = _Builder(part)
    with tempfile.TemporaryDirectory(prefix="cocite-draft-") as folder:
        entries = builder.write(Path(folder), lambda done, total: None)
        start = len(builder.plan.prefix)
        return {name[start:]: map_array(Path(folder) / name, e) for name, e in entries.items()}


# -- text --------------------------------------------------------------------------------


class OnTheFlyWordsReader(WordsReader):
    """In the place of the layout ``text``."""

    def __init__(self, part: StoredPart) -> None:
        assert isinstance(part, DraftPart)
        offsets = part.built.array("texts.offsets")
        made = {"texts.offsets": np.append(offsets, offsets[-1:])}  # a row more
        super().__init__(_PartInMemory(part, made))
