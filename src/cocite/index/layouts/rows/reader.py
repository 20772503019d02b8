"""Queries on rows: lists of nearest pages, PageSim features, or words of texts.

A pair merges two rows; a list follows each entry of the node's row to all nodes with the same entry
(*holders*). Both sum in float64, in ascending order of entries, and round to whole grains, so they
are equal to the bit. Scores are exact for the stored rows; ``certified`` bounds the difference from
the definition. The sums (``kernels/features.py``):

    nearest, text    products, or minima; divided by norms (``measures/snn.py``)
    features         min**2 / max; if normalized, divided by the root of both own scores

Source: ``measures/snn.py``, ``measures/tfidf.py``; Lin, King, Lyu, *PageSim*, 4.2, 5.2.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from cocite.constants import GRAINS, Floats, Ids
from cocite.index.layouts.contract import WANTED, PartPlan, WholeFormat
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
from cocite.measures.pagesim import NORMALIZED
from cocite.measures.snn import FORM, MUTUAL

Row = tuple[Ids, NDArray[np.float32]]


class StoredRows:
    """A part's rows: offsets, ids (``members``), and values. Without a ``count``, any number of
    rows is valid.
    """

    def __init__(
        self, part: StoredPart, kind: str, count: int | None, members: str = "nodes"
    ) -> None:
        self._part, self._kind = part, kind
        self.arrays = tuple(part.array(f"{kind}.{name}") for name in ("offsets", members, "values"))
        offsets, ids, values = self.arrays
        if ids.shape != values.shape or count not in (None, offsets.size - 1):
            raise part.damaged_file(f"{kind}.offsets")

    def __call__(self, node: int) -> Row:
        """Return the node's row: ids, ascending, and values."""
        offsets, ids, values = self.arrays
        begin, end = int(offsets[node]), int(offsets[node + 1])
        if not begin <= end <= ids.size:
            raise self._part.damaged_file(f"{self._kind}.offsets")
        return ids[begin:end], values[begin:end]


class NearestReader(Reader):
    """The layout ``nearest``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self.listed = StoredRows(part, "nearest", part.nodes)
        self._holders = StoredRows(part, "holders", None)
        self._graph_nodes = self._holders.arrays[0].size - 1
        """Number of nodes that may occur in lists."""
        self._norms = {False: part.array("norms"), True: part.array("mutual_norms")}
        if any(norms.shape != (part.nodes, 2) for norms in self._norms.values()):
            raise part.damaged_file("norms")

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node scores 1 with itself."""
        from cocite.kernels import features

        if first == second:
            return Estimate(float(GRAINS), 0.0)
        form, power, mutual = chosen_form(settings)
        norms = self._norms[mutual][:, power - 1]
        grains = features.pair_rows(
            *self.listed(first), *self.listed(second), norms[first], norms[second], form, mutual
        )
        return Estimate(float(grains), 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the pages in both lists, without paths."""
        form, _, mutual = chosen_form(settings)
        (mine, values), (theirs, others) = self.listed(first), self.listed(second)
        common, here, there = np.intersect1d(mine, theirs, return_indices=True)
        both: NDArray[Any] = np.column_stack((values[here], others[there])).astype(np.float64)
        sound = (both > 0).all(axis=1) | (not mutual)
        both = np.abs(both)
        terms = np.where(sound, both.prod(axis=1) if form == 0 else both.min(axis=1), 0)
        score = self.pair(first, second, settings).grains / GRAINS
        found = apportioned(score, common, terms, lambda node: ([], []))
        whose = self.part, self._graph_nodes, (first, second)
        return own_reasons(*whose, found.nodes, found.shares)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add up the lists that contain each page of the node's list, in ascending order."""
        from cocite.kernels import features, neighbors

        form, power, mutual = chosen_form(settings)
        values, used = scratch.scores, scratch.used
        holders = self._holders.arrays
        count = int(features.gather_rows(*self.listed(node), holders, form, mutual, values, used))
        if count == features.DAMAGED:
            raise self.part.damaged_file("holders.nodes")
        whose = np.int64(node), self.listed.arrays[0], self._norms[mutual]
        neighbors.normalize(values, used, count, *whose, power, form)
        self.settle_exact(scratch, count)


def own_reasons(
    part: StoredPart,
    graph_nodes: int,
    pair: tuple[int, int],
    nodes: Ids,
    shares: Floats,
) -> Reasons:
    """Return reasons from graph ids and each node's contribution to a score.

    Only the two nodes have paths, as rows do not store why nodes are near. Contributions of nodes
    that are not in the index are unattributed.
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
    from cocite.kernels.neighbors import FORMS

    form = settings[FORM]
    return FORMS.index(form), 2 if form == "cosine" else 1, settings[MUTUAL]


OWN = "own"


class FeaturesFormat(WholeFormat):
    """The layout ``features``."""

    files: ClassVar[dict[str, str]] = {
        "holders.offsets": "<u8[n + 1]",
        "holders.nodes": "<u4[E]",
        "holders.values": "<f4[E]",
        "features.offsets": "<u8[n + 1]",
        "features.nodes": "<u4[E]",
        "features.values": "<f4[E]",
        "cut": "<f4[n]",
        OWN: "<f8[n]",
    }

    @classmethod
    def files_of(cls, plan: PartPlan) -> dict[str, str]:
        """Return the files; only normalized scores need ``own``."""
        has = {OWN: plan.settings[NORMALIZED]}
        return {name: form for name, form in cls.files.items() if has.get(name, True)}


_NO_NORMS = np.empty((0, 1))
_ROUNDING = 2.0**-22
"""Bound on a term's relative error, from at most three roundings to float32 and float64 sums."""


class FeatureReader(Reader):
    """The layout ``features``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self.features = StoredRows(part, "features", part.nodes)
        self._holders = StoredRows(part, "holders", part.nodes)
        self._own: Floats | None = None
        if part.settings[NORMALIZED]:
            self._own = part.array(OWN)
        for name, array in (("cut", part.array("cut")), (OWN, self._own)):
            if array is not None and array.shape != (part.nodes,):
                raise part.damaged_file(name)

    @property
    def unit(self) -> bool:
        """Return whether scores are normalized, and therefore at most 1."""
        return self._own is not None

    def _norms(self, *nodes: int) -> list[float]:
        """Return the norms of nodes; the score of two nodes is divided by the root of theirs."""
        if self._own is None:
            return [1.0] * len(nodes)
        found = [float(self._own[node]) for node in nodes]
        if not all(0 < norm < np.inf for norm in found):
            raise self.part.damaged_file(OWN)
        return found

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the score of two nodes; a node's score with itself is the sum of its features, or
        1 if normalized.
        """
        from cocite.kernels import features
        from cocite.kernels.neighbors import PAGESIM

        lists, norms = (*self.features(first), *self.features(second)), self._norms(first, second)
        return Estimate(float(features.pair_rows(*lists, *norms, PAGESIM, False)), 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the common features; only a node's own feature has a path."""
        (mine, values), (theirs, others) = self.features(first), self.features(second)
        common, here, there = np.intersect1d(mine, theirs, return_indices=True)
        pairs = np.sort(np.column_stack((values[here], others[there])).astype(np.float64), axis=1)
        with np.errstate(invalid="ignore"):  # 0 / 0 if values are too small for float32
            terms = pairs[:, 0] ** 2 / pairs[:, 1]
        score = self.pair(first, second, settings).grains / GRAINS

        def path(node: int) -> Paths:
            return [first] * (node == first), [second] * (node == second)

        return apportioned(score, common, terms, path)

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return error bounds for truncated features (``measures/pagesim.py``) and rounding.

        A node's score with itself is never too high, and too low by at most its truncated features.
        So a normalized score lies between its least value divided by the largest norms, and its
        largest value divided by the computed norms.
        """
        cut = self.part.array("cut").astype(np.float64)
        lost = cut[node] + cut[others]
        slack = np.column_stack((lost, 2 * lost))
        slack[others == node] = 0.0, cut[node]
        scores = np.array([self.pair(node, v, settings).grains for v in others.tolist()]) / GRAINS
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
        """Add up the holders of each feature, in ascending order."""
        from cocite.kernels import features, neighbors

        holders, values, used = self._holders.arrays, scratch.scores, scratch.used
        how = holders, neighbors.PAGESIM, False
        count = int(features.gather_rows(*self.features(node), *how, values, used))
        if count == features.DAMAGED:
            raise self.part.damaged_file("holders.nodes")
        self._norms(node)  # raises unless it is a valid divisor
        power, form, norms = 0, neighbors.COUNT, _NO_NORMS
        if self._own is not None:
            power, form, norms = 1, neighbors.PAGESIM, self._own.reshape(-1, 1)
        neighbors.normalize(values, used, count, np.int64(node), holders[0], norms, power, form)
        self.settle_exact(scratch, count)


class WordsReader(Reader):
    """The layout ``text``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self.words = StoredRows(part, "texts", part.nodes, "words")
        self._holders = StoredRows(part, "holders", None)

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """Return the cosine similarity of two nodes; a node scores 1 with itself."""
        from cocite.kernels import features
        from cocite.kernels.neighbors import COSINE

        if first == second:
            return Estimate(float(GRAINS), 0.0)
        grains = features.pair_rows(
            *self.words(first), *self.words(second), 1.0, 1.0, COSINE, False
        )
        return Estimate(min(float(grains), float(GRAINS)), 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Add up the pages that contain each word, in ascending order."""
        from cocite.kernels import features
        from cocite.kernels.neighbors import COSINE

        sums, used, holders = scratch.scores, scratch.used, self._holders.arrays
        count = int(features.gather_rows(*self.words(node), holders, COSINE, False, sums, used))
        if count == features.DAMAGED:
            raise self.part.damaged_file("holders.nodes")
        found = used[:count]
        sums[found, 0] = np.minimum(np.rint(sums[found, 0] * GRAINS), GRAINS)
        sums[node, 0] = 0.0
        self.settle_exact(scratch, count)

    def certified(self, node: int, others: Ids, settings: PartSettings) -> Floats:
        """Return error bounds for the rounding of stored weights; 0 for a node with itself."""
        scores = np.array([self.pair(node, v, settings).grains for v in others.tolist()]) / GRAINS
        slack = np.where((others == node) | (scores == 0), 0.0, _ROUNDING * scores + 1 / GRAINS)
        return np.column_stack((slack, slack))

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """Return the common words, whose ids follow the node ids."""
        score = self.pair(first, second, settings).grains / GRAINS
        (mine, values), (theirs, others) = self.words(first), self.words(second)
        shared, here, there = np.intersect1d(mine, theirs, return_indices=True)
        terms = values[here].astype(np.float64) * others[there]
        if score <= 0 or not shared.size:
            return NOTHING
        ids = np.arange(self.part.nodes, self.part.nodes + shared.size).astype(np.uint32)
        named = tuple(map(self._word, shared.tolist()))
        return Reasons(ids, score * (terms / terms.sum()), lambda row: ([], []), gone=named)

    def _word(self, number: int) -> str:
        """Return the word with this number."""
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


class NearestFormat(WholeFormat):
    """The layout ``nearest``."""

    selects = True

    @classmethod
    def sizes_of(cls, plan: PartPlan, nodes: int, graph_nodes: int) -> dict[str, int]:
        """Return the number of nodes that may occur in lists."""
        return {"c": graph_nodes}

    files: ClassVar[dict[str, str]] = {
        "nearest.offsets": "<u8[n + 1]",
        "nearest.nodes": "<u4[E]",
        "nearest.values": "<f4[E]",
        "holders.offsets": "<u8[c + 1]",
        "holders.nodes": "<u4[E]",
        "holders.values": "<f4[E]",
        "norms": "<f8[n, 2]",
        "mutual_norms": "<f8[n, 2]",
    }


class TextFormat(WholeFormat):
    """The layout ``text``."""

    files: ClassVar[dict[str, str]] = {
        "texts.offsets": "<u8[n + 1]",
        "texts.words": "<u4[E]",
        "texts.values": "<f4[E]",
        "holders.offsets": "<u8[w + 1]",
        "holders.nodes": "<u4[E]",
        "holders.values": "<f4[E]",
        "words.offsets": "<u8[w + 1]",
        "words.letters": "|u1[B]",
    }
