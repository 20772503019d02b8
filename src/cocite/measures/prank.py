"""P-Rank: two pages are similar if similar pages link to them, and if they link to similar pages.

    s(u, u) = 1
    s(u, v) = in_share       * decay / (|I(u)| |I(v)|) * sum of s over I(u) x I(v)
            + (1 - in_share) * decay / (|O(u)| |O(v)|) * sum of s over O(u) x O(v)

with I(x) the in-neighbors of x and O(x) its out-neighbors; a term is 0 if either set is empty.
What both directions say goes into the next round, so that pages are similar, too, that are linked
to by pages which link to the same ones: the mean of two SimRanks (``simrank``, ``direction=both``)
knows nothing of that.

Walks: s(u, v) = E[decay**tau] for two walkers that go the same way at every step, both backwards
along a link with the probability ``in_share`` and both forwards with the rest, each to a neighbor
drawn uniformly, until they meet. So which way it goes is one draw for a step of a sample, the same
for all walkers, and all else is as for SimRank: where walkers have met they stay together, and one
with no link that way has ended. With walks of at most ``length`` steps it is the value of the
recursion after ``length`` rounds.

Convention: directions ``in`` and ``out`` go one way alone, whatever the share: they are SimRank.
Links all count the same.

Source: Zhao, Han, Sun 2009, *P-Rank: a comprehensive structural similarity measure over information
networks*, 3; their lambda is ``in_share``, their C the decay. The walks are those of Fogaras, Racz,
*Scaling link-based similarity search*, 1.3.
"""

from __future__ import annotations

from cocite.engine.weights import Step
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
