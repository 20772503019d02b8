"""PageSim: two pages are similar if the PageRank of the same pages reaches both.

    PG(u, v) = sum over simple paths u = w0, w1, ..., wh = v with 1 <= h <= radius of
               decay**h * PR(u) / (|O(w0)| |O(w1)| ... |O(w(h-1))|)
    PG(v, v) = PR(v)
    s(u, v)  = sum over all pages f of min(PG(f, u), PG(f, v))**2 / max(PG(f, u), PG(f, v))

with O(x) the out-neighbors of x and PR the PageRank. A page hands its score on along its links,
and gets nothing back: the nodes of a path are distinct. The *features* of v are the PG(f, v).

Convention: the printed formula (equation 2) has the decay once a path, the worked example below it
once a hop; this is the example's (0.8: 0.4 to v1, 0.4 + 0.32 to v2), and with ``decay_per=path``
the formula's: decay in the place of decay**h. PageRank scores have mean 1, so a score neither
shrinks as the graph grows nor is bounded by 1; a page and itself score the sum of its
features, and no page scores more with it. A link of a page to itself is on no path, but counts
among its links. Direction ``out``: links and PageRank turned round.

With ``normalized`` a score is s(u, v) / sqrt(s(u, u) s(v, v)), as kernels are normalized: from 0 to
1, and 1 for a page and itself. Others have the range from PageRank of sum 1, which divides all
scores by the number of nodes: it leaves their order alone, and none of them above 1 / nodes on
average. This divides what two pages have in common by what each has, so the order changes.

Radius: any; no path is longer than all nodes less one. With a threshold of 0 paths may be more than
anybody can follow, and a build ends with an error where those of one page take more than
``most_steps`` links. Where they are few, a radius of n - 1 is the formula without pruning.

Threshold: a path is followed as long as it carries at least ``threshold``, of the 1 that an average
page has. The set of paths kept is the same whichever end they are followed from, as a value only
falls on its way. Let c(v) be what the features of v have lost by it, in all. As a function of one
of its two features a term rises by at most 2, the smaller one's, and falls by at most 1, the
larger one's, for each unit; so

    -(c(u) + c(v)) <= s(u, v) - score found <= 2 (c(u) + c(v)),    and s(v, v) is c(v) too low.

A bound on every c(v) is part of the index. Paths that carry less than the threshold are not
followed to see where they lead, so it counts walks instead: a little more.

Known weakness: a larger decay raises every feature, but not every score: a term falls where only
the larger of the two features comes the longer way.

Source: Lin, King, Lyu 2006, *PageSim: A novel link-based similarity measure for the World Wide
Web*, 4 and 5.1.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

RADIUS = Setting("radius", 3, "how many links away from a page its PageRank is passed on", 1)
DECAY = Setting("decay", 0.5, "how much a step counts, compared with the step before it", 0.01, 1)
THRESHOLD = Setting(
    "threshold",
    1e-5,
    "follow a path only as long as it passes on this much, if an average page starts with 1; 0: "
    "to its end",
)
DAMPING = Setting(
    "damping",
    0.85,
    "the probability that a step of the PageRank follows a link",
    0,
    1,
    open=True,
)
DECAY_PER = Setting(
    "decay_per",
    "hop",
    "hop: a path of three links counts decay**3; path: any path counts decay",
    choices=("hop", "path"),
    late=True,
)
NORMALIZED = Setting(
    "normalized",
    False,
    "divide a score by the root of the product of what each page scores with itself",
    late=True,
)
MOST_STEPS = Setting(
    "most_steps",
    100_000_000,
    "give up if the paths of one page take more links than this; a million take some 2 ms",
    1,
    late=True,
)

PAGESIM = Measure(
    name="pagesim",
    summary="similar if the PageRank of the same pages reaches both (Lin, King, Lyu)",
    layouts=("features",),
    unit=False,
    monotone=False,
    build=(RADIUS, DECAY, THRESHOLD, DAMPING, DECAY_PER, NORMALIZED, MOST_STEPS),
)
