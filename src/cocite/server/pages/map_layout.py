"""Group and position the hits on a map, given their similarities.

Groups greedily increase the modularity Q = (1 / 2m) sum (w_ij - k_i k_j / 2m) [i and j in one
group]. The two groups whose union increases Q most are merged until no union increases Q; then
nodes move between groups while moves increase Q; and both steps repeat (Clauset, Newman, Moore
2004; Blondel et al. 2008). At most six groups remain, none of a single node.

Distances from the center are given and grow with rank. Each group gets a sector in proportion to
its size. Within the sector, each node in turn moves to the angle with the least stress and label
overlap, until no node moves (coordinate descent). Stress compares distances with ranks of
dissimilarity.

A round of merges costs O(n^3), a round of moves O(n^2); 20 nodes take about 10 ms.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_GROUPS = 6
LEAST_MODULARITY = 0.03
"""Minimum modularity for showing groups."""
_NEAREST = 4
_GAP = math.radians(16)
"""Gap between sectors."""
_ROUNDS = 12
_TRIED = (np.arange(48) + 0.5) / 48
"""Angles to try, as fractions of the sector."""
_LABEL = np.array([150.0, 40.0])
_CROWD = 2.0
"""Size of a label, and cost of an overlap."""
_TURNS = 200


def modularity(near: Floats, groups: Ints) -> float:
    """Return Q of a partition, for symmetric weights."""
    total = near.sum()
    if not total:
        return 0.0
    same = groups[:, None] == groups[None, :]
    return float((_excess(near) * same).sum() / total)


def communities(near: Floats) -> Ints:
    """Return a partition that no merge and no move improves."""
    groups = np.arange(len(near))
    if not near.any():
        return groups
    excess = _excess(near)
    rounding = 1e-12 * near.sum()
    while True:
        moved = _join(excess, groups, rounding)
        moved |= _move(excess, groups, rounding)
        if not moved:
            return groups


def nearest(near: Floats, count: int) -> Floats:
    """Set similarities to 0, except those of each page to its ``count`` nearest ones and ties."""
    if len(near) <= count:
        return near
    least = np.partition(near, len(near) - count, axis=1)[:, len(near) - count, None]
    kept: Floats = np.where((near >= least) | (near >= least.T), near, 0.0)
    return kept


def groups_of(near: Floats) -> Ints:
    """Return the group of each hit, 0 to 5 by best rank; -1 for none. Only the nearest similarities
    count, because all hits of a query are somewhat similar.
    """
    near = nearest(near, _NEAREST)
    groups = communities(near)
    none = np.full(len(near), -1)
    if len(near) < 4 or modularity(near, groups) < LEAST_MODULARITY:
        return none
    groups = np.where(near.any(axis=1), groups, -1)
    while True:
        names, sizes = np.unique(groups[groups >= 0], return_counts=True)
        if len(names) < 2 or (len(names) <= MOST_GROUPS and sizes.min() > 1):
            break
        least = names[np.argmin(sizes)]
        inside = groups == least
        means = [near[inside][:, groups == name].mean() for name in names]
        means[int(np.argmin(sizes))] = -1.0
        groups[inside] = names[int(np.argmax(means))]
    if len(names) < 2:
        return none
    first = [int(np.argmax(groups == name)) for name in names]
    for place, name in enumerate(names[np.argsort(first)]):
        none[groups == name] = place
    return none


def centers(near: Floats, groups: Ints, degrees: Ints | None) -> list[int]:
    """Return the node that names each group: the one with the largest total similarity within the
    group, times the logarithm of the in-degree if known.
    """
    within = (near * (groups[:, None] == groups[None, :])).sum(axis=1)
    if degrees is not None:
        within = within * np.log2(2 + degrees)
    return [
        int(np.argmax(np.where(groups == group, within, -1.0))) for group in range(groups.max() + 1)
    ]


def _excess(near: Floats) -> Floats:
    degrees = near.sum(axis=1)
    excess: Floats = near - np.outer(degrees, degrees) / near.sum()
    return excess


def _join(excess: Floats, groups: Ints, rounding: float) -> bool:
    joined = False
    while True:
        names = np.unique(groups)
        member = (groups[:, None] == names[None, :]).astype(float)
        gains = np.triu(member.T @ excess @ member, 1)
        a, b = np.unravel_index(np.argmax(gains), gains.shape)
        if gains[a, b] <= rounding:
            return joined
        groups[groups == names[b]] = names[a]
        joined = True


def _move(excess: Floats, groups: Ints, rounding: float) -> bool:
    moved = False
    while True:
        before = moved
        moved = False
        for node in range(len(groups)):
            rest = excess[node].copy()
            rest[node] = 0
            sums = np.bincount(groups, rest, minlength=len(groups))
            best = int(np.argmax(sums))
            if sums[best] > sums[groups[node]] + rounding:
                groups[node] = best
                moved = True
        if not moved:
            return before


# -- positions ---------------------------------------------------------------------------


def dissimilarities(near: Floats) -> Floats:
    """Rank all pairs by dissimilarity, from 0 to 1; ties get the mean rank."""
    pairs = np.triu_indices(len(near), 1)
    if not len(pairs[0]):
        return np.zeros_like(near)
    _, inverse, counts = np.unique(-near[pairs], return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found = np.zeros_like(near)
    found[pairs] = ((ends - counts / 2) / ends[-1])[inverse]
    return found + found.T


def arrange(near: Floats, radii: Floats, groups: Ints, room: float) -> Floats:
    """Return positions, float64[n, 2], at ascending ``radii`` and at least ``room`` apart."""
    count, outer = len(near), float(radii.max())
    low, wide = _sectors(near, groups)
    aims = outer * (0.2 + 1.6 * dissimilarities(near))
    angles = low + wide * _spread(groups)
    places = _polar(radii, angles)
    for _ in range(_ROUNDS):
        before = angles.copy()
        for node in range(count):
            others = np.arange(count) != node
            tried = np.append(angles[node], low[node] + wide[node] * _TRIED)
            spots = _polar(np.full(len(tried), radii[node]), tried)
            away = np.abs(spots[:, None, :] - places[None, others, :])
            spans = np.hypot(away[..., 0], away[..., 1])
            stress = ((spans - aims[node, others]) / outer) ** 2
            crowd = np.maximum(0.0, 1 - away / _LABEL).prod(axis=2)
            best = int(np.argmin((stress + _CROWD * crowd).sum(axis=1)))
            angles[node], places[node] = tried[best], spots[best]
        if np.array_equal(before, angles):
            break
    return _without_overlap(places, room)


def _sectors(near: Floats, groups: Ints) -> tuple[Floats, Floats]:
    """Return the start and width of each node's sector; similar groups are adjacent."""
    count, some = len(groups), int(groups.max()) + 1
    if some < 2:
        return np.full(count, -np.pi / 2), np.full(count, 2 * np.pi)
    names = np.where(groups < 0, some, groups)
    sizes = np.bincount(names)
    member = names[:, None] == np.arange(len(sizes))
    close = member.T.astype(float) @ near @ member / np.outer(sizes, sizes)
    wide = (2 * np.pi - len(sizes) * _GAP) * sizes / count

    def starts(order: tuple[int, ...]) -> Floats:
        turned = list(order)
        found = np.empty(len(sizes))
        found[turned] = np.cumsum(wide[turned] + _GAP) - wide[turned]
        found += -found[0] - wide[0] / 2 - np.pi / 2
        return found

    def cost(order: tuple[int, ...]) -> float:
        middles = starts(order) + wide / 2
        return float((close * (1 - np.cos(middles[:, None] - middles[None, :]))).sum())

    orders = [(0, *rest) for rest in permutations(range(1, len(sizes)))]
    best = min(orders, key=lambda order: round(cost(order), 9))
    return starts(best)[names], wide[names]


def _spread(groups: Ints) -> Floats:
    """Spread each group evenly from 0 to 1, by rank from the middle to both sides."""
    found = np.empty(len(groups))
    for group in np.unique(groups):
        inside = np.flatnonzero(groups == group)
        turns = np.arange(len(inside))
        sides = np.where(turns % 2, -(turns + 1) // 2, turns // 2)
        found[inside] = (np.argsort(np.argsort(sides)) + 0.5) / len(inside)
    return found


def _without_overlap(places: Floats, room: float) -> Floats:
    """Rotate pages around the center until none overlap, with space for labels if possible; as a
    last resort, space all pages evenly.
    """
    radii = np.hypot(places[:, 0], places[:, 1])
    angles = np.arctan2(places[:, 1], places[:, 0])
    for wide in (1.35 * room, room):
        turned = _turned(radii, angles, wide)
        if turned is not None:
            return turned
    rounds = np.empty(len(angles))
    rounds[np.argsort(angles % (2 * np.pi), kind="stable")] = np.arange(len(angles))
    return _polar(radii, 2 * np.pi * (rounds - rounds[0]) / len(angles) - np.pi / 2)


def _turned(radii: Floats, angles: Floats, room: float) -> Floats | None:
    order = np.sign(np.arange(len(angles))[:, None] - np.arange(len(angles))[None, :])
    for _ in range(_TURNS):
        found = _polar(radii, angles)
        away = found[:, None, :] - found[None, :, :]
        spans = np.hypot(away[..., 0], away[..., 1])
        np.fill_diagonal(spans, np.inf)
        lacks = np.maximum(0.0, room - spans)
        if not lacks.any():
            return found
        sides = (angles[:, None] - angles[None, :] + np.pi) % (2 * np.pi) - np.pi
        signs = np.where(np.abs(sides) < 1e-9, order, np.sign(sides))
        angles = angles + (0.55 * (lacks + 0.1 * (lacks > 0)) * signs).sum(axis=1) / radii
    return None


def _polar(radii: Floats, angles: Floats) -> Floats:
    places: Floats = radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return places
