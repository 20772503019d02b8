"""The map: the page in the middle, related ones around it, lines among those that are related to
each other.

A page stands the nearer the better its score: the best on the inner ring, the last on the outer
one, between them by the logarithm, as scores of a list often span some powers of ten; what is less
than a thousandth of the best stands on the outer ring.

Its place on the way round is free, so that pages that belong together stand together: they go round
in the order of the angle of their rows in the two smoothest eigenvectors of the Laplacian of their
scores with each other. Neighbors are equally far apart on the way round.

Labels are put beside, above or below their page, the best page first, wherever no other label and
no page is in the way; where there is no room there is none, and the number says who it is.

Cost: a question for each page on the map (their lines), and some 100 µs.
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
_RADIUS, INNER, OUTER = 13, 84, 212
_LINES = 2
"""How many of the others each is joined with."""
_SIGN, _WIDE, _TALL = 7.6, 13.0, 17
"""Width of a sign, of a wide one, and height of a label."""


@dataclass(frozen=True)
class Spot:
    """A page on the map: its rank, its middle, and its label, "" for none: where it begins, ends or
    has its middle, by ``anchor``.
    """

    rank: int
    x: float
    y: float
    label: str
    at: tuple[float, float]
    anchor: str


@dataclass(frozen=True)
class Line:
    """A line between the middles of two pages; ``strength`` in (0, 1] is their score over the best
    on the map.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    strength: float
    ends: tuple[int, int]


def closeness(
    index: Index, nodes: Sequence[str], settings: Mapping[str, Any]
) -> NDArray[np.float64]:
    """How each is related to its nearest others: float64[n, n], symmetric, 0 for all the rest."""
    near = np.zeros((len(nodes), len(nodes)))
    places = {node: place for place, node in enumerate(nodes)}
    for node, place in places.items():
        others = [other for other in nodes if other != node]
        if not others:
            continue
        for hit in index.related(node, _LINES, only=others, interval="bernstein", **settings):
            other = places[str(hit.node)]
            near[place, other] = near[other, place] = max(near[place, other], hit.score)
    return near


def plot_map(
    hits: Sequence[Hit], labels: Sequence[str], near: NDArray[np.float64], first: int, middle: str
) -> list[Spot]:
    """Where the hits stand; the first has the rank ``first``. ``middle`` is the label there."""
    scores = np.array([max(hit.score, 1e-300) for hit in hits])
    falls = np.minimum(np.log(scores.max() / scores), math.log(1000))
    away = falls / falls.max() if falls.max() > 0 else np.full(len(hits), 0.5)
    radii = INNER + (OUTER - INNER) * away
    turns = np.empty(len(hits))
    turns[_order(near)] = np.arange(len(hits)) / len(hits)
    angles = 2 * math.pi * (turns - turns[0]) - math.pi / 2  # the first on top
    xs = WIDTH / 2 + radii * np.cos(angles)
    ys = HEIGHT / 2 + radii * np.sin(angles)
    middles = [(round(float(x), 1), round(float(y), 1)) for x, y in zip(xs, ys, strict=True)]
    taken = [_box(x, y, 2 * _RADIUS, 2 * _RADIUS, "middle") for x, y in middles]
    taken.append(_box(WIDTH / 2, HEIGHT / 2, 36, 36, "middle"))
    taken.append(_box(WIDTH / 2, HEIGHT / 2 + BELOW, 1.1 * _width(middle), _TALL, "middle"))
    found = []
    for rank, ((x, y), label) in enumerate(zip(middles, labels, strict=True), first):
        at, anchor = _label(x, y, label, taken)
        found.append(Spot(rank, x, y, label if anchor else "", at, anchor))
    return found


def lines_of(spots: Sequence[Spot], near: NDArray[np.float64]) -> list[Line]:
    """The lines, the weakest first, so that strong ones lie above."""
    ends = np.argwhere(np.triu(near) > 0).tolist()
    ends.sort(key=lambda pair: float(near[pair[0], pair[1]]))
    most = float(near.max(initial=0.0))
    return [
        Line(
            spots[a].x,
            spots[a].y,
            spots[b].x,
            spots[b].y,
            round(float(near[a, b]) / most, 3),
            (spots[a].rank, spots[b].rank),
        )
        for a, b in ends
    ]


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
    side, out = _RADIUS + 5, _RADIUS + 12
    right = [((x + side, y), "start"), ((x - side, y), "end")]
    if x < WIDTH / 2:
        right.reverse()
    above = [((x, y - out), "middle"), ((x, y + out), "middle")]
    if y > HEIGHT / 2:
        above.reverse()
    corner = [
        ((x + sx * (_RADIUS - 2), y + sy * out), "start" if sx > 0 else "end")
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
