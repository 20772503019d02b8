"""Personalized PageRank along links or, for ``ppr-symmetric``, on the undirected graph.

    ppr             score(u, v) = (1 - d) [u = v] + d * sum of score(u, x) / |O(x)| over x in I(v)
    ppr-symmetric   score(u, v) = min(1, sum over k >= 1 of d**k (N**k)(u, v))   for u other than v
                    N = D**(-1/2) A D**(-1/2),   A the undirected adjacency matrix, D the diagonal
                    matrix of its row sums

d is the ``damping``. ``ppr`` is the share of time that a walk from u spends at v: each step follows
a link with probability d, and otherwise returns to u. The scores from u sum to 1. ``ppr-symmetric``
normalizes by degrees: a link between nodes of degrees a and b adds d / sqrt(a b). All connected
nodes have scores, and a node scores 1 with itself.

Convention: ``ppr`` follows out-links by default and is **not symmetric**. Both scores are lower
bounds on the exact ones, and intervals include the error. For ``ppr``, the errors sum to at most
``tolerance``. ``ppr-symmetric`` reads about ``max_edges`` links, or more to find ``min_results``
nodes; its error is at most sqrt(D(u) D(v)) e / (1 - d), where e is the largest residual divided by
its node's degree. ``ppr`` follows links in proportion to their weights; for ``ppr-symmetric`` the
weights are the entries of A. ``ppr`` takes 0.6 ms on a crawl with 3 million mostly local links, and
20 sweeps over all links in the worst case; ``ppr-symmetric`` takes about 3 ns per link read.
Source: Page, Brin, Motwani, Winograd 1999, section 6; Haveliwala 2002; Zhou et al. 2004, *Learning
with local and global consistency*, for N; Andersen, Chung, Lang 2006 for the search and its bound
(``kernels/push.py``).
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

DAMPING = Setting(
    "damping",
    0.85,
    "the probability that the walk continues instead of restarting",
    0.001,
    0.999,
)
TOLERANCE = Setting(
    "tolerance",
    1e-4,
    "maximum error of a score; scores are never above the exact ones",
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
    "approximate number of links that a query reads",
    1,
    10**12,
    served=(1, 10_000_000),
    narrower=10,
)
MIN_RESULTS = Setting(
    "min_results",
    200,
    "exceed max_edges until this many pages, or all, are found",
    1,
    2**32 - 1,
    served=(1, 100_000),
)

PPR_SYMMETRIC = Measure(
    name="ppr-symmetric",
    summary="nearness along links in either direction, divided by degrees; reaches all connected "
    "pages",
    layouts=("links",),
    reader="push:ProximityReader",
    ask=(FARTHER, MAX_EDGES, MIN_RESULTS),
    symmetric=False,
    weighted=True,
    direction="any",
    directions=("any",),
)
