"""Cocitation: two pages are similar if the same pages link to both.

With I(v) the in-neighbors of v, the ``form`` chosen when asking is one of

    cosine     |I(u) & I(v)| / sqrt(|I(u)| |I(v)|)        the default
    jaccard    |I(u) & I(v)| / |I(u) | I(v)|
    count      |I(u) & I(v)|                              Small's measure itself

With ``idf`` a common neighbor counts less the more pages it links to: x has the weight

    w(x) = log(nodes / |O(x)|)        O(x) the nodes that x links to

the inverse document frequency of x, the nodes of the graph being the documents and the links of x
its occurrences. Then the forms are the cosine of tf-idf vectors, the weighted Jaccard coefficient
and the sum of weights:

    cosine     sum of w(x)**2 over I(u) & I(v) / sqrt(sum over I(u) * sum over I(v))
    jaccard    sum of w(x) over I(u) & I(v) / sum of w(x) over I(u) | I(v)
    count      sum of w(x) over I(u) & I(v)

Convention: in-links; 0 where the neighborhoods have nothing in common, be they empty or not. A
node is wholly similar to itself: 1 as a cosine and as a Jaccard coefficient, also without in-links;
counted, it shares all its in-neighbors with itself. A page that links to everything weighs 0.

Cost: asking for all related nodes, one addition for each link of each in-neighbor. Exact.
Source: Small 1973, *Co-citation in the scientific literature*; Spärck Jones 1972, *A statistical
interpretation of term specificity*, for the weights.

Bibliographic coupling: two pages are similar if they link to the same pages.

It is cocitation (``measures/cocitation.py``, with its forms and weights) on the graph turned round:
with out-neighbors in the place of in-neighbors and, for the weights, in-neighbors in the place of
out-neighbors.

Convention: out-links. As for every measure, the direction ``out`` is the measure of the graph
turned round: coupling in the direction ``out`` is cocitation, and the other way about.

Source: Kessler 1963, *Bibliographic coupling between scientific papers*.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

FORM = Setting(
    "form",
    "cosine",
    "count is how many neighbors both share; jaccard divides that by how many either has; cosine "
    "divides it by the root of the product of how many each has",
    choices=("cosine", "jaccard", "count"),
)
IDF = Setting("idf", False, "a common neighbor counts less if it has many links itself")

COCITATION = Measure(
    name="cocitation",
    summary="similar if the same pages link to both; exact (Small)",
    layouts=("links",),
    reader="cocite.index.layouts.links.common:CommonReader",
    own_links=True,
    ask=(FORM, IDF),
    directions=("in", "out", "both"),
)


# -- coupling ----------------------------------------------------------------------------


COUPLING = Measure(
    name="coupling",
    summary="similar if both link to the same pages; exact (Kessler)",
    layouts=("links",),
    reader="cocite.index.layouts.links.common:CommonReader",
    own_links=True,
    ask=(FORM, IDF),
    directions=("in", "out", "both"),
    turned=True,
)
