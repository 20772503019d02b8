"""The measures, one file each, and the table that finds them by name."""

from __future__ import annotations

from difflib import get_close_matches

from cocite.errors import UsageError
from cocite.measures.blend import PREFIX, parse_blend
from cocite.measures.cocitation import COCITATION, COUPLING
from cocite.measures.companion import COMPANION
from cocite.measures.default import NEIGHBOURHOOD
from cocite.measures.fusion import FUSION, PPR_PMI
from cocite.measures.measure import Component, Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT, AskValue, By
from cocite.measures.pagesim import PAGESIM
from cocite.measures.ppr import PPR, PPR_SYMMETRIC
from cocite.measures.prank import PRANK
from cocite.measures.psimrank import PSIMRANK
from cocite.measures.settings import (
    DECAY,
    HUBS,
    IN_SHARE,
    LENGTH,
    SAMPLES,
    SEED,
    PartSettings,
    Setting,
    WholeSettings,
)
from cocite.measures.simrank import COMPACT_SIMRANK, SIMRANK
from cocite.measures.snn import SNN
from cocite.measures.tfidf import TFIDF
from cocite.measures.xjaccard import XJACCARD
from cocite.options.core import Value

__all__ = [
    "DECAY",
    "DEFAULT",
    "HUBS",
    "IN_SHARE",
    "LENGTH",
    "MEASURES",
    "MEETING_WEIGHT",
    "SAMPLES",
    "SEED",
    "AskValue",
    "By",
    "Component",
    "Measure",
    "PartSettings",
    "Setting",
    "Value",
    "WholeSettings",
    "find_measure",
]

DEFAULT = NEIGHBOURHOOD.name
"""The measure of an index for which none is chosen."""

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        NEIGHBOURHOOD,
        FUSION,
        PSIMRANK,
        SIMRANK,
        PRANK,
        COMPACT_SIMRANK,
        XJACCARD,
        PAGESIM,
        COCITATION,
        COUPLING,
        SNN,
        PPR_PMI,
        PPR_SYMMETRIC,
        PPR,
        COMPANION,
        TFIDF,
    )
}


def find_measure(name: str) -> Measure:
    """The measure called ``name``, in any case, or the blend that it describes (``blend:...``).

    Raises :class:`~cocite.errors.UsageError`.
    """
    if name.startswith(PREFIX):
        return parse_blend(name, MEASURES)
    called = name.strip().lower().replace("_", "-")
    try:
        return MEASURES[called]
    except KeyError:
        near = get_close_matches(called, MEASURES, 1)
        like = f". Did you mean {near[0]}? There are " if near else "; there are "
        raise UsageError(
            f"no measure is called {name!r}{like}{', '.join(sorted(MEASURES))}"
        ) from None
