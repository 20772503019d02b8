"""PSimRank: SimRank with walks that meet as soon as they can.

    p(u, u) = 1
    p(u, v) = decay * [ |I(u) & I(v)| / |I(u) | I(v)|
                      + mean over (I(u) - I(v)) x I(v) of p * |I(u) - I(v)| / |I(u) | I(v)|
                      + mean over (I(v) - I(u)) x I(u) of p * |I(v) - I(u)| / |I(u) | I(v)| ]

with I(x) the in-neighbors of x; 0 if either has none. At every step there is one random order of
all pages, and each walk steps to its first in-neighbor in that order: walks at u and v step to the
same page with the probability of the Jaccard coefficient of their in-neighborhoods.

Weights (of links, and by ``hubs`` as in ``measures/simrank.py``): a walk at v steps to the u with
the smallest E(u) / w(u, v), E(u) exponentially distributed, drawn for the step and shared by all
walks. So it steps to u with probability w(u, v) / sum of w(., v), and walks with weights x and y
meet with the probability Jaccard coefficient

    J(x, y) = sum over i in both of 1 / sum over j of max(x[j] / x[i], y[j] / y[i])

or step to i and j with probability P(i, j) (``tests/oracles/simrank.py`` has it in closed form):
p(u, v) = decay * (J(x, y) + sum of P(i, j) p(i, j) over i != j).

Convention: in-links; a node without any is similar to itself only. Walks take ``length`` steps;
intervals contain decay**(length + 1) for meetings after that.
Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.2; Moulton, Jiang 2018, *Maximally
consistent sampling and the Jaccard index of probability distributions*, for weights.
"""

from __future__ import annotations

from cocite.constants import Step
from cocite.measures.measure import Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT
from cocite.measures.settings import DECAY, EVIDENCE, HUBS, LENGTH, SAMPLES, SEED

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
