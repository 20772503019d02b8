"""The measures by name, one module each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module

from cocite.errors import UsageError
from cocite.measures.measure import PREFIX, Component, Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT, AskValue, By
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
from cocite.options import Value

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

DEFAULT = "fusion"

_HOMES = {
    "fusion": "fusion:FUSION",
    "neighborhood": "default:NEIGHBORHOOD",
    "psimrank": "psimrank:PSIMRANK",
    "simrank": "simrank:SIMRANK",
    "prank": "prank:PRANK",
    "compact-simrank": "simrank:COMPACT_SIMRANK",
    "xjaccard": "xjaccard:XJACCARD",
    "pagesim": "pagesim:PAGESIM",
    "cocitation": "cocitation:COCITATION",
    "coupling": "cocitation:COUPLING",
    "snn": "snn:SNN",
    "ppr-pmi": "fusion:PPR_PMI",
    "ppr-symmetric": "ppr:PPR_SYMMETRIC",
    "ppr": "ppr:PPR",
    "companion": "companion:COMPANION",
    "tfidf": "tfidf:TFIDF",
}


class _Measures(Mapping[str, Measure]):
    """Measures by name, each imported on first use."""

    def __getitem__(self, name: str) -> Measure:
        module, _, called = _HOMES[name].partition(":")
        found: Measure = getattr(import_module(f"{__name__}.{module}"), called)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(_HOMES)

    def __len__(self) -> int:
        return len(_HOMES)


MEASURES: Mapping[str, Measure] = _Measures()


def find_measure(name: str) -> Measure:
    """Return the measure with this name, in any case, or the blend that ``name`` describes.

    Raises :class:`~cocite.errors.UsageError`.
    """
    if name.startswith(PREFIX):
        from cocite.measures.blend import parse_blend

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
