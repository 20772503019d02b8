"""SimRank, in which two pages are similar if similar pages link to them, and compact SimRank.

    s(u, u) = 1
    s(u, v) = decay / (|I(u)| |I(v)|) * sum of s(u', v') over u' in I(u), v' in I(v)
            = E[decay**tau],  tau the step at which uniform reversed walks from u and v first meet

I(x) are the in-neighbors of x; the score is 0 if either set is empty. Walks of ``length`` steps
give the value after ``length`` iterations (Fogaras, Racz, Theorem 1); intervals include
decay**(length + 1) for later meetings. The index stores meeting times, so each query can choose the
decay.

A walk chooses in-neighbors in proportion to link weights. ``hubs`` multiplies the weight of a link
from u by log((nodes + 1) / |O(u)|) (``idf``) or 1 / |O(u)| (``rare``), with O(u) the out-neighbors
of u. Convention: in-links; a node without in-links is similar only to itself; ``out`` reverses all
links. Known weakness: pages with k common, mutually unrelated in-neighbors score decay / k, so
popular pages look unrelated (Fogaras, Racz, section 2.2). PSimRank solves this, and evidence
(``measures/evidence.py``) mitigates it.

``compact-simrank`` draws one in-neighbor F(v) per node per sample, for all steps: tau is the first
k with F^k(u) = F^k(v). Scores equal SimRank if the length is 1, or if all paths to a node have the
same length. Otherwise they are lower, because walks that reach a node at different steps never
meet: by 0.011 on average on graphs of 4 to 7 nodes, and by at most 0.003 for scores above 0.02 on
wikis. Source: Jeh, Widom 2002; Fogaras, Racz, *Scaling link-based similarity search*, sections 1.3
and 2.1; compact SimRank: *A scalable randomized method to compute link-based similarity rank on the
web graph*, section 3.
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
    summary="nearly simrank: one random in-link per node for all steps (Fogaras, Racz)",
    layouts=("compact", "trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED),
    ask=(DECAY, MEETING_WEIGHT),
    step=Step.COMPACT,
)
