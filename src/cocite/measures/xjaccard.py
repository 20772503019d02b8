"""XJaccard: two pages are similar if they are reached from the same pages, near ones above all.

    xjac(u, v) = sum over k = 1, ..., length of decay**k (1 - decay) J_k(u, v)
    J_k(u, v)  = |I_k(u) & I_k(v)| / |I_k(u) | I_k(v)|

with I_k(v) the nodes from which v is reached in at most k links, v itself among them: Jaccard
coefficients of growing neighborhoods. A sample is one random order of all nodes. The first nodes
of I_k(u) and I_k(v) in it, their winners, are the same with the probability of the Jaccard
coefficient, so its value is the sum of decay**k (1 - decay) over the rings k whose winners are the
same (Lemma 4).

Convention: in-links. The weights of the rings add up to decay - decay**(length + 1), which is what
a node and itself score: 0.52 for the defaults. ``normalized`` divides by that, so that they
score 1. A larger decay moves weight to the outer rings, and may lower a score.

With ``bits`` the index holds b bits of a hash of each winner in the place of the winner. Different
winners then match with the probability 2**-b, which is taken off the estimates, so that they are
still right on average but vary more, and scatter about 0 where nothing is shared: a score may be
below 0, and hits are nodes that came out above it.

``exact_xjaccard`` computes the definition itself, from the neighborhoods of all nodes as rows of
bits: length products of rows * nodes**2 operations, for as many rows of scores as are asked for.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.3 (Definition 3, Lemma 4); b-bit
min-hashes: Li, Koenig 2010, *b-bit minwise hashing*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from cocite.errors import ResourceError, UsageError
from cocite.graph.blocks import Links
from cocite.measures.measure import Component, Measure
from cocite.measures.settings import (
    DECAY,
    LENGTH,
    SAMPLES,
    SEED,
    PartSettings,
    Setting,
    WholeSettings,
)
from cocite.resources import budget, format_size

_BITS = 8
_BLOCK = 512
BITS = Setting(
    "bits",
    0,
    "how many bits of each min-hash to store (layout sketch); 0: all of it (layout minhash)",
    0,
    16,
)
RINGS = replace(LENGTH, default=4, text="how many links away the neighborhoods reach")
NORMALIZED = Setting("normalized", False, "divide scores by the score of a node with itself")


def ring_weights(settings: PartSettings, length: int) -> list[float]:
    """What rings 1, ..., length are worth."""
    decay = settings[DECAY]
    weights = [decay**k * (1 - decay) for k in range(1, length + 1)]
    whole = decay - decay ** (length + 1)
    return [weight / whole for weight in weights] if settings[NORMALIZED] else weights


def _choose(
    layout: str | None, given: Mapping[str, object], settings: WholeSettings
) -> tuple[str, WholeSettings]:
    """``bits`` makes the layout sketch, and sketch has bits."""
    bits = settings[BITS]
    found = layout or ("sketch" if bits else "minhash")
    if found == "minhash" and bits:
        raise UsageError(
            f"bits is {bits}, and layout minhash holds whole min-hashes; leave one of the two out"
        )
    if found == "sketch" and not bits:
        if BITS.name in given:
            raise UsageError("bits is 0; layout sketch holds 1 to 16 bits of each min-hash")
        return found, settings.changed(BITS, _BITS)
    return found, settings


XJACCARD = Measure(
    name="xjaccard",
    summary="similar if the same pages are 1, 2, ... links before both (Fogaras, Racz)",
    layouts=("minhash", "sketch"),
    build=(SAMPLES, RINGS, SEED, BITS),
    ask=(DECAY, NORMALIZED),
    monotone=False,
    noisy=("sketch",),
    chooses=_choose,
)


def exact_xjaccard(
    links: Links,
    rows: NDArray[np.integer] | None = None,
    *,
    length: int = 4,
    decay: float = 0.6,
    normalized: bool = False,
    memory: str | int | None = None,
) -> NDArray[np.float64]:
    """Scores by the definition, without samples.

    Parameters
    ----------
    links
        ``in_links`` of a checked graph, or its ``out_links``.
    rows
        Ids of the nodes whose scores are wanted; by default all.
    length, decay, normalized
        As the measure has them.
    memory
        What may be taken, 8 bytes a score and a quarter of a byte a pair of nodes; by default half
        of what is available.

    Returns
    -------
    float64[rows, nodes]

    Raises
    ------
    UsageError, ResourceError
    """
    given = {DECAY.name: decay, NORMALIZED.name: normalized}
    asked = Component(XJACCARD).ask_settings(XJACCARD.ask_settings(given))
    RINGS.checked(length)
    nodes, limit = links.nodes, budget(memory)
    wanted = np.arange(nodes) if rows is None else np.asarray(rows, np.int64)
    across = -(-nodes // 8)
    needed = nodes * (2 * across + 8 * wanted.size + 10 * min(_BLOCK, nodes))
    if needed > limit:
        raise ResourceError(
            f"{wanted.size:,} rows of the scores of {nodes:,} nodes take {format_size(needed)} of "
            f"memory; {format_size(limit)} may be used. Ask for fewer, or build an index instead"
        )
    scores = np.zeros((wanted.size, nodes))
    reached = np.zeros((nodes, across), np.uint8)  # a bit a pair
    every = np.arange(nodes)
    reached[every, every >> 3] = 0x80 >> (every & 7)
    bounds = links.offsets.astype(np.int64)
    for weight in ring_weights(asked, length):
        before = reached.copy()
        for node in range(nodes):
            near = links.neighbors[bounds[node] : bounds[node + 1]]
            if near.size:
                reached[node] |= np.bitwise_or.reduce(before[near], axis=0)
        for high in range(0, nodes, _BLOCK):
            others = _members(reached[high : high + _BLOCK], nodes)
            sizes = others.sum(axis=1)
            for low in range(0, wanted.size, _BLOCK):
                own = _members(reached[wanted[low : low + _BLOCK]], nodes)
                common = own @ others.T
                united = own.sum(axis=1)[:, None] + sizes - common
                found = scores[low : low + _BLOCK, high : high + _BLOCK]
                found += weight * (common / united.astype(np.float64))
    return scores


def _members(bits: NDArray[np.uint8], nodes: int) -> NDArray[np.float32]:
    """float32[rows, nodes] of 0 and 1 from rows of bits; sums below 2**24 are exact."""
    return np.unpackbits(bits, axis=1, count=nodes).astype(np.float32)
