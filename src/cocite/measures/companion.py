"""Companion: related pages are the authorities in the vicinity of a page.

    vicinity(u)   u, its parents (pages that link to u), its children (pages that u links to), the
                  other children of its parents, and the other parents of its children
    s(u, v)       the authority of v in the vicinity of u, by HITS on its links A:
                  a = A' h / |A' h|,   h = A a / |A a|,   |.| the sum, starting with h = 1

HITS stops after 100 iterations, or when a changes by less than 1e-10 in total. The sum of a is 1.

Convention: in-links; ``out`` reverses all links, which swaps hubs and authorities. Scores are not
symmetric, and are 0 outside the vicinity. Except through u, the vicinity does not expand through
pages with more than ``max_degree`` links in that direction; the default, max(100, sqrt(links)), was
best on four labeled graphs (``python -m benchmarks.max_degree``). The paper's steps that use texts
or hosts are omitted. A query reads the vicinity's links, then takes 10 ns per link per iteration.
Source: Dean, Henzinger 1999, *Finding related pages in the World Wide Web*, section 3.1; Kleinberg
1999.
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
    "do not expand through pages with more links than this; 0: the square root of the number of "
    "links in the graph, but at least 100",
    0,
    2**32 - 1,
    by_links=_default_max_degree,
    served=(0, 10_000),
)

COMPANION = Measure(
    name="companion",
    summary="authorities among the pages around a page; not symmetric (Dean, Henzinger)",
    layouts=("links",),
    reader="common:CompanionReader",
    ask=(MAX_DEGREE,),
    symmetric=False,
)
