"""Personalised PageRank: where a walk is that sets out from a page again and again.

    score(u, v) = (1 - damping) [u = v] + damping * sum of score(u, x) / |O(x)| over x in I(v)

with O(x) the pages that x links to and I(v) those that link to v: the share of its time that a walk
spends at v which at each step follows a link with the probability ``damping`` and goes back to u
else. At a page without links it goes back to u as well. The scores from one u add up to 1.

Weights: if links have weights w(x, v), the walk follows them in proportion: score(u, x) / |O(x)|
becomes score(u, x) w(x, v) / sum of w(x, .).

Convention: by default the walk follows links forwards, the direction ``out``; in the direction
``in`` it follows them backwards, from a page to those that link to it. The measure is **not
symmetric**: score(u, v) says how near v is to a walk from u. A node's score with itself is not 1
but the share of time that the walk is there, 1 - damping at least.

A score is never above the truth, and below it by at most ``tolerance``; all that is missing, over
all nodes together, is within the tolerance as well. There is no error of sampling.

Cost: what is near the page, whatever the size of the graph, where links stay local: by default
0.6 ms on a crawl of 3 million links; where they lead everywhere, 20 sweeps over all of them. It
grows with log(1 / tolerance).
Source: Page, Brin, Motwani, Winograd 1999, 6; Haveliwala 2002, *Topic-sensitive PageRank*; computed
after Andersen, Chung, Lang 2006 (``kernels/push.py``).
"""

from __future__ import annotations

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting

__all__ = ["DAMPING", "PPR", "TOLERANCE"]

DAMPING = Setting("damping", 0.85, "how probably the walk goes on", 0.001, 0.999)
TOLERANCE = Setting("tolerance", 1e-4, "how far below the truth a score may be", 1e-12, 1)

PPR = Measure(
    name="ppr",
    summary="share of a walk that sets out from a page again and again; not symmetric",
    layouts=("links",),
    ask=(DAMPING, TOLERANCE),
    symmetric=False,
    weighted=True,
    direction="out",
)
