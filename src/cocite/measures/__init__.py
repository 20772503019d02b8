"""The measures by name, one module each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module

from cocite.errors import UsageError
from cocite.measures.measure import PREFIX
from cocite.measures.measure import Component as Component
from cocite.measures.measure import Measure as Measure
from cocite.measures.meeting_weight import MEETING_WEIGHT as MEETING_WEIGHT
from cocite.measures.meeting_weight import AskValue as AskValue
from cocite.measures.meeting_weight import By as By
from cocite.measures.settings import DECAY as DECAY
from cocite.measures.settings import HUBS as HUBS
from cocite.measures.settings import IN_SHARE as IN_SHARE
from cocite.measures.settings import LENGTH as LENGTH
from cocite.measures.settings import SAMPLES as SAMPLES
from cocite.measures.settings import SEED as SEED
from cocite.measures.settings import PartSettings as PartSettings
from cocite.measures.settings import Setting as Setting
from cocite.measures.settings import WholeSettings as WholeSettings
from cocite.options import Value as Value

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
        like = f". Did you mean {near[0]}? The measures are " if near else "; the measures are "
        raise UsageError(
            f"no measure is called {name!r}{like}{', '.join(sorted(MEASURES))}"
        ) from None
