"""PageSim: two pages are similar if the PageRank of the same pages reaches both.

    PG(u, v) = sum over simple paths u = w0, w1, ..., wh = v with 1 <= h <= radius of
               decay**h * PR(u) / (|O(w0)| |O(w1)| ... |O(w(h-1))|)
    PG(v, v) = PR(v)
    s(u, v)  = sum over all pages f of min(PG(f, u), PG(f, v))**2 / max(PG(f, u), PG(f, v))

with O(x) the out-neighbours of x and PR the PageRank. A page hands its score on along its links,
and gets nothing back: the nodes of a path are distinct. The *features* of v are the PG(f, v).

Convention: the printed formula has the decay once a path, the worked example below it once a hop;
this is the example's (0.8: 0.4 to v1, 0.4 + 0.32 to v2). PageRank scores have mean 1, so a score
neither shrinks as the graph grows nor is bounded by 1; a page and itself score the sum of its
features, and no page scores more with it. A link of a page to itself is on no path, but counts
among its links. Direction ``out``: links and PageRank turned round.

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

__all__ = ["DAMPING", "DECAY", "PAGESIM", "RADIUS", "THRESHOLD"]

RADIUS = Setting("radius", 3, "hops that a page's score travels", 1, 6)
DECAY = Setting("decay", 0.5, "what a step further is worth", 0.01, 1)
THRESHOLD = Setting(
    "threshold", 1e-5, "paths that carry less are cut, of the 1 an average page has; 0: none"
)
DAMPING = Setting("damping", 0.85, "share of PageRank's steps that follow a link", 0, 1, open=True)

PAGESIM = Measure(
    name="pagesim",
    summary="similar if the PageRank of the same pages reaches both (Lin, King, Lyu)",
    layouts=("features",),
    unit=False,
    monotone=False,
    build=(RADIUS, DECAY, THRESHOLD, DAMPING),
)
