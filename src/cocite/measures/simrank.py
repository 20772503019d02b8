"""SimRank: two pages are similar if similar pages link to them.

    s(u, u) = 1
    s(u, v) = decay / (|I(u)| |I(v)|) * sum of s(u', v') over u' in I(u), v' in I(v)

with I(x) the in-neighbors of x; 0 if either has none. With walks of at most ``length`` steps it
is the iteration's value after ``length`` rounds, 001's Theorem 1: s(u, v) = E[decay**tau] for
uniform reversed walks that are independent until they meet.

That is an expected f-meeting distance (001, Definition 1) with f(tau) = decay**tau, tau the step at
which the walks first meet, and f = 0 if they do not meet within ``length`` steps. Intervals have
room for what walks may still meet behind, as s has no end: decay**(length + 1) at most. Meeting
times are stored and not scores, so the decay is chosen when asking.

Convention: in-links; a node without in-links is similar to itself only; the walk steps to a
uniformly drawn in-neighbor, all walks at one node to the same one.

Weights: if links have weights, a walk draws its in-neighbor in proportion to them:

    s(u, v) = decay * sum of q(u, u') q(v, v') s(u', v'),     q(v, u) = w(u, v) / sum of w(., v)

With ``hubs`` a link from a page that links everywhere tells less, as a word does that is in every
document: w(u, v) is log((nodes + 1) / |O(u)|), its inverse document frequency (``idf``), or
1 / |O(u)| (``rare``), O(u) being the nodes that u links to; times the link's weight, if it has one.
The direction ``out`` has everything turned round: out-links, and |I(u)|. A scale of all weights of
a page's in-links changes nothing.

Known weakness: two pages with the same k otherwise unrelated in-neighbors score decay / k, so
popular pages look unrelated (001, 2.2). PSimRank mends it; ``evidence`` (``measures/evidence.py``)
in part.

Source: Jeh, Widom 2002; Fogaras, Racz, *Scaling link-based similarity search*, 1.3 and 2.1.

Compacted SimRank: SimRank whose walks choose once at every node, not once at every step.

    s(u, v) = E[decay**tau],   tau = the first k <= length with F^k(u) = F^k(v)

over random functions F that send every node to one of its in-neighbors, each drawn uniformly and
independently; F is not defined at a node without in-links, and a walk that comes there has ended.
A sample is F itself, a word a node, and its transpose; SimRank's samples draw a new F at every
step.

Convention: that of SimRank. The first meeting alone counts.

The scores differ a little from SimRank's. Two walks that come to one node at different steps go on
independently in SimRank; here the later one treads in the footsteps of the other, and they never
meet, unless on a cycle. For length 1, and where all ways to a node are equally long, both are the
same. Else the difference grows with the share of short cycles: on graphs of 4 to 7 nodes 0.011 on
average (decay 0.6), nearly always below SimRank; for two nodes of a clique of five 0.143 instead of
0.219; on wikis of thousands of pages, for scores above 0.02, about 0.003 or less, which is below
the error of 2000 samples.

Source: Fogaras, Racz, *A scalable randomized method to compute link-based similarity rank on the
web graph*, section 3.
"""

from __future__ import annotations

from cocite.engine.weights import Step
from cocite.measures.evidence import EVIDENCE
from cocite.measures.measure import Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT
from cocite.measures.settings import DECAY, HUBS, LENGTH, SAMPLES, SEED

SIMRANK = Measure(
    name="simrank",
    summary="similar if similar pages link to both (Jeh, Widom)",
    layouts=("trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED, HUBS),
    ask=(DECAY, MEETING_WEIGHT, EVIDENCE),
    weighted=True,
    weighted_step=Step.WEIGHTED,
    step=Step.UNIFORM,
)


# -- compact simrank ---------------------------------------------------------------------


COMPACT_SIMRANK = Measure(
    name="compact-simrank",
    summary="nearly simrank: each node keeps one drawn in-link for all steps (Fogaras, Racz)",
    layouts=("compact", "trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED),
    ask=(DECAY, MEETING_WEIGHT),
    step=Step.COMPACT,
)
