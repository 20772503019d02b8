"""Cocitation: two pages are similar if the same pages link to both. Coupling: if both link to them.

With I(v) the in-neighbors of v (for coupling its out-neighbors) and weights w, by ``form``:

    cosine     sum of w(x)**2 over I(u) & I(v) / sqrt(sum over I(u) * sum over I(v))    the default
    jaccard    sum of w(x) over I(u) & I(v) / sum of w(x) over I(u) | I(v)
    count      sum of w(x) over I(u) & I(v)                                 Small's measure itself
    w(x)       1;  with ``idf`` log(nodes / |O(x)|), O(x) the nodes that x links to

Convention: a node scores 1 with itself (``count``: its number of in-neighbors), and 0 with a node
that shares no neighbor with it. Coupling in the direction ``out`` is cocitation.
Cost: one addition for each link of each in-neighbor. Exact.
Source: Small 1973, *Co-citation in the scientific literature*; Kessler 1963, *Bibliographic
coupling between scientific papers*; Spärck Jones 1972 for the weights.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

FORM = Setting(
    "form",
    "cosine",
    "count: the number of shared neighbors. jaccard: divided by the number of neighbors of either. "
    "cosine: divided by the root of the product of both numbers of neighbors",
    choices=("cosine", "jaccard", "count"),
)
IDF = Setting("idf", False, "a common neighbor counts less if it has many links itself")

COCITATION = Measure(
    name="cocitation",
    summary="similar if the same pages link to both; exact (Small)",
    layouts=("links",),
    reader="common:CommonReader",
    own_links=True,
    ask=(FORM, IDF),
    directions=("in", "out", "both"),
)

COUPLING = Measure(
    name="coupling",
    summary="similar if both link to the same pages; exact (Kessler)",
    layouts=("links",),
    reader="common:CommonReader",
    own_links=True,
    ask=(FORM, IDF),
    directions=("in", "out", "both"),
    turned=True,
)
