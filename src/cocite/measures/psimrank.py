"""PSimRank: SimRank with coupled walks that meet with the highest possible probability.

    p(u, u) = 1
    p(u, v) = decay * [ |I(u) & I(v)| / |I(u) | I(v)|
                      + mean over (I(u) - I(v)) x I(v) of p * |I(u) - I(v)| / |I(u) | I(v)|
                      + mean over (I(v) - I(u)) x I(u) of p * |I(v) - I(u)| / |I(u) | I(v)| ]

I(x) are the in-neighbors of x; the score is 0 if either set is empty. Each step has one random
order of all pages, and each walk moves to its first in-neighbor in that order. So the probability
that walks at u and v meet in the next step is the Jaccard coefficient of their in-neighborhoods.

With link weights, or ``hubs`` as in ``measures/simrank.py``, a walk at v moves to the u with the
smallest E(u) / w(u, v), and so to each u with probability w(u, v) / sum of w(., v). The E(u) are
exponentially distributed, drawn for each step and shared by all walks. Walks with weights x and y
meet with a probability equal to the *probability Jaccard coefficient*

    J(x, y) = sum over i in both of 1 / sum over j of max(x[j] / x[i], y[j] / y[i])

and otherwise move to i and j with probability P(i, j) (closed form in
``tests/oracles/simrank.py``): p(u, v) = decay * (J(x, y) + sum of P(i, j) p(i, j) over i != j).

Convention: in-links; a node without in-links is similar only to itself. Walks have ``length``
steps; intervals include decay**(length + 1) for later meetings.
Source: Fogaras, Racz, *Scaling link-based similarity search*, section 2.2; Moulton, Jiang 2018,
*Maximally consistent sampling and the Jaccard index of probability distributions*, for weights.
"""

from __future__ import annotations

from cocite.constants import Step
from cocite.measures.measure import Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT
from cocite.measures.settings import DECAY, EVIDENCE, HUBS, LENGTH, SAMPLES, SEED

PSIMRANK = Measure(
    name="psimrank",
    summary="like simrank, but the overlap of in-links is the probability that walks meet "
    "(Fogaras, Racz)",
    layouts=("trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED, HUBS),
    ask=(DECAY, MEETING_WEIGHT, EVIDENCE),
    weighted=True,
    weighted_step=Step.CLOCK,
    step=Step.ARGMIN,
)
