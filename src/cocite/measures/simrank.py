"""SimRank: two pages are similar if similar pages link to them.

    s(u, u) = 1
    s(u, v) = decay / (|I(u)| |I(v)|) * sum of s(u', v') over u' in I(u), v' in I(v)

with I(x) the in-neighbours of x; 0 if either has none. With walks of at most ``length`` steps it
is the iteration's value after ``length`` rounds, 001's Theorem 1: s(u, v) = E[decay**tau] for
uniform reversed walks that are independent until they meet.

That is an expected f-meeting distance (001, Definition 1) with f(tau) = decay**tau, tau the step at
which the walks first meet, and f = 0 if they do not meet within ``length`` steps. Intervals have
room for what walks may still meet behind, as s has no end: decay**(length + 1) at most. Meeting
times are stored and not scores, so the decay is chosen when asking.

Convention: in-links; a node without in-links is similar to itself only; the walk steps to a
uniformly drawn in-neighbour, all walks at one node to the same one.

Weights: if links have weights, a walk draws its in-neighbour in proportion to them:

    s(u, v) = decay * sum of q(u, u') q(v, v') s(u', v'),     q(v, u) = w(u, v) / sum of w(., v)

With ``hubs`` a link from a page that links everywhere tells less, as a word does that is in every
document: w(u, v) is log((nodes + 1) / |O(u)|), its inverse document frequency (``idf``), or
1 / |O(u)| (``rare``), O(u) being the nodes that u links to; times the link's weight, if it has one.
The direction ``out`` has everything turned round: out-links, and |I(u)|. A scale of all weights of
a page's in-links changes nothing.

Known weakness: two pages with the same k otherwise unrelated in-neighbours score decay / k, so
popular pages look unrelated (001, 2.2). PSimRank mends it; ``evidence`` (``evidence.py``) in part.

Source: Jeh, Widom 2002; Fogaras, Racz, *Scaling link-based similarity search*, 1.3 and 2.1.
"""

from __future__ import annotations

from cocite.engine.step import Step
from cocite.measures.evidence import EVIDENCE
from cocite.measures.measure import Measure
from cocite.measures.meeting import BY
from cocite.measures.settings import DECAY, HUBS, LENGTH, SAMPLES, SEED

__all__ = ["SIMRANK"]

SIMRANK = Measure(
    name="simrank",
    summary="similar if similar pages link to both (Jeh, Widom)",
    layouts=("trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED, HUBS),
    ask=(DECAY, BY, EVIDENCE),
    weighted=True,
    weighted_step=Step.WEIGHTED,
    step=Step.UNIFORM,
)
