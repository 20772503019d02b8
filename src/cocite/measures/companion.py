"""Companion: the authorities among the pages around a page.

The *vicinity* of u is u itself and

    parents     the pages that link to u              siblings    what else those link to
    children    the pages that u links to             mates       what else links to those

and s(u, v) is the authority of v in the links among them, by HITS:

    a = A' h / |A' h|,   h = A a / |A a|,   A the links of the vicinity, |.| the sum, h = 1 first

up to 100 rounds, or until a changes by 1e-10 in all. Authorities of a vicinity add up to 1.

Convention: in-links; ``out`` has all links turned round, so that hubs take the place of
authorities. Not symmetric: each page has a vicinity of its own. Nodes outside of it score 0, and
all do where it has no links. A page other than u with more than ``max_degree`` links in a direction
is not passed through that way, as a stop word is not: it stays in the vicinity, and what it leads
to does not come in by it. By default max_degree is max(100, sqrt(links of the graph)), which was
best over four labeled graphs and bounds the slowest questions (``python -m
benchmarks.max_degree``). What the paper has beside this needs texts of pages or their hosts and is
left out: links by their order on a page, duplicate pages, the weights of hosts.

Cost: the links of the vicinity, read once, and some 10 ns a link and round; numbers of a vicinity
grow with the product of two degrees. Exact, but for what the rounds leave.
Source: Dean, Henzinger 1999, *Finding related pages in the World Wide Web*, 3.1 (Companion);
Kleinberg 1999 for HITS.
"""

from __future__ import annotations

import math

from cocite.measures.measure import Measure
from cocite.measures.settings import Setting


def _default_max_degree(links: int) -> int:
    return max(100, math.isqrt(links))


MAX_DEGREE = Setting(
    "max_degree",
    0,
    "do not pass through pages that have more links than this; 0: the square root of the number of "
    "links in the graph, 100 at least",
    0,
    2**32 - 1,
    by_links=_default_max_degree,
)

COMPANION = Measure(
    name="companion",
    summary="authorities among the pages around a page; not symmetric (Dean, Henzinger)",
    layouts=("links",),
    reader="cocite.index.layouts.links.common:CompanionReader",
    ask=(MAX_DEGREE,),
    symmetric=False,
)
