"""The map: the page in the middle, related ones around it, lines among those that are related to
each other.

A page stands the nearer the better its score: the best on the inner ring, the last on the outer
one, between them by rank and by the logarithm of the score, as scores of a list often span some
powers of ten; what is less than a thousandth of the best counts as a thousandth.

Its place on the way round is free, so that pages that belong together stand together. Groups are
found by their scores with each other: those two are joined whose union raises the modularity most
(Clauset, Newman, Moore 2004), until none does; of more than six the smallest joins the one most
like it, and so does a page that is alone. Each group has a sector. Groups, and pages within them,
go round in the order of the angle of their rows in the two smoothest eigenvectors of the Laplacian
of these scores. Pages are as large as the root of the number of links to them.

Labels are put beside, above or below their page, the best page first, wherever no other label and
no page is in the way; where there is no room there is none, and the number says who it is.

Cost: a question for each page on the map, and some 500 µs.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.search import Index
from cocite.search.hits import Hit

MOST = 20
"""Pages on a map."""
WIDTH, HEIGHT = 640, 500
BELOW = 29
"""How far below the middle its label has its own."""
SMALLEST, LARGEST, INNER, OUTER = 6.0, 11.0, 100, 212
"""Radii of pages, and of the rings."""
GROUPS = 6
"""Groups that have colors of their own."""
_LINES = 2
"""How many of the others each is joined with."""
_GAP, _CLEAR = math.radians(16), 2 * LARGEST + 2
"""Between sectors, where there is room for it; and between the middles of pages."""
_LEAST_MODULARITY = 0.03
"""Groups that are told apart less are none."""
_SIGN, _WIDE, _TALL = 7.6, 13.0, 17
"""Width of a sign, of a wide one, and height of a label."""


@dataclass(frozen=True)
class Spot:
    """A page on the map: its rank, middle, radius and group, and its label, "" for none: where it
    begins, ends or has its middle, by ``anchor``.
    """

    rank: int
    x: float
    y: float
    size: float
    group: int
    label: str
    at: tuple[float, float]
    anchor: str


@dataclass(frozen=True)
class Line:
    """A line between the middles of two pages; ``strength`` in (0, 1] is their score over the best
    on the map, ``group`` that of both, None if they are of two.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    strength: float
    group: int | None
    ends: tuple[int, int]


def closeness(
    index: Index, nodes: Sequence[str], settings: Mapping[str, Any]
) -> NDArray[np.float64]:
    """How each is related to the others: float64[n, n], symmetric, 0 on the diagonal."""
    near = np.zeros((len(nodes), len(nodes)))
    places = {node: place for place, node in enumerate(nodes)}
    for node, place in places.items():
        others = [other for other in nodes if other != node]
        if not others:
            continue
        for hit in index.related(node, len(others), only=others, interval="bernstein", **settings):
            other = places[str(hit.node)]
            near[place, other] = near[other, place] = max(near[place, other], hit.score)
    return near


def groups_of(near: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the group of each page, numbered from 0 by their best ranks; all 0 if no groups can be
    told apart: int64[n].
    """
    count, total = near.shape[0], near.sum()
    members = [[place] for place in range(count)]
    if count < 4 or total <= 0:
        return np.zeros(count, np.int64)
    shares = near / total  # of all links those between two groups
    ends = shares.sum(axis=1)
    while len(members) > 1:
        gains = shares - np.outer(ends, ends)
        np.fill_diagonal(gains, -1.0)
        a, b = sorted(divmod(int(gains.argmax()), len(members)))
        small = [place for place, group in enumerate(members) if len(group) == 1]
        if gains[a, b] <= 0:
            if _modularity(shares, ends) < _LEAST_MODULARITY:
                return np.zeros(count, np.int64)
            if len(members) <= GROUPS and not small:
                break
            sizes = [len(group) for group in members]
            least = small[0] if small else int(np.argmin(sizes))
            means = shares[least] / sizes
            means[least] = -1.0
            a, b = sorted((least, int(means.argmax())))
        members[a] += members.pop(b)
        ends[a] += ends[b]
        shares[a] += shares[b]
        shares[:, a] += shares[:, b]
        shares = np.delete(np.delete(shares, b, 0), b, 1)
        ends = np.delete(ends, b)
    found = np.empty(count, np.int64)
    for number, group in enumerate(sorted(members, key=min)):
        found[group] = number
    return found


def _modularity(shares: NDArray[np.float64], ends: NDArray[np.float64]) -> float:
    return float(np.trace(shares) - (ends**2).sum())


def central(
    near: NDArray[np.float64], groups: NDArray[np.int64], links: Sequence[int]
) -> list[int]:
    """Return the page that each group is called by: most related to the others, with most links."""
    inside = np.where(groups[:, None] == groups[None, :], near, 0).sum(axis=1)
    weights = (inside + 1e-9) * np.log2(2 + np.asarray(links, float))
    return [
        int(np.flatnonzero(groups == group)[weights[groups == group].argmax()])
        for group in range(int(groups.max(initial=0)) + 1)
    ]


def plot_map(
    hits: Sequence[Hit],
    labels: Sequence[str],
    near: NDArray[np.float64],
    first: int,
    middle: str,
    links: Sequence[int] = (),
) -> list[Spot]:
    """Where the hits stand; the first has the rank ``first``. ``middle`` is the label there, and
    ``links`` is how many lead to each.
    """
    count = len(hits)
    scores = np.array([max(hit.score, 1e-300) for hit in hits])
    falls = np.minimum(np.log(scores.max() / scores), math.log(1000))
    falls = falls / falls.max() if falls.max() > 0 else np.full(count, 0.5)
    ranks = np.sqrt(np.arange(count) / max(1, count - 1))
    radii = INNER + (OUTER - INNER) * (0.6 * ranks + 0.4 * falls)
    groups = groups_of(near)
    angles = _angles(_order(near), groups)
    angles -= angles[0] + math.pi / 2  # the first on top
    xs = WIDTH / 2 + radii * np.cos(angles)
    ys = HEIGHT / 2 + radii * np.sin(angles)
    middles = [(round(float(x), 1), round(float(y), 1)) for x, y in zip(xs, ys, strict=True)]
    roots = np.sqrt(np.asarray(links or [1] * count, float))
    sizes = SMALLEST + (LARGEST - SMALLEST) * roots / max(1.0, roots.max())
    taken = [_box(x, y, 2 * LARGEST, 2 * LARGEST, "middle") for x, y in middles]
    taken.append(_box(WIDTH / 2, HEIGHT / 2, 36, 36, "middle"))
    taken.append(_box(WIDTH / 2, HEIGHT / 2 + BELOW, 1.1 * _width(middle), _TALL, "middle"))
    found = []
    for place, ((x, y), label) in enumerate(zip(middles, labels, strict=True)):
        at, anchor = _label(x, y, label, taken)
        size, group = round(float(sizes[place]), 1), int(groups[place])
        found.append(Spot(first + place, x, y, size, group, label if anchor else "", at, anchor))
    return found


def _angles(order: NDArray[np.int64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return where pages stand on the way round: a sector a group, gaps between sectors."""
    count, number = len(order), int(groups.max(initial=0)) + 1
    place = np.empty(count)
    place[order] = np.arange(count)
    means = np.bincount(groups, place, number) / np.bincount(groups, minlength=number)
    turns = np.lexsort((place, means[groups]))
    room = 2 * math.pi - count * _CLEAR / INNER
    gap = min(_GAP, max(0.0, room / number)) if number > 1 else 0.0
    step = (2 * math.pi - number * gap) / count
    sectors = np.cumsum(np.diff(groups[turns], prepend=groups[turns[0]]) != 0)
    found = np.empty(count)
    found[turns] = np.arange(count) * step + sectors * gap
    return found


def lines_of(spots: Sequence[Spot], near: NDArray[np.float64]) -> list[Line]:
    """The lines, the weakest first, so that strong ones lie above: from each page to the two others
    that it is most related to.
    """
    pairs = set[tuple[int, int]]()
    for place, row in enumerate(near):
        for other in np.argsort(-row, kind="stable")[:_LINES].tolist():
            if row[other] > 0:
                pairs.add((min(place, other), max(place, other)))
    ends = sorted(pairs, key=lambda pair: (float(near[pair]), pair))
    most = float(near.max(initial=0.0))
    return [
        Line(
            spots[a].x,
            spots[a].y,
            spots[b].x,
            spots[b].y,
            round(float(near[a, b]) / most, 3),
            spots[a].group if spots[a].group == spots[b].group else None,
            (spots[a].rank, spots[b].rank),
        )
        for a, b in ends
    ]


def hulls_of(spots: Sequence[Spot]) -> list[tuple[int, str]]:
    """The pages of each group as one line from page to page, to be drawn thick: (group, path)."""
    found = []
    for group in sorted({spot.group for spot in spots}):
        inside = [(spot.x, spot.y) for spot in spots if spot.group == group]
        path, left = [f"M{inside[0][0]} {inside[0][1]}h.1"], inside[1:]
        tree = inside[:1]
        while left:  # the shortest tree
            a, b = min(((a, b) for a in tree for b in left), key=lambda pair: math.dist(*pair))
            path.append(f"M{a[0]} {a[1]}L{b[0]} {b[1]}")
            tree.append(b)
            left.remove(b)
        found.append((group, "".join(path)))
    return found


def _order(near: NDArray[np.float64]) -> NDArray[np.int64]:
    """The places in the order of the way round."""
    count = near.shape[0]
    if count < 4 or not near.any():
        return np.arange(count)
    weights = near / near.max() + 1e-3  # so that all is connected
    np.fill_diagonal(weights, 0)
    degrees = weights.sum(axis=1)
    scale = 1 / np.sqrt(degrees)
    laplacian = np.eye(count) - scale[:, None] * weights * scale[None, :]
    vectors = np.linalg.eigh(laplacian)[1][:, 1:3] * scale[:, None]
    return np.argsort(np.arctan2(vectors[:, 1], vectors[:, 0]), kind="stable")


_Box = tuple[float, float, float, float]


def _label(x: float, y: float, label: str, taken: list[_Box]) -> tuple[tuple[float, float], str]:
    """Where a label goes and how it is anchored; "" if there is no room. It is taken then."""
    wide = _width(label)
    side, out = LARGEST + 5, LARGEST + 12
    right = [((x + side, y), "start"), ((x - side, y), "end")]
    if x < WIDTH / 2:
        right.reverse()
    above = [((x, y - out), "middle"), ((x, y + out), "middle")]
    if y > HEIGHT / 2:
        above.reverse()
    corner = [
        ((x + sx * (LARGEST - 2), y + sy * out), "start" if sx > 0 else "end")
        for sx, sy in ((1, -1), (1, 1), (-1, -1), (-1, 1))
    ]
    for at, anchor in [right[0], above[0], *corner, above[1], right[1]]:
        box = _box(*at, wide, _TALL, anchor)
        inside = box[0] >= 2 and box[1] >= 2 and box[2] <= WIDTH - 2 and box[3] <= HEIGHT - 2
        if label and inside and not any(_meet(box, other) for other in taken):
            taken.append(box)
            return (round(at[0], 1), round(at[1], 1)), anchor
    return (x, y), ""


def _width(label: str) -> float:
    """About as wide as it is."""
    return sum(_WIDE if unicodedata.east_asian_width(s) in "WF" else _SIGN for s in label) + 4


def _box(x: float, y: float, wide: float, tall: float, anchor: str) -> _Box:
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, y - tall / 2, left + wide, y + tall / 2


def _meet(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
