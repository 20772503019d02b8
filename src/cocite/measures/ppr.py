"""Personalized PageRank, along links or (``ppr-symmetric``) along links in both directions.

    ppr             score(u, v) = (1 - d) [u = v] + d * sum of score(u, x) / |O(x)| over x in I(v)
    ppr-symmetric   score(u, v) = min(1, sum over k >= 1 of d**k (N**k)(u, v))   for u other than v
                    N = D**(-1/2) A D**(-1/2),   A the links either way, D the diagonal of its sums

with d the ``damping``. ``ppr`` is the time that a walk from u spends at v if it follows a link with
probability d and else returns to u; scores from one u add up to 1. ``ppr-symmetric`` divides hubs
out: a link between pages of degrees a and b adds d / sqrt(a b). It reaches all that is connected,
so it completes lists, and a page scores 1 with itself.

Weights: ``ppr`` follows links in proportion to them; ``ppr-symmetric`` has them as entries of A.
Convention: ``ppr`` follows out-links by default; it is **not symmetric**, and score(u, u) is the
time spent at u. Both scores are never above the truth. ``ppr`` is below by at most ``tolerance``,
over all nodes together. ``ppr-symmetric`` reads about ``max_edges`` links, more only until it has
found ``min_results`` pages; with e the largest residual over its degree, it is below by at most
sqrt(D(u) D(v)) e / (1 - d), which intervals contain.
Cost: ``ppr`` takes .6 ms on a crawl of 3 million links, where links stay local, and 20 sweeps over
all links where they do not; ``ppr-symmetric`` some 3 ns for each link read.
Source: Page, Brin, Motwani, Winograd 1999, 6; Haveliwala 2002; Zhou et al. 2004, *Learning with
local and global consistency*, for N; Andersen, Chung, Lang 2006 for the search and its bound
(``kernels/push.py``).
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

DAMPING = Setting(
    "damping", 0.85, "the probability that the walk goes on; else it starts again", 0.001, 0.999
)
TOLERANCE = Setting(
    "tolerance",
    1e-4,
    "how far a score may be below the exact one",
    1e-12,
    1,
    served=(1e-8, 1.0),
    narrower=0.1,
)

PPR = Measure(
    name="ppr",
    summary="how often a walk that keeps starting at a page is at the other; not symmetric",
    layouts=("links",),
    reader="push:PushReader",
    own_links=True,
    ask=(DAMPING, TOLERANCE),
    symmetric=False,
    weighted=True,
    direction="out",
)


FARTHER = replace(DAMPING, default=0.9)
MAX_EDGES = Setting(
    "max_edges",
    30_000,
    "about how many links a question reads",
    1,
    10**12,
    served=(1, 10_000_000),
    narrower=10,
)
MIN_RESULTS = Setting(
    "min_results",
    200,
    "read on beyond max_edges until so many pages are found, or all",
    1,
    2**32 - 1,
    served=(1, 100_000),
)

PPR_SYMMETRIC = Measure(
    name="ppr-symmetric",
    summary="how near along links taken either way, hubs divided out; reaches all there is",
    layouts=("links",),
    reader="push:ProximityReader",
    ask=(FARTHER, MAX_EDGES, MIN_RESULTS),
    symmetric=False,
    weighted=True,
    direction="any",
    directions=("any",),
)
