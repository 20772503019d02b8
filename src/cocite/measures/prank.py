"""P-Rank: two pages are similar if similar pages link to them, and if they link to similar pages.

    s(u, u) = 1
    s(u, v) = in_share       * decay / (|I(u)| |I(v)|) * sum of s over I(u) x I(v)
            + (1 - in_share) * decay / (|O(u)| |O(v)|) * sum of s over O(u) x O(v)

I(x) and O(x) are the in- and out-neighbors of x; a term is 0 if either set is empty. Unlike the
mean of two SimRanks (``simrank``, ``direction=both``), the recursion mixes both directions.

Walks: s(u, v) = E[decay**tau], where tau is the step at which two walkers first meet. At every
step, both move to a random neighbor in the same direction, along in-links with probability
``in_share``, otherwise along out-links. In a sample, one draw per step sets the direction of all
walkers. Convention: the directions ``in`` and ``out`` give SimRank. Link weights are ignored.
Source: Zhao, Han, Sun 2009, *P-Rank: a comprehensive structural similarity measure over information
networks*, section 3 (their lambda is ``in_share``); walks as in Fogaras, Racz, *Scaling ...*,
section 1.3.
"""

from __future__ import annotations

from cocite.constants import Step
from cocite.measures.measure import Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT
from cocite.measures.settings import DECAY, IN_SHARE, LENGTH, SAMPLES, SEED

PRANK = Measure(
    name="prank",
    summary="similar if similar pages link to both, and if they link to similar pages (Zhao et al)",
    layouts=("trees", "packed", "paths"),
    build=(SAMPLES, LENGTH, SEED, IN_SHARE),
    ask=(DECAY, MEETING_WEIGHT),
    step=Step.UNIFORM,
    direction="both",
    joint=True,
)
