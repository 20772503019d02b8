"""PSimRank: SimRank with walks that meet as soon as they can.

    p(u, u) = 1
    p(u, v) = decay * [ |I(u) & I(v)| / |I(u) | I(v)|
                      + mean over (I(u) - I(v)) x I(v) of p * |I(u) - I(v)| / |I(u) | I(v)|
                      + mean over (I(v) - I(u)) x I(u) of p * |I(v) - I(u)| / |I(u) | I(v)| ]

with I(x) the in-neighbours of x; 0 if either has none. Two walks at u and v step to the same page
with the probability of the Jaccard coefficient of their in-neighbourhoods: at every step there is
one random order of all pages, and each walk steps to its first in-neighbour in that order.

Convention: in-links; a node without in-links is similar to itself only. Two pages with the same
in-neighbours score decay, however many those are.

Source: Fogaras, Racz, *Scaling link-based similarity search*, 2.2.1 and 2.2.2.
"""

from __future__ import annotations

from cocite.engine import Step
from cocite.measures.measure import DECAY, LENGTH, SAMPLES, SEED, Measure

__all__ = ["PSIMRANK"]

PSIMRANK = Measure(
    name="psimrank",
    summary="SimRank whose walks meet with the Jaccard coefficient of their in-links",
    layouts=("trees", "paths"),
    build=(SAMPLES, LENGTH, SEED),
    ask=(DECAY,),
    step=Step.ARGMIN,
)
