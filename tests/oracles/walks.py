"""Walks by brute force: each node's path on its own, in Python integers.

Random choices are specified: a second implementation must compute the same numbers, or indexes
would not be reproducible.

    mix   splitmix64's finalizer
    key   mix(mix(mix(seed + G) ^ (sample G + 1)) ^ (step G + 1)),    G = 0x9E3779B97F4A7C15
    draw  mix(key + node G)
    uniform choice    the (draw * degree) >> 64 -th in-neighbor
    compact choice    the uniform choice of step 1, at every step
    turn              added to the step of a key: 16 for walks over out-links
    order   four rounds of (xor key, times odd multiplier, xor-shift) on b-bit words
    weighted choice   the first whose running share of the weights is above (draw >> 32) / 2**32,
                      shares rounded down to multiples of 2**-32, the last one's 1
    clock   -log(1 - x) / weight, x = ((draw of the in-neighbor >> 12) + 1/2) / 2**52
"""

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
NEVER = 255


def mix(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def key_of(seed: int, sample: int, step: int) -> int:
    key = mix((seed + GOLDEN) & MASK)
    key = mix(key ^ ((sample * GOLDEN + 1) & MASK))
    return mix(key ^ ((step * GOLDEN + 1) & MASK))


def draw(key: int, node: int) -> int:
    return mix((key + node * GOLDEN) & MASK)


def place(key: int, node: int, nodes: int) -> int:
    """The place of ``node`` in the order of ``key``."""
    bits = max(16, (nodes - 1).bit_length())
    mask, shift = 2**bits - 1, (bits + 1) // 2
    words = [draw(key, i) for i in range(4)]
    value = node
    for round_, word in enumerate(words):
        value = ((value ^ (word & mask)) * ((word >> 32) | 1)) & mask
        if round_ < 3:
            value ^= value >> shift
    return value


def ring(key: int, node: int, weight: float) -> float:
    """The time at which the clock of ``node`` rings for a link of this weight."""
    return -math.log1p(-((draw(key, node) >> 12) + 0.5) / 2**52) / weight


def choose_weighted(
    step: str, key: int, node: int, neighbors: list[int], weights: list[float]
) -> int:
    if step == "clock":
        times = [ring(key, u, w) for u, w in zip(neighbors, weights, strict=True)]
        return neighbors[times.index(min(times))]
    running = list(accumulate(map(Fraction, weights)))
    value = draw(key, node) >> 32
    for u, share in zip(neighbors, running, strict=True):
        if share * 2**32 // running[-1] > value:
            return u
    return neighbors[-1]


def choose(step: str, key: int, node: int, neighbors: list[int], nodes: int) -> int:
    if step != "argmin":
        return neighbors[(draw(key, node) * len(neighbors)) >> 64]
    return min(neighbors, key=lambda u: place(key, u, nodes))


def paths(
    neighbors: list[list[int]],
    step: str,
    seed: int,
    sample: int,
    length: int,
    turn: int = 0,
    weights: list[list[float]] | None = None,
) -> list[list[int]]:
    """The path of every node, itself first; shorter than length + 1 if the walk ended."""
    found = []
    for node in range(len(neighbors)):
        path = [node]
        for t in range(1, length + 1):
            current = path[-1]
            if not neighbors[current]:
                break
            key = key_of(seed, sample, (1 if step == "compact" else t) + turn)
            if weights is not None:
                path.append(
                    choose_weighted(step, key, current, neighbors[current], weights[current])
                )
            else:
                path.append(choose(step, key, current, neighbors[current], len(neighbors)))
        found.append(path)
    return found


def meeting_times(walked: list[list[int]]) -> NDArray[np.int64]:
    """tau of all pairs: the first step at which both paths are at one node, NEVER if none."""
    n = len(walked)
    times = np.full((n, n), NEVER)
    for u in range(n):
        for v in range(n):
            for t, (a, b) in enumerate(zip(walked[u], walked[v], strict=False)):
                if a == b:
                    times[u, v] = t
                    break
    return times


def fingerprint_graph(times: NDArray[np.int64]) -> tuple[list[int | None], list[int]]:
    """Parent and label of each node by 001, 2.1.1: of the smaller nodes that it meets, the one met
    first, and of these the smallest.
    """
    parents: list[int | None] = []
    labels: list[int] = []
    for u in range(len(times)):
        met = [(int(times[u, v]), v) for v in range(u) if times[u, v] != NEVER]
        parents.append(min(met)[1] if met else None)
        labels.append(min(met)[0] if met else 0)
    return parents, labels


def tau_in_fingerprint_graph(parents: list[int | None], labels: list[int], u: int, v: int) -> int:
    """The largest of the last labels before the paths of u and v intersect (001, 2.1.1)."""

    def ancestors(node: int) -> dict[int, int]:
        found, last = {node: 0}, 0
        while (above := parents[node]) is not None:
            last = labels[node]
            node = above
            found[node] = last
        return found

    first, second = ancestors(u), ancestors(v)
    common = [max(first[w], second[w]) for w in first if w in second]
    return min(common) if common else NEVER
