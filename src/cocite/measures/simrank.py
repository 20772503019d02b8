"""SimRank: two pages are similar if similar pages link to them. And compact SimRank, a variant.

    s(u, u) = 1
    s(u, v) = decay / (|I(u)| |I(v)|) * sum of s(u', v') over u' in I(u), v' in I(v)
            = E[decay**tau],  tau the step at which uniform reversed walks from u and v first meet

with I(x) the in-neighbors of x; 0 if either has none. Walks of ``length`` steps give the value
after ``length`` rounds (Fogaras, Racz, Theorem 1); intervals include decay**(length + 1) for later
meetings. The index stores meeting times and not scores, so the decay is chosen for each query.

Weights: a walk draws in-neighbors in proportion to them. ``hubs`` multiplies the weight of a link
from u by log((nodes + 1) / |O(u)|) (``idf``) or 1 / |O(u)| (``rare``), with O(u) its out-neighbors.
Convention: in-links; a node without any is similar to itself only; ``out`` reverses everything.
Known weakness: pages that share k in-neighbors, unrelated to each other, score decay / k, so
popular pages look unrelated (Fogaras, Racz, 2.2). PSimRank solves that; ``measures/evidence.py``
reduces it.

``compact-simrank`` draws one in-neighbor F(v) for each node and sample, not for each step: tau is
the first k with F^k(u) = F^k(v). Scores equal SimRank's for length 1, and where all paths to a node
have the same length. Otherwise walks that reach a node at different steps never meet, and scores
are lower: by .011 on average on graphs of 4 to 7 nodes, by at most .003 for scores above .02 on
wikis.
Source: Jeh, Widom 2002; Fogaras, Racz, *Scaling link-based similarity search*, 1.3 and 2.1; for the
variant *A scalable randomized method to compute link-based similarity rank on the web graph*, 3.
"""

from __future__ import annotations

from cocite.constants import Step
from cocite.measures.measure import Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT
from cocite.measures.settings import DECAY, EVIDENCE, HUBS, LENGTH, SAMPLES, SEED

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


COMPACT_SIMRANK = Measure(
    name="compact-simrank",
    summary="nearly simrank: each node keeps one drawn in-link for all steps (Fogaras, Racz)",
    layouts=("compact", "trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED),
    ask=(DECAY, MEETING_WEIGHT),
    step=Step.COMPACT,
)
