"""Asking lists of nearest pages: two of them merged, or one followed to all who share any of it.

Both questions add up the same numbers in ascending order of the pages shared, so they agree to the
bit. Exact for the lists stored.

Cost: a pair reads two lists; related nodes read, of every page of the node's list, all who have it.
Source: see ``measures/shared_nearest.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.codes import GRAINS
from cocite.layouts.reader import Estimate, Reader
from cocite.layouts.reasons import Graphs, Paths, Reasons, apportioned
from cocite.layouts.scratch import QueryScratch
from cocite.layouts.stored import StoredPart
from cocite.measures import PartSettings
from cocite.measures.shared_nearest import FORM, MUTUAL

__all__ = ["NearestReader", "chosen_form", "list_reasons"]


class NearestReader(Reader):
    """The layout ``nearest``."""

    def __init__(self, part: StoredPart) -> None:
        super().__init__(part)
        nodes = part.nodes
        self._lists, self._holders = (
            tuple(part.array(f"{kind}.{name}") for name in ("offsets", "nodes", "values"))
            for kind in ("nearest", "holders")
        )
        self._norms = {False: part.array("norms"), True: part.array("mutual_norms")}
        for kind, (offsets, members, values) in (
            ("nearest", self._lists),
            ("holders", self._holders),
        ):
            if offsets.shape != (nodes + 1,) or members.shape != values.shape:
                raise part.damaged_file(f"{kind}.offsets")
        if any(norms.shape != (nodes, 2) for norms in self._norms.values()):
            raise part.damaged_file("norms")

    def listed(self, node: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """The list of ``node``, ids ascending, and how near each is; below 0 if not mutual."""
        offsets, members, values = self._lists
        begin, end = int(offsets[node]), int(offsets[node + 1])
        if not begin <= end <= members.size:
            raise self.part.damaged_file("nearest.offsets")
        return members[begin:end], values[begin:end]

    def pair(self, first: int, second: int, settings: PartSettings) -> Estimate:
        """The score of two nodes; a node is wholly similar to itself."""
        from cocite.kernels import nearest

        if first == second:
            return Estimate(float(GRAINS), 0.0)
        form, power, mutual = chosen_form(settings)
        norms = self._norms[mutual][:, power - 1]
        grains = nearest.pair(
            *self.listed(first), *self.listed(second), norms[first], norms[second], form, mutual
        )
        return Estimate(float(grains), 0.0)

    def reasons(self, first: int, second: int, settings: PartSettings, graphs: Graphs) -> Reasons:
        """The pages in both lists. What makes them near is not held: paths have the nodes alone."""
        score = self.pair(first, second, settings).grains / GRAINS
        return list_reasons(
            (first, second), score, self.listed(first), self.listed(second), settings
        )

    def gather(self, node: int, settings: PartSettings, scratch: QueryScratch) -> None:
        """Follow each page of the list, ascending, to all who have it in theirs."""
        from cocite.kernels import nearest, neighbours, totals

        form, power, mutual = chosen_form(settings)
        values, used = scratch.sums.view(np.float64), scratch.used
        count = int(nearest.gather(*self.listed(node), self._holders, form, mutual, values, used))
        if count == nearest.DAMAGED:
            raise self.part.damaged_file("holders.nodes")
        neighbours.normalise(
            values,
            used,
            count,
            np.int64(node),
            self._lists[0],
            self._norms[mutual],
            power,
            form,
        )
        scratch.have = int(
            totals.settle_exact(
                values,
                used,
                count,
                self.part.weight,
                scratch.totals,
                scratch.touched,
                scratch.have,
            )
        )


def list_reasons(
    pair: tuple[int, int],
    score: float,
    one: tuple[NDArray[np.uint32], NDArray[np.float32]],
    other: tuple[NDArray[np.uint32], NDArray[np.float32]],
    settings: PartSettings,
) -> Reasons:
    """The pages in the lists of two nodes, values below 0 of those that are not mutual."""
    form, _, mutual = chosen_form(settings)
    (mine, values), (theirs, others) = one, other
    common, here, there = np.intersect1d(mine, theirs, return_indices=True)
    both: NDArray[Any] = np.column_stack((values[here], others[there])).astype(np.float64)
    sound = (both > 0).all(axis=1) | (not mutual)
    both = np.abs(both)
    terms = np.where(sound, both.prod(axis=1) if form == 0 else both.min(axis=1), 0)

    def path(node: int) -> Paths:
        return tuple([each] * (node == each) for each in pair)  # type: ignore[return-value]

    return apportioned(score, common, terms, path)


def chosen_form(settings: PartSettings) -> tuple[int, int, bool]:
    """(the form, the power of values in norms, whether one-sided entries are left out)."""
    from cocite.kernels.neighbours import FORMS

    form = settings[FORM]
    return FORMS.index(form), 2 if form == "cosine" else 1, settings[MUTUAL]
