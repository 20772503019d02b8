"""Proximity: how near two pages are along links taken either way, hubs divided out.

With A the links taken either way (one that goes both ways counts twice), d their sums by page, D
the diagonal of d, and N = D**(-1/2) A D**(-1/2):

    score(u, v) = min(1, sum over k >= 1 of  damping**k (N**k)(u, v))       for u other than v
                = min(1, sqrt(d(u) / d(v)) * share(u, v) / (1 - damping))

with share(u, v) the personalised PageRank of v from u along links taken either way: where a walk is
that goes on with the probability ``damping`` and starts again at u else. The root takes out what a
page gets for having many links: a link between pages of degrees d and e adds damping / sqrt(d e).
Only pages that are linked with little but each other come to 1. A page and itself score 1.

It reaches everything that is connected, so it completes lists; what is two or three links away is
told apart by how many ways lead there.

Weights: if links have weights, they are the entries of A.

Convention: the score that is told is never above the truth. It is what a search from u finds that
reads about ``effort`` links, most of them near u, and more only until it has reached ``reach``
pages. With e the largest of what is left to hand on by a page over its d, the truth is above it by

    sqrt(d(u) d(v)) * e / (1 - damping)     at most,

which intervals contain. What is told is symmetric up to that; the measure is.

Cost: the effort, some 3 ns a link. Exact where all is read.
Source: Zhou, Bousquet, Lal, Weston, Schoelkopf 2004, *Learning with local and global consistency*,
for the matrix; Andersen, Chung, Lang 2006, 3, for the search and its bound, as links are taken
either way.
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.measure import Measure
from cocite.measures.ppr import DAMPING
from cocite.measures.settings import Setting

__all__ = ["EFFORT", "FARTHER", "PROXIMITY", "REACH"]

FARTHER = replace(DAMPING, default=0.95)
EFFORT = Setting("effort", 30_000, "about how many links a question reads", 1, 10**12)
REACH = Setting(
    "reach", 200, "read on beyond the effort until so many pages are found, or all", 1, 2**32 - 1
)

PROXIMITY = Measure(
    name="proximity",
    summary="how near along links taken either way, hubs divided out; reaches all there is",
    layouts=("links",),
    ask=(FARTHER, EFFORT, REACH),
    symmetric=False,
    weighted=True,
    direction="any",
    directions=("any",),
)
