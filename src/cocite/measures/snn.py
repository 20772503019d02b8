"""Shared nearest neighbors: two pages are similar if the same pages are nearest to both.

How near two pages are tells their common neighbors, a page counting among its own: with N(v) the
neighbors of v and v itself,

    near(u, v) = sum of w(x) over N(u) & N(v) / sum of w(x) over N(u) | N(v)
    w(x)       = log(nodes / members of x),  the members of x being the pages v with x in N(v)

which is ``cocitation`` with ``form=jaccard`` and ``idf``, if every page linked to itself: so that a
link between two pages tells too. The *list* of v is the pages nearest to it, as vector f_v:

    f_v(x) = near(v, x) for the ``neighbors`` pages x other than v of the largest near(v, x) > 0
    f_v(v) = 1,        0 for all others

and pages are compared by their lists, in the ``form`` chosen when asking:

    jaccard    sum over x of min(f_u(x), f_v(x)) / sum over x of max(f_u(x), f_v(x))     the default
    cosine     sum over x of f_u(x) f_v(x) / sqrt(sum of f_u(x)**2 * sum of f_v(x)**2)

With ``mutual`` a list has only those pages that have its own page in theirs: fewer lists meet, and
those that do are more alike.

Why: common neighbors are evidence of few links, and some of it is chance. Pages near to both of
two pages are evidence of the links of all of them, and a page that is near to one by chance is not
near to the others.

Convention: nearness is rounded to float32 and ties go to the smaller id. Both directions is the
default, and not the mean of two scores but one score of one list: near(u, v) is the mean over
in-links and out-links. A page with more than ``max_degree`` members tells nothing: it weighs 0, as
a stop word does, which bounds what a list costs. That is, unless it is chosen,

    max_degree = max(1000, 4 sqrt(links of the graph))

with which no graph with labels of ``python -m benchmarks.max_degree`` is judged worse than without
a limit, and cnr-2000 takes a sixth of the time. A page and itself score 1, and two pages 0 whose
lists have nothing in common.

Cost: a list takes one addition for each member of each neighbor; a question, one for each list
that has a page of the node's own list. Exact.
Source: Jarvis, Patrick 1973, *Clustering using a similarity measure based on shared near
neighbors*, for lists compared by what they share; Zhong, Zheng, Cao, Li 2017, *Re-ranking person
re-identification with k-reciprocal encoding*, for the lists as vectors, compared by minima and
maxima, and for mutual ones.
"""

from __future__ import annotations

import math

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

NEIGHBORS = Setting(
    "neighbors", 50, "how many pages a list of nearest pages holds at most", 1, 65_535
)


def _default_max_degree(links: int) -> int:
    """By the size of the graph; 1000 in those of up to 62,500 links, where nothing is saved."""
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
