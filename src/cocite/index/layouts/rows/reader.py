"""Queries on rows: lists of nearest pages, PageSim features, or words of texts.

A pair merges two rows; a list follows each entry of the node's row to all nodes with the same entry
(*holders*). Both sum in float64, in ascending order of entry ids, and round to whole grains, so
their scores are bit-identical. Scores are exact for the stored rows; ``certified`` bounds the
difference from the definition. The sums (``kernels/features.py``):

    nearest, text    products, or minima; divided by norms (``measures/snn.py``)
    features         min**2 / max; if normalized, divided by the root of the own scores' product

Source: ``measures/snn.py``, ``measures/tfidf.py``; Lin, King, Lyu, *PageSim*, sections 4.2 and 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, Floats, Ids
from cocite.index.layouts.contract import WANTED, WholeFormat
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
from cocite.kernels import features, neighbors
from cocite.kernels.neighbors import FORMS
from cocite.measures import PartSettings
from cocite.measures.pagesim import NORMALIZED
from cocite.measures.snn import FORM, MUTUAL

Row = tuple[Ids, NDArray[np.float32]]


def declared(
    kind: str, count: str, ids: str = "nodes", values: str = "values", item: str = "<f4"
) -> dict[str, str]:
    """Return the declarations of ``count`` rows, whose values have the dtype ``item``."""
    return {
        f"{kind}.offsets": f"<u8[{count} + 1]",
        f"{kind}.{ids}": "<u4[E]",
        f"{kind}.{values}": f"{item}[E]",
    }


class StoredRows:
    """A part's rows: offsets, ids, and values."""

    def __init__(
        self, part: StoredPart, kind: str, ids: str = "nodes", values: str = "values"
    ) -> None:
        self._part, self._kind = part, kind
        self.arrays = tuple(part.array(f"{kind}.{name}") for name in ("offsets", ids, values))
        self.count = self.arrays[0].size - 1

    def __call__(self, node: int) -> Row:
        """Return the node's row: ids, ascending, and values."""
        offsets, ids, values = self.arrays
        begin, end = int(offsets[node]), int(offsets[node + 1])
        if not begin <= end <= ids.size:
            raise self._part.damaged_file(f"{self._kind}.offsets")
        return ids[begin:end], values[begin:end]


class ListReader(Reader):
    """Base of readers of one list per node, and of its transpose, the holders."""

    kind, ids = "", "nodes"
    """Names of the lists' files."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self.listed = StoredRows(part, self.kind, self.ids)
        self._holders = StoredRows(part, "holders")

    def _pair(
        self, first: int, second: int, norms: Sequence[float], form: int, mutual: bool
    ) -> float:
        """Return the score of two different nodes in grains, by products or minima."""
        rows = *self.listed(first), *self.listed(second)
        return float(features.pair_rows(*rows, *norms, form, mutual))

    def _follow(self, node: int, scratch: QueryScratch, form: int, mutual: bool) -> int:
        """For each entry of the node's list, in ascending id order, add its contribution to the
        score of every list that contains the entry (its holders).
        """
        arrays = self._holders.arrays, form, mutual, scratch.scores, scratch.used
        return self._checked(features.gather_rows(*self.listed(node), *arrays))

    def _checked(self, count: int) -> int:
        if count == features.DAMAGED:
            raise self.part.damaged_file("holders.nodes")
        return int(count)

    def _shared(self, first: int, second: int) -> tuple[Ids, Floats]:
        """Return the common entries of two lists, and their values, float64[2, entries]."""
        (mine, values), (theirs, others) = self.listed(first), self.listed(second)
        common, here, there = np.intersect1d(mine, theirs, return_indices=True)
        return common, np.stack((values[here], others[there])).astype(np.float64)


class NearestReader(ListReader):
    """The ``nearest`` layout."""

    kind = "nearest"

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._norms = {False: part.array("norms"), True: part.array("mutual_norms")}

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself."""
        if first == second:
            return Estimate(float(GRAINS), 0.0)
        form, power, mutual = chosen_form(settings)
        norms = self._norms[mutual][:, power - 1]
        both = norms[first], norms[second]
        return Estimate(self._pair(first, second, both, form, mutual), 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the pages in both lists, without paths."""
        form, _, mutual = chosen_form(settings)
        common, both = self._shared(first, second)
        sound = (both > 0).all(axis=0) | (not mutual)
        both = np.abs(both)
        terms = np.where(sound, both.prod(axis=0) if form == 0 else both.min(axis=0), 0)
        score = self.score(first, second, settings)
        found = apportioned(score, common, terms, lambda node: ([], []))
        whose = self.part, self._holders.count, (first, second)
        return own_reasons(*whose, found.nodes, found.shares)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the contribution of each page in the node's list to all lists that contain it."""
        form, power, mutual = chosen_form(settings)
        count = self._follow(node, scratch, form, mutual)
        whose = np.int64(node), self.listed.arrays[0], self._norms[mutual]
        neighbors.normalize(scratch.scores, scratch.used, count, *whose, power, form)
        self.settle_exact(scratch, count)


def own_reasons(
    part: StoredPart, graph_nodes: int, pair: tuple[int, int], nodes: Ids, shares: Floats
) -> Reasons:
    """Return reasons from the graph's node ids and each node's contribution to a score.

    Only the two nodes have paths, because rows do not store why nodes are near. Contributions of
    nodes that are not in the index are unattributed.
    """
    here = np.full(nodes.size, True)
    if part.nodes != graph_nodes:
        kept = part.store.array(WANTED)
        places = np.minimum(np.searchsorted(kept, nodes), kept.size - 1).astype(np.uint32)
        here, nodes = kept[places] == nodes, places
    found = nodes[here]

    def path(row: int) -> Paths:
        one, other = ([each] * (int(found[row]) == each) for each in pair)
        return one, other

    return Reasons(found, shares[here], path, unattributed=float(shares[~here].sum()))


def chosen_form(settings: PartSettings) -> tuple[int, int, bool]:
    """Return (form, power of values in norms, whether one-sided entries are omitted)."""
    form = settings[FORM]
    return FORMS.index(form), 2 if form == "cosine" else 1, settings[MUTUAL]


OWN = "own"


FEATURES = WholeFormat(
    files=declared("holders", "n") | declared("features", "n") | {"cut": "<f4[n]", OWN: "<f8[n]"},
    has=lambda plan, name: name != OWN or plan.settings[NORMALIZED],
)
"""The ``features`` layout; only normalized scores need ``own``."""

_NO_NORMS = np.empty((0, 1))
_ROUNDING = 2.0**-22
"""Bound on a term's relative error, from at most three float32 roundings, and from float64 sums."""


class FeatureReader(ListReader):
    """The ``features`` layout."""

    kind = "features"

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._own: Floats | None = part.array(OWN) if part.settings[NORMALIZED] else None

    @property
    def unit(self) -> bool:
        """Return whether scores are normalized, and therefore at most 1."""
        return self._own is not None

    def _norms(self, *nodes: int) -> list[float]:
        """Return the norms of nodes; a score is divided by the root of two norms' product."""
        if self._own is None:
            return [1.0] * len(nodes)
        found = [float(self._own[node]) for node in nodes]
        if not all(0 < norm < np.inf for norm in found):
            raise self.part.damaged_file(OWN)
        return found

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node's similarity to itself is the sum of its features,
        or 1 if normalized.
        """
        norms = self._norms(first, second)
        return Estimate(self._pair(first, second, norms, neighbors.PAGESIM, False), 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the common features; only a node's own feature has a path."""
        common, both = self._shared(first, second)
        with np.errstate(invalid="ignore"):  # 0 / 0 if values are too small for float32
            terms = both.min(axis=0) ** 2 / both.max(axis=0)
        score = self.score(first, second, settings)

        def path(node: int) -> Paths:
            return [first] * (node == first), [second] * (node == second)

        return apportioned(score, common, terms, path)

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return error bounds for truncated features (``measures/pagesim.py``) and rounding.

        A node's similarity to itself is never too high, and too low by at most its truncated
        features. So a normalized score lies between its smallest value divided by the largest
        norms, and its largest value divided by the computed norms.
        """
        cut = self.part.array("cut").astype(np.float64)
        lost = cut[node] + cut[others]
        slack = np.column_stack((lost, 2 * lost))
        slack[others == node] = 0.0, cut[node]
        scores = np.array([self.score(node, v, settings) for v in others.tolist()])
        if self._own is None:
            return np.asarray(slack + _ROUNDING * scores[:, None] + 1 / GRAINS)
        for i, (other, found) in enumerate(zip(others.tolist(), scores.tolist(), strict=True)):
            one, two = self._norms(node, other)
            scale, rounding = float(np.sqrt(one * two)), 2 * _ROUNDING * found + 1 / GRAINS
            most = np.sqrt((self._own[node] + cut[node]) * (self._own[other] + cut[other]))
            low = max(0.0, (found * scale - slack[i, 0]) / most - rounding)
            high = min(1.0, found + slack[i, 1] / scale + rounding)
            slack[i] = (0.0, 0.0) if other == node else (found - low, high - found)
        return slack

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the contribution of each feature, in ascending id order, to all of its holders."""
        count = self._follow(node, scratch, neighbors.PAGESIM, False)
        self._norms(node)  # raises unless it is a valid divisor
        power, form, norms = 0, neighbors.COUNT, _NO_NORMS
        if self._own is not None:
            power, form, norms = 1, neighbors.PAGESIM, self._own.reshape(-1, 1)
        whose = np.int64(node), self._holders.arrays[0], norms
        neighbors.normalize(scratch.scores, scratch.used, count, *whose, power, form)
        self.settle_exact(scratch, count)


class WordsReader(ListReader):
    """The ``text`` layout."""

    kind, ids = "texts", "words"

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the cosine similarity of two nodes; a node scores 1 with itself."""
        if first == second:
            return Estimate(float(GRAINS), 0.0)
        grains = self._pair(first, second, (1.0, 1.0), neighbors.COSINE, False)
        return Estimate(min(grains, float(GRAINS)), 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add the contribution of each word to all pages that contain the word."""
        count = self._follow(node, scratch, neighbors.COSINE, False)
        sums, found = scratch.scores, scratch.used[:count]
        sums[found, 0] = np.minimum(np.rint(sums[found, 0] * GRAINS), GRAINS)
        sums[node, 0] = 0.0
        self.settle_exact(scratch, count)

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return error bounds for the rounding of stored weights; 0 for a node with itself."""
        scores = np.array([self.score(node, v, settings) for v in others.tolist()])
        slack = np.where((others == node) | (scores == 0), 0.0, _ROUNDING * scores + 1 / GRAINS)
        return np.column_stack((slack, slack))

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the common words, whose ids follow the node ids."""
        score = self.score(first, second, settings)
        shared, both = self._shared(first, second)
        if score <= 0 or not shared.size:
            return NOTHING
        terms = both.prod(axis=0)
        ids = np.arange(self.part.nodes, self.part.nodes + shared.size).astype(np.uint32)
        named = tuple(map(self._word, shared.tolist()))
        return Reasons(ids, score * (terms / terms.sum()), lambda row: ([], []), gone=named)

    def _word(self, number: int) -> str:
        offsets, letters = (self.part.array(f"words.{name}") for name in ("offsets", "letters"))
        if number + 1 >= offsets.size:
            raise self.part.damaged_file("texts.words")
        begin, end = (int(place) for place in offsets[number : number + 2])
        if not begin <= end <= letters.size or begin == end:
            raise self.part.damaged_file("words.offsets")
        try:
            return letters[begin:end].tobytes().decode()
        except UnicodeDecodeError as error:
            raise self.part.damaged_file("words.letters") from error


NEAREST = WholeFormat(
    files=declared("nearest", "n")
    | declared("holders", "c")
    | {"norms": "<f8[n, 2]", "mutual_norms": "<f8[n, 2]"},
    selects=True,
    sizes=lambda plan, nodes, graph_nodes: {"c": graph_nodes},
)
"""The ``nearest`` layout; ``c`` nodes may occur in lists."""
TEXT = WholeFormat(
    files=declared("texts", "n", "words")
    | declared("holders", "w")
    | {"words.offsets": "<u8[w + 1]", "words.letters": "|u1[B]"}
)
"""The ``text`` layout."""
