"""Shared nearest neighbors: two pages are similar if the same pages are nearest to both.

N(v) are v and its neighbors; the members of x are the pages v with x in N(v).

    near(u, v) = sum of w(x) over N(u) & N(v) / sum of w(x) over N(u) | N(v)
    w(x)       = log(nodes / members of x),   0 if x has more than ``max_degree`` members
    f_v(x)     = near(v, x) for the ``neighbors`` pages x with the largest near(v, x) > 0;
                 f_v(v) = 1

``form`` selects how the lists f are compared:

    jaccard    sum over x of min(f_u(x), f_v(x)) / sum over x of max(f_u(x), f_v(x))     the default
    cosine     sum over x of f_u(x) f_v(x) / sqrt(sum of f_u(x)**2 * sum of f_v(x)**2)

``mutual`` removes x from the list of v unless v is in the list of x.

Convention: nearness is rounded to float32; ties go to the smaller hash. With ``both``, near(u, v)
is the mean over in-links and out-links, and each page has one list. The default max_degree,
max(1000, 4 sqrt(links)), bounds the cost of a list without lowering quality on labeled graphs
(``python -m benchmarks.max_degree``). A list takes one addition per member of each neighbor; a
query takes one addition per entry that another list shares with the node's list. Scores are exact.
Source: Jarvis, Patrick 1973, *Clustering using a similarity measure based on shared near
neighbors*; Zhong, Zheng, Cao, Li 2017, *Re-ranking person re-identification with k-reciprocal
encoding*, for mutual lists and the comparison of lists by minima and maxima.
"""

from __future__ import annotations

import math

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

NEIGHBORS = Setting("neighbors", 50, "maximum length of a list of nearest pages", 1, 65_535)


def _default_max_degree(links: int) -> int:
    """Return the default for this many links; it is 1000 for up to 62,500 links."""
    return max(1000, 4 * math.isqrt(links))


MAX_DEGREE = Setting(
    "max_degree",
    0,
    "ignore pages with more links than this; 0: 4 times the square root of the number of "
    "links in the graph, but at least 1000",
    0,
    2**32 - 1,
    by_links=_default_max_degree,
)
FORM = Setting(
    "form",
    "jaccard",
    "jaccard: weighted intersection of two lists over their union; cosine: cosine of their angle",
    choices=("jaccard", "cosine"),
)
MUTUAL = Setting(
    "mutual", False, "keep a page in a list only if the two pages are in each other's lists"
)

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
