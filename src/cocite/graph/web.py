"""What is settled of a generated web before any page of it: hosts, topics, and the law of degrees.

    sizes of hosts    u ** (-1 / 0.82), scaled to 100 pages a host on average, at most
                      55 sqrt(nodes): u drawn for each host
    topics            a tree, three levels deep; a host's leaf is its place in a random order of all
                      hosts, cut at leaves of rising size
    in-degrees        0.78 * u ** (-1 / alpha), alpha such that the in-degrees of all pages add up
                      to a little less than the links wanted

What then is missing, at most 0.3 % of the links on graphs that are neither tiny nor dense,
is spread evenly, so the number of links is exactly the one asked for. If even
alpha = 4 gives too many links, pages lose all their in-links at random; if alpha = 0.5 gives too
few, the rest comes from anywhere, and the graph is dense rather than web-like.

Cost: about ten passes over the pages, 20 ns a page; 4 bytes a host, 40 while hosts are laid out.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, isqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["Web", "plan_web"]

DEPTH = 3
"""Levels of the tree of topics below its root."""

_PAGES_A_HOST = 100
_HOST_TAIL, _LARGEST_HOST = 0.82, 55
_LARGEST_DEGREE = 30
_DEGREE_SCALE = 0.78
_TAILS = 0.5, 4.0
_CLOSE = 0.003
_HOSTS_A_TOPIC, _MOST_BRANCHES = 20, 10
_TOPIC_SKEW = 1.5
_SHARE = 1 << 16
_PIECE = 1 << 18
_DOMAIN = 1 << 63
"""Keys of the generator are those of samples that no walk has."""


@dataclass(frozen=True)
class Web:
    """All that kernels need: O(hosts) memory.

    ``starts`` uint32[hosts + 1]; ``order`` and ``topics`` uint32[leaves + 1]: hosts in a random
    order, and where each leaf topic begins in it; ``law`` of the in-degrees, with exponent
    ``tail``; ``keys``, ``plan``: see ``kernels/generate.py``; ``branches`` of the tree of topics.
    """

    starts: NDArray[np.uint32]
    order: NDArray[np.uint32]
    topics: NDArray[np.uint32]
    branches: int
    law: NDArray[np.float64]
    tail: float
    keys: NDArray[np.uint64]
    plan: NDArray[np.int64]

    @property
    def nodes(self) -> int:
        """How many pages there are."""
        return int(self.starts[-1])

    @property
    def hosts(self) -> int:
        """How many hosts there are."""
        return self.starts.size - 1

    def pages(self, first: int, count: int) -> NDArray[np.uint32]:
        """uint32[count, 2]: in-degrees from page ``first`` on, all and those from outside."""
        from cocite.kernels.generate import in_degrees

        out = np.empty((count, 2), np.uint32)
        in_degrees(first, self.starts, self.law, self.keys, self.plan, out)
        return out


def plan_web(nodes: int, links: int, seed: int) -> Web:
    """Settle a web of ``nodes`` pages and exactly ``links`` links."""
    from cocite.kernels.generate import KEYS, PLAN_WORDS
    from cocite.kernels.random import draw_key, empty_order, make_order

    key = [draw_key(np.uint64(seed), np.uint64(_DOMAIN), np.uint64(i)) for i in range(KEYS + 2)]
    starts = _host_starts(nodes, np.uint64(key[KEYS]))
    hosts = starts.size - 1
    order = empty_order()
    make_order(np.uint64(key[KEYS + 1]), np.uint64(max(2, (hosts - 1).bit_length())), order)
    branches = min(_MOST_BRANCHES, max(2, round((hosts / _HOSTS_A_TOPIC) ** (1 / DEPTH))))
    leaves = branches**DEPTH
    topics = [round(hosts * (leaf / leaves) ** _TOPIC_SKEW) for leaf in range(leaves + 1)]
    plan = np.zeros(PLAN_WORDS, np.int64)
    plan[:] = nodes, (nodes - 1) // 2, _LARGEST_DEGREE * isqrt(nodes), _SHARE, 0, 0, _stride(nodes)
    keys = np.array(key[:KEYS], np.uint64)
    tail, linked, found = _fit(links, starts, keys, plan)
    each, rest = divmod(links - found, nodes)
    plan[3:6] = linked, each, rest
    return Web(starts, order, np.array(topics, np.uint32), branches, _law(tail), tail, keys, plan)


def _law(tail: float, scale: float = _DEGREE_SCALE) -> NDArray[np.float64]:
    """scale * u ** (-1 / tail) as a table. Python's powers: the same bytes on every machine."""
    from cocite.kernels.generate import CELLS, LEVELS

    inside = [(1 + cell / CELLS) ** (-1 / tail) for cell in range(CELLS + 1)]
    outside = [scale * 2.0 ** ((level + 1) / tail) for level in range(LEVELS)]
    return np.outer(outside, inside)


def _host_starts(nodes: int, key: np.uint64) -> NDArray[np.uint32]:
    """Where each host begins, and ``nodes``; a host has at least one page."""
    from cocite.kernels.generate import heavy_tailed

    sizes = np.empty(max(1, nodes // _PAGES_A_HOST), np.float64)
    heavy_tailed(key, _law(_HOST_TAIL, 1.0), sizes)
    largest = _LARGEST_HOST * isqrt(nodes)
    for _ in range(8):  # cutting the largest down makes all others, so also those, larger
        sizes = np.minimum(sizes, largest / nodes * sizes.cumsum()[-1])
    ends = sizes.cumsum()
    starts = (ends * (nodes / ends[-1])).astype(np.int64)
    starts[-1] = nodes
    return np.unique(np.append(0, starts)).astype(np.uint32)


def _stride(nodes: int) -> int:
    """About nodes / golden ratio, coprime to nodes: its multiples reach all, far ones first."""
    stride = round(nodes * 0.6180339887498949) % max(nodes, 1)
    while gcd(stride, nodes) != 1:
        stride += 1
    return stride


def _fit(
    links: int, starts: NDArray[np.uint32], keys: NDArray[np.uint64], plan: NDArray[np.int64]
) -> tuple[float, int, int]:
    """The tail, the pages of 2**16 with in-links, and how many links these make: not above."""

    def total(tail: float, linked: int) -> int:
        from cocite.kernels.generate import in_degrees

        law, nodes, found = _law(tail), int(starts[-1]), 0
        plan[3] = linked
        for first in range(0, nodes, _PIECE):
            out = np.empty((min(_PIECE, nodes - first), 2), np.uint32)
            found += int(in_degrees(first, starts, law, keys, plan, out))
        return found

    heavy, light = _TAILS
    found = total(light, _SHARE)
    if found > links:
        least, most = 0, _SHARE
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if total(light, middle) <= links else (least, middle)
        return light, least, total(light, least)
    for _ in range(40):
        if links - found <= _CLOSE * links:
            break
        tail = (heavy + light) / 2
        made = total(tail, _SHARE)
        if made <= links:
            light, found = tail, made
        else:
            heavy = tail
    return light, _SHARE, found
