"""What a score is made of: the pages that make two nodes similar, each with its share of it.

Every measure is a sum over pages, and the terms are its reasons:

    walks           the nodes at which the two walks first meet: f(tau) / samples a meeting
    common neighbours    the neighbours that both have, by what each is worth
    shared nearest  the pages in both lists, by the smaller value or the product
    PageSim         the features that both hold, min**2 / max of each
    text            the words that both have, by the product of their weights
    Companion       the hubs that link to the second node, by how much of a hub each is
    PPR             the last steps into the second node, by what each neighbour hands on

A layout gives them as arrays (:class:`Reasons`); paths are made for those alone that are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cocite.graph import Graph
from cocite.graph.names import Names
from cocite.means import Means

__all__ = ["NOTHING", "Graphs", "Paths", "Reasons", "apportioned"]

Paths = tuple[list[int], list[int]]
"""From the first node, and from the second, to the page: ids, the page last; empty if not known."""


@dataclass(frozen=True)
class Graphs:
    """Where the graphs behind an index come from: ``find`` gives that of a digest, None if it is
    not at hand, and raises what there is to say where no graph is given at all. ``means`` are for
    what is made of them.
    """

    find: Callable[[str], Graph | None]
    means: Means


@dataclass(frozen=True)
class Reasons:
    """The reasons of one part for two different nodes, each page once, in no special order.

    ``nodes`` uint32[r] are the pages and ``shares`` float64[r] what each adds to the part's score;
    ``path`` gives the paths to the page of a row; ``samples`` int64[r] is in how many samples it
    was the reason, None where there are no samples. Ids from the number of nodes on are of what is
    no page, or ``gone``: words, or names, in order. ``unplaced`` is what pages add that are not
    known.
    """

    nodes: NDArray[np.uint32]
    shares: NDArray[np.float64]
    path: Callable[[int], Paths]
    samples: NDArray[np.int64] | None = None
    gone: tuple[str, ...] = ()
    unplaced: float = 0.0

    def named(self, ids: list[int], names: Names) -> tuple[str, ...]:
        """The names of some ids, those of pages that are gone among them."""
        there = [node for node in ids if node < len(names)]
        known = iter(names.names(np.array(there, np.uint32)))
        return tuple(
            next(known) if node < len(names) else self.gone[node - len(names)] for node in ids
        )


NOTHING = Reasons(np.empty(0, np.uint32), np.empty(0), lambda row: ([], []))
"""The reasons of a score of 0."""


def apportioned(
    score: float,
    nodes: NDArray[np.uint32],
    worths: NDArray[np.float64],
    path: Callable[[int], Paths],
) -> Reasons:
    """A score shared out among ``nodes`` in proportion to their ``worths``, those of 0 left out.

    Measures that divide a sum by what does not depend on its terms share out their score so.
    ``path`` gets a node's id.
    """
    found = worths > 0
    if score <= 0 or not found.any():
        return NOTHING
    nodes, worths = nodes[found], worths[found]
    return Reasons(nodes, score * (worths / worths.sum()), lambda row: path(int(nodes[row])))
