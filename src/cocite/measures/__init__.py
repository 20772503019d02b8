"""The measures, one file each, and the table that finds them by name."""

from __future__ import annotations

from cocite.errors import UsageError
from cocite.measures.cocitation import COCITATION
from cocite.measures.compact_simrank import COMPACT_SIMRANK
from cocite.measures.coupling import COUPLING
from cocite.measures.measure import Measure, Setting, Settings, Value
from cocite.measures.pagesim import PAGESIM
from cocite.measures.ppr import PPR
from cocite.measures.psimrank import PSIMRANK
from cocite.measures.simrank import SIMRANK

__all__ = ["MEASURES", "Measure", "Setting", "Settings", "Value", "find_measure"]

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (PSIMRANK, SIMRANK, COMPACT_SIMRANK, PAGESIM, COCITATION, COUPLING, PPR)
}


def find_measure(name: str) -> Measure:
    """The measure called ``name``; raises :class:`~cocite.errors.UsageError`."""
    try:
        return MEASURES[name]
    except KeyError:
        raise UsageError(
            f"no measure is called {name!r}; there are " + ", ".join(sorted(MEASURES))
        ) from None
