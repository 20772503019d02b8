"""Personalized PageRank, along links or (``ppr-symmetric``) along links in both directions.

    ppr             score(u, v) = (1 - d) [u = v] + d * sum of score(u, x) / |O(x)| over x in I(v)
    ppr-symmetric   score(u, v) = min(1, sum over k >= 1 of d**k (N**k)(u, v))   for u other than v
                    N = D**(-1/2) A D**(-1/2),   A the links either way, D the diagonal of its sums

with d the ``damping``. ``ppr`` is the share of time that a walk from u spends at v if each step
follows a link with probability d and otherwise returns to u; the scores from u sum to 1.
``ppr-symmetric`` divides by degrees: a link between nodes of degrees a and b adds d / sqrt(a b). It
reaches all connected nodes, and a node scores 1 with itself.

Convention: ``ppr`` follows out-links by default and is **not symmetric**. Neither score exceeds the
exact one. The errors of ``ppr`` sum to at most ``tolerance``. ``ppr-symmetric`` reads about
``max_edges`` links, or more until it has found ``min_results`` nodes; its error is at most
sqrt(D(u) D(v)) e / (1 - d), with e the largest residual divided by its degree. Intervals include
these errors.
Weights: ``ppr`` follows links in proportion to them; ``ppr-symmetric`` uses them as entries of A.
Cost: ``ppr`` takes .6 ms on a crawl of 3 million links, where links stay local, and 20 sweeps over
all links where they do not; ``ppr-symmetric`` takes about 3 ns for each link read.
Source: Page, Brin, Motwani, Winograd 1999, 6; Haveliwala 2002; Zhou et al. 2004, *Learning with
local and global consistency*, for N; Andersen, Chung, Lang 2006 for the search and its bound
(``kernels/push.py``).
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

DAMPING = Setting(
    "damping",
    0.85,
    "the probability that the walk continues; otherwise it starts again",
    0.001,
    0.999,
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
    summary="how often a walk that restarts at one page visits the other; not symmetric",
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
    "about how many links a query reads",
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
    summary="how near along links taken either way, divided by degrees; reaches all connected",
    layouts=("links",),
    reader="push:ProximityReader",
    ask=(FARTHER, MAX_EDGES, MIN_RESULTS),
    symmetric=False,
    weighted=True,
    direction="any",
    directions=("any",),
)
