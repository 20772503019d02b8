"""Plot a list as a map: the page in the middle, hits around it, lines between similar hits.

No hit is farther from the middle than a hit with a lower score. Distances combine the rank with the
logarithm of the score, because scores often span several powers of ten. Similar hits form groups
with their own colors (``map_layout.py``).

Labels go next to, above or below a hit, best hits first, where they overlap no other label or hit.
Hits without a label show only the rank. Lines take a query per hit on the map.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocite.search import Index
from cocite.search.hits import Hit
from cocite.server.pages import map_layout

MOST = 20
"""Maximum number of pages on a map."""
WIDTH, HEIGHT = 640, 500
BELOW = 29
"""Distance from the center of the map to its label below."""
_RADIUS, INNER, OUTER = 13, 84, 212
_LINES = 2
"""Number of lines from each page."""
_SIGN, _WIDE, _TALL = 7.6, 13.0, 17
"""Width of a normal and of a wide character, and height of a label."""


@dataclass(frozen=True)
class Spot:
    """A page on the map: rank, center, label ("" for none) with position and ``anchor``, and
    ``group`` (-1 for none). A ``central`` page names its group.
    """

    rank: int
    x: float
    y: float
    label: str
    at: tuple[float, float]
    anchor: str
    group: int = -1
    central: bool = False
    radius: float = 11.0

    @property
    def place(self) -> tuple[float, float]:
        """Return the center."""
        return self.x, self.y


@dataclass(frozen=True)
class Line:
    """A line between the centers of two pages.

    ``strength`` in (0, 1] is their similarity relative to the highest on the map; ``group`` is
    their common group, or -1.
    """

    x1: float
    y1: float
    x2: float
    y2: float
    strength: float
    ends: tuple[int, int]
    group: int = -1


def closeness(
    index: Index, nodes: Sequence[str], settings: Mapping[str, Any]
) -> NDArray[np.float64]:
    """Return the similarities between pages, float64[n, n], with 0 on the diagonal."""
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


def plot_map(
    hits: Sequence[Hit],
    labels: Sequence[str],
    near: NDArray[np.float64],
    first: int,
    middle: str,
    degrees: NDArray[np.int64] | None = None,
    ranks: NDArray[np.float64] | None = None,
) -> list[Spot]:
    """Arrange the hits; the first has rank ``first``, and ``middle`` is the center's label.

    Sizes show the hits' PageRanks, ``ranks``, or else their in-degrees, ``degrees``.
    """
    count = len(hits)
    scores = np.array([max(hit.score, 1e-300) for hit in hits])
    falls = np.minimum(np.log(scores.max() / scores), math.log(1000))
    away = falls / falls.max() if falls.max() > 0 else np.full(count, 0.5)
    places = np.sqrt(np.arange(count) / max(1, count - 1))
    radii = np.maximum.accumulate(INNER + (OUTER - INNER) * (0.6 * places + 0.4 * away))
    groups = map_layout.groups_of(near)
    found = map_layout.arrange(near, radii, groups, 2 * _RADIUS + 0.5)
    central = set(map_layout.centers(near, groups, degrees))
    sizes = np.full(count, 11.0)
    weights = degrees if ranks is None else ranks
    if weights is not None and weights.max() > 0:
        sizes = 8 + (_RADIUS - 8) * np.sqrt(weights / weights.max())
    middles = [(round(WIDTH / 2 + float(x), 1), round(HEIGHT / 2 + float(y), 1)) for x, y in found]
    taken = [_box(x, y, 2 * _RADIUS, 2 * _RADIUS, "middle") for x, y in middles]
    taken.append(_box(WIDTH / 2, HEIGHT / 2, 36, 36, "middle"))
    taken.append(_box(WIDTH / 2, HEIGHT / 2 + BELOW, 1.1 * _width(middle), _TALL, "middle"))
    spots: dict[int, Spot] = {}
    for place in sorted(range(count), key=lambda place: (place not in central, place)):
        (x, y), label = middles[place], labels[place]
        at, anchor = _label(x, y, label, taken)
        label = label if anchor else ""
        group, size = int(groups[place]), round(float(sizes[place]), 1)
        named = place in central
        spots[place] = Spot(first + place, x, y, label, at, anchor, group, named, size)
    return [spots[place] for place in range(count)]


def scale_circles(spots: Sequence[Spot], hits: Sequence[Hit], digits: int) -> list[tuple[int, str]]:
    """Return the inner and outer ring's radius, each with the interpolated similarity as text."""
    away = [math.dist(spot.place, (WIDTH / 2, HEIGHT / 2)) for spot in spots]
    found = np.interp([INNER, OUTER], np.maximum.accumulate(away), [hit.score for hit in hits])
    inner, outer = (f"{value:.{digits}f}" for value in found)
    return [(INNER, f"over {inner}" if away[0] > INNER + 1 else inner), (OUTER, outer)]


def lines_of(spots: Sequence[Spot], near: NDArray[np.float64]) -> list[Line]:
    """Return lines from each page to the two most similar others, strongest last, on top."""
    ends = np.argwhere(np.triu(map_layout.nearest(near, _LINES)) > 0).tolist()
    ends.sort(key=lambda pair: float(near[pair[0], pair[1]]))
    most = float(near.max(initial=0.0))
    return [_line(spots, a, b, round(float(near[a, b]) / most, 3)) for a, b in ends]


def hulls_of(spots: Sequence[Spot]) -> list[Line]:
    """Return the edges of each group's minimum spanning tree, to draw as wide lines."""
    found = []
    for group in range(max(spot.group for spot in spots) + 1):
        rest = [place for place, spot in enumerate(spots) if spot.group == group]
        inside = [rest.pop(0)]
        while rest:
            a, b = min(
                product(inside, rest), key=lambda ends: math.dist(*(spots[i].place for i in ends))
            )
            found.append(_line(spots, a, b, 1.0))
            inside.append(b)
            rest.remove(b)
    return found


def _line(spots: Sequence[Spot], a: int, b: int, strength: float) -> Line:
    one, other = spots[a], spots[b]
    group = one.group if one.group == other.group else -1
    ends = (one.rank, other.rank)
    return Line(one.x, one.y, other.x, other.y, strength, ends, group)


_Box = tuple[float, float, float, float]


def _label(x: float, y: float, label: str, taken: list[_Box]) -> tuple[tuple[float, float], str]:
    """Reserve space for a label; return its position and anchor, "" if no space is free."""
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
    return sum(_WIDE if unicodedata.east_asian_width(s) in "WF" else _SIGN for s in label) + 4


def _box(x: float, y: float, wide: float, tall: float, anchor: str) -> _Box:
    left = x - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return left, y - tall / 2, left + wide, y + tall / 2


def _meet(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
