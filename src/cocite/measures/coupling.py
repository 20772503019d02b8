"""Bibliographic coupling: two pages are similar if they link to the same pages.

It is cocitation (``cocitation.py``, with its forms and weights) on the graph turned round: with
out-neighbours in the place of in-neighbours and, for the weights, in-neighbours in the place of
out-neighbours.

Convention: out-links. As for every measure, the direction ``out`` is the measure of the graph
turned round: coupling in the direction ``out`` is cocitation, and the other way about.

Source: Kessler 1963, *Bibliographic coupling between scientific papers*.
"""

from __future__ import annotations

from cocite.measures.cocitation import FORM, IDF
from cocite.measures.measure import Measure

__all__ = ["COUPLING"]

COUPLING = Measure(
    name="coupling",
    summary="similar if both link to the same pages; exact (Kessler)",
    layouts=("links",),
    ask=(FORM, IDF),
    directions=("in", "out", "both"),
    turned=True,
)
