"""Cocitation: two pages are similar if the same pages link to both.
Coupling: two pages are similar if both link to the same pages.

I(v) are the in-neighbors of v (for coupling, the out-neighbors). ``form`` selects the score:

    cosine     sum of w(x)**2 over I(u) & I(v) / sqrt(sum over I(u) * sum over I(v))    the default
    jaccard    sum of w(x) over I(u) & I(v) / sum of w(x) over I(u) | I(v)
    count      sum of w(x) over I(u) & I(v)                                 as in Small's paper
    w(x)       1;  with ``idf`` log(nodes / |O(x)|), O(x) the nodes that x links to

Convention: a node scores 1 with itself (``count``: the number of its in-neighbors), and nodes
without common neighbors score 0. Coupling in the direction ``out`` is cocitation. Scores are exact,
and take one addition per link of each in-neighbor.
Source: Small 1973, *Co-citation in the scientific literature*; Kessler 1963, *Bibliographic
coupling between scientific papers*; Spärck Jones 1972 for the weights.
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

FORM = Setting(
    "form",
    "cosine",
    "count: the number of common neighbors. jaccard: count divided by the size of the union. "
    "cosine: count divided by the geometric mean of the two numbers of neighbors",
    choices=("cosine", "jaccard", "count"),
)
IDF = Setting("idf", False, "give less weight to common neighbors with many links")

COCITATION = Measure(
    name="cocitation",
    summary="similar if the same pages link to both; exact (Small)",
    layouts=("links",),
    reader="common:CommonReader",
    own_links=True,
    ask=(FORM, IDF),
    directions=("in", "out", "both"),
)

COUPLING = replace(
    COCITATION,
    name="coupling",
    summary="similar if both link to the same pages; exact (Kessler)",
    turned=True,
)
