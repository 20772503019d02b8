"""Fusion, the default: two nodes are similar if the same nodes are nearest to both.

Each node has two sparse rows of weights over nodes, compared by the weighted Jaccard index:

    J(a, b)     = sum over x of min(a(x), b(x)) / sum over x of max(a(x), b(x))
    score(u, v) = 1/2 J(N(u), N(v)) + 1/2 J(P(u), P(v))

    N(v)   as in ``measures/snn.py``: the nodes nearest to v by common neighbors, and v with value
           1; a node counts as its own neighbor, with a quarter of the weight
    P(v)   log(p(v, x) * volume / d(x)) for the nodes x with the largest values above 0; p(v, x) is
           the personalized PageRank of x from v on the undirected graph, with restart probability
           0.15, d(x) the degree of x in that graph, and volume the sum of all degrees

p(v, x) is a weighted mean over walks: walks with an odd number of steps count a quarter, because
they end at the neighbors of similar nodes rather than at similar nodes. They do not count at all in
graphs whose links join unlike nodes, such as users and products. A build decides this from 400
links: their ends are unlike if, by walks with an even number of steps, the ends of a link are no
more similar than ends of different links.

``ppr-pmi`` is J(P(u), P(v)). P is the positive pointwise mutual information of a walk's two ends,
the matrix that node embeddings factorize. N finds similar nodes, but scores most pairs 0; P reaches
all connected nodes.

Convention: values are quantized to 8 bits, code = round(255 sqrt(value / scale)), and scores are
exact functions of these *codes*. The scale is the largest possible value: 1 for N and log(volume /
minimum degree) for P. Ties go to the node with the smaller hash. The push stops when the error of
p(v, x) / d(x) is below 3e-5 (1e-5 if the volume is below 1e5), or earlier if all values in the row
exceed their possible error. ``size`` sets the number of values per row of N and P: 30 and 50
(small), 50 and 100, or 100 and 200 (large). Small graphs have wider rows: four times as wide up to
2,000 nodes, twice up to 10,000. A node scores 1 with itself. Walks use link weights; N ignores
them.

The index takes 10 bytes per value, about 1.3 kB per node of a large graph. A build computes one
list and one push per node. A query takes one addition per entry that its rows share with others.
Source: Jarvis, Patrick 1973 and Zhong et al. 2017 for N (``measures/snn.py``); Levy, Goldberg 2014,
*Neural word embedding as implicit matrix factorization*, and Qiu et al. 2018, *NetMF*, for P.
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting
from cocite.measures.snn import MAX_DEGREE

OWN = 0.25
"""Weight of a node as its own neighbor. With 1, linked nodes would be near each other even if they
had nothing else in common; with 0, sparse graphs would have few near nodes.
"""
SIZES = {"small": (30, 50), "default": (50, 100), "large": (100, 200)}
"""Values per row of N and of P, in large graphs."""
WIDER: tuple[tuple[int, int], ...] = (2_000, 4), (10_000, 2)
"""Maximum number of nodes in small graphs, and how many times as wide their rows are."""
SIZE = Setting(
    "size",
    "default",
    "number of values per row: small takes half the space, large twice the space",
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

FUSION = replace(
    PPR_PMI,
    name="fusion",
    summary="the same nodes are nearest to both, by shared neighbors and by walks",
    build=(SIZE, MAX_DEGREE),
    lenient=True,
    direction="both",
    directions=("in", "out", "both"),
    joint=True,
)


def row_sizes(size: str, nodes: int) -> tuple[int, int]:
    """Return the largest number of values in rows of N and of P in a graph with ``nodes`` nodes."""
    times = next((times for most, times in WIDER if nodes <= most), 1)
    listed, walked = SIZES[size]
    return times * listed, times * walked
