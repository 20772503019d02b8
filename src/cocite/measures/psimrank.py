"""PSimRank: SimRank with walks that meet as soon as they can.

    p(u, u) = 1
    p(u, v) = decay * [ |I(u) & I(v)| / |I(u) | I(v)|
                      + mean over (I(u) - I(v)) x I(v) of p * |I(u) - I(v)| / |I(u) | I(v)|
                      + mean over (I(v) - I(u)) x I(u) of p * |I(v) - I(u)| / |I(u) | I(v)| ]

with I(x) the in-neighbors of x; 0 if either has none. Two walks at u and v step to the same page
with the probability of the Jaccard coefficient of their in-neighborhoods: at every step there is
one random order of all pages, and each walk steps to its first in-neighbor in that order.

Walks take ``length`` steps at most. Intervals have room for what they may still meet behind, as
p has no end: decay**(length + 1) at most.

Convention: in-links; a node without in-links is similar to itself only. Two pages with the same
in-neighbors score decay, however many those are.

Weights: if links have weights, and with ``hubs``, a walk at v steps to the in-neighbor u with
the smallest E(u) / w(u, v), where E(u) is exponentially distributed, drawn anew for every step and
shared by all walks. So it steps to u with probability w(u, v) / sum of w(., v), and two walks with
weights x and y meet with the probability Jaccard coefficient

    J(x, y) = sum over i in both of 1 / sum over j of max(x[j] / x[i], y[j] / y[i])

which is the Jaccard coefficient where all weights are equal. Where they do not meet, they step to
i and j with probability P(i, j) (in closed form: ``tests/oracles/simrank.py``):

    p(u, v) = decay * (J(x, y) + sum of P(i, j) p(i, j) over i != j)

w(u, v) is the link's weight. With ``hubs`` a link from a page that links everywhere tells less, as
a word does that is in every document: w(u, v) is log((nodes + 1) / |O(u)|), its inverse document
frequency (``idf``), or 1 / |O(u)| (``rare``), O(u) being the nodes that u links to; times the
link's weight, if it has one. The direction ``out`` has everything turned round: out-links, and
|I(u)|. Scores may be taken times ``evidence`` (``measures/evidence.py``).

Source: Moulton, Jiang 2018, *Maximally consistent sampling and the Jaccard index of probability
distributions*, for weights; Fogaras, Racz, *Scaling link-based similarity search*, 2.2.1 and 2.2.2.
"""

from __future__ import annotations

from cocite.engine.weights import Step
from cocite.measures.evidence import EVIDENCE
from cocite.measures.measure import Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT
from cocite.measures.settings import DECAY, HUBS, LENGTH, SAMPLES, SEED

PSIMRANK = Measure(
    name="psimrank",
    summary="like simrank, but walks meet as likely as in-links overlap (Fogaras, Racz)",
    layouts=("trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED, HUBS),
    ask=(DECAY, MEETING_WEIGHT, EVIDENCE),
    weighted=True,
    weighted_step=Step.CLOCK,
    step=Step.ARGMIN,
)
