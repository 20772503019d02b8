"""Groups of the hits on a map, and where they stand: both functions of their similarities alone.

Groups: modularity Q = (1 / 2m) sum (w_ij - k_i k_j / 2m) [i and j in one group] is raised greedily:
the two groups whose union raises it most are joined until none does, then nodes change groups as
long as that raises it, and both again (Clauset, Newman, and Moore 2004; Blondel et al. 2008). So it
is never below that of joins alone. At most six groups stay, and none of one node.

Places: stress majorization (de Leeuw 1977, Gansner et al. 2004) toward distances that grow with
the rank of the dissimilarity, from a radial start. After each step, distances from the center are
made monotone in the rank of the hits (isotonic regression), so "closer to the center is more
similar" holds exactly. Nodes that touch turn about the center.

Cost: O(n^3) a round of joins and O(n^2) a step of stress; some milliseconds for 20 nodes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_GROUPS = 6
LEAST_MODULARITY = 0.03
"""Below it there are no groups to speak of."""
_NEAREST = 4
_STEPS = 80
_CENTER = 0.2
"""Weight of a distance from the center beside one of two hits: its order is kept anyway."""
_TURNS = 200


def modularity(near: Floats, groups: Ints) -> float:
    """Q of a partition of nodes with symmetric weights."""
    total = near.sum()
    if not total:
        return 0.0
    same = groups[:, None] == groups[None, :]
    return float((_excess(near) * same).sum() / total)


def communities(near: Floats) -> Ints:
    """A partition that no join of two groups and no move of one node makes more modular."""
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
    """Only the similarities of each to its ``count`` most similar others, and to equal ones."""
    if len(near) <= count:
        return near
    least = np.partition(near, len(near) - count, axis=1)[:, len(near) - count, None]
    kept: Floats = np.where((near >= least) | (near >= least.T), near, 0.0)
    return kept


def groups_of(near: Floats) -> Ints:
    """The group of each hit, 0 to 5 by its best rank; -1 for none. Only similarities to the nearest
    few count: all hits of one query are somewhat similar to each other.
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
    """The node that names each group: of the largest similarity within it, times the logarithm of
    its in-links where they are known.
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
    """Join pairs of groups, the best first; whether any was."""
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
    """Move nodes to better groups; whether any was."""
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


# -- places ------------------------------------------------------------------------------


def dissimilarities(near: Floats) -> Floats:
    """Ranks of the dissimilarities of all pairs, from 0 to 1; equal ones share the middle."""
    pairs = np.triu_indices(len(near), 1)
    if not len(pairs[0]):
        return np.zeros_like(near)
    _, inverse, counts = np.unique(-near[pairs], return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    found = np.zeros_like(near)
    found[pairs] = ((ends - counts / 2) / ends[-1])[inverse]
    return found + found.T


def arrange(near: Floats, radii: Floats, turns: Floats, inner: float, room: float) -> Floats:
    """Places about the center, float64[n, 2], at least ``room`` apart: from ``turns`` (angles) at
    ``radii``, which grow, the largest one the outermost.
    """
    outer = float(radii.max())
    places = _polar(radii, turns)
    if near.any():
        ranks = dissimilarities(near)
        starts = places, outer * _scaled(ranks)
        found = [_majorized(start, ranks, radii, inner, outer) for start in starts]
        places = _upright(min(found, key=lambda each: each[1])[0])
    return _without_overlap(places, room)


def _scaled(ranks: Floats) -> Floats:
    """Classical scaling: the two largest principal axes of the distances, signs fixed."""
    centered = np.eye(len(ranks)) - 1 / len(ranks)
    values, axes = np.linalg.eigh(centered @ (-0.5 * ranks**2) @ centered)
    axes = axes[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    signs = np.sign(axes[np.argmax(np.abs(axes), axis=0), np.arange(axes.shape[1])])
    found = np.zeros((len(ranks), 2))
    found[:, : axes.shape[1]] = axes * signs
    return found


def _majorized(
    start: Floats, ranks: Floats, radii: Floats, inner: float, outer: float
) -> tuple[Floats, float]:
    """Places of little stress, and that stress."""
    count = len(start)
    aims = np.zeros((count + 1, count + 1))
    aims[1:, 1:] = outer * (0.2 + 1.6 * ranks)
    aims[0, 1:] = aims[1:, 0] = radii
    weights = np.ones_like(aims)
    weights[0] = weights[:, 0] = _CENTER
    np.fill_diagonal(weights, 0)
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights)
    places = np.vstack([np.zeros(2), start])
    for _ in range(_STEPS):
        away = places[:, None, :] - places[None, :, :]
        spans = np.maximum(np.hypot(away[..., 0], away[..., 1]), 1e-9)
        ratios = weights * aims / spans
        places = inverse @ (np.diag(ratios.sum(axis=1)) - ratios) @ places
        places -= places[0]
        reach = np.maximum(np.hypot(places[1:, 0], places[1:, 1]), 1e-9)
        wanted = np.clip(_monotone(reach), inner, outer)
        places[1:] *= (wanted / reach)[:, None]
    away = places[:, None, :] - places[None, :, :]
    spans = np.hypot(away[..., 0], away[..., 1])
    return places[1:], float((weights * (spans - aims) ** 2).sum())


def _monotone(values: Floats) -> Floats:
    """The nearest sequence that never falls: pools of adjacent violators."""
    sums: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        sums.append(value)
        sizes.append(1)
        while len(sums) > 1 and sums[-2] * sizes[-1] > sums[-1] * sizes[-2]:
            sums[-2:] = [sums[-2] + sums[-1]]
            sizes[-2:] = [sizes[-2] + sizes[-1]]
    return np.repeat(np.array(sums) / np.array(sizes), sizes)


def _upright(places: Floats) -> Floats:
    """Turned so that the first is on top, mirrored so that the second is on the right."""
    turn = -np.pi / 2 - np.arctan2(places[0, 1], places[0, 0])
    turned = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    found: Floats = places @ turned.T
    if len(found) > 1 and found[1, 0] < 0:
        found[:, 0] *= -1
    return found


def _without_overlap(places: Floats, room: float) -> Floats:
    """Turn those that touch about the center until none do, with room for labels where there is
    some; as a last resort, all are equally far apart on the way round.
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
