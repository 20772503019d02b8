"""Walks of single nodes made again, and everything that meets one of them, in one sample.

Steps are keyed by what they decide, so these are the walks of the sample itself. ``follow`` makes
the walks of some nodes, until they meet the first one's or end. ``probe`` finds all that meets a
walk from where it goes, x[0] = u, x[1], ..., x[L]. What first meets it at step t stands elsewhere
at t - 1 and steps to x[t] then; before that, it came from those that stepped there:

    F(t - 1) = the nodes whose step t goes to x[t] or into F(t), but for x[t - 1]

backwards from F(L), which is empty. F(0) is everything that u meets, each node with the step t at
which it came in.

Cost: ``follow`` a step of each node still on its way; ``probe`` one of each node that is linked
from those in F and on the walk.
Source: after 001, 2.1.4, without its stored trees; probing backwards as in Liu et al. 2017
(ProbeSim).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cocite.codes import NEVER, NOWHERE
from cocite.engine.walk import Mover
from cocite.graph.rows import Links

__all__ = ["follow", "probe"]

Nodes = NDArray[np.uint32]


def follow(mover: Mover, length: int, sample: int, nodes: Nodes) -> NDArray[np.uint8]:
    """When the walk of each of some nodes first meets that of the first one, in one sample.

    uint8[nodes.size]: 0 for the first one itself, 255 where they do not meet within ``length``.
    """
    times = np.full(nodes.size, NEVER, np.uint8)
    times[0] = 0
    at, who = nodes, np.arange(nodes.size)
    for step in range(1, length + 1):
        arrived = _moved(mover, sample, step, at)
        if arrived[0] == NOWHERE or at.size == 1:
            break
        met = arrived == arrived[0]
        met[0] = False
        times[who[met]] = step
        go_on = ~met & (arrived != NOWHERE)
        at, who = arrived[go_on], who[go_on]
    return times


def probe(
    mover: Mover, length: int, columns: Links, sample: int, node: int
) -> tuple[Nodes, NDArray[np.uint8]]:
    """The nodes that the walk of ``node`` meets in a sample, and the step at which each does.

    ``columns`` are the links of the ``mover`` by their other end, which one that goes both ways
    has itself.
    """
    way = _way(mover, length, sample, node)
    found, times = np.empty(0, np.uint32), np.empty(0, np.uint8)
    for step in range(len(way) - 1, 0, -1):
        goals = np.append(found, way[step])
        times = np.append(times, np.uint8(step))
        came, goal = _row_entries(mover.against(sample, step) or columns, goals)
        arrived = _moved(mover, sample, step, came)
        there = (arrived == goals[goal]) & (came != way[step - 1])
        found, times = came[there], times[goal[there]]
        once = np.sort(np.unique(found, return_index=True)[1])  # either way, rows have some twice
        found, times = found[once], times[once]
    return found, times


def _moved(mover: Mover, sample: int, step: int, at: Nodes) -> Nodes:
    arrived = np.empty_like(at)
    mover(sample, step, at, arrived)
    return arrived


def _way(mover: Mover, length: int, sample: int, node: int) -> Nodes:
    """Where the walk of ``node`` is, from step 0 on, as far as it goes."""
    way = [np.uint32(node)]
    for step in range(1, length + 1):
        at = _moved(mover, sample, step, np.array(way[-1:], np.uint32))[0]
        if at == NOWHERE:
            break
        way.append(at)
    return np.array(way, np.uint32)


def _row_entries(links: Links, nodes: Nodes) -> tuple[Nodes, NDArray[np.int64]]:
    """All neighbours of ``nodes``, row behind row, and which of ``nodes`` each belongs to."""
    begins = links.offsets[nodes].astype(np.int64)
    sizes = links.offsets[nodes.astype(np.int64) + 1].astype(np.int64) - begins
    owner = np.repeat(np.arange(nodes.size), sizes)
    places = np.arange(owner.size) - np.repeat(np.cumsum(sizes) - sizes, sizes) + begins[owner]
    return links.neighbours[places], owner
