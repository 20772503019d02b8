"""Weights for walk steps: arrays that weighted steps read in addition to the links.

    Step.WEIGHTED   cumulative shares of each node's links, in units of 2**-32: 4 bytes per link
    Step.CLOCK      the weights themselves: one per link, or one per in-neighbor

A weight is the link's, the in-neighbor's (``node_weights``), or the product of both. Node
weights such as 1 / out-degree (:func:`inverse_degrees`) give links from pages with many links less
weight, like inverse document frequency for words. With node weights alone, CLOCK needs no array for
links. All walkers of a run share the arrays. Shares and products each cost one pass over the links,
and 4 bytes per link of memory or scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.constants import Step
from cocite.errors import UsageError
from cocite.graph.blocks import Links, cut_blocks
from cocite.kernels.links import add_counts
from cocite.kernels.walk import share
from cocite.storage import evict
from cocite.storage.spool import Scratch

_PIECE = 1 << 20
"""Links per chunk of products; bytes per chunk of shares."""


@dataclass(frozen=True)
class StepWeights:
    """Weights for ``step``: uint32[edges] shares for ``Step.WEIGHTED``; for ``Step.CLOCK``,
    float32[edges], or float32[nodes] if ``by_node``.
    """

    step: Step
    values: NDArray[Any]
    by_node: bool = False


def inverse_degrees(degrees: NDArray[np.uint32]) -> NDArray[np.float32]:
    """Return 1 / degree, float32[nodes]; 1 for nodes without links, which no walk reaches."""
    return (1.0 / np.maximum(degrees, 1)).astype(np.float32)


def idf_weights(degrees: NDArray[np.uint32], nodes: int) -> NDArray[np.float32]:
    """Return log((nodes + 1) / degree), float32[nodes], all positive; degrees of 0 count as 1."""
    return np.log((nodes + 1.0) / np.maximum(degrees, 1)).astype(np.float32)


def telling_weights(links: Links, hubs: str) -> NDArray[np.float32]:
    """Return a weight per neighbor in ``links``, float32[nodes].

    The weight is :func:`idf_weights` (``hubs`` is ``idf``) or :func:`inverse_degrees` (``rare``) of
    the neighbor's degree: the out-degree for in-links, the in-degree for out-links. Costs one pass
    over the links, and 4 bytes per node.
    """
    counts = np.zeros(links.nodes, np.uint32)
    for low in range(0, links.edges, _PIECE):
        add_counts(links.neighbors[low : low + _PIECE], counts)
        evict(links.neighbors)
    found = counts.view(np.float32)
    for low in range(0, links.nodes, _PIECE):
        piece = slice(low, low + _PIECE)
        degrees = counts[piece]
        found[piece] = (
            idf_weights(degrees, links.nodes) if hubs == "idf" else inverse_degrees(degrees)
        )
    return found


def step_weights(
    links: Links,
    step: Step,
    *,
    node_weights: NDArray[np.float32] | None = None,
    scratch: Scratch | None = None,
) -> StepWeights:
    """Prepare link weights for a weighted step, ``Step.WEIGHTED`` or ``Step.CLOCK``.

    ``links`` must have weights unless ``node_weights`` are given; these are float32[nodes],
    positive and finite, one per neighbor. ``scratch`` stores arrays of 4 bytes per link, by default
    in memory. Raises ``UsageError`` for missing or invalid weights.
    """
    if node_weights is not None:
        _check(links, node_weights)
    elif links.weights is None:
        raise UsageError(
            f"the {step.value} step needs weights, but the links are unweighted. Store the graph "
            "with weights: cocite ingest --weight-column"
        )
    scratch = scratch or Scratch(None)
    values: NDArray[Any]
    if node_weights is None:
        assert links.weights is not None
        values, by_node = links.weights, False
    elif links.weights is None:
        values, by_node = node_weights, True
    else:
        values, by_node = _products(links, node_weights, scratch), False
    if step is Step.WEIGHTED:
        return StepWeights(step, _shares(links, values, by_node, scratch))
    return StepWeights(step, values, by_node)


def _check(links: Links, node_weights: NDArray[np.float32]) -> None:
    fine = node_weights.shape == (links.nodes,) and node_weights.dtype == np.float32
    if not (fine and bool((node_weights > 0).all()) and bool(np.isfinite(node_weights).all())):
        raise UsageError(
            "node weights must be positive, finite float32 numbers, one for each of "
            f"{links.nodes:,} nodes"
        )


def _products(
    links: Links, node_weights: NDArray[np.float32], scratch: Scratch
) -> NDArray[np.float32]:
    assert links.weights is not None
    found: NDArray[np.float32] = scratch.zeros(links.edges, np.float32)
    fine = True
    for low in range(0, links.edges, _PIECE):
        piece = slice(low, low + _PIECE)
        with np.errstate(over="ignore", under="ignore"):
            product = links.weights[piece] * node_weights[links.neighbors[piece]]
        fine = fine and bool(product.min() > 0) and bool(product.max() < np.inf)
        found[piece] = product
        if scratch.on_disk:
            links.evict()
            evict(found)
    if not fine:
        raise UsageError("products of link and node weights exceed float32; scale the node weights")
    return found


def _shares(
    links: Links, values: NDArray[np.float32], by_node: bool, scratch: Scratch
) -> NDArray[np.uint32]:
    found: NDArray[np.uint32] = scratch.zeros(links.edges, np.uint32)
    for low, high in pairwise((0, *cut_blocks(links, _PIECE), links.nodes)):
        share(links.offsets[low : high + 1], links.neighbors, values, by_node, found)
        if scratch.on_disk:
            links.evict()
            evict(found, values)
    return found
