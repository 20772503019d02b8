"""Which links can be hidden so that no page loses its last one.

Pairs of pages that are linked, either way, are taken one after another, in an order that is given:
one is hidden if both of its pages keep a link to another page. Greedy, one pass, a few reads a
pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cocite.kernels._jit import kernel
from cocite.kernels.random import draw, draw_key

_SHIFT = np.uint64(32)


@kernel
def pair_keys(seed: Any, pairs: Any, out: Any) -> None:
    """64 random bits for each of ``pairs`` (uint64: the smaller id * 2**32 + the larger), ``out``.

    A link and the one that leads back are one pair, so that they are hidden together.
    """
    key = draw_key(seed, np.uint64(0), np.uint64(0))
    for i in range(pairs.size):
        out[i] = draw(key, pairs[i])


@kernel
def admit(pairs: Any, links: Any, left: Any, wanted: Any, out: Any) -> Any:
    """Mark in ``out`` (bool) which of ``pairs`` (uint64) are hidden, until ``wanted`` links are.

    ``links`` (uint8) says how many links each pair has, 1 or 2; ``left`` (int64[nodes]) how many
    links a page has to others, from which those hidden are taken. Returns how many links are
    hidden.
    """
    done = np.int64(0)
    for i in range(pairs.size):
        if done >= wanted:
            break
        low, high = pairs[i] >> _SHIFT, pairs[i] & np.uint64(0xFFFFFFFF)
        count = np.int64(links[i])
        if left[low] > count and left[high] > count:
            left[low] -= count
            left[high] -= count
            out[i] = True
            done += count
    return done
