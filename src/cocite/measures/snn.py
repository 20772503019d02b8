"""Shared nearest neighbors: two pages are similar if the same pages are nearest to both.

With N(v) the neighbors of v and v itself, and members of x the pages v with x in N(v):

    near(u, v) = sum of w(x) over N(u) & N(v) / sum of w(x) over N(u) | N(v)
    w(x)       = log(nodes / members of x),   0 if x has more than ``max_degree`` members
    f_v(x)     = near(v, x) for the ``neighbors`` pages x with the largest near(v, x) > 0;
                 f_v(v) = 1

The lists f are compared by ``form``:

    jaccard    sum over x of min(f_u(x), f_v(x)) / sum over x of max(f_u(x), f_v(x))     the default
    cosine     sum over x of f_u(x) f_v(x) / sqrt(sum of f_u(x)**2 * sum of f_v(x)**2)

``mutual`` keeps x in the list of v only if v is in the list of x, too.

Convention: nearness is rounded to float32, and ties go to the smaller hash. For ``both``, near(u,
v) is the mean over in-links and out-links, and each page has one list. The default max_degree,
max(1000, 4 sqrt(links)), bounds the cost of a list and does not lower the quality on labeled graphs
(``python -m benchmarks.max_degree``).
Cost: a list takes one addition for each member of each neighbor; a query, one for each entry that
other lists share with the node's list. Exact.
Source: Jarvis, Patrick 1973, *Clustering using a similarity measure based on shared near
neighbors*; Zhong, Zheng, Cao, Li 2017, *Re-ranking person re-identification with k-reciprocal
encoding*, for comparing lists as vectors by minima and maxima, and for mutual lists.
"""

from __future__ import annotations

import math

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

NEIGHBORS = Setting(
    "neighbors", 50, "how many pages a list of nearest pages holds at most", 1, 65_535
)


def _default_max_degree(links: int) -> int:
    """Return the limit for a graph of this size: 1000 up to 62,500 links."""
    return max(1000, 4 * math.isqrt(links))


MAX_DEGREE = Setting(
    "max_degree",
    0,
    "ignore pages that have more links than this; 0: 4 times the square root of the number of "
    "links in the graph, 1000 at least",
    0,
    2**32 - 1,
    by_links=_default_max_degree,
)
FORM = Setting(
    "form",
    "jaccard",
    "jaccard divides what two lists share by what either holds; cosine compares their angle",
    choices=("jaccard", "cosine"),
)
MUTUAL = Setting("mutual", False, "keep a page in a list only if each is in the other's list")

SNN = Measure(
    name="snn",
    summary="similar if the same pages are nearest to both (Jarvis, Patrick)",
    layouts=("nearest",),
    build=(NEIGHBORS, MAX_DEGREE),
    ask=(FORM, MUTUAL),
    direction="both",
    directions=("in", "out", "both"),
    joint=True,
)
