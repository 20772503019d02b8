"""What the walks of a part go by: the weights of links, of pages, or none.

                     links unweighted            links weighted
    hubs=plain       nothing                     w(u, v)
    hubs=idf         t(u) = log((n + 1) / d(u))  w(u, v) t(u)
    hubs=rare        t(u) = 1 / d(u)             w(u, v) t(u)

for a walk that steps from v to its neighbour u, with n nodes, and d(u) how often u is a neighbour:
its out-degree for in-links, its in-degree for out-links.

Memory beside the links: Step.WEIGHTED reads running shares, 4 bytes a link. Step.CLOCK reads
weights as they are: the links' own, 4 bytes a node for those of pages, 4 a link for products.
Where the graph does not stay in memory, what is as long as the links lies in a scratch file.
"""

from __future__ import annotations

from pathlib import Path

from cocite.engine import Step, StepWeights, step_weights, telling_weights
from cocite.graph.links import Links
from cocite.index.plan import PartPlan
from cocite.index.room import Room, StepBytes
from cocite.measures import HUBS
from cocite.store import Scratch

__all__ = ["part_weights", "step_bytes"]

_ID, _VALUE = 4, 4
"""Bytes of a neighbour, and of a share, a weight or a product."""


def step_bytes(part: PartPlan) -> StepBytes:
    """What the step of a part takes beside its links."""
    if part.measure.step is None or not part.step.weighted:
        return StepBytes()
    node = _VALUE if part.by_page else 0
    products = _VALUE if part.by_page and part.weighted else 0
    if part.step is Step.WEIGHTED:
        return StepBytes(_VALUE + products, node, _ID + _VALUE)
    return StepBytes(products, node, _ID + _VALUE if part.weighted else _ID)


def part_weights(links: Links, part: PartPlan, room: Room, folder: Path) -> StepWeights | None:
    """What all walkers of a part share, made by some passes over the links; None if they go by no
    weights. Raises :class:`UsageError` for products that float32 does not hold.
    """
    if not part.step.weighted:
        return None
    streaming = bool(room.cuts) or room.external
    scratch = Scratch.beside(folder) if streaming else Scratch(None)
    pages = telling_weights(links, part.settings[HUBS]) if part.by_page else None
    return step_weights(links, part.step, node_weights=pages, scratch=scratch)
