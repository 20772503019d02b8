"""Fusion, the default: two nodes are similar if the same nodes are nearest to both.

Each node has sparse rows of weights over nodes. Rows are compared by the weighted Jaccard index:

    J(a, b)     = sum over x of min(a(x), b(x)) / sum over x of max(a(x), b(x))
    score(u, v) = 1/2 J(N'(u), N'(v)) + 1/2 J(P'(u), P'(v))

    N(v)   the list of v in ``measures/snn.py``: its nearest nodes by common neighbors, and v itself
           with value 1; a node is one of its own neighbors, with a quarter of its weight
    P(v)   log(p(v, x) * volume / d(x)) for the nodes x with the largest values above 0: p(v, x) is
           the personalized PageRank of x from v, along links taken either way, with restart 0.15;
           d are the degrees there, and volume is their sum
    R'(v)  1/2 R(v) + 1/2 sum of w(x) R(x) over the six nodes x that come first in N(v), w(x) their
           nearness divided by its sum; only the largest values stay, 50 in N' and 100 in P'

``ppr-pmi`` is J(P(u), P(v)) alone. P is the positive pointwise mutual information of the two ends
of a walk, the matrix that embeddings factorize. N finds similar nodes, but has no answer for most;
P reaches all connected nodes.

Convention: values are rounded to codes of 8 bits, code = round(255 sqrt(value / scale)), and scores
are exact functions of the codes. The scale is 1 for N' and log(volume / least degree) for P', which
no value exceeds. Ties go to the node with the smaller hash. The push stops when the error of
p(v, x) / d(x) is below 3e-5 (1e-5 if the volume is below 1e5), or earlier if all values of the row
exceed their possible error. ``size`` sets the values per row: 30 and 50 (small), 50 and 100, or 100
and 200 (large). A node scores 1 with itself.

Weights: walks follow them; N ignores them. Cost: the index takes 10 bytes per value, about 1.5 kB
per node; a build takes a list and a push per node. A query takes one addition for each entry that
its rows share with other rows. Source: Jarvis, Patrick 1973 and Zhong et al. 2017 for N
(``measures/snn.py``); Levy, Goldberg 2014, *Neural word embedding as implicit matrix
factorization*, and Qiu et al. 2018, *NetMF*, for P; Chum et al. 2007, *Total recall*, for the
expansion. ``docs/evaluation.md`` has the comparison.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting
from cocite.measures.snn import MAX_DEGREE

OWN = 0.25
"""Weight of a node among its own neighbors. It makes linked nodes slightly nearer: with 1, they
would be near whatever else they share; with 0, few nodes of sparse graphs would be.
"""
SIZES = {"small": (30, 50), "default": (50, 100), "large": (100, 200)}
"""Values stored in each row of N' and of P'."""
SIZE = Setting(
    "size",
    "default",
    "how many values rows have: small takes half of the space, large twice as much",
    choices=tuple(SIZES),
)
PPR_PMI = Measure(
    name="ppr-pmi",
    summary="walks from both reach the same nodes more often than by chance (PPR, PMI)",
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
