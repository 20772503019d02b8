"""Asking words: those of two pages merged, or each of a page's own followed to all who have it.

Both questions add up the same products in the order of the words, so they agree to the bit.

Cost: a pair reads two rows; related pages read, of every word of the page, all who have it.
Source: see ``measures/text.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.layouts.reader import Estimate, Ids, Reader
from cocite.layouts.reasons import NOTHING, Graphs, Reasons
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings

__all__ = ["TextReader"]

_ROUNDING = 2.0**-22
"""What two roundings to float32 do to a term at most, and then some for sums of float64."""
_PRODUCT = 0
"""The form of ``kernels/nearest.py`` that adds up products."""


class TextReader(Reader):
    """The layout ``text``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        self._rows = tuple(self.array(f"texts.{name}") for name in ("offsets", "words", "values"))
        self._holders = tuple(
            self.array(f"holders.{name}") for name in ("offsets", "nodes", "values")
        )
        for kind, (_, members, values) in (("texts", self._rows), ("holders", self._holders)):
            if members.shape != values.shape:
                raise part.damaged_file(f"{kind}.offsets")
        if self._rows[0].shape != (part.nodes + 1,):
            raise part.damaged_file("texts.offsets")

    def array(self, name: str) -> NDArray[Any]:
        """An array of the part."""
        return self.part.array(name)

    def words(self, node: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """The words of ``node``, by their places in the alphabet, and their weights."""
        offsets, words, values = self._rows
        begin, end = int(offsets[node]), int(offsets[node + 1])
        if not begin <= end <= words.size:
            raise self.part.damaged_file("texts.offsets")
        return words[begin:end], values[begin:end]

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The cosine of two nodes; a node is wholly similar to itself."""
        from cocite.kernels import nearest

        if first == second:
            return Estimate(float(GRAINS), 0.0)
        grains = nearest.pair(*self.words(first), *self.words(second), 1.0, 1.0, _PRODUCT, False)
        return Estimate(min(float(grains), float(GRAINS)), 0.0)

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Follow each word, in order, to all pages that have it."""
        from cocite.kernels import nearest, totals

        sums, used = scratch.sums.view(np.float64), scratch.used
        count = int(nearest.gather(*self.words(node), self._holders, _PRODUCT, False, sums, used))
        if count == nearest.DAMAGED:
            raise self.part.damaged_file("holders.nodes")
        found = used[:count]
        sums[found, 0] = np.minimum(np.rint(sums[found, 0] * GRAINS), GRAINS)
        sums[node, 0] = 0.0
        scratch.have = int(
            totals.settle_exact(
                sums,
                used,
                count,
                self.part.weight,
                scratch.totals,
                scratch.touched,
                scratch.have,
            )
        )

    def certified(self, node: int, others: Ids, settings: PartSettings) -> NDArray[np.float64]:
        """The rounding of the weights that are stored; none of a node and itself."""
        scores = np.array([self.pair(node, v, settings).grains for v in others.tolist()]) / GRAINS
        slack = np.where((others == node) | (scores == 0), 0.0, _ROUNDING * scores + 1 / GRAINS)
        return np.column_stack((slack, slack))

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The words that both have, under ids beyond those of the nodes."""
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
        """What a word is."""
        offsets, letters = self.array("words.offsets"), self.array("words.letters")
        if number + 1 >= offsets.size:
            raise self.part.damaged_file("texts.words")
        begin, end = (int(place) for place in offsets[number : number + 2])
        if not begin <= end <= letters.size or begin == end:
            raise self.part.damaged_file("words.offsets")
        try:
            return letters[begin:end].tobytes().decode()
        except UnicodeDecodeError as error:
            raise self.part.damaged_file("words.letters") from error
