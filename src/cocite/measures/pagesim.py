"""PageSim: two pages are similar if they receive PageRank from the same pages.

    PG(u, v) = sum over simple paths u = w0, w1, ..., wh = v with 1 <= h <= radius of
               decay**h * PR(u) / (|O(w0)| |O(w1)| ... |O(w(h-1))|),      PG(v, v) = PR(v)
    s(u, v)  = sum over all pages f of min(PG(f, u), PG(f, v))**2 / max(PG(f, u), PG(f, v))

O(x) are the out-neighbors of x, and PR is the PageRank, scaled to mean 1. ``normalized`` divides
s(u, v) by sqrt(s(u, u) s(v, v)), which changes the order and limits scores to [0, 1].
``decay_per=path`` applies the decay once per path, as in the paper's equation 2, instead of once
per hop, as in the paper's worked example.

Paths are followed while they carry at least ``threshold``. The index stores c(v), a bound on the
total loss in the features PG(., v). Then

    -(c(u) + c(v)) <= s(u, v) - score <= 2 (c(u) + c(v)),

because a term rises by at most 2 per unit of its smaller feature, and falls by at most 1 per unit
of its larger one. s(v, v) is too low by at most c(v). With a threshold of 0, the number of paths
can explode; a build fails after ``most_steps`` steps.

Convention: paths skip self-loops, which still count as out-links. ``out`` reverses links and
PageRank. A larger decay raises every feature, but can lower a score.
Source: Lin, King, Lyu 2006, *PageSim: A novel link-based similarity measure for the World Wide
Web*, sections 4 and 5.1.
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

RADIUS = Setting("radius", 3, "maximum length of paths, in links", 1)
DECAY = Setting("decay", 0.5, "factor per step", 0.01, 1)
THRESHOLD = Setting(
    "threshold",
    1e-5,
    "follow a path while it carries at least this much PageRank; an average page starts with 1. "
    "0: follow all paths up to the radius",
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
    "hop: a path of three links is multiplied by decay**3; path: every path by decay",
    choices=("hop", "path"),
    late=True,
)
NORMALIZED = Setting(
    "normalized",
    False,
    "divide a score by the geometric mean of both pages' self-similarities",
    late=True,
)
MOST_STEPS = Setting(
    "most_steps",
    100_000_000,
    "fail if the paths of one page read more links than this; a million links take about 2 ms",
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
