"""Neighborhood: two nodes are similar if the same nodes are nearest to both, or if they are close.

    score(u, v) = 0.4 * snn(u, v) + 0.6 * ppr-symmetric(u, v)

``snn`` finds similar nodes, but scores most pairs 0. ``ppr-symmetric`` fills the lists, because it
reaches all connected nodes. Weights from 0.3 to 0.7 give nearly the same rankings: similar nodes
score ten times as high as nodes that are only close.

Convention: links in both directions by default. The only error comes from links that
``ppr-symmetric`` does not read; intervals include it. ``ppr-symmetric`` uses link weights; ``snn``
ignores them.
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
    summary="similar if the same pages are nearest to both, or if they are near each other",
    weighted=True,
    lenient=True,
)
