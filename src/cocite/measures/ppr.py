"""Proximity: how near two pages are along links taken either way, hubs divided out.

With A the links taken either way (one that goes both ways counts twice), d their sums by page, D
the diagonal of d, and N = D**(-1/2) A D**(-1/2):

    score(u, v) = min(1, sum over k >= 1 of  damping**k (N**k)(u, v))       for u other than v
                = min(1, sqrt(d(u) / d(v)) * share(u, v) / (1 - damping))

with share(u, v) the personalized PageRank of v from u along links taken either way: where a walk is
that goes on with the probability ``damping`` and starts again at u else. The root takes out what a
page gets for having many links: a link between pages of degrees d and e adds damping / sqrt(d e).
Only pages that are linked with little but each other come to 1. A page and itself score 1.

It reaches everything that is connected, so it completes lists; what is two or three links away is
told apart by how many ways lead there.

Weights: if links have weights, they are the entries of A.

Convention: the score that is told is never above the truth. It is what a search from u finds that
reads about ``max_edges`` links, most of them near u, and more only until ``min_results`` pages are
found. With e the largest of what is left to hand on by a page over its d, the truth is above it by

    sqrt(d(u) d(v)) * e / (1 - damping)     at most,

which intervals contain. What is told is symmetric up to that; the measure is.

Cost: ``max_edges`` links, some 3 ns a link. Exact where all is read.
Source: Zhou, Bousquet, Lal, Weston, Schoelkopf 2004, *Learning with local and global consistency*,
for the matrix; Andersen, Chung, Lang 2006, 3, for the search and its bound, as links are taken
either way.

Personalized PageRank: where a walk is that sets out from a page again and again.

    score(u, v) = (1 - damping) [u = v] + damping * sum of score(u, x) / |O(x)| over x in I(v)

with O(x) the pages that x links to and I(v) those that link to v: the share of its time that a walk
spends at v which at each step follows a link with the probability ``damping`` and goes back to u
else. At a page without links it goes back to u as well. The scores from one u add up to 1.

Weights: if links have weights w(x, v), the walk follows them in proportion: score(u, x) / |O(x)|
becomes score(u, x) w(x, v) / sum of w(x, .).

Convention: by default the walk follows links forwards, the direction ``out``; in the direction
``in`` it follows them backwards, from a page to those that link to it. The measure is **not
symmetric**: score(u, v) says how near v is to a walk from u. A node's score with itself is not 1
but the share of time that the walk is there, 1 - damping at least.

A score is never above the truth, and below it by at most ``tolerance``; all that is missing, over
all nodes together, is within the tolerance as well. There is no error of sampling.

Cost: what is near the page, whatever the size of the graph, where links stay local: by default
0.6 ms on a crawl of 3 million links; where they lead everywhere, 20 sweeps over all of them. It
grows with log(1 / tolerance).
Source: Page, Brin, Motwani, Winograd 1999, 6; Haveliwala 2002, *Topic-sensitive PageRank*; computed
after Andersen, Chung, Lang 2006 (``kernels/push.py``).
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

DAMPING = Setting(
    "damping", 0.85, "the probability that the walk goes on; else it starts again", 0.001, 0.999
)
TOLERANCE = Setting("tolerance", 1e-4, "how far a score may be below the exact one", 1e-12, 1)

PPR = Measure(
    name="ppr",
    summary="how often a walk that keeps starting at a page is at the other; not symmetric",
    layouts=("links",),
    reader="cocite.index.layouts.links.push:PushReader",
    own_links=True,
    ask=(DAMPING, TOLERANCE),
    symmetric=False,
    weighted=True,
    direction="out",
)


# -- ppr-symmetric -----------------------------------------------------------------------


FARTHER = replace(DAMPING, default=0.9)
MAX_EDGES = Setting("max_edges", 30_000, "about how many links a question reads", 1, 10**12)
MIN_RESULTS = Setting(
    "min_results",
    200,
    "read on beyond max_edges until so many pages are found, or all",
    1,
    2**32 - 1,
)

PPR_SYMMETRIC = Measure(
    name="ppr-symmetric",
    summary="how near along links taken either way, hubs divided out; reaches all there is",
    layouts=("links",),
    reader="cocite.index.layouts.links.push:ProximityReader",
    ask=(FARTHER, MAX_EDGES, MIN_RESULTS),
    symmetric=False,
    weighted=True,
    direction="any",
    directions=("any",),
)
