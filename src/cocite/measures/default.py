"""Neighborhood: two nodes are similar if the same nodes are nearest to both, or if they are close.

    score(u, v) = 0.4 * snn(u, v) + 0.6 * ppr-symmetric(u, v)

``snn`` finds similar nodes, but has no answer for most nodes. ``ppr-symmetric`` reaches all
connected nodes, so lists are full. Any share from .3 to .7 gives nearly the same answers, as the
scores of similar nodes are ten times those of nodes that are only close.

Convention: links of both directions count; ``direction`` and the settings of ``snn`` can be chosen.
Scores are exact except for links that ``ppr-symmetric`` does not read, which intervals include.
Weights: ``ppr-symmetric`` follows them; ``snn`` ignores them.
Cost: that of both components. Source: see both; ``docs/evaluation.md`` has the comparison.
"""

from __future__ import annotations

from dataclasses import replace

from cocite.measures.blend import parse_blend
from cocite.measures.measure import PREFIX
from cocite.measures.ppr import PPR_SYMMETRIC
from cocite.measures.snn import SNN

_PARTS = {measure.name: measure for measure in (SNN, PPR_SYMMETRIC)}

NEIGHBORHOOD = replace(
    parse_blend(PREFIX + "0.4*snn+0.6*ppr-symmetric(direction=any)", _PARTS),
    name="neighborhood",
    summary="the same pages are nearest to both, or they are near themselves",
    weighted=True,
    lenient=True,
)
