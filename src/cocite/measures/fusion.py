"""Fusion, the default: the same nodes are nearest to both, by shared neighbors and by walks.

Every node v has rows of weights over nodes, and rows are compared by the weighted Jaccard index,

    J(a, b)     = sum over x of min(a(x), b(x)) / sum over x of max(a(x), b(x))
    score(u, v) = 1/2 J(N'(u), N'(v)) + 1/2 J(P'(u), P'(v))

    N(v)   the list of v in ``measures/snn.py``: nearest by common neighbors, v itself with 1;
           a node is one of its own neighbors, but counts a quarter of one
    P(v)   log(p(v, x) * volume / d(x)) of the nodes x of the largest value above 0, with p(v, x)
           the personalized PageRank of x from v, along links taken either way, restart 0.15; d the
           degrees there, and volume their sum
    R'(v)  1/2 R(v) + 1/2 sum of w(x) R(x) over the six nodes x first in N(v), w(x) their nearness
           in shares of its sum; of that the largest values, 50 of N' and 100 of P'

``ppr-pmi`` is J(P(u), P(v)) alone.

Why: N finds what is alike, and says nothing of most nodes; P is the positive pointwise mutual
information of the two ends of a walk, which embeddings factorize, and reaches what is connected.
Rows stay sparse and are not compressed. Expansion adds what the nearest nodes know. If a node
counted whole among its neighbors, those it is linked with would be near whatever else they share:
wrong where links join unlike nodes; if it did not count, few nodes of sparse graphs would be near.

Convention: values are rounded to codes of 8 bits, code = round(255 sqrt(value / scale)), and scores
are exact functions of these; scale is 1 of N', log(volume / least degree) of P', which no value
exceeds, so that a row depends on no other. Of equal values those of the smaller hash of the node
count as larger. The push stops where an error of p(v, x) / d(x) is below 3e-5 (1e-5 of graphs whose
volume is below 1e5), or sooner where all values that are kept are above what an error may be.
``size`` keeps 30 and 50 (small), 50 and 100, or 100 and 200 (large) values a row. A node and itself
score 1.

Weights: if links have weights, walks follow them; N leaves them aside.

Cost: an index takes 10 bytes a value, some 1.5 kB a node, and a list and a push a node. A question
takes an addition for each row that has a node of the node's own rows.
Source: Jarvis, Patrick 1973 and Zhong et al. 2017 for N (``measures/snn.py``); Levy, Goldberg 2014,
*Neural word embedding as implicit matrix factorization*, and Qiu et al. 2018, *NetMF*, for P;
Chum et al. 2007, *Total recall*, for the expansion. ``docs/evaluation.md`` compares.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting
from cocite.measures.snn import MAX_DEGREE

OWN = 0.25
"""Weight of a node among its own neighbors, which brings linked nodes a little nearer."""
SIZES = {"small": (30, 50), "default": (50, 100), "large": (100, 200)}
"""Values kept in each row of N' and of P'."""
SIZE = Setting(
    "size",
    "default",
    "how many values rows keep: small takes half of the space, large twice as much",
    choices=tuple(SIZES),
)
PPR_PMI = Measure(
    name="ppr-pmi",
    summary="walks from both end at the same nodes more often than by chance (PPR, PMI)",
    layouts=("rows",),
    build=(SIZE,),
    weighted=True,
    direction="any",
    directions=("any",),
)

FUSION = Measure(
    name="fusion",
    summary="the same nodes are nearest to both, by shared neighbors and by walks",
    layouts=("rows",),
    build=(SIZE, MAX_DEGREE),
    weighted=True,
    lenient=True,
    direction="both",
    directions=("in", "out", "both"),
    joint=True,
)
