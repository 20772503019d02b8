"""Neighborhood: the same pages are nearest to both, or they are near themselves.

    score(u, v) = 0.4 * snn(u, v) + 0.6 * ppr-symmetric(u, v)

``measures/snn.py`` finds what is alike, and says nothing of most pages; ``measures/ppr.py`` reaches
all that is connected, so that lists are full and pages have answers that few link to, and it tells
what stands close. Each alone is worse; the share hardly matters, from .3 to .7, as the scores of
what is alike are ten times those of what is only near. Exact, but for what ``ppr-symmetric`` has
not read, which intervals contain.

Links of both directions count. Direction and settings of ``snn`` are to be chosen;
``ppr-symmetric`` has none, as it takes links either way.

Weights: if links have weights, ``ppr-symmetric`` goes by them, and ``snn`` leaves them aside.

Cost: that of both.
Source: those of both, added up as blends are (``measures/blend.py``); found by comparing with
spectral embeddings on graphs with labels (``docs/evaluation.md``).
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
